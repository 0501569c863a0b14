"""Transactions whose end is in damaged bytes: decided by the index, or reported."""

from __future__ import annotations

import pytest

from engine.analysis.columns import RECORDS, choose_columns
from engine.analysis.isolation import hide_uncommitted
from engine.analysis.problem import Problem
from engine.analysis.record_batches import SplitRecords
from engine.analysis.splits import Selection, Split, plan_splits
from engine.host.memory import MemoryFiles
from engine.log.txn_index import AbortedTransaction, encode_txn_index
from engine.naming import FileKind
from engine.records.batch_header import DELETE_HORIZON_FLAG, set_crc
from engine.records.control import MARKER_BATCH_BYTES, ControlType
from engine.records.crc import crc32c
from tests.unit.log.logs import batch, data_of, log_of, marker_of, name_of, put

ABORT, COMMIT = ControlType.ABORT, ControlType.COMMIT
#: Producer 7: offsets 0 and 2, and 6 in a second transaction; 8: offset 1.
Entries = tuple[AbortedTransaction, ...]


def _log(first: ControlType, second: ControlType | None = COMMIT) -> list[bytes]:
    parts = [
        data_of(7, 0), data_of(8, 1), data_of(7, 2), marker_of(7, 3, first),
        marker_of(8, 4, ABORT), batch(5), data_of(7, 6),
    ]  # fmt: skip
    return [*parts, marker_of(7, 7, second)] if second is not None else parts


def _index(first: ControlType, second: ControlType | None = COMMIT) -> Entries:
    entries = [AbortedTransaction(8, 1, 4, 5)]
    if first is ABORT:
        entries.insert(0, AbortedTransaction(7, 0, 3, 1))
    if second is ABORT:
        entries.append(AbortedTransaction(7, 6, 7, 8))
    return tuple(entries)


def _disk(parts: list[bytes], entries: Entries | None) -> MemoryFiles:
    files = log_of({0: b"".join(parts)})
    if entries is not None:
        put(files, name_of(0, FileKind.TXNINDEX), encode_txn_index(entries))
    return files


def _damaged(parts: list[bytes], number: int) -> list[bytes]:
    damaged = bytearray(parts[number])
    damaged[30] ^= 1
    return [*parts[:number], bytes(damaged), *parts[number + 1 :]]


def _committed(files: MemoryFiles) -> tuple[list[int], list[Problem], list[Split]]:
    """Return the offsets that a reader is given, the problems, the splits."""
    splits, problems = hide_uncommitted(files, plan_splits(files, ["/data"], Selection()))
    records = SplitRecords(files, choose_columns(RECORDS, ["offset"]), include_control=False)
    found = [
        offset
        for split in splits
        for rows in records.batches_of(split)
        for offset in rows.to_pydict()["offset"]
    ]
    return found, problems, splits


def test_a_marker_is_a_batch_of_its_size() -> None:
    assert MARKER_BATCH_BYTES == len(marker_of(7, 3))


@pytest.mark.parametrize("second", [COMMIT, ABORT])
@pytest.mark.parametrize(("first", "given"), [(COMMIT, [0, 2]), (ABORT, [])])
def test_an_index_that_fits_the_log_decides(
    first: ControlType, given: list[int], second: ControlType
) -> None:
    files = _disk(_damaged(_log(first, second), 3), _index(first, second))
    offsets, problems, _ = _committed(files)
    assert [*given, 5, *([6] if second is COMMIT else [])] == offsets
    assert [] == problems


@pytest.mark.parametrize("first", [COMMIT, ABORT])
@pytest.mark.parametrize(
    "entries",
    [
        None,
        (),
        (AbortedTransaction(8, 0, 4, 5),),
        (AbortedTransaction(9, 1, 4, 5),),
        (AbortedTransaction(8, 1, 4, 5), AbortedTransaction(8, 5, 5, 6)),
    ],
)
def test_what_no_index_decides_is_left_out_and_reported(
    first: ControlType, entries: Entries | None
) -> None:
    offsets, problems, _ = _committed(_disk(_damaged(_log(first), 3), entries))
    assert [5, 6] == offsets
    assert {("undecided", sum(map(len, _log(first)[:3])))} == {
        (problem.code, problem.position) for problem in problems
    }
    # The marker may have been the other producer's, too, and its next one that of no data.
    assert ["7", "8"] == sorted(p.message.split("producer ")[1][0] for p in problems)
    assert "offsets 0 to 2" in "".join(p.message for p in problems)


