"""One log: appends by leaders and replicas, reads, rolls, flushes, cuts, deletions."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from engine.errors import CorruptRecord, StorageError
from engine.host.memory import MemoryFiles
from engine.host.ports import LogDirOffline
from engine.limits import OPENED_MEMORY_BYTES_MAX, SENDFILE_BYTES_MIN
from engine.log.directory.leader_epoch_checkpoint import read_leader_epochs
from engine.log.local_log import LocalLog
from engine.log.log_config import LogConfig
from engine.log.log_messages import LogStartReason
from engine.log.log_reader import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    collect_aborted,
)
from engine.log.log_types import (
    AppendInfo,
    OffsetOutOfRange,
    RecordListTooLarge,
    UnexpectedAppendOffset,
)
from engine.log.producer_state import AppendOrigin, InvalidProducerEpoch, OutOfOrderSequence
from engine.log.retention import RetentionReason
from engine.log.tasks import InlineTasks
from engine.log.validation import CorruptMessage, InvalidRecord
from engine.naming import FileKind
from engine.records.batch import BatchView
from engine.records.codec import Codec, DecompressedTooLarge
from engine.records.control import ControlType
from engine.records.crc import crc32c
from engine.records.legacy_builder import LegacySettings, build_messages
from engine.records.record import Record, TimestampType
from engine.records.view import batches_in
from tests.unit.log.hooks import hooks_of
from tests.unit.log.writing import (
    DIR,
    NOW_MS,
    SMALL,
    batches_of,
    end_of_transaction,
    fill,
    image,
    names,
    new_log,
    open_log,
    sent,
    sent_by,
)
from tests.unit.replication.replicas import borrowed_segments

COORDINATOR = AppendOrigin.COORDINATOR


def bases(data: bytes) -> list[int]:
    return [b.base_offset for b in batches_in(memoryview(data), allow_partial_tail=True)]


# Appending


def test_offsets_follow_each_other() -> None:
    log = new_log()
    first = log.append_as_leader(sent(3), 5, NOW_MS)
    second = log.append_as_leader(sent(2, codec=Codec.LZ4), 5, NOW_MS)
    assert (0, 2) == (first.first_offset, first.last_offset)
    assert (3, 4, 5) == (second.first_offset, second.last_offset, second.leader_epoch)
    assert log.log_end_offset == 5
    assert [0, 3] == [base for base, _ in batches_of(log)]


def test_the_fast_path_and_the_other_write_the_same() -> None:
    fast, other = new_log(), new_log()
    # What is cut short behind a batch is left out, by the other way alone.
    for log, behind in ((fast, b""), (other, bytes(9))):
        for epoch, batch in enumerate(
            (
                sent(3),
                sent_by(1, 0, 2),
                sent(2, codec=Codec.ZSTD),
                sent_by(1, 2, is_transactional=True),
            )
        ):
            data = memoryview(bytearray(bytes(batch) + behind))
            log.append_as_leader(data, epoch, NOW_MS)
    assert batches_of(fast) == batches_of(other)
    assert fast.epochs.entries == other.epochs.entries
    assert fast.producers.to_entries() == other.producers.to_entries()


def test_a_refused_batch_leaves_nothing_behind() -> None:
    log = new_log()
    fill(log, [1])
    bad = sent()
    bad[-1] ^= 1
    with pytest.raises(CorruptMessage):
        log.append_as_leader(bad, 9, NOW_MS)
    assert (1, 0) == (log.log_end_offset, log.epochs.latest_epoch)


@pytest.mark.parametrize("room", [-1, 0])
def test_an_append_larger_than_a_segment_is_refused(room: int) -> None:
    data = sent(5)
    log = new_log(SMALL._replace(segment_bytes=len(data) + room))
    if room < 0:
        with pytest.raises(RecordListTooLarge) as caught:
            log.append_as_leader(data, 0, NOW_MS)
        assert caught.value.code == 18
    else:
        log.append_as_leader(data, 0, NOW_MS)


def test_a_repeated_batch_is_answered_with_its_old_offsets() -> None:
    log = new_log()
    log.append_as_leader(sent_by(1, 0, 2), 0, NOW_MS)
    log.append_as_leader(sent_by(1, 2, 2), 0, NOW_MS)
    again = log.append_as_leader(sent_by(1, 0, 2), 0, NOW_MS)
    assert (0, 1, True, 4) == (
        again.first_offset,
        again.last_offset,
        again.is_duplicate,
        log.log_end_offset,
    )


def test_producers_are_held_to_sequence_and_epoch() -> None:
    log = new_log()
    log.append_as_leader(sent_by(1, 0, producer_epoch=3), 0, NOW_MS)
    with pytest.raises(OutOfOrderSequence):
        log.append_as_leader(sent_by(1, 5, producer_epoch=3), 0, NOW_MS)
    with pytest.raises(InvalidProducerEpoch):
        log.append_as_leader(sent_by(1, 1, producer_epoch=2), 0, NOW_MS)
    with pytest.raises(InvalidProducerEpoch):
        log.append_as_leader(end_of_transaction(1, epoch=2), 0, NOW_MS, COORDINATOR)
    assert log.log_end_offset == 1


def test_each_leader_s_first_offset_is_noted_durably() -> None:
    files = MemoryFiles()
    log, _ = open_log(files)
    fill(log, [2], epoch=4)
    fill(log, [1], epoch=4)
    fill(log, [1], epoch=6)
    found = read_leader_epochs(files, f"{DIR}/leader-epoch-checkpoint")
    assert ((4, 0), (6, 3)) == found
    assert log.end_offset_for_epoch(5) == (4, 3)
    assert log.end_offset_for_epoch(6) == (6, 4)
    assert log.end_offset_for_epoch(9) is None


def test_the_log_rolls_before_a_batch_that_does_not_fit_and_writes_a_snapshot() -> None:
    files = MemoryFiles()
    log, _ = open_log(files)
    log.append_as_leader(sent_by(1, 0, 10), 0, NOW_MS)
    log.append_as_leader(sent_by(1, 10, 10), 0, NOW_MS)
    log.append_as_leader(sent_by(1, 20, 10), 0, NOW_MS)
    assert log.segments.bases == (0, 20)
    assert names(files, kind=FileKind.SNAPSHOT) == ["00000000000000000020.snapshot"]
    assert log.recovery_point == 20


# Replicas


def test_a_replica_has_the_leader_s_bytes_epochs_and_producers() -> None:
    leader, follower = new_log(), new_log()
    fill(leader, [3, 1], epoch=1)
    leader.append_as_leader(sent_by(1, 0, 2, is_transactional=True), 2, NOW_MS)
    leader.append_as_leader(end_of_transaction(1), 2, NOW_MS, COORDINATOR)
    info = follower.append_as_follower(memoryview(leader.read(0, 1 << 20).read()), NOW_MS)
    assert (0, 6, 2) == (info.first_offset, info.last_offset, info.leader_epoch)
    assert batches_of(leader) == batches_of(follower)
    assert leader.epochs.entries == follower.epochs.entries
    assert leader.producers.to_entries() == follower.producers.to_entries()
    assert collect_aborted(leader.segments, 0, 9) == collect_aborted(follower.segments, 0, 9)


def test_a_replica_takes_gaps_and_leaves_out_a_cut_batch() -> None:
    follower = new_log()
    first, second = sent(2), sent(2)
    BatchView(first).patch(base_offset=5)
    BatchView(second).patch(base_offset=9)
    data = memoryview(bytes(first) + bytes(second)[:-1])
    assert follower.append_as_follower(data, NOW_MS).last_offset == 6
    assert follower.append_as_follower(second, NOW_MS).first_offset == 9
    assert follower.append_as_follower(memoryview(b""), NOW_MS).last_offset == -1
    assert follower.log_end_offset == 11


def test_a_replica_refuses_what_it_has_and_what_is_damaged() -> None:
    follower = new_log()
    fill(follower, [3])
    with pytest.raises(UnexpectedAppendOffset) as caught:
        follower.append_as_follower(sent(5), NOW_MS)
    assert (0, 4, 3) == (
        caught.value.first_offset,
        caught.value.last_offset,
        caught.value.log_end_offset,
    )
    bad = sent()
    BatchView(bad).patch(base_offset=3)
    bad[-1] ^= 1
    with pytest.raises(CorruptMessage):
        follower.append_as_follower(bad, NOW_MS)


def test_a_long_answer_is_cut_into_segments_at_its_batches() -> None:
    leader, follower = new_log(SMALL._replace(segment_bytes=1 << 20)), new_log()
    fill(leader, [4] * 10)
    follower.append_as_follower(memoryview(leader.read(0, 1 << 20).read()), NOW_MS)
    assert batches_of(leader) == batches_of(follower)
    assert len(follower.segments) > 1
    assert all(segment.size_bytes <= 600 for segment in follower.segments)


def test_a_replica_of_old_messages_forgets_epochs() -> None:
    follower = new_log()
    fill(follower, [1], epoch=1)
    records = [Record(n, NOW_MS, TimestampType.CREATE_TIME, None, b"v") for n in (1, 2)]
    info = follower.append_as_follower(
        memoryview(build_messages(records, LegacySettings(magic=1))), NOW_MS
    )
    assert (2, 3) == (info.last_offset, follower.log_end_offset)
    assert follower.latest_epoch is None
    assert bases(follower.read(2, 100).read()) == [2]


# Reading


def test_a_read_gives_whole_batches_from_the_one_that_holds_the_offset() -> None:
    log = new_log(LogConfig())
    fill(log, [3, 3, 3])
    assert bases(log.read(4, 1 << 20).read()) == [3, 6]


def test_the_first_batch_always_goes_out_when_asked() -> None:
    log = new_log()
    fill(log, [3, 3])
    whole = log.read(0, 1)
    assert (bases(whole.read()), whole.is_first_batch_incomplete) == ([0], False)
    cut = log.read(0, 1, at_least_one_batch=False)
    assert (1, True) == (cut.size_bytes, cut.is_first_batch_incomplete)


def test_a_read_stops_at_its_upper_bound() -> None:
    log = new_log(LogConfig())
    fill(log, [3, 3, 3])
    assert bases(log.read(0, 1 << 20, 6).read()) == [0, 3]
    assert log.read(6, 1 << 20, 6).read() == b""
    assert log.read(7, 1 << 20, 6).start.offset == 7


def test_a_read_goes_on_in_the_next_segment() -> None:
    log = new_log()
    fill(log, [10, 10, 10, 10])
    assert log.segments.bases == (0, 20)
    assert bases(log.read(19, 1 << 20).read()) == [10]
    assert bases(log.read(20, 1 << 20).read()) == [20, 30]
    log.truncate_to(35, NOW_MS)
    assert bases(log.read(30, 1 << 20).read()) == []


def test_reads_outside_of_the_log_are_refused() -> None:
    log = new_log()
    fill(log, [3, 3])
    log.maybe_increment_log_start_offset(3, 6, LogStartReason.DELETE_RECORDS)
    for offset in (2, 7):
        with pytest.raises(OffsetOutOfRange) as caught:
            log.read(offset, 1)
        assert (1, 3, 6) == (
            caught.value.code,
            caught.value.log_start_offset,
            caught.value.log_end_offset,
        )
    assert log.read(6, 1).read() == b""


def test_large_reads_are_regions_of_the_file_until_released() -> None:
    log = new_log(LogConfig())
    for _ in range(3):
        log.append_as_leader(sent(1, value=bytes(SENDFILE_BYTES_MIN // 2)), 0, NOW_MS)
    small, large = log.read(0, 1000), log.read(0, 1 << 20)
    assert small.file is None
    assert large.file is log.active_segment.file
    assert bases(large.read()) == [0, 1, 2]
    large.release()
    large.release()
    small.release()


def test_aborted_transactions_come_with_the_records() -> None:
    log = new_log()
    log.append_as_leader(sent_by(1, 0, 2, is_transactional=True), 0, NOW_MS)
    log.append_as_leader(sent_by(2, 0, 2, is_transactional=True), 0, NOW_MS)
    assert log.last_stable_offset(4) == 0
    log.append_as_leader(end_of_transaction(1), 0, NOW_MS, COORDINATOR)
    assert log.last_stable_offset(4) == 0
    assert log.last_stable_offset(5) == 2
    log.append_as_leader(end_of_transaction(2, ControlType.COMMIT), 0, NOW_MS, COORDINATOR)
    assert log.last_stable_offset(6) == 6
    found = log.read(0, 1 << 20, with_aborted=True).aborted_transactions
    assert found is not None
    assert [(1, 0, 4, 2)] == [entry[:4] for entry in found]
    assert log.read(5, 1 << 20, with_aborted=True).aborted_transactions == []
    assert log.read(0, 1 << 20).aborted_transactions is None


def test_a_read_that_fails_after_its_region_was_found_lends_no_segment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = MemoryFiles()
    log, _ = open_log(files, LogConfig())
    value = bytes(SENDFILE_BYTES_MIN)
    log.append_as_leader(sent_by(1, 0, value=value, is_transactional=True), 0, NOW_MS)
    log.append_as_leader(end_of_transaction(1), 0, NOW_MS, COORDINATOR)
    log.close(NOW_MS)
    again, _ = open_log(files, LogConfig(), was_stopped_cleanly=True)
    borrowed = borrowed_segments(monkeypatch)
    files.fail("read", errno.EIO, path_end=".txnindex")
    with pytest.raises(LogDirOffline):
        again.read(0, 1 << 20, with_aborted=True)
    assert [] == borrowed


def test_the_indexes_of_a_flushed_segment_are_durable_before_there_is_another() -> None:
    files = MemoryFiles()
    log, _ = open_log(files, SMALL._replace(flush_messages=1))
    files.sync_all()
    fill(log, [1] * 20)
    assert log.recovery_point == 20
    disk = files.after_crash()
    for name in names(files, kind=FileKind.TIMEINDEX)[:-1]:
        written = files.read_bytes(f"{DIR}/{name}")
        assert written
        assert disk.read_bytes(f"{DIR}/{name}") == written


# Times


def test_times_are_looked_up() -> None:
    log = new_log()
    for at in (10, 50, 30, 90):
        log.append_as_leader(sent(10, at_ms=NOW_MS + at), 1, NOW_MS)
    for target, offset in ((0, 0), (15, 5), (20, 10), (51, 11), (60, 30), (95, 35)):
        found = log.offset_for_timestamp(NOW_MS + target)
        assert found is not None
        assert (offset, 1) == (found.offset, found.leader_epoch)
    assert log.offset_for_timestamp(NOW_MS + 100) is None
    assert log.offset_for_timestamp(MAX_TIMESTAMP) == (NOW_MS + 99, 39, 1)
    assert log.offset_for_timestamp(EARLIEST) == (-1, 0, 1)
    assert log.offset_for_timestamp(EARLIEST_LOCAL) == (-1, 0, 1)
    assert log.offset_for_timestamp(LATEST) == (-1, 40, 1)
    assert log.offset_for_timestamp(LATEST_TIERED) == (-1, -1, -1)


@pytest.mark.parametrize("timestamp_ms", [NOW_MS, MAX_TIMESTAMP])
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD], ids=lambda c: c.label)
def test_what_a_leader_takes_can_be_looked_into(codec: Codec, timestamp_ms: int) -> None:
    log = new_log(LogConfig(max_message_bytes=20_000, segment_bytes=1 << 20))
    large = sent(1, value=bytes(OPENED_MEMORY_BYTES_MAX * 9 // 10), codec=codec)
    log.append_as_leader(large, 1, NOW_MS)
    assert log.offset_for_timestamp(timestamp_ms) == (NOW_MS, 0, 1)


@pytest.mark.parametrize("timestamp_ms", [NOW_MS, MAX_TIMESTAMP])
def test_a_batch_that_is_too_large_once_it_is_opened_is_not_looked_into(timestamp_ms: int) -> None:
    config = LogConfig(max_message_bytes=20_000)
    log = new_log(config)
    bomb = sent(1, value=bytes(config.opened_batch_bytes_max), codec=Codec.GZIP)
    assert len(bomb) < config.max_message_bytes
    with pytest.raises(InvalidRecord):
        log.append_as_leader(bomb, 1, NOW_MS)
    log.append_as_follower(bomb, NOW_MS)
    with pytest.raises(DecompressedTooLarge):
        log.offset_for_timestamp(timestamp_ms)


def test_an_empty_log_has_ends_and_no_times() -> None:
    log = new_log()
    assert log.offset_for_timestamp(EARLIEST) == (-1, 0, None)
    assert log.offset_for_timestamp(LATEST) == (-1, 0, None)
    assert log.offset_for_timestamp(MAX_TIMESTAMP) is None
    assert log.offset_for_timestamp(0) is None


def test_a_lookup_by_time_starts_at_the_log_s_start() -> None:
    log = new_log()
    fill(log, [10, 10, 10])
    log.maybe_increment_log_start_offset(25, 30, LogStartReason.DELETE_RECORDS)
    found = log.offset_for_timestamp(0)
    assert found is not None
    assert found.offset == 25


# Rolling, flushing


def test_a_flush_makes_records_durable_and_moves_the_recovery_point() -> None:
    files = MemoryFiles()
    log, _ = open_log(files)
    files.sync_dir("/data")
    files.sync_dir("/")
    fill(log, [3, 3])
    assert log.recovery_point == 0
    log.flush(NOW_MS)
    again, _ = open_log(files.after_crash(), recovery_point=log.recovery_point)
    assert (6, 6) == (log.recovery_point, again.log_end_offset)


def test_flush_messages_flushes_on_its_own() -> None:
    log = new_log(SMALL._replace(flush_messages=5))
    fill(log, [4])
    assert log.recovery_point == 0
    fill(log, [1])
    assert log.recovery_point == 5


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize("is_clean", [True, False])
def test_an_end_that_rose_without_records_is_there_at_the_next_start(
    count: int, is_clean: bool
) -> None:
    files = MemoryFiles()
    log, _ = open_log(files)
    fill(log, [count] if count else [])
    before = batches_of(log)
    log.raise_end(10, NOW_MS)
    assert (0, 10, 0) == (log.log_start_offset, log.log_end_offset, log.read(2, 99).size_bytes)
    log.close(NOW_MS)
    known = log.recovery_point
    again, _ = open_log(files, was_stopped_cleanly=is_clean, recovery_point=known)
    assert (0, 10, before) == (again.log_start_offset, again.log_end_offset, batches_of(again))
    fill(again, [1])
    assert (10, 11) == (batches_of(again)[-1][0], again.log_end_offset)


def test_an_empty_active_segment_does_not_roll() -> None:
    log = new_log()
    fill(log, [1])
    log.roll(NOW_MS)
    log.roll(NOW_MS)
    assert log.segments.bases == (0, 1)


class HeldTasks(InlineTasks):
    def __init__(self) -> None:
        super().__init__()
        self.held: list[Callable[[], None]] = []

    def offload(
        self, name: str, work: Callable[[], None], done: Callable[[StorageError | None], None]
    ) -> None:
        self.held.append(lambda: InlineTasks.offload(self, name, work, done))


def test_the_recovery_point_waits_for_the_sync_of_a_rolled_segment() -> None:
    tasks = HeldTasks()
    log = new_log(tasks=tasks)
    fill(log, [5])
    log.roll(NOW_MS)
    fill(log, [1])
    assert log.recovery_point == 0
    tasks.held[0]()
    assert log.recovery_point == 5


def test_a_failed_sync_is_reported_and_moves_nothing() -> None:
    failures: list[StorageError] = []
    files, tasks = MemoryFiles(), HeldTasks()
    log, _ = open_log(files, SMALL, hooks_of(tasks, on_failure=failures.append))
    fill(log, [5])
    log.roll(NOW_MS)
    files.fail("sync", errno.EIO, path_end=".log")
    tasks.held[0]()
    assert [LogDirOffline] == [type(failure) for failure in failures]
    assert log.recovery_point == 0


def test_a_clean_close_needs_no_recovery_and_keeps_producers() -> None:
    files = MemoryFiles()
    log, _ = open_log(files)
    log.append_as_leader(sent_by(1, 0, 10), 3, NOW_MS)
    log.append_as_leader(sent_by(1, 10, 10), 3, NOW_MS)
    log.append_as_leader(sent_by(1, 20, 10), 3, NOW_MS)
    log.close(NOW_MS)
    again, report = open_log(files, was_stopped_cleanly=True, recovery_point=log.recovery_point)
    assert report.recovered_segments == 0
    assert (30, 30) == (again.log_end_offset, again.recovery_point)
    assert log.producers.to_entries() == again.producers.to_entries()
    assert log.epochs.entries == again.epochs.entries
    assert again.append_as_leader(sent_by(1, 20, 10), 3, NOW_MS).is_duplicate


# Cutting


def test_a_cut_takes_later_segments_epochs_snapshots_and_producers() -> None:
    files, tasks, told = MemoryFiles(), InlineTasks(), []
    hooks = hooks_of(tasks, on_truncated=told.append)
    log, _ = open_log(files, SMALL, hooks)
    for number in range(5):
        log.append_as_leader(sent_by(1, 10 * number, 10), number, NOW_MS)
    log.flush(NOW_MS)
    assert log.truncate_to(10, NOW_MS)
    assert (10, 10, (0,)) == (log.log_end_offset, log.recovery_point, log.segments.bases)
    assert ((0, 0),) == log.epochs.entries
    assert names(files, kind=FileKind.SNAPSHOT) == []
    assert log.producers.producers[1].last_sequence == 9
    assert [log.topic_partition] == told
    tasks.run_waiting()
    assert not [name for name in names(files) if name.endswith(".deleted")]


def test_a_cut_inside_of_a_batch_takes_all_of_it() -> None:
    log = new_log()
    fill(log, [3, 3])
    log.truncate_to(5, NOW_MS)
    assert (5, [0]) == (log.log_end_offset, [base for base, _ in batches_of(log)])
    assert log.append_as_leader(sent(1), 0, NOW_MS).first_offset == 5


def test_a_cut_behind_a_batch_whose_length_reads_wrongly_changes_nothing() -> None:
    files = MemoryFiles()
    log, _ = open_log(files, SMALL._replace(index_interval_bytes=1 << 20))
    for number in range(12):
        log.append_as_leader(sent(5, value=bytes(60)), number, NOW_MS)
    log.flush(NOW_MS)
    assert len(log.segments) > 2
    kept = log.segments.first
    offset = log.segments.bases[1] - 1
    before = image(files), log.segments.bases, log.epochs.entries, log.log_end_offset
    files.flip(kept.path(FileKind.LOG), 11, 16)
    with pytest.raises(CorruptRecord):
        log.truncate_to(offset, NOW_MS)
    files.flip_back()
    assert before == (image(files), log.segments.bases, log.epochs.entries, log.log_end_offset)
    assert log.truncate_to(offset, NOW_MS)
    assert log.log_end_offset == offset


def test_a_cut_at_the_base_of_a_segment_needs_nothing_of_what_it_takes() -> None:
    files = MemoryFiles()
    log, _ = open_log(files)
    fill(log, [5] * 12)
    offset = log.segments.bases[1]
    found = log.segments.floor(offset)
    assert found is not None
    # The length of its first batch leads beyond the segment's end.
    files.open(found.path(FileKind.LOG), write=True).write_at(8, b"\0\1")
    assert log.truncate_to(offset, NOW_MS)
    assert (offset, 0) == (log.log_end_offset, log.active_segment.size_bytes)


def test_producers_after_a_batch_whose_base_offset_reads_too_high_are_known_after_a_cut() -> None:
    files = MemoryFiles()
    log, _ = open_log(files, SMALL._replace(segment_bytes=1 << 20, index_interval_bytes=80))
    for number in range(4):
        log.append_as_leader(sent_by(number, 0, 5), 0, NOW_MS)
    size = log.segments.first.size_bytes // 4
    files.flip(log.segments.first.path(FileKind.LOG), size + 6, 1)
    assert log.truncate_to(15, NOW_MS)
    files.flip_back()
    assert {0, 2} <= log.producers.producers.keys()


def test_producers_after_a_batch_whose_last_offset_reads_too_high_are_known_after_a_cut() -> None:
    files = MemoryFiles()
    log, _ = open_log(files, SMALL._replace(segment_bytes=1 << 20, index_interval_bytes=1 << 20))
    for number in range(4):
        log.append_as_leader(sent_by(number, 0, 5), 0, NOW_MS)
    size = log.segments.first.size_bytes // 4
    # The delta of the second one's last offset.
    files.flip(log.segments.first.path(FileKind.LOG), size + 25, 1)
    assert log.truncate_to(15, NOW_MS)
    files.flip_back()
    states = log.producers.producers
    assert {0: 4, 1: 4, 2: 4} == {key: state.last_sequence for key, state in states.items()}


def test_a_header_that_reads_with_one_wrong_bit_changes_no_producer_at_a_cut() -> None:
    for position in range(21, 57):
        for bit in range(8):
            files = MemoryFiles()
            log, _ = open_log(files, SMALL._replace(segment_bytes=1 << 20))
            for number in range(4):
                log.append_as_leader(sent_by(number, 0, 5), 0, NOW_MS)
            size = log.segments.first.size_bytes // 4
            path = log.segments.first.path(FileKind.LOG)
            files.flip(path, size + position, 1 << bit)
            assert log.truncate_to(15, NOW_MS)
            entries = {
                (entry.producer_id, entry.producer_epoch, entry.last_sequence)
                for entry in log.producers.to_entries()
            }
            assert {(0, 0, 4), (1, 0, 4), (2, 0, 4)} == entries, (position, bit)
            assert log.producers.first_unstable_offset(15) is None


def test_damaged_records_leave_their_producer_known_at_a_cut() -> None:
    files = MemoryFiles()
    log, _ = open_log(files, SMALL._replace(segment_bytes=1 << 20))
    for number in range(4):
        log.append_as_leader(sent_by(number, 0, 5), 0, NOW_MS)
    size = log.segments.first.size_bytes // 4
    files.flip(log.segments.first.path(FileKind.LOG), 2 * size - 1, 255)
    assert log.truncate_to(15, NOW_MS)
    assert {0: 4, 1: 4, 2: 4} == {
        key: state.last_sequence for key, state in log.producers.producers.items()
    }


def test_a_cut_at_the_end_only_drops_an_epoch_without_records() -> None:
    log = new_log()
    fill(log, [3], epoch=1)
    for offset in (3, 9):
        log.epochs.assign(2, 3)
        assert not log.truncate_to(offset, NOW_MS)
        assert (3, 1, 0) == (log.log_end_offset, log.latest_epoch, log.truncation_count)


def test_a_cut_at_the_base_of_the_first_segment_keeps_its_file() -> None:
    files = MemoryFiles()
    log, _ = open_log(files)
    fill(log, [3])
    before = names(files)
    assert log.truncate_to(0, NOW_MS)
    assert before == names(files)
    assert (0, 0) == (log.log_end_offset, log.size_bytes)


def test_a_cut_below_the_first_segment_starts_the_log_again_there() -> None:
    log = new_log()
    log.restart_at(50, NOW_MS)
    fill(log, [3])
    log.truncate_to(20, NOW_MS)
    assert (20, 20, (20,)) == (log.log_start_offset, log.log_end_offset, log.segments.bases)


def test_a_restart_at_the_active_segment_s_base_makes_it_again() -> None:
    files, tasks, told = MemoryFiles(), InlineTasks(), []
    log, _ = open_log(files, SMALL, hooks_of(tasks, on_truncated=told.append))
    fill(log, [3])
    log.restart_at(0, NOW_MS)
    assert [log.topic_partition] == told
    tasks.run_waiting()
    assert (0, 0) == (log.log_end_offset, log.size_bytes)
    fill(log, [1])
    assert open_log(files)[0].log_end_offset == 1


# Deleting


def filled(tasks: InlineTasks | None = None) -> tuple[MemoryFiles, LocalLog]:
    files = MemoryFiles()
    log, _ = open_log(files, SMALL, hooks_of(tasks))
    fill(log, [10] * 8)
    assert log.segments.bases == (0, 20, 40, 60)
    return files, log


def test_delete_records_moves_the_start_and_retention_takes_the_segments() -> None:
    tasks = InlineTasks()
    files, log = filled(tasks)
    assert log.maybe_increment_log_start_offset(45, 80, LogStartReason.DELETE_RECORDS)
    assert not log.maybe_increment_log_start_offset(44, 80, LogStartReason.DELETE_RECORDS)
    with pytest.raises(OffsetOutOfRange):
        log.maybe_increment_log_start_offset(81, 80, LogStartReason.DELETE_RECORDS)
    assert ((0, 45),) == log.epochs.entries
    assert len(log.segments) == 4
    assert log.delete_old_segments(80, NOW_MS) == {RetentionReason.START_OFFSET: 2}
    assert (45, (40, 60)) == (log.log_start_offset, log.segments.bases)
    assert [("delete-file", 60_000)] == [(name, delay) for name, delay, _ in tasks.waiting]
    assert f"{0:020d}.log.deleted" in names(files)
    tasks.run_waiting()
    assert not [name for name in names(files) if name.endswith(".deleted")]


def test_retention_of_all_segments_starts_a_new_one_first() -> None:
    _, log = filled()
    log.configure(SMALL._replace(retention_ms=0))
    assert log.delete_old_segments(80, NOW_MS + 1000) == {RetentionReason.TIME: 4}
    assert (80, 80, (80,)) == (log.log_start_offset, log.log_end_offset, log.segments.bases)
    assert log.delete_old_segments(80, NOW_MS + 9000) == {}
    fill(log, [1])
    assert log.log_end_offset == 81


def test_retention_keeps_what_is_at_or_above_the_high_watermark() -> None:
    _, log = filled()
    log.configure(SMALL._replace(retention_ms=0))
    log.delete_old_segments(59, NOW_MS + 1000)
    assert log.log_start_offset == 40


def test_segments_before_an_offset_go_whole() -> None:
    _, log = filled()
    assert log.delete_segments_before(59, 80, NOW_MS) == 2
    assert log.delete_segments_before(999, 80, NOW_MS) == 1
    assert log.segments.bases == (60,)


def test_a_topic_id_is_written_and_found_again() -> None:
    files = MemoryFiles()
    log, _ = open_log(files)
    assert log.topic_id is None
    log.assign_topic_id("8K4IcCorRNC2tJ_T-wo19A")
    assert open_log(files)[0].topic_id == "8K4IcCorRNC2tJ_T-wo19A"


def test_a_log_whose_directory_is_renamed_goes_on() -> None:
    files, log = filled()
    log.rename_directory("/data/u-0")
    log.append_as_leader(sent(20), 7, NOW_MS)
    log.close(NOW_MS)
    again, _ = open_log(files, directory="/data/u-0", was_stopped_cleanly=True)
    assert (100, 7) == (again.log_end_offset, again.latest_epoch)


def test_idle_producers_are_forgotten() -> None:
    log = new_log(SMALL._replace(producer_id_expiration_ms=50))
    log.append_as_leader(sent_by(1, 0), 0, NOW_MS)
    assert log.producers.remove_expired(now_ms=NOW_MS + 49, expiration_ms=50) == 0
    assert log.producers.remove_expired(now_ms=NOW_MS + 50, expiration_ms=50) == 1


def test_a_restart_leaves_no_snapshot_of_what_was_before() -> None:
    log = new_log()
    fill(log, [3])
    log.snapshots.write_snapshot(3, ())
    log.restart_at(50, NOW_MS)
    assert [] == log.snapshots.offsets


def test_a_producer_of_id_0_is_checked_on_the_fast_path_too() -> None:
    log, _ = open_log(MemoryFiles())
    first = log.append_fast(sent_by(0, 0, 2), 0, NOW_MS)
    assert isinstance(first, AppendInfo)
    again = log.append_fast(sent_by(0, 0, 2), 0, NOW_MS)
    # Either it says that it is a duplicate, or it leaves the batch to the general path.
    assert again is None or (isinstance(again, AppendInfo) and again.is_duplicate)
    assert 2 == log.log_end_offset


@pytest.mark.parametrize("may_be_fast", [True, False])
def test_a_marker_that_has_a_sequence_ends_its_transaction_too(*, may_be_fast: bool) -> None:
    log = new_log()
    log._may_append_fast = may_be_fast
    log.append_as_leader(sent_by(1, 0, is_transactional=True), 0, NOW_MS)
    marker = end_of_transaction(1)
    marker[53:57] = bytes(4)
    marker[17:21] = crc32c(marker[21:]).to_bytes(4, "big")
    log.append_as_leader(marker, 0, NOW_MS, AppendOrigin.COORDINATOR)
    assert not log.producers.has_open_transaction(1, 0)
    assert 2 == log.last_stable_offset(2)
