"""A coordinator on virtual time, with a log in memory whose appends can be held up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.groups.coordinator import GroupCoordinator
from engine.groups.group import Group
from engine.groups.member import ClientOfMember, JoinResult, Protocol, SyncResult, Timeouts
from engine.groups.ports import (
    CommittingProducer,
    GroupPorts,
    GroupRecord,
    GroupSettings,
    LoadedRecords,
    Written,
)
from engine.groups.requests import JoinRequest, MemberRequest, SyncRequest
from engine.host.memory import ManualClock, SeededEntropy
from engine.host.memory_network import MemoryTimers
from engine.host.promise import Promise
from engine.host.turns import LoopTurns
from engine.records.record import NO_SEQUENCE, Record, TimestampType

SETTINGS = GroupSettings(
    min_session_timeout_ms=6_000,
    max_session_timeout_ms=1_800_000,
    initial_rebalance_delay_ms=3_000,
    max_size=10,
    offset_metadata_max_bytes=4_096,
    offsets_retention_ms=10_080 * 60_000,
)
RANGE = Protocol("range", b"\0\1\0\0\0\1\0\1t\xff\xff\xff\xff\0\0\0\0")
STICKY = Protocol("sticky", b"\0\1\0\0\0\1\0\1u\xff\xff\xff\xff\0\0\0\0")
SESSION_MS, REBALANCE_MS = 10_000, 60_000
COUNT = 4


def loaded_record(
    log_offset: int, record: GroupRecord, open_producer_id: int = -1
) -> LoadedRecords:
    """Return one record as it is read from the log."""
    key, value = record
    loaded = Record(log_offset, 0, TimestampType.CREATE_TIME, key, value)
    return LoadedRecords((loaded,), open_producer_id)


class MemoryLog:
    """Partitions of `__consumer_offsets`; an append is kept at once, held, or fails."""

    def __init__(self) -> None:
        self.partitions: dict[int, list[GroupRecord]] = {}
        self.error_code = 0
        self.is_held = False
        self.count = COUNT
        #: Of each record that was appended.
        self.base_sequences: list[int] = []
        #: Of each batch that is part of a transaction.
        self.producers: list[CommittingProducer] = []
        self._held: list[tuple[Promise[Written], Written]] = []

    def append(
        self,
        partition: int,
        records: Sequence[GroupRecord],
        *,
        base_sequence: int = NO_SEQUENCE,
        producer: CommittingProducer | None = None,
        is_awaited: bool = True,
    ) -> Promise[Written]:
        """Append, unless the log fails."""
        if self.error_code:
            return Promise.of(Written(self.error_code))
        log = self.partitions.setdefault(partition, [])
        written = Written(0, len(log))
        log += records
        self.base_sequences += [base_sequence] * len(records)
        if producer is not None:
            self.producers.append(producer)
        if not self.is_held or not is_awaited:
            return Promise.of(written)
        promise: Promise[Written] = Promise()
        self._held.append((promise, written))
        return promise

    def append_fast(
        self, partition: int, key: bytes, value: bytes, now_ms: int, *, base_sequence: int
    ) -> int | Written | Promise[Written]:
        """Append one record; its offset is there unless the log fails or holds it up."""
        promise = self.append(partition, (GroupRecord(key, value),), base_sequence=base_sequence)
        if not promise.is_kept:
            return promise
        written = promise.result()
        return written if written.error_code else written.base_offset

    def release(self, error_code: int = 0) -> None:
        """Answer the appends that are held up."""
        held, self._held, self.is_held = self._held, [], False
        for promise, written in held:
            promise.keep(Written(error_code) if error_code else written)

    def read(self, partition: int) -> Iterator[LoadedRecords]:
        """Yield what was appended."""
        for offset, record in enumerate(self.partitions.get(partition, [])):
            yield loaded_record(offset, record)

    def partition_count(self) -> int:
        """Return a few."""
        return self.count


class Stage:
    """One coordinator of all partitions, and requests put to it in few words."""

    def __init__(self, settings: GroupSettings = SETTINGS, log: MemoryLog | None = None) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.log = log or MemoryLog()
        ports = GroupPorts(self.clock, SeededEntropy(7), self.log, lambda _deadline_ms: None)
        self.coordinator = GroupCoordinator(settings, ports, LoopTurns(self.timers, self.clock))
        for partition in range(COUNT):
            self.coordinator.registry.elected(partition, 1)

    def pass_ms(self, duration_ms: int) -> None:
        """Let time pass, with everything that is due meanwhile."""
        end_ms = self.clock.monotonic_ms() + duration_ms
        delays = self.coordinator.delays
        while (due_ms := delays.next_deadline_ms()) is not None and due_ms <= end_ms:
            self.clock.advance(max(0, due_ms - self.clock.monotonic_ms()))
            delays.advance()
        self.clock.advance(end_ms - self.clock.monotonic_ms())

    def group(self, group_id: str = "g") -> Group:
        """Return a group."""
        return self.coordinator.registry.groups[group_id]

    @property
    def state(self) -> str:
        """Return the state of group g."""
        return self.group().state.value

    def join(
        self,
        member_id: str = "",
        *,
        instance_id: str | None = None,
        protocols: tuple[Protocol, ...] = (RANGE,),
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        group_id: str = "g",
        version: int = 3,
    ) -> Promise[JoinResult]:
        """Send JoinGroup in some version."""
        return self.coordinator.memberships.join(
            JoinRequest(
                group_id,
                member_id,
                instance_id,
                ClientOfMember("app", "/1.2.3.4"),
                Timeouts(rebalance_ms, session_ms),
                "consumer",
                protocols,
                version >= 4 and instance_id is None,
                version >= 9,
            )
        )

    def sync(
        self, member: JoinResult, assignments: dict[str, bytes] | None = None
    ) -> Promise[SyncResult]:
        """Send SyncGroup."""
        return self.coordinator.memberships.sync(
            SyncRequest(
                "g", member.generation_id, member.member_id, None, None, None, assignments or {}
            )
        )

    def heartbeat(self, member: JoinResult, generation_id: int | None = None) -> int:
        """Send a Heartbeat."""
        generation = member.generation_id if generation_id is None else generation_id
        return self.coordinator.memberships.heartbeat(
            MemberRequest("g", generation, member.member_id, None)
        )

    def stable(self, count: int = 1) -> list[JoinResult]:
        """Return the members of a stable group, its leader first; each has its number assigned."""
        joins = [self.join() for _ in range(count)]
        self.pass_ms(3_000 * (1 + (count > 1)))
        members = [join.result() for join in joins]
        leader = members[0]
        syncs = [self.sync(member) for member in members[1:]]
        syncs.append(self.sync(leader, {m.member_id: b"%d" % n for n, m in enumerate(members)}))
        assert all(sync.is_kept for sync in syncs)
        assert self.state == "Stable"
        return members
