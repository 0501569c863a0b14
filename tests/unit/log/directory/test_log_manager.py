"""All logs of a broker: directories, their failures, deletion, moves, tasks, stops."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from engine.errors import ConfigError
from engine.host.memory import MemoryFiles
from engine.host.ports import LogDirOffline
from engine.host.real import RealFiles
from engine.log.directory import partition_metadata
from engine.log.directory.log_dir import read_log_dir
from engine.log.directory.log_directory import (
    ForeignLogDirectory,
    LogDirectoryLocked,
    remove_folder,
)
from engine.log.directory.log_manager import LogManager
from engine.log.directory.log_refusals import DuplicateLog, KafkaStorageError
from engine.log.directory.offset_checkpoint import (
    CLEANER_POINTS,
    FILE_NAMES,
    HIGH_WATERMARKS,
    LOG_STARTS,
    RECOVERY_POINTS,
    encode_offsets,
    read_offsets,
)
from engine.log.directory.partition_metadata import read_partition_metadata
from engine.log.log_config import LogConfig
from engine.log.log_messages import LogStartReason
from engine.log.tasks import take_all
from engine.model import TopicPartition
from engine.naming import FileKind
from tests.open_files import open_below
from tests.unit.log.logs import batch, name_of
from tests.unit.log.managing import CLUSTER, T0, T1, U0, A, B, Host
from tests.unit.log.test_local_log import HeldTasks
from tests.unit.log.writing import NOW_MS, SMALL, batches_of, fill, sent_by


def names(host: Host, path: str) -> list[str]:
    return [name for name in host.files.list_dir(path) if "-" in name and "checkpoint" not in name]


def test_the_first_start_writes_an_identity_and_takes_the_locks() -> None:
    host = Host()
    host.started()
    for path in (A, B):
        found = read_log_dir(host.files, path).state.meta
        assert found is not None
        assert (0, CLUSTER, 1) == (found.version, found.cluster_id, found.node_id)
    assert {"/a/.lock", "/b/.lock"} == host.locked


def test_a_directory_in_use_or_of_another_broker_stops_the_start() -> None:
    host = Host()
    first = host.started()
    with pytest.raises(LogDirectoryLocked):
        host.manager().start()
    first.stop()
    with pytest.raises(ForeignLogDirectory) as caught:
        host.manager(broker_id=2).start()
    assert (1, 2) == (caught.value.stored, caught.value.expected)
    host.locked.clear()
    with pytest.raises(ForeignLogDirectory):
        host.manager(cluster_id="other").start()


def test_new_logs_go_where_the_fewest_are() -> None:
    manager = Host().started()
    for key in (T0, T1, U0):
        manager.get_or_create(key, is_new=True)
    homes = [manager.directory_of(log) for log in manager.logs.values()]
    assert [A, B, A] == homes
    assert manager.get_or_create(T0) is manager.get(T0)
    requested = manager.get_or_create(U0._replace(partition=1), is_new=True, directory=A)
    assert manager.directory_of(requested) == A


def test_a_clean_stop_is_noted_and_the_next_start_reads_nothing_again() -> None:
    host = Host()
    manager = host.started()
    fill(manager.get_or_create(T0, is_new=True), [10] * 5)
    manager.stop()
    assert host.files.exists("/a/.kafka_cleanshutdown")
    assert not host.files.exists("/a/.lock")
    assert not host.locked
    host.files.sync_all()
    again = host.manager()
    found = again.start()
    # A power cut right after the start must not find it again.
    assert not host.files.after_crash().exists("/a/.kafka_cleanshutdown")
    assert [0] == [report.recovered_segments for report in found[A].reports.values()]
    log = again.get(T0)
    assert log is not None
    assert (50, 50) == (log.log_end_offset, log.recovery_point)


def test_after_a_kill_logs_are_recovered_from_their_recovery_points() -> None:
    host = Host()
    manager = host.started()
    fill(manager.get_or_create(T0, is_new=True), [10] * 5)
    manager.checkpoint_recovery_points()
    again = host.killed().manager()
    found = again.start()
    (report,) = found[A].reports.values()
    log = again.get(T0)
    assert log is not None
    # Of three segments, two were flushed when the next one began.
    assert (1, 50, 40) == (report.recovered_segments, log.log_end_offset, log.recovery_point)


def test_a_log_that_is_compacted_no_more_keeps_its_end_over_what_was_cleaned() -> None:
    host = Host()
    host.configs["t"] = SMALL._replace(is_compacted=True, is_deleting=False)
    manager = host.started()
    log = manager.get_or_create(T0, is_new=True)
    fill(log, [1] * 5)
    log.roll(NOW_MS)
    # All of the last closed segment is outdated.
    empty_file_of(host.files, log.segments.bases[-2])
    manager.write_first_dirty_offset(log, 5)
    host.configs["t"] = SMALL
    again = host.killed().manager()
    again.start()
    log = again.logs[T0]
    assert (5, 5) == (log.log_end_offset, log.active_segment.base_offset)


def empty_file_of(files: MemoryFiles, base_offset: int) -> None:
    file = files.open(f"/a/t-0/{name_of(base_offset)}", write=True)
    file.truncate(0)
    file.close()


def test_checkpoints_have_what_their_names_say() -> None:
    host = Host()
    manager = host.started()
    log = manager.get_or_create(T0, is_new=True)
    fill(log, [10] * 5)
    fill(manager.get_or_create(T1, is_new=True), [3])
    log.maybe_increment_log_start_offset(5, 50, LogStartReason.DELETE_RECORDS)
    manager.checkpoint_recovery_points()
    manager.checkpoint_log_starts()
    manager.checkpoint_high_watermarks({T0: 44, T1: 2, U0: 9})
    assert read_offsets(host.files, f"{A}/{RECOVERY_POINTS}") == {T0: 40}
    assert read_offsets(host.files, f"{B}/{LOG_STARTS}") == {}
    assert read_offsets(host.files, f"{A}/{LOG_STARTS}") == {T0: 5}
    assert read_offsets(host.files, f"{A}/{HIGH_WATERMARKS}") == {T0: 44}
    again = host.killed().started()
    assert again.logs[T0].log_start_offset == 5
    assert again.checkpointed_high_watermark(T0) == 44
    assert again.checkpointed_high_watermark(U0) == 0


def test_damaged_checkpoints_cost_time_and_no_records() -> None:
    host = Host()
    fill(host.started().get_or_create(T0, is_new=True), [10] * 5)
    again = host.killed()
    again.files.replace_file(f"{A}/{RECOVERY_POINTS}", b"nonsense")
    assert again.started().logs[T0].log_end_offset == 50


# Failures of directories


def test_a_failing_directory_goes_offline_alone() -> None:
    host = Host()
    manager = host.started()
    for key in (T0, T1):
        fill(manager.get_or_create(key, is_new=True), [3])
    host.files.fail("sync", errno.EIO, path_end=f"{A}/{RECOVERY_POINTS}.tmp")
    manager.checkpoint_recovery_points()
    assert [(A, [T0])] == [(path, lost) for path, _, lost in host.offline]
    assert (None, 3) == (manager.get(T0), manager.logs[T1].log_end_offset)
    with pytest.raises(KafkaStorageError) as caught:
        manager.get_or_create(T0)
    assert caught.value.code == 56
    assert manager.directory_of(manager.get_or_create(U0, is_new=True)) == B
    manager.checkpoint_recovery_points()
    manager.stop()
    assert len(host.offline) == 1
    assert not host.files.exists(f"{A}/.kafka_cleanshutdown")
    assert host.files.exists(f"{B}/.kafka_cleanshutdown")


def test_a_directory_that_fails_at_the_start_is_left_out() -> None:
    host = Host()
    manager = host.started()
    fill(manager.get_or_create(T0, is_new=True), [3])
    fill(manager.get_or_create(T1, is_new=True), [3])
    manager.stop()
    host.files.fail("list", errno.EIO, path_end=A)
    again = host.manager()
    again.start()
    assert [A] == [path for path, _, _ in host.offline]
    assert {T1} == set(again.logs)


@pytest.mark.parametrize("dirs", [(A,), (A, B)])
def test_what_goes_wrong_while_directories_are_read_stops_the_start(dirs: tuple[str, ...]) -> None:
    host = Host()
    manager = host.started(dirs=dirs)
    manager.get_or_create(T0, is_new=True)
    manager.stop()

    def fail(topic: str) -> LogConfig:
        raise ConfigError("topic", topic, "must be known")

    again = host.manager(dirs=dirs, config_of=fail)
    with pytest.raises(ConfigError):
        again.start()


def test_a_broker_without_a_directory_does_not_start() -> None:
    host = Host()
    host.files.fail("create", errno.EIO, times=9)
    with pytest.raises(KafkaStorageError):
        host.started()


def test_a_failed_sync_of_a_rolled_segment_takes_the_directory_offline() -> None:
    host = Host()
    manager = host.started()
    log = manager.get_or_create(T0, is_new=True)
    host.files.fail("sync", errno.EIO, path_end=".log")
    fill(log, [10, 10, 10])
    ((path, error, lost),) = host.offline
    assert (A, [T0]) == (path, lost)
    assert isinstance(error, LogDirOffline)


def test_a_log_that_cannot_be_opened_leaves_the_others_alone() -> None:
    host = Host()
    manager = host.started(dirs=(A,))
    for key in (T0, T1):
        fill(manager.get_or_create(key, is_new=True), [3])
    log = manager.logs[T0].active_segment.file.path
    manager.stop()
    content = host.files.read_bytes(log)
    host.files.remove(f"{A}/.kafka_cleanshutdown")
    host.files.rename(log, log.replace(f"{0:020d}", f"{500:020d}"))
    again = host.manager(dirs=(A,))
    found = again.start()
    assert [T0] == [failed.topic_partition for failed in found[A].failed]
    assert {T1} == set(again.logs)
    with pytest.raises(KafkaStorageError):
        again.get_or_create(T0, is_new=True)
    assert content == host.files.read_bytes(log.replace(f"{0:020d}", f"{500:020d}"))
    again.stop()
    # A clean stop would let the next start believe this log unread.
    assert not host.files.exists(f"{A}/.kafka_cleanshutdown")
    (failed,) = host.manager(dirs=(A,)).start()[A].failed
    assert failed.topic_partition == T0


def test_two_copies_of_a_partition_stop_the_start() -> None:
    host = Host()
    manager = host.started()
    manager.get_or_create(T0, is_new=True, directory=A)
    host.files.make_dir(f"{B}/{T0}")
    with pytest.raises(DuplicateLog) as caught:
        host.killed().started()
    assert {f"{A}/{T0}", f"{B}/{T0}"} == {caught.value.directory, caught.value.other}


def test_what_is_not_ours_is_left_alone() -> None:
    host = Host()
    manager = host.started()
    manager.stop()
    host.files.make_dir(f"{A}/lost+found")
    host.files.make_dir(f"{A}/__cluster_metadata-0")
    found = host.manager().start()
    assert found[A].unknown == ("lost+found",)
    assert host.files.list_dir(f"{A}/__cluster_metadata-0") == []


# Deleting, moving


def test_a_deleted_log_is_renamed_and_removed_later() -> None:
    host = Host()
    manager = host.started()
    fill(manager.get_or_create(T0, is_new=True), [3])
    manager.checkpoint_recovery_points()
    assert [T0] == manager.delete([T0])
    assert [] == manager.delete([T0])
    (name,) = names(host, A)
    assert name.startswith("t-0.")
    assert name.endswith("-delete")
    assert read_offsets(host.files, f"{A}/{RECOVERY_POINTS}") == {}
    assert manager.get_or_create(T0, is_new=True, directory=A).log_end_offset == 0
    host.tasks.run_waiting()
    assert names(host, A) == ["t-0"]


def test_a_log_that_was_cut_a_moment_ago_is_deleted() -> None:
    host = Host()
    host.tasks = HeldTasks()
    manager = host.started(dirs=[A])
    log = manager.get_or_create(T0, is_new=True)
    fill(log, [5, 5])
    log.truncate_to(5, NOW_MS)
    assert [T0] == manager.delete([T0])
    for work in host.tasks.held:
        work()
    assert [] == host.offline
    assert T0 not in manager.logs


def test_a_new_directory_has_empty_checkpoints_until_there_is_a_partition() -> None:
    host = Host()
    manager = host.started()
    manager.create_cleaner_checkpoints()
    manager.checkpoint_high_watermarks({})
    names = (RECOVERY_POINTS, HIGH_WATERMARKS, LOG_STARTS, CLEANER_POINTS)
    assert [b""] * 4 == [host.files.read_bytes(f"{A}/{name}") for name in names]


def test_a_deleted_log_leaves_no_watermark_to_a_topic_that_takes_its_name_over() -> None:
    host = Host()
    manager = host.started()
    fill(manager.get_or_create(T0, is_new=True, directory=A), [3])
    fill(manager.get_or_create(T1, is_new=True, directory=A), [3])
    manager.checkpoint_high_watermarks({T0: 3, T1: 2})
    manager.delete([T0])
    assert {T1: 2} == read_offsets(host.files, f"{A}/{HIGH_WATERMARKS}")
    fill(manager.get_or_create(T0, is_new=True, directory=A), [5])
    assert 0 == manager.checkpointed_high_watermark(T0)
    assert 2 == manager.checkpointed_high_watermark(T1)


class CountingFiles(MemoryFiles):
    """A disk that counts what is made durable on it."""

    def __init__(self) -> None:
        super().__init__()
        self.replaced: list[str] = []

    def replace_file(self, path: str, content: bytes) -> None:
        self.replaced.append(path)
        super().replace_file(path, content)


def test_many_deletions_are_noted_once_in_each_directory() -> None:
    files = CountingFiles()
    host = Host(files)
    manager = host.started()
    keys = [TopicPartition("t", number) for number in range(10)]
    for key in keys:
        manager.get_or_create(key, is_new=True)
    files.replaced.clear()
    assert keys == manager.delete([*keys, U0])
    points = [path for path in files.replaced if path.endswith(RECOVERY_POINTS)]
    assert [f"{A}/{RECOVERY_POINTS}", f"{B}/{RECOVERY_POINTS}"] == sorted(points)
    assert [{}, {}] == [read_offsets(files, path) for path in points]


def test_an_unfinished_deletion_goes_on_at_the_next_start() -> None:
    host = Host()
    manager = host.started()
    fill(manager.get_or_create(T0, is_new=True), [3])
    manager.delete([T0])
    again = host.killed()
    again.started()
    assert len(names(again, A)) == 1
    again.tasks.run_waiting()
    assert names(again, A) == []


def test_a_stray_log_is_put_aside_and_kept() -> None:
    host = Host()
    manager = host.started()
    fill(manager.get_or_create(T0, is_new=True), [3])
    assert manager.mark_stray(T0, "of another topic")
    assert not manager.mark_stray(T0, "of another topic")
    host.tasks.run_waiting()
    again = host.killed()
    found = again.manager().start()
    assert {} == {**found[A].logs, **found[B].logs}
    (path,) = found[A].strays
    assert again.files.exists(f"{path}/{0:020d}.log")


def test_a_future_log_takes_the_place_of_the_old_one() -> None:
    host = Host()
    manager = host.started()
    old = manager.get_or_create(T0, is_new=True)
    fill(old, [3, 4])
    future = manager.get_or_create(T0, is_new=True, is_future=True, directory=B)
    future.append_as_follower(memoryview(old.read(0, 1 << 20).read()), NOW_MS)
    restarted = host.killed().started()
    assert restarted.futures[T0].log_end_offset == 7
    assert manager.promote_future(T0) is future
    assert (manager.get(T0), manager.get(T0, is_future=True)) == (future, None)
    assert (B, f"{B}/t-0") == (manager.directory_of(future), future.directory)
    fill(future, [1])
    host.tasks.run_waiting()
    assert ([], ["t-0"]) == (names(host, A), names(host, B))
    again = host.killed().started()
    assert [0, 3, 7] == [base for base, _ in batches_of(again.logs[T0])]


@pytest.mark.parametrize(("call", "path_end"), [("rename", "-future"), ("sync", B)])
def test_a_move_into_a_failing_directory_leaves_the_old_log(call: str, path_end: str) -> None:
    host = Host()
    manager = host.started()
    old = manager.get_or_create(T0, is_new=True)
    fill(old, [3])
    manager.get_or_create(T0, is_new=True, is_future=True, directory=B)
    host.files.fail(call, errno.EIO, path_end=path_end)
    with pytest.raises(KafkaStorageError):
        manager.promote_future(T0)
    # The log that was to be replaced is elsewhere, and nothing is lost.
    assert [(B, [])] == [(path, lost) for path, _, lost in host.offline]
    assert manager.get(T0) is old
    assert {} == manager.futures


def test_what_is_foreign_in_a_deleted_directory_is_not_followed() -> None:
    host = Host()
    manager = host.started()
    log = manager.get_or_create(T0, is_new=True)
    host.files.make_dir(f"{log.directory}/folder")
    manager.delete([T0])
    host.tasks.run_waiting()
    (name,) = names(host, A)
    assert host.files.list_dir(f"{A}/{name}") == ["folder"]
    assert host.offline == []


# Tasks


def test_tasks_run_with_kafka_s_periods() -> None:
    host = Host()
    host.started()
    assert {
        "kafka-log-retention": 300_000,
        "kafka-recovery-point-checkpoint": 60_000,
        "kafka-log-start-offset-checkpoint": 60_000,
        "PeriodicProducerExpirationCheck": 600_000,
    } == {name: period for name, period, _ in host.tasks.periodic}


def test_retention_runs_over_all_logs_below_their_high_watermarks() -> None:
    host = Host()
    host.configs["t"] = SMALL._replace(retention_ms=1000)
    manager = host.started()
    for key in (T0, T1):
        fill(manager.get_or_create(key, is_new=True), [10] * 5)
    host.high_watermarks[T1] = 25
    host.clock.advance(5000)
    before = [set(log.segments.bases) for log in manager.logs.values()]
    take_all(manager.apply_retention())
    after = [set(log.segments.bases) for log in manager.logs.values()]
    assert [3, 1] == [len(old - new) for old, new in zip(before, after, strict=True)]
    assert (50, 20) == (manager.logs[T0].log_start_offset, manager.logs[T1].log_start_offset)


def test_flush_ms_is_kept_by_a_task() -> None:
    host = Host()
    host.configs["t"] = SMALL._replace(flush_ms=1000)
    manager = host.started(flush_scheduler_interval_ms=500)
    log = manager.get_or_create(T0, is_new=True)
    fill(manager.get_or_create(U0, is_new=True), [3])
    log.flush(NOW_MS)
    fill(log, [3])
    host.clock.advance(999)
    host.tasks.run_periodic("kafka-log-flusher")
    assert log.recovery_point == 0
    host.clock.advance(1)
    host.tasks.run_periodic("kafka-log-flusher")
    assert (3, 0) == (log.recovery_point, manager.logs[U0].recovery_point)


def test_new_settings_reach_the_logs_of_their_topic() -> None:
    host = Host()
    manager = host.started()
    first, other = manager.get_or_create(T0, is_new=True), manager.get_or_create(U0, is_new=True)
    host.configs["t"] = SMALL._replace(segment_bytes=1 << 20)
    manager.reconfigure("t")
    assert (1 << 20, 600) == (first.config.segment_bytes, other.config.segment_bytes)


def test_new_settings_of_the_broker_reach_all_logs_and_are_worked_out_once_a_topic() -> None:
    host = Host()
    requested: list[str] = []

    def config_of(topic: str) -> LogConfig:
        requested.append(topic)
        return SMALL._replace(segment_bytes=600 + len(requested))

    manager = host.started(config_of=config_of)
    logs = [manager.get_or_create(key, is_new=True) for key in (T0, T1, U0)]
    requested.clear()
    manager.reconfigure()
    assert ["t", "u"] == requested
    assert [601, 601, 602] == [log.config.segment_bytes for log in logs]


def test_a_truncation_is_written_down_before_anything_else() -> None:
    host = Host()
    manager = host.started()
    log = manager.get_or_create(T0, is_new=True)
    fill(log, [10] * 5)
    log.flush(NOW_MS)
    manager.checkpoint_recovery_points()
    log.truncate_to(20, NOW_MS)
    assert read_offsets(host.files, f"{A}/{RECOVERY_POINTS}") == {T0: 20}


def test_a_recovery_point_above_the_end_of_a_log_is_lowered_before_it_grows() -> None:
    host = Host()
    host.started(dirs=(A,)).stop()
    for key in (T0, T1):
        host.files.make_dir(f"{A}/{key}")
        handle = host.files.open(f"{A}/{key}/{0:020d}.log", write=True, create=True)
        handle.append((batch(0, 3), batch(3, 2)))
    points = encode_offsets({T0: 9, T1: 4})
    host.files.replace_file(f"{A}/{RECOVERY_POINTS}", points)
    host.files.remove(f"{A}/.kafka_cleanshutdown")
    host.started(dirs=(A,))
    assert {T0: 5, T1: 4} == read_offsets(host.files, f"{A}/{RECOVERY_POINTS}")


def test_a_watermark_above_the_end_of_a_log_is_lowered_before_it_grows() -> None:
    host = Host()
    host.started(dirs=(A,)).stop()
    for key in (T0, T1):
        host.files.make_dir(f"{A}/{key}")
        handle = host.files.open(f"{A}/{key}/{0:020d}.log", write=True, create=True)
        handle.append((batch(0, 3), batch(3, 2)))
    host.files.replace_file(f"{A}/{HIGH_WATERMARKS}", encode_offsets({T0: 9, T1: 4}))
    host.files.remove(f"{A}/.kafka_cleanshutdown")
    manager = host.started(dirs=(A,))
    assert {T0: 5, T1: 4} == read_offsets(host.files, f"{A}/{HIGH_WATERMARKS}")
    fill(manager.logs[T0], [3])
    again = host.killed().started(dirs=(A,))
    assert 8 == again.logs[T0].log_end_offset
    assert 5 == again.checkpointed_high_watermark(T0)


def test_a_truncation_below_the_watermark_lowers_it_before_the_log_grows() -> None:
    host = Host()
    manager = host.started(dirs=(A,))
    log = manager.get_or_create(T0, is_new=True)
    fill(log, [10] * 5)
    manager.checkpoint_high_watermarks({T0: 50})
    log.truncate_to(20, NOW_MS)
    fill(log, [10] * 2)
    again = host.killed().started(dirs=(A,))
    assert 40 == again.logs[T0].log_end_offset
    assert 20 == again.checkpointed_high_watermark(T0)


def test_a_log_takes_nothing_over_from_one_whose_folder_is_gone() -> None:
    host = Host()
    manager = host.started(dirs=(A,))
    for key in (T0, T1):
        log = manager.get_or_create(key, is_new=True)
        fill(log, [20, 10])
        log.flush(NOW_MS)
        log.maybe_increment_log_start_offset(12, 30, LogStartReason.DELETE_RECORDS)
        manager.write_first_dirty_offset(log, 7)
    manager.checkpoint_high_watermarks({T0: 25, T1: 25})
    manager.stop()
    remove_folder(host.files, f"{A}/{T0}")
    manager = host.started(dirs=(A,))
    stored = {name: read_offsets(host.files, f"{A}/{name}") for name in FILE_NAMES}
    assert {
        RECOVERY_POINTS: {T1: 30},
        LOG_STARTS: {T1: 12},
        HIGH_WATERMARKS: {T1: 25},
        CLEANER_POINTS: {T1: 7},
    } == stored
    fill(manager.get_or_create(T0, is_new=True), [5])
    again = host.killed().started(dirs=(A,))
    assert (0, 5) == (again.logs[T0].log_start_offset, again.logs[T0].log_end_offset)
    assert 0 == again.checkpointed_high_watermark(T0)
    assert again.first_dirty_offset(again.logs[T0]) is None


def test_a_copy_on_its_way_keeps_its_lines() -> None:
    host = Host()
    manager = host.started()
    fill(manager.get_or_create(T0, is_new=True, directory=A), [20])
    future = manager.get_or_create(T0, is_future=True, directory=B)
    fill(future, [20])
    future.flush(NOW_MS)
    manager.stop()
    host.started()
    assert {T0: 20} == read_offsets(host.files, f"{B}/{RECOVERY_POINTS}")


def test_the_watermark_of_a_stopped_replica_outlives_the_deletion_of_another() -> None:
    host = Host()
    manager = host.started(dirs=(A,))
    for key in (T0, T1, U0):
        fill(manager.get_or_create(key, is_new=True), [5])
    manager.checkpoint_high_watermarks({T0: 4, T1: 5, U0: 5})
    manager.keep_high_watermark(T0, 4)
    manager.delete([T1])
    manager.checkpoint_high_watermarks({U0: 5})
    assert {T0: 4, U0: 5} == read_offsets(host.files, f"{A}/{HIGH_WATERMARKS}")
    assert 4 == manager.checkpointed_high_watermark(T0)


def test_a_directory_of_another_making_is_served() -> None:
    host = Host()
    host.started().stop()
    host.files.make_dir(f"{A}/{T0}")
    handle = host.files.open(f"{A}/{T0}/{0:020d}.log", write=True, create=True)
    handle.append((batch(0, 3), batch(3, 2)))
    assert host.started().logs[T0].log_end_offset == 5


def test_a_log_that_cannot_be_rolled_keeps_retention_from_no_other() -> None:
    host = Host()
    manager = host.started(dirs=(A,))
    for key in (T0, T1):
        fill(manager.get_or_create(key, is_new=True), [3] * 6)
    active = manager.logs[T0].active_segment
    active.time_index.maybe_append(NOW_MS + 10**9, active.largest.offset)
    host.clock.advance(10**12)
    take_all(manager.apply_retention())
    assert 18 == manager.logs[T1].log_start_offset
    assert [] == host.offline


def test_a_log_that_could_not_be_opened_keeps_its_lines_in_all_checkpoints() -> None:
    host = Host()
    manager = host.started(dirs=(A,))
    for key in (T0, T1):
        log = manager.get_or_create(key, is_new=True)
        fill(log, [20, 10])
        log.flush(NOW_MS)
        log.maybe_increment_log_start_offset(12, 30, LogStartReason.DELETE_RECORDS)
        manager.write_first_dirty_offset(log, 7)
    manager.checkpoint_high_watermarks({T0: 25, T1: 25})
    path = manager.logs[T0].segments.first.path(FileKind.LOG)
    manager.stop()
    host.files.remove(f"{A}/.kafka_cleanshutdown")
    broken = path.replace(f"{0:020d}", f"{500:020d}")
    host.files.rename(path, broken)
    again = host.manager(dirs=(A,))
    (failed,) = again.start()[A].failed
    assert T0 == failed.topic_partition
    again.checkpoint_recovery_points()
    again.checkpoint_log_starts()
    again.checkpoint_high_watermarks({T1: 26})
    again.write_first_dirty_offset(again.logs[T1], 8)
    again.stop()
    stored = {name: read_offsets(host.files, f"{A}/{name}") for name in FILE_NAMES}
    assert {
        RECOVERY_POINTS: {T0: 30, T1: 30},
        LOG_STARTS: {T0: 12, T1: 12},
        HIGH_WATERMARKS: {T0: 25, T1: 26},
        CLEANER_POINTS: {T0: 7, T1: 8},
    } == stored
    host.files.rename(broken, path)
    repaired = host.started(dirs=(A,)).logs[T0]
    assert (12, 30) == (repaired.log_start_offset, repaired.log_end_offset)


def test_what_a_future_log_has_deleted_goes_after_it_has_taken_the_place_of_the_live_one() -> None:
    host = Host()
    manager = host.started()
    fill(manager.get_or_create(T0, is_new=True, directory=A), [10])
    future = manager.get_or_create(T0, is_future=True, directory=B)
    for number in range(4):
        future.append_as_leader(sent_by(1, 10 * number, 10), 0, NOW_MS)
        future.roll(NOW_MS)
    future.delete_segments_before(20, 40, NOW_MS)
    manager.promote_future(T0)
    left = [name for name in host.files.list_dir(f"{B}/t-0") if name.endswith(".deleted")]
    assert any(".snapshot" in name for name in left) and any(".log" in name for name in left)
    host.tasks.run_waiting()
    left = [name for name in host.files.list_dir(f"{B}/t-0") if name.endswith(".deleted")]
    assert [] == left


def test_what_a_deleted_log_has_left_to_remove_leaves_its_successor_alone() -> None:
    host = Host()
    manager = host.started(dirs=(A,))
    fill(manager.get_or_create(T0, is_new=True), [10, 10, 10])
    manager.logs[T0].delete_segments_before(20, 30, NOW_MS)
    manager.delete([T0])
    fresh = manager.get_or_create(T0, is_new=True)
    earlier, host.tasks.waiting = host.tasks.waiting, []
    fill(fresh, [10, 10, 10])
    fresh.delete_segments_before(20, 30, NOW_MS)
    for _, _, action in earlier:
        action()
    assert [name for name in host.files.list_dir(fresh.directory) if name.endswith(".deleted")]


def damage(host: Host, path: str) -> None:
    """Leave a log's folder with a first segment that cannot be its own."""
    (log,) = [name for name in host.files.list_dir(path) if name.endswith(".log")]
    host.files.rename(f"{path}/{log}", f"{path}/{500:020d}.log")


