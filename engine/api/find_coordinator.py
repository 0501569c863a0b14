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

from typing import Any

from engine.api.exchange import Exchange
from engine.kafka_errors import COORDINATOR_NOT_AVAILABLE, INVALID_REQUEST
from engine.wire.structs import message_class

_GROUP, _TRANSACTION, _SHARE = 0, 1, 2
_SHARE_VERSION = 6
_LIST_VERSION = 4
_NO_NODE = -1
_MESSAGES = {
    COORDINATOR_NOT_AVAILABLE: "no broker coordinates it yet",
    INVALID_REQUEST: "coordinators have no such type",
}


class FindCoordinator:
    """Answers that no coordinator is there."""

    def __init__(self) -> None:
        self._response = message_class("FindCoordinatorResponse")

    def handle(self, request: Any, exchange: Exchange) -> Any:
        """Return an answer of the version's form for each key."""
        code = _code_of(request.key_type, exchange.api_version)
        if exchange.api_version < _LIST_VERSION:
            return self._response(
                error_code=code, error_message=_MESSAGES[code], node_id=_NO_NODE, port=_NO_NODE
            )
        entry = self._response.Coordinator
        return self._response(
            coordinators=[
                entry(
                    key=key,
                    error_code=code,
                    node_id=_NO_NODE,
                    port=_NO_NODE,
                )
                for key in request.coordinator_keys
            ]
        )


def _code_of(key_type: int, version: int) -> int:
    if key_type in (_GROUP, _TRANSACTION):
        return COORDINATOR_NOT_AVAILABLE
    if key_type == _SHARE and version >= _SHARE_VERSION:
        return COORDINATOR_NOT_AVAILABLE
    return INVALID_REQUEST
