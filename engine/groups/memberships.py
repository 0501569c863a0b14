"""Serve JoinGroup, SyncGroup, Heartbeat and LeaveGroup.

| state | join of a known member | sync | heartbeat |
|---|---|---|---|
| Empty | 25 | 25 | 25 |
| PreparingRebalance | parked | 27 | 27 |
| CompletingRebalance | same protocols: the same response, else a rebalance | parked | 0 |
| Stable | the same for followers; a leader's join begins a rebalance | answered | 0 |
| Dead | 15 | 15 | 15 |

Numbers are error codes. The assignment in the leader's SyncGroup is written to the log, then all
parked SyncGroups are answered. Heartbeats are accepted in all states with members: a member that
gets REBALANCE_IN_PROGRESS (27) joins again.

Source: GRP-1, GRP-7, GRP-8, GRP-9, GRP-15, REPL-11; GroupCoordinator of 3.9.1.
"""

from __future__ import annotations

import logging
from typing import NamedTuple
from uuid import UUID

from engine.groups.group import Group
from engine.groups.group_store import GroupStore
from engine.groups.member import UNKNOWN_MEMBER, GroupMember, JoinResult, SyncResult
from engine.groups.ports import GroupSettings
from engine.groups.rebalances import Rebalances
from engine.groups.registry import GroupRegistry
from engine.groups.requests import JoinRequest, LeavingMember, MemberRequest, SyncRequest
from engine.groups.states import GroupState
from engine.groups.static_members import StaticMembers
from engine.host.ports import Clock, Entropy
from engine.host.promise import Promise
from engine.kafka_errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    GROUP_MAX_SIZE_REACHED,
    ILLEGAL_GENERATION,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_SESSION_TIMEOUT,
    MEMBER_ID_REQUIRED,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
    UNKNOWN_SERVER_ERROR,
)

_log = logging.getLogger("kafka.coordinator.group.GroupCoordinator")


class Sources(NamedTuple):
    """The sources of time and randomness."""

    clock: Clock
    entropy: Entropy


