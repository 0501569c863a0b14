"""Rebalances of a group, the timers of its members, and their removal.

```
 join, leave, expiry ── may rebalance? ── PreparingRebalance ── DelayedJoin ──┐
                                                                              v
 SyncGroup of all <── DelayedSync <── JoinGroup answered <── the next generation
```

A rebalance:

1. A member that waits for an assignment is answered REBALANCE_IN_PROGRESS and rejoins.
2. The coordinator waits for members: for a group that was Empty the initial delay, extended by each
   join; else until all have joined, at most the longest rebalance timeout of a member.
3. A dynamic member that has not rejoined is removed; a static one stays until its session expires.
4. The next generation begins: each JoinGroup is answered, session timers start again, and each
   member must send SyncGroup within the rebalance timeout.

Source: GRP-1, GRP-3, GRP-4, GRP-5, GRP-10, GRP-11, GRP-12; GroupCoordinator of 3.9.1.
"""

from __future__ import annotations

import logging
from functools import partial

from engine.groups.delayed import GroupDelays
from engine.groups.group import Group, answer_sync
from engine.groups.group_store import GroupStore
from engine.groups.member import (
    UNKNOWN_MEMBER,
    GroupMember,
    JoinResult,
    Protocol,
    SyncResult,
    Timeouts,
)
from engine.groups.ports import GroupSettings
from engine.groups.states import GroupState
from engine.host.ports import Clock
from engine.host.promise import Promise
from engine.kafka_errors import NOT_COORDINATOR, REBALANCE_IN_PROGRESS, UNKNOWN_MEMBER_ID
from engine.limits import NEW_MEMBER_JOIN_TIMEOUT_MS

_log = logging.getLogger("kafka.coordinator.group.GroupCoordinator")


