"""JoinGroup (11): a client becomes a member of a group, or stays one.

| versions | difference |
|---|---|
| 0 | no rebalance timeout: it is the session timeout |
| 1 … 3 | |
| 4 | a new dynamic member gets an id first: MEMBER_ID_REQUIRED |
| 5 | static members |
| 7 | the response has the protocol type, and null for an absent name |
| 9 | a static leader that returns may leave the assignment as it is |

The response comes once the generation begins; the connection's next request waits for it.

Source: KafkaApis.handleJoinGroupRequest; GRP-1 ... GRP-6, GRP-9, GRP-15.
"""

from __future__ import annotations

from engine.api.admission import AclOperation, AclResource
from engine.api.exchange import Exchange
from engine.api.group_clients import client_of
from engine.api.promised import in_order
from engine.groups.member import JoinResult, Protocol, Timeouts
from engine.groups.memberships import Memberships
from engine.groups.requests import JoinRequest
from engine.host.promise import Promise
from engine.kafka_errors import GROUP_AUTHORIZATION_FAILED
from engine.wire import messages

_WITH_REBALANCE_TIMEOUT, _WITH_REQUIRED_ID = 1, 4
_WITH_NULLS, _WITH_SKIPPED_ASSIGNMENT = 7, 9


class JoinGroup:
    """Answers JoinGroup."""

    def __init__(self, memberships: Memberships) -> None:
        self._memberships = memberships

    def handle(
        self, request: messages.JoinGroupRequest, exchange: Exchange
    ) -> messages.JoinGroupResponse | Promise[messages.JoinGroupResponse]:
        """Add the client to the group as a member, or let it rejoin.

        Promises the response, which comes once the generation begins.
        """
        version = exchange.api_version
        if not exchange.session.may(AclOperation.READ, AclResource.GROUP, request.group_id):
            refused = JoinResult("", GROUP_AUTHORIZATION_FAILED)
            return _response(refused, version)
        joined = self._memberships.join(_join_request(request, exchange))
        return in_order(joined.then(lambda result: _response(result, version)))


def _join_request(request: messages.JoinGroupRequest, exchange: Exchange) -> JoinRequest:
    """Convert the request for the group coordinator; fields that old versions lack get defaults."""
    version, session_ms = exchange.api_version, request.session_timeout_ms
    has_rebalance_timeout = version >= _WITH_REBALANCE_TIMEOUT
    return JoinRequest(
        request.group_id,
        request.member_id,
        request.group_instance_id,
        client_of(exchange),
        Timeouts(request.rebalance_timeout_ms if has_rebalance_timeout else session_ms, session_ms),
        request.protocol_type,
        tuple(Protocol(row.name, bytes(row.metadata)) for row in request.protocols),
        version >= _WITH_REQUIRED_ID and request.group_instance_id is None,
        version >= _WITH_SKIPPED_ASSIGNMENT,
    )


def _response(result: JoinResult, version: int) -> messages.JoinGroupResponse:
    """Return the response of a version to a join; null names are empty text in older versions."""
    name = result.protocol_name
    row = messages.JoinGroupResponse.JoinGroupResponseMember
    response = messages.JoinGroupResponse(
        error_code=result.error_code,
        generation_id=result.generation_id,
        protocol_name=(name or None) if version >= _WITH_NULLS else name or "",
        leader=result.leader_id,
        member_id=result.member_id,
        members=[
            row(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata,
            )
            for member in result.members
        ],
    )
    if version >= _WITH_NULLS:
        response.protocol_type = result.protocol_type
    if version >= _WITH_SKIPPED_ASSIGNMENT:
        response.skip_assignment = result.skip_assignment
    return response
