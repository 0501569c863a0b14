"""Heartbeat (12): keeps a member alive; the response shows whether its group rebalances.

| versions | difference |
|---|---|
| 0 … 2 | |
| 3 | static members |

Source: KafkaApis.handleHeartbeatRequest; GRP-4, GRP-10.
"""

from __future__ import annotations

from engine.api.admission import AclOperation, AclResource
from engine.api.exchange import Exchange
from engine.groups.memberships import Memberships
from engine.groups.requests import MemberRequest
from engine.kafka_errors import GROUP_AUTHORIZATION_FAILED
from engine.wire import messages


class Heartbeat:
    """Answers Heartbeat."""

    def __init__(self, memberships: Memberships) -> None:
        self._memberships = memberships

    def handle(
        self, request: messages.HeartbeatRequest, exchange: Exchange
    ) -> messages.HeartbeatResponse:
        """Record a member's heartbeat; return an error code.

        REBALANCE_IN_PROGRESS (27) makes the member rejoin.
        """
        if not exchange.session.may(AclOperation.READ, AclResource.GROUP, request.group_id):
            return messages.HeartbeatResponse(error_code=GROUP_AUTHORIZATION_FAILED)
        code = self._memberships.heartbeat(
            MemberRequest(
                request.group_id,
                request.generation_id,
                request.member_id,
                request.group_instance_id,
            )
        )
        return messages.HeartbeatResponse(error_code=code)
