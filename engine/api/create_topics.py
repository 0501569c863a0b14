"""CreateTopics (19): new topics, by counts or by an assignment.

| versions | difference |
|---|---|
| 0 | topics, timeout |
| 1 | + only validate; a message with each error |
| 2, 3 | + throttle time |
| 4 | −1 for the broker's default counts |
| 5 | flexible; counts and settings of the new topic in the response |
| 6 | THROTTLING_QUOTA_EXCEEDED above the quota; before, topics are created and throttled |
| 7 | + topic id in the response |

Only the controller creates topics; another broker answers NOT_CONTROLLER for each.
Source: KIP-4, KIP-464, KIP-525, KIP-516; KafkaApis.handleCreateTopicsRequest.
"""

from __future__ import annotations

from collections import Counter

from engine.admin.topic_admin import TopicAdmin
from engine.admin.topic_results import TopicResult
from engine.admin.topic_rules import CreatableTopic
from engine.api.admission import UNLOGGED_DENIAL, AclOperation, AclResource
from engine.api.exchange import EncodedRows, Exchange, Handled
from engine.api.mutation_throttle import apply_throttle, quota_of
from engine.api.promised import in_order, promised
from engine.api.response_errors import error_counts
from engine.controller.ports import ControllerView
from engine.host.turns import LoopTurns
from engine.kafka_errors import INVALID_REQUEST, NONE, NOT_CONTROLLER, TOPIC_AUTHORIZATION_FAILED
from engine.limits import ROWS_PER_SHARE
from engine.naming import CLUSTER_METADATA_TOPIC
from engine.wire import messages
from engine.wire.layout import NO_UUID
from engine.wire.row_bytes import encode_rows

_STRICT_SINCE = 6
_DUPLICATE = TopicResult(INVALID_REQUEST, "Found multiple entries for this topic.")
_DENIED = TopicResult(TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
_PROHIBITED = TopicResult(
    INVALID_REQUEST, f"Creation of internal topic {CLUSTER_METADATA_TOPIC} is prohibited."
)


class CreateTopics:
    """Answers CreateTopics by this broker's topic admin."""

    def __init__(self, controller: ControllerView, admin: TopicAdmin, turns: LoopTurns) -> None:
        self._controller = controller
        self._admin = admin
        self._turns = turns

    def handle(self, request: messages.CreateTopicsRequest, exchange: Exchange) -> Handled:
        """Create topics; promise each topic's result once its partitions have leaders.

        A broker that is not the controller refuses all topics at once.
        """
        names = [topic.name for topic in request.topics]
        if not self._controller.is_active:
            return self._response(names, dict.fromkeys(names, TopicResult(NOT_CONTROLLER)))
        session = exchange.session
        refused = dict.fromkeys(session.topics_not_creatable(names), _DENIED) | _refused_names(
            names
        )
        hidden = frozenset(
            name
            for name in names
            if not session.may(
                AclOperation.DESCRIBE_CONFIGS, AclResource.TOPIC, name, UNLOGGED_DENIAL
            )
        )

        quota = quota_of(exchange, strict_since=_STRICT_SINCE)

        async def create_and_respond() -> messages.CreateTopicsResponse | EncodedRows:
            """Create the topics that are not refused; encode a long response in turns."""
            results = await self._admin.create_topics(
                [_topic_to_create(topic) for topic in request.topics if topic.name not in refused],
                timeout_ms=request.timeout_ms,
                validate_only=request.validate_only,
                describe=exchange.api_version >= 5,
                quota=quota,
            )
            results |= refused
            if len(names) <= ROWS_PER_SHARE:
                return apply_throttle(self._response(names, results, hidden), quota, exchange)
            encoded = await self._encode_in_turns(names, results, hidden, exchange.api_version)
            return apply_throttle(encoded, quota, exchange)

        response = promised(create_and_respond())
        # A small response is encoded in one turn.
        return response if len(names) <= ROWS_PER_SHARE else in_order(response)

    async def _encode_in_turns(
        self,
        names: list[str],
        results: dict[str, TopicResult],
        hidden: frozenset[str],
        version: int,
    ) -> EncodedRows:
        """Encode the response to many topics in several turns of the event loop.

        Other requests are served between two turns. Rows of `hidden` topics have no settings.
        """
        share = self._turns.begin()
        parts = []
        errors: Counter[int] = Counter()
        for start in range(0, len(names), ROWS_PER_SHARE):
            if share.is_over():
                await share.next()
            some = self._response(names[start : start + ROWS_PER_SHARE], results, hidden)
            parts.append(encode_rows("CreateTopics", version, some, "topics"))
            errors.update(error_counts("CreateTopics", some))
        empty = messages.CreateTopicsResponse(topics=[])
        return EncodedRows(empty, "topics", len(names), parts, errors)

    def _response(
        self,
        names: list[str],
        results: dict[str, TopicResult],
        hidden: frozenset[str] = frozenset(),
    ) -> messages.CreateTopicsResponse:
        """Return the response with a row for each name.

        Rows of `hidden` topics have no settings.
        """
        return messages.CreateTopicsResponse(
            topics=[
                self._row_without_settings(name, results[name])
                if name in hidden
                else self._result_row(name, results[name])
                for name in names
            ]
        )

    def _row_without_settings(
        self, name: str, result: TopicResult
    ) -> messages.CreateTopicsResponse.CreatableTopicResult:
        """Return the row of a created topic for a client that may not describe configs."""
        return messages.CreateTopicsResponse.CreatableTopicResult(
            name=name,
            topic_id=result.topic_id or NO_UUID,
            error_code=result.code,
            error_message=result.message,
            topic_config_error_code=TOPIC_AUTHORIZATION_FAILED,
            configs=[],
        )

    def _result_row(
        self, name: str, result: TopicResult
    ) -> messages.CreateTopicsResponse.CreatableTopicResult:
        """Return the response's row for one topic, with its settings if the topic was created."""
        response = messages.CreateTopicsResponse
        configs = [
            response.CreatableTopicConfigs(
                name=config.name,
                value=config.value,
                read_only=config.is_read_only,
                config_source=config.source.value,
                is_sensitive=config.is_sensitive,
            )
            for config in result.configs
        ]
        return messages.CreateTopicsResponse.CreatableTopicResult(
            name=name,
            topic_id=result.topic_id or NO_UUID,
            error_code=result.code,
            error_message=result.message,
            num_partitions=result.partition_count,
            replication_factor=result.replication_factor,
            # A topic that was not created has no settings.
            configs=configs if result.code == NONE else [],
        )


def _refused_names(names: list[str]) -> dict[str, TopicResult]:
    """Return the error of each name that no client may create: duplicates, `__cluster_metadata`."""
    refused = {name: _DUPLICATE for name, count in Counter(names).items() if count > 1}
    if CLUSTER_METADATA_TOPIC in names:
        refused[CLUSTER_METADATA_TOPIC] = _PROHIBITED
    return refused


def _topic_to_create(topic: messages.CreateTopicsRequest.CreatableTopic) -> CreatableTopic:
    """Convert a request's row into the topic that the admin creates."""
    return CreatableTopic(
        topic.name,
        topic.num_partitions,
        topic.replication_factor,
        [(replicas.partition_index, tuple(replicas.broker_ids)) for replicas in topic.assignments],
        [(config.name, config.value) for config in topic.configs],
    )
