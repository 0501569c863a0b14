"""The commands of a ZooKeeper shell that act on nodes.

Source: org.apache.zookeeper.cli of ZooKeeper 3.8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, TextIO

from engine.errors import EngineError
from engine.java_text import decode_java_utf8
from engine.znode.errors import NoNode
from engine.znode.model import ANY_VERSION, NodeAclEntry
from engine.znode.names import ROOT
from engine.znode.zookeeper_wire import RequestRefused
from kctl.compat.java_numbers import LONG_BITS, is_java_number
from kctl.compat.zookeeper_arguments import (
    CommandSyntax,
    ShellArguments,
    ShellRefusal,
    check_shell_path,
    java_int,
    parse_acl,
    parse_arguments,
    permissions_text,
)
from kctl.compat.zookeeper_failures import INVALID_ACL, key_error_text
from kctl.compat.zookeeper_quotas import QuotaCommands
from kctl.compat.zookeeper_session import ADD_WATCH_USAGE, RECONFIG_USAGE, SessionCommands
from kctl.compat.zookeeper_stats import stat_text

if TYPE_CHECKING:
    from engine.znode.kazoo_shell import ZnodeShellSession

_LIMIT_FLAGS: Final = "nbNB"
SYNTAXES: Final = {
    "addWatch": CommandSyntax(ADD_WATCH_USAGE, valued="m"),
    "addauth": CommandSyntax("scheme auth"),
    "config": CommandSyntax("[-c] [-w] [-s]", "cws", least=0),
    "create": CommandSyntax("[-s] [-e] [-c] [-t ttl] path [data] [acl]", "sec", "t"),
    "delete": CommandSyntax("[-v version] path", valued="v"),
    "deleteall": CommandSyntax("path [-b batch size]", valued="b"),
    "delquota": CommandSyntax("[-n|-b|-N|-B] path", _LIMIT_FLAGS, exclusive=_LIMIT_FLAGS),
    "get": CommandSyntax("[-s] [-w] path", "sw"),
    "getAcl": CommandSyntax("[-s] path", "s"),
    "getAllChildrenNumber": CommandSyntax("path"),
    "getEphemerals": CommandSyntax("path", least=0),
    "listquota": CommandSyntax("path"),
    "ls": CommandSyntax("[-s] [-w] [-R] path", "swR?"),
    "reconfig": CommandSyntax(
        RECONFIG_USAGE,
        "s",
        "v",
        least=0,
        names=("file", "members", "add", "remove"),
    ),
    "removewatches": CommandSyntax("path [-c|-d|-a] [-l]", "cdal"),
    "set": CommandSyntax("[-s] [-v version] path data", "s", "v", least=2),
    "setAcl": CommandSyntax("[-s] [-v version] [-R] path acl", "sR", "v", least=2),
    "setquota": CommandSyntax(
        "-n|-b|-N|-B val path",
        valued=_LIMIT_FLAGS,
        exclusive=_LIMIT_FLAGS,
        required="[-n num soft quota, -b bytes soft quota, -N num hard quota, -B bytes hard quota]",
    ),
    "stat": CommandSyntax("[-w] path", "w"),
    "sync": CommandSyntax("path"),
    "version": CommandSyntax("", least=0),
    "whoami": CommandSyntax("", least=0),
}
_VERSION: Final = (
    "ZooKeeper CLI version: 3.8.4-9316c2a7a97e1666d8f4593f34dd6fc36ecc436c, "
    "built on 2024-02-12 22:16 UTC"
)
_LS_HELP: Final = """\
usage: ls [options] path
 -?   help
 -R   recurse
 -s   stat
 -w   watch"""
_TTL_MS_MAX: Final = (1 << 40) - 1
#: Commands with an old form (`ls path watch`), and the usage that the warning names.
_WITH_WATCH: Final = {"ls": "ls [-w] path", "get": "get [-s] [-w] path", "stat": "stat [-w] path"}


class EmptyAcl(ShellRefusal):
    """No entry of the ACL is valid."""

    def __init__(self) -> None:
        super().__init__("Acl is not valid : null")


class NodeCommands:
    """Runs the shell's commands on nodes, opening the session when a command needs it."""

    def __init__(self, session: Callable[[], ZnodeShellSession], out: TextIO, err: TextIO) -> None:
        """Create the commands of zookeeper-shell; `session` returns the session, or opens it."""
        self._session = session
        self._out = out
        self._err = err
        #: Paths of ephemeral nodes created by this session, for getEphemerals.
        self.ephemerals: set[str] = set()
        quotas = QuotaCommands(session, out, err)
        of_session = SessionCommands(session, out, err)
        self._runs: dict[str, Callable[[ShellArguments], None]] = {
            "addWatch": of_session.add_watch,
            "addauth": self._add_auth,
            "config": of_session.print_configuration,
            "create": self._create,
            "delete": self._delete,
            "deleteall": self._delete_all,
            "delquota": quotas.delete_limit,
            "get": self._get,
            "getAcl": self._get_acl,
            "getAllChildrenNumber": self._count_below,
            "getEphemerals": self._get_ephemerals,
            "listquota": quotas.print_quota,
            "ls": self._ls,
            "reconfig": of_session.reconfigure,
            "removewatches": of_session.remove_watches,
            "set": self._set,
            "setAcl": self._set_acl,
            "setquota": quotas.set_limit,
            "stat": self._stat,
            "sync": self._sync,
            "version": lambda _: self._print(_VERSION),
            "whoami": of_session.print_identities,
        }

    def run(self, tokens: list[str]) -> None:
        """Run a command of zookeeper-shell, given as words.

        Errors: ShellRefusal, ShellAbort, those of the store.
        """
        syntax = SYNTAXES[tokens[0]]
        # Java's shell parses no arguments after `whoami`.
        read = parse_arguments(syntax, tokens[1:] if tokens[0] != "whoami" else [])
        if read.has("?"):
            self._print(_LS_HELP)
        if tokens[0] in _WITH_WATCH and len(read.operands) > 1:
            self._err.write(
                f"'{tokens[0]} path [watch]' has been deprecated. "
                f"Please use '{_WITH_WATCH[tokens[0]]}' instead.\n"
            )
            read = parse_arguments(syntax, [tokens[1], "-w", *tokens[3:]])
        if len(read.operands) < syntax.least:
            raise ShellRefusal(f"{tokens[0]} {syntax.usage}")
        self._runs[tokens[0]](read)

    def _print(self, text: str) -> None:
        """Print a line on standard output."""
        self._out.write(f"{text}\n")

    # -- read

    def _ls(self, arguments: ShellArguments) -> None:
        """Run `ls`: print the children of a node; -R prints all descendants, -s also the stat."""
        path = arguments.operands[0]
        check_shell_path(path)
        if arguments.has("R"):
            for found in self._below(path, watches=arguments.has("w")):
                self._print(found)
            return
        names, stat = self._session().child_names(path, watches=arguments.has("w"))
        self._print(f"[{', '.join(names)}]")
        if arguments.has("s"):
            self._print(stat_text(stat))

    def _below(self, path: str, *, watches: bool = False) -> Iterator[str]:
        """Yield a node and all below it; the children of a node precede its grandchildren.

        Errors: NoNode if the node does not exist. `watches` sets a watch on each.
        """
        self._session().node_data(path, watches=watches)
        yield path
        yield from self._children_below(path, watches)

    def _children_below(self, path: str, watches: bool) -> Iterator[str]:
        """Yield all descendants of a node; deleted nodes are skipped."""
        try:
            names, _ = self._session().child_names(path, watches=watches)
        except NoNode:
            # The node was deleted after its parent was read.
            return
        paths = [f"{path.rstrip('/')}/{name}" for name in names]
        yield from paths
        for child in paths:
            yield from self._children_below(child, watches)

    def _get(self, arguments: ShellArguments) -> None:
        """Run `get`: print the data of a node, "null" if it has none; with -s also its stat."""
        path = arguments.operands[0]
        check_shell_path(path)
        data, stat = self._session().node_data(path, watches=arguments.has("w"))
        self._print("null" if data is None else decode_java_utf8(data))
        if arguments.has("s"):
            self._print(stat_text(stat))

    def _stat(self, arguments: ShellArguments) -> None:
        """Run `stat`: print the stat of a node."""
        path = arguments.operands[0]
        check_shell_path(path)
        self._print(stat_text(self._session().node_stat(path, watches=arguments.has("w"))))

    def _get_acl(self, arguments: ShellArguments) -> None:
        """Run `getAcl`: print the ACL of a node, with -s also its stat."""
        path = arguments.operands[0]
        check_shell_path(path)
        acl, stat = self._session().acl(path)
        for entry in acl:
            self._print(f"'{entry.scheme},'{entry.id}\n: {permissions_text(entry.permissions)}")
        if arguments.has("s"):
            self._print(stat_text(stat))

    def _count_below(self, arguments: ShellArguments) -> None:
        """Run `getAllChildrenNumber`: print the number of nodes below a node."""
        check_shell_path(arguments.operands[0])
        self._print(str(self._session().count_below(arguments.operands[0])))

    def _get_ephemerals(self, arguments: ShellArguments) -> None:
        """Run `getEphemerals`: print this session's ephemeral nodes below a prefix."""
        prefix = arguments.operands[0] if arguments.operands else ROOT
        check_shell_path(prefix)
        # The server's paths start with the chroot of the address, but the prefix does not.
        chroot = self._session().chroot
        paths = sorted(f"{chroot}{path}" for path in self.ephemerals)
        found = [path for path in paths if path.startswith(prefix)]
        self._print(f"[{', '.join(found)}]")

    def _sync(self, arguments: ShellArguments) -> None:
        """Run `sync`: have the server catch up with the leader."""
        check_shell_path(arguments.operands[0])
        self._session().sync(arguments.operands[0])
        self._print("Sync is OK")

    # -- change

    def _create(self, arguments: ShellArguments) -> None:
        """Run `create`: create a node; flags make it ephemeral, sequential, or a container."""
        _check_modes(arguments)
        path, *rest = arguments.operands
        acl = parse_acl(rest[1], self._err) if len(rest) > 1 else None
        check_shell_path(path, is_sequential=arguments.has("s"))
        _check_time_to_live(arguments)
        created = self._create_node(path, rest[0].encode() if rest else None, acl, arguments)
        if arguments.has("e"):
            self.ephemerals.add(created)
        self._err.write(f"Created {created}\n")

    def _create_node(
        self,
        path: str,
        data: bytes | None,
        acl: list[NodeAclEntry] | None,
        arguments: ShellArguments,
    ) -> str:
        """Create a node and return its path; a refused ACL is printed twice, as in Java's shell."""
        try:
            if acl == []:
                raise EmptyAcl
            return self._session().create_node(
                path,
                data,
                acl,
                ephemeral=arguments.has("e"),
                sequential=arguments.has("s"),
                container=arguments.has("c"),
                ttl_ms=int(arguments.flags["t"]) if arguments.has("t") else None,
            )
        except EmptyAcl:
            self._err.write("KeeperErrorCode = InvalidACL\n")
            raise
        except RequestRefused as error:
            if error.code == INVALID_ACL:
                self._err.write(f"KeeperErrorCode = InvalidACL for {path}\n")
            raise

    def _set(self, arguments: ShellArguments) -> None:
        """Run `set`: replace the data of a node; with -v only at this version."""
        path, text = arguments.operands[:2]
        version = _version(arguments)
        check_shell_path(path)
        stat = self._session().set_data(path, text.encode(), version)
        if arguments.has("s"):
            self._print(stat_text(stat))

    def _delete(self, arguments: ShellArguments) -> None:
        """Run `delete`: delete a node without children; with -v only at this version."""
        if len(arguments.operands) > 1:
            self._err.write(
                "'delete path [version]' has been deprecated. "
                "Please use 'delete [-v version] path' instead.\n"
            )
        version = _version(arguments)
        check_shell_path(arguments.operands[0])
        self._session().delete(arguments.operands[0], version)
        self.ephemerals.discard(arguments.operands[0])

    def _delete_all(self, arguments: ShellArguments) -> None:
        """Run `deleteall`: delete a node and all below it.

        Prints an error if some could not be deleted.
        """
        if not is_java_number(arguments.flags.get("b", "1")):
            raise ShellRefusal("-b argument must be an int value")
        check_shell_path(arguments.operands[0])
        path = arguments.operands[0]
        if not self._session().delete_all(path):
            self._err.write("Failed to delete some node(s) in the subtree!\n")
        below = f"{path.rstrip('/')}/"
        self.ephemerals -= {
            each for each in self.ephemerals if each == path or each.startswith(below)
        }

    def _set_acl(self, arguments: ShellArguments) -> None:
        """Run `setAcl`: set the ACL of a node, with -R of all below it, continuing after errors."""
        path, text = arguments.operands[:2]
        acl = parse_acl(text, self._err)
        version = _version(arguments)
        check_shell_path(path)
        if not acl:
            raise EmptyAcl
        if not arguments.has("R"):
            stat = self._session().set_acl(path, acl, version)
            if arguments.has("s"):
                self._print(stat_text(stat))
            return
        for found in self._below(path):
            try:
                self._session().set_acl(found, acl, version)
            except EngineError as error:
                # Java's shell continues, and prints no line end.
                self._out.write(key_error_text(error, found))

    def _add_auth(self, arguments: ShellArguments) -> None:
        """Run `addauth`: add credentials to the session, a scheme, and its data if given."""
        scheme, *rest = arguments.operands
        self._session().add_auth(scheme, rest[0] if rest else "")


