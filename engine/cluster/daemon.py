"""A cluster that runs as a process of its own: started, asked, stopped, removed.

Who starts it returns when clients can connect: the process says so once its brokers know each
other. Who stops it returns when the process has ended, and its files are in order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from engine.cluster.data_directory import ClusterInUse, ClusterState, DataDirectory
from engine.cluster.plan import ClusterPlan
from engine.config.key import broker_keys
from engine.config.value import HIDDEN
from engine.errors import EngineError
from engine.host import processes
from engine.host.lock_file import is_held
from engine.host.ports import Clock, FileMissing, Files
from engine.limits import LOG_TAIL_BYTES

_POLL_MS = 5
_PROGRAM = "engine.cluster"


class ClusterStatus(NamedTuple):
    """What is known of a cluster from outside; no servers and no pids unless it runs."""

    state: ClusterState
    bootstrap_servers: str | None
    pids: list[int]
    data: str
    brokers: dict[str, str]
    #: Where ZooKeeper's clients reach the metadata store.
    zookeeper: str | None
    #: What a start sets, without the values of passwords.
    settings: dict[str, str]


class ClusterDidNotStart(EngineError):
    """The process of a cluster ended, or said nothing in time."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"the cluster in {path} did not start: {reason}")
        self.hint = f"`kctl cluster logs --data {path}` shows what it had to say"
        if reason.startswith("cannot listen"):
            self.hint = "choose another port (--port 0 takes any), or stop what listens there"
        self.path = path
        self.reason = reason


class ClusterDidNotStop(EngineError):
    """The process of a cluster is still there after its time to stop."""

    def __init__(self, path: str, pid: int) -> None:
        super().__init__(f"the cluster in {path} did not stop in time")
        self.hint = f"it may be writing much to its disks: wait, or kill process {pid}"
        self.path = path
        self.pid = pid


class NoClusterThere(EngineError):
    """A data directory has no cluster."""

    hint = "`kctl cluster start` makes one; --data names another directory"

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no cluster in {path}")
        self.path = path


