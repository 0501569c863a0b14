"""ElectLeaders (43): preferred elections, and unclean ones for partitions without a leader.

| versions | difference |
|---|---|
| 0 | topics or null for all partitions, timeout; preferred elections only |
| 1 | the kind of election: 0 preferred, 1 unclean; an error of the whole response |
| 2 | flexible |

The response waits until this broker's metadata shows the new leaders. If all partitions were
requested, those that need no election are left out.

Source: KIP-183, KIP-460; KafkaApis.handleElectLeaders, ReplicaManager.electLeaders,
DelayedElectLeader.
Differs: partitions of a topic are in the same order where leaders were elected; Kafka's is another
from run to run then.
"""

from __future__ import annotations

from collections.abc import Iterable

from engine.admin.topic_waiting import TopicWaiting
from engine.api.exchange import Exchange
from engine.api.promised import promised
from engine.controller.controller import Controller
from engine.controller.requested_election import PartitionElection
from engine.hash_order import by_topic_in_hash_order
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.kafka_errors import ELECTION_NOT_NEEDED, NONE, REQUEST_TIMED_OUT, UNKNOWN_SERVER_ERROR
from engine.model import TopicPartition
from engine.replication.metadata_cache import MetadataCache
from engine.wire import messages

_PREFERRED = 0
_UNCLEAN = 1
_TIMED_OUT = PartitionElection(REQUEST_TIMED_OUT)


class ElectLeaders:
    """Answers ElectLeaders by this broker's controller."""

    def __init__(
        self,
        controller: Controller,
        metadata_cache: MetadataCache,
        waiting: TopicWaiting,
        clock: Clock,
    ) -> None:
        """Create the handler; `waiting` waits until the metadata cache has the elected leaders."""
        self._controller = controller
        self._metadata_cache = metadata_cache
        self._waiting = waiting
        self._clock = clock

    def handle(
        self, request: messages.ElectLeadersRequest, _exchange: Exchange
    ) -> messages.ElectLeadersResponse | Promise[messages.ElectLeadersResponse]:
        """Elect preferred or unclean leaders, and promise the result of each partition.

        The response waits until this broker's metadata has the leaders, or until the request's
        timeout. An unknown election type gets UNKNOWN_SERVER_ERROR at once.
        """
        if request.election_type not in (_PREFERRED, _UNCLEAN):
            return self._unknown_type_response(request)
        deadline_ms = self._clock.monotonic_ms() + request.timeout_ms
        is_all = request.topic_partitions is None

        async def elect_and_wait() -> messages.ElectLeadersResponse:
            """Elect the leaders, then wait until this broker's metadata has them or the time is
            over.
            """
            results = await self._controller.elect_leaders(
                self._partitions(request), is_unclean=request.election_type == _UNCLEAN
            )
            leaders = {
                key: result.leader_id for key, result in results.items() if result.code == NONE
            }
            left_ms = max(0, deadline_ms - self._clock.monotonic_ms())
            late = await self._waiting.await_new_leaders(leaders, left_ms)
            return self._response(self._time_out_late_elections(results, late), is_all)

        return promised(elect_and_wait())

    def _partitions(self, request: messages.ElectLeadersRequest) -> Iterable[TopicPartition]:
        """Return the requested partitions, or all partitions of the cluster if the list is null."""
        if request.topic_partitions is None:
            return [
                TopicPartition(topic, index)
                for topic, partitions in self._metadata_cache.topics.items()
                for index in partitions
            ]
        return [
            TopicPartition(topic.topic, index)
            for topic in request.topic_partitions
            for index in topic.partitions
        ]

    def _time_out_late_elections(
        self, results: dict[TopicPartition, PartitionElection], late: Iterable[str]
    ) -> dict[TopicPartition, PartitionElection]:
        """Return results with REQUEST_TIMED_OUT where a new leader is not in the metadata yet.

        `late` are the topics whose metadata did not show the leaders before the deadline.
        """
        in_time = dict(results)
        late_topics = frozenset(late)
        for partition, result in results.items():
            if result.code == NONE and partition.topic in late_topics:
                metadata = self._metadata_cache.partition(partition)
                if metadata is None or metadata.leader_id != result.leader_id:
                    in_time[partition] = _TIMED_OUT
        return in_time

    def _response(
        self, results: dict[TopicPartition, PartitionElection], is_all: bool
    ) -> messages.ElectLeadersResponse:
        """Return the response by topic; `is_all` leaves out partitions that need no election."""
        row = messages.ElectLeadersResponse.PartitionResult
        listed = (
            key
            for key, result in results.items()
            if not (is_all and result.code == ELECTION_NOT_NEEDED)
        )
        by_topic = {
            topic: [
                row(
                    partition_id=key.partition,
                    error_code=results[key].code,
                    error_message=results[key].message,
                )
                for key in partitions
            ]
            for topic, partitions in by_topic_in_hash_order(listed).items()
        }
        return messages.ElectLeadersResponse(
            replica_election_results=self._topic_rows(by_topic.items())
        )

    def _unknown_type_response(
        self, request: messages.ElectLeadersRequest
    ) -> messages.ElectLeadersResponse:
        """Return UNKNOWN_SERVER_ERROR for a request with an unknown election type."""
        row = messages.ElectLeadersResponse.PartitionResult
        requested = [
            (
                topic.topic,
                [
                    row(partition_id=index, error_code=UNKNOWN_SERVER_ERROR, error_message=None)
                    for index in topic.partitions
                ],
            )
            for topic in request.topic_partitions or ()
        ]
        return messages.ElectLeadersResponse(
            error_code=UNKNOWN_SERVER_ERROR, replica_election_results=self._topic_rows(requested)
        )

    def _topic_rows(
        self,
        by_topic: Iterable[tuple[str, list[messages.ElectLeadersResponse.PartitionResult]]],
    ) -> list[messages.ElectLeadersResponse.ReplicaElectionResult]:
        """Wrap the partition results of each topic into the response's topic rows."""
        topic = messages.ElectLeadersResponse.ReplicaElectionResult
        return [topic(topic=name, partition_result=rows) for name, rows in by_topic]
