"""Replicas move between the log directories of a broker. Source: REPL-14, KIP-113."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from engine.broker.coordinator_topic import CoordinatorTopic
from engine.errors import CorruptFile
from engine.host.memory_network import MemoryWorkers
from engine.host.ports import LogDirOffline
from engine.kafka_errors import (
    INVALID_TOPIC_EXCEPTION,
    KAFKA_STORAGE_ERROR,
    LOG_DIR_NOT_FOUND,
    REPLICA_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.log.local_log import LocalLog
from engine.log.log_messages import LogStartReason
from engine.model import TopicPartition
from engine.replication import directory_move
from engine.wire.structs import message_class
from tests.unit.broker.memory_cluster import T0, MemoryCluster
from tests.unit.broker.test_throttled_replication import alter
from tests.unit.log.writing import sent

_BROKER = 4


def cluster_of(**settings: str) -> MemoryCluster:
    """Return a cluster with two log directories each, and a topic of brokers 1 and 2."""
    cluster = MemoryCluster(
        is_one_process=True,
        log_dirs="/one,/two",
        replica_fetch_max_bytes="300",
        log_segment_delete_delay_ms="1000",
        **settings,
    )
    cluster.create_topic(replicas=[(1, 2)])
    cluster.pass_time(2000)
    for _ in range(20):
        assert 0 == cluster.produce(1, 5).code()
    return cluster


def moved(cluster: MemoryCluster, path: str, topic: str = "t", broker_id: int = 1) -> int:
    """Ask for a move; returns the error code."""
    request = message_class("AlterReplicaLogDirsRequest")
    row = request.AlterReplicaLogDirTopic(name=topic, partitions=[0])
    directory = request.AlterReplicaLogDir(path=path, topics=[row])
    answer = cluster.ask(broker_id, "AlterReplicaLogDirs", 2, dirs=[directory]).answer()
    ((result,),) = ([row.partitions[0] for row in answer.results],)
    code: int = result.error_code
    return code


def home(cluster: MemoryCluster, broker_id: int = 1) -> str:
    return cluster.partition(broker_id).log.directory.rpartition("/")[0]


def other(cluster: MemoryCluster) -> str:
    return "/two" if home(cluster) == "/one" else "/one"


def rows(cluster: MemoryCluster) -> list[Any]:
    """Return what DescribeLogDirs says: directory, future, lag."""
    answer = cluster.ask(1, "DescribeLogDirs", 4, topics=None).answer()
    return [
        (result.log_dir, partition.is_future_key, partition.offset_lag)
        for result in answer.results
        for topic in result.topics
        for partition in topic.partitions
    ]


def slow(cluster: MemoryCluster) -> None:
    """Let about one chunk a second through."""
    alter(cluster, _BROKER, "1", replica_alter_log_dirs_io_max_bytes_per_second="300")


def test_a_leader_moves_and_is_written_on() -> None:
    cluster = cluster_of()
    before, wanted = home(cluster), other(cluster)
    content = cluster.content(1)
    assert 0 == moved(cluster, wanted)
    cluster.pass_time(100)
    assert wanted == home(cluster)
    assert content == cluster.content(1)
    assert [(wanted, False, 0)] == rows(cluster)
    assert 0 == cluster.produce(1, 5).code()
    assert cluster.content(1) == cluster.content(2) != content
    files = cluster.disks[1]
    assert [name for name in files.list_dir(before) if name.endswith("-delete")]
    cluster.pass_time(2000)
    assert not [name for name in files.list_dir(before) if name.startswith("t-0")]


def test_what_was_flushed_before_a_move_is_flushed_after_it() -> None:
    cluster = cluster_of()
    log, wanted = cluster.partition(1).log, other(cluster)
    log.flush(0)
    flushed = log.recovery_point
    assert 0 == cluster.produce(1, 5).code()
    assert 0 == moved(cluster, wanted)
    cluster.pass_time(100)
    assert wanted == home(cluster)
    assert flushed <= cluster.partition(1).log.recovery_point
    cluster.cut_power(1)
    cluster.start(1)
    cluster.pass_time(100)
    assert wanted == home(cluster)
    assert flushed <= cluster.partition(1).log.log_end_offset


def bytes_after_a_power_cut(cluster: MemoryCluster) -> int:
    """Return how many bytes of the log a power cut of broker 1 would leave."""
    disk = cluster.disks[1].after_crash()
    return sum(
        disk.size_bytes(f"{directory}/{folder}/{name}")
        for directory in ("/one", "/two")
        for folder in disk.list_dir(directory)
        if folder.startswith("t-0") and not folder.endswith("-delete")
        for name in disk.list_dir(f"{directory}/{folder}")
        if name.endswith(".log")
    )


def test_what_was_on_disk_before_a_move_is_on_disk_after_it() -> None:
    cluster = cluster_of()
    disk = cluster.disks[1]
    killed = disk.after_crash(kept_changes=disk.unsynced_changes())
    cluster.cut_power(1)
    cluster.disks[1] = killed
    cluster.start(1)
    cluster.pass_time(10_000)
    # The recovery synced what it read, and the recovery point does not say so.
    assert 0 == cluster.partition(1).log.recovery_point
    bytes_before, wanted = bytes_after_a_power_cut(cluster), other(cluster)
    assert bytes_before > 0
    assert 0 == moved(cluster, wanted)
    cluster.pass_time(3000)
    assert wanted == home(cluster)
    assert bytes_before <= bytes_after_a_power_cut(cluster)


def slow_flushes(monkeypatch: pytest.MonkeyPatch, cluster: MemoryCluster) -> list[int]:
    """Let each flush on a worker take 300 ms; return the list of when they began."""
    submit = MemoryWorkers.submit
    began_ms: list[int] = []

    def submit_slowly(self: MemoryWorkers, name: str, work: Callable[[], None]) -> None:
        """Run a flush late, other work at once."""
        if name == "flush-log":
            began_ms.append(cluster.clock.monotonic_ms())
            cluster.timers.call_at(began_ms[-1] + 300, work)
        else:
            submit(self, name, work)

    monkeypatch.setattr(MemoryWorkers, "submit", submit_slowly)
    return began_ms


def slow_move(monkeypatch: pytest.MonkeyPatch) -> tuple[MemoryCluster, str, list[int]]:
    """Begin a move whose flushes are slow; return the wanted directory and their times, too."""
    cluster = cluster_of()
    began_ms = slow_flushes(monkeypatch, cluster)
    wanted = other(cluster)
    assert 0 == moved(cluster, wanted)
    return cluster, wanted, began_ms


def test_a_move_flushes_on_a_worker_again_what_was_appended_meanwhile_if_it_is_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = cluster_of()
    began_ms = slow_flushes(monkeypatch, cluster)
    monkeypatch.setattr(directory_move, "_FLUSHED_AT_ONCE_BYTES", 500)
    assert 0 == moved(cluster, other(cluster))
    cluster.pass_time(100)
    for count in (60, 1):
        assert 0 == cluster.produce(1, count).code()
        cluster.partition(1).log.flush(0)
        cluster.pass_time(300)
    assert 2 == len(began_ms)
    cluster.pass_time(100)
    log = cluster.partition(1).log
    assert (161, 161) == (log.log_end_offset, log.recovery_point)


@pytest.mark.parametrize("flushes", [False, True])
def test_a_move_ends_though_its_log_is_written_faster_than_a_worker_flushes(
    flushes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = cluster_of()
    began_ms = slow_flushes(monkeypatch, cluster)
    monkeypatch.setattr(directory_move, "_FLUSHED_AT_ONCE_BYTES", 500)
    wanted = other(cluster)
    assert 0 == moved(cluster, wanted)
    for _ in range(20):
        assert 0 == cluster.produce(1, 20).code()
        if flushes:
            cluster.partition(1).log.flush(0)
            flushed = cluster.partition(1).log.recovery_point
        cluster.pass_time(100)
    assert wanted == home(cluster)
    assert (2 if flushes else 1) == len(began_ms)
    if flushes:
        assert flushed <= cluster.partition(1).log.recovery_point


def test_a_move_ends_though_records_are_deleted_faster_than_its_copy_is_flushed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, wanted, _ = slow_move(monkeypatch)
    for _ in range(10):
        assert 0 == cluster.produce(1, 1).code()
        log = cluster.partition(1).log
        end = log.log_end_offset
        log.maybe_increment_log_start_offset(end - 1, end, LogStartReason.LEADER_START)
        cluster.pass_time(100)
    assert wanted == home(cluster)


def test_a_move_ends_though_its_log_is_flushed_more_often_than_its_copy_can_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = cluster_of()
    slow_flushes(monkeypatch, cluster)
    cluster.partition(1).log.flush(0)
    wanted = other(cluster)
    assert 0 == moved(cluster, wanted)
    for _ in range(10):
        assert 0 == cluster.produce(1, 1).code()
        cluster.partition(1).log.flush(0)
        flushed = cluster.partition(1).log.recovery_point
        cluster.pass_time(100)
    assert wanted == home(cluster)
    assert flushed <= cluster.partition(1).log.recovery_point


def test_a_move_whose_flush_cannot_start_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = cluster_of()
    cluster.partition(1).log.flush(0)
    before, wanted = home(cluster), other(cluster)

    def refused(self: LocalLog, *_: object) -> None:
        raise CorruptFile(self.directory, "a flush", "a refusal")

    with monkeypatch.context() as patch:
        patch.setattr(LocalLog, "start_flush", refused)
        assert 0 == moved(cluster, wanted)
        cluster.pass_time(1000)
    assert before == home(cluster)
    started: list[int] = []
    start_flush = LocalLog.start_flush

    def start(self: LocalLog, now_ms: int, on_end: Callable[[], None]) -> None:
        started.append(self.log_end_offset)
        start_flush(self, now_ms, on_end)

    monkeypatch.setattr(LocalLog, "start_flush", start)
    assert 0 == moved(cluster, wanted)
    cluster.pass_time(1000)
    assert wanted == home(cluster)
    assert [100] == started


def test_what_a_truncation_of_the_log_has_synced_is_on_disk_after_a_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster, wanted, _ = slow_move(monkeypatch)
    cluster.pass_time(100)
    for _ in range(10):
        assert 0 == cluster.produce(1, 5).code()
    log = cluster.partition(1).log
    log.truncate_to(130, 0)
    log._truncation.finish_pending_steps()
    bytes_before = bytes_after_a_power_cut(cluster)
    cluster.pass_time(3000)
    assert wanted == home(cluster)
    assert bytes_before <= bytes_after_a_power_cut(cluster)


def test_a_truncation_of_the_log_does_not_bring_much_to_be_flushed_on_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(directory_move, "_FLUSHED_AT_ONCE_BYTES", 500)
    cluster, wanted, began_ms = slow_move(monkeypatch)
    cluster.pass_time(100)
    for _ in range(2):
        assert 0 == cluster.produce(1, 5).code()
    log = cluster.partition(1).log
    log.truncate_to(105, 0)
    cluster.pass_time(300)
    for _ in range(60):
        assert 0 == cluster.produce(1, 5).code()
    log.flush(0)
    cluster.pass_time(3000)
    assert wanted == home(cluster)
    assert 3 == len(began_ms)


def test_a_copy_that_was_truncated_is_flushed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, wanted, began_ms = slow_move(monkeypatch)
    cluster.pass_time(100)
    partition = cluster.partition(1)
    partition.log.truncate_to(50, 0)
    for _ in range(10):
        partition.log.append_as_leader(sent(5), partition.leader_epoch + 1, 0)
    cluster.pass_time(2000)
    assert wanted == home(cluster)
    assert 2 == len(began_ms)
    assert 100 == cluster.partition(1).log.recovery_point


def test_a_follower_moves_too_and_both_go_on_after_a_restart() -> None:
    cluster = cluster_of()
    wanted = "/two" if home(cluster, 2) == "/one" else "/one"
    assert 0 == moved(cluster, wanted, broker_id=2)
    cluster.pass_time(100)
    assert wanted == home(cluster, 2)
    assert 0 == cluster.produce(1, 5).code()
    cluster.stop(2)
    cluster.start(2)
    cluster.pass_time(2000)
    assert wanted == home(cluster, 2)
    assert cluster.content(1) == cluster.content(2)
    assert [1, 2] == sorted(cluster.stored().isr)


def test_a_move_keeps_to_its_rate_and_is_reported_meanwhile() -> None:
    cluster = cluster_of()
    slow(cluster)
    before, wanted = home(cluster), other(cluster)
    assert 0 == moved(cluster, wanted)
    cluster.pass_time(2000)
    assert before == home(cluster)
    lag = {row[0]: row[2] for row in rows(cluster) if row[1]}
    assert 0 < lag[wanted] < 100
    # What is asked for again changes nothing.
    assert 0 == moved(cluster, wanted)
    assert 0 == cluster.produce(1, 5).code()
    cluster.pass_time(30_000)
    assert [(wanted, False, 0)] == rows(cluster)
    assert cluster.content(1) == cluster.content(2)


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_move_goes_on_in_the_next_life(is_clean: bool) -> None:
    cluster = cluster_of()
    slow(cluster)
    wanted = other(cluster)
    assert 0 == moved(cluster, wanted)
    cluster.pass_time(3000)
    if is_clean:
        cluster.stop(1)
    else:
        cluster.cut_power(1)
    cluster.pass_time(500)
    cluster.start(1)
    cluster.pass_time(40_000)
    assert wanted == home(cluster)
    assert cluster.content(1) == cluster.content(2)


def test_back_to_where_it_is_ends_a_move() -> None:
    cluster = cluster_of()
    slow(cluster)
    before, wanted = home(cluster), other(cluster)
    assert 0 == moved(cluster, wanted)
    cluster.pass_time(2000)
    assert 0 == moved(cluster, before)
    assert [(before, False, 0)] == rows(cluster)
    cluster.pass_time(30_000)
    assert before == home(cluster)
    assert not [name for name in cluster.disks[1].list_dir(wanted) if "t-0" in name]


def test_a_consumer_that_waits_at_the_end_hears_of_what_comes_after_the_move() -> None:
    cluster = cluster_of()
    request = message_class("FetchRequest")
    requested = request.FetchPartition(partition=0, fetch_offset=100, partition_max_bytes=1 << 20)
    waiting = cluster.ask(
        1,
        "Fetch",
        11,
        max_wait_ms=20_000,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[request.FetchTopic(topic="t", partitions=[requested])],
    )
    assert 0 == moved(cluster, other(cluster))
    cluster.pass_time(200)
    assert 0 == cluster.produce(1, 5).code()
    cluster.pass_time(200)
    assert waiting.answer().responses[0].partitions[0].records


def test_what_cannot_be_moved_is_refused() -> None:
    cluster = cluster_of()
    assert LOG_DIR_NOT_FOUND == moved(cluster, "/three")
    assert REPLICA_NOT_AVAILABLE == moved(cluster, other(cluster), broker_id=3)
    assert UNKNOWN_TOPIC_OR_PARTITION == moved(cluster, other(cluster), topic="nobody")
    assert INVALID_TOPIC_EXCEPTION == moved(cluster, other(cluster), topic="n" * 240)


def test_a_replica_that_is_to_come_is_made_where_it_was_wanted() -> None:
    for path in ("/one", "/two"):
        cluster = cluster_of()
        assert UNKNOWN_TOPIC_OR_PARTITION == moved(cluster, path, topic="u")
        cluster.create_topic("u", replicas=[(1,)])
        cluster.pass_time(1000)
        log = cluster.brokers[1].storage.logs.get(T0._replace(topic="u"))
        assert log is not None
        assert f"{path}/u-0" == log.directory


def test_a_directory_that_fails_takes_along_what_was_on_its_way_there_and_nothing_else() -> None:
    cluster = cluster_of()
    slow(cluster)
    before, wanted = home(cluster), other(cluster)
    assert 0 == moved(cluster, wanted)
    cluster.pass_time(2000)
    logs = cluster.brokers[1].storage.logs
    logs.take_offline(wanted, LogDirOffline(wanted, "write", "gone", 5))
    cluster.pass_time(5000)
    assert [] == cluster.fatal
    assert before == home(cluster)
    assert 0 == cluster.produce(1, 5).code()
    assert KAFKA_STORAGE_ERROR == moved(cluster, wanted)


def test_a_directory_that_fails_as_a_move_to_it_ends_is_offline_and_nothing_else() -> None:
    cluster = cluster_of()
    wanted = other(cluster)
    # The renames work, and the checkpoint that follows does not.
    end = f"{wanted}/recovery-point-offset-checkpoint.tmp"
    cluster.disks[1].fail("write", errno.EIO, path_start=end)
    assert 0 == moved(cluster, wanted)
    cluster.pass_time(5000)
    assert [] == cluster.fatal
    partitions = cluster.brokers[1].storage.replica_manager.partitions
    assert T0 not in partitions
    assert KAFKA_STORAGE_ERROR == moved(cluster, wanted)


def test_a_partition_that_goes_takes_its_move_along() -> None:
    cluster = cluster_of()
    slow(cluster)
    wanted = other(cluster)
    assert 0 == moved(cluster, wanted)
    cluster.pass_time(1000)
    request = message_class("DeleteTopicsRequest")
    controller = next(key for key, b in cluster.brokers.items() if b.controller.is_active)
    cluster.ask(
        controller,
        "DeleteTopics",
        6,
        topics=[request.DeleteTopicState(name="t", topic_id=b"\0" * 16)],
        timeout_ms=5000,
    )
    cluster.pass_time(5000)
    for path in ("/one", "/two"):
        assert not [name for name in cluster.disks[1].list_dir(path) if name.startswith("t-0")]


@pytest.mark.parametrize("at", [9, 70])
def test_a_move_waits_while_a_batch_is_read_damaged(at: int) -> None:
    cluster = cluster_of(replica_fetch_backoff_ms="500")
    path = f"{home(cluster)}/t-0/00000000000000000000.log"
    cluster.disks[1].flip(path, at, 1)
    target = other(cluster)
    assert 0 == moved(cluster, target)
    cluster.pass_time(3000)
    assert target != home(cluster)
    cluster.disks[1].flip_back()
    cluster.pass_time(3000)
    assert target == home(cluster)
    assert cluster.content(1) == cluster.content(2)


def test_a_cleaning_is_given_up_as_a_move_begins() -> None:
    cluster = cluster_of()
    storage = cluster.brokers[1].storage
    assert storage.cleaner.abort == storage.moves._abort_cleaning
    aborted: list[TopicPartition] = []
    storage.moves._abort_cleaning = aborted.append
    assert 0 == moved(cluster, other(cluster))
    assert [T0] == aborted


def test_a_coordinator_that_reads_a_partition_reads_on_where_it_has_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def closed(*_: object) -> None:
        raise LogDirOffline(log.directory, "read", "closed", errno.EBADF)

    cluster = cluster_of()
    broker, log = cluster.brokers[1], cluster.partition(1).log
    replica_manager = broker.storage.replica_manager
    topic = CoordinatorTopic("t", replica_manager, broker.metadata_cache, cluster.clock)
    reading = topic.batches(0, 100)
    read = [next(reading).base_offset]
    assert 0 == moved(cluster, other(cluster))
    cluster.pass_time(100)
    assert log is not cluster.partition(1).log
    # Files in memory can be read when they are closed.
    monkeypatch.setattr(log, "read", closed)
    read += [batch.base_offset for batch in reading]
    assert list(range(0, 100, 5)) == read