def _check_modes(arguments: ShellArguments) -> None:
    """Raise ShellRefusal for node types that exclude each other, and for an invalid TTL."""
    if arguments.has("c") and (arguments.has("e") or arguments.has("s")):
        raise ShellRefusal(
            "-c cannot be combined with -s or -e. Containers cannot be ephemeral or sequential."
        )
    if arguments.has("t"):
        if not is_java_number(arguments.flags["t"], LONG_BITS):
            raise ShellRefusal("-t argument must be a long value")
        if arguments.has("e"):
            raise ShellRefusal("TTLs cannot be used with Ephemeral znodes")
        if arguments.has("c"):
            raise ShellRefusal("TTLs cannot be used with Container znodes")


def _check_time_to_live(arguments: ShellArguments) -> None:
    """Raise ShellRefusal for a TTL (-t, in ms) out of ZooKeeper's range."""
    if arguments.has("t") and not 0 < int(arguments.flags["t"]) <= _TTL_MS_MAX:
        raise ShellRefusal(f"ttl must be positive and cannot be larger than: {_TTL_MS_MAX}")


def _version(arguments: ShellArguments) -> int:
    """Return the node version that -v requires, ANY_VERSION without the flag."""
    return java_int(arguments.flags["v"]) if arguments.has("v") else ANY_VERSION
