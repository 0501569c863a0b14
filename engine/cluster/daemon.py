"""A cluster in a separate process: start, status, stop, removal.

`start` returns when clients can connect: the process reports that once its brokers have each
other's metadata. `stop` returns when the process has ended and its files are consistent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from engine.cluster.broker_processes import (
    BrokerState,
    BrokerStatus,
    broker_statuses,
    running_processes,
    stop_left_processes,
)
from engine.cluster.data_directory import (
    BadClusterFile,
    BrokersStillRun,
    ClusterInUse,
    ClusterState,
    DataDirectory,
)
from engine.cluster.ownership import (
    broker_directories,
    check_start,
    remove_file,
    remove_log_dir,
    set_aside,
)
from engine.cluster.plan import ClusterPlan
from engine.cluster.process_log import log_size, read_last_error
from engine.config.settings import is_secret
from engine.config.value import HIDDEN
from engine.errors import EngineError, StorageError
from engine.host import processes
from engine.host.deferred_signals import block_signals
from engine.host.liveness import closes_after_shutdown
from engine.host.lock_file import LockHeld, is_held, lock_file
from engine.host.ports import Clock, Files
from engine.log.directory.meta_properties import FILE_NAME as META_FILE
from engine.log.directory.meta_properties import read_meta_properties

_POLL_MS = 5
#: How long an interrupted start waits for its child process to end.
_GIVEN_UP_S = 1.5
#: How long a running process may take to close a probing connection.
PROBE_TIMEOUT_S = 2.0
_PROGRAM = "engine.cluster"
#: Changes that a later start may make, in addition to settings.
_CHANGEABLE = (
    "port",
    "zookeeper_port",
    "racks",
    "is_in_processes",
    "log_dir_count",
    "is_insecure",
)


class ClusterStatus(NamedTuple):
    """The status of a cluster, seen from outside; addresses and pids only if it runs."""

    state: ClusterState
    bootstrap_servers: str | None
    pids: list[int]
    data: str
    brokers: list[BrokerStatus]
    #: The address of the metadata store for ZooKeeper clients.
    zookeeper: str | None
    #: The settings of the plan, without the values of passwords.
    settings: dict[str, str]

    def running_brokers(self) -> dict[int, str]:
        """Return the addresses of the running brokers by id, without paused ones."""
        return {
            broker.broker_id: broker.address
            for broker in self.brokers
            if broker.state is BrokerState.RUNNING and broker.address is not None
        }


#: Exit code of commands whose process exceeds its time-out.
_TIMED_OUT_EXIT = 3


class ClusterDidNotStart(EngineError):
    """The process of a cluster ended, or was not ready in time."""

    def __init__(self, path: str, reason: str, hint: str | None = None) -> None:
        super().__init__(f"the cluster in {path} did not start: {reason}")
        self.hint = hint or f"`kctl cluster logs --data {path}` shows what it had to say"
        if reason.startswith("cannot listen"):
            self.hint = "choose another port (0 takes any), or stop what listens there"
        self.path = path
        self.reason = reason


class ClusterNotReadyInTime(ClusterDidNotStart):
    """The process of a cluster was not ready in time, and got a signal to stop."""

    exit_code = _TIMED_OUT_EXIT

    def __init__(self, path: str, timeout_s: float) -> None:
        super().__init__(path, f"not ready after {timeout_s:g} s")
        self.timeout_s = timeout_s


class ClusterDidNotStop(EngineError):
    """The process of a cluster still exists after its time to stop."""

    exit_code = _TIMED_OUT_EXIT

    def __init__(self, path: str, pid: int) -> None:
        super().__init__(f"the cluster in {path} did not stop in time")
        self.hint = f"it may be writing much to its disks: wait, or kill process {pid}"
        self.path = path
        self.pid = pid


class ClusterBusy(EngineError):
    """Another command that starts, repairs or removes the cluster takes too long."""

    hint = "wait for it, or allow more time with --timeout SECONDS"

    def __init__(self, path: str) -> None:
        super().__init__(f"another command starts or removes the cluster in {path}")
        self.path = path


class RunningWithOtherConfig(EngineError):
    """A cluster runs already, with a configuration other than the requested one."""

    def __init__(self, path: str, differences: Collection[str]) -> None:
        what = ", ".join(differences)
        super().__init__(f"the cluster in {path} is running already, nothing was changed: {what}")
        stop = f"`kctl cluster stop --data {path}`"
        self.hint = f"other settings count from a start on: {stop}, then start it again"
        self.path = path
        self.differences = differences


class NoClusterInDirectory(EngineError):
    """A data directory has no cluster."""

    hint = "`kctl cluster start` makes one; --data names another directory"

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no cluster in {path}")
        self.path = path


class NotSet(EngineError):
    """A setting that should be removed is not in the plan."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(f"the cluster in {path} does not set {name}")
        self.hint = f"`kctl cluster status --data {path} -o wide` shows what it sets"
        self.name = name


