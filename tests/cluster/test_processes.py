"""Brokers in processes of their own lose nothing when one is killed, paused or restarted."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.cluster.embedded import EmbeddedCluster
from tests.soak.cluster_load import until_in_sync
from tests.soak.cluster_processes import ClusterProcesses
from tests.soak.kill_cluster import ClusterSoak

_DEADLINE_S = 60.0


@pytest.fixture
def soak(tmp_path: Path) -> Iterator[ClusterSoak]:
    soak = ClusterSoak(tmp_path / "cluster", seed=7)
    yield soak
    soak.destroy()


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_or_repeated(soak: ClusterSoak) -> None:
    for who, what in (
        ("leader", "kill"),
        ("controller", "restart"),
        ("follower", "pause"),
        ("store", "kill"),
        ("controller", "kill"),
        ("leader", "pause"),
        ("leader", "restart"),
    ):
        soak.cycle(who, what)
    soak.finish()
    assert soak.load.acknowledged_count > 1000


@pytest.mark.slow
def test_a_restart_of_the_store_ends_no_session_and_moves_no_leader(tmp_path: Path) -> None:
    cluster = ClusterProcesses(tmp_path / "cluster")
    address = cluster.start(3, {"zookeeper.session.timeout.ms": "18000"})
    try:
        admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        admin.create_topics([NewTopic("t", 6, 3)])["t"].result(_DEADLINE_S)
        until_in_sync(admin, "t", 3)
        before = _elected(cluster)
        cluster.kill_store()
        cluster.kctl("start")
        # The controller writes this topic: it has its session again by then, or another is it.
        admin.create_topics([NewTopic("u", 1, 3)])["u"].result(_DEADLINE_S)
        until_in_sync(admin, "u", 3)
        assert before == _elected(cluster)
    finally:
        cluster.kctl("destroy", "-y")


def _elected(cluster: ClusterProcesses) -> list[dict[str, Any]]:
    """Return registrations, the controller and the leaders of topic t, as the store has them."""
    nodes = [
        *(f"/brokers/ids/{broker_id}" for broker_id in (1, 2, 3)),
        "/controller",
        *(f"/brokers/topics/t/partitions/{number}/state" for number in range(6)),
    ]
    return [cluster.znode(node) for node in nodes]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["--processes", "--one-process"])
def test_a_clean_restart_of_a_leader_fails_no_record(tmp_path: Path, how: str) -> None:
    cluster = EmbeddedCluster(tmp_path / "cluster", brokers=3)
    cluster.start(how)
    try:
        pauses_s = _produce_amid_restarts(cluster)
    finally:
        cluster.destroy()
    # A stop moves the leader at once; far more than that is a session that had to time out.
    assert max(pauses_s) < 6.0


def _produce_amid_restarts(cluster: EmbeddedCluster) -> list[float]:
    """Restart each broker during a load to a partition of all; returns how long none was stored."""
    admin = AdminClient({"bootstrap.servers": cluster.address})
    new = NewTopic("t", 1, 3, config={"min.insync.replicas": "2"})
    admin.create_topics([new])["t"].result(_DEADLINE_S)
    errors: list[object] = []
    stored_s: list[float] = []

    def told(error: object, _message: Any) -> None:
        if error is not None:
            errors.append(error)
        stored_s.append(time.monotonic())

    producer = Producer(
        {"bootstrap.servers": cluster.address, "acks": "all", "linger.ms": 0, "log_level": 0}
    )

    def produce(duration_s: float) -> None:
        end_s = time.monotonic() + duration_s
        while time.monotonic() < end_s:
            producer.produce("t", b"x", on_delivery=told)
            producer.poll(0.005)

    produce(0.1)
    # Followers that came before their leader was told begin a second later.
    assert producer.flush(_DEADLINE_S) == 0
    produce(1)
    pauses_s = []
    for _ in range(3):
        begin = len(stored_s)
        leader = admin.list_topics("t", timeout=_DEADLINE_S).topics["t"].partitions[0].leader
        restarting = cluster.begin("restart", str(leader))
        while restarting.poll() is None:
            produce(0.05)
        produce(1)
        assert restarting.returncode == 0
        times = stored_s[begin - 1 :]
        pauses_s.append(max(after - before for before, after in pairwise(times)))
        end_s = time.monotonic() + _DEADLINE_S
        while len(admin.list_topics("t", timeout=_DEADLINE_S).topics["t"].partitions[0].isrs) < 3:
            assert time.monotonic() < end_s
            produce(0.1)
    assert producer.flush(_DEADLINE_S) == 0
    assert errors == []
    return pauses_s
