"""The controller's orders: lead, follow, stop."""

from __future__ import annotations

import errno
from collections.abc import Sequence

import pytest

from engine.errors import StorageError
from engine.host.memory import ManualClock, MemoryFiles, SeededEntropy
from engine.host.ports import LogDirOffline
from engine.log.directory.log_manager import LogManager
from engine.log.directory.log_manager_ports import LogManagerConfig, LogManagerPorts
from engine.log.directory.offset_checkpoint import HIGH_WATERMARKS, read_offsets
from engine.log.log_config import LogConfig
from engine.log.tasks import InlineTasks
from engine.model import TopicPartition
from engine.replication.leadership import Leadership, StaleControllerEpoch, StopOrder
from engine.replication.partition_types import PartitionState, ReplicationConfig
from engine.replication.replica_manager import ReplicaManager
from tests.unit.log.writing import fill, sent
from tests.unit.replication.replicas import ports_of

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
LEAD = PartitionState(1, 5, (1,), 0, (1,))
ID, OTHER_ID = "A" * 22, "B" * 21 + "A"


class Stage:
    """Broker 1 with two log directories."""

    def __init__(self, files: MemoryFiles | None = None) -> None:
        self.clock = ManualClock()
        self.files = files or MemoryFiles()
        self.tasks = InlineTasks()
        ports = LogManagerPorts(
            self.tasks,
            self.clock,
            SeededEntropy(),
            lambda _path: lambda: None,
            lambda _topic: LogConfig(),
            lambda _key: 0,
            self._offline,
        )
        self.logs = LogManager(self.files, LogManagerConfig(("/a", "/b"), 1, "cluster"), ports)
        self.logs.start()
        self.failed: list[LogDirOffline] = []
        self.replicas = ReplicaManager(self.clock, ports_of(offline=self.failed))
        self.leadership = Leadership(
            1,
            self.clock,
            self.replicas,
            self.logs,
            config_of=lambda topic: ReplicationConfig(min_insync_replicas=len(topic)),
            is_alive=lambda _broker_id: True,
        )

    def _offline(self, _path: str, _error: StorageError, lost: Sequence[TopicPartition]) -> None:
        for key in lost:
            self.replicas.mark_offline(key)

    def lead(self, *keys: TopicPartition, epoch: int = 5, topic_id: str | None = None) -> list[int]:
        states = dict.fromkeys(keys, LEAD._replace(leader_epoch=epoch))
        ids = {"t": topic_id} if topic_id else {}
        results = self.leadership.apply_states(states, frozenset(keys), ids)
        return [0 if error is None else error.code for error in results.values()]


def test_a_new_partition_gets_a_log_and_a_leader() -> None:
    stage = Stage()
    assert not stage.leadership.is_informed
    assert stage.lead(T0, T1) == [0, 0]
    assert stage.leadership.is_informed
    assert stage.replicas.find(T0).is_leader
    assert stage.replicas.find(T0).config.min_insync_replicas == 1
    assert {log.directory for log in stage.logs.logs.values()} == {"/a/t-0", "/b/t-1"}


def test_a_follower_serves_no_producer() -> None:
    stage = Stage()
    state = PartitionState(2, 5, (2, 1), 0, (2, 1))
    assert stage.leadership.apply_states({T0: state}) == {T0: None}
    assert not stage.replicas.find(T0).is_leader


def test_an_older_leader_epoch_is_stale_and_changes_nothing() -> None:
    stage = Stage()
    stage.lead(T0)
    assert stage.lead(T0, T1, epoch=4) == [11, 0]
    assert stage.replicas.find(T0).leader_epoch == 5


def test_an_order_that_comes_again_is_refused_as_stale() -> None:
    stage = Stage()
    assert stage.lead(T0) == [0]
    assert stage.lead(T0, T1) == [11, 0]
    assert stage.replicas.find(T0).is_leader


def test_a_newer_in_sync_set_of_an_order_that_comes_again_is_taken() -> None:
    stage = Stage()
    stage.lead(T0)
    newer = LEAD._replace(isr=(1, 2), partition_epoch=1, assigned_replicas=(1, 2))
    (error,) = stage.leadership.apply_states({T0: newer}).values()
    assert error is not None
    assert error.code == 11
    assert stage.replicas.find(T0).in_sync.isr == (1, 2)


def test_an_older_controller_is_refused() -> None:
    stage = Stage()
    stage.leadership.admit(3)
    stage.leadership.admit(3)
    with pytest.raises(StaleControllerEpoch, match="epoch 2, the latest is 3") as refused:
        stage.leadership.admit(2)
    assert refused.value.code == 11


