"""What a check finds in a partition, and what it does not complain about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.host.memory import MemoryFiles
from engine.host.ports import File
from engine.inspection.findings import Finding, Severity
from engine.inspection.verify import (
    PartitionReport,
    VerifyOptions,
    verify_duplicates,
    verify_log_dir,
    verify_partition,
)
from engine.log.directory.leader_epoch_checkpoint import EpochStart, encode_leader_epochs
from engine.log.directory.log_dir import find_log_dir, read_log_dir
from engine.log.producer_snapshot import encode_producer_snapshot
from engine.log.txn_index import AbortedTransaction, encode_txn_index
from engine.naming import FileKind
from engine.records.codec import Codec
from engine.records.control import ControlType
from engine.records.legacy_builder import LegacySettings, write_message
from tests.unit.log.logs import (
    DIR,
    batch,
    data_of,
    get,
    log_of,
    marker_of,
    name_of,
    partition_of,
    put,
)

INDEX, TIMES, ABORTED = FileKind.INDEX, FileKind.TIMEINDEX, FileKind.TXNINDEX


def run(files: MemoryFiles, path: str = DIR, **options: object) -> PartitionReport:
    found = find_log_dir(files, path)
    return verify_partition(files, found.partitions[0], found.state, VerifyOptions(**options))


def codes(report: PartitionReport) -> list[str]:
    return [finding.code for finding in report.findings]


def two_segments() -> MemoryFiles:
    """Return offsets 0…9 and 10…19, one record a batch."""
    first = b"".join(batch(n) for n in range(10))
    second = b"".join(batch(n) for n in range(10, 20))
    return log_of({0: first, 10: second})


def change(files: MemoryFiles, name: str, edit: Callable[[bytearray], object]) -> None:
    content = bytearray(get(files, name))
    edit(content)
    put(files, name, bytes(content))


def flip(position: int) -> Callable[[bytearray], object]:
    def edit(content: bytearray) -> None:
        content[position] ^= 0xFF

    return edit


def sized(position: int, length: int) -> Callable[[bytearray], object]:
    def edit(content: bytearray) -> None:
        content[position + 8 : position + 12] = length.to_bytes(4, "big")

    return edit


def test_a_healthy_partition_has_no_findings() -> None:
    report = run(two_segments(), deep=True)
    assert report.findings == ()
    assert (report.segments, report.batches) == (2, 20)
    assert (report.first_offset, report.next_offset) == (0, 20)
    assert report.problems == 0


def test_an_empty_partition_is_healthy() -> None:
    report = run(log_of({0: b""}, epochs=()))
    assert (report.findings, report.first_offset, report.next_offset) == ((), None, None)


def test_a_changed_byte_is_found_where_it_is() -> None:
    files = two_segments()
    size = len(batch(0))
    change(files, name_of(0), flip(3 * size + size - 1))
    report = run(files)
    finding, gap = report.findings
    assert (finding.code, finding.position) == ("batch-crc", 3 * size)
    assert (gap.code, gap.position, gap.expected, gap.got) == ("offset-gap", 4 * size, 3, 4)
    assert finding.severity is Severity.ERROR
    assert finding.path == f"{DIR}/{name_of(0)}"


def test_a_bad_size_is_stepped_over_to_the_next_good_batch() -> None:
    files = two_segments()
    size = len(batch(0))
    change(
        files, name_of(0), lambda c: c.__setitem__(slice(3 * size + 8, 3 * size + 12), b"\0\0\0\5")
    )
    report = run(files)
    assert codes(report)[:2] == ["batch-size", "bytes-skipped"]
    assert report.findings[1].message == f"{size} bytes up to position {4 * size} are no batch"
    assert report.batches == 19


def test_a_size_beyond_the_file_is_stepped_over_as_well() -> None:
    files = two_segments()
    size = len(batch(0))
    change(
        files,
        name_of(0),
        lambda c: c.__setitem__(slice(3 * size + 8, 3 * size + 12), b"\x7f\0\0\0"),
    )
    assert codes(run(files))[:2] == ["batch-size", "bytes-skipped"]


@pytest.mark.parametrize(("base_offset", "severity"), [(0, Severity.ERROR), (10, Severity.WARNING)])
def test_a_torn_tail_is_normal_only_in_the_last_segment(
    base_offset: int, severity: Severity
) -> None:
    files = two_segments()
    put(files, name_of(base_offset), get(files, name_of(base_offset)) + batch(99)[:40])
    (finding,) = [f for f in run(files).findings if f.code == "torn-tail"]
    assert finding.severity is severity
    assert finding.position == 10 * len(batch(0))


@pytest.mark.parametrize("zeros", [5, 4096])
def test_zeros_at_the_end_are_preallocated_space(zeros: int) -> None:
    files = two_segments()
    put(files, name_of(10), get(files, name_of(10)) + bytes(zeros))
    (finding,) = run(files).findings
    assert (finding.code, finding.severity) == ("zero-tail", Severity.WARNING)


def test_garbage_at_the_end_is_counted_as_lost() -> None:
    files = two_segments()
    put(files, name_of(10), get(files, name_of(10)) + b"\xff" * 300)
    assert codes(run(files)) == ["batch-size", "bytes-skipped"]


def test_damage_everywhere_ends_the_reading_of_a_segment() -> None:
    bad = batch(0)[:8] + bytes(4)
    log = b"".join(bad + batch(n) for n in range(200))
    files = log_of({0: b""})
    put(files, name_of(0), log)
    report = run(files)
    assert report.batches < 110
    (unread,) = [f for f in report.findings if f.code == "segment-unread"]
    # Each damage is one bad head and read up to the good batch behind it.
    assert 100 * len(bad) + 99 * len(batch(0)) == unread.position


def test_a_magic_byte_above_two_is_found_although_no_checksum_covers_it() -> None:
    files = two_segments()
    change(files, name_of(0), lambda c: c.__setitem__(16, 9))
    assert codes(run(files)) == ["batch-magic"]


def test_a_negative_magic_byte_loses_the_batch() -> None:
    files = two_segments()
    change(files, name_of(0), lambda c: c.__setitem__(16, 0x80))
    assert "batch-magic" in codes(run(files))


def test_missing_offsets_are_found() -> None:
    report = run(log_of({0: batch(0) + batch(5), 10: batch(10)}))
    assert codes(report) == ["offset-gap", "offset-gap"]
    assert (report.findings[0].expected, report.findings[0].got) == (1, 5)
    assert report.findings[1].path.endswith(name_of(10))


@pytest.mark.parametrize("sign", ["told", "name", "cleaner", "count", "horizon"])
def test_gaps_of_a_compacted_log_are_none(sign: str) -> None:
    kept = batch(5, 2)
    if sign == "horizon":
        kept = batch(5, delete_horizon_ms=1_800_000_000_000)
    files = log_of({0: batch(0) + kept + batch(9)})
    path = DIR
    if sign == "count":
        # Four offsets, one record: the header's count is part of what the checksum covers.
        from engine.records.builder import BatchBuilder, BatchSettings

        builder = BatchBuilder(BatchSettings(base_offset=5, leader_epoch=0))
        builder.append(1_700_000_000_005, b"k", b"v")
        put(files, name_of(0), batch(0) + bytes(builder.build(last_offset=7)) + batch(9))
        files.remove(f"{DIR}/{name_of(0, INDEX)}")
        files.remove(f"{DIR}/{name_of(0, TIMES)}")
    if sign == "name":
        path = "/data/__consumer_offsets-0"
        files.rename(DIR, path)
    if sign == "cleaner":
        put(files, "cleaner-offset-checkpoint", b"0\n1\nt 0 9\n", "/data")
    report = run(files, path, compacted=True if sign == "told" else None)
    assert "offset-gap" not in codes(report)


def test_gaps_are_errors_when_the_log_is_said_to_be_whole() -> None:
    files = log_of({0: batch(0) + batch(5, delete_horizon_ms=1_800_000_000_000)})
    assert "offset-gap" in codes(run(files, compacted=False))


def test_offsets_that_come_twice_are_found() -> None:
    report = run(log_of({0: batch(0, 3) + batch(2)}))
    assert codes(report) == ["offset-overlap"]


def test_segments_that_overlap_are_found() -> None:
    report = run(log_of({0: batch(0, 20), 10: batch(10, 20)}))
    assert codes(report) == ["offset-overlap", "offset-overlap"]


def test_a_batch_below_its_segment_is_found() -> None:
    report = run(log_of({0: batch(0, 10), 10: batch(1)}))
    assert "offset-below-base" in codes(report)


def test_an_offset_that_no_index_can_hold_is_found() -> None:
    files = log_of({0: batch(0)})
    put(files, name_of(0), batch(0) + batch(1 << 31))
    assert "offset-overflow" in codes(run(files))


def test_a_falling_leader_epoch_is_found() -> None:
    report = run(log_of({0: batch(0, epoch=3) + batch(1, epoch=2)}, epochs=(EpochStart(3, 0),)))
    assert codes(report) == ["epoch-order"]


@pytest.mark.parametrize(
    "epochs",
    [
        (EpochStart(0, 0), EpochStart(2, 5)),
        (EpochStart(0, 0), EpochStart(2, 5), EpochStart(3, 10)),
        (EpochStart(0, 3), EpochStart(2, 5)),
        (EpochStart(2, 7),),
    ],
)
def test_epochs_that_fit_the_batches_are_right(epochs: tuple[EpochStart, ...]) -> None:
    log = batch(0, 5, epoch=0) + batch(5, 5, epoch=2)
    assert run(log_of({0: log}, epochs=epochs)).findings == ()


@pytest.mark.parametrize(
    "epochs",
    [
        (EpochStart(0, 0),),
        (EpochStart(0, 0), EpochStart(2, 6)),
        (EpochStart(0, 0), EpochStart(2, 4)),
        (EpochStart(0, 0), EpochStart(2, 5), EpochStart(3, 7)),
        (EpochStart(0, 0), EpochStart(2, 5), EpochStart(3, 11)),
        (EpochStart(2, 5), EpochStart(0, 0)),
        (),
    ],
)
def test_epochs_that_contradict_the_batches_are_found(epochs: tuple[EpochStart, ...]) -> None:
    log = batch(0, 5, epoch=0) + batch(5, 5, epoch=2)
    assert set(codes(run(log_of({0: log}, epochs=epochs)))) == {"epochs-wrong"}


def test_a_lost_or_broken_epoch_checkpoint_is_found() -> None:
    files = two_segments()
    put(files, "leader-epoch-checkpoint", b"0\n7\n")
    assert codes(run(files)) == ["epochs-corrupt"]
    files.remove(f"{DIR}/leader-epoch-checkpoint")
    assert codes(run(files)) == ["epochs-absent"]


def test_missing_indexes_are_found() -> None:
    files = two_segments()
    files.remove(f"{DIR}/{name_of(0, INDEX)}")
    files.remove(f"{DIR}/{name_of(10, TIMES)}")
    assert codes(run(files)) == ["index-absent", "timeindex-absent"]


def test_an_empty_last_segment_may_have_no_indexes_yet() -> None:
    files = log_of({0: batch(0, 10), 10: b""})
    files.remove(f"{DIR}/{name_of(10, INDEX)}")
    files.remove(f"{DIR}/{name_of(10, TIMES)}")
    assert run(files).findings == ()


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (lambda c: c.append(0), ["index-corrupt"]),
        (lambda c: c.__setitem__(slice(0, 8), bytes(8)), ["index-order"]),
        (lambda c: c.__setitem__(slice(0, 4), b"\xff" * 4), ["index-order"]),
        (lambda c: c.__setitem__(slice(8, 16), bytes(8)), ["index-corrupt"]),
        (lambda c: c.__setitem__(7, c[7] + 1), ["index-entry"]),
        (lambda c: c.__setitem__(-6, 1), ["index-entry"]),
        (lambda c: c.extend(b"\0\0\0\x63\0\1\0\0"), ["index-entry"]),
        (lambda c: c.__setitem__(slice(0, 16), c[8:16] + c[0:8]), ["index-order"]),
        (lambda c: c.__setitem__(slice(-8, None), b"\xff" * 8), ["index-corrupt", "index-order"]),
    ],
)
def test_wrong_offset_index_entries_are_found(
    edit: Callable[[bytearray], object], expected: list[str]
) -> None:
    files = two_segments()
    change(files, name_of(0, INDEX), edit)
    report = run(files)
    assert sorted(codes(report)) == expected
    assert {f.severity for f in report.findings} == {Severity.WARNING}


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        (lambda c: c.append(0), ["timeindex-corrupt"]),
        (lambda c: c.__setitem__(7, c[7] + 1), ["timeindex-entry"]),
        (lambda c: c.__delitem__(slice(-12, None)), ["timeindex-entry"]),
        (lambda c: c.clear(), ["timeindex-entry"]),
        (
            lambda c: c.extend((1_800_000_000_000).to_bytes(8, "big") + b"\0\0\0\x63"),
            ["timeindex-entry"],
        ),
        (lambda c: c.__setitem__(slice(0, 24), c[12:24] + c[0:12]), ["timeindex-order"]),
    ],
)
def test_wrong_time_index_entries_are_found(
    edit: Callable[[bytearray], object], expected: list[str]
) -> None:
    files = two_segments()
    change(files, name_of(0, TIMES), edit)
    assert sorted(codes(run(files))) == expected


def test_a_followers_entry_may_span_several_batches() -> None:
    # One entry for the chunk of batches 3…6: its start, its last offset.
    files = two_segments()
    entry = (6).to_bytes(4, "big") + (3 * len(batch(0))).to_bytes(4, "big")
    put(files, name_of(0, INDEX), entry)
    assert run(files).findings == ()


def test_what_an_open_index_holds_behind_its_entries_is_only_a_note() -> None:
    files = two_segments()
    for kind in (INDEX, TIMES):
        size = 8 if kind is INDEX else 12
        content = get(files, name_of(10, kind))
        stale = content + content[:size] + bytes(20 * size)
        put(files, name_of(10, kind), stale)
    report = run(files)
    assert codes(report) == ["index-stale", "timeindex-stale"]
    assert report.problems == 0


def test_an_open_time_index_lacks_its_last_entry() -> None:
    files = two_segments()
    content = get(files, name_of(10, TIMES))
    put(files, name_of(10, TIMES), content[:-12] + bytes(120))
    assert run(files).findings == ()


def test_a_segment_with_damage_is_not_blamed_on_its_indexes() -> None:
    files = two_segments()
    size = len(batch(0))
    change(files, name_of(0), flip(9 * size + 30))
    assert codes(run(files)) == ["batch-crc", "offset-gap"]


def test_entries_for_bytes_that_cannot_be_read_are_not_blamed() -> None:
    files = two_segments()
    size = len(batch(0))
    change(files, name_of(0), sized(2 * size, 0))
    change(files, name_of(0), sized(3 * size, 0))
    change(files, name_of(10), sized(4 * size, 0))
    put(files, name_of(10), get(files, name_of(10))[: 4 * size] + b"\xff" * 6 * size)
    assert set(codes(run(files))) == {"batch-size", "bytes-skipped", "offset-gap"}


def transactions() -> bytes:
    """Return producers 1 and 2 with one aborted transaction each, 3 with a committed one."""
    return (
        data_of(1, 0)
        + data_of(2, 1)
        + data_of(3, 2)
        + marker_of(2, 3)
        + marker_of(3, 4, ControlType.COMMIT)
        + marker_of(1, 5)
        + marker_of(9, 6)
    )


RIGHT = (AbortedTransaction(2, 1, 3, 0), AbortedTransaction(1, 0, 5, 6))


def test_an_abort_is_in_the_transaction_index() -> None:
    files = log_of({0: transactions()})
    put(files, name_of(0, ABORTED), encode_txn_index(RIGHT))
    assert run(files).findings == ()


def test_aborts_without_an_index_are_errors() -> None:
    report = run(log_of({0: transactions()}))
    assert codes(report) == ["txnindex-absent", "txnindex-absent"]
    assert {f.severity for f in report.findings} == {Severity.ERROR}


@pytest.mark.parametrize(
    "entries",
    [
        RIGHT[:1],
        (*RIGHT, AbortedTransaction(1, 0, 9, 10)),
        (RIGHT[0], RIGHT[1]._replace(first_offset=1)),
        (RIGHT[0]._replace(last_stable_offset=3), RIGHT[1]),
        (RIGHT[0]._replace(producer_id=8), RIGHT[1]),
    ],
)
def test_a_wrong_transaction_index_is_found(entries: tuple[AbortedTransaction, ...]) -> None:
    files = log_of({0: transactions()})
    put(files, name_of(0, ABORTED), encode_txn_index(entries))
    assert codes(run(files)) == ["txnindex-entry"]


@pytest.mark.parametrize("content", [encode_txn_index(RIGHT) + b"\0", b"\0\7" + bytes(32)])
def test_a_broken_transaction_index_is_found(content: bytes) -> None:
    files = log_of({0: transactions()})
    put(files, name_of(0, ABORTED), content)
    assert "txnindex-corrupt" in codes(run(files))


def test_a_transaction_that_began_before_the_log_start_may_be_in_the_index() -> None:
    log = data_of(1, 10) + marker_of(1, 11) + marker_of(2, 12)
    files = log_of({10: log}, epochs=(EpochStart(0, 10),))
    entries = (AbortedTransaction(1, 4, 11, 7), AbortedTransaction(2, 7, 12, 13))
    put(files, name_of(10, ABORTED), encode_txn_index(entries))
    assert run(files).findings == ()


def test_snapshots_are_checked_and_placed() -> None:
    files = two_segments()
    good = encode_producer_snapshot([])
    for offset in (10, 20):
        put(files, name_of(offset, FileKind.SNAPSHOT), good)
    assert run(files).findings == ()
    put(files, name_of(10, FileKind.SNAPSHOT), good[:-1] + b"\1")
    put(files, name_of(5, FileKind.SNAPSHOT), good)
    put(files, name_of(21, FileKind.SNAPSHOT), good)
    report = run(files)
    assert [(f.code, f.severity) for f in report.findings] == [
        ("snapshot-place", Severity.NOTE),
        ("snapshot-corrupt", Severity.WARNING),
        ("snapshot-place", Severity.WARNING),
    ]


def test_leftovers_orphans_and_foreign_names_are_listed() -> None:
    files = two_segments()
    for name in (
        name_of(0) + ".deleted",
        name_of(0) + ".cleaned",
        name_of(0) + ".swap",
        name_of(5, INDEX),
        "notes.txt",
    ):
        put(files, name, b"")
    report = run(files)
    assert [(f.path.removeprefix(f"{DIR}/"), f.code, f.severity) for f in report.findings] == [
        (name_of(0) + ".cleaned", "leftover-file", Severity.NOTE),
        (name_of(0) + ".deleted", "leftover-file", Severity.NOTE),
        (name_of(0) + ".swap", "leftover-file", Severity.WARNING),
        (name_of(5, INDEX), "orphan-file", Severity.WARNING),
        ("notes.txt", "unknown-file", Severity.NOTE),
    ]


def test_partition_metadata_is_read() -> None:
    files = two_segments()
    put(files, "partition.metadata", b"version: 0\ntopic_id: 8K4IcCorRNC2tJ_T-wo19A")
    assert run(files).findings == ()
    put(files, "partition.metadata", b"version: 0\ntopic_id: 8K")
    assert codes(run(files)) == ["metadata-corrupt"]


def test_a_deep_check_opens_the_records() -> None:
    whole = bytearray(batch(0, 3, codec=Codec.GZIP))
    # Two records where three are announced: only the checksum of the header is right.
    whole[57:61] = (2).to_bytes(4, "big")
    from engine.records.crc import crc32c

    whole[17:21] = crc32c(whole[21:]).to_bytes(4, "big")
    files = log_of({0: bytes(whole)})
    assert "batch-records" not in codes(run(files, compacted=True))
    assert codes(run(files, deep=True, compacted=True)) == ["batch-records"]


def test_a_wrapper_that_does_not_decode_costs_no_offsets_but_its_own() -> None:
    log = bytearray()
    for offset, codec in enumerate((Codec.NONE, Codec.GZIP, Codec.NONE)):
        write_message(log, offset, None, b"no gzip", 5, LegacySettings(codec=codec))
    report = run(log_of({0: bytes(log)}), compacted=False)
    assert ["batch-records"] == [c for c in codes(report) if not c.startswith(("index", "time"))]


def test_so_many_findings_of_one_kind_are_enough() -> None:
    files = log_of({0: b"".join(batch(2 * n) for n in range(50))})
    report = run(files, compacted=False)
    assert codes(report) == ["offset-gap"] * 20 + ["findings-left-out"]
    assert report.findings[-1].message == "29 more of offset-gap"
    falling = b"".join(batch(n, epoch=50 - n) for n in range(40))
    report = run(log_of({0: falling}, epochs=(EpochStart(50, 0),)))
    assert codes(report) == ["epoch-order"] * 20 + ["findings-left-out"]


def test_a_log_directory_is_checked_for_itself() -> None:
    files = two_segments()
    put(files, "meta.properties", b"version=7", "/data")
    put(files, "notes", b"", "/data")
    found = verify_log_dir(read_log_dir(files, "/data"))
    assert [(f.code, f.severity) for f in found] == [
        ("checkpoint-corrupt", Severity.ERROR),
        ("unknown-file", Severity.NOTE),
    ]


def test_a_partition_that_is_live_twice_is_an_error() -> None:
    files = two_segments()
    files.make_dir("/other/t-0")
    dirs = [read_log_dir(files, path) for path in ("/data", "/other")]
    found = verify_duplicates(dirs)
    assert [f.path for f in found] == ["/data/t-0", "/other/t-0"]
    assert all(f.is_problem for f in found)


def test_nothing_is_written_by_a_check() -> None:
    files = two_segments()
    put(files, name_of(10), get(files, name_of(10)) + b"\xff" * 300)
    before = files.operations
    run(files, deep=True)
    assert files.operations == before


def test_a_finding_is_a_problem_unless_it_is_a_note() -> None:
    finding = Finding(Severity.NOTE, "x", "p", "m")
    assert not finding.is_problem
    assert finding._replace(severity=Severity.WARNING).is_problem


def test_the_epoch_checkpoint_is_compared_only_with_what_is_above_the_log_start() -> None:
    files = log_of({0: batch(0, 5, epoch=1) + batch(5, 5, epoch=2)})
    put(files, "leader-epoch-checkpoint", encode_leader_epochs([EpochStart(2, 8)]))
    assert run(files).findings == ()
    assert partition_of(files).name == "t-0"


@pytest.mark.parametrize("entries_left", [0, 1])
def test_the_last_segment_s_time_index_may_end_early(entries_left: int) -> None:
    files = log_of({base: b"".join(batch(base + n) for n in range(10)) for base in (0, 10)})
    for kind, size in ((FileKind.INDEX, 8), (FileKind.TIMEINDEX, 12)):
        name = name_of(10, kind)
        put(files, name, get(files, name)[: size * entries_left])
    assert verify_partition(files, partition_of(files)).findings == ()


def test_an_older_segment_s_time_index_must_not() -> None:
    files = log_of({base: b"".join(batch(base + n) for n in range(10)) for base in (0, 10)})
    put(files, name_of(0, FileKind.TIMEINDEX), b"")
    (finding,) = verify_partition(files, partition_of(files)).findings
    assert finding.code == "timeindex-entry"


def test_what_is_in_the_last_segment_s_time_index_must_be_right() -> None:
    files = log_of({0: b"".join(batch(n) for n in range(10))})
    name = name_of(0, FileKind.TIMEINDEX)
    wrong = bytearray(get(files, name))
    wrong[7] += 1
    put(files, name, bytes(wrong))
    assert "timeindex-entry" in {
        finding.code for finding in verify_partition(files, partition_of(files)).findings
    }


class Growing:
    """An open .log that gets its last bytes after it was read for the first time."""

    def __init__(self, file: File, grow: Callable[[], None]) -> None:
        self._file = file
        self._grow = grow

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read_into(self, position: int, buffer: memoryview) -> int:
        count = self._file.read_into(position, buffer)
        self._grow()
        return count


class GrowingFiles(MemoryFiles):
    """A disk on which a broker ends its write while somebody reads."""

    rest = b""

    def open(self, path: str, *, write: bool = False, create: bool = False) -> File:
        file = super().open(path, write=write, create=create)
        return file if write else Growing(file, self.grow)

    def grow(self) -> None:
        rest, self.rest = self.rest, b""
        super().open(f"{DIR}/{name_of(0)}", write=True).append([rest])


def test_a_batch_that_a_broker_is_writing_is_not_torn() -> None:
    whole = b"".join(batch(n) for n in range(3))
    files = GrowingFiles()
    files.make_dir(DIR)
    put(files, "leader-epoch-checkpoint", encode_leader_epochs([EpochStart(0, 0)]))
    for kind in (FileKind.INDEX, FileKind.TIMEINDEX):
        put(files, name_of(0, kind), b"")
    put(files, name_of(0), whole[:-20])
    files.rest = whole[-20:]
    report = verify_partition(files, partition_of(files))
    assert (3, ()) == (report.batches, report.findings)


@pytest.mark.parametrize("bit", range(32))
def test_a_flipped_bit_of_a_length_hides_no_batch(bit: int) -> None:
    files = two_segments()
    at = 3 * len(batch(0)) + 8 + bit // 8
    change(files, name_of(0), lambda c: c.__setitem__(at, c[at] ^ 1 << bit % 8))
    report = run(files)
    assert {"batch-crc", "batch-size", "batch-header"} & set(codes(report))
    (gap,) = [f for f in report.findings if f.code == "offset-gap"]
    assert (gap.expected, gap.got) == (3, 4)


@pytest.mark.parametrize("compacted", [True, False, None])
def test_offsets_that_damage_took_are_named_also_in_a_compacted_log(compacted: bool | None) -> None:
    files = two_segments()
    change(files, name_of(0), flip(4 * len(batch(0)) - 1))
    report = run(files, compacted=compacted)
    (gap,) = [f for f in report.findings if f.code == "offset-gap"]
    assert (gap.expected, gap.got) == (3, 4)
    assert gap.message.startswith("offsets 3 to 3 ")


def test_offsets_missing_before_the_first_batch_are_found() -> None:
    assert codes(run(log_of({0: batch(4, 6)}))) == ["offset-gap"]
    assert "offset-gap" not in codes(run(log_of({0: batch(4, 6)}), compacted=True))


def test_offsets_missing_before_an_empty_last_segment_are_found() -> None:
    report = run(log_of({0: batch(0, 10), 15: b""}))
    (gap,) = [f for f in report.findings if f.code == "offset-gap"]
    assert (gap.expected, gap.got) == (10, 15)


@pytest.mark.parametrize(
    "checkpoint", ["recovery-point-offset-checkpoint", "replication-offset-checkpoint"]
)
def test_a_log_that_ends_below_its_checkpoints_is_found(checkpoint: str) -> None:
    files = two_segments()
    put(files, checkpoint, b"0\n1\nt 0 20\n", "/data")
    assert codes(run(files)) == []
    put(files, checkpoint, b"0\n1\nt 0 21\n", "/data")
    (finding,) = run(files).findings
    assert (finding.code, finding.severity) == ("log-short", Severity.WARNING)
    assert (finding.expected, finding.got) == (21, 20)


@pytest.mark.parametrize("bit", range(63))
def test_a_flipped_bit_of_a_base_offset_is_found_once(bit: int) -> None:
    log = bytearray(b"".join(batch(4 * n, 4) for n in range(30)))
    log[3 * len(batch(0, 4)) + 7 - bit // 8] ^= 1 << bit % 8
    files = log_of({0: b""})
    put(files, name_of(0), bytes(log))
    found = [f for f in run(files).findings if f.code.startswith("offset-")]
    if 12 ^ 1 << bit > 12:
        wrong = [f for f in found if f.code != "offset-overflow"]
        assert [("offset-wrong", 12)] == [(f.code, f.expected) for f in wrong]
    else:
        assert ["offset-overlap", "offset-wrong"] == [f.code for f in found]
        assert "offsets 12 to 15 " in found[1].message


def test_the_last_batch_of_a_compacted_log_is_held_to_its_checkpoints() -> None:
    files = log_of({0: batch(0) + batch(3) + batch(9)})
    put(files, "replication-offset-checkpoint", b"0\n1\nt 0 10\n", "/data")
    assert [] == codes(run(files, compacted=True))
    put(files, "replication-offset-checkpoint", b"0\n1\nt 0 5\n", "/data")
    assert ["offset-gap"] == codes(run(files, compacted=True))


def test_an_entry_for_a_damaged_marker_is_not_blamed() -> None:
    files = log_of({0: transactions()})
    entries = [AbortedTransaction(2, 1, 3, 0), AbortedTransaction(1, 0, 5, 6)]
    put(files, name_of(0, ABORTED), encode_txn_index(entries))
    assert codes(run(files)) == []
    change(files, name_of(0), flip(transactions().index(marker_of(2, 3)) + 30))
    assert codes(run(files)) == ["batch-crc", "offset-gap"]


def test_an_overlap_long_before_a_gap_does_not_explain_it() -> None:
    log = batch(0, 10) + batch(0, 15) + batch(15) + batch(16) + batch(25) + batch(26)
    report = run(log_of({0: log}))
    assert ["offset-overlap", "offset-gap"] == codes(report)
    assert "offsets 17 to 24 are missing" in report.findings[1].message


@pytest.mark.parametrize("deep", [False, True])
def test_reported_reads_add_up_to_the_size_of_the_logs(*, deep: bool) -> None:
    files, options = two_segments(), VerifyOptions(deep=deep)
    sizes = [len(get(files, name_of(base))) for base in (0, 10)]
    told: list[int] = []
    verify_partition(files, partition_of(files), None, options, on_read=told.append)
    assert sum(sizes) == sum(told)
    assert all(count > 0 for count in told)
    # Also of what cannot be read to its end, and of a segment without any batch.
    change(files, name_of(0), lambda content: content.__setitem__(30, content[30] ^ 1))
    put(files, name_of(10), b"")
    told.clear()
    verify_partition(files, partition_of(files), None, options, on_read=told.append)
    assert sizes[0] == sum(told)
