"""A member of a consumer group in the classic protocol: it joins, heartbeats, commits and leaves.

```
NOT_JOINED ── JoinGroup, SyncGroup ──> STABLE ── heartbeat due ──┬─> STABLE
     ^                                                           │
     └──── REBALANCE_IN_PROGRESS, an unknown member or generation┘
```

1. JoinGroup: a new member gets an id (MEMBER_ID_REQUIRED) and sends it again with the id. The
   response comes when all members have joined, at the latest after the rebalance timeout.
2. The leader of the group receives all subscriptions, and assigns the partitions of their topics
   by the assignor that the coordinator chose.
3. SyncGroup: the leader sends the assignments, each member receives its own.
4. Heartbeats keep the member in the group. If the response is REBALANCE_IN_PROGRESS, the caller
   commits and rejoins (1).
5. LeaveGroup frees the partitions at once; a static member stays until its session times out, so
   that it keeps them if it returns.

| protocol | rejoining |
|---|---|
| eager | all partitions are revoked before |
| cooperative, if all assignors are | kept; those assigned to others are revoked after |

A cooperative member sends its partitions as owned. After it has revoked some it rejoins once more,
so that other members get them. A member without which the group has continued has lost its
partitions in both protocols. The leader rejoins when a topic has grown, which it checks every
`metadata_max_age_ms`.

| response | the member |
|---|---|
| REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION | rejoins with its id |
| UNKNOWN_MEMBER_ID | joins as a new member |
| FENCED_INSTANCE_ID and all others | ends with the error |

Not for use by several threads; `poll` has to be called more often than the session timeout.

Source: REPL-11; AbstractCoordinator, ConsumerCoordinator of 3.9.1; KIP-394, KIP-345, KIP-429.
Differs: heartbeats are sent by `poll` and not by a thread, so that one timeout bounds both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from engine.assignors.registry import ASSIGNORS, RebalanceProtocol
from engine.assignors.subscription import PartitionRacks, Subscription
from engine.assignors.user_data import PreviousAssignment
from engine.client.blocking import KafkaClient
from engine.client.consumer_heartbeat import NoConsumerProtocol, SubscriptionPattern
from engine.client.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from engine.client.groups import committed_offsets
from engine.client.member_session import MemberSettings, NotAMember
from engine.client.offset_commit import code_to_repeat, commit_request, decisive_commit_code
from engine.errors import WireError, api_error
from engine.kafka_errors import (
    ILLEGAL_GENERATION,
    MEMBER_ID_REQUIRED,
    NONE,
    REBALANCE_IN_PROGRESS,
    UNKNOWN_MEMBER_ID,
)
from engine.model import TopicPartition
from engine.wire import messages
from engine.wire.structs import Message

CONSUMER_PROTOCOL: Final = "consumer"
_NO_GENERATION: Final = -1
#: How long after the rebalance timeout a response to JoinGroup is still waited for.
_JOIN_SLACK_MS: Final = 5_000
_JOIN_ATTEMPTS_MAX: Final = 100


class GroupSession:
    """One member of a group, with the partitions assigned to it."""

    def __init__(
        self, client: KafkaClient, settings: MemberSettings, topics: Sequence[str]
    ) -> None:
        """Create a session outside the group; the caller joins by `join`."""
        self._client = client
        self._settings = settings
        self._subscription = Subscription(
            tuple(topics), settings.group_instance_id, settings.client_rack
        )
        #: The member id from the coordinator's first JoinGroup response; empty before.
        self.member_id = ""
        self.generation_id = _NO_GENERATION
        #: Partitions assigned to the member; empty while it has not joined.
        self.partitions: tuple[TopicPartition, ...] = ()
        #: The last assignment and its generation, which sticky assignors continue. None before.
        self._previous: PreviousAssignment | None = None
        self._is_joined = False
        #: Whether a join was started and has no result, also if the wait was interrupted.
        self.is_joining = False
        #: The part of `partitions` that the member owned without interruption during its last join.
        self.kept_partitions: frozenset[TopicPartition] = frozenset()
        #: Whether the last code was REBALANCE_IN_PROGRESS: the member must join again, and is in
        #: the group until then.
        self._is_rebalancing = False
        #: Whether the member itself has to join again: it revoked partitions for other members, or
        #: a topic has more partitions.
        self._owes_rebalance = False
        self._next_heartbeat_ms = 0
        #: Partition counts of topics at the last assignment; None unless this member is the group's
        #: leader. Compared with metadata at `_next_refresh_ms`.
        self._sizes: dict[str, int] | None = None
        self._next_refresh_ms = 0

    @property
    def is_cooperative(self) -> bool:
        """True if the member keeps its partitions while it joins again (cooperative rebalancing).

        Each configured assignor must support that.
        """
        return all(
            RebalanceProtocol.COOPERATIVE in ASSIGNORS[name].rebalance_protocols
            for name in self._settings.assignors
        )

    @property
    def is_joined(self) -> bool:
        """True if the member has an assignment of the current generation."""
        return self._is_joined

    def subscribe(self, topics: Sequence[str] | SubscriptionPattern) -> None:
        """Replace the subscribed topics; the member joins again at the next poll.

        Raises NoConsumerProtocol for a pattern, which only the consumer protocol has.
        """
        if isinstance(topics, SubscriptionPattern):  # as engine.client.group_consumers refuses it
            raise NoConsumerProtocol(
                "patterns that brokers match in a group of group.protocol=classic"
            )
        self._subscription = self._subscription._replace(topics=tuple(topics))
        self._is_joined = False

    # Joining

    def join(self) -> tuple[TopicPartition, ...]:
        """Join the group, or join again; return the partitions assigned to the member.

        Waits for the other members. Raises ApiError that a new join cannot resolve.
        """
        self.is_joining, self._is_rebalancing = True, False
        if self.is_cooperative:
            self._is_joined, self._sizes, self._owes_rebalance = False, None, False
        else:
            self._drop_assignment()
        for _ in range(_JOIN_ATTEMPTS_MAX):
            joined = self._join_group()
            if joined is not None and self._sync_group(joined):
                now_ms = self._client.clock.monotonic_ms()
                self._is_joined, self.is_joining = True, False
                self._next_heartbeat_ms = now_ms + self._settings.heartbeat_interval_ms
                self._next_refresh_ms = now_ms + self._settings.metadata_max_age_ms
                return self.partitions
        raise api_error(REBALANCE_IN_PROGRESS, f"group {self._settings.group_id} does not settle")

    def _drop_assignment(self) -> None:
        """Drop the assigned partitions and the state of a rebalance; the member id stays."""
        self._is_joined = self._owes_rebalance = self._is_rebalancing = False
        self.partitions = ()
        self._sizes = None

    def _join_group(self) -> messages.JoinGroupResponse | None:
        """Send JoinGroup and return its response; None if JoinGroup must be sent again.

        None follows an error like MEMBER_ID_REQUIRED, whose member id is stored before.
        """
        settings = self._settings
        protocol = messages.JoinGroupRequest.JoinGroupRequestProtocol
        request = messages.JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            member_id=self.member_id,
            group_instance_id=settings.group_instance_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocols=[
                protocol(name=name, metadata=self._metadata(name)) for name in settings.assignors
            ],
        )
        response = self._client.send_to_coordinator(
            settings.group_id,
            "JoinGroup",
            request,
            retriable_code=_code_of,
            timeout_ms=settings.max_poll_interval_ms + _JOIN_SLACK_MS,
        )
        joined: messages.JoinGroupResponse = response.message
        if joined.error_code == MEMBER_ID_REQUIRED:
            self.member_id = joined.member_id
            return None
        if not self._apply_code(joined.error_code):
            return None
        self.member_id = joined.member_id
        self.generation_id = joined.generation_id
        return joined

    def _metadata(self, assignor: str) -> bytes:
        """Return the encoded subscription that JoinGroup has for one assignor.

        Owned partitions are included only if the member is cooperative.
        """
        return encode_subscription(
            self._subscription._replace(
                owned_partitions=self.partitions if self.is_cooperative else (),
                generation_id=self.generation_id,
                user_data=ASSIGNORS[assignor].user_data(self._previous),
            )
        )

    def _sync_group(self, joined: messages.JoinGroupResponse) -> bool:
        """Send SyncGroup; return True if the member got its partitions, False to join again.

        As the leader of the group the member sends the partitions of all members.
        """
        assignments = []
        if joined.leader == self.member_id and not joined.skip_assignment:
            row = messages.SyncGroupRequest.SyncGroupRequestAssignment
            assignments = [
                row(member_id=member_id, assignment=encode_assignment(partitions))
                for member_id, partitions in self._compute_assignment(joined).items()
            ]
        request = messages.SyncGroupRequest(
            group_id=self._settings.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self._settings.group_instance_id,
            protocol_type=CONSUMER_PROTOCOL,
            protocol_name=joined.protocol_name,
            assignments=assignments,
        )
        response = self._client.send_to_coordinator(
            self._settings.group_id,
            "SyncGroup",
            request,
            retriable_code=_code_of,
            timeout_ms=self._settings.max_poll_interval_ms + _JOIN_SLACK_MS,
        )
        if not self._apply_code(response.message.error_code):
            return False
        partitions = decode_assignment(bytes(response.message.assignment))
        if partitions is None:
            raise WireError("the leader of the group sent an assignment that cannot be read")
        self._owes_rebalance = bool(set(self.partitions) - set(partitions))
        self.kept_partitions = frozenset(self.partitions) & frozenset(partitions)
        self.partitions = partitions
        self._previous = PreviousAssignment(partitions, self.generation_id)
        return True

    def _compute_assignment(
        self, joined: messages.JoinGroupResponse
    ) -> Mapping[str, Sequence[TopicPartition]]:
        """As leader of the group, return the partitions of each member, by member id.

        The assignor that the coordinator chose computes them. Raises the errors of a Metadata
        request.
        """
        subscriptions = {
            member.member_id: decode_subscription(bytes(member.metadata), member.group_instance_id)
            for member in joined.members
        }
        wanted = {topic for member in subscriptions.values() for topic in member.topics}
        view = self._client.view(wanted)
        racks = {broker_id: broker.rack for broker_id, broker in view.brokers.items()}
        topics = {
            name: [
                PartitionRacks(
                    row.partition,
                    frozenset(rack for b in row.replicas if (rack := racks.get(b)) is not None),
                )
                for row in topic.partitions
            ]
            for name, topic in view.topics.items()
        }
        self._sizes = {name: len(topics.get(name, ())) for name in wanted}
        return ASSIGNORS[joined.protocol_name or ""].assign(topics, subscriptions)

    # Staying

    def poll(self) -> bool:
        """Send a heartbeat if it is due; return True if the assignment is still valid.

        If it is not, the caller commits and joins again. Raises ApiError that a join cannot
        resolve.
        """
        now_ms = self._client.clock.monotonic_ms()
        if not self._is_joined or self._owes_rebalance:
            return False
        if now_ms >= self._next_heartbeat_ms and not self._send_heartbeat():
            return False
        if self._sizes is not None and now_ms >= self._next_refresh_ms:
            self._next_refresh_ms = now_ms + self._settings.metadata_max_age_ms
            # Also called between polls: the next poll then joins again.
            self._owes_rebalance = self._have_counts_changed()
        return not self._owes_rebalance

    @property
    def is_member(self) -> bool:
        """True if the coordinator has this member, even if the member must rejoin."""
        return self._is_joined or self._is_rebalancing

    def check_topics_next(self) -> None:
        """Compare partition counts with fresh metadata at the next `poll`.

        Called when a topic seems to be deleted.

        Source: ConsumerCoordinator.poll, rejoinNeededOrPending of 3.9.1 after new metadata.
        """
        self._next_refresh_ms = 0

    def keep_alive(self) -> int:
        """Send a heartbeat between polls if it is due; return the ms until the next one.

        A member that has to rejoin sends heartbeats too: the group waits for it until the rebalance
        timeout, unless its session times out before.

        Source: AbstractCoordinator.HeartbeatResponseHandler of 3.9.1, REBALANCE_IN_PROGRESS.
        """
        if self._is_joined and not self._owes_rebalance:
            self.poll()
        elif self.is_member and self.time_left_ms() == 0:
            self._send_heartbeat()
        return self.time_left_ms()

    def time_left_ms(self) -> int:
        """Return the ms until the next heartbeat is due; 0 if it is due now."""
        return max(self._next_heartbeat_ms - self._client.clock.monotonic_ms(), 0)

    def _send_heartbeat(self) -> bool:
        """Send one heartbeat; False if the member must rejoin, as after REBALANCE_IN_PROGRESS."""
        now_ms = self._client.clock.monotonic_ms()
        self._next_heartbeat_ms = now_ms + self._settings.heartbeat_interval_ms
        request = messages.HeartbeatRequest(
            group_id=self._settings.group_id,
            generation_id=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self._settings.group_instance_id,
        )
        response = self._client.send_to_coordinator(
            self._settings.group_id, "Heartbeat", request, retriable_code=_code_of
        )
        return self._apply_code(response.message.error_code)

    def _have_counts_changed(self) -> bool:
        """Request metadata; True if a topic's partition count differs from that at the assignment.

        Only the group's leader checks: another count means that the partitions must be assigned
        again.
        """
        sizes = self._sizes or {}
        view = self._client.view(sizes)
        return any(
            len(view.topics[name].partitions) != size
            for name, size in sizes.items()
            if name in view.topics
        )

    # Offsets

    def commit(
        self,
        offsets: Mapping[TopicPartition, int],
        leader_epochs: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Commit next offsets by partition, with the leader epochs of the last processed records.

        Raises NotAMember if the group has continued without this member, and ApiError.
        """
        if not offsets:
            return
        membership = messages.OffsetCommitRequest(
            group_id=self._settings.group_id,
            generation_id_or_member_epoch=self.generation_id,
            member_id=self.member_id,
            group_instance_id=self._settings.group_instance_id,
        )
        request = commit_request(membership, offsets, leader_epochs)
        response = self._client.send_to_coordinator(
            self._settings.group_id, "OffsetCommit", request, retriable_code=code_to_repeat
        )
        code = decisive_commit_code(response.message)
        if code in (REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID):
            self._apply_code(code)
            raise NotAMember(self._settings.group_id)
        if code != NONE:
            raise api_error(code)

    def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the group's committed offsets, by partition.

        Partitions without a commit are left out.
        """
        return committed_offsets(self._client, self._settings.group_id, partitions)

    def rejoin_if_refused(self, code: int) -> None:
        """Join again at the next `poll` if TxnOffsetCommit's `code` shows a later generation."""
        if code in (REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID):
            self._apply_code(code)

    # Leaving

    def leave(self) -> None:
        """Leave the group; a static member only stops.

        Raises the errors of the request. A member that is joining, or must rejoin, is still in the
        group. The connection of an abandoned join is closed, so that LeaveGroup does not queue
        after it.
        """
        member_id = self.member_id
        self._drop_assignment()
        self.is_joining = False
        if not member_id or self._settings.group_instance_id is not None:
            return
        identity = messages.LeaveGroupRequest.MemberIdentity

        def request(version: int) -> messages.LeaveGroupRequest:
            """Return LeaveGroup for this member; versions before 3 name only one member."""
            group_id = self._settings.group_id
            if version < 3:
                return messages.LeaveGroupRequest(group_id=group_id, member_id=member_id)
            members = [identity(member_id=member_id, reason="the consumer is done")]
            return messages.LeaveGroupRequest(group_id=group_id, members=members)

        self._client.send_to_coordinator(
            self._settings.group_id, "LeaveGroup", request, retriable_code=_code_of
        )
        self.member_id = ""

    def leave_until_polled(self) -> None:
        """Leave the group because the application does not poll within max.poll.interval.ms.

        The next `poll` returns False, after which the caller joins again.
        """
        self.leave()

    # Responses

    def _apply_code(self, code: int) -> bool:
        """Apply an error code of a group request.

        True if it is NONE, False if the member must rejoin. ILLEGAL_GENERATION and
        UNKNOWN_MEMBER_ID remove its partitions, the latter its id too. Raises ApiError for codes
        that a join does not resolve.
        """
        if code == NONE:
            return True
        if code not in (REBALANCE_IN_PROGRESS, ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID):
            raise api_error(code)
        # Not during a join: the member has given up its partitions then.
        self._is_rebalancing = code == REBALANCE_IN_PROGRESS and not self.is_joining
        if code == UNKNOWN_MEMBER_ID:
            self.member_id = ""
        if code != REBALANCE_IN_PROGRESS:
            # Other members may have them already.
            self.partitions = ()
        self._is_joined = False
        return False


def _code_of(message: Message) -> int:
    """Return the response's error code; the request is repeated while that code is retriable."""
    return int(message.error_code)
