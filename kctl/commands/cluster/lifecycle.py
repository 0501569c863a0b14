"""Implementation of `kctl cluster start`, `stop`, `list`, `logs` and `destroy`."""

from __future__ import annotations

import os
import sys
import time
from contextlib import ExitStack
from typing import NamedTuple

from engine.cluster import daemon
from engine.cluster.daemon import ClusterStatus, NoClusterInDirectory
from engine.cluster.data_directory import ClusterState, DataDirectory
from engine.cluster.ownership import check_start
from engine.cluster.plan import (
    FIRST_BROKER_ID,
    ClusterPlan,
    broker_settings,
    check_plan,
    unauthenticated_listeners,
)
from engine.config.key import broker_keys
from engine.config.settings import is_secret
from engine.errors import ConfigError, EngineError, StorageError
from engine.host.ports import File, FileMissing
from engine.host.real import RealClock, RealFiles
from engine.limits import COPY_CHUNK_BYTES
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.console import confirm, notify, report_error
from kctl.embedded import KEYSTORE, admin_properties, cluster_path
from kctl.hints import did_you_mean
from kctl.known_clusters import forget_cluster, known_clusters, note_cluster
from kctl.render import Column, check_format, write_object, write_rows
from kctl.render.rows import OutputRow
from kctl.setting_arguments import hint_on_settings, settings_of

HALT_FIELDS = (
    Column("line", "LINE", kind="string?"),
    Column("cause", "CAUSE", kind="string?"),
    Column("hint", "HINT"),
)
BROKER_FIELDS = (
    Column("broker_id", "BROKER", right=True),
    Column("state", "STATE"),
    Column("address", "ADDRESS", kind="string?"),
    Column("rack", "RACK", kind="string?"),
    Column("pid", "PID", right=True, kind="integer?"),
    Column("is_controller", "CONTROLLER", kind="boolean?"),
    Column("log_end", "LOG-END", wide=True, kind="string[]"),
    Column("halt", "HALT", wide=True, kind="object?", fields=HALT_FIELDS),
)
STATUS_COLUMNS = (
    Column("state", "STATE"),
    Column("bootstrap_servers", "SERVERS", is_name=True, kind="string?"),
    Column("pids", "PIDS", kind="integer[]"),
    Column("data", "DATA"),
    Column("brokers", "BROKERS", wide=True, kind="object[]", fields=BROKER_FIELDS),
    Column("zookeeper", "ZOOKEEPER", wide=True, kind="string?"),
    Column("settings", "SETTINGS", wide=True, kind="string{}"),
)
LIST_COLUMNS = (
    Column("data", "DATA", is_name=True),
    Column("state", "STATE"),
    Column("bootstrap_servers", "SERVERS", kind="string?"),
    Column("zookeeper", "ZOOKEEPER", kind="string?"),
    Column("pids", "PIDS", wide=True, kind="integer[]?"),
    Column("settings", "SETTINGS", wide=True, kind="string{}?"),
)
_FOLLOW_PAUSE_S = 0.2


class NoLogOfBroker(EngineError):
    """The requested broker never ran as a separate process, so that it has no log file."""

    def __init__(self, path: str, broker_id: int) -> None:
        super().__init__(f"broker {broker_id} of the cluster in {path} has no log of its own")
        self.hint = f"`kctl cluster logs --data {path}` shows that of the cluster's process"
        self.broker_id = broker_id


class UnauthenticatedListener(EngineError):
    """A cluster without authentication would accept connections of other machines."""

    exit_code = exits.USAGE
    hint = (
        "authenticate clients by SASL (by OAUTHBEARER only with signed tokens: anybody can make "
        "others), or by TLS with ssl.client.auth=required; listen on 127.0.0.1; or add --insecure "
        "where everybody who reaches it may do everything"
    )

    def __init__(self, listeners: list[str]) -> None:
        super().__init__(f"without authentication, and not on loopback: {', '.join(listeners)}")
        self.listeners = listeners


class StartRequest(NamedTuple):
    """The options of `start`; None means the value of the stored plan, else the default."""

    data: str | None
    brokers: int | None
    port: int | None
    zookeeper_port: int | None
    settings: list[str]
    unset: list[str]
    foreground: bool
    timeout_s: float
    output: str
    from_logs: tuple[str, ...] = ()
    writable: bool = False
    racks: str | None = None
    processes: bool | None = None
    log_dirs: int | None = None
    config: str | None = None
    insecure: bool = False
    secure: bool = False
    advertise: str | None = None


