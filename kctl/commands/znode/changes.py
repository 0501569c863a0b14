"""Implementation of `kctl znode create`, `set` and `delete`."""

from __future__ import annotations

import sys
from typing import NamedTuple

from engine.errors import EngineError, ZnodeError
from engine.host.real import RealClock, RealFiles
from engine.znode.errors import InvalidZnodePath
from engine.znode.kazoo_editor import ZnodeEditor
from engine.znode.model import ANY_VERSION, Stat
from engine.znode.names import ROOT
from engine.znode.paths import CLUSTER_ID
from engine.znode.values import decode_cluster_id
from kctl import exits
from kctl.arguments import UnreadableArgument, counted
from kctl.commands.znode.nodes import Store, choose_store_address, stat_columns, stat_row
from kctl.console import confirm
from kctl.render import Column, check_format, write_object
from kctl.zookeeper_login import set_login

_STDIN = "-"
DELETE_COLUMNS = (
    Column("path", "PATH", is_name=True),
    Column("removed_count", "NODES", right=True),
    Column("result", "RESULT"),
)


class EphemeralRefused(EngineError):
    """--ephemeral is given, but the node would be deleted with this command's session."""

    exit_code = exits.USAGE
    hint = "leave --ephemeral out: the node then stays until `kctl znode delete`"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: an ephemeral node would go with the session of this command")
        self.path = path


class ChangeRequest(NamedTuple):
    """A node, its new data and its required version; `delete` has no data."""

    path: str
    text: str | None
    file: str | None
    version: int | None
    output: str

    @property
    def required_version(self) -> int:
        """Return the version that the node must have, ANY_VERSION without --version."""
        return ANY_VERSION if self.version is None else self.version

    def read_data(self) -> bytes:
        """Return the data for the node: of a text, stdin (`-`) or a file; empty if none is given.

        Errors: UnreadableArgument for both a text and a file.
        """
        if self.file is not None:
            if self.text is not None:
                raise UnreadableArgument("data", self.text, "either a text or --file")
            return RealFiles().read_bytes(self.file)
        if self.text == _STDIN:
            return sys.stdin.buffer.read()
        return (self.text or "").encode(errors="surrogateescape")


def _editor(store: Store) -> ZnodeEditor:
    """Return a client of the selected ZooKeeper store that can change nodes."""
    return set_login(ZnodeEditor(choose_store_address(store), store.timeout_s, RealClock()))


def create_node(
    store: Store, request: ChangeRequest, *, parents: bool, sequential: bool, ephemeral: bool
) -> int:
    """Create a ZooKeeper node and print its stat; returns the exit code.

    Errors: EphemeralRefused, as an ephemeral node would end with this command's session.
    """
    check_format(request.output)
    if ephemeral:
        raise EphemeralRefused(request.path)
    data = request.read_data()
    with _editor(store) as editor:
        path = editor.create(request.path, data, sequential=sequential, parents=parents)
        stat = editor.stat(path)
    return _show(path, stat, request.output)


def set_node(store: Store, request: ChangeRequest) -> int:
    """Replace the data of a ZooKeeper node and print its new stat; returns the exit code."""
    check_format(request.output)
    if request.text is None and request.file is None:
        raise UnreadableArgument("a change", "no data", "DATA, - for stdin, or --file FILE")
    data = request.read_data()
    with _editor(store) as editor:
        stat = editor.set(request.path, data, request.required_version)
    return _show(request.path, stat, request.output)


def _show(path: str, stat: Stat, output: str) -> int:
    """Print a node's stat; returns exit code OK."""
    write_object(stat_columns(output), stat_row(path, stat), output)
    return exits.OK


def delete_node(store: Store, request: ChangeRequest, *, recursive: bool, yes: bool) -> int:
    """Delete a ZooKeeper node, with `recursive` also all below it, after confirmation.

    The question names the number of nodes. Returns the exit code.
    """
    check_format(request.output)
    if request.path == ROOT:
        raise InvalidZnodePath(ROOT, "the root cannot be deleted")
    if recursive and request.version is not None:
        raise UnreadableArgument(
            "one change", "--recursive", "it without --version, which is of one node"
        )
    with _editor(store) as editor:
        count = sum(1 for _ in editor.tree(request.path, None if recursive else 0))
        what = f"Delete {request.path}"
        if count > 1:
            what = f"{what} and {counted(count - 1, 'node')} below it"
        confirm(f"{what} of {_cluster_of(editor)}", yes=yes, can_be_tried=False)
        # The confirmation may have taken long enough for changes.
        editor.begin()
        if recursive:
            count = editor.delete_tree(request.path)
        else:
            editor.delete(request.path, request.required_version)
    row = {"path": request.path, "removed_count": count, "result": "deleted"}
    write_object(DELETE_COLUMNS, row, request.output)
    return exits.OK


def _cluster_of(editor: ZnodeEditor) -> str:
    """Return the store's address for a prompt, with the cluster id if the store has one."""
    try:
        data, _ = editor.get(CLUSTER_ID)
        return f"cluster {decode_cluster_id(data, CLUSTER_ID)} at {editor.address}"
    except ZnodeError:
        return editor.address