def test_a_log_gets_its_topics_id_and_is_refused_to_another() -> None:
    stage = Stage()
    assert stage.lead(T0, topic_id=ID) == [0]
    written = stage.files.read_bytes("/a/t-0/partition.metadata")
    assert written.decode() == f"version: 0\ntopic_id: {ID}"
    assert stage.lead(T0, epoch=6, topic_id=OTHER_ID) == [103]
    assert stage.replicas.find(T0).leader_epoch == 5
    assert stage.lead(T0, epoch=6, topic_id=ID) == [0]


def test_the_watermark_of_the_checkpoint_counts() -> None:
    stage = Stage()
    stage.lead(T0)
    stage.replicas.find(T0).append(sent(3), 1)
    stage.logs.checkpoint_high_watermarks(stage.replicas.high_watermarks())
    stage.logs.stop()
    again = Stage(stage.files)
    again.leadership.apply_states({T0: PartitionState(2, 6, (2, 1), 1, (2, 1))})
    assert again.replicas.find(T0).high_watermark == 3


def test_a_stopped_replica_keeps_its_watermark_in_the_checkpoint_and_for_its_next_role() -> None:
    stage = Stage()
    stage.lead(T0)
    stage.replicas.find(T0).append(sent(3), 1)
    stage.leadership.stop_replicas({T0: StopOrder(5, False)})
    stage.logs.checkpoint_high_watermarks(stage.replicas.high_watermarks())
    assert read_offsets(stage.files, f"/a/{HIGH_WATERMARKS}") == {T0: 3}
    stage.leadership.apply_states({T0: PartitionState(2, 6, (2, 1), 1, (2, 1))})
    assert stage.replicas.find(T0).high_watermark == 3
    stage.leadership.stop_replicas({T0: StopOrder(6, True)})
    stage.logs.checkpoint_high_watermarks(stage.replicas.high_watermarks())
    assert read_offsets(stage.files, f"/a/{HIGH_WATERMARKS}") == {}


def test_a_stopped_replica_keeps_its_log_unless_it_is_deleted() -> None:
    stage = Stage()
    stage.lead(T0, T1)
    orders = {T0: StopOrder(5, False), T1: StopOrder(-2, True)}
    assert stage.leadership.stop_replicas(orders) == {T0: None, T1: None}
    assert not stage.leadership.hosts_online(T0)
    assert list(stage.logs.logs) == [T0]
    assert [name for name in stage.files.list_dir("/b") if name.endswith("-delete")]


def test_an_older_epoch_stops_nothing() -> None:
    stage = Stage()
    stage.lead(T0)
    (error,) = stage.leadership.stop_replicas({T0: StopOrder(4, True)}).values()
    assert error is not None
    assert error.code == 74
    assert stage.leadership.hosts_online(T0)


def test_a_replica_that_is_not_here_may_be_stopped() -> None:
    assert Stage().leadership.stop_replicas({T0: StopOrder(0, True)}) == {T0: None}


def test_a_replica_in_a_failed_directory_is_not_said_to_be_deleted() -> None:
    # Its topic would be gone, and its files back with the disk.
    stage = Stage()
    stage.lead(T0)
    stage.logs.take_offline("/a", LogDirOffline("/a", "write", "no space", 28))
    for _ in range(2):
        (error,) = stage.leadership.stop_replicas({T0: StopOrder(-2, True)}).values()
        assert error is not None
        assert 56 == error.code


def test_a_replica_whose_directory_fails_as_it_is_deleted_is_not_said_to_be_deleted() -> None:
    stage = Stage()
    stage.lead(T0)
    stage.files.fail("rename", errno.EIO, path_start="/a/t-0")
    for _ in range(2):
        (error,) = stage.leadership.stop_replicas({T0: StopOrder(-2, True)}).values()
        assert error is not None
        assert 56 == error.code
    assert stage.replicas.is_offline(T0)
    assert not stage.logs.directories[0].is_online


def test_a_deletion_that_cannot_be_made_durable_is_not_said_to_be_done() -> None:
    stage = Stage()
    stage.lead(T0, T1)
    stage.files.fail("sync", errno.EIO, path_start="/a")
    results = stage.leadership.stop_replicas({key: StopOrder(-2, True) for key in (T0, T1)})
    assert [56, None] == [error and error.code for error in results.values()]
    assert stage.replicas.is_offline(T0)


def test_a_replica_in_a_failed_directory_begins_nowhere_else_though_it_is_said_to_be_new() -> None:
    # A controller that takes over during a move says so again of a replica that is there by now.
    stage = Stage()
    stage.lead(T0)
    fill(stage.logs.logs[T0], [3])
    stage.logs.take_offline("/a", LogDirOffline("/a", "write", "no space", 28))
    assert [56] == stage.lead(T0, epoch=6)
    assert stage.replicas.is_offline(T0)
    assert not stage.files.exists("/b/t-0")


