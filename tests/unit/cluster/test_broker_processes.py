"""States of brokers as files, locks and processes say them, and signals to their processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engine.cluster import broker_processes, daemon, repair
from engine.cluster.broker_processes import (
    BrokerNotRunning,
    BrokersShareProcess,
    BrokerState,
    BrokerStatus,
    NoSuchBroker,
    broker_statuses,
)
from engine.cluster.data_directory import (
    BrokersStillRun,
    ClusterState,
    DataDirectory,
    RunningBroker,
    RunningCluster,
)
from engine.cluster.plan import ClusterPlan
from engine.host import processes
from engine.host.real import RealClock, RealFiles

PLAN = ClusterPlan(2, racks=("a", "b"), is_in_processes=True)
ADDRESS, STORE = "here:9093", "here:2181"
_DEADLINE_S = 30


@pytest.fixture
def data(tmp_path: Path) -> DataDirectory:
    data = DataDirectory(RealFiles(), str(tmp_path / "cluster"))
    data.write_plan(PLAN)
    return data


def pause(duration_ms: int) -> None:
    time.sleep(duration_ms / 1000)


def eventually(is_so: Callable[[], bool]) -> None:
    end_s = time.monotonic() + _DEADLINE_S
    while not is_so():
        assert time.monotonic() < end_s
        pause(5)


@pytest.fixture
def pid(data: DataDirectory) -> Iterator[int]:
    """Return a process that stands for broker 2: it has its lock, and ends by any signal."""
    code = (
        "from engine.host.lock_file import lock_file;"
        "from engine.host.processes import report_ready;"
        f"release = lock_file({data.broker_lock_path(2)!r}); report_ready('x'); "
        "import time; time.sleep(60)"
    )
    started = processes.start_detached([sys.executable, "-c", code], data.broker_log_path(2))
    assert started.wait_until_ready(_DEADLINE_S) == b"x\n"
    data.write_running_broker(2, RunningBroker(started.pid, ADDRESS, STORE))
    yield started.pid
    processes.kill(started.pid)
    eventually(lambda: not processes.is_running(started.pid))


def second(data: DataDirectory) -> BrokerStatus:
    return broker_statuses(data, PLAN, ClusterState.RUNNING)[1]


def test_one_that_runs_is_known_by_its_lock(data: DataDirectory, pid: int) -> None:
    first, running = broker_statuses(data, PLAN, ClusterState.RUNNING)
    assert BrokerStatus(1, BrokerState.STOPPED, None, "a", None) == first
    assert BrokerStatus(2, BrokerState.RUNNING, pid, "b", ADDRESS) == running


def test_one_without_an_address_starts(data: DataDirectory, pid: int) -> None:
    data.write_running_broker(2, RunningBroker(pid, None, STORE))
    assert BrokerState.STARTING is second(data).state
    data.remove_running_broker(2)
    assert BrokerState.STARTING is second(data).state


def test_one_that_is_paused_goes_on(data: DataDirectory, pid: int) -> None:
    assert pid == broker_processes.pause_broker(data, PLAN, 2)
    eventually(lambda: second(data).state is BrokerState.PAUSED)
    assert pid == second(data).pid
    broker_processes.resume_broker(data, PLAN, 2)
    eventually(lambda: second(data).state is BrokerState.RUNNING)


def test_one_that_is_killed_leaves_its_last_words(data: DataDirectory, pid: int) -> None:
    with open(data.broker_log_path(2), "a") as log:
        log.writelines(f"line {number}\n" for number in range(9))
    assert pid == broker_processes.kill_broker(data, PLAN, 2, pause)
    status = second(data)
    assert (BrokerState.CRASHED, None) == (status.state, status.pid)
    assert tuple(f"line {number}" for number in (4, 5, 6, 7, 8)) == status.log_end
    with pytest.raises(BrokerNotRunning, match="it is crashed"):
        broker_processes.kill_broker(data, PLAN, 2, pause)


def test_what_outlived_its_cluster_is_stopped_though_it_is_paused(
    data: DataDirectory, pid: int
) -> None:
    processes.pause(pid)
    assert [2] == list(broker_processes.running_processes(data, PLAN))
    clock = RealClock()
    deadline_ms = clock.monotonic_ms() + 1000 * _DEADLINE_S
    assert {} == broker_processes.stop_left_processes(data, PLAN, clock, deadline_ms, pause)
    assert {} == broker_processes.running_processes(data, PLAN)


@pytest.mark.parametrize(
    "plan", [PLAN._replace(is_in_processes=False), PLAN._replace(broker_count=1)]
)
def test_what_outlived_its_cluster_is_stopped_though_the_plan_does_not_know_it(
    data: DataDirectory, pid: int, plan: ClusterPlan
) -> None:
    assert [2] == list(broker_processes.running_processes(data, plan))
    clock = RealClock()
    deadline_ms = clock.monotonic_ms() + 1000 * _DEADLINE_S
    assert {} == broker_processes.stop_left_processes(data, plan, clock, deadline_ms, pause)
    assert not processes.is_running(pid)


def test_a_stop_of_a_cluster_whose_process_dies_meanwhile_stops_its_brokers_too(
    data: DataDirectory, pid: int
) -> None:
    code = (
        "from engine.host.lock_file import lock_file;"
        "from engine.host.processes import report_ready;"
        f"release = lock_file({data.lock_path!r}); report_ready('x'); import time; time.sleep(60)"
    )
    store = processes.start_detached([sys.executable, "-c", code], data.log_path)
    assert store.wait_until_ready(_DEADLINE_S) == b"x\n"
    data.write_running(RunningCluster(store.pid, ADDRESS, {"1": ADDRESS}))
    # It ends by the signal at once, as if somebody had killed it a moment before.
    assert daemon.stop(data, RealClock(), _DEADLINE_S, pause)
    assert {} == broker_processes.running_processes(data, PLAN)
    assert not processes.is_running(pid)


def test_nothing_is_repaired_or_removed_under_brokers_that_outlived_their_cluster(
    data: DataDirectory, pid: int
) -> None:
    files = RealFiles()
    for is_kept in (True, False):
        if is_kept:
            data.write_plan(PLAN._replace(is_in_processes=False))
        else:
            files.remove(data.plan_path)
            files.make_dir(data.broker_path(2))
        with pytest.raises(BrokersStillRun, match="its brokers do: 2") as told:
            repair.examine_for_repair(data, files)
        assert "cluster stop" in (told.value.hint or "")
        data.write_plan(PLAN._replace(is_in_processes=False))
        with pytest.raises(BrokersStillRun):
            daemon.destroy(data, files)
    assert processes.is_running(pid)


def test_what_a_process_left_is_removed_though_the_plan_does_not_know_it(
    data: DataDirectory, pid: int
) -> None:
    broker_processes.kill_broker(data, PLAN, 2, pause)
    data.write_plan(ClusterPlan())
    assert [] == daemon.destroy(data, RealFiles())


def test_a_plan_that_is_written_again_knows_of_processes(data: DataDirectory, pid: int) -> None:
    broker_processes.kill_broker(data, PLAN, 2, pause)
    RealFiles().make_dir(data.broker_path(2))
    RealFiles().remove(data.plan_path)
    found = repair.examine_for_repair(data, RealFiles())
    assert found.plan is not None
    assert (2, True) == (found.plan.broker_count, found.plan.is_in_processes)


def test_a_broker_of_a_shared_process_is_not_killed_alone(data: DataDirectory) -> None:
    shared = PLAN._replace(is_in_processes=False)
    with pytest.raises(BrokersShareProcess) as told:
        broker_processes.kill_broker(data, shared, 2, pause)
    assert "--processes" in (told.value.hint or "")
    with pytest.raises(NoSuchBroker, match="no broker 3: it has 1, 2"):
        broker_processes.pause_broker(data, shared, 3)


def test_brokers_of_a_shared_process_are_as_it_is(data: DataDirectory) -> None:
    shared = PLAN._replace(is_in_processes=False)
    data.write_running(RunningCluster(7, "here:1", {"1": "here:1"}))
    running, stopped = broker_statuses(data, shared, ClusterState.RUNNING)
    assert BrokerStatus(1, BrokerState.RUNNING, 7, "a", "here:1") == running
    assert BrokerStatus(2, BrokerState.STOPPED, None, "b", None) == stopped
    crashed = broker_statuses(data, shared, ClusterState.CRASHED)
    assert {BrokerState.CRASHED} == {broker.state for broker in crashed}