class Memberships:
    """Serves JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""

    def __init__(
        self,
        registry: GroupRegistry,
        rebalances: Rebalances,
        store: GroupStore,
        settings: GroupSettings,
        sources: Sources,
    ) -> None:
        self._registry = registry
        self._rebalances = rebalances
        self._store = store
        self._settings = settings
        self._clock, self._entropy = sources
        self._static = StaticMembers(rebalances, store)

    # Join

    def join(self, request: JoinRequest) -> Promise[JoinResult]:
        """Serve a JoinGroup; promise the response.

        An error is promised at once; otherwise the promise is kept when the join phase ends and the
        next generation begins.
        """
        code = self._check_join(request)
        if code:
            return _refused_join(request.member_id, code)
        group = self._registry.groups.get(request.group_id)
        is_new = request.member_id == UNKNOWN_MEMBER
        if group is None and not is_new:
            return _refused_join(request.member_id, UNKNOWN_MEMBER_ID)
        if group is None:
            group = self._registry.add(Group(request.group_id, self._clock.wall_ms()))
        if not self._has_room(group, request.member_id):
            group.remove_member(request.member_id)
            response = _refused_join(UNKNOWN_MEMBER, GROUP_MAX_SIZE_REACHED)
        elif is_new:
            response = self._join_new(group, request)
        else:
            response = self._join_known(group, request)
        if group.is_in(GroupState.PREPARING_REBALANCE):
            self._rebalances.check_join(group)
        return response

    def _check_join(self, request: JoinRequest) -> int:
        """Return 0 if this coordinator serves the group and the session timeout is valid.

        Otherwise the error code of the response.
        """
        code = self._registry.check_served(request.group_id)
        if code:
            return code
        settings, timeout_ms = self._settings, request.timeouts.session_timeout_ms
        if not settings.min_session_timeout_ms <= timeout_ms <= settings.max_session_timeout_ms:
            return INVALID_SESSION_TIMEOUT
        return 0

    def _has_room(self, group: Group, member_id: str) -> bool:
        """Return True if group.max.size allows the member to join."""
        if group.is_in(GroupState.EMPTY, GroupState.DEAD):
            return True
        member = group.members.get(member_id)
        if group.is_in(GroupState.PREPARING_REBALANCE):
            is_waiting = member is not None and member.join is not None
            return is_waiting or group.awaiting_join_count < self._settings.max_size
        return member is not None or len(group.members) < self._settings.max_size

    def _join_new(self, group: Group, request: JoinRequest) -> Promise[JoinResult]:
        """Serve a join without a member id.

        A new static member is added, a known one replaced. A dynamic member is added, or gets an id
        with MEMBER_ID_REQUIRED if its version supports that: the client joins again with the id.
        """
        if group.is_in(GroupState.DEAD):
            return _refused_join(UNKNOWN_MEMBER, COORDINATOR_NOT_AVAILABLE)
        if not group.supports_protocols(request.protocol_type, request.protocols):
            return _refused_join(UNKNOWN_MEMBER, INCONSISTENT_GROUP_PROTOCOL)
        instance_id = request.group_instance_id
        member_id = self._new_member_id(request)
        if instance_id is not None:
            old_id = group.static_members.get(instance_id)
            if old_id is not None:
                return self._static.replace_member(group, old_id, member_id, request)
            return self._add_member(group, member_id, request)
        if request.requires_known_member_id:
            self._rebalances.add_pending(group, member_id, request.timeouts.session_timeout_ms)
            return _refused_join(member_id, MEMBER_ID_REQUIRED)
        return self._add_member(group, member_id, request)

    def _new_member_id(self, request: JoinRequest) -> str:
        """Return a new member id: the instance id or the client id, a dash and a random UUID."""
        name = request.group_instance_id
        number = UUID(bytes=self._entropy.random_bytes(16), version=4)
        return f"{request.client.client_id if name is None else name}-{number}"

    def _add_member(
        self, group: Group, member_id: str, request: JoinRequest
    ) -> Promise[JoinResult]:
        """Add a new member and start a rebalance; promise the response to its JoinGroup."""
        join: Promise[JoinResult] = Promise()
        member = GroupMember(
            member_id,
            request.group_instance_id,
            request.client,
            request.timeouts,
            request.protocol_type,
            request.protocols,
        )
        self._rebalances.add_member(group, member, join)
        return join

    def _join_known(self, group: Group, request: JoinRequest) -> Promise[JoinResult]:
        """Serve a join with a member id.

        An id that was assigned just now is added as a member. A member that repeats a lost request
        gets its response again; otherwise it is updated and a rebalance starts.
        """
        member_id = request.member_id
        if group.is_in(GroupState.DEAD):
            return _refused_join(member_id, COORDINATOR_NOT_AVAILABLE)
        if not group.supports_protocols(request.protocol_type, request.protocols):
            return _refused_join(member_id, INCONSISTENT_GROUP_PROTOCOL)
        if member_id in group.pending_members:
            if request.group_instance_id is not None:
                # Pending ids belong to dynamic members only: Kafka fails with the same error.
                return _refused_join(UNKNOWN_MEMBER, UNKNOWN_SERVER_ERROR)
            return self._add_member(group, member_id, request)
        code = group.check_member(member_id, request.group_instance_id)
        if code:
            return _refused_join(member_id, code)
        member = group.members[member_id]
        if self._may_answer_again(group, member, request):
            # Its response was lost: it gets the same again, without a rebalance.
            return Promise.of(group.build_join_result(member))
        join: Promise[JoinResult] = Promise()
        self._rebalances.update_member(group, member, request.protocols, request.timeouts, join)
        return join

    def _may_answer_again(self, group: Group, member: GroupMember, request: JoinRequest) -> bool:
        """Return True if a join of a known member repeats a request whose response was lost."""
        if group.is_in(GroupState.PREPARING_REBALANCE) or not member.matches(request.protocols):
            return False
        # The leader of a stable group joins again to start a rebalance.
        is_leader = member.member_id == group.leader_id
        return group.is_in(GroupState.COMPLETING_REBALANCE) or not is_leader

    # Sync

    def sync(self, request: SyncRequest) -> Promise[SyncResult]:
        """Serve a SyncGroup; promise the member's assignment, or an error code.

        In CompletingRebalance the response waits for the assignments of the leader.
        """
        code = self._registry.check_served(request.group_id)
        if code == COORDINATOR_LOAD_IN_PROGRESS:
            # The loaded group will not have this rebalance: its members join again.
            code = REBALANCE_IN_PROGRESS
        group = self._registry.groups.get(request.group_id)
        if not code:
            code = UNKNOWN_MEMBER_ID if group is None else _check_sync(group, request)
        if code or group is None:
            return Promise.of(SyncResult(code))
        member = group.members[request.member_id]
        if group.is_in(GroupState.STABLE):
            self._rebalances.synced(group, request.member_id)
            self._rebalances.restart_session(group, member)
            return Promise.of(
                SyncResult(0, group.protocol_type, group.protocol_name, member.assignment)
            )
        return self._park_sync(group, member, request.assignments)

    def _park_sync(
        self, group: Group, member: GroupMember, assignments: dict[str, bytes]
    ) -> Promise[SyncResult]:
        """Park a member's SyncGroup and return its promise.

        The leader's SyncGroup has the assignments of all members: they are written to the log.
        """
        sync: Promise[SyncResult] = Promise()
        member.sync = sync
        self._rebalances.restart_session(group, member)
        self._rebalances.synced(group, member.member_id)
        if member.member_id == group.leader_id:
            self._store_assignments(group, assignments)
        return sync

    def _store_assignments(self, group: Group, assignments: dict[str, bytes]) -> None:
        """Write the leader's assignments to the log, then answer the parked syncs.

        If the write fails, the syncs get the error and a rebalance starts.
        """
        generation_id = group.generation_id
        stored = self._store.store_group(group, assignments)

        def written() -> None:
            """Answer the parked syncs after the write, unless another rebalance has begun."""
            # Another rebalance may have begun meanwhile.
            if group.generation_id != generation_id or not group.is_in(
                GroupState.COMPLETING_REBALANCE
            ):
                return
            code = stored.result()
            if code:
                self._rebalances.fail_syncs(group, code)
                self._rebalances.maybe_prepare(group, f"the assignment was not written: {code}")
            else:
                self._rebalances.complete_syncs(group, assignments)

        stored.watch(written)

    # Heartbeat

    def heartbeat(self, request: MemberRequest) -> int:
        """Serve a Heartbeat: restart the member's session timer and return the error code.

        REBALANCE_IN_PROGRESS requests the member to join again. While the group is being loaded,
        the
        code is 0.
        """
        code = self._registry.check_served(request.group_id)
        if code == COORDINATOR_LOAD_IN_PROGRESS:
            return 0
        if code:
            return code
        group = self._registry.groups.get(request.group_id)
        if group is None:
            return UNKNOWN_MEMBER_ID
        code = _check_member(group, request)
        if code:
            return code
        self._rebalances.restart_session(group, group.members[request.member_id])
        return REBALANCE_IN_PROGRESS if group.is_in(GroupState.PREPARING_REBALANCE) else 0

    # Leave

    def remove_members(self, group_id: str, members: list[LeavingMember]) -> tuple[int, list[int]]:
        """Remove members and start a rebalance (LeaveGroup).

        Returns the group's error code, and one code for each member if that is 0.
        """
        code = self._registry.check_served(group_id)
        if code:
            return code, []
        group = self._registry.groups.get(group_id)
        if group is None:
            return 0, [UNKNOWN_MEMBER_ID] * len(members)
        if group.is_in(GroupState.DEAD):
            return COORDINATOR_NOT_AVAILABLE, []
        return 0, [self._remove_member(group, member) for member in members]

    def _remove_member(self, group: Group, leaving: LeavingMember) -> int:
        """Remove a dynamic, static or pending member and return 0, or return the error code.

        Without a member id it is the static member with the instance id of the request.
        """
        member_id = leaving.member_id
        if member_id == UNKNOWN_MEMBER:
            # An administrator removes a static member, without its member id.
            instance_id = leaving.group_instance_id
            member_id = group.static_members.get(instance_id, "") if instance_id else ""
            if not member_id:
                return UNKNOWN_MEMBER_ID
        elif member_id in group.pending_members:
            self._rebalances.remove_pending(group, member_id)
            return 0
        else:
            code = group.check_member(member_id, leaving.group_instance_id)
            if code:
                return code
        _log.info("member %s leaves group %s", member_id, group.group_id)
        self._rebalances.remove_member(group, group.members[member_id])
        return 0


def _refused_join(member_id: str, code: int) -> Promise[JoinResult]:
    """Return a kept promise of a refused join: `member_id` in the response and the error `code`."""
    return Promise.of(JoinResult(member_id, code))


def _check_member(group: Group, request: MemberRequest) -> int:
    """Return 0 if a request comes from a member of the present generation, else the error code."""
    if group.is_in(GroupState.DEAD):
        return COORDINATOR_NOT_AVAILABLE
    if group.is_in(GroupState.EMPTY):
        return UNKNOWN_MEMBER_ID
    code = group.check_member(request.member_id, request.group_instance_id)
    if code:
        return code
    return 0 if request.generation_id == group.generation_id else ILLEGAL_GENERATION


def _check_sync(group: Group, request: SyncRequest) -> int:
    """Return 0 if a SyncGroup comes from a member of the present generation and protocol.

    Otherwise the error code; REBALANCE_IN_PROGRESS if the next join phase has begun.
    """
    member = MemberRequest(
        request.group_id, request.generation_id, request.member_id, request.group_instance_id
    )
    code = _check_member(group, member)
    if code:
        return code
    if request.protocol_type is not None and request.protocol_type != group.protocol_type:
        return INCONSISTENT_GROUP_PROTOCOL
    if request.protocol_name is not None and request.protocol_name != group.protocol_name:
        return INCONSISTENT_GROUP_PROTOCOL
    return REBALANCE_IN_PROGRESS if group.is_in(GroupState.PREPARING_REBALANCE) else 0