def test_a_failing_directory_is_its_partitions_error_alone() -> None:
    stage = Stage()
    stage.lead(T0, T1)
    stage.logs.take_offline("/a", LogDirOffline("/a", "write", "no space", 28))
    state = LEAD._replace(leader_epoch=6)
    results = stage.leadership.apply_states({T0: state, T1: state})
    assert [error and error.code for error in results.values()] == [56, None]


def test_a_disk_that_fails_during_an_order_is_reported_to_the_broker() -> None:
    # Without that the broker stays, with partitions that nobody ever gives a leader.
    stage = Stage()
    stage.lead(T0)
    stage.files.fail("sync", errno.EIO, path_end="leader-epoch-checkpoint.tmp")
    assert [56] == stage.lead(T0, epoch=6)
    assert ["/a"] == [failure.path[:2] for failure in stage.failed]
    assert stage.replicas.is_offline(T0)


def test_new_settings_reach_the_partitions_of_their_topic() -> None:
    stage = Stage()
    stage.lead(T0)
    partition = stage.replicas.find(T0)
    partition.config = ReplicationConfig(min_insync_replicas=9)
    stage.leadership.reconfigure("other")
    assert partition.config.min_insync_replicas == 9
    stage.leadership.reconfigure("t")
    assert partition.config.min_insync_replicas == 1


def test_new_settings_of_the_broker_reach_all_partitions() -> None:
    stage = Stage()
    stage.lead(T0, T1)
    partitions = [stage.replicas.find(key) for key in (T0, T1)]
    for partition in partitions:
        partition.config = ReplicationConfig(min_insync_replicas=9)
    stage.leadership.reconfigure()
    assert [1, 1] == [partition.config.min_insync_replicas for partition in partitions]


def test_the_log_of_an_earlier_topic_is_set_aside_and_the_partition_served(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, former_id = Stage(), "C" * 21 + "A"
    first.lead(T0, topic_id=former_id)
    first.logs.get_or_create(T0).append_as_leader(sent(3), 5, 0)
    first.logs.stop()
    stage = Stage(first.files)
    assert stage.lead(T0, topic_id=OTHER_ID) == [0]
    assert stage.replicas.find(T0).is_leader
    log = stage.logs.get_or_create(T0)
    assert ("/a/t-0", 0, OTHER_ID) == (log.directory, log.log_end_offset, log.topic_id)
    (stray,) = [name for name in stage.files.list_dir("/a") if name.endswith("-stray")]
    assert stage.files.size_bytes(f"/a/{stray}/{0:020d}.log") > 0
    (line,) = [record.getMessage() for record in caplog.records if "stray" in record.getMessage()]
    assert line.startswith(f"Log for partition t-0 is marked as stray and renamed to /a/{stray}")
    assert former_id in line
    assert OTHER_ID in line


def test_the_empty_log_comes_into_the_directory_of_the_one_that_is_set_aside() -> None:
    first, former_id = Stage(), "C" * 21 + "A"
    first.lead(T0, T1, T2, topic_id=former_id)
    first.leadership.stop_replicas({T1: StopOrder(5, True)})
    first.logs.stop()
    stage = Stage(first.files)
    assert stage.lead(T0, topic_id=OTHER_ID) == [0]
    # The other directory has no log at all.
    assert {"/a/t-0", "/a/t-2"} == {log.directory for log in stage.logs.logs.values()}


def test_an_order_that_names_no_topic_id_leaves_the_log_as_it_is() -> None:
    first = Stage()
    first.lead(T0, topic_id=OTHER_ID)
    first.logs.get_or_create(T0).append_as_leader(sent(3), 5, 0)
    first.logs.stop()
    stage = Stage(first.files)
    assert stage.lead(T0) == [0]
    log = stage.replicas.find(T0).log
    assert (3, OTHER_ID) == (log.log_end_offset, log.topic_id)


def test_a_replica_whose_log_is_damaged_goes_with_its_topic() -> None:
    stage = Stage()
    stage.lead(T0)
    fill(stage.logs.logs[T0], [3])
    stage.logs.stop()
    stage.files.remove("/a/.kafka_cleanshutdown")
    damaged = f"{500:020d}.log"
    stage.files.rename(f"/a/t-0/{0:020d}.log", f"/a/t-0/{damaged}")
    again = Stage(stage.files)
    again.lead(T0)
    assert again.replicas.is_offline(T0)
    (error,) = again.leadership.stop_replicas({T0: StopOrder(5, False)}).values()
    assert error is not None
    assert again.files.exists(f"/a/t-0/{damaged}")
    assert {T0: None} == again.leadership.stop_replicas({T0: StopOrder(-2, True)})
    assert not again.files.exists(f"/a/t-0/{damaged}")
    assert [0] == again.lead(T0)
