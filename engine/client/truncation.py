"""Detect a log truncation below a consumer's position, as after an unclean election.

1. Two leader epochs are stored for each partition: that of the last batch read, and that of the
   metadata.
2. When metadata has a later leader epoch, or another topic id, the leader is requested for the end
   offset of the batch's epoch (OffsetsForLeaderEpoch).
3. An end offset below the position means that records which were read are lost, and others may have
   their offsets: the partition stops with LogTruncated, which names where the two logs diverge. It
   does so again until its reader seeks.

Not checked: a position before any batch was read, and brokers below 2.3, which lack the request.

Source: KIP-320; OffsetsForLeaderEpochUtils, SubscriptionState.maybeCompleteValidation,
Metadata.updateLatestMetadata of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.connection import Call
from engine.client.errors import NoCommonVersion
from engine.client.metadata import ClusterView
from engine.errors import EngineError, api_error
from engine.kafka_errors import NONE
from engine.model import TopicPartition, by_topic
from engine.records.record_run import NO_EPOCH
from engine.wire import messages
from engine.wire.layout import NO_UUID

_CONSUMER: Final = -1
#: The first version that consumers may send without CLUSTER_ACTION permission.
_LOWEST_VERSION: Final = 3
_UNDEFINED: Final = -1


class LogTruncated(EngineError):
    """Records that were read are no longer in the log.

    `end_offset` is where the log diverges from the one that was read, None if that is unknown.
    """

    hint = "a replica that was not in sync was elected, as unclean.leader.election.enable allows"

    def __init__(self, partition: TopicPartition, position: int, end_offset: int | None) -> None:
        where = "below it" if end_offset is None else f"at {end_offset}"
        super().__init__(f"the log was truncated {where}, and was read up to {position}")
        self.partition = partition
        self.position = position
        self.end_offset = end_offset


class _Leadership(NamedTuple):
    """The id of a topic, and the leader epoch of one of its partitions, in metadata."""

    topic_id: bytes
    epoch: int

    def is_other_than(self, checked: _Leadership) -> bool:
        """True if a position that was checked under `checked` must be checked again under this one.

        That is so after a higher leader epoch, or another topic id. A lower epoch of the same topic
        comes from outdated metadata, and is ignored.
        """
        if self.epoch in (NO_EPOCH, checked.epoch):
            return False
        is_made_again = self.topic_id != checked.topic_id and NO_UUID not in (
            self.topic_id,
            checked.topic_id,
        )
        return is_made_again or self.epoch > checked.epoch


class TruncationChecks:
    """Checks of one consumer's positions against truncated logs."""

    def __init__(self, client: KafkaClient) -> None:
        """Create the checks of a consumer that reads no partition yet."""
        self._client = client
        #: By partition, the leader epoch of the last batch that was read (1).
        self._epochs: dict[TopicPartition, int] = {}
        #: By partition, topic id and leader epoch for which the position was read or checked last.
        self._checked: dict[TopicPartition, _Leadership] = {}

    def read(self, partition: TopicPartition, epoch: int, view: ClusterView) -> None:
        """Store the leader epoch of the last batch that was read from a partition.

        `view` is the metadata of its fetch: a later leader epoch makes a check due.
        """
        self._epochs[partition] = epoch
        self._checked[partition] = _leadership(view, partition)

    def forget(self, partition: TopicPartition) -> None:
        """Drop what is stored of a partition: no check until it is read again, as after a seek."""
        self._epochs.pop(partition, None)
        self._checked.pop(partition, None)

    def validate(
        self, positions: Mapping[TopicPartition, int], view: ClusterView
    ) -> dict[TopicPartition, EngineError]:
        """Check positions whose partition has a new leader epoch or topic id, by epoch ends.

        Returns the error of each partition that failed: LogTruncated if the leader's log ends
        before the position, or the error of the request, after which the next call repeats the
        check.
        """
        due = [
            partition
            for partition in positions
            if self._epochs.get(partition, NO_EPOCH) != NO_EPOCH
            and _leadership(view, partition).is_other_than(self._checked[partition])
        ]
        failures: dict[TopicPartition, EngineError] = {}
        for partition, end in self._request_epoch_ends(due).items() if due else ():
            position = positions[partition]
            if isinstance(end, EngineError) and not isinstance(end, NoCommonVersion):
                failures[partition] = end
            elif isinstance(end, int) and end < position:
                known = None if end == _UNDEFINED else end
                failures[partition] = LogTruncated(partition, position, known)
            else:
                self._checked[partition] = _leadership(view, partition)
        return failures

    def _request_epoch_ends(
        self, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, int | EngineError]:
        """Return at which offset the last epoch read of each partition ends in its leader's log.

        The value is −1 if the leader does not have that epoch, or the partition's error.
        """

        def make_call(led: list[TopicPartition], view: ClusterView) -> Call:
            """Return the OffsetForLeaderEpoch call of one leader, with the epochs read."""
            request = messages.OffsetForLeaderEpochRequest
            topics = [
                request.OffsetForLeaderTopic(
                    topic=topic,
                    partitions=[
                        request.OffsetForLeaderPartition(
                            partition=p.partition,
                            current_leader_epoch=leader_epoch_of(view, p),
                            leader_epoch=self._epochs[p],
                        )
                        for p in of_topic
                    ],
                )
                for topic, of_topic in by_topic(led).items()
            ]
            message = request(replica_id=_CONSUMER, topics=topics)
            return Call("OffsetForLeaderEpoch", message, _LOWEST_VERSION)

        return self._client.send_to_leaders(
            partitions, make_call, lambda message, _: _ends_of(message)
        )


def _leadership(view: ClusterView, partition: TopicPartition) -> _Leadership:
    """Return topic id and leader epoch of a partition in the metadata; NO_UUID and −1 if absent."""
    topic = view.topics.get(partition.topic)
    topic_id = NO_UUID if topic is None else topic.topic_id
    return _Leadership(topic_id, leader_epoch_of(view, partition))


def leader_epoch_of(view: ClusterView, partition: TopicPartition) -> int:
    """Return a partition's leader epoch in metadata, −1 if metadata has none."""
    known = view.partition(partition)
    return NO_EPOCH if known is None else known.leader_epoch


def _ends_of(
    response: messages.OffsetForLeaderEpochResponse,
) -> dict[TopicPartition, int | EngineError]:
    """Return the end offset (exclusive) of each partition's requested epoch, or the error."""
    return {
        TopicPartition(topic.topic, row.partition): (
            api_error(row.error_code) if row.error_code != NONE else row.end_offset
        )
        for topic in response.topics
        for row in topic.partitions
    }