def _directory(data: str | None) -> DataDirectory:
    """Return an embedded cluster's data directory: `data`, or the default directory if None."""
    return DataDirectory(RealFiles(), cluster_path(os.environ, data))


def start_cluster(request: StartRequest) -> int:
    """Start an embedded cluster (`kctl cluster start`), and print its status; return the exit code.

    With `foreground` it runs in this process until a signal, else in a new one. A cluster that runs
    already is only compared with the options.
    """
    check_format(request.output)
    data, files = _directory(request.data), RealFiles()
    plan = _plan_to_start(data, request)
    _warn_of_secrets(request.settings)
    _validate_plan(plan)
    check_start(data, files, plan)
    with ExitStack() as turn:
        turn.enter_context(
            daemon.hold_start_lock(data, files, RealClock(), request.timeout_s, _pause)
        )
        # Another `start` may have created the cluster while this one waited.
        plan = _plan_to_start(data, request)
        if request.from_logs:
            from kctl.commands.cluster.served_logs import create_served_cluster

            create_served_cluster(data, request.from_logs, plan, is_writable=request.writable)
        note_cluster(files, os.environ, data.path)
        if request.foreground:
            _run_in_foreground(data, plan, turn, request.output)
            return exits.OK
        if data.state() is ClusterState.RUNNING:
            daemon.check_running(data, plan)
            notify(f"the cluster in {data.path} is running already")
        else:
            daemon.start(data, files, plan, request.timeout_s)
    if KEYSTORE in plan.settings:
        _complete_securing(data, request.timeout_s)
    try:
        return _show(daemon.status_of(data), request.output)
    except KeyboardInterrupt:
        notify(f"the cluster in {data.path} runs; `kctl cluster stop` stops it")
        raise


def _complete_securing(data: DataDirectory, timeout_s: float) -> None:
    """Create the administrator's credential and context, once a secured cluster runs.

    Does nothing if no broker runs or the administrator's properties are missing.
    """
    from kctl.commands.cluster.securing import complete_securing

    status = daemon.status_of(data)
    servers, running = status.bootstrap_servers, status.running_brokers()
    if servers is not None and running and admin_properties(data.path) is not None:
        complete_securing(data, servers, list(running.values()), timeout_s)


def _run_in_foreground(
    data: DataDirectory, plan: ClusterPlan, turn: ExitStack, output: str
) -> None:
    """Run a cluster in this process until a signal.

    `turn` holds the start lock; it is released once the brokers run, so that other commands need
    not wait.
    """
    from engine.cluster.run import log_to_stderr, run_cluster

    def ready() -> None:
        """Release the start lock and print the status; called once the brokers have started."""
        turn.close()
        _show_own(data, output)

    log_to_stderr()
    run_cluster(data, plan, ready)


def _plan_to_start(data: DataDirectory, request: StartRequest) -> ClusterPlan:
    """Return the plan to start with: the stored plan, overridden by this command's options.

    Nothing is stored yet. Options that are not given keep the stored values. Errors: those of
    `settings_to_start`, `daemon.plan_for` and `check_port`.
    """
    # Fields that an option sets; all others come from the stored plan.
    given = set()
    plan = ClusterPlan(settings=settings_to_start(data, request))
    if request.insecure:
        plan = plan._replace(is_insecure=True)
        given.add("is_insecure")
    if request.brokers is not None:
        plan = plan._replace(broker_count=request.brokers)
        given.add("broker_count")
    if request.port is not None:
        plan = plan._replace(port=request.port)
        given.add("port")
    if request.zookeeper_port is not None:
        plan = plan._replace(zookeeper_port=request.zookeeper_port)
        given.add("zookeeper_port")
    if request.racks is not None:
        plan = plan._replace(racks=_parse_racks(request.racks))
        given.add("racks")
    if request.processes is not None:
        plan = plan._replace(is_in_processes=request.processes)
        given.add("is_in_processes")
    if request.log_dirs is not None:
        plan = plan._replace(log_dir_count=request.log_dirs)
        given.add("log_dir_count")
    plan = daemon.plan_for(data, plan, frozenset(given), request.unset)
    if request.port and "listeners" in plan.settings:
        from kctl.commands.cluster.advertising import check_port

        check_port(plan, request.port)
    return plan