def with_damaged(*, is_future: bool) -> tuple[Host, LogManager, str]:
    """Return a start that has met a damaged log, and that log's folder."""
    host = Host()
    manager = host.started(dirs=(A, B))
    fill(manager.get_or_create(T0, is_new=True, directory=A), [3])
    log = manager.logs[T0]
    if is_future:
        log = manager.get_or_create(T0, is_new=True, is_future=True, directory=B)
        fill(log, [3])
    folder = log.directory
    manager.stop()
    host.files.remove(f"{B if is_future else A}/.kafka_cleanshutdown")
    damage(host, folder)
    again = host.manager(dirs=(A, B))
    found = again.start()
    assert [folder] == [failed.directory for each in found.values() for failed in each.failed]
    return host, again, folder


def test_a_damaged_copy_on_its_way_keeps_its_partition_from_nothing() -> None:
    host, manager, folder = with_damaged(is_future=True)
    log = manager.logs[T0]
    assert log is manager.get_or_create(T0)
    with pytest.raises(KafkaStorageError, match="damaged"):
        manager.get_or_create(T0, is_new=True, is_future=True, directory=B)
    # The next move begins with a copy of its own.
    assert [T0] == manager.delete([T0], only_future=True)
    assert not host.files.exists(folder)
    assert manager.get_or_create(T0, is_new=True, is_future=True, directory=B).log_end_offset == 0
    assert log is manager.get(T0)


