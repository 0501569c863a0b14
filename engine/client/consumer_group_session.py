"""A member of a consumer-protocol group: the coordinator assigns by its heartbeat responses.

```
UNSUBSCRIBED ─> JOINING ─> RECONCILING ─> ACKNOWLEDGING ─> STABLE ─┐ a new target
                   ^            ^                                  │
          fenced ──┘            └──────────────────────────────────┘
```

1. A heartbeat with epoch 0 joins. The response has the member's epoch, the interval of heartbeats,
   and the target: the partitions that the member is to own.
2. A target that differs from the owned partitions is reconciled by the caller of `poll`: commit,
   `take_target`, give up, begin with what was added, `acknowledge`. Topics come by id; those whose
   names are unknown yet are left for later.
3. The next heartbeat has the owned partitions: the coordinator assigns revoked ones to other
   members, and the member gets the epoch of its target.
4. A heartbeat with epoch −1 leaves; a static member's −2 keeps its partitions for its return.

| response | what the member does |
|---|---|
| FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID | has lost its partitions; joins again with epoch 0 |
| STALE_MEMBER_EPOCH of offsets | heartbeats for its epoch, and tries them once more |
| TOPIC_AUTHORIZATION_FAILED, retriable errors that last | ends the poll; the next heartbeat has all fields |
| UNRELEASED_INSTANCE_ID, UNSUPPORTED_ASSIGNOR, INVALID_REGULAR_EXPRESSION and all others | ends with the error, for good |

Not for use by several threads.

Source: AbstractMembershipManager, ConsumerMembershipManager, AbstractHeartbeatRequestManager of
4.3.0; KIP-848, KIP-1082.
Differs: the target is reconciled within a poll, on the caller's thread; there is no background thread.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.consumer_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    ByTopicId,
    HeartbeatAnswer,
    Heartbeats,
    MemberClaims,
    NoConsumerProtocol,
    SubscriptionPattern,
    new_member_id,
)
from engine.client.errors import TimedOut, Unreachable
from engine.client.groups import committed_offsets
from engine.client.member_session import MemberSettings, NotAMember
from engine.client.member_states import MemberState, MemberStates
from engine.client.offset_commit import code_to_repeat, commit_request, decisive_commit_code
from engine.client.topic_names import request_topic_names
from engine.errors import ApiError, api_error
from engine.kafka_errors import (
    FENCED_MEMBER_EPOCH,
    ILLEGAL_GENERATION,
    NONE,
    STALE_MEMBER_EPOCH,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_MEMBER_ID,
    kafka_error,
)
from engine.model import TopicPartition
from engine.wire import messages

_ID_BYTES: Final = 16
_NO_EPOCH: Final = -1
#: Interval of the requests for topic names that the cluster did not know.
_LOOKUP_MS: Final = 1_000
_FENCING: Final = (FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID)
#: Errors of OffsetCommit and OffsetFetch after which a heartbeat renews the member's epoch.
_NOT_ITS_EPOCH: Final = (*_FENCING, STALE_MEMBER_EPOCH, ILLEGAL_GENERATION)


class ConsumerGroupSession:
    """One member of a group, with the partitions that it owns."""

    def __init__(
        self,
        client: KafkaClient,
        settings: MemberSettings,
        topics: Sequence[str] | SubscriptionPattern,
    ) -> None:
        """Create a session outside the group; the first heartbeat joins."""
        self._client = client
        self._settings = settings
        self._topics = topics
        #: Sends heartbeats, and in each only what has changed since the last one.
        self._heartbeats = Heartbeats(client, settings.group_id)
        self.states = MemberStates()
        self.member_id = new_member_id(client.entropy.random_bytes(_ID_BYTES))
        #: Epoch that the coordinator assigned; 0 joins.
        self.member_epoch = JOIN_EPOCH
        self.partitions: tuple[TopicPartition, ...] = ()
        #: The part of `partitions` that the member owned before the last target, too.
        self.kept_partitions: frozenset[TopicPartition] = frozenset()
        #: Partitions that the member owns, and those that it is to own (`_target`), by topic id.
        self._owned: ByTopicId = {}
        self._target: ByTopicId = {}
        #: The target that is being reconciled, None without one. It becomes `_owned` when the
        #: caller acknowledges it.
        self._taken: ByTopicId | None = None
        #: Topic names by id; missing names are requested again at `_next_lookup_ms` (monotonic).
        self._names: dict[bytes, str] = {}
        self._next_lookup_ms = 0
        #: Interval of heartbeats, as the coordinator sets it.
        self._interval_ms = 0
        self._next_heartbeat_ms = 0
        #: The error that ended the membership; every later call raises it. None without one.
        self._fatal: ApiError | NoConsumerProtocol | None = None

    @property
    def generation_id(self) -> int:
        """Return the member epoch, which takes the place of a generation; −1 without one."""
        return self.member_epoch if self.is_joined else _NO_EPOCH

    @property
    def is_joined(self) -> bool:
        """True if the coordinator has accepted the member, and the member sends heartbeats."""
        return self.states.is_heartbeating and not self.is_joining

    @property
    def is_member(self) -> bool:
        """True if the coordinator has accepted the member; the same as `is_joined`.

        Exists because callers use this session and the classic protocol's one alike.
        """
        return self.is_joined

    @property
    def is_joining(self) -> bool:
        """True until the coordinator has responded to the first heartbeat."""
        return self.states.current is MemberState.JOINING

    def subscribe(self, topics: Sequence[str] | SubscriptionPattern) -> None:
        """Replace the subscription; a heartbeat with the new topics is due at the next `poll`."""
        self._topics = topics
        self._next_heartbeat_ms = 0

    # Staying

    def poll(self) -> bool:
        """Send a heartbeat if it is due; return True if there is no target assignment to reconcile.

        False: the caller takes the target by `take_target`; if the member `has_lost_all`, it drops
        its partitions and calls `rejoin`. Raises ApiError, NoConsumerProtocol.
        """
        if self._fatal is not None:
            raise self._fatal
        if self.states.current is MemberState.UNSUBSCRIBED:
            self._start_joining()
        if not self.has_lost_all and self.time_left_ms() == 0:
            self._send_heartbeat()
        if self.has_lost_all:
            return False
        self._enter_state_of_target()
        return self.states.current is not MemberState.RECONCILING

    def check_topics_next(self) -> None:
        """Do nothing: the coordinator revokes the partitions of deleted topics.

        The classic protocol's session, which is called in the same way, has to check topics itself.
        """

    def keep_alive(self) -> int:
        """Send a heartbeat between polls if it is due; return the ms until the next one.

        Raises the errors of `poll`.
        """
        self.poll()
        return self.time_left_ms()

    def time_left_ms(self) -> int:
        """Return the ms until the next heartbeat is due: 0 while joining or acknowledging."""
        if self.states.current in (MemberState.JOINING, MemberState.ACKNOWLEDGING):
            return 0
        return max(self._next_heartbeat_ms - self._client.clock.monotonic_ms(), 0)

    @property
    def has_lost_all(self) -> bool:
        """True if the member was fenced or has left because it did not poll (FENCED, STALE).

        Other members may own its partitions.
        """
        return self.states.current in (MemberState.FENCED, MemberState.STALE)

    def rejoin(self) -> None:
        """Start to join without owned partitions, after the member has lost all of them.

        Called after the application's listener was called for the lost partitions.
        """
        self._start_joining()

    def _start_joining(self) -> None:
        """Enter JOINING with no owned partitions; the next heartbeat joins, and has all fields."""
        self.states.enter(MemberState.JOINING)
        self._reset_to_unjoined()
        self._heartbeats.forget()

    def _reset_to_unjoined(self) -> None:
        """Reset the epoch to 0, and remove the owned and target partitions.

        Called when the group has removed the member, before it joins again.
        """
        self.member_epoch = JOIN_EPOCH
        self.partitions, self.kept_partitions = (), frozenset()
        self._owned, self._target, self._taken = {}, {}, None

    def _send_heartbeat(self) -> None:
        """Send one heartbeat and apply its response; in ACKNOWLEDGING it reports owned partitions.

        A group error like FENCED_MEMBER_EPOCH changes the state. Raises NoConsumerProtocol if the
        coordinator lacks the API.
        """
        state = self.states.current
        try:
            answer = self._heartbeats.send(
                self.member_id,
                self.member_epoch,
                self._member_claims(),
                has_owned=state is MemberState.ACKNOWLEDGING,
            )
        except ApiError as error:
            self._on_error(error)
            return
        except NoConsumerProtocol as error:
            self._end_with(error)
            raise
        except (Unreachable, TimedOut):
            # Meanwhile its partitions are read.
            now_ms = self._client.clock.monotonic_ms()
            self._next_heartbeat_ms = now_ms + self._client.settings.retry_backoff_ms_max
            raise
        if state is MemberState.ACKNOWLEDGING:
            self.states.enter(MemberState.STABLE)
        self._apply_response(answer)

    def _member_claims(self) -> MemberClaims:
        """Return the heartbeat's fields about this member: subscription, owned partitions."""
        settings, topics = self._settings, self._topics
        is_pattern = isinstance(topics, SubscriptionPattern)
        return MemberClaims(
            topics=None if is_pattern else tuple(sorted(topics)),
            pattern=topics.pattern if isinstance(topics, SubscriptionPattern) else None,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            server_assignor=settings.remote_assignor,
            rack=settings.client_rack,
            instance_id=settings.group_instance_id,
            owned=tuple(sorted(self._owned.items())),
        )

    def _apply_response(self, answer: HeartbeatAnswer) -> None:
        """Apply the fields of a heartbeat response to the session.

        It has the member id, epoch, interval, and a new target assignment if any. A target that
        differs from the owned partitions starts reconciliation.
        """
        self.member_id, self.member_epoch = answer.member_id, answer.member_epoch
        self._interval_ms = answer.interval_ms
        self._next_heartbeat_ms = self._client.clock.monotonic_ms() + answer.interval_ms
        if answer.target is not None:
            self._next_lookup_ms = 0
            self._target = {key: tuple(sorted(n)) for key, n in answer.target.items() if n}
        if self._target != self._owned:
            self.states.enter(MemberState.RECONCILING)
        elif self.states.current in (MemberState.JOINING, MemberState.RECONCILING):
            self.states.enter(MemberState.STABLE)

    def _on_error(self, error: ApiError) -> None:
        """Process an error code in a heartbeat response.

        The state becomes FENCED if the group removed the member. Every other error is raised. One
        that is neither retriable nor TOPIC_AUTHORIZATION_FAILED ends the session.
        """
        self._next_heartbeat_ms = self._client.clock.monotonic_ms() + self._interval_ms
        if error.code in _FENCING:
            self.states.enter(MemberState.FENCED)
            self.member_epoch = JOIN_EPOCH
            return
        if error.code != TOPIC_AUTHORIZATION_FAILED and not kafka_error(error.code).is_retriable:
            self._end_with(error)
        raise error

    def _end_with(self, error: ApiError | NoConsumerProtocol) -> None:
        """End the session after a fatal error: each later `poll` raises that error."""
        self._fatal = error
        self.states.enter(MemberState.FATAL)

    # Reconciling

    def _enter_state_of_target(self) -> None:
        """Enter STABLE if the target's topics with known names are owned, else RECONCILING.

        Topics of the target without names remain until their names are known.
        """
        if self.states.current is MemberState.RECONCILING and self._resolve_target() == self._owned:
            # Nothing to reconcile yet: later polls request the missing names again.
            self.states.enter(MemberState.STABLE)
        elif (
            self.states.current is MemberState.STABLE
            and self._target != self._owned
            and self._resolve_target() != self._owned
        ):
            self.states.enter(MemberState.RECONCILING)

    def _resolve_target(self) -> ByTopicId:
        """Return the part of the target whose topic names are known.

        Unknown names are requested first, at most once in _LOOKUP_MS.
        """
        missing = [topic_id for topic_id in self._target if topic_id not in self._names]
        now_ms = self._client.clock.monotonic_ms()
        if missing and now_ms >= self._next_lookup_ms:
            self._next_lookup_ms = now_ms + _LOOKUP_MS
            self._names |= request_topic_names(self._client, missing)
        return {key: n for key, n in self._target.items() if key in self._names}

    @property
    def is_reconciling(self) -> bool:
        """True in RECONCILING: the caller has to call `take_target`.

        A commit may have ended the state.
        """
        return self.states.current is MemberState.RECONCILING

    def take_target(self) -> tuple[TopicPartition, ...]:
        """Start to reconcile the target assignment; return its partitions, sorted.

        The caller has committed before; it then drops the partitions that are not in
        `kept_partitions`, and calls `acknowledge`. Until then heartbeats name the partitions owned
        before. Raises the errors of requesting names, with nothing changed.
        """
        target = self._resolve_target()
        kept = {
            (key, number)
            for key, numbers in self._owned.items()
            for number in numbers
            if number in target.get(key, ())
        }
        self._taken = target
        self.kept_partitions = frozenset(TopicPartition(self._names[k], n) for k, n in kept)
        self.partitions = tuple(
            sorted(TopicPartition(self._names[k], n) for k, of in target.items() for n in of)
        )
        return self.partitions

    def acknowledge(self) -> None:
        """Own the new target assignment; a heartbeat that acknowledges it is due now.

        A commit in a callback may have sent a heartbeat meanwhile: then the member may be fenced,
        or the target be the earlier one again. `poll` continues from that state.
        """
        if self._taken is not None and self.is_joined:
            self._owned = self._taken
        self._taken = None
        if self.is_reconciling:
            self.states.enter(MemberState.ACKNOWLEDGING)

    # Offsets

    def commit(
        self,
        offsets: Mapping[TopicPartition, int],
        leader_epochs: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Commit next offsets by partition, with the leader epochs of the last processed records.

        After STALE_MEMBER_EPOCH a heartbeat gets the current epoch for one retry. Raises
        NotAMember if the group has continued without this member, ApiError.
        """
        if not offsets:
            return
        code = self._commit_once(offsets, leader_epochs)
        if code == STALE_MEMBER_EPOCH and self._refresh_member_epoch():
            code = self._commit_once(offsets, leader_epochs)
        if code in _NOT_ITS_EPOCH:
            self.rejoin_if_refused(code)
            raise NotAMember(self._settings.group_id)
        if code != NONE:
            raise api_error(code)

    def _commit_once(
        self,
        offsets: Mapping[TopicPartition, int],
        leader_epochs: Mapping[TopicPartition, int] | None,
    ) -> int:
        """Send one OffsetCommit with the current member epoch; return its first error code."""
        membership = messages.OffsetCommitRequest(
            group_id=self._settings.group_id,
            generation_id_or_member_epoch=self.member_epoch,
            member_id=self.member_id,
            group_instance_id=self._settings.group_instance_id,
        )
        request = commit_request(membership, offsets, leader_epochs)
        response = self._client.send_to_coordinator(
            self._settings.group_id, "OffsetCommit", request, retriable_code=code_to_repeat
        )
        return decisive_commit_code(response.message)

    def _refresh_member_epoch(self) -> bool:
        """Send a heartbeat, if joined, to get the current member epoch; True if the epoch changed.

        Called after STALE_MEMBER_EPOCH: with True the refused request is worth a retry.
        """
        before = self.member_epoch
        if not self.is_joined:
            return False
        self._send_heartbeat()
        return self.is_joined and self.member_epoch != before

    def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the group's committed offsets; partitions without a commit are left out.

        Raises NotAMember, ApiError.
        """
        try:
            return self._committed_once(partitions)
        except ApiError as error:
            if error.code not in _NOT_ITS_EPOCH:
                raise
            if error.code == STALE_MEMBER_EPOCH and self._refresh_member_epoch():
                return self._committed_once(partitions)
            self.rejoin_if_refused(error.code)
            raise

    def _committed_once(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Request the group's committed offsets once, with member id and epoch if joined."""
        member = (self.member_id, self.member_epoch) if self.is_joined else None
        return committed_offsets(self._client, self._settings.group_id, partitions, member=member)

    def rejoin_if_refused(self, code: int) -> None:
        """Let the next `poll` send a heartbeat if `code` refuses the member or its epoch.

        The response shows whether the member has lost its partitions. `code` is of another request.
        """
        if code in _NOT_ITS_EPOCH:
            self._next_heartbeat_ms = 0

    # Leaving

    def leave(self) -> None:
        """Leave the group, even before the coordinator has responded to a join.

        Raises the errors of the request; the session has left nevertheless.
        """
        self._leave(MemberState.UNSUBSCRIBED)

    def leave_until_polled(self) -> None:
        """Leave the group because the application does not poll within max.poll.interval.ms.

        The next `poll` reports all partitions as lost; after that the member joins again.
        """
        self._leave(MemberState.STALE)

    def _leave(self, then: MemberState) -> None:
        """Leave the group and enter the state `then`, even if the request fails.

        A static member leaves with epoch -2, so that its assignment is kept for its return.
        """
        states, instance_id = self.states, self._settings.group_instance_id
        if states.current is MemberState.FENCED and then is MemberState.UNSUBSCRIBED:
            # The coordinator does not know it any more.
            states.enter(then)
            self._reset_to_unjoined()
        if not states.is_heartbeating:
            return
        states.enter(MemberState.PREPARE_LEAVING)
        states.enter(MemberState.LEAVING)
        epoch = LEAVE_EPOCH if instance_id is None else LEAVE_STATIC_EPOCH
        try:
            self._heartbeats.leave(self.member_id, epoch, instance_id)
        finally:
            states.enter(then)
            self._reset_to_unjoined()
