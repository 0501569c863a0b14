"""CreatePartitions (37): more partitions for topics.

| versions | difference |
|---|---|
| 0, 1 | topics with new count and replicas of the new ones, or null; timeout; only validate |
| 2 | flexible |
| 3 | THROTTLING_QUOTA_EXCEEDED above the quota; before, partitions are created and throttled |

Only the controller adds partitions; another broker answers NOT_CONTROLLER for each.
Source: KIP-195; KafkaApis.handleCreatePartitionsRequest.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from engine.admin.topic_admin import TopicAdmin
from engine.admin.topic_growth import MorePartitions
from engine.admin.topic_results import TopicResult
from engine.api.admission import AclOperation, AclResource
from engine.api.exchange import Exchange
from engine.api.mutation_throttle import apply_throttle, quota_of
from engine.api.promised import promised
from engine.controller.ports import ControllerView
from engine.hash_order import in_immutable_set_order
from engine.host.promise import Promise
from engine.kafka_errors import (
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    NOT_CONTROLLER,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_SERVER_ERROR,
)
from engine.wire import messages

_STRICT_SINCE = 3
_DUPLICATE = TopicResult(INVALID_REQUEST, "Duplicate topic in request.")
_DENIED = TopicResult(TOPIC_AUTHORIZATION_FAILED, "The topic authorization is failed.")
_GOING = TopicResult(INVALID_TOPIC_EXCEPTION, "The topic is queued for deletion.")


#: Topic names that cannot be a znode's name.
_WITHOUT_PATH: Final = frozenset(("", ".", ".."))


class CreatePartitions:
    """Answers CreatePartitions by this broker's topic admin."""

    def __init__(self, controller: ControllerView, admin: TopicAdmin) -> None:
        self._controller = controller
        self._admin = admin

    def handle(
        self, request: messages.CreatePartitionsRequest, exchange: Exchange
    ) -> messages.CreatePartitionsResponse | Promise[messages.CreatePartitionsResponse]:
        """Add partitions to topics; promise each topic's result once its partitions have leaders.

        A broker that is not the controller refuses all topics at once.
        """
        names = list(dict.fromkeys(topic.name for topic in request.topics))
        if not self._controller.is_active:
            return self._response(names, dict.fromkeys(names, TopicResult(NOT_CONTROLLER)))
        counts = Counter(topic.name for topic in request.topics)
        refused = {name: _DUPLICATE for name, count in counts.items() if count > 1}
        for name in names:
            if name in refused:
                continue
            if not exchange.session.may(AclOperation.ALTER, AclResource.TOPIC, name):
                refused[name] = _DENIED
            elif self._controller.is_queued_for_deletion(name):
                refused[name] = _GOING

        if any(name in _WITHOUT_PATH and name not in refused for name in names):
            # Kafka fails to create a znode path for such a name, and then fails the whole request.
            return _unknown_error_response(request)
        quota = quota_of(exchange, strict_since=_STRICT_SINCE)

        async def add_partitions() -> messages.CreatePartitionsResponse:
            """Add partitions to topics that are not refused; return a result for every topic."""
            results = await self._admin.create_partitions(
                [_more_partitions(topic) for topic in request.topics if topic.name not in refused],
                timeout_ms=request.timeout_ms,
                validate_only=request.validate_only,
                quota=quota,
            )
            # Topics that were refused before the admin was called come last.
            answered = [name for name in names if name not in refused]
            return apply_throttle(
                self._response([*answered, *refused], {**results, **refused}), quota, exchange
            )

        return promised(add_partitions())

    def _response(
        self, names: list[str], results: dict[str, TopicResult]
    ) -> messages.CreatePartitionsResponse:
        """Return one result for each name, in Kafka's order, a Scala map's."""
        return messages.CreatePartitionsResponse(
            results=[
                messages.CreatePartitionsResponse.CreatePartitionsTopicResult(
                    name=name,
                    error_code=results[name].code,
                    error_message=results[name].message,
                )
                for name in in_immutable_set_order(dict.fromkeys(names))
            ]
        )


def _unknown_error_response(
    request: messages.CreatePartitionsRequest,
) -> messages.CreatePartitionsResponse:
    """Return UNKNOWN_SERVER_ERROR for each topic, as Kafka does for a request that crashes it."""
    return messages.CreatePartitionsResponse(
        results=[
            messages.CreatePartitionsResponse.CreatePartitionsTopicResult(
                name=topic.name, error_code=UNKNOWN_SERVER_ERROR
            )
            for topic in request.topics
        ]
    )


def _more_partitions(
    topic: messages.CreatePartitionsRequest.CreatePartitionsTopic,
) -> MorePartitions:
    """Return the requested total partition count and assignments (None: the broker assigns)."""
    assignments = None
    if topic.assignments is not None:
        assignments = [tuple(replicas.broker_ids) for replicas in topic.assignments]
    return MorePartitions(topic.name, topic.count, assignments)
