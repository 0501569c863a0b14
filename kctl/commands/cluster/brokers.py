"""Implementation of `kctl cluster` commands on a single broker, and of `kctl brokers shutdown`."""

from __future__ import annotations

import os
import time

from engine.cluster import daemon
from engine.cluster.broker_processes import (
    check_broker,
    kill_broker,
    pause_broker,
    resume_broker,
)
from engine.cluster.daemon import NoClusterInDirectory
from engine.cluster.data_directory import DataDirectory
from engine.cluster.plan import ClusterPlan
from engine.cluster.requests import Action, request_action
from engine.host.real import RealClock, RealFiles
from kctl import exits
from kctl.console import confirm, notify
from kctl.embedded import cluster_path

_DONE = {
    Action.RESTART: "runs",
    Action.STOP: "has stopped",
    Action.ADD: "was added and runs",
    Action.REMOVE: "is removed",
}


def read_directory_and_plan(data: str | None) -> tuple[DataDirectory, ClusterPlan]:
    """Return an embedded cluster's directory and the plan stored in it.

    `data` is the directory, None for the default. Errors: NoClusterInDirectory if it has no plan.
    """
    directory = DataDirectory(RealFiles(), cluster_path(os.environ, data))
    plan = directory.plan()
    if plan is None:
        raise NoClusterInDirectory(directory.path)
    return directory, plan


def request_change(action: str, broker_id: int | None, data: str | None, timeout_s: float) -> int:
    """Make a running embedded cluster restart, stop, add or remove a broker; return the exit code.

    `action` is the value of an `Action`; `broker_id` is None for a broker to add. It waits for
    other commands that start or change the cluster.
    """
    directory, plan = read_directory_and_plan(data)
    if broker_id is not None:
        check_broker(directory, plan, broker_id)
    requested = Action(action)
    with daemon.hold_start_lock(directory, RealFiles(), RealClock(), timeout_s, _pause):
        done = request_action(directory, requested, broker_id, RealClock(), timeout_s, _pause)
    address = _address(directory, done)
    notify(f"broker {done} {_DONE[requested]}" + (f" at {address}" if address else ""))
    return exits.OK


def _address(directory: DataDirectory, broker_id: int) -> str | None:
    """Return the `host:port` of a broker, None if the cluster or the broker is not running."""
    running = directory.running()
    return None if running is None else running.brokers.get(str(broker_id))


def remove_broker(broker_id: int, data: str | None, timeout_s: float, *, yes: bool) -> int:
    """Ask for confirmation, then stop a broker and delete its files; return the exit code.

    A broker that still has replicas is refused.
    """
    directory, plan = read_directory_and_plan(data)
    check_broker(directory, plan, broker_id)
    confirm(
        f"remove broker {broker_id} of the cluster in {directory.path} with its files",
        yes=yes,
        can_be_tried=False,
    )
    return request_change(Action.REMOVE.value, broker_id, data, timeout_s)


def signal_broker(what: str, broker_id: int, data: str | None) -> int:
    """Kill, pause or resume a broker's process, as `what` names it; return the exit code."""
    directory, plan = read_directory_and_plan(data)
    if what == "kill":
        pid, done = kill_broker(directory, plan, broker_id, _pause), "killed"
    elif what == "pause":
        pid, done = pause_broker(directory, plan, broker_id), "paused"
    else:
        pid, done = resume_broker(directory, plan, broker_id), "resumed"
    notify(f"broker {broker_id}, process {pid}, is {done}")
    return exits.OK


def _pause(duration_ms: int) -> None:
    """Sleep; `daemon` calls it between two looks at the cluster's files."""
    time.sleep(duration_ms / 1000)