class NotSet(EngineError):
    """A setting is to be given up that nobody has made."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(f"the cluster in {path} does not set {name}")
        self.hint = f"`kctl cluster status --data {path} -o wide` shows what it sets"
        self.name = name


class OtherPlan(EngineError):
    """A cluster is there already, and was made in another way than is asked for."""

    def __init__(self, path: str, what: str, made: object, asked: object) -> None:
        super().__init__(f"the cluster in {path} was made with {what} {made}, not {asked}")
        self.hint = f"leave {what} out, or `kctl cluster destroy --data {path}` first"
        self.path = path


def status_of(data: DataDirectory) -> ClusterStatus:
    """Return what is known of a cluster; not to be asked by who runs it."""
    return status_as(data, data.state())


def status_as(data: DataDirectory, state: ClusterState) -> ClusterStatus:
    """Return what is known of a cluster that is in this state."""
    running = data.running() if state is ClusterState.RUNNING else None
    settings = _shown(data.plan() or ClusterPlan())
    if running is None:
        return ClusterStatus(state, None, [], data.path, {}, None, settings)
    return ClusterStatus(
        state,
        running.bootstrap_servers,
        [running.pid],
        data.path,
        running.brokers,
        running.znode_address,
        settings,
    )


def _shown(plan: ClusterPlan) -> dict[str, str]:
    """Return the settings of a plan as they may be shown."""
    keys = broker_keys()
    return {
        name: HIDDEN if name in keys and keys[name].is_sensitive else text
        for name, text in plan.settings.items()
    }


def start(data: DataDirectory, files: Files, plan: ClusterPlan, timeout_s: float) -> None:
    """Start the cluster of a plan, which is kept, and return when that is ready.

    Errors: ClusterInUse, ClusterDidNotStart; the plan is not kept then.
    """
    if is_held(data.lock_path):
        raise ClusterInUse(data.path)
    with data.trying(plan) as started:
        command = processes.python_command(_PROGRAM, data.path)
        log_end = _size(files, data.log_path)
        process = processes.start_detached(command, data.log_path)
        said = process.wait_until_ready(timeout_s)
        if said:
            started()
            return
    if said is None:
        processes.ask_to_stop(process.pid)
        raise ClusterDidNotStart(data.path, f"not ready after {timeout_s:.0f} s")
    raise ClusterDidNotStart(data.path, _last_words(files, data.log_path, log_end))


def stop(data: DataDirectory, clock: Clock, timeout_s: float, pause: Callable[[int], None]) -> bool:
    """Stop a cluster and return when its process has ended; tells whether it ran.

    Raises ClusterDidNotStop.
    """
    running = data.running()
    if running is None or not is_held(data.lock_path):
        return False
    processes.ask_to_stop(running.pid)
    deadline_ms = clock.monotonic_ms() + round(timeout_s * 1000)
    while is_held(data.lock_path):
        if clock.monotonic_ms() > deadline_ms:
            raise ClusterDidNotStop(data.path, running.pid)
        pause(_POLL_MS)
    return True


def plan_for(
    data: DataDirectory,
    asked: ClusterPlan,
    given: frozenset[str],
    unset: Collection[str] = (),
) -> ClusterPlan:
    """Return the plan to start with: what is kept, changed by what was `given`.

    The number of brokers of a cluster stays as it was made (OtherPlan). Settings that are given
    are added to those that are kept, without those that are `unset` (NotSet if one is not kept).
    """
    kept = data.plan()
    settings = {} if kept is None else dict(kept.settings)
    for name in unset:
        if settings.pop(name, None) is None:
            raise NotSet(data.path, name)
    if kept is None:
        return asked
    if "broker_count" in given and asked.broker_count != kept.broker_count:
        raise OtherPlan(data.path, "--brokers", kept.broker_count, asked.broker_count)
    return kept._replace(
        port=asked.port if "port" in given else kept.port,
        settings={**settings, **asked.settings},
    )


def directories_that_stay(data: DataDirectory) -> list[str]:
    """Return the log directories that the settings name: `destroy` removes only its own."""
    plan = data.plan() or ClusterPlan()
    named = plan.settings.get("log.dirs") or plan.settings.get("log.dir") or ""
    own = [data.broker_path(broker_id) for broker_id in plan.broker_ids()]
    paths = [path.strip() for path in named.split(",")]
    return [path for path in paths if path and path not in own]


def destroy(data: DataDirectory, files: Files) -> None:
    """Remove a stopped cluster with its data; raises NoClusterThere, ClusterInUse.

    What lies in `directories_that_stay` is left.
    """
    state = data.state()
    if state is ClusterState.ABSENT:
        raise NoClusterThere(data.path)
    if state in (ClusterState.RUNNING, ClusterState.STARTING):
        raise ClusterInUse(data.path)
    plan = data.plan()
    # The plan goes last: as long as it is there, an interrupted removal can be begun again.
    for broker_id in plan.broker_ids() if plan is not None else []:
        _remove_tree(files, data.broker_path(broker_id))
    for path in data.own_files():
        _remove_file(files, path)
    if not files.list_dir(data.path):
        files.remove(data.path)


def _remove_tree(files: Files, path: str) -> None:
    if not files.exists(path):
        return
    for name in files.list_dir(path):
        child = f"{path}/{name}"
        if files.is_dir(child):
            _remove_tree(files, child)
        else:
            _remove_file(files, child)
    files.remove(path)


def _remove_file(files: Files, path: str) -> None:
    try:
        files.remove(path)
    except FileMissing:
        return


def _size(files: Files, path: str) -> int:
    try:
        return files.size_bytes(path)
    except FileMissing:
        return 0


def _last_words(files: Files, path: str, start: int) -> str:
    """Return the last line that a process wrote behind a position of its log."""
    file = files.open(path)
    try:
        end = file.size_bytes()
        begin = max(start, end - LOG_TAIL_BYTES)
        lines = file.read_at(begin, end - begin).decode(errors="replace").splitlines()
    finally:
        file.close()
    said = [line.removeprefix("error: ") for line in lines if not line.startswith("hint: ")]
    return said[-1] if said else "it said nothing"
