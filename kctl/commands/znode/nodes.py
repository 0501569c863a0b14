"""Implementation of `kctl znode`: read nodes, print rows."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from engine.cluster.data_directory import ClusterState, DataDirectory
from engine.errors import EngineError
from engine.host.real import RealClock, RealFiles
from engine.znode.kazoo_reader import NodeChange, TreeNode, ZnodeReader
from engine.znode.model import Stat
from kctl import exits
from kctl.commands.znode.tree import write_tree
from kctl.console import notify
from kctl.embedded import cluster_path
from kctl.iso_times import iso_time
from kctl.render import TABLES, Column, RowWriter, check_format, write_object, write_rows
from kctl.verbosity import print_choice
from kctl.zookeeper_login import set_login

_RAW = "raw"
_FLUSHED = (*TABLES, "ndjson", "csv", "name")
STAT_COLUMNS = (
    Column("path", "PATH"),
    Column("child_count", "CHILDREN", right=True),
    Column("data_length_bytes", "BYTES", right=True),
    Column("version", "VERSION", right=True),
    Column("ephemeral_owner", "OWNER", kind="string?"),
    Column("mtime", "MODIFIED"),
    Column("cversion", "CVERSION", right=True, wide=True),
    Column("czxid", "CZXID", right=True, wide=True),
    Column("mzxid", "MZXID", right=True, wide=True),
    Column("pzxid", "PZXID", right=True, wide=True),
    Column("ctime", "CREATED", wide=True),
)
_MILLISECONDS = (
    Column("ctime_ms", "CREATED", kind="integer"),
    Column("mtime_ms", "MODIFIED", kind="integer"),
)
PLAIN_STAT_COLUMNS = (
    *(column for column in STAT_COLUMNS if column.key not in ("ctime", "mtime")),
    *_MILLISECONDS,
)
DATA_COLUMNS = (
    Column("data", "DATA", kind="string?"),
    Column("data_base64", "BASE64", kind="string?"),
)
DEPTH_COLUMN = Column("depth", "DEPTH", kind="integer")
CHANGE_COLUMNS = (
    Column("event", "EVENT"),
    Column("path", "PATH", is_name=True),
    Column("version", "VERSION", right=True, kind="integer?"),
    Column("mtime_ms", "MODIFIED", kind="integer?"),
    Column("mzxid", "MZXID", right=True, kind="integer?"),
)


class Store(NamedTuple):
    """A metadata store: a ZooKeeper, or an embedded cluster's by its directory."""

    zookeeper: str | None
    data: str | None
    timeout_s: float


class AmbiguousStore(EngineError):
    """Options name both a ZooKeeper and an embedded cluster."""

    exit_code = exits.USAGE
    hint = "give one of --zookeeper and --data"

    def __init__(self) -> None:
        super().__init__("--zookeeper and --data name two different stores")


class NoStore(EngineError):
    """No store is named, and no embedded cluster runs."""

    exit_code = exits.USAGE
    hint = "`kctl cluster start` starts it; -z HOST:PORT names a ZooKeeper"

    def __init__(self, path: str) -> None:
        super().__init__(f"no embedded cluster runs in {path}")
        self.path = path


def choose_store_address(store: Store) -> str:
    """Return the address of the ZooKeeper store to use: of -z, or of an embedded cluster.

    The choice is printed if --verbose asks for it. Errors: AmbiguousStore for both -z and --data,
    NoStore if the embedded cluster does not run.
    """
    if store.zookeeper is not None:
        if store.data is not None:
            raise AmbiguousStore
        print_choice("metadata store", store.zookeeper, "-z")
        return store.zookeeper
    directory = DataDirectory(RealFiles(), cluster_path(os.environ, store.data))
    is_running = directory.state() is ClusterState.RUNNING
    running = directory.running() if is_running else None
    if running is None or running.znode_address is None:
        raise NoStore(directory.path)
    source = f"the embedded cluster in {directory.path}"
    print_choice("metadata store", running.znode_address, source)
    return running.znode_address


def _reader(store: Store) -> ZnodeReader:
    """Return a client of the selected ZooKeeper store that only reads."""
    return set_login(ZnodeReader(choose_store_address(store), store.timeout_s, RealClock()))


def list_children(store: Store, path: str, output: str) -> int:
    """Print a row for each child of a ZooKeeper node; returns the exit code."""
    check_format(output)
    with _reader(store) as reader:
        children = reader.children(path)
    rows = [stat_row(child.path, child.stat) for child in children]
    write_rows(stat_columns(output), rows, output)
    return exits.OK


def print_data(store: Store, path: str, output: str) -> int:
    """Print the data of a ZooKeeper node, raw or with its stat; returns the exit code."""
    if output != _RAW:
        check_format(output)
    with _reader(store) as reader:
        data, stat = reader.get(path)
    if output == _RAW:
        _write_raw(data)
        return exits.OK
    row = stat_row(path, stat) | _data_cells(data)
    write_object((*stat_columns(output), *DATA_COLUMNS), row, output)
    return exits.OK