def settings_to_start(data: DataDirectory, request: StartRequest) -> dict[str, str]:
    """Return the settings of this start: --set overrides --secure, which overrides --config.

    --advertise adds the listeners. With --secure, certificates are written if they are missing.
    Errors: SecureInForeground, those of files, settings and `advertised_settings`.
    """
    given = settings_of(request.settings)
    if request.secure:
        from kctl.commands.cluster.securing import SecureInForeground, prepare_secure_settings

        if request.foreground:
            raise SecureInForeground
        # Listeners have an IPv6 address in brackets, certificates without them.
        advertised = request.advertise and request.advertise.strip("[]")
        given = {**prepare_secure_settings(data, RealFiles(), advertised), **given}
    if request.config is not None:
        from engine.config.java_properties import parse_properties

        path = request.config
        given = {**parse_properties(RealFiles().read_bytes(path), path), **given}
    if request.advertise is not None:
        from kctl.commands.cluster.advertising import advertised_settings

        given |= advertised_settings(request.advertise, request.port, data.plan(), given)
    return given


def _warn_of_secrets(arguments: list[str]) -> None:
    """Print a warning for each secret given by `--set`: other processes can read arguments."""
    for name in filter(is_secret, settings_of(arguments)):
        notify(
            f"warning: {name} is a secret, and ps shows what is given by --set: use --config FILE"
        )


def _check_open_listeners(plan: ClusterPlan) -> None:
    """Raise UnauthenticatedListener if a listener without authentication is open to other machines.

    With --insecure a warning is printed instead.
    """
    found = unauthenticated_listeners(broker_settings(plan, ["/"], FIRST_BROKER_ID))
    if found and not plan.is_insecure:
        raise UnauthenticatedListener(found)
    for listener in found:
        notify(f"warning: {listener} takes everybody who reaches it, without authentication")


def _parse_racks(text: str) -> tuple[str, ...]:
    """Parse a list of racks separated by commas; "" gives none. Raises UnreadableArgument."""
    racks = tuple(rack.strip() for rack in text.split(",")) if text.strip() else ()
    if not all(racks):
        raise UnreadableArgument("a list of racks", text, "names with commas between")
    return racks


def _validate_plan(plan: ClusterPlan) -> None:
    """Check a plan's settings before a process is started; raises ConfigError for the first error.

    Unknown settings are warned of. Errors: UnauthenticatedListener without --insecure.
    """
    try:
        unknown = check_plan(plan)
    except ConfigError as error:
        error.hint = hint_on_settings({error.key: str(error.value)}, broker_keys())
        raise
    for name in unknown:
        suggestion = did_you_mean(name, broker_keys())
        line = f"warning: {name} is no setting of brokers and is passed over"
        notify(f"{line}; {suggestion}" if suggestion else line)
    _check_open_listeners(plan)


def stop_cluster(data: str | None, timeout_s: float) -> int:
    """Stop an embedded cluster if it runs; returns the exit code.

    Errors: NoClusterInDirectory if `data`, None for the default directory, has none.
    """
    directory = _directory(data)
    if directory.state() is ClusterState.ABSENT:
        raise NoClusterInDirectory(directory.path)
    if daemon.stop(directory, RealClock(), timeout_s, _pause):
        notify(f"the cluster in {directory.path} has stopped")
    else:
        notify(f"the cluster in {directory.path} was not running")
    return exits.OK


def _pause(duration_ms: int) -> None:
    """Sleep; `daemon` calls it while it waits for a lock or for the cluster."""
    time.sleep(duration_ms / 1000)


def list_clusters(output: str) -> int:
    """Print a row for each known data directory that contains a cluster; returns the exit code.

    A directory whose files cannot be parsed is shown as `damaged`, with its error.
    """
    check_format(output)
    rows = []
    for path in known_clusters(RealFiles(), os.environ):
        try:
            rows.append(status_row(daemon.status_of(DataDirectory(RealFiles(), path))))
        except StorageError as error:
            rows.append({"data": path, "state": "damaged"})
            report_error(error)
    rows = [row for row in rows if row["state"] != ClusterState.ABSENT.value]
    write_rows(LIST_COLUMNS, rows, output)
    return exits.OK


