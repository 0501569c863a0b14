"""FindCoordinator: which broker coordinates a group or a transactional id.

| versions | asked | answered |
|---|---|---|
| 0 | one group | code and node |
| 1 to 3 | one key of a type | the same with a message |
| 4 on | keys of a type | a list of codes and nodes |

| type | |
|---|---|
| 0 group, 1 transaction | COORDINATOR_NOT_AVAILABLE: clients ask again |
| 2 share group | the same from version 6 on, INVALID_REQUEST before |
| others | INVALID_REQUEST |

Source: KafkaApis.handleFindCoordinatorRequest of 3.9.1.
Differs: nothing coordinates here yet, so no node is ever named and no topic made for it.
"""

from __future__ import annotations

from engine.api.admission import AclOperation, AclResource, NotAuthorized, Session
from engine.api.exchange import Exchange
from engine.kafka_errors import (
    COORDINATOR_NOT_AVAILABLE,
    GROUP_AUTHORIZATION_FAILED,
    INVALID_REQUEST,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
from engine.wire import messages

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_SHARE_VERSION = 6
_LIST_VERSION = 4
_NO_NODE = -1
_MESSAGES = {
    COORDINATOR_NOT_AVAILABLE: "no broker coordinates it yet",
    INVALID_REQUEST: "coordinators have no such type",
    GROUP_AUTHORIZATION_FAILED: NotAuthorized(AclResource.GROUP).detail,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED: NotAuthorized(AclResource.TRANSACTIONAL_ID).detail,
}
_RESOURCES = {_GROUP: AclResource.GROUP, _TRANSACTION: AclResource.TRANSACTIONAL_ID}


class FindCoordinator:
    """Answers that no coordinator is there."""

    def handle(
        self, request: messages.FindCoordinatorRequest, exchange: Exchange
    ) -> messages.FindCoordinatorResponse:
        """Return a response of the version's form for each key."""
        version, kind, session = exchange.api_version, request.key_type, exchange.session
        if version < _LIST_VERSION:
            code = _code_of(kind, request.key, version, session)
            return messages.FindCoordinatorResponse(
                error_code=code, error_message=_MESSAGES[code], node_id=_NO_NODE, port=_NO_NODE
            )
        row = messages.FindCoordinatorResponse.Coordinator
        return messages.FindCoordinatorResponse(
            coordinators=[
                row(
                    key=key,
                    error_code=_code_of(kind, key, version, session),
                    node_id=_NO_NODE,
                    port=_NO_NODE,
                )
                for key in request.coordinator_keys
            ]
        )


def _code_of(key_type: int, key: str, version: int, session: Session) -> int:
    resource = _RESOURCES.get(key_type)
    if resource is not None and not session.may(AclOperation.DESCRIBE, resource, key):
        return NotAuthorized(resource).code
    if key_type in (_GROUP, _TRANSACTION):
        return COORDINATOR_NOT_AVAILABLE
    if key_type == _SHARE and version >= _SHARE_VERSION:
        return COORDINATOR_NOT_AVAILABLE
    return INVALID_REQUEST
