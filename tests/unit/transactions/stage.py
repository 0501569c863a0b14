"""A coordinator of transactions on virtual time, with a log and leaders in memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.errors import EngineError
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers
from engine.host.promise import Promise
from engine.host.turns import LoopTurns
from engine.model import TopicPartition
from engine.transactions.coordinator import TransactionCoordinator
from engine.transactions.ports import Marker, MarkerCodes, TransactionPorts, TransactionSettings
from engine.transactions.producers import InitResult, ProducerOfEpoch
from engine.transactions.records import TransactionRecord, decode_transaction_record
from engine.transactions.transaction import Transaction

COUNT = 4
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
SETTINGS = TransactionSettings(
    transaction_max_timeout_ms=900_000,
    transactional_id_expiration_ms=604_800_000,
    request_timeout_ms=30_000,
)


class MemoryLog:
    """Partitions of `__transaction_state`; an append is kept at once, held, or fails."""

    def __init__(self) -> None:
        self.partitions: dict[int, list[TransactionRecord]] = {}
        self.error_code = 0
        self.is_held = False
        self.timeouts_ms: list[int] = []
        #: How many records of each partition are below its high watermark; all if None.
        self.high_watermark: int | None = None
        self._held: list[Promise[int]] = []

    def append(
        self, partition: int, records: Sequence[TransactionRecord], *, timeout_ms: int
    ) -> Promise[int]:
        """Append, unless the log fails."""
        self.timeouts_ms.append(timeout_ms)
        if self.error_code:
            return Promise.of(self.error_code)
        self.partitions.setdefault(partition, []).extend(records)
        if not self.is_held:
            return Promise.of(0)
        self._held.append(Promise())
        return self._held[-1]

    def release(self, error_code: int = 0) -> None:
        """Answer the appends that are held up."""
        held, self._held, self.is_held = self._held, [], False
        for promise in held:
            promise.keep(error_code)

    def read(self, partition: int) -> Iterator[tuple[int, TransactionRecord]]:
        """Yield what was appended."""
        yield from enumerate(self.partitions.get(partition, []))

    def end_offset(self, partition: int) -> int:
        """Return how many records there are."""
        return len(self.partitions.get(partition, ()))

    def is_committed(self, partition: int, end_offset: int) -> bool:
        """Compare with the high watermark that was set."""
        return self.high_watermark is None or end_offset <= self.high_watermark

    def partition_count(self) -> int:
        """Return a few."""
        return COUNT

    def states(self) -> list[str]:
        """Return the states that were written, in order; `-` for a tombstone."""
        found = []
        for records in self.partitions.values():
            for record in records:
                _, transaction = decode_transaction_record(record)
                found.append("-" if transaction is None else transaction.state.value)
        return found


class MemoryChannels:
    """Leaders of partitions; each answers at once with a code, or when it is let."""

    def __init__(self) -> None:
        #: None for a partition that is gone.
        self.leaders: dict[TopicPartition, int | None] = {}
        self.codes: dict[TopicPartition, int] = {}
        self.error: EngineError | None = None
        self.is_held = False
        self.written: list[tuple[int, tuple[Marker, ...]]] = []
        self._held: list[tuple[Promise[list[MarkerCodes]], tuple[Marker, ...]]] = []

    def leader_of(self, partition: TopicPartition) -> int | None:
        """Return broker 1 if nothing else was set."""
        return self.leaders.get(partition, 1)

    def write(self, broker_id: int, markers: Sequence[Marker]) -> Promise[list[MarkerCodes]]:
        """Take markers."""
        self.written.append((broker_id, tuple(markers)))
        if self.error is not None:
            return Promise.failed(self.error)
        promise: Promise[list[MarkerCodes]] = Promise()
        if self.is_held:
            self._held.append((promise, tuple(markers)))
        else:
            promise.keep(self._codes(markers))
        return promise

    def release(self) -> None:
        """Answer the requests that are held up."""
        held, self._held, self.is_held = self._held, [], False
        for promise, markers in held:
            promise.keep(self._codes(markers))

    def _codes(self, markers: Sequence[Marker]) -> list[MarkerCodes]:
        return [{key: self.codes.get(key, 0) for key in marker.partitions} for marker in markers]


class Stage:
    """One coordinator of all partitions in epoch 1, and requests put to it in few words."""

    def __init__(
        self, log: MemoryLog | None = None, settings: TransactionSettings = SETTINGS
    ) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.log = log or MemoryLog()
        self.channels = MemoryChannels()
        self.next_producer_id = 100
        ports = TransactionPorts(self.clock, self.timers, self.log, self.channels, self._new_id)
        turns = LoopTurns(self.timers, self.clock)
        self.coordinator = TransactionCoordinator(settings, ports, turns)
        for partition in range(COUNT):
            self.coordinator.registry.on_elected(partition, 1)

    def _new_id(self) -> int:
        self.next_producer_id += 1
        return self.next_producer_id - 1

    def transaction(self, transactional_id: str = "x") -> Transaction:
        """Return what is known of an id that is."""
        found = self.coordinator.registry.find(transactional_id).transaction
        assert found is not None
        return found

    @property
    def state(self) -> str:
        """Return the state of id x."""
        return self.transaction().state.value

    def init(
        self,
        transactional_id: str = "x",
        *,
        timeout_ms: int = 60_000,
        expected: tuple[int, int] | None = None,
    ) -> InitResult:
        """Send InitProducerId."""
        own = None if expected is None else ProducerOfEpoch(*expected)
        begun = self.coordinator.producers.init_producer(transactional_id, timeout_ms, own)
        self.timers.run_until_idle()
        return begun.result()

    def add(
        self, *partitions: TopicPartition, epoch: int = 0, producer_id: int = 100
    ) -> Promise[int]:
        """Send AddPartitionsToTxn for id x."""
        return self.coordinator.partitions.add_partitions("x", producer_id, epoch, partitions)

    def end(
        self, *, is_commit: bool = True, epoch: int = 0, producer_id: int = 100
    ) -> Promise[int]:
        """Send EndTxn for id x; markers are sent in the next turn."""
        ended = self.coordinator.ends.end_transaction("x", producer_id, epoch, is_commit=is_commit)
        self.timers.run_until_idle()
        return ended

    def begun(self, *partitions: TopicPartition) -> Stage:
        """Have id x in a transaction with some partitions."""
        assert 0 == self.init().error_code
        assert 0 == self.add(*partitions or (T0,)).result()
        return self

    def again(self) -> Stage:
        """Return another broker that coordinates by the same log."""
        other = Stage(self.log)
        other.timers.run_until_idle()
        return other

    def abort_timed_out(self) -> None:
        """Look for transactions that take too long."""
        for _ in self.coordinator.ends.abort_timed_out():
            pass
        self.timers.run_until_idle()

    def expire(self) -> None:
        """Look for ids that nobody uses."""
        for _ in self.coordinator.admin.expire_ids():
            pass


class Slow(MemoryLog):
    """A log that is read in many turns of the loop."""

    def __init__(self, stage: Stage | None = None) -> None:
        super().__init__()
        self.stage = stage
        self.read_count = 0

    def read(self, partition: int) -> Iterator[tuple[int, TransactionRecord]]:
        """Yield what was appended, each a second later."""
        self.read_count += 1
        for entry in super().read(partition):
            if self.stage is not None:
                self.stage.clock.advance(1_000)
            yield entry