@pytest.mark.parametrize("is_future", [False, True])
def test_a_damaged_log_goes_with_its_topic(is_future: bool) -> None:
    host, manager, folder = with_damaged(is_future=is_future)
    assert [T0] == manager.delete([T0])
    left = [name for path in (A, B) for name in names(host, path)]
    assert {"-delete"} == {name[-7:] for name in left}
    host.tasks.run_waiting()
    assert [] == [name for path in (A, B) for name in names(host, path)]
    assert not host.files.exists(folder)
    fill(manager.get_or_create(T0, is_new=True), [1])
    manager.stop()
    assert all(host.files.exists(f"{path}/.kafka_cleanshutdown") for path in (A, B))


@pytest.mark.parametrize("change", ["deleted", "deleted and made again", "offline", "stopped"])
@pytest.mark.parametrize("task", ["apply_retention", "flush_dirty", "expire_producers"])
def test_a_task_in_steps_passes_over_what_is_gone_meanwhile(task: str, change: str) -> None:
    host = Host()
    host.configs["t"] = SMALL._replace(retention_ms=1000, flush_ms=1000)
    manager = host.started(dirs=(A,))
    for key in (T0, T1):
        fill(manager.get_or_create(key, is_new=True), [10] * 5)
    gone = manager.logs[T1]
    host.clock.advance(5000)
    steps = getattr(manager, task)()
    next(steps)
    if change == "offline":
        manager.take_offline(A, LogDirOffline(A, "sync", "a fault", errno.EIO))
    elif change == "stopped":
        manager.stop()
    else:
        manager.delete([T1])
        if change == "deleted and made again":
            fill(manager.get_or_create(T1, is_new=True), [10])
    known = (gone.log_start_offset, gone.recovery_point, len(host.files.list_dir(A)))
    take_all(steps)
    assert known == (gone.log_start_offset, gone.recovery_point, len(host.files.list_dir(A)))