class OtherPlan(EngineError):
    """A cluster exists with a configuration that the requested one cannot change."""

    def __init__(self, path: str, what: str, made: object, requested: object) -> None:
        super().__init__(f"the cluster in {path} was made with {what} {made}, not {requested}")
        self.hint = f"leave {what} out, or `kctl cluster destroy --data {path}` first"
        self.path = path


def status_of(data: DataDirectory, timeout_s: float = PROBE_TIMEOUT_S) -> ClusterStatus:
    """Return the status of a cluster; must not be called in the process that runs the cluster.

    A cluster that does not close a probing connection within the time-out is hung.
    """
    state = data.state()
    running = data.running() if state is ClusterState.RUNNING else None
    if running is None or running.znode_address is None:
        return status_as(data, state)
    host, _, port = running.znode_address.rpartition(":")
    if (
        not closes_after_shutdown(host, int(port), timeout_s)
        and data.state() is ClusterState.RUNNING
    ):
        state = ClusterState.HUNG
    return status_as(data, state)


def status_as(data: DataDirectory, state: ClusterState) -> ClusterStatus:
    """Return the status of a cluster that is known to be in `state`."""
    has_process = state in (ClusterState.RUNNING, ClusterState.HUNG)
    running = data.running() if has_process else None
    plan = data.plan() or ClusterPlan()
    brokers = []
    if state is not ClusterState.ABSENT:
        brokers = broker_statuses(data, plan, state)
    pids = [broker.pid for broker in brokers if broker.pid is not None]
    if running is None:
        return ClusterStatus(state, None, pids, data.path, brokers, None, _shown_settings(plan))
    return ClusterStatus(
        state,
        running.bootstrap_servers,
        sorted({running.pid, *pids}),
        data.path,
        brokers,
        running.znode_address,
        _shown_settings(plan),
    )


def _shown_settings(plan: ClusterPlan) -> dict[str, str]:
    """Return the settings of a plan, with the values of secrets masked."""
    return {name: HIDDEN if is_secret(name) else text for name, text in plan.settings.items()}


@contextmanager
def hold_start_lock(
    data: DataDirectory,
    files: Files,
    clock: Clock,
    timeout_s: float,
    pause: Callable[[int], None],
    *,
    lock_path: str | None = None,
) -> Iterator[None]:
    """Hold the lock of commands that start, repair or remove a cluster, while the block runs.

    With `lock_path` the block holds another lock instead. Creates the data directory. Raises
    ClusterBusy if the lock is not free within the time-out.
    """
    files.make_dir(data.path)
    deadline_ms = clock.monotonic_ms() + round(timeout_s * 1000)
    while True:
        try:
            release = lock_file(lock_path or data.start_lock_path)
            break
        except LockHeld as error:
            if clock.monotonic_ms() > deadline_ms:
                raise ClusterBusy(data.path) from error
            pause(_POLL_MS)
    try:
        yield
    finally:
        release()


