"""What a data directory says of its cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.cluster.data_directory import (
    BadClusterFile,
    ClusterState,
    DataDirectory,
    RunningCluster,
)
from engine.cluster.plan import ClusterPlan
from engine.host.real import RealFiles

RUNNING = RunningCluster(4711, "here:9092", {"1": "here:9092"})
PLAN = ClusterPlan(1, "127.0.0.1", 9093, {"num.partitions": "3"})


@pytest.fixture
def data(tmp_path: Path) -> DataDirectory:
    return DataDirectory(RealFiles(), str(tmp_path / "cluster"))


def test_nothing_is_absent(data: DataDirectory) -> None:
    assert data.state() is ClusterState.ABSENT
    assert data.plan() is None
    assert data.running() is None


def test_a_plan_alone_is_a_stopped_cluster(data: DataDirectory) -> None:
    data.write_plan(PLAN)
    assert data.state() is ClusterState.STOPPED
    assert data.plan() == PLAN


def test_a_plan_with_its_passwords_is_its_owners_alone(data: DataDirectory) -> None:
    for plan in (PLAN, PLAN._replace(port=9094, is_insecure=True)):
        data.write_plan(plan)
        assert 0o600 == Path(data.plan_path).stat().st_mode & 0o777
        assert data.plan() == plan


def test_a_plan_is_kept_whole(data: DataDirectory, tmp_path: Path) -> None:
    plan = PLAN._replace(
        broker_count=3,
        racks=("a", "b"),
        is_in_processes=True,
        removed_ids=(2,),
        zookeeper_port=7,
        log_dir_count=2,
    )
    data.write_plan(plan)
    assert plan == data.plan()
    path = tmp_path / "cluster" / "cluster.json"
    older = {"brokers": 1, "host": "127.0.0.1", "port": 9093, "settings": {"num.partitions": "3"}}
    path.write_text(json.dumps(older))
    assert PLAN == data.plan()


def test_each_broker_has_its_log_directories(data: DataDirectory) -> None:
    plan = PLAN._replace(broker_count=3, removed_ids=(2,), log_dir_count=2)
    names = [path.removeprefix(f"{data.path}/") for path in data.log_dirs(plan)]
    three = ["broker-3", "broker-3-2", "broker-4", "broker-4-2"]
    assert ["broker-1", "broker-1-2", *three] == names
    assert [1, 1, 3, 3, 4, 4] == list(data.own_log_dirs(plan).values())
    elsewhere = PLAN._replace(settings={"log.dirs": "/a, /b"})
    assert ["/a", "/b"] == data.log_dirs(elsewhere)


def test_a_process_that_left_its_file_behind_has_crashed(data: DataDirectory) -> None:
    data.write_plan(PLAN)
    data.write_running(RUNNING)
    assert data.running() == RUNNING
    assert data.state() is ClusterState.CRASHED
    data.remove_running()
    data.remove_running()
    assert data.state() is ClusterState.STOPPED


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"brokers": "many"}'])
def test_a_damaged_plan_is_named(data: DataDirectory, tmp_path: Path, content: str) -> None:
    data.write_plan(PLAN)
    (tmp_path / "cluster" / "cluster.json").write_text(content)
    with pytest.raises(BadClusterFile, match=r"cluster\.json"):
        data.plan()


def test_the_port_of_the_metadata_store_is_kept(data: DataDirectory, tmp_path: Path) -> None:
    data.write_plan(PLAN)
    assert 0 == data.znode_port()
    data.note_znode_port(4711)
    assert 4711 == data.znode_port()
    (tmp_path / "cluster" / "zookeeper.port").write_text("{")
    assert 0 == data.znode_port()
    assert f"{data.path}/zookeeper.port" in data.own_files()