def test_a_damaged_log_of_a_failed_directory_stays_as_it_is() -> None:
    host, manager, folder = with_damaged(is_future=False)
    manager.take_offline(A, LogDirOffline(A, "sync", "a fault", errno.EIO))
    before = host.files.operations
    assert [] == manager.delete([T0])
    assert (before, True) == (host.files.operations, host.files.exists(folder))


@pytest.mark.parametrize("is_stray", [False, True])
def test_a_log_whose_folder_cannot_be_renamed_is_not_kept_open(
    is_stray: bool, tmp_path: Path
) -> None:
    host = Host(RealFiles())  # type: ignore[arg-type]
    manager = host.started(dirs=(str(tmp_path),))
    before = open_below(tmp_path)
    manager.get_or_create(T0, is_new=True)
    assert before != open_below(tmp_path)
    (tmp_path / str(T0)).rename(tmp_path / "elsewhere")
    if is_stray:
        assert manager.mark_stray(T0, "it is of another topic")
    else:
        with pytest.raises(KafkaStorageError):
            manager.delete([T0])
    assert [str(tmp_path)] == [path for path, _, _ in host.offline]
    assert before == open_below(tmp_path)


_TOPIC_ID = "4vmmUueMS4Wj1W_WuhGMWQ"


class _CountedSyncs(MemoryFiles):
    """Counts the syncs of names in a directory."""

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[str] = []

    def sync_dir(self, path: str) -> None:
        self.synced.append(path)
        super().sync_dir(path)


