"""What the planner is told of a cluster in memory; changes that no planner made."""

from __future__ import annotations

import pytest

from engine.client.cluster_admin import describe_log_dirs
from engine.client.config_admin import ConfigResourceType
from engine.client.reassignments import OngoingReassignment, alter_reassignments
from engine.errors import EngineError
from engine.model import TopicPartition
from engine.planner import planner
from engine.planner.plan import PartitionChange
from engine.reassign.cluster_reader import ReassignmentInProgress, read_cluster
from engine.reassign.plan_reading import in_order, ongoing_changes, order_of, reverse_changes
from tests.unit.broker.memory_broker import LOG_DIR
from tests.unit.reassign.moved_cluster import T0, MovedTopic, change


@pytest.fixture(scope="module")
def moved() -> MovedTopic:
    return MovedTopic()


def test_brokers_partitions_sizes_and_directories_are_reported(moved: MovedTopic) -> None:
    read = read_cluster(moved.client)
    assert [1, 2, 3] == [broker.broker_id for broker in read.model.brokers]
    assert all(broker.is_alive for broker in read.model.brokers)
    assert [] == read.warnings
    first = next(p for p in read.model.partitions if p.name == T0)
    assert ((1, 2), 1, (1, 2)) == (first.replicas, first.leader, tuple(sorted(first.isr)))
    assert len(moved.cluster.content(1)) == first.size_bytes
    assert (LOG_DIR, LOG_DIR) == first.log_dirs
    assert 0 == planner.balance(read.model).after.offline_replicas


def test_what_a_disk_holds_besides_replicas_takes_room(moved: MovedTopic) -> None:
    read = read_cluster(moved.client)
    for broker_id, dirs in describe_log_dirs(moved.client, [1, 2, 3]).items():
        assert not isinstance(dirs, EngineError)
        broker = next(b for b in read.model.brokers if b.broker_id == broker_id)
        held = sum(p.size_on(broker_id) for p in read.model.partitions if broker_id in p.replicas)
        (log_dir,), (shown,) = broker.log_dirs, dirs
        assert shown.total_bytes == log_dir.capacity_bytes
        assert shown.total_bytes == held + log_dir.foreign_bytes + (shown.usable_bytes or 0)


def test_a_broker_that_is_gone_is_dead_and_its_replicas_keep_a_size() -> None:
    moved = MovedTopic()
    moved.cluster.cut_power(2)
    moved.cluster.pass_time(20_000)
    read = read_cluster(moved.client)
    assert {1: True, 2: False, 3: True} == {b.broker_id: b.is_alive for b in read.model.brokers}
    first = next(p for p in read.model.partitions if p.name == T0)
    assert (first.size_bytes, first.size_bytes) == first.replica_sizes
    assert (LOG_DIR, "any") == first.log_dirs
    assert (2,) == first.offline


def test_a_cluster_that_moves_is_no_ground_for_a_plan() -> None:
    # A batch at a time, and none after the first.
    moved = MovedTopic(replica_fetch_max_bytes="1")
    moved.set(ConfigResourceType.TOPIC, "t", leader_replication_throttled_replicas="*")
    for broker_id in ("1", "2"):
        moved.set(ConfigResourceType.BROKER, broker_id, leader_replication_throttled_rate="0")
    moved.cluster.pass_time(2000)
    assert {T0: None} == alter_reassignments(moved.client, {T0: (1, 3)})
    with pytest.raises(ReassignmentInProgress, match="t-0 moves already"):
        read_cluster(moved.client)


def test_moves_are_reported_as_changes(moved: MovedTopic) -> None:
    view = moved.client.view(["t"])
    (one,) = ongoing_changes(view, {T0: OngoingReassignment((3, 2, 1), (3,), (1,))})
    assert ((2, 1), (3, 2), 1, 3) == (
        one.old_replicas,
        one.new_replicas,
        one.old_leader,
        one.new_leader,
    )


def test_only_what_an_execution_has_brought_about_is_undone(moved: MovedTopic) -> None:
    view = moved.client.view(["t"])
    now = {TopicPartition("t", p.partition): p for p in view.topics["t"].partitions}
    done, elsewhere, same = (
        change(0, (3, 2), (1, 2)),
        change(1, (1,), (3,)),
        change(2, (1, 2), (1, 2)),
    )
    gone = change(9, (1,), (2,))
    (back,) = reverse_changes([done, elsewhere, same, gone], now)
    assert (T0, (1, 2), (3, 2)) == (back.name, back.old_replicas, back.new_replicas)
    dirs = PartitionChange("t", 2, (1, 2), (1, 2), 1, 1, 5, (), ("/a", "/a"), ("/b", "/a"))
    (back,) = reverse_changes([dirs], now)
    assert (("/b", "/a"), ("/a", "/a")) == (back.old_log_dirs, back.new_log_dirs)


def test_a_plan_has_barriers_only_where_room_is_short(moved: MovedTopic) -> None:
    plan = planner.drain(read_cluster(moved.client).model, [1])
    assert {c.name for c in in_order(plan)} == {c.name for c in plan.changes}
    assert not order_of(plan).has_barriers
    tight = [b._replace(capacity_bytes=b.before.size_bytes + 1) for b in plan.brokers]
    assert order_of(plan._replace(brokers=tight)).has_barriers
