"""One partition in one row."""

from __future__ import annotations

from engine.inspection.partition_summary import summarize
from engine.log.directory.log_dir import find_log_dir
from engine.log.directory.offset_checkpoint import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from engine.naming import FileKind
from tests.unit.log.logs import DIR, batch, log_of, name_of, put

UUID = "8K4IcCorRNC2tJ_T-wo19A"


def test_a_partition_has_its_sizes_and_offsets_in_one_row() -> None:
    files = log_of({3: batch(3, 2), 5: batch(5, 5)})
    put(files, "partition.metadata", f"version: 0\ntopic_id: {UUID}".encode())
    put(files, name_of(0) + ".deleted", b"x")
    for name, offset in ((HIGH_WATERMARKS, 9), (RECOVERY_POINTS, 5), (LOG_STARTS, 4)):
        put(files, name, b"0\n1\nt 0 %d\n" % offset, "/data")
    found = find_log_dir(files, "/data")
    row = summarize(files, found.partitions[0], found.state)
    assert row == (
        "t-0", "live", "t", 0, UUID, 2, len(batch(3, 2)) + len(batch(5, 5)), 4, 10, 9, 5, 1, DIR,
    )  # fmt: skip


def test_what_nothing_says_is_left_empty() -> None:
    files = log_of({7: b""})
    put(files, "partition.metadata", b"damaged")
    files.rename(DIR, "/data/copy")
    found = find_log_dir(files, "/data/copy")
    row = summarize(files, found.partitions[0], found.state)
    assert (row.kind, row.topic, row.partition, row.topic_id) == ("copy", None, None, None)
    assert (row.log_start_offset, row.log_end_offset, row.high_watermark) == (7, 7, None)


def test_a_partition_without_segments_has_no_offsets() -> None:
    files = log_of({})
    found = find_log_dir(files, "/data")
    row = summarize(files, found.partitions[0], found.state)
    assert (row.segments, row.log_start_offset, row.log_end_offset) == (0, None, None)


def test_a_lost_index_costs_only_time() -> None:
    files = log_of({0: batch(0, 5)})
    files.remove(f"{DIR}/{name_of(0, FileKind.INDEX)}")
    found = find_log_dir(files, "/data")
    assert summarize(files, found.partitions[0], found.state).log_end_offset == 5
