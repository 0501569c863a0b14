"""ElectLeaders (43): preferred leaders lead again, or whoever is left where nobody leads.

| versions | difference |
|---|---|
| 0 | topics or null for all partitions, timeout; preferred elections only |
| 1 | the kind of election: 0 preferred, 1 unclean; an error of the whole answer |
| 2 | flexible |

The answer waits until this broker's metadata shows the new leaders. Where all partitions were
asked for, those that need no election are left out.

Source: KIP-183, KIP-460; KafkaApis.handleElectLeaders, ReplicaManager.electLeaders,
DelayedElectLeader.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.admin.topic_waiting import TopicWaiting
from engine.api.exchange import Deferred, Exchange
from engine.controller.asked_election import PartitionElection
from engine.controller.controller import Controller
from engine.host.ports import Clock
from engine.kafka_errors import ELECTION_NOT_NEEDED, NONE, REQUEST_TIMED_OUT, UNKNOWN_SERVER_ERROR
from engine.model import TopicPartition
from engine.replication.metadata_cache import MetadataCache
from engine.wire.structs import message_class

_PREFERRED = 0
_UNCLEAN = 1
_TIMED_OUT = PartitionElection(REQUEST_TIMED_OUT)


class ElectLeaders:
    """Asks the controller of this broker, and waits for what it elected."""

    def __init__(
        self, controller: Controller, cache: MetadataCache, waiting: TopicWaiting, clock: Clock
    ) -> None:
        self._controller = controller
        self._cache = cache
        self._waiting = waiting
        self._clock = clock
        self._response = message_class("ElectLeadersResponse")

    def handle(self, request: Any, _exchange: Exchange) -> Any:
        """Return what becomes the answer, at once if the kind of election is none."""
        if request.election_type not in (_PREFERRED, _UNCLEAN):
            return self._unknown_kind(request)
        deferred = Deferred()
        deadline_ms = self._clock.monotonic_ms() + request.timeout_ms
        is_all = request.topic_partitions is None

        def elected(outcomes: dict[TopicPartition, PartitionElection]) -> None:
            leaders = {each: it.leader_id for each, it in outcomes.items() if it.code == NONE}
            self._waiting.for_new_leaders(
                leaders,
                max(0, deadline_ms - self._clock.monotonic_ms()),
                lambda late: deferred.complete(self._reply(self._in_time(outcomes, late), is_all)),
            )

        self._controller.elect_leaders(
            self._partitions(request), elected, is_unclean=request.election_type == _UNCLEAN
        )
        return deferred

    def _partitions(self, request: Any) -> Iterable[TopicPartition]:
        if request.topic_partitions is None:
            return [
                TopicPartition(topic, index)
                for topic, partitions in self._cache.topics.items()
                for index in partitions
            ]
        return [
            TopicPartition(each.topic, index)
            for each in request.topic_partitions
            for index in each.partitions
        ]

    def _in_time(
        self, outcomes: dict[TopicPartition, PartitionElection], late: Iterable[str]
    ) -> dict[TopicPartition, PartitionElection]:
        """Return the outcomes, those that the metadata of late topics does not show as such."""
        found = dict(outcomes)
        late_topics = frozenset(late)
        for partition, outcome in outcomes.items():
            if outcome.code == NONE and partition.topic in late_topics:
                known = self._cache.partition(partition)
                if known is None or known.leader_id != outcome.leader_id:
                    found[partition] = _TIMED_OUT
        return found

    def _reply(self, outcomes: dict[TopicPartition, PartitionElection], is_all: bool) -> Any:
        by_topic: dict[str, list[Any]] = {}
        for partition, outcome in outcomes.items():
            if is_all and outcome.code == ELECTION_NOT_NEEDED:
                continue
            row = self._response.PartitionResult(
                partition_id=partition.partition,
                error_code=outcome.code,
                error_message=outcome.message,
            )
            by_topic.setdefault(partition.topic, []).append(row)
        return self._response(replica_election_results=self._topics(by_topic))

    def _unknown_kind(self, request: Any) -> Any:
        row = self._response.PartitionResult
        by_topic = {
            topic.topic: [
                row(partition_id=index, error_code=UNKNOWN_SERVER_ERROR, error_message=None)
                for index in topic.partitions
            ]
            for topic in request.topic_partitions or ()
        }
        return self._response(
            error_code=UNKNOWN_SERVER_ERROR, replica_election_results=self._topics(by_topic)
        )

    def _topics(self, by_topic: dict[str, list[Any]]) -> list[Any]:
        topic = self._response.ReplicaElectionResult
        return [topic(topic=name, partition_result=rows) for name, rows in by_topic.items()]
