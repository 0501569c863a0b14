"""The brokers of a cluster seen from outside: their states, and signals to them.

| lock | broker-<id>.json | the process | state |
|---|---|---|---|
| held | has an address | stopped by SIGSTOP | paused |
| held | has an address | | running |
| held | no address, or missing | | starting, or stopping |
| free | exists | | crashed: it was killed, or halted |
| free | missing | | stopped |

Brokers that share one process have its state; running.json omits a broker that was stopped alone.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from engine.cluster.data_directory import ClusterState, DataDirectory, RunningBroker
from engine.cluster.halts import Halt
from engine.cluster.plan import ClusterPlan
from engine.errors import EngineError
from engine.host import processes
from engine.host.lock_file import is_held
from engine.host.ports import Clock

_POLL_MS = 5


class BrokerState(Enum):
    """The state of a broker, derived from its files, lock and process."""

    RUNNING = "running"
    PAUSED = "paused"
    STARTING = "starting"
    CRASHED = "crashed"
    HUNG = "hung"
    STOPPED = "stopped"


class BrokerStatus(NamedTuple):
    """The status of a broker of an embedded cluster, seen from outside."""

    broker_id: int
    state: BrokerState
    pid: int | None
    rack: str | None
    address: str | None
    #: The last log lines of a broker that crashed.
    log_end: tuple[str, ...] = ()
    #: The reason for the last halt of a broker that does not run.
    halt: Halt | None = None


class NoSuchBroker(EngineError):
    """A cluster has no broker with this id."""

    def __init__(self, path: str, broker_id: int, ids: list[int]) -> None:
        names = ", ".join(map(str, ids))
        super().__init__(f"the cluster in {path} has no broker {broker_id}: it has {names}")
        self.hint = f"`kctl cluster status --data {path}` shows them"
        self.broker_id = broker_id


class BrokerInUse(EngineError):
    """Another process runs a broker."""

    def __init__(self, path: str, broker_id: int) -> None:
        super().__init__(f"broker {broker_id} of the cluster in {path} is running already")
        self.hint = f"`kctl cluster status --data {path}` shows it"
        self.broker_id = broker_id


class BrokersShareProcess(EngineError):
    """A broker cannot be killed or paused alone, because all brokers share one process."""

    def __init__(self, path: str, broker_id: int) -> None:
        """Create the error; `path` is the data directory of the cluster."""
        super().__init__(
            f"broker {broker_id} has no process of its own: all brokers of the cluster in {path} "
            "share one"
        )
        self.hint = (
            f"`kctl cluster stop --data {path}`, then `kctl cluster start --processes --data "
            f"{path}` gives each broker its own"
        )
        self.broker_id = broker_id


class BrokerNotRunning(EngineError):
    """A broker that should be stopped, killed, paused or resumed does not run."""

    def __init__(self, path: str, broker_id: int, state: BrokerState) -> None:
        super().__init__(f"broker {broker_id} does not run, it is {state.value}")
        self.hint = f"`kctl cluster restart {broker_id} --data {path}` starts it"
        self.broker_id = broker_id


def broker_statuses(
    data: DataDirectory, plan: ClusterPlan, state: ClusterState
) -> list[BrokerStatus]:
    """Return the status of each broker of a plan, whose cluster is in the given state."""
    if plan.is_in_processes:
        return [_process_status(data, plan, broker_id) for broker_id in plan.broker_ids()]
    running = None
    if state in (ClusterState.RUNNING, ClusterState.HUNG):
        running = data.running()
    shared = BrokerState.STOPPED if state is ClusterState.ABSENT else BrokerState(state.value)
    halt = None
    if shared in (BrokerState.STOPPED, BrokerState.CRASHED):
        halt = data.last_halt()
    found = []
    for broker_id in plan.broker_ids():
        rack = plan.rack_of(broker_id)
        if running is None:
            found.append(BrokerStatus(broker_id, shared, None, rack, None, halt=halt))
            continue
        address = running.brokers.get(str(broker_id))
        if address is None:
            found.append(BrokerStatus(broker_id, BrokerState.STOPPED, None, rack, None))
        else:
            found.append(BrokerStatus(broker_id, shared, running.pid, rack, address))
    return found


def _process_status(data: DataDirectory, plan: ClusterPlan, broker_id: int) -> BrokerStatus:
    """Return a broker's state with its process and address, or the reason of its end."""
    state, running = process_state(data, broker_id)
    rack = plan.rack_of(broker_id)
    if state is BrokerState.CRASHED:
        end, halt = data.broker_log_end(broker_id), data.last_halt(broker_id)
        return BrokerStatus(broker_id, state, None, rack, None, end, halt)
    if running is None:
        return BrokerStatus(broker_id, state, None, rack, None)
    return BrokerStatus(broker_id, state, running.pid, rack, running.address)


