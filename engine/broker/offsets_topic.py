"""Append to and read `__consumer_offsets`, for the group coordinator.

Records of a transaction count from its marker on, in the order of the markers.

Source: GroupMetadataManager.appendForGroup, doLoadGroupsAndOffsets of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from engine.broker.coordinator_topic import CoordinatorTopic, Waiting
from engine.config.broker_config import BrokerConfig
from engine.groups.ports import CommittingProducer, GroupRecord, LoadedRecords, Written
from engine.host.promise import Promise
from engine.kafka_errors import UNKNOWN_SERVER_ERROR
from engine.limits import LOADED_AT_ONCE
from engine.records.batch import BatchView
from engine.records.builder import BatchRefused, BatchSettings
from engine.records.codec import Codec
from engine.records.control import ControlType, control_type
from engine.records.record import NO_SEQUENCE, Record
from engine.replication.delayed_produce import ProduceResult

#: acks=0: waits for no other replica, and ignores min.insync.replicas.
_NO_WAITING: Final = Waiting(required_acks=0, timeout_ms=0)


class OffsetsTopic:
    """The `__consumer_offsets` partitions of this broker.

    Implements `engine.groups.ports.GroupLog`.
    """

    def __init__(self, topic: CoordinatorTopic, config: BrokerConfig) -> None:
        """Create access to `__consumer_offsets`, with the commit settings of `config`."""
        self._topic = topic
        self._config = config
        self._codec = Codec(config.offsets_topic_compression_codec)
        #: Acks and timeout of appends with `is_awaited`.
        self._waiting = Waiting(
            config.offsets_commit_required_acks, config.offsets_commit_timeout_ms
        )

    def partition_count(self) -> int:
        """Return the partition count of `__consumer_offsets`.

        Before the topic exists, it is the count with which the topic will be created.
        """
        return self._topic.partition_count() or self._config.offsets_topic_num_partitions

    def append(
        self,
        partition: int,
        records: Sequence[GroupRecord],
        *,
        base_sequence: int = NO_SEQUENCE,
        producer: CommittingProducer | None = None,
        is_awaited: bool = True,
    ) -> Promise[Written]:
        """Append group records to a partition as one batch; promise the result.

        See `GroupLog.append`.
        """
        settings = BatchSettings(codec=self._codec, base_sequence=base_sequence)
        if producer is not None:
            settings = settings._replace(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                is_transactional=True,
            )
        try:
            waiting = self._waiting if is_awaited else _NO_WAITING
            return self._topic.append(partition, records, settings, waiting, _convert_result)
        except BatchRefused:
            # A client may send any producer, such as one without an epoch.
            return Promise.of(Written(UNKNOWN_SERVER_ERROR))

    def append_fast(
        self, partition: int, key: bytes, value: bytes, now_ms: int, *, base_sequence: int
    ) -> int | Written | Promise[Written]:
        """Append one group record without extra objects; see `GroupLog.append_fast`."""
        own = None
        if self._codec is Codec.NONE:
            own = self._topic.append_fast(
                partition, key, value, base_sequence, self._waiting, now_ms
            )
        if own is None:
            record = GroupRecord(key, value)
            return self.append(partition, (record,), base_sequence=base_sequence)
        if isinstance(own, int):
            return own
        return own.then(_convert_result) if isinstance(own, Promise) else _convert_result(own)

    def read(self, partition: int) -> Iterator[LoadedRecords]:
        """Yield all group records of a partition in order, in lists; see `GroupLog.read`.

        Records of a transaction come at its COMMIT marker; those of an open one last, with its
        producer id. Raises ApiError or StorageError if the log cannot be read.
        """
        undecided: dict[int, list[Record]] = {}
        for batch in self._topic.batches(partition, self._config.offsets_load_buffer_size):
            if isinstance(batch, BatchView) and batch.is_control:
                decided = undecided.pop(batch.producer_id, [])
                if any(control_type(mark) is ControlType.COMMIT for mark in batch.records()):
                    yield from _in_lists(decided)
                continue
            records = (record for record in batch.records() if record.key is not None)
            if isinstance(batch, BatchView) and batch.is_transactional:
                undecided.setdefault(batch.producer_id, []).extend(records)
            else:
                yield from _in_lists(records)
        for producer_id, pending in undecided.items():
            yield from _in_lists(pending, producer_id)


def _in_lists(records: Iterable[Record], open_producer_id: int = -1) -> Iterator[LoadedRecords]:
    """Yield the records in lists of at most LOADED_AT_ONCE, so that a load proceeds in steps.

    `open_producer_id` is the producer of their open transaction, -1 without one.
    """
    left = iter(records)
    while some := list(islice(left, LOADED_AT_ONCE)):
        yield LoadedRecords(some, open_producer_id)


def _convert_result(result: ProduceResult) -> Written:
    """Convert the result of an append: error code, 0 for success, and base offset."""
    code = 0 if result.error is None else result.error.code
    return Written(code, result.base_offset)