def test_a_transaction_that_ended_before_the_damage_is_decided() -> None:
    parts = _damaged([*_log(ABORT), batch(8), marker_of(9, 9)], 9)
    assert ([5, 6, 8], []) == _committed(_disk(parts, None))[:2]


def test_damage_of_another_size_than_a_marker_is_none() -> None:
    parts = _damaged([data_of(7, 0), batch(1, 5), marker_of(7, 6, COMMIT)], 1)
    assert ([0], []) == _committed(_disk(parts, None))[:2]


def test_without_a_later_marker_an_open_transaction_and_a_lost_end_are_distinguished() -> None:
    parts = _log(COMMIT, None)
    offsets, problems, _ = _committed(_disk(parts, _index(COMMIT)))
    assert ([0, 2, 5], []) == (offsets, problems)
    offsets, problems, _ = _committed(_disk(_damaged(parts, 3), _index(COMMIT)))
    assert [5] == offsets
    assert ["undecided"] == [p.code for p in problems]


def test_a_marker_that_is_missing_with_its_offsets_is_in_doubt_too() -> None:
    parts = _log(ABORT)
    del parts[3]
    offsets, problems, _ = _committed(_disk(parts, None))
    assert [5, 6] == offsets
    assert {"undecided"} == {p.code for p in problems}
    assert ([5, 6], []) == _committed(_disk(parts, _index(ABORT)))[:2]


def test_an_unfinished_last_write_leaves_a_transaction_open() -> None:
    parts = [data_of(8, 0), marker_of(8, 1, COMMIT), data_of(7, 2), marker_of(7, 3)[:-5]]
    assert ([0], []) == _committed(_disk(parts, None))[:2]


def test_only_splits_with_aborted_records_know_of_them() -> None:
    files = MemoryFiles()
    segments = {
        20 * n: b"".join((data_of(7, 20 * n), marker_of(7, 20 * n + 1, ABORT if n % 2 else COMMIT)))
        + batch(20 * n + 2, 18)
        for n in range(6)
    }
    files = log_of(segments)
    _, _, splits = _committed(files)
    assert [(), ((7, 20, 21),), (), ((7, 60, 61),), (), ((7, 100, 101),)] == [
        split.aborted for split in splits
    ]


def _cleaned(marker: bytes) -> bytes:
    """Return a marker as the cleaner leaves it: with the time from which it may be removed."""
    cleaned = bytearray(marker)
    cleaned[22] |= DELETE_HORIZON_FLAG
    set_crc(cleaned, 0, crc32c(cleaned[21:]))
    return bytes(cleaned)


def test_offsets_that_compaction_took_are_no_damage_wherever_the_sign_of_it_is() -> None:
    sparse = data_of(7, 100) + data_of(7, 105) + marker_of(7, 107, COMMIT) + batch(108)
    sign = data_of(7, 0) + data_of(7, 3) + _cleaned(marker_of(7, 5, COMMIT))
    files = log_of({0: sign, 100: sparse, 120: batch(120)})
    offsets, problems, splits = _committed(files)
    assert ([0, 3, 100, 105, 108, 120], []) == (offsets, problems)
    assert [()] * 3 == [split.aborted for split in splits]
    last = data_of(7, 110) + data_of(7, 115) + _cleaned(marker_of(7, 117, COMMIT))
    offsets, problems, _ = _committed(
        log_of({0: data_of(7, 0), 100: sparse, 110: last, 118: batch(118)})
    )
    assert ([0, 100, 105, 108, 110, 115, 118], []) == (offsets, problems)
