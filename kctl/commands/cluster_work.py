"""What `kctl cluster` does."""

from __future__ import annotations

import os
import sys
import time
from typing import Any, NamedTuple

from engine.cluster import daemon
from engine.cluster.daemon import ClusterStatus, NoClusterThere
from engine.cluster.data_directory import ClusterState, DataDirectory
from engine.cluster.plan import ClusterPlan, check_plan
from engine.config.key import broker_keys
from engine.errors import ConfigError
from engine.host.ports import FileMissing
from engine.host.real import RealClock, RealFiles
from engine.limits import COPY_CHUNK_BYTES
from kctl import exits
from kctl.asking import confirm, say
from kctl.commands.setting_words import hint_on_settings, settings_of
from kctl.embedded import cluster_path
from kctl.hints import did_you_mean
from kctl.render import Column, check_format, write_object

STATUS_COLUMNS = (
    Column("state", "STATE"),
    Column("bootstrap_servers", "SERVERS", is_name=True),
    Column("pids", "PIDS"),
    Column("data", "DATA"),
    Column("brokers", "BROKERS", wide=True),
    Column("zookeeper", "ZOOKEEPER", wide=True),
    Column("settings", "SETTINGS", wide=True),
)
_FOLLOW_PAUSE_S = 0.2


class StartRequest(NamedTuple):
    """The options of `start`; None where the kept plan, or the default, counts."""

    data: str | None
    brokers: int | None
    port: int | None
    settings: list[str]
    unset: list[str]
    foreground: bool
    timeout_s: float
    output: str


def _directory(data: str | None) -> DataDirectory:
    return DataDirectory(RealFiles(), cluster_path(os.environ, data))


def start_cluster(request: StartRequest) -> int:
    """Start a cluster here or as a process of its own."""
    check_format(request.output)
    data = _directory(request.data)
    plan = _plan(data, request)
    if request.foreground:
        from engine.cluster.run import log_to_stderr, run_cluster

        log_to_stderr()
        run_cluster(data, plan, lambda: _show_own(data, request.output))
        return exits.OK
    _check(plan)
    if data.state() is ClusterState.RUNNING:
        say(f"the cluster in {data.path} is running already")
        if plan != data.plan():
            stop = f"`kctl cluster stop --data {data.path}`"
            say(f"hint: other settings count from a start on: stop it first, {stop}")
    else:
        daemon.start(data, RealFiles(), plan, request.timeout_s)
    return _show(daemon.status_of(data), request.output)


def _plan(data: DataDirectory, request: StartRequest) -> ClusterPlan:
    given = set()
    plan = ClusterPlan(settings=settings_of(request.settings))
    if request.brokers is not None:
        plan = plan._replace(broker_count=request.brokers)
        given.add("broker_count")
    if request.port is not None:
        plan = plan._replace(port=request.port)
        given.add("port")
    return daemon.plan_for(data, plan, frozenset(given), request.unset)


def _check(plan: ClusterPlan) -> None:
    """Find out what is wrong with a plan before a process is started for it."""
    try:
        unknown = check_plan(plan)
    except ConfigError as error:
        error.hint = hint_on_settings({error.key: str(error.value)}, broker_keys())
        raise
    for name in unknown:
        question = did_you_mean(name, broker_keys())
        line = f"warning: {name} is no setting of brokers and is passed over"
        say(f"{line}; {question}" if question else line)


def stop_cluster(data: str | None, timeout_s: float) -> int:
    """Stop a cluster; one that does not run is fine."""
    directory = _directory(data)
    if directory.state() is ClusterState.ABSENT:
        raise NoClusterThere(directory.path)
    if daemon.stop(directory, RealClock(), timeout_s, _pause):
        say(f"the cluster in {directory.path} has stopped")
    else:
        say(f"the cluster in {directory.path} was not running")
    return exits.OK


def _pause(duration_ms: int) -> None:
    time.sleep(duration_ms / 1000)


def show_status(data: str | None, output: str) -> int:
    """Print what is known of a cluster; it is an answer too that it does not run."""
    return _show(daemon.status_of(_directory(data)), output)


def _show_own(data: DataDirectory, output: str) -> None:
    """Print what this process runs; asking for its lock would lose it."""
    _show(daemon.status_as(data, ClusterState.RUNNING), output)
    sys.stdout.flush()


def _show(status: ClusterStatus, output: str) -> int:
    row: dict[str, Any] = {**status._asdict(), "state": status.state.value}
    write_object(STATUS_COLUMNS, row, output)
    return exits.OK


def print_logs(data: str | None, line_count: int | None, *, follow: bool) -> int:
    """Print the log of a cluster's process, or its last lines."""
    directory = _directory(data)
    try:
        file = RealFiles().open(directory.log_path)
    except FileMissing as error:
        raise NoClusterThere(directory.path) from error
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


def _start_of_last_lines(file: Any, line_count: int) -> int:
    """Return the position at which the last lines of a file start."""
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
    """Stop a cluster and remove all of it."""
    directory = _directory(data)
    if directory.state() is ClusterState.ABSENT:
        raise NoClusterThere(directory.path)
    stays = daemon.directories_that_stay(directory)
    what = f"remove the cluster in {directory.path} with all its data"
    if stays:
        what = f"{what} but that in {', '.join(stays)}"
    confirm(what, yes=yes, can_be_tried=False)
    daemon.stop(directory, RealClock(), timeout_s, _pause)
    daemon.destroy(directory, RealFiles())
    say(f"the cluster in {directory.path} is gone")
    for path in stays:
        say(f"note: its log directory {path} stays")
    return exits.OK