def _creating(files: MemoryFiles | None = None) -> tuple[Host, HeldTasks, LogManager]:
    """Return a manager whose tasks wait until a test runs them."""
    host, tasks = Host(files), HeldTasks()
    host.tasks = tasks
    return host, tasks, host.started(dirs=(A,))


def _ids_after_a_power_cut(host: Host) -> list[str | None]:
    files = host.files.after_crash()
    paths = [f"{A}/{name}" for name in files.list_dir(A) if name.startswith("t-")]
    metadata = [f"{path}/{partition_metadata.FILE_NAME}" for path in paths]
    return [
        read_partition_metadata(files, path).topic_id if files.exists(path) else None
        for path in metadata
    ]


def test_a_created_log_is_durable_with_its_topics_id_once_its_task_has_run() -> None:
    host, tasks, manager = _creating()
    log = manager.get_or_create(T0, is_new=True, topic_id=_TOPIC_ID)
    assert _TOPIC_ID == log.topic_id
    assert [] == _ids_after_a_power_cut(host)
    tasks.held.pop()()
    assert [_TOPIC_ID] == _ids_after_a_power_cut(host)


def test_a_created_log_is_durable_before_its_first_records() -> None:
    host, tasks, manager = _creating()
    fill(manager.get_or_create(T0, is_new=True, topic_id=_TOPIC_ID), [1])
    assert [_TOPIC_ID] == _ids_after_a_power_cut(host)
    tasks.held.pop()()
    assert [] == host.offline