def check_running(data: DataDirectory, plan: ClusterPlan) -> None:
    """Raise RunningWithOtherConfig if a running cluster differs from the requested plan."""
    kept = data.plan() or ClusterPlan()
    differences = []
    if plan.port != kept.port:
        differences.append(f"it was started with port {kept.port}, not {plan.port}")
    if plan.zookeeper_port != kept.zookeeper_port:
        was = kept.zookeeper_port or "any"
        differences.append(f"it was started with ZooKeeper port {was}, not {plan.zookeeper_port}")
    if plan.racks != kept.racks:
        differences.append(f"it was started with racks {_joined_names(kept.racks)}")
    if plan.log_dir_count != kept.log_dir_count:
        differences.append(f"its brokers have log directories: {kept.log_dir_count} each")
    if plan.is_in_processes != kept.is_in_processes:
        how = "in processes of their own" if kept.is_in_processes else "in one process"
        differences.append(f"its brokers run {how}")
    for name in sorted({*plan.settings, *kept.settings}):
        if plan.settings.get(name) != kept.settings.get(name):
            verb = "sets" if name in kept.settings else "does not set"
            differences.append(f"it {verb} {name}" + ("" if name in plan.settings else " still"))
    if differences:
        raise RunningWithOtherConfig(data.path, differences)


def _joined_names(names: Collection[str]) -> str:
    """Return names separated by commas."""
    return ",".join(names) or "none"


def start(
    data: DataDirectory,
    files: Files,
    plan: ClusterPlan,
    timeout_s: float,
    start_process: Callable[[DataDirectory], processes.Started] | None = None,
) -> None:
    """Start the cluster of a plan, store the plan, and return when the cluster is ready.

    `start_process` replaces `start_program`. The caller must hold the start lock. Raises
    ClusterInUse, ClusterDidNotStart, ClusterNotReadyInTime and the errors of `check_start`; the
    plan is not stored then.
    """
    if is_held(data.lock_path):
        raise ClusterInUse(data.path)
    check_start(data, files, plan)
    with data.store_plan_while_starting(plan) as started:
        log_end = log_size(files, data.log_path)
        process = None
        try:
            with block_signals():
                process = (start_process or start_program)(data)
            output = process.wait_until_ready(timeout_s)
            if output is None:
                raise ClusterNotReadyInTime(data.path, timeout_s)
            if output:
                started()
        except BaseException:
            # No command would wait for the process, or know of it. It may be about to store its
            # plan: the earlier one is restored when it has ended.
            with block_signals():
                if process is not None:
                    _stop_start(data, plan, process.pid)
                    process.wait_until_ended(_GIVEN_UP_S)
            raise
    if not output:
        raise ClusterDidNotStart(data.path, *read_last_error(files, data.log_path, log_end))


def start_program(data: DataDirectory, *owner: str) -> processes.Started:
    """Start the process of a cluster; it ends with the process whose pid is `owner`, if given."""
    command = processes.python_command(_PROGRAM, data.path, *owner)
    return processes.start_detached(command, data.log_path)


def _stop_start(data: DataDirectory, plan: ClusterPlan, pid: int) -> None:
    """Stop a process that did not get ready in time, and the brokers that it has started."""
    processes.terminate(pid)
    # Brokers in separate processes that have already started.
    for running in running_processes(data, plan).values():
        processes.stop_with_all(running.pid)


def stop(data: DataDirectory, clock: Clock, timeout_s: float, pause: Callable[[int], None]) -> bool:
    """Stop a cluster, and return when its process has ended: True if it was running.

    Raises ClusterDidNotStop, BadRunningFile.
    """
    deadline_ms = clock.monotonic_ms() + round(timeout_s * 1000)
    if not is_held(data.lock_path):
        # A killed process may have left running.json.
        return _stop_left(data, clock, deadline_ms, pause)
    running = data.running()
    while running is None and is_held(data.lock_path):
        # The cluster is starting: its pid is known only once it is ready.
        if clock.monotonic_ms() > deadline_ms:
            raise ClusterBusy(data.path)
        pause(_POLL_MS)
        running = data.running()
    if running is None or not is_held(data.lock_path):
        return _stop_left(data, clock, deadline_ms, pause)
    processes.terminate(running.pid)
    while is_held(data.lock_path):
        if clock.monotonic_ms() > deadline_ms:
            raise ClusterDidNotStop(data.path, running.pid)
        pause(_POLL_MS)
    # A process that was killed meanwhile has stopped none of its brokers.
    _stop_left(data, clock, deadline_ms, pause)
    return True


