"""LeaderAndIsr (4), from the controller: which partitions this broker leads and follows.

| versions | form of the partitions, and of the answer's |
|---|---|
| 0, 1 | one flat list |
| 2 … 4 | by topic; the answer flat |
| 5 … 7 | by topic with its id, in both |

Source: KafkaApis.handleLeaderAndIsrRequest; PART-3, PART-4; KIP-516 for the ids.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from engine.api.exchange import Deferred, Exchange
from engine.api.inter_broker import refusal
from engine.errors import ApiError, EngineError
from engine.host.coroutine import drive
from engine.kafka_errors import UNKNOWN_SERVER_ERROR
from engine.model import TopicPartition
from engine.naming import uuid_text
from engine.replication.leadership import Leadership
from engine.replication.partition_types import PartitionState
from engine.wire.layout import NO_UUID
from engine.wire.structs import message_class

_BY_TOPIC = 2
_BY_TOPIC_ID = 5


class LeaderAndIsr:
    """Applies the roles and answers with an error code per partition.

    `load_topics` reads the settings of topics: logs are opened with those of their topic.
    """

    def __init__(
        self,
        leadership: Leadership,
        broker_epoch: Callable[[], int],
        load_topics: Callable[[Iterable[str]], Coroutine[Any, None, None]],
    ) -> None:
        self._leadership = leadership
        self._broker_epoch = broker_epoch
        self._load_topics = load_topics
        self._response = message_class("LeaderAndIsrResponse")

    def handle(self, request: Any, exchange: Exchange) -> Any:
        """Promise what becomes of each partition."""
        reply = Deferred()
        work = drive(self._applied(request, exchange))
        work.watch(lambda: reply.complete(work.result()))
        return reply

    async def _applied(self, request: Any, exchange: Exchange) -> Any:
        code = self._refusal(request)
        if code:
            return self._response(error_code=code)
        states, new = _states(request, exchange.api_version)
        unknown = {key.topic for key in states if not self._leadership.has(key)}
        try:
            await self._load_topics(sorted(unknown))
        except EngineError:
            # The store does not answer: with its return everything is read and told again.
            return self._response(error_code=UNKNOWN_SERVER_ERROR)
        # Another controller may have followed meanwhile, or this broker have begun a new life.
        code = self._refusal(request)
        if code:
            return self._response(error_code=code)
        ids = {
            topic.topic_name: uuid_text(topic.topic_id)
            for topic in request.topic_states
            if topic.topic_id != NO_UUID
        }
        results = self._leadership.apply(states, new, ids)
        return self._answer(request, results, exchange.api_version)

    def _refusal(self, request: Any) -> int:
        return refusal(request, self._leadership, self._broker_epoch())

    def _answer(
        self, request: Any, results: dict[TopicPartition, ApiError | None], version: int
    ) -> Any:
        entry = self._response.LeaderAndIsrPartitionError
        codes = {key: 0 if error is None else error.code for key, error in results.items()}
        if version < _BY_TOPIC_ID:
            flat = [
                entry(topic_name=key.topic, partition_index=key.partition, error_code=code)
                for key, code in codes.items()
            ]
            return self._response(partition_errors=flat)
        topics = [
            self._response.LeaderAndIsrTopicError(
                topic_id=topic.topic_id,
                partition_errors=[
                    entry(
                        partition_index=each.partition_index,
                        error_code=codes[TopicPartition(topic.topic_name, each.partition_index)],
                    )
                    for each in topic.partition_states
                ],
            )
            for topic in request.topic_states
        ]
        return self._response(topics=topics)


def _states(
    request: Any, version: int
) -> tuple[dict[TopicPartition, PartitionState], frozenset[TopicPartition]]:
    """Return the roles that a request gives, and which of the partitions are new."""
    states: dict[TopicPartition, PartitionState] = {}
    new: set[TopicPartition] = set()
    for topic, entry in _entries(request, version):
        key = TopicPartition(topic, entry.partition_index)
        states[key] = PartitionState(
            entry.leader,
            entry.leader_epoch,
            tuple(entry.isr),
            entry.partition_epoch,
            tuple(entry.replicas),
        )
        if entry.is_new:
            new.add(key)
    return states, frozenset(new)


def _entries(request: Any, version: int) -> list[tuple[str, Any]]:
    if version < _BY_TOPIC:
        return [(entry.topic_name, entry) for entry in request.ungrouped_partition_states]
    return [
        (topic.topic_name, entry)
        for topic in request.topic_states
        for entry in topic.partition_states
    ]
