"""Commands of ZooKeeper's shell on its session, its watches, and the ensemble's servers.

Source: WhoAmICommand, AddWatchCommand, RemoveWatchesCommand, GetConfigCommand, ReconfigCommand and
ConfigUtils of ZooKeeper 3.8.

Differs: `reconfig -file` is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TextIO

from kctl.compat.java_numbers import LONG_BITS, is_java_number
from kctl.compat.java_order import names_in_java_order
from kctl.compat.zookeeper_arguments import (
    ShellAbort,
    ShellArguments,
    ShellRefusal,
    check_shell_path,
)
from kctl.compat.zookeeper_stats import stat_text

if TYPE_CHECKING:
    from engine.znode.kazoo_shell import ZnodeShellSession

_RECURSIVE: Final = "PERSISTENT_RECURSIVE"
_MODES: Final = ("PERSISTENT", _RECURSIVE)
ADD_WATCH_USAGE: Final = (
    f"[-m mode] path # optional mode is one of [{', '.join(_MODES)}] - default is {_RECURSIVE}"
)
RECONFIG_USAGE: Final = (
    "[-s] [-v version] [[-file path] | [-members serverID=host:port1:port2;port3[,...]*]] | "
    "[-add serverId=host:port1:port2;port3[,...]]* [-remove serverId[,...]*]"
)
_ANY_HOST: Final = "0.0.0.0"
_INCREMENTAL: Final = ("add", "remove")
_WHOLE: Final = ("file", "members")


class SessionCommands:
    """Runs commands on the session, opening it when a command needs it."""

    def __init__(self, session: Callable[[], ZnodeShellSession], out: TextIO, err: TextIO) -> None:
        """Create the commands of zookeeper-shell about the session and the ensemble.

        `session` returns the session, and opens it if needed.
        """
        self._session = session
        self._out = out
        self._err = err

    def print_identities(self, _: ShellArguments) -> None:
        """Run `whoami`: print the identities that the server assigns to this client."""
        identities = self._session().identities()
        self._print("Auth scheme: User")
        for scheme, user in identities:
            self._print(f"{scheme}: {user}")

    # -- watches

    def add_watch(self, arguments: ShellArguments) -> None:
        """Run `addWatch`: add a persistent watch of a node, recursive by default.

        Errors: ShellRefusal, and ShellAbort for an invalid path.
        """
        mode = arguments.flags.get("m", _RECURSIVE).upper()
        if len(arguments.operands) != 1 or mode not in _MODES:
            raise ShellRefusal(f"addWatch {ADD_WATCH_USAGE}")
        try:
            check_shell_path(arguments.operands[0])
        except ShellRefusal as error:
            raise ShellAbort(f"java.lang.IllegalArgumentException: {error}") from error
        self._session().add_watch(arguments.operands[0], is_recursive=mode == _RECURSIVE)

    def remove_watches(self, arguments: ShellArguments) -> None:
        """Run `removewatches`: remove the watches of a node; removals are printed as events."""
        from engine.znode.kazoo_shell import ALL_WATCHES, CHILDREN_WATCHES, DATA_WATCHES

        check_shell_path(arguments.operands[0])
        kind = CHILDREN_WATCHES if arguments.has("c") else DATA_WATCHES if arguments.has("d") else 0
        self._session().remove_watches(
            arguments.operands[0], kind or ALL_WATCHES, is_local=arguments.has("l")
        )

    # -- servers

    def print_configuration(self, arguments: ShellArguments) -> None:
        """Run `config`: print the servers of the ensemble, or with -c their client addresses."""
        data, stat = self._session().configuration(watches=arguments.has("w"))
        text = "null" if data is None else data.decode(errors="replace")
        self._print(_client_addresses(text) if arguments.has("c") else text)
        if arguments.has("s"):
            self._print(stat_text(stat))

    def reconfigure(self, arguments: ShellArguments) -> None:
        """Run `reconfig`: change the servers of the ensemble.

        Errors: ShellRefusal, those of the server.
        """
        version = _parse_version(arguments)
        joining, leaving, members = (
            arguments.flags[name].lower() if arguments.has(name) else None
            for name in ("add", "remove", "members")
        )
        data, stat = self._session().reconfigure(joining, leaving, members, version)
        self._print(f"Committed new configuration:\n{(data or b'').decode(errors='replace')}")
        if arguments.has("s"):
            self._print(stat_text(stat))

    def _print(self, text: str) -> None:
        """Print a line on standard output."""
        self._out.write(f"{text}\n")


def _parse_version(arguments: ShellArguments) -> int:
    """Return the version of the ensemble's configuration that -v requires, -1 for any.

    Errors: ShellRefusal, also for options that exclude each other.
    """
    if not any(map(arguments.has, (*_INCREMENTAL, *_WHOLE))):
        raise ShellRefusal(f"reconfig {RECONFIG_USAGE}")
    version = arguments.flags.get("v", "-1")
    if not is_java_number(version, LONG_BITS):
        raise ShellRefusal("-v must be followed by a long (configuration version)")
    if any(map(arguments.has, _WHOLE)) and any(map(arguments.has, _INCREMENTAL)):
        raise ShellRefusal(
            "Can't use -file or -members together with -add or -remove (mixing incremental and "
            "non-incremental modes is not allowed)"
        )
    if all(map(arguments.has, _WHOLE)):
        raise ShellRefusal(
            "Can't use -file and -members together (conflicting non-incremental modes)"
        )
    if arguments.has("file"):
        raise ShellRefusal("-file is not served here: name the servers by -members")
    return int(version)


def _client_addresses(text: str) -> str:
    """Return an ensemble's configuration as `version host:port,…`, with client addresses."""
    pairs = dict(line.strip().split("=", 1) for line in text.splitlines() if "=" in line)
    addresses = []
    for name in names_in_java_order(pairs):
        _, separator, client = pairs[name].strip().partition(";")
        if name.startswith("server.") and separator:
            addresses.append(client if ":" in client else f"{_ANY_HOST}:{client}")
    return f"{pairs.get('version', '').strip()} {','.join(addresses)}"