def _write_raw(data: bytes | None) -> None:
    """Write a node's bytes to stdout, with a line end on a terminal; print a note for null."""
    if data is None:
        notify("the node has no data (null)")
        return
    sys.stdout.buffer.write(data)
    if sys.stdout.isatty() and not data.endswith(b"\n"):
        sys.stdout.buffer.write(b"\n")
    sys.stdout.buffer.flush()


def _data_cells(data: bytes | None) -> dict[str, str | None]:
    """Return the data as text, or as base64 if it is not UTF-8."""
    if data is None:
        return {"data": None, "data_base64": None}
    try:
        return {"data": data.decode(), "data_base64": None}
    except UnicodeDecodeError:
        from base64 import b64encode

        return {"data": None, "data_base64": b64encode(data).decode()}


def show_stat(store: Store, path: str, output: str) -> int:
    """Print the stat of a ZooKeeper node; returns the exit code."""
    check_format(output)
    with _reader(store) as reader:
        stat = reader.stat(path)
    write_object(stat_columns(output), stat_row(path, stat), output)
    return exits.OK


def show_tree(store: Store, path: str, depth: int | None, output: str) -> int:
    """Print a ZooKeeper node and all below it, down to `depth`; returns the exit code.

    `depth` 0 is the node alone; None means no limit.
    """
    check_format(output)
    with _reader(store) as reader:
        nodes = reader.tree(path, depth)
        if output == "table":
            write_tree(nodes, sys.stdout)
        else:
            write_rows((*stat_columns(output), DEPTH_COLUMN), _tree_rows(nodes), output)
    return exits.OK


def _tree_rows(nodes: Iterable[TreeNode]) -> Iterable[dict[str, object]]:
    """Yield a row for each node, with its depth below the requested node."""
    return (stat_row(node.path, node.stat) | {"depth": node.depth} for node in nodes)


def watch_changes(store: Store, path: str, count: int | None, output: str) -> int:
    """Print changes of a ZooKeeper node and those below it as they occur; returns the exit code.

    Ends with Ctrl-C, or after `count` changes; None means no limit.
    """
    check_format(output)
    # A table needs all rows for its widths; here each row is printed at once.
    writer = None if output in TABLES else RowWriter(CHANGE_COLUMNS, output)
    with _reader(store) as reader:
        gap = _Gap()
        changes = reader.changes(path, gap.on_connection_lost, gap.on_new_session)
        try:
            for change in islice(changes, count):
                if writer is None:
                    sys.stdout.write(_change_line(change))
                else:
                    writer.write(_change_row(change))
                if output in _FLUSHED:
                    sys.stdout.flush()
        finally:
            if writer is not None:
                writer.close()
    return exits.OK


class _Gap:
    """Prints that a watch may have missed changes."""

    def __init__(self) -> None:
        self._lost_ms: int | None = None

    def on_connection_lost(self) -> None:
        """Note the time, and print that the connection to the store is lost."""
        self._lost_ms = RealClock().wall_ms()
        notify("the connection is lost; waiting for it")

    def on_new_session(self) -> None:
        """Print that the session expired: changes since the connection was lost may be missing."""
        since = "" if self._lost_ms is None else f" since {iso_time(self._lost_ms)}"
        notify(f"its session expired, a new one was taken: what came and went{since} is missed")


def _change_row(change: NodeChange) -> dict[str, object]:
    """Return the row of a change; a deleted node has no version and time."""
    row: dict[str, object] = {"event": change.event, "path": change.path}
    if change.stat is not None:
        stat = change.stat
        row |= {"version": stat.version, "mtime_ms": stat.mtime_ms, "mzxid": stat.mzxid}
    return row


def _change_line(change: NodeChange) -> str:
    """Return a change as a line of text; a deleted node has no version and time."""
    if change.stat is None:
        return f"{change.event:<7}  {change.path}\n"
    stat = change.stat
    return f"{change.event:<7}  {change.path}  version {stat.version}  {iso_time(stat.mtime_ms)}\n"


def stat_columns(output: str) -> tuple[Column, ...]:
    """Return the columns of nodes: formatted times in tables, ms since 1970 elsewhere."""
    if output in TABLES:
        return STAT_COLUMNS
    return PLAIN_STAT_COLUMNS


def stat_row(path: str, stat: Stat) -> dict[str, object]:
    """Return the row of a node's stat."""
    owner = f"0x{stat.ephemeral_owner:x}" if stat.ephemeral_owner else None
    times = {"ctime": iso_time(stat.ctime_ms), "mtime": iso_time(stat.mtime_ms)}
    return {"path": path, **stat._asdict(), "ephemeral_owner": owner, **times}