def _stop_left(
    data: DataDirectory, clock: Clock, deadline_ms: int, pause: Callable[[int], None]
) -> bool:
    """Stop brokers that outlived their cluster's process; return True if there were any.

    Raises ClusterDidNotStop.
    """
    plan = _readable_plan(data) or ClusterPlan()
    if not running_processes(data, plan):
        return False
    for left in stop_left_processes(data, plan, clock, deadline_ms, pause).values():
        raise ClusterDidNotStop(data.path, left.pid)
    return True


def plan_for(
    data: DataDirectory,
    requested: ClusterPlan,
    given: frozenset[str],
    unset: Collection[str] = (),
) -> ClusterPlan:
    """Return the plan for a start: the stored plan, changed by the options in `given`.

    The number of brokers is fixed, and log directories cannot be removed, because they may
    contain replicas (OtherPlan). Given settings are added to the stored ones; `unset` ones are
    removed (NotSet if one is not stored).
    """
    kept = data.plan()
    settings = {} if kept is None else dict(kept.settings)
    for name in unset:
        if settings.pop(name, None) is None:
            raise NotSet(data.path, name)
    if kept is None:
        return requested
    if "broker_count" in given and requested.broker_count != kept.broker_count:
        raise OtherPlan(data.path, "--brokers", kept.broker_count, requested.broker_count)
    if "log_dir_count" in given and requested.log_dir_count < kept.log_dir_count:
        raise OtherPlan(data.path, "--log-dirs", kept.log_dir_count, requested.log_dir_count)
    changed = {name: getattr(requested, name) for name in _CHANGEABLE if name in given}
    return kept._replace(**changed, settings={**settings, **requested.settings})


def directories_that_stay(data: DataDirectory) -> list[str]:
    """Return the log directories that `log.dirs` names and that `destroy` does not remove.

    Empty if the plan is damaged.
    """
    plan = _readable_plan(data) or ClusterPlan()
    own = data.own_log_dirs(plan)
    return [path for path in data.log_dirs(plan) if path not in own]


def destroy(data: DataDirectory, files: Files) -> list[str]:
    """Remove a stopped cluster with its data; return the paths that remain.

    These are paths that no cluster created. The contents of `directories_that_stay` remain too.
    Raises NoClusterInDirectory, ClusterInUse, BrokersStillRun.
    """
    state = data.state()
    if state is ClusterState.ABSENT:
        raise NoClusterInDirectory(data.path)
    if state in (ClusterState.RUNNING, ClusterState.STARTING):
        raise ClusterInUse(data.path)
    alive = data.held_broker_ids()
    if alive:
        raise BrokersStillRun(data.path, alive)
    plan = _readable_plan(data)
    if plan is None:
        found = broker_directories(data, files).values()
        log_dirs = [path for paths in found for path in paths]
    else:
        log_dirs = list(data.own_log_dirs(plan))
    if files.exists(data.served_path):
        # Imported here: it loads the metadata store and batches.
        from engine.cluster.served_logs import remove_links

        remove_links(data, files)
    # The plan is removed last, so that an interrupted removal can be repeated.
    left = [kept for path in log_dirs for kept in remove_log_dir(files, path)]
    plan = plan or ClusterPlan()
    ids = sorted({*plan.broker_ids(), *data.broker_lock_ids()})
    beside = [path for id_ in ids for path in data.broker_files(id_)]
    for path in (*set_aside(data, files), *beside, *data.own_files()):
        remove_file(files, path)
    inside = [f"{data.path}/{name}" for name in files.list_dir(data.path)]
    if not inside:
        files.remove(data.path)
    return sorted({*left, *(path for path in inside if path not in log_dirs)})


def cluster_id_of(data: DataDirectory, files: Files) -> str | None:
    """Return the cluster id in a log directory, None before the first start."""
    for path in data.log_dirs(_readable_plan(data) or ClusterPlan()):
        try:
            return read_meta_properties(files, f"{path}/{META_FILE}").cluster_id
        except StorageError:
            continue
    return None


def _readable_plan(data: DataDirectory) -> ClusterPlan | None:
    """Return the cluster's plan, None if its file is missing or damaged."""
    try:
        return data.plan()
    except BadClusterFile:
        return None
