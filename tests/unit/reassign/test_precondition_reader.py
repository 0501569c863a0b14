"""What is known of a cluster in memory before a plan is executed on it."""

from __future__ import annotations

from engine.client.cluster_admin import LogDirView
from engine.client.config_admin import ConfigResourceType
from engine.reassign.precondition_reader import read_ground
from tests.unit.broker.memory_broker import LOG_DIR
from tests.unit.reassign.moved_cluster import T0, MovedTopic, change


def test_the_ground_is_of_the_brokers_and_the_topics_of_the_plan() -> None:
    moved = MovedTopic()
    moved.set(ConfigResourceType.TOPIC, "t", min_insync_replicas="2")
    moved.cluster.pass_time(2000)
    gone = change(0, (1,), (2,), topic="gone")
    ground = read_ground(moved.client, [change(0, (1, 2), (9, 2)), gone])
    # Broker 3 takes no part, and broker 9 is not there; neither is the topic that is gone.
    assert {1, 2} == set(ground.log_dirs)
    assert {"t": 2} == ground.min_isr
    dirs = ground.log_dirs[1]
    assert isinstance(dirs, list)
    (log_dir,) = dirs
    assert isinstance(log_dir, LogDirView)
    assert LOG_DIR == log_dir.path
    assert T0 in {replica.partition for replica in log_dir.replicas}
    assert ground.view.partition(T0) is not None
