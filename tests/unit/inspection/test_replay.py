"""The records of logs once more: which, in what order, and when."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from engine.errors import CorruptRecord
from engine.host.memory import MemoryFiles
from engine.host.real import RealFiles
from engine.inspection.replay import (
    NoSuchTopic,
    Pace,
    ReplayBounds,
    SourceRecord,
    partitions_of,
    source_records,
)
from engine.log.directory.log_dir import HoldsPartitions, find_log_dir
from engine.records.control import ControlType
from engine.records.record import NO_TIMESTAMP
from tests.golden_cases import GOLDEN, case_dir, truth_files, truth_rows
from tests.open_files import open_below
from tests.unit.log.logs import (
    DIR,
    TIME_MS,
    batch,
    data_of,
    get,
    log_of,
    marker_of,
    name_of,
    partition_of,
    put,
    put_segment,
)

ALL = ReplayBounds()


def offsets(files: MemoryFiles, bounds: ReplayBounds = ALL) -> list[int]:
    return [record.offset for record in source_records(files, [partition_of(files)], bounds)]


def records_of(case: str, topic: str) -> list[SourceRecord]:
    files = RealFiles()
    log_dir = find_log_dir(files, str(case_dir(case) / "data"))
    return list(source_records(files, partitions_of(log_dir, topic), ALL))


def truth_of(path: Path) -> list[dict[str, Any]]:
    return sorted(truth_rows(path), key=lambda row: (row["partition"], row["offset"]))


def plain(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode()


@pytest.mark.parametrize("case", ["plain", "txn", "codecs", "formats"])
def test_records_are_those_that_a_committed_reader_sees(case: str) -> None:
    paths = {path.name.split(".read_")[0]: path for path in reversed(truth_files(case))}
    compared = 0
    for topic, path in paths.items():
        if topic.startswith("__") or not (GOLDEN / case / "data" / f"{topic}-0").exists():
            continue
        expected = truth_of(path)
        # A reader stops where a transaction is open; a replay takes what is behind it.
        ends = {row["partition"]: row["offset"] for row in expected}
        found = sorted(records_of(case, topic), key=lambda r: (r.partition, r.offset))
        found = [record for record in found if record.offset <= ends[record.partition]]
        assert [(row["partition"], row["offset"]) for row in expected] == [
            (record.partition, record.offset) for record in found
        ], topic
        for row, record in zip(expected, found, strict=True):
            assert (row["key"], row["value"]) == (plain(record.key), plain(record.value))
        compared += len(found)
    assert compared > 100


def test_the_order_is_that_of_times_and_of_offsets_in_each_partition() -> None:
    files = MemoryFiles()
    times = {0: (10, 50, 60), 1: (20, 15, 55)}
    for number, moments in times.items():
        files.make_dir(f"/data/t-{number}")
        content = b"".join(batch(n, at_ms=moment) for n, moment in enumerate(moments))
        put_segment(files, 0, content, path=f"/data/t-{number}")
    put(files, "meta.properties", b"version=0\n", "/data")
    partitions = partitions_of(find_log_dir(files, "/data"), None)
    found = list(source_records(files, partitions, ALL))
    assert [(0, 0), (1, 0), (1, 1), (0, 1), (1, 2), (0, 2)] == [
        (record.partition, record.offset) for record in found
    ]
    assert [10, 20, 20, 50, 55, 60] == [record.order_ms for record in found]
    assert {"t"} == {record.topic for record in found}


def test_bounds_are_of_offsets_and_of_times() -> None:
    logs = {
        base: b"".join(batch(base + n, at_ms=100 + base + n) for n in range(5)) for base in (0, 5)
    }
    files = log_of(logs)
    assert offsets(files) == list(range(10))
    assert offsets(files, ReplayBounds(from_offset=3, to_offset=7)) == [3, 4, 5, 6]
    assert offsets(files, ReplayBounds(from_offset=5)) == [5, 6, 7, 8, 9]
    times = ReplayBounds(from_timestamp_ms=102, to_timestamp_ms=104)
    assert offsets(files, times) == [2, 3]


def test_bounds_cut_within_a_batch() -> None:
    files = log_of({0: batch(0, 4) + batch(4, 4)})
    assert offsets(files, ReplayBounds(from_offset=2, to_offset=6)) == [2, 3, 4, 5]


def test_what_was_aborted_and_markers_are_left_out() -> None:
    from engine.log.txn_index import AbortedTransaction, encode_txn_index
    from engine.naming import FileKind

    log = data_of(7, 0) + data_of(8, 1) + marker_of(7, 2) + marker_of(8, 3, ControlType.COMMIT)
    files = log_of({0: log + data_of(7, 4)})
    index = encode_txn_index([AbortedTransaction(7, 0, 2, 0)])
    put(files, name_of(0, FileKind.TXNINDEX), index)
    assert offsets(files) == [1, 4]


def test_damage_ends_it_behind_what_is_good() -> None:
    files = log_of({0: b"".join(batch(n) for n in range(3))})
    content = bytearray(get(files, name_of(0)))
    content[-1] ^= 1
    put(files, name_of(0), bytes(content))
    records = source_records(files, [partition_of(files)], ALL)
    assert [next(records).offset, next(records).offset] == [0, 1]
    with pytest.raises(CorruptRecord):
        next(records)


def test_logs_that_are_read_are_closed_also_where_that_ends_early() -> None:
    files = RealFiles()
    folder = case_dir("plain") / "data"
    partitions = partitions_of(find_log_dir(files, str(folder)), "clicks")
    assert list(source_records(files, partitions, ALL))
    assert [] == open_below(folder)
    records = source_records(files, partitions, ALL)
    next(records)
    assert [] != open_below(folder)
    records.close()
    assert [] == open_below(folder)


def test_bytes_are_reported_as_they_are_read() -> None:
    files = log_of({0: batch(0) + batch(1)})
    sizes: list[int] = []
    list(source_records(files, [partition_of(files)], ALL, on_read=sizes.append))
    assert sum(sizes) == files.size_bytes(f"{DIR}/{name_of(0)}")


def test_one_topic_is_meant() -> None:
    log_dir = find_log_dir(RealFiles(), str(case_dir("plain") / "data"))
    names = [folder.name for folder in partitions_of(log_dir, "orders")]
    assert names == ["orders-0", "orders-1", "orders-2"]
    with pytest.raises(NoSuchTopic) as missing:
        partitions_of(log_dir, "none")
    assert missing.value.hint == "there is bulk, clicks, orders, solo"
    with pytest.raises(HoldsPartitions) as several:
        partitions_of(log_dir, None)
    assert several.value.hint == "name the topic, such as --topic bulk"


@pytest.mark.parametrize(
    ("speed", "expected"),
    [(1.0, [500, 600, 1500]), (10.0, [500, 510, 600]), (0.5, [500, 700, 2500])],
)
def test_records_are_due_as_far_apart_as_their_times(speed: float, expected: list[int]) -> None:
    pace = Pace(speed)
    now_ms = iter((500, 550, 560))
    assert expected == [pace.due_ms(order_ms, next(now_ms)) for order_ms in (1000, 1100, 2000)]


def test_without_a_pace_all_is_due_at_once() -> None:
    pace = Pace(None)
    assert [pace.due_ms(order_ms, 7) for order_ms in (1000, 99_000)] == [7, 7]


def test_a_record_without_a_time_is_due_now_and_sets_no_pace() -> None:
    pace = Pace(1.0)
    assert [7, 8, 9] == [pace.due_ms(NO_TIMESTAMP, now_ms) for now_ms in (7, 8, 9)]
    assert [10, 110] == [pace.due_ms(order_ms, 10) for order_ms in (TIME_MS, TIME_MS + 100)]


def test_a_log_that_begins_without_a_time_goes_on_at_the_pace_of_those_that_have_one() -> None:
    times = (NO_TIMESTAMP, TIME_MS, NO_TIMESTAMP, TIME_MS + 50)
    log = b"".join(batch(offset, at_ms=time_ms) for offset, time_ms in enumerate(times))
    files = log_of({0: log})
    found = list(source_records(files, [partition_of(files)], ALL))
    orders = [record.order_ms for record in found]
    assert [NO_TIMESTAMP, TIME_MS, TIME_MS, TIME_MS + 50] == orders
