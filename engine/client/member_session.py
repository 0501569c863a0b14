"""Interface of a group membership for consumers, common to both protocols, with its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from engine.client.consumer_heartbeat import SubscriptionPattern
from engine.client.group_protocol import CLASSIC, CONSUMER, refuse_others
from engine.errors import EngineError
from engine.model import TopicPartition


class MemberSettings(NamedTuple):
    """Settings of a member; the names and defaults are those of Kafka's consumer."""

    group_id: str
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    metadata_max_age_ms: int = 300_000
    assignors: tuple[str, ...] = ("range", "roundrobin")
    client_rack: str | None = None
    group_protocol: str = CLASSIC
    remote_assignor: str | None = None

    def check(self) -> None:
        """Raise SettingOfOtherProtocol if a setting of the other protocol is not default."""
        defaults = MemberSettings(self.group_id)
        keys = {
            "partition.assignment.strategy": (self.assignors, defaults.assignors),
            "heartbeat.interval.ms": (self.heartbeat_interval_ms, defaults.heartbeat_interval_ms),
            "session.timeout.ms": (self.session_timeout_ms, defaults.session_timeout_ms),
            "group.remote.assignor": (self.remote_assignor, None),
        }
        refuse_others(
            {key: str(value) for key, (value, default) in keys.items() if value != default},
            self.group_protocol,
        )

    @property
    def is_of_consumer_protocol(self) -> bool:
        """True for group.protocol=consumer, where the broker assigns the partitions (KIP-848)."""
        return self.group_protocol == CONSUMER


class NotAMember(EngineError):
    """Offsets were not committed: the member has left the group, or has not rejoined yet."""

    hint = "records that were not committed are read again by the member that has the partition now"

    def __init__(self, group_id: str) -> None:
        super().__init__(f"group {group_id} has another generation now: nothing was committed")
        self.group_id = group_id


class MemberSession(Protocol):
    """One member of a group, with the partitions assigned to it."""

    member_id: str
    partitions: tuple[TopicPartition, ...]
    kept_partitions: frozenset[TopicPartition]

    @property
    def generation_id(self) -> int:
        """Return the generation, in the consumer protocol the member epoch.

        It is below 0 before a join.
        """
        ...

    @property
    def is_joined(self) -> bool:
        """True if the member has joined, and its assigned partitions are valid."""
        ...

    @property
    def is_member(self) -> bool:
        """True if the coordinator has this member, even if the member must rejoin."""
        ...

    @property
    def is_joining(self) -> bool:
        """True from the begin of a join until its result."""
        ...

    def subscribe(self, topics: Sequence[str] | SubscriptionPattern) -> None:
        """Replace the subscribed topics or pattern; the group assigns partitions again."""
        ...

    def poll(self) -> bool:
        """Send a heartbeat if it is due; return True if the assignment is unchanged.

        False: the caller has to join or to reconcile. Raises ApiError.
        """
        ...

    def keep_alive(self) -> int:
        """Send a heartbeat between polls if it is due; return the ms until the next one."""
        ...

    def check_topics_next(self) -> None:
        """Compare the topics in metadata with the assigned ones at the next `poll`.

        Called after a Fetch error that a deleted topic has.
        """
        ...

    def time_left_ms(self) -> int:
        """Return the ms until the next heartbeat is due; 0 if it is due now."""
        ...

    def commit(
        self,
        offsets: Mapping[TopicPartition, int],
        leader_epochs: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Commit next offsets by partition, with the leader epochs of the last processed records.

        Raises NotAMember if the group has continued without this member, and ApiError.
        """
        ...

    def committed(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the group's committed offsets, by partition.

        Partitions without a commit are left out.
        """
        ...

    def rejoin_if_refused(self, code: int) -> None:
        """Rejoin at the next `poll` if this error code of TxnOffsetCommit requires it."""
        ...

    def leave(self) -> None:
        """Leave the group as the consumer closes or unsubscribes.

        Raises the errors of the request.
        """
        ...

    def leave_until_polled(self) -> None:
        """Leave the group because the application does not poll; the next `poll` returns False."""
        ...