def status_row(status: ClusterStatus) -> OutputRow:
    """Return a cluster's status as an output row, without the controller."""
    brokers = [
        {
            **broker._asdict(),
            "state": broker.state.value,
            "is_controller": None,
            "log_end": list(broker.log_end),
            "halt": None if broker.halt is None else broker.halt._asdict(),
        }
        for broker in status.brokers
    ]
    return {**status._asdict(), "state": status.state.value, "brokers": brokers}


def _show_own(data: DataDirectory, output: str) -> None:
    """Print the status of the cluster that this process runs.

    The state is known: to test the directory's lock would release it, as it is this process's own.
    """
    _show(daemon.status_as(data, ClusterState.RUNNING), output)
    sys.stdout.flush()


def _show(status: ClusterStatus, output: str) -> int:
    """Print a cluster's status in an output format; returns exit code OK."""
    write_object(STATUS_COLUMNS, status_row(status), output)
    return exits.OK


def print_logs(
    data: str | None, line_count: int | None, *, follow: bool, broker_id: int | None = None
) -> int:
    """Print the log of the cluster's process, or of a broker's process; returns the exit code.

    `line_count` limits it to the last lines; None prints the complete log. With `follow`, appended
    lines are printed until an interrupt.
    """
    directory = _directory(data)
    path = directory.log_path if broker_id is None else directory.broker_log_path(broker_id)
    try:
        file = RealFiles().open(path)
    except FileMissing as error:
        if broker_id is not None and directory.plan() is not None:
            raise NoLogOfBroker(directory.path, broker_id) from error
        raise NoClusterInDirectory(directory.path) from error
    position = 0 if line_count is None else _start_of_last_lines(file, line_count)
    try:
        while True:
            chunk = file.read_at(position, COPY_CHUNK_BYTES)
            position += len(chunk)
            sys.stdout.buffer.write(chunk)
            sys.stdout.buffer.flush()
            if not chunk:
                if not follow:
                    return exits.OK
                time.sleep(_FOLLOW_PAUSE_S)
    finally:
        file.close()


def _start_of_last_lines(file: File, line_count: int) -> int:
    """Return the position in bytes at which the last `line_count` lines of a file start.

    The file is read backwards in chunks; the result is 0 if it has fewer lines.
    """
    end = file.size_bytes()
    tail = b""
    while end > 0 and tail.count(b"\n") <= line_count:
        begin = max(0, end - COPY_CHUNK_BYTES)
        tail = file.read_at(begin, end - begin) + tail
        end = begin
    lines = tail.splitlines(keepends=True)
    kept = lines[len(lines) - line_count :] if line_count < len(lines) else lines
    return int(file.size_bytes()) - sum(map(len, kept))


def destroy_cluster(data: str | None, timeout_s: float, *, yes: bool) -> int:
    """Stop a cluster and delete its data, after confirmation; returns the exit code.

    Log directories outside its data directory and files that are not the cluster's are kept, and
    named. Errors: NoClusterInDirectory.
    """
    directory, files = _directory(data), RealFiles()
    state = directory.state()
    if state is ClusterState.ABSENT:
        raise NoClusterInDirectory(directory.path)
    stays = daemon.directories_that_stay(directory)
    what = f"remove the cluster in {directory.path} ({_cluster_text(directory)}) with all its data"
    if stays:
        what = f"{what} but that in {', '.join(stays)}"
    confirm(what, yes=yes, can_be_tried=False)
    daemon.stop(directory, RealClock(), timeout_s, _pause)
    with daemon.hold_start_lock(directory, files, RealClock(), timeout_s, _pause):
        _delete_secured_files(directory)
        left = daemon.destroy(directory, files)
    forget_cluster(files, os.environ, directory.path)
    notify(f"the cluster in {directory.path} is gone")
    for path in stays:
        notify(f"note: its log directory {path} stays")
    for path in left:
        notify(f"note: {path} is not the cluster's and stays")
    return exits.OK


def _delete_secured_files(directory: DataDirectory) -> None:
    """Delete the keys, passwords and context of a cluster started with --secure, if it was."""
    if os.path.exists(directory.security_path):
        from kctl.commands.cluster.securing import delete_secured_files

        delete_secured_files(directory)


def _cluster_text(directory: DataDirectory) -> str:
    """Return the cluster id and addresses for a prompt; the state if it has no addresses."""
    status = daemon.status_of(directory)
    cluster_id = daemon.cluster_id_of(directory, RealFiles())
    where = f"at {status.bootstrap_servers}" if status.bootstrap_servers else status.state.value
    return f"{cluster_id} {where}" if cluster_id else where
