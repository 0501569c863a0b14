"""One consumer group: its members, generation and protocol. It has no timers and no log.

```
 Empty ── first join ──> PreparingRebalance ── all joined, or timeout ────────> CompletingRebalance
   ^                        ^   │ no members                                       │ leader's sync
   └────────────────────────┼───┘                                                  v
                            └──────── join, leave, expiry ────────────────────── Stable
```

Source: GRP-2, GRP-6; GroupMetadata.scala of 3.9.1.
Differs: members are in the order in which they joined; Kafka's are in the order of a hash table.
"""

from __future__ import annotations

from collections import Counter

from engine.groups.group_offsets import GroupOffsets
from engine.groups.member import (
    UNKNOWN_MEMBER,
    GroupMember,
    JoinedMember,
    JoinResult,
    Protocol,
    SyncResult,
    Timeouts,
)
from engine.groups.states import VALID_PREVIOUS_STATES, GroupState
from engine.groups.subscriptions import CONSUMER_PROTOCOL_TYPE, subscribed_topics
from engine.host.promise import Promise
from engine.kafka_errors import FENCED_INSTANCE_ID, UNKNOWN_MEMBER_ID


class Group:
    """A group that this broker coordinates."""

    def __init__(
        self, group_id: str, now_ms: int | None, state: GroupState = GroupState.EMPTY
    ) -> None:
        """Create a group without members and offsets, in generation 0.

        `now_ms` is the wall time at which `state` began, None if it is unknown.
        """
        self.group_id = group_id
        self.state = state
        self.state_timestamp_ms = now_ms
        self.generation_id = 0
        #: "consumer" for consumers; None for a group that never had members and only commits
        #: offsets.
        self.protocol_type: str | None = None
        #: The assignor of the present generation, None before the first.
        self.protocol_name: str | None = None
        #: Member that computes the assignment. None without members.
        self.leader_id: str | None = None
        #: Topics of the subscriptions of all members. None if a subscription cannot be parsed.
        self.subscribed_topics: frozenset[str] | None = None
        self.members: dict[str, GroupMember] = {}
        #: The member id of each group instance id (KIP-345).
        self.static_members: dict[str, str] = {}
        #: Ids that clients got with MEMBER_ID_REQUIRED and have not joined with yet (KIP-394).
        self.pending_members: set[str] = set()
        #: Members of this generation whose SyncGroup has not come yet: they are removed when its
        #: deadline passes.
        self.pending_sync_members: set[str] = set()
        #: Whether a member joined during the initial delay, which is then extended.
        self.new_member_added = False
        self.offsets = GroupOffsets()
        #: How many members have a parked JoinGroup; all of them complete the join.
        self.awaiting_join_count = 0
        #: How many members support each protocol.
        self._supported: Counter[str] = Counter()

    # States

    def is_in(self, *states: GroupState) -> bool:
        """Return True if the group's state is one of `states`."""
        return self.state in states

    def transition_to(self, state: GroupState, now_ms: int) -> None:
        """Set the state and the wall time of the change.

        Asserts that Kafka allows the transition from the present state.
        """
        assert self.state in VALID_PREVIOUS_STATES[state], f"{self.group_id}: {self.state}, {state}"
        self.state = state
        self.state_timestamp_ms = now_ms

    @property
    def can_rebalance(self) -> bool:
        """True if the group's state allows a transition to PreparingRebalance."""
        return self.state in VALID_PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members in ms, 0 without members."""
        return max((m.timeouts.rebalance_timeout_ms for m in self.members.values()), default=0)

    @property
    def has_all_members_joined(self) -> bool:
        """True if each member has a parked JoinGroup and each assigned member id has been used."""
        return len(self.members) == self.awaiting_join_count and not self.pending_members

    # Members

    def add_member(self, member: GroupMember, join: Promise[JoinResult] | None) -> None:
        """Add a member and park its JoinGroup, if any.

        The first member sets the group's protocol type. If the group has no leader, the new member
        becomes the leader.
        """
        if not self.members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        if member.group_instance_id is not None:
            self.static_members[member.group_instance_id] = member.member_id
        self.members[member.member_id] = member
        self._supported.update({protocol.name for protocol in member.protocols})
        if join is not None:
            self.await_join(member, join)
        self.pending_members.discard(member.member_id)

    def remove_member(self, member_id: str) -> None:
        """Remove a member, or an assigned id with which no client has joined.

        If it was the leader, the oldest remaining member becomes the leader.
        """
        member = self.members.pop(member_id, None)
        if member is not None:
            self._supported.subtract({protocol.name for protocol in member.protocols})
            if member.join is not None:
                self.awaiting_join_count -= 1
            instance_id = member.group_instance_id
            if instance_id is not None and self.static_members.get(instance_id) == member_id:
                del self.static_members[instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_members.discard(member_id)
        self.pending_sync_members.discard(member_id)

    def update_member(
        self,
        member: GroupMember,
        protocols: tuple[Protocol, ...],
        timeouts: Timeouts,
        join: Promise[JoinResult] | None,
    ) -> None:
        """Set the protocols and timeouts of a member that joins again, and park its JoinGroup.

        `join` is None if no JoinGroup is to be parked.
        """
        self._supported.subtract({protocol.name for protocol in member.protocols})
        member.protocols, member.timeouts = protocols, timeouts
        self._supported.update({protocol.name for protocol in protocols})
        if join is not None:
            self.await_join(member, join)

    def replace_static_member(self, instance_id: str, old_id: str, new_id: str) -> GroupMember:
        """Give a static member a new id after a restart of its client, and return the member.

        Parked requests with the old id are answered FENCED_INSTANCE_ID.
        """
        member = self.members.pop(old_id)
        self.answer_join(member, JoinResult(old_id, FENCED_INSTANCE_ID))
        answer_sync(member, SyncResult(FENCED_INSTANCE_ID))
        member.member_id = new_id
        self.members[new_id] = member
        if self.leader_id == old_id:
            self.leader_id = new_id
        self.static_members[instance_id] = new_id
        return member

    def await_join(self, member: GroupMember, join: Promise[JoinResult]) -> None:
        """Park a member's JoinGroup until the join phase ends.

        It replaces a JoinGroup of the same member that was parked before, which gets no response.
        """
        if member.join is None:
            self.awaiting_join_count += 1
        member.join = join

    def answer_join(self, member: GroupMember, result: JoinResult) -> bool:
        """Answer a member's parked JoinGroup with `result`; return False if none is parked."""
        join, member.join = member.join, None
        if join is None:
            return False
        self.awaiting_join_count -= 1
        join.keep(result)
        return True

    def check_member(self, member_id: str, group_instance_id: str | None) -> int:
        """Check the member id and instance id of a request; return 0 if they match a member.

        Otherwise the error code: UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID if the static member has
        another member id now.
        """
        if group_instance_id is not None:
            current = self.static_members.get(group_instance_id)
            if current is None:
                return UNKNOWN_MEMBER_ID
            if current != member_id:
                return FENCED_INSTANCE_ID
        return 0 if member_id in self.members else UNKNOWN_MEMBER_ID

    # Protocols

    def supports_protocols(self, protocol_type: str, protocols: tuple[Protocol, ...]) -> bool:
        """Return True if a joining member may join with its protocol type and protocols.

        The type has to be the group's, and one of the protocols has to be supported by all members.
        An Empty group accepts each type with at least one protocol.
        """
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        count = len(self.members)
        return protocol_type == self.protocol_type and any(
            self._supported[protocol.name] == count for protocol in protocols
        )

    def select_protocol(self) -> str:
        """Return the protocol with the most votes among those that all members support.

        Source: GroupMetadata.selectProtocol; ASG-4.
        """
        count = len(self.members)
        candidates = {name for name, number in self._supported.items() if number == count}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    # Generations

    def elect_joined_leader(self) -> bool:
        """Return True if the leader has joined; else make the first joined member the leader.

        Also True for a group without a leader. False if no member has joined.
        """
        leader = None if self.leader_id is None else self.members.get(self.leader_id)
        if leader is None or leader.join is not None:
            return True
        for member in self.members.values():
            if member.join is not None:
                self.leader_id = member.member_id
                return True
        return False

    def begin_generation(self, now_ms: int) -> None:
        """Increment the generation and choose its protocol after the join phase.

        The group's state becomes CompletingRebalance; Empty if no member is left.
        """
        self.generation_id += 1
        self.pending_sync_members.clear()
        if self.members:
            self.protocol_name = self.select_protocol()
            self.subscribed_topics = self._subscribed_topics()
            self.transition_to(GroupState.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol_name = None
            self.subscribed_topics = self._subscribed_topics()
            self.transition_to(GroupState.EMPTY, now_ms)

    def restore_subscriptions(self) -> None:
        """Compute `subscribed_topics` from the members of a group that was loaded from the log."""
        self.subscribed_topics = self._subscribed_topics()

    def _subscribed_topics(self) -> frozenset[str] | None:
        """Return the topics to which at least one member subscribes.

        None if the subscriptions are unknown: the protocol is not "consumer", or one of them cannot
        be parsed.
        """
        if self.protocol_type != CONSUMER_PROTOCOL_TYPE:
            return None
        if not self.members:
            return frozenset()
        if self.protocol_name is None:
            return None
        name = self.protocol_name
        return subscribed_topics(member.metadata(name) for member in self.members.values())

    def build_join_result(self, member: GroupMember) -> JoinResult:
        """Return the JoinGroup response of a member in the present generation.

        Only the response to the group's leader contains the list of members.
        """
        return JoinResult(
            member.member_id,
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader_id=self.leader_id or UNKNOWN_MEMBER,
            members=self.joined_members() if member.member_id == self.leader_id else (),
        )

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """Return all members with their subscriptions, for the leader's assignment."""
        name = self.protocol_name
        assert name is not None, f"{self.group_id} has no protocol"
        return tuple(
            JoinedMember(member.member_id, member.group_instance_id, member.metadata(name))
            for member in self.members.values()
        )


def answer_sync(member: GroupMember, result: SyncResult) -> bool:
    """Answer a member's parked SyncGroup with `result`; return False if none is parked."""
    sync, member.sync = member.sync, None
    if sync is None:
        return False
    sync.keep(result)
    return True