class Rebalances:
    """Runs the rebalances of all groups of one broker."""

    def __init__(
        self, clock: Clock, delays: GroupDelays, store: GroupStore, settings: GroupSettings
    ) -> None:
        self._clock = clock
        self._delays = delays
        self._store = store
        self._settings = settings

    def _now_ms(self) -> int:
        """Return the wall time in ms."""
        return self._clock.wall_ms()

    # Members that join

    def add_member(self, group: Group, member: GroupMember, join: Promise[JoinResult]) -> None:
        """Add a new member and start a rebalance.

        The client sends no heartbeats before the JoinGroup response: the member is removed after
        NEW_MEMBER_JOIN_TIMEOUT_MS without one.
        """
        member.is_new = True
        if group.is_in(GroupState.PREPARING_REBALANCE) and group.generation_id == 0:
            group.new_member_added = True
        group.add_member(member, join)
        self._restart_session_within(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self.maybe_prepare(group, f"adding member {member.member_id}")

    def update_member(
        self,
        group: Group,
        member: GroupMember,
        protocols: tuple[Protocol, ...],
        timeouts: Timeouts,
        join: Promise[JoinResult],
    ) -> None:
        """Update a member that joins again and park its JoinGroup.

        Starts a rebalance if the group's state allows it.
        """
        group.update_member(member, protocols, timeouts, join)
        self.maybe_prepare(group, f"member {member.member_id} joins again")

    def add_pending(self, group: Group, member_id: str, session_timeout_ms: int) -> None:
        """Register an id that a client got with MEMBER_ID_REQUIRED.

        It is removed if the client does not join with it within the session timeout.
        """
        group.pending_members.add(member_id)
        self._delays.wait(
            _member_key(group, member_id),
            session_timeout_ms,
            lambda: group.is_in(GroupState.DEAD) or member_id in group.members,
            partial(self._expire_pending, group, member_id),
        )

    def _expire_pending(self, group: Group, member_id: str, is_expired: bool) -> None:
        """Remove an assigned id with which no client joined within the session timeout."""
        if is_expired and not group.is_in(GroupState.DEAD) and member_id in group.pending_members:
            self.remove_pending(group, member_id)

    def remove_pending(self, group: Group, member_id: str) -> None:
        """Remove an assigned id with which no client has joined.

        If the join phase waited only for it, the phase ends.
        """
        group.remove_member(member_id)
        if group.is_in(GroupState.PREPARING_REBALANCE):
            self.check_join(group)

    # Rebalances

    def maybe_prepare(self, group: Group, reason: str) -> None:
        """Start a rebalance if the group's state allows it; `reason` is for the log."""
        if group.can_rebalance:
            self._prepare_rebalance(group, reason)

    def _prepare_rebalance(self, group: Group, reason: str) -> None:
        """Start a rebalance: answer parked syncs REBALANCE_IN_PROGRESS, then wait for joins.

        A group that was Empty waits for the initial delay, another one for all of its members.
        """
        # 1
        if group.is_in(GroupState.COMPLETING_REBALANCE):
            self.fail_syncs(group, REBALANCE_IN_PROGRESS)
        group.pending_sync_members.clear()
        self._delays.check(_sync_key(group))
        # 2
        was_empty = group.is_in(GroupState.EMPTY)
        group.transition_to(GroupState.PREPARING_REBALANCE, self._now_ms())
        _log.info("group %s prepares to rebalance (%s)", group.group_id, reason)
        if was_empty:
            delay_ms = self._settings.initial_rebalance_delay_ms
            left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            self._wait_initially(group, delay_ms, left_ms)
        else:
            self._wait_for_all(group)

    def _wait_initially(self, group: Group, delay_ms: int, left_ms: int) -> None:
        """Wait `delay_ms` for members of an Empty group.

        Each join extends it, in all by `left_ms`.
        """

        def is_over() -> bool:
            """Return True if the join phase has ended in another way."""
            return not group.is_in(GroupState.PREPARING_REBALANCE)

        def completed(is_expired: bool) -> None:
            """Extend the initial delay if members joined during it; else complete the join."""
            if not is_expired or not group.is_in(GroupState.PREPARING_REBALANCE):
                return
            if group.new_member_added and left_ms > 0:
                group.new_member_added = False
                next_ms = min(self._settings.initial_rebalance_delay_ms, left_ms)
                self._wait_initially(group, next_ms, left_ms - next_ms)
            else:
                self._complete_join(group)

        self._delays.wait(_join_key(group), delay_ms, is_over, completed)

    def _wait_for_all(self, group: Group) -> None:
        """Wait until all members have joined, or for the rebalance timeout.

        Then the join phase ends.
        """

        def is_over() -> bool:
            """Return True if all members have joined, or the join phase has ended."""
            return not group.is_in(GroupState.PREPARING_REBALANCE) or group.has_all_members_joined

        def completed(_is_expired: bool) -> None:
            """End the join phase, unless it has ended already."""
            if group.is_in(GroupState.PREPARING_REBALANCE):
                self._complete_join(group)

        self._delays.wait(_join_key(group), group.rebalance_timeout_ms, is_over, completed)

    def check_join(self, group: Group) -> None:
        """End the join phase if all members have joined.

        Called after each change of the members.
        """
        self._delays.check(_join_key(group))

    def _complete_join(self, group: Group) -> None:
        """End the join phase: remove absent dynamic members, begin a generation, answer the joins.

        If only absent static members are left, wait for another rebalance timeout instead.
        """
        # 3
        for member in [m for m in group.members.values() if m.join is None and not m.is_static]:
            group.remove_member(member.member_id)
            self._end_session(group, member)
        if not group.elect_joined_leader() and group.members:
            # Only static members are left, and none of them has joined.
            self._wait_for_all(group)
            return
        # 4
        group.begin_generation(self._now_ms())
        if not group.members:
            self._store.store_group(group, {})
            return
        _log.info("group %s is at generation %d", group.group_id, group.generation_id)
        for member in tuple(group.members.values()):
            group.answer_join(member, group.build_join_result(member))
            self.restart_session(group, member)
            member.is_new = False
            group.pending_sync_members.add(member.member_id)
        self._wait_for_syncs(group)

    # Syncs

    def _wait_for_syncs(self, group: Group) -> None:
        """Wait until each member has sent its SyncGroup.

        After the rebalance timeout, remove the members that have not, and start a rebalance.
        """
        generation_id = group.generation_id

        def is_over() -> bool:
            """Return True if all members have synced, or a newer rebalance has begun."""
            if group.generation_id != generation_id:
                return True
            awaits = (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
            return not group.is_in(*awaits) or not group.pending_sync_members

        def completed(is_expired: bool) -> None:
            """Remove the members that have not synced, if the timeout has expired."""
            if is_expired and not is_over():
                self._remove_unsynced(group)

        self._delays.wait(_sync_key(group), group.rebalance_timeout_ms, is_over, completed)

    def _remove_unsynced(self, group: Group) -> None:
        """Remove the members that did not send SyncGroup in time, and start a rebalance."""
        for member_id in tuple(group.pending_sync_members):
            member = group.members.get(member_id)
            group.remove_member(member_id)
            if member is not None:
                self._end_session(group, member)
        self.maybe_prepare(group, "members did not sync in time")

    def synced(self, group: Group, member_id: str) -> None:
        """Note that a member of this generation sent its SyncGroup, so that it is not removed."""
        group.pending_sync_members.discard(member_id)
        self._delays.check(_sync_key(group))

    def complete_syncs(self, group: Group, assignments: dict[str, bytes]) -> None:
        """Answer the parked syncs with their assignments; the group becomes Stable.

        `assignments` are by member id; a member that is missing gets an empty one.
        """
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
        self._answer_syncs(group, 0)
        group.transition_to(GroupState.STABLE, self._now_ms())

    def fail_syncs(self, group: Group, error_code: int) -> None:
        """Answer the parked syncs with an error, and clear the assignments of all members."""
        for member in group.members.values():
            member.assignment = b""
        self._answer_syncs(group, error_code)

    def _answer_syncs(self, group: Group, error_code: int) -> None:
        """Answer each parked sync with `error_code` and its member's present assignment.

        Restarts the session timers of these members.
        """
        for member in tuple(group.members.values()):
            result = SyncResult(
                error_code, group.protocol_type, group.protocol_name, member.assignment
            )
            if answer_sync(member, result):
                self.restart_session(group, member)

    # Sessions

    def restart_session(self, group: Group, member: GroupMember) -> None:
        """Restart a member's session timer, because it sent a request or got a response."""
        self._restart_session_within(group, member, member.timeouts.session_timeout_ms)

    def _restart_session_within(self, group: Group, member: GroupMember, timeout_ms: int) -> None:
        """Restart a member's session timer, which removes it after `timeout_ms`."""
        key = _member_key(group, member.member_id)
        member.is_heartbeat_satisfied = True
        self._delays.check(key)
        member.is_heartbeat_satisfied = False
        member_id = member.member_id

        def is_over() -> bool:
            """Return True if the member has sent a request, or is no longer in the group."""
            current = group.members.get(member_id)
            dead = group.is_in(GroupState.DEAD)
            return dead or current is not member or member.has_satisfied_heartbeat

        def completed(is_expired: bool) -> None:
            """Remove the member, if its timer has expired."""
            if is_expired and not is_over():
                _log.info("member %s of group %s has expired", member_id, group.group_id)
                self._remove_and_rebalance(group, member)

        self._delays.wait(key, timeout_ms, is_over, completed)

    def _end_session(self, group: Group, member: GroupMember) -> None:
        """Cancel the session timer of a member that was removed or whose group was unloaded."""
        member.is_heartbeat_satisfied = True
        self._delays.check(_member_key(group, member.member_id))

    def remove_member(self, group: Group, member: GroupMember) -> None:
        """Remove a member that leaves and cancel its session timer; start a rebalance."""
        self._remove_and_rebalance(group, member)
        self._end_session(group, member)

    def _remove_and_rebalance(self, group: Group, member: GroupMember) -> None:
        """Remove a member and start a rebalance; the caller cancels its session timer.

        A parked JoinGroup of the member gets UNKNOWN_MEMBER_ID. Source: removeMemberAndUpdateGroup.
        """
        group.answer_join(member, JoinResult(UNKNOWN_MEMBER, UNKNOWN_MEMBER_ID))
        group.remove_member(member.member_id)
        if group.is_in(GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self.maybe_prepare(group, f"member {member.member_id} was removed")
        elif group.is_in(GroupState.PREPARING_REBALANCE):
            self.check_join(group)

    # Groups that come and go with their partition

    def start_session_timers(self, group: Group) -> None:
        """Start the session timers of a group that was loaded.

        A group with more than group.max.size members is rebalanced.
        """
        if len(group.members) > self._settings.max_size:
            self.maybe_prepare(group, "the group is over its capacity")
        for member in tuple(group.members.values()):
            # A member that joined since the load has the longer timer of `add_member`.
            if not member.is_new:
                self.restart_session(group, member)

    def answer_unloaded(self, group: Group) -> None:
        """Answer all parked requests of a Dead group, which another broker coordinates now.

        Members get NOT_COORDINATOR, and find the new coordinator.
        """
        group.pending_sync_members.clear()
        for member in tuple(group.members.values()):
            group.answer_join(member, JoinResult(member.member_id, NOT_COORDINATOR))
            answer_sync(member, SyncResult(NOT_COORDINATOR))
            self._end_session(group, member)
        for member_id in group.pending_members:
            self._delays.check(_member_key(group, member_id))
        self.check_join(group)
        self._delays.check(_sync_key(group))


def _join_key(group: Group) -> tuple[str, str]:
    """Return the purgatory key of a group's join phase."""
    return ("join", group.group_id)


def _sync_key(group: Group) -> tuple[str, str]:
    """Return the purgatory key of a group's sync phase."""
    return ("sync", group.group_id)


def _member_key(group: Group, member_id: str) -> tuple[str, str, str]:
    """Return the purgatory key of a member's session timer."""
    return ("member", group.group_id, member_id)
