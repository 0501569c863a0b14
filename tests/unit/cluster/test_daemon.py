"""Clusters as processes of their own: what is decided before one is started, and removal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.cluster import daemon
from engine.cluster.daemon import (
    ClusterDidNotStart,
    ClusterNotReadyInTime,
    NoClusterInDirectory,
    NotSet,
    OtherPlan,
)
from engine.cluster.data_directory import ClusterInUse, DataDirectory
from engine.cluster.plan import ClusterPlan
from engine.cluster.run import run_cluster
from engine.errors import EngineError
from engine.host.real import RealFiles

FILES = RealFiles()
MADE = ClusterPlan(1, "127.0.0.1", 9093, {"a": "1", "b": "2"})


@pytest.fixture
def data(tmp_path: Path) -> DataDirectory:
    return DataDirectory(FILES, str(tmp_path / "cluster"))


def test_a_later_start_keeps_what_is_not_given(data: DataDirectory) -> None:
    data.write_plan(MADE)
    assert daemon.plan_for(data, ClusterPlan(), frozenset()) == MADE


def test_a_later_start_may_move_the_port_and_add_settings(data: DataDirectory) -> None:
    data.write_plan(MADE)
    requested = ClusterPlan(port=9999, settings={"b": "3"})
    found = daemon.plan_for(data, requested, frozenset(["port"]))
    assert found == MADE._replace(port=9999, settings={"a": "1", "b": "3"})


def test_a_later_start_may_give_settings_up(data: DataDirectory) -> None:
    data.write_plan(MADE)
    found = daemon.plan_for(data, ClusterPlan(settings={"c": "3"}), frozenset(), ["a"])
    assert found == MADE._replace(settings={"b": "2", "c": "3"})


@pytest.mark.parametrize("is_made", [True, False])
def test_only_what_is_set_is_given_up(data: DataDirectory, is_made: bool) -> None:
    if is_made:
        data.write_plan(MADE)
    with pytest.raises(NotSet, match="does not set c"):
        daemon.plan_for(data, ClusterPlan(settings={"c": "3"}), frozenset(), ["c"])


def test_the_status_shows_what_is_set_but_no_password(data: DataDirectory) -> None:
    secrets = ("ssl.key.password", "listener.name.x.plain.sasl.jaas.config")
    data.write_plan(MADE._replace(settings={"a": "1", **dict.fromkeys(secrets, "secret")}))
    shown = daemon.status_of(data).settings
    assert {"a": "1", **dict.fromkeys(secrets, "[hidden]")} == shown


def test_the_number_of_brokers_stays(data: DataDirectory) -> None:
    data.write_plan(MADE)
    more = daemon.plan_for(data, ClusterPlan(log_dir_count=3), frozenset({"log_dir_count"}))
    assert 3 == more.log_dir_count
    data.write_plan(more)
    with pytest.raises(OtherPlan, match="--log-dirs 3, not 2"):
        daemon.plan_for(data, ClusterPlan(log_dir_count=2), frozenset({"log_dir_count"}))
    with pytest.raises(OtherPlan, match="--brokers 1, not 3"):
        daemon.plan_for(data, ClusterPlan(broker_count=3), frozenset(["broker_count"]))


def test_a_process_that_ends_at_once_is_reported_with_its_last_words(data: DataDirectory) -> None:
    plan = ClusterPlan(port=0, settings={"zookeeper.session.timeout.ms": "soon"})
    with pytest.raises(ClusterDidNotStart, match=r"did not start: zookeeper\.session\.timeout"):
        daemon.start(data, FILES, plan, 60)


def test_a_plan_that_does_not_start_is_not_kept(data: DataDirectory) -> None:
    bad = ClusterPlan(port=0, settings={"log.dirs": "/proc/none"})
    with pytest.raises(ClusterDidNotStart, match="no log directory can be used: /proc/none: "):
        daemon.start(data, FILES, bad, 60)
    assert data.plan() == ClusterPlan()
    data.write_plan(MADE)
    with pytest.raises(ClusterDidNotStart):
        daemon.start(data, FILES, bad, 60)
    assert data.plan() == MADE


@pytest.mark.parametrize(
    "bad",
    [
        MADE._replace(settings={"num.partitions": "abc"}),
        MADE._replace(broker_count=3, settings={"log.dirs": "/shared"}),
        MADE._replace(settings={"zookeeper.connect": "else:2181"}),
        MADE._replace(port=0, settings={"log.dirs": "/proc/none"}),
    ],
    ids=["a bad value", "one folder for three", "another store", "a bad folder"],
)
def test_a_plan_that_does_not_start_in_this_process_is_not_kept_either(
    data: DataDirectory, bad: ClusterPlan
) -> None:
    data.write_plan(MADE)
    with pytest.raises(EngineError):
        run_cluster(data, bad)
    assert data.plan() == MADE


def test_a_start_that_is_given_up_restores_the_plan_once_its_process_has_ended(
    data: DataDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    data.write_plan(MADE)
    monkeypatch.setattr(daemon, "_PROGRAM", "tests.unit.cluster.late_process")
    with pytest.raises(ClusterNotReadyInTime):
        daemon.start(data, FILES, MADE._replace(port=0), 0.5)
    while not Path(data.path, "has-ended").exists():
        pass
    assert data.plan() == MADE


def test_a_plan_that_is_there_already_is_not_stored_again(data: DataDirectory) -> None:
    data.write_plan(MADE)
    before = os.stat(data.plan_path).st_ino
    with data.store_plan_while_starting(MADE) as started:
        started()
    assert before == os.stat(data.plan_path).st_ino


def test_a_process_without_a_plan_says_so(data: DataDirectory) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "engine.cluster", data.path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr == f"error: there is no cluster in {data.path}\n"


def test_log_directories_elsewhere_stay_and_are_named(data: DataDirectory, tmp_path: Path) -> None:
    here, there = f"{data.path}/disk-1", str(tmp_path / "disk-2")
    data.write_plan(MADE._replace(settings={"log.dirs": f"{here}, {there},{data.path}/broker-1"}))
    (tmp_path / "disk-2").mkdir()
    (tmp_path / "cluster" / "disk-1").mkdir()
    assert [here, there] == daemon.directories_that_stay(data)
    daemon.destroy(data, FILES)
    assert (tmp_path / "disk-2").is_dir()
    data.write_plan(MADE)
    assert [] == daemon.directories_that_stay(data)


def test_only_what_is_the_clusters_is_removed(data: DataDirectory, tmp_path: Path) -> None:
    data.write_plan(MADE)
    partition = tmp_path / "cluster" / "broker-1" / "t-0"
    partition.mkdir(parents=True)
    (partition / "00000000000000000000.log").write_bytes(b"x")
    mine = tmp_path / "cluster" / "notes.txt"
    mine.write_text("mine")
    assert [str(mine)] == daemon.destroy(data, FILES)
    assert [path.name for path in (tmp_path / "cluster").iterdir()] == ["notes.txt"]


def test_a_directory_without_a_cluster_is_never_emptied(
    data: DataDirectory, tmp_path: Path
) -> None:
    (tmp_path / "cluster" / "broker-1").mkdir(parents=True)
    with pytest.raises(NoClusterInDirectory):
        daemon.destroy(data, FILES)
    assert (tmp_path / "cluster" / "broker-1").exists()


def test_a_cluster_that_runs_is_not_removed(data: DataDirectory) -> None:
    data.write_plan(MADE)
    code = (
        "from engine.host.lock_file import lock_file;"
        "from engine.host.processes import report_ready;"
        f"release = lock_file({data.lock_path!r}); report_ready('ready');"
        "import time; time.sleep(60)"
    )
    holder = daemon.processes.start_detached([sys.executable, "-c", code], data.log_path)
    assert holder.wait_until_ready(60) == b"ready\n"
    with pytest.raises(ClusterInUse):
        daemon.destroy(data, FILES)
    daemon.processes.kill(holder.pid)