def test_a_log_is_created_without_a_sync_and_many_share_that_of_their_directory() -> None:
    files = _CountedSyncs()
    _, tasks, manager = _creating(files)
    files.synced.clear()
    for key in (T0, T1, U0):
        manager.get_or_create(key, is_new=True)
    assert [] == files.synced
    for task in tasks.held:
        task()
    assert [A] == files.synced


def test_a_directory_that_cannot_sync_a_created_log_goes_offline() -> None:
    host, tasks, manager = _creating()
    host.files.fail("sync", errno.EIO, path_start=A)
    manager.get_or_create(T0, is_new=True, topic_id=_TOPIC_ID)
    assert [] == host.offline
    tasks.held.pop()()
    ((path, _, lost),) = host.offline
    assert (A, [T0]) == (path, lost)


@pytest.mark.parametrize("is_future", [False, True])
def test_a_log_that_cannot_be_made_durable_at_once_is_not_kept(*, is_future: bool) -> None:
    host = Host()
    manager = host.started(dirs=(A,))
    host.files.fail("sync", errno.EIO, path_start=A)
    with pytest.raises(KafkaStorageError):
        manager.get_or_create(T0, is_new=True, topic_id=_TOPIC_ID, is_future=is_future)
    ((path, _, lost),) = host.offline
    assert (A, [] if is_future else [T0]) == (path, lost)
    assert ({}, {}) == (manager.logs, manager.futures)


