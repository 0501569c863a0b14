"""DeleteTopics (20): delete topics, by name or by id.

| versions | difference |
|---|---|
| 0 | names, timeout |
| 1, 2 | + throttle time |
| 3 | TOPIC_DELETION_DISABLED in place of INVALID_REQUEST |
| 4 | flexible |
| 5 | + messages; THROTTLING_QUOTA_EXCEEDED above the quota (before: deleted, and throttled) |
| 6 | names or ids; ids in the response |

Only the controller deletes topics; another broker answers NOT_CONTROLLER for each.
Source: KIP-4, KIP-322, KIP-516; KafkaApis.handleDeleteTopicsRequest.
"""

from __future__ import annotations

from engine.admin.topic_admin import TopicAdmin
from engine.api.admission import AclOperation, AclResource, Session
from engine.api.exchange import Exchange
from engine.api.mutation_throttle import apply_throttle, quota_of
from engine.api.promised import promised
from engine.controller.ports import ControllerView
from engine.host.promise import Promise
from engine.kafka_errors import (
    INVALID_REQUEST,
    NONE,
    NOT_CONTROLLER,
    TOPIC_AUTHORIZATION_FAILED,
    TOPIC_DELETION_DISABLED,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.replication.metadata_cache import MetadataCache
from engine.wire import messages
from engine.wire.layout import NO_UUID

_IDS_SINCE = 6
_DISABLED_SINCE = 3
_STRICT_SINCE = 5


class DeleteTopics:
    """Answers DeleteTopics by this broker's topic admin."""

    def __init__(
        self,
        controller: ControllerView,
        admin: TopicAdmin,
        metadata_cache: MetadataCache,
        *,
        is_enabled: bool,
    ) -> None:
        """Create the handler; `is_enabled` is `delete.topic.enable`."""
        self._controller = controller
        self._admin = admin
        self._metadata_cache = metadata_cache
        self._is_enabled = is_enabled

    def handle(
        self, request: messages.DeleteTopicsRequest, exchange: Exchange
    ) -> messages.DeleteTopicsResponse | Promise[messages.DeleteTopicsResponse]:
        """Delete topics; promise each topic's result once the metadata no longer has it.

        A refused request, or one without a topic to delete, gets its response at once.
        """
        requested = _requested_topics(request, exchange.api_version)
        code = self._refusal(requested, exchange.api_version)
        if code != NONE:
            return messages.DeleteTopicsResponse(
                responses=[self._result(name, topic_id, code) for name, topic_id in requested]
            )
        rows = [self._check_topic(name, topic_id, exchange.session) for name, topic_id in requested]
        going = list(
            dict.fromkeys(
                row.name for row in rows if row.error_code == NONE and row.name is not None
            )
        )
        if not going:
            return messages.DeleteTopicsResponse(responses=rows)

        quota = quota_of(exchange, strict_since=_STRICT_SINCE)

        async def delete_and_respond() -> messages.DeleteTopicsResponse:
            """Delete the accepted topics and write each result's code into its row."""
            results = await self._admin.delete_topics(
                going, timeout_ms=request.timeout_ms, quota=quota
            )
            for row in rows:
                if row.error_code == NONE and row.name is not None:
                    row.error_code = results[row.name].code
            return apply_throttle(messages.DeleteTopicsResponse(responses=rows), quota, exchange)

        return promised(delete_and_respond())

    def _refusal(self, requested: list[tuple[str | None, bytes]], version: int) -> int:
        """Return the error code that refuses the whole request, or NONE."""
        if not self._controller.is_active:
            return NOT_CONTROLLER
        if not self._is_enabled:
            return TOPIC_DELETION_DISABLED if version >= _DISABLED_SINCE else INVALID_REQUEST
        if any(name is not None and topic_id != NO_UUID for name, topic_id in requested):
            return INVALID_REQUEST
        return NONE

    def _check_topic(
        self, name: str | None, topic_id: bytes, session: Session
    ) -> messages.DeleteTopicsResponse.DeletableTopicResult:
        """Return the response row of a topic, requested by name or id.

        Its error code is NONE if the topic is to be deleted: it exists, and the client may delete
        it.
        """
        if topic_id != NO_UUID:
            name = self._controller.topic_name(topic_id)
            if name is None:
                return self._result(None, topic_id, UNKNOWN_TOPIC_ID)
        if name is None:
            # Kafka allows no client to delete a topic without a name.
            return self._result(None, topic_id, TOPIC_AUTHORIZATION_FAILED)
        # Also for a named topic, where the result is not used: Kafka logs the check.
        may_describe = session.may(AclOperation.DESCRIBE, AclResource.TOPIC, name)
        if topic_id != NO_UUID and not may_describe:
            # The id is not secret, the name is.
            return self._result(None, topic_id, TOPIC_AUTHORIZATION_FAILED)
        if not session.may(AclOperation.DELETE, AclResource.TOPIC, name):
            return self._result(name, topic_id, TOPIC_AUTHORIZATION_FAILED)
        if name not in self._metadata_cache.topics:
            return self._result(name, topic_id, UNKNOWN_TOPIC_OR_PARTITION)
        return self._result(name, topic_id, NONE)

    def _result(
        self, name: str | None, topic_id: bytes, code: int
    ) -> messages.DeleteTopicsResponse.DeletableTopicResult:
        """Return the response row of one topic; `name` is None if unknown or hidden."""
        return messages.DeleteTopicsResponse.DeletableTopicResult(
            name=name, topic_id=topic_id, error_code=code
        )


def _requested_topics(
    request: messages.DeleteTopicsRequest, version: int
) -> list[tuple[str | None, bytes]]:
    """Return (name, topic id) per topic: the name may be None, the id NO_UUID."""
    if version >= _IDS_SINCE:
        return [(topic.name, topic.topic_id) for topic in request.topics]
    return [(name, NO_UUID) for name in request.topic_names]
