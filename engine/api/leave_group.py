"""LeaveGroup (13): members leave, or an administrator removes them.

| versions | request | response |
|---|---|---|
| 0 … 2 | one member | its error |
| 3 on | members by id or instance id | an error of the group, and one of each member |

Source: KafkaApis.handleLeaveGroupRequest, LeaveGroupResponse; GRP-1; KIP-345.
"""

from __future__ import annotations

from engine.api.admission import AclOperation, AclResource
from engine.api.exchange import Exchange
from engine.groups.memberships import Memberships
from engine.groups.requests import LeavingMember
from engine.kafka_errors import GROUP_AUTHORIZATION_FAILED
from engine.wire import messages

_WITH_MEMBERS = 3


class LeaveGroup:
    """Answers LeaveGroup."""

    def __init__(self, memberships: Memberships) -> None:
        self._memberships = memberships

    def handle(
        self, request: messages.LeaveGroupRequest, exchange: Exchange
    ) -> messages.LeaveGroupResponse:
        """Remove members from a group; return the error code of each member."""
        if not exchange.session.may(AclOperation.READ, AclResource.GROUP, request.group_id):
            return messages.LeaveGroupResponse(error_code=GROUP_AUTHORIZATION_FAILED)
        has_members = exchange.api_version >= _WITH_MEMBERS
        leaving = (
            [LeavingMember(row.member_id, row.group_instance_id) for row in request.members]
            if has_members
            else [LeavingMember(request.member_id, None)]
        )
        code, codes = self._memberships.remove_members(request.group_id, leaving)
        if not has_members:
            return messages.LeaveGroupResponse(error_code=code or codes[0])
        row = messages.LeaveGroupResponse.MemberResponse
        return messages.LeaveGroupResponse(
            error_code=code,
            members=[
                row(
                    member_id=member.member_id,
                    group_instance_id=member.group_instance_id,
                    error_code=member_code,
                )
                for member, member_code in zip(leaving, codes, strict=False)
            ],
        )