def test_a_folder_that_was_there_before_its_log_is_recovered_as_after_a_kill() -> None:
    files = _CountedSyncs()
    _, _, manager = _creating(files)
    files.make_dir(f"{A}/t-0")
    files.synced.clear()
    manager.get_or_create(T0, is_new=True)
    assert [f"{A}/t-0"] == files.synced


def test_a_folder_that_was_there_before_its_log_keeps_the_id_of_its_topic() -> None:
    # Taken for the log of another topic, its leader's order is refused.
    before, tasks, manager = _creating()
    manager.get_or_create(T0, is_new=True, topic_id=_TOPIC_ID)
    tasks.held.pop()()
    later = Host(before.files).manager(dirs=(A,))
    assert _TOPIC_ID == later.get_or_create(T0, is_new=True, topic_id="A" * 22).topic_id


def test_a_folder_that_a_killed_process_made_is_durable_as_it_is_loaded() -> None:
    before, _, manager = _creating()
    manager.get_or_create(T0, is_new=True, topic_id=_TOPIC_ID)
    # The disk is that of before, with what it has not synced.
    host = Host(before.files)
    host.started(dirs=(A,))
    assert 1 == len(_ids_after_a_power_cut(host))


def test_a_sync_of_names_that_has_failed_is_not_tried_again() -> None:
    host, _, manager = _creating()
    (home,) = manager.directories
    home.note_new_name()
    host.files.fail("sync", errno.EIO, path_start=A)
    for _ in range(2):
        with pytest.raises(LogDirOffline):
            home.sync_new_folders()
