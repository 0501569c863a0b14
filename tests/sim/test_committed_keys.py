"""What cleaning may leave of a compacted log, and what the simulation takes for lost."""

from __future__ import annotations

import struct

import pytest

from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, BatchSettings
from engine.sim.clocks import ClockSpread
from engine.sim.committed_keys import CommittedKeys
from engine.sim.histories import History, Loss
from engine.sim.records import Sender, batches, build, keyed_records, numbers

STAY_MS = 1000
#: Offset, key, whether it is a tombstone: one batch of two records after the other.
WRITTEN = [
    (0, b"a", False), (1, b"b", False),
    (2, b"a", False), (3, b"c", False),
    (4, b"a", True), (5, b"b", False),
]  # fmt: skip
END = 6
#: Until then every tombstone is to be seen.
EARLY_MS, LATE_MS = STAY_MS - 1, STAY_MS


def log_of(*offsets: int) -> list[BatchView]:
    """Return the batches of a log that has only these records left."""
    found = []
    for base in (0, 2, 4):
        builder = BatchBuilder(BatchSettings(base_offset=base))
        for offset, key, is_tombstone in WRITTEN[base : base + 2]:
            if offset in offsets:
                said = b"p:%d" % offset
                value, headers = (None, (("id", said),)) if is_tombstone else (said, ())
                builder.append(1000, key, value, headers, offset=offset)
        if builder.record_count:
            found.append(BatchView(memoryview(builder.build(last_offset=base + 1))))
    return found


@pytest.fixture
def history() -> History:
    made = History("t-0", CommittedKeys(STAY_MS, lambda _since_ms: 0))
    for batch in log_of(*range(END)):
        made.commit(batch, 0)
    return made


def test_what_retention_may_have_deleted_is_not_counted(history: History) -> None:
    keys = history.keys
    assert keys is not None
    assert list(range(END)) == [record.offset for record in keys.records()]
    assert [3, 4, 5] == [record.offset for record in keys.records(3)]


@pytest.mark.parametrize(("now_ms", "owed"), [(EARLY_MS, [3, 4, 5]), (LATE_MS, [3, 5])])
def test_last_records_are_owed_and_tombstones_for_their_time(
    history: History, now_ms: int, owed: list[int]
) -> None:
    assert history.keys is not None
    assert owed == sorted(history.keys.required_offsets(now_ms))


@pytest.mark.parametrize("left", [range(END), (1, 2, 3, 4, 5), (3, 4, 5), (0, 3, 4, 5)])
def test_outdated_records_may_be_gone_or_not(history: History, left: tuple[int, ...]) -> None:
    assert "" == history.fault_of(log_of(*left), END, EARLY_MS)


@pytest.mark.parametrize("left", [(3, 4), (4, 5), (1, 3, 4), ()])
def test_a_last_value_that_is_gone_is_seen(history: History, left: tuple[int, ...]) -> None:
    assert history.fault_of(log_of(*left), END, LATE_MS).startswith("lost")


@pytest.mark.parametrize(
    ("left", "now_ms", "is_lost"),
    [
        ((3, 5), EARLY_MS, True),
        ((3, 5), LATE_MS, False),
        # What it was to hide is there again.
        ((2, 3, 5), LATE_MS, True),
        ((0, 3, 5), LATE_MS, True),
    ],
)
def test_a_tombstone_stays_for_its_time_and_takes_its_values_with_it(
    history: History, left: tuple[int, ...], now_ms: int, *, is_lost: bool
) -> None:
    assert is_lost == bool(history.fault_of(log_of(*left), END, now_ms))


def test_a_replica_that_was_away_as_a_tombstone_went_may_keep_its_values(
    history: History,
) -> None:
    assert history.keys is not None
    history.keys.record_joined(EARLY_MS)
    assert history.fault_of(log_of(2, 3, 5), END, LATE_MS)
    history.keys.record_joined(LATE_MS)
    assert "" == history.fault_of(log_of(2, 3, 5), END, LATE_MS)
    assert history.fault_of(log_of(2, 3), END, LATE_MS)


def test_a_replica_that_lost_a_tombstone_may_keep_its_values(history: History) -> None:
    assert history.keys is not None
    history.keys.record_lost_writes(0, 5)
    # It kept the tombstone, at offset 4.
    assert history.fault_of(log_of(2, 3, 5), END, LATE_MS)
    history.keys.record_lost_writes(0, 4)
    assert history.fault_of(log_of(2, 3, 5), END, EARLY_MS)
    assert "" == history.fault_of(log_of(2, 3, 5), END, LATE_MS)


def test_where_clocks_are_apart_a_tombstone_goes_so_much_earlier(history: History) -> None:
    clocks = ClockSpread()
    apart = History("t-0", CommittedKeys(STAY_MS, clocks.since))
    for batch in log_of(*range(END)):
        apart.commit(batch, 100)
    assert apart.fault_of(log_of(3, 5), END, 100 + EARLY_MS)
    clocks.record_jump("b1", 150, 400)
    clocks.record_jump("b1", 160, 0)
    assert apart.fault_of(log_of(3, 5), END, 100 + EARLY_MS - 400)
    assert "" == apart.fault_of(log_of(3, 5), END, 100 + LATE_MS - 400)
    assert (400, 0) == (clocks.since(159), clocks.since(161))


def test_what_is_lost_may_have_superseded_what_is_not(history: History) -> None:
    history.lose(Loss(4, END, "a reason", 0), 1)
    # Of the keys a and b nothing has to be left, of c the last value.
    assert "" == history.fault_of(log_of(3), 4, EARLY_MS)
    assert history.fault_of(log_of(0, 1), 4, EARLY_MS)


def test_a_batch_that_nobody_committed_is_seen(history: History) -> None:
    builder = BatchBuilder(BatchSettings(base_offset=2))
    builder.append(1000, b"a", b"p:7")
    (other,) = batches(bytes(builder.build(last_offset=3)))
    assert not history.has(other)
    assert "committed" in history.fault_of([other, *log_of(3, 4, 5)], END, LATE_MS)
    assert all(history.has(batch) for batch in log_of(1, 4))


def test_only_the_part_that_is_requested_has_to_be_there(history: History) -> None:
    assert "" == history.cleaning_fault([], 0, 3, LATE_MS)
    assert history.cleaning_fault([], 0, 4, LATE_MS)
    assert "" == history.cleaning_fault(log_of(5), 4, END, LATE_MS)


def test_what_is_sent_again_has_the_same_keys_and_tombstones() -> None:
    sender = Sender("p", is_keyed=True)
    first, again = (next(batches(build(sender, 0, 40, now_ms))) for now_ms in (1, 2))
    records = list(keyed_records(first))
    assert records == list(keyed_records(again))
    assert list(range(40)) == [number for _, _, number in numbers(build(sender, 0, 40, 1))]
    assert 1 < len({record.key for record in records}) < 40
    assert {True, False} == {record.is_tombstone for record in records}


def test_batches_end_before_a_length_that_no_batch_has() -> None:
    whole = build(Sender("p"), 0, 1, now_ms=1)
    damaged = bytearray(whole + whole)
    struct.pack_into(">i", damaged, len(whole) + 8, -(1 << 31) + 20)
    assert 1 == len(list(batches(bytes(damaged))))
