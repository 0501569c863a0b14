"""SyncGroup (14): the group leader sends the assignments, and every member gets its own.

| versions | difference |
|---|---|
| 0 … 2 | |
| 3 | static members |
| 5 | protocol type and name are required, and must be those of the group |

The connection's next request waits for the response.

Source: KafkaApis.handleSyncGroupRequest; GRP-7, GRP-8, GRP-12; KIP-559.
"""

from __future__ import annotations

from engine.api.admission import AclOperation, AclResource
from engine.api.exchange import Exchange
from engine.api.promised import in_order
from engine.groups.member import SyncResult
from engine.groups.memberships import Memberships
from engine.groups.requests import SyncRequest
from engine.host.promise import Promise
from engine.kafka_errors import GROUP_AUTHORIZATION_FAILED, INCONSISTENT_GROUP_PROTOCOL
from engine.wire import messages

_WITH_PROTOCOL = 5


class SyncGroup:
    """Answers SyncGroup."""

    def __init__(self, memberships: Memberships) -> None:
        self._memberships = memberships

    def handle(
        self, request: messages.SyncGroupRequest, exchange: Exchange
    ) -> messages.SyncGroupResponse | Promise[messages.SyncGroupResponse]:
        """Pass the leader's assignments to the coordinator; promise this member's assignment.

        The promise is kept when the group's leader has sent its SyncGroup request.
        """
        version = exchange.api_version
        has_protocol = request.protocol_type is not None and request.protocol_name is not None
        if version >= _WITH_PROTOCOL and not has_protocol:
            return _response(SyncResult(INCONSISTENT_GROUP_PROTOCOL), version)
        if not exchange.session.may(AclOperation.READ, AclResource.GROUP, request.group_id):
            return _response(SyncResult(GROUP_AUTHORIZATION_FAILED), version)
        synced = self._memberships.sync(
            SyncRequest(
                request.group_id,
                request.generation_id,
                request.member_id,
                request.group_instance_id,
                request.protocol_type,
                request.protocol_name,
                {row.member_id: bytes(row.assignment) for row in request.assignments},
            )
        )
        return in_order(synced.then(lambda result: _response(result, version)))


def _response(result: SyncResult, version: int) -> messages.SyncGroupResponse:
    """Return the response with the fields that the request's version has."""
    response = messages.SyncGroupResponse(
        error_code=result.error_code, assignment=result.assignment
    )
    if version >= _WITH_PROTOCOL:
        response.protocol_type = result.protocol_type
        response.protocol_name = result.protocol_name
    return response