def process_state(data: DataDirectory, broker_id: int) -> tuple[BrokerState, RunningBroker | None]:
    """Return the state of a broker that has its own process, and the process if it exists."""
    running = data.running_broker(broker_id)
    if not is_held(data.broker_lock_path(broker_id)):
        return (BrokerState.STOPPED if running is None else BrokerState.CRASHED), None
    if running is None or running.address is None:
        return BrokerState.STARTING, running
    if processes.is_paused(running.pid):
        return BrokerState.PAUSED, running
    return BrokerState.RUNNING, running


def check_broker(data: DataDirectory, plan: ClusterPlan, broker_id: int) -> None:
    """Raise NoSuchBroker if the plan does not have the broker."""
    if broker_id not in plan.broker_ids():
        raise NoSuchBroker(data.path, broker_id, plan.broker_ids())


def _find_process(
    data: DataDirectory, plan: ClusterPlan, broker_id: int
) -> tuple[BrokerState, RunningBroker]:
    """Return the state and process of a broker that has its own process.

    Raises NoSuchBroker, BrokersShareProcess, BrokerNotRunning.
    """
    check_broker(data, plan, broker_id)
    if not plan.is_in_processes:
        raise BrokersShareProcess(data.path, broker_id)
    state, running = process_state(data, broker_id)
    if running is None:
        raise BrokerNotRunning(data.path, broker_id, state)
    return state, running


def kill_broker(
    data: DataDirectory,
    plan: ClusterPlan,
    broker_id: int,
    pause: Callable[[int], None],
) -> int:
    """Kill the process of a broker and return its pid once it has ended.

    Its session with the metadata store remains until it times out, as after any crash. Raises
    the errors of `_find_process`.
    """
    _, running = _find_process(data, plan, broker_id)
    processes.kill(running.pid)
    while is_held(data.broker_lock_path(broker_id)):
        pause(_POLL_MS)
    return running.pid


def pause_broker(data: DataDirectory, plan: ClusterPlan, broker_id: int) -> int:
    """Pause the process of a broker and return its pid; raises the errors of `_find_process`."""
    _, running = _find_process(data, plan, broker_id)
    processes.pause(running.pid)
    return running.pid


def resume_broker(data: DataDirectory, plan: ClusterPlan, broker_id: int) -> int:
    """Resume the process of a broker and return its pid; raises the errors of `_find_process`."""
    _, running = _find_process(data, plan, broker_id)
    processes.resume(running.pid)
    return running.pid


def running_processes(data: DataDirectory, plan: ClusterPlan) -> dict[int, RunningBroker]:
    """Return the existing processes of brokers by id, even if the cluster's process has ended.

    Brokers that are not in the plan are included, because the plan may have been rewritten.
    """
    found = {}
    planned = plan.broker_ids() if plan.is_in_processes else ()
    for broker_id in sorted({*planned, *data.broker_lock_ids()}):
        _, running = process_state(data, broker_id)
        if running is not None:
            found[broker_id] = running
    return found


def stop_left_processes(
    data: DataDirectory,
    plan: ClusterPlan,
    clock: Clock,
    deadline_ms: int,
    pause: Callable[[int], None],
) -> dict[int, RunningBroker]:
    """Stop the brokers of a cluster whose process has ended; return those alive at the deadline."""
    left = running_processes(data, plan)
    for running in left.values():
        processes.stop_with_all(running.pid)
    while left and clock.monotonic_ms() <= deadline_ms:
        pause(_POLL_MS)
        left = running_processes(data, plan)
    return left
