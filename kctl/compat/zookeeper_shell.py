"""`zookeeper-shell`: runs one command on the nodes of a ZooKeeper, or the lines of stdin.

| command | does |
|---|---|
| `ls`, `get`, `stat`, `getAcl`, `getAllChildrenNumber`, `getEphemerals`, `sync` | read |
| `create`, `set`, `setAcl`, `delete`, `deleteall` | change nodes |
| `setquota`, `listquota`, `delquota` | quotas |
| `config`, `reconfig` | the servers of an ensemble |
| `addWatch`, `removewatches` | persistent watches |
| `addauth`, `whoami`, `connect`, `close` | the session |
| `history`, `redo`, `printwatches`, `version`, `quit` | the shell |

With `-w` a watch is set, whose event is printed.

The session is opened when a command needs it: an invalid command does not connect.

Source: ZooKeeperMain of ZooKeeper 3.8, as Kafka 3.9.1 starts it.

Differs: the session and its ephemeral nodes end with the shell, where Java's shell lets them
expire; an expired session is replaced, where Java's shell waits for `connect`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Final

from engine.errors import EngineError
from engine.host.real import RealClock
from engine.znode.errors import ZnodeConnectionLost
from engine.znode.model import EventType
from engine.znode.names import ROOT
from kctl import exits
from kctl.compat.java_log import log_line
from kctl.compat.tool_call import ToolCall, ToolEnded
from kctl.compat.zookeeper_arguments import (
    ShellAbort,
    ShellRefusal,
    decode_java_int,
    java_int,
    tokens_of_line,
)
from kctl.compat.zookeeper_commands import SYNTAXES, NodeCommands
from kctl.compat.zookeeper_failures import shell_error_text
from kctl.zookeeper_login import set_login

if TYPE_CHECKING:
    from engine.znode.kazoo_shell import ZnodeShellSession

SUMMARY = "Shows and changes nodes of a ZooKeeper."
_USAGE: Final = (
    "USAGE: zookeeper-shell zookeeper_host:port[/path] [-zk-tls-config-file file] [args...]"
)
_UNKNOWN_COMMAND_CODE: Final = 127
_TIMEOUT_S: Final = 30.0
_VALUED_OPTIONS: Final = ("-server", "-timeout", "-client-configuration")
_HISTORY_LINES: Final = 10
_NO_WORDS: Final = (
    "java.lang.NullPointerException: "
    'Cannot invoke "java.util.List.toArray(Object[])" because "this.cmdArgs" is null'
)
_OF_THE_SHELL: Final = {
    "close": "",
    "connect": "host:port",
    "history": "",
    "printwatches": "on|off",
    "quit": "",
    "redo": "cmdno",
}
_EVENTS: Final = {
    EventType.CREATED: "NodeCreated",
    EventType.DELETED: "NodeDeleted",
    EventType.DATA_CHANGED: "NodeDataChanged",
    EventType.CHILDREN_CHANGED: "NodeChildrenChanged",
    EventType.DATA_WATCH_REMOVED: "DataWatchRemoved",
    EventType.CHILD_WATCH_REMOVED: "ChildWatchRemoved",
    EventType.PERSISTENT_WATCH_REMOVED: "PersistentWatchRemoved",
}


def run_unparsed(call: ToolCall) -> int:
    """Run zookeeper-shell: one command, or the commands of stdin; returns the exit code."""
    if not call.arguments or call.arguments[0] in ("--help", "-h"):
        call.out.write(f"{_USAGE}\n")
        return exits.FAILED
    if call.arguments[0] == "--version":
        call.out.write(f"{call.release.value}\n")
        return exits.OK
    if "-zk-tls-config-file" in call.arguments:
        call.err.write("-zk-tls-config-file is not served here\n")
        return exits.FAILED
    if "-client-configuration" in call.arguments[:-1]:
        call.err.write("-client-configuration is not served here\n")
        return exits.FAILED
    address, (tokens, timeout) = call.arguments[0], _parse_shell_options(call, call.arguments[1:])
    paths = [token for token in tokens[1:] if token.startswith("/")]
    call.admit_store(tokens[0] if tokens else "", address, paths[0] if paths else "/", _TIMEOUT_S)
    shell = _Shell(call, address)
    try:
        return _run_commands(call, shell, tokens, timeout)
    except ShellAbort as error:
        call.flush()
        call.err.write(f'Exception in thread "main" {error}\n')
        return exits.FAILED
    finally:
        shell.end()


def _parse_shell_options(call: ToolCall, tokens: Sequence[str]) -> tuple[list[str], str]:
    """Return the command after the shell's options, and the session time-out as text.

    The options have no effect, but the time-out must be a number.
    """
    left, timeout = list(tokens), "0"
    while left and left[0].startswith("-"):
        option = left.pop(0)
        if option in _VALUED_OPTIONS:
            if not left:
                call.err.write(f"Error: no argument found for option {option}\n")
                break
            value = left.pop(0)
            timeout = value if option == "-timeout" else timeout
    return left, timeout


def _run_commands(call: ToolCall, shell: _Shell, tokens: list[str], timeout: str) -> int:
    """Run one command, or without tokens the commands of stdin; returns the exit code."""
    call.out.write(f"Connecting to {shell.address}\n")
    call.flush()
    java_int(timeout)
    try:
        if tokens:
            shell.run(tokens)
        else:
            call.out.write("Welcome to ZooKeeper!\nJLine support is disabled\n")
            call.flush()
            for line in call.stdin:
                shell.run_line(line.decode("utf-8", "replace").rstrip("\r\n"))
    except ToolEnded:
        # `quit` ends with the exit code of the previous command.
        pass
    if shell.exit_code:
        call.flush()
        logger = "org.apache.zookeeper.util.ServiceUtils"
        log_line(call.err, "ERROR", f"Exiting JVM with code {shell.exit_code}", logger)
    return shell.exit_code


class _Shell:
    """Runs commands; `exit_code` is the code of the last one."""

    def __init__(self, call: ToolCall, address: str) -> None:
        """Create a shell; it connects to `address` when a command first needs the session."""
        self.address = address
        self.exit_code: int = exits.OK
        self._call = call
        self._nodes = NodeCommands(self._ensure_session, call.out, call.err)
        #: Session with `address`; None before a command needs it, and after its end.
        self._session: ZnodeShellSession | None = None
        self._is_closed = False
        #: Commands that run without a session.
        self._of_the_shell: Final[dict[str, Callable[[Sequence[str]], None]]] = {
            "connect": self._connect,
            "history": self._print_history,
            "printwatches": self._print_watches,
            "redo": self._repeat_command,
        }
        #: Whether events of watches are printed (printwatches).
        self._prints_events = True
        #: Lock for printing a line, since events come from other threads.
        self._printing = Lock()
        self._history: list[str] = []
        #: Tokens of the last line with tokens, None before the first.
        self._tokens: list[str] | None = None

    def run_line(self, line: str) -> None:
        """Run the command of a line, and add it to the history.

        A line without tokens, such as a single quote, repeats the previous command.
        """
        if not line:
            return
        self._tokens = tokens_of_line(line) or self._tokens
        if self._tokens is None:
            raise ShellAbort(_NO_WORDS)
        self._history.append(line)
        self.run(self._tokens)

    def run(self, tokens: list[str]) -> None:
        """Run a command, print its error, and note its exit code.

        Raises ToolEnded to quit, and ShellAbort.
        """
        try:
            self._run_command(tokens)
            self.exit_code = exits.OK
        except _UnknownCommand as error:
            self._print_usage()
            self._fail(str(error), _UNKNOWN_COMMAND_CODE)
        except (ToolEnded, ShellAbort):
            raise
        except EngineError as error:
            path = next((token for token in tokens[1:] if token.startswith("/")), "/")
            self._fail(shell_error_text(error, path), exits.FAILED)
        finally:
            if self._session is not None:
                self._session.settle()
            self._call.flush()

    def _fail(self, message: str, code: int) -> None:
        """Print an error after flushing the output, and note the exit code."""
        self._call.flush()
        self._call.err.write(f"{message}\n")
        self.exit_code = code

    def _print_usage(self) -> None:
        """Print the usage of all commands, after an unknown one."""
        usages = {name: syntax.usage for name, syntax in SYNTAXES.items()} | _OF_THE_SHELL
        lines = "".join(f"\t{name} {usages[name]}\n" for name in sorted(usages))
        self._call.err.write(f"ZooKeeper -server host:port cmd args\n{lines}")

    def _run_command(self, tokens: list[str]) -> None:
        """Run a command; `quit` raises ToolEnded. Raises _UnknownCommand."""
        name, *rest = tokens
        if name == "quit":
            with suppress(ZnodeConnectionLost):
                self._close()
            raise ToolEnded(self.exit_code)
        if name in self._of_the_shell:
            self._of_the_shell[name](rest)
        elif name not in SYNTAXES and name != "close":
            raise _UnknownCommand(f"Command not found: Command not found {name}")
        if not self._is_alive():
            self._print("Not connected")
        elif name in SYNTAXES:
            self._nodes.run(tokens)
        elif name == "close":
            self._close()
            self._is_closed = True

    def _is_alive(self) -> bool:
        """Return False if the session has failed or been closed."""
        has_failed = self._session is not None and self._session.has_failed
        return not self._is_closed and not has_failed

    def _print(self, text: str) -> None:
        """Print a line under a lock, since events are printed by another thread."""
        with self._printing:
            self._call.out.write(f"{text}\n")

    # -- commands of the shell

    def _repeat_command(self, rest: Sequence[str]) -> None:
        """Run `redo`: repeat a command of the history by its number.

        Errors: ShellRefusal for an unknown number and for redo itself, ShellAbort.
        """
        if not rest:
            return
        number = decode_java_int(rest[0])
        if not 0 <= number < len(self._history) - 1:
            raise ShellRefusal("Command index out of range")
        tokens = tokens_of_line(self._history[number])
        if not tokens or tokens[0] == "redo":
            raise ShellRefusal("No redoing redos")
        self._tokens = tokens
        self._history[-1] = self._history[number]
        self.run(tokens)

    def _print_history(self, _: Sequence[str]) -> None:
        """Run `history`: print the last commands with their numbers."""
        last = max(len(self._history) - 1, 0)
        for number in range(max(last - _HISTORY_LINES, 0), last + 1):
            line = self._history[number] if self._history else "null"
            self._print(f"{number} - {line}")

    def _print_watches(self, rest: Sequence[str]) -> None:
        """Run `printwatches`: switch the printing of events, or print whether it is on."""
        if rest:
            self._prints_events = rest[0] == "on"
        else:
            self._print(f"printwatches is {'on' if self._prints_events else 'off'}")

    def _connect(self, rest: Sequence[str]) -> None:
        """Run `connect`: open a new session with an address, by default the current one."""
        if self._is_alive():
            self._close()
        self.end()
        self._is_closed = False
        self.address = rest[0] if rest else self.address
        self._ensure_session()

    # -- the session

    def _ensure_session(self) -> ZnodeShellSession:
        """Return the session with the server, opened at the first call.

        Each call starts a new time-out for requests. Errors: ZnodeConnectionLost.
        """
        # Import kazoo only here: that takes longer than printing a usage text.
        from engine.znode.kazoo_reader import ZookeeperUnreachable
        from engine.znode.kazoo_shell import ZnodeShellSession

        if self._session is None:
            session = ZnodeShellSession(
                self.address, _TIMEOUT_S, RealClock(), self._on_change, self._on_state
            )
            try:
                self._session = set_login(session).__enter__()
            except ZookeeperUnreachable as error:
                raise ZnodeConnectionLost(str(error)) from error
            self._on_state("SyncConnected")
            if self._session.logs_in:
                # Its response arrives after the login.
                with suppress(EngineError):
                    self._session.node_stat(ROOT, watches=False)
                if not self._session.has_failed:
                    self._on_state("SaslAuthenticated")
        self._session.begin()
        return self._session

    def _close(self) -> None:
        """Close the session, as `close` and `quit` do.

        It is opened before, if it is not: Java's shell opens it at its start, and prints both
        events.
        """
        if self._is_alive():
            self._ensure_session()
            self.end()
            self._on_state("Closed")

    def end(self) -> None:
        """End the session, if there is one."""
        if self._session is not None:
            self._session.__exit__(None, None, None)
            self._session = None
            self._nodes.ephemerals.clear()

    def _on_change(self, event: EventType, path: str) -> None:
        """Print the event of a watch; kazoo's thread calls it."""
        self._print_event("SyncConnected", _EVENTS[event], path)

    def _on_state(self, state: str) -> None:
        """Print the event of a changed state of the session."""
        self._print_event(state, "None", "null")

    def _print_event(self, state: str, event: str, path: str) -> None:
        """Print an event in the format of Java's shell, unless events are switched off."""
        if self._prints_events:
            self._print(f"\nWATCHER::\n\nWatchedEvent state:{state} type:{event} path:{path}")
            self._call.flush()


class _UnknownCommand(EngineError):
    """The shell has no such command."""
