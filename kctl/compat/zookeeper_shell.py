"""`zookeeper-shell`: one command on the nodes of a ZooKeeper, or those of standard input.

| command | does |
|---|---|
| `ls [-s] [-R] PATH` | children, with the stat of the node, with all below |
| `get [-s] PATH`, `stat PATH` | data, stat |
| `create [-s] PATH [DATA]`, `set [-s] [-v VERSION] PATH DATA` | changes |
| `delete [-v VERSION] PATH`, `deleteall PATH` | removals |
| `quit` | ends |

Source: ZooKeeperMain of ZooKeeper 3.8, as Kafka 3.9.1 starts it.
Differs: every other command is refused; so are ephemeral nodes, which end with the shell.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from engine.errors import EngineError
from engine.host.real import RealClock
from engine.znode.errors import (
    BadVersion,
    InvalidZnodePath,
    NodeExists,
    NoNode,
    NotEmpty,
)
from engine.znode.model import ANY_VERSION, Stat
from kctl import exits
from kctl.compat.tool_call import ToolCall

if TYPE_CHECKING:
    from engine.znode.kazoo_editor import ZnodeEditor

SUMMARY = "Shows and changes nodes of a ZooKeeper."
_USAGE: Final = (
    "USAGE: zookeeper-shell zookeeper_host:port[/path] [-zk-tls-config-file file] [args...]"
)
_UNKNOWN_COMMAND_CODE: Final = 127
_TIMEOUT_S: Final = 30.0
_USAGES: Final = {
    "ls": "ls [-s] [-w] [-R] path",
    "get": "get [-s] [-w] path",
    "stat": "stat [-w] path",
    "create": "create [-s] [-e] [-c] [-t ttl] path [data] [acl]",
    "set": "set [-s] [-v version] path data",
    "delete": "delete [-v version] path",
    "deleteall": "deleteall path [-b batch size]",
}


class _Refused(EngineError):
    """A command's words do not fit, or are not served."""


def run_words(call: ToolCall) -> int:
    """Run a command, or those of standard input; returns the exit code."""
    if not call.words or call.words[0] in ("--help", "-h"):
        call.err.write(f"{_USAGE}\n")
        return exits.FAILED
    if call.words[0] == "--version":
        call.out.write(f"{call.release.value}\n")
        return exits.OK
    address, words = call.words[0], list(call.words[1:])
    if words[:1] == ["-zk-tls-config-file"]:
        call.err.write("-zk-tls-config-file is not served here\n")
        return exits.FAILED
    paths = [word for word in words[1:] if word.startswith("/")]
    call.admit_store(words[0] if words else "", address, paths[0] if paths else "/", _TIMEOUT_S)
    # It imports kazoo, which takes longer than a usage text.
    from engine.znode.kazoo_editor import ZnodeEditor

    call.out.write(f"Connecting to {address}\n")
    call.flush()
    with ZnodeEditor(address, _TIMEOUT_S, RealClock()) as editor:
        if not words:
            call.out.write("Welcome to ZooKeeper!\nJLine support is disabled\n")
        call.out.write("\nWATCHER::\n\nWatchedEvent state:SyncConnected type:None path:null\n")
        shell = _Shell(call, editor)
        if words:
            return shell.run(words)
        return _run_lines(call, shell)


def _run_lines(call: ToolCall, shell: _Shell) -> int:
    code = exits.OK
    for line in call.stdin:
        words = shlex.split(line.decode("utf-8", "replace"))
        if words[:1] == ["quit"]:
            return code
        if words:
            code = shell.run(words)
    return code


class _Shell:
    """Runs commands on the nodes of a store."""

    def __init__(self, call: ToolCall, editor: ZnodeEditor) -> None:
        self._call = call
        self._editor = editor
        self._commands: dict[str, Callable[[Sequence[str]], None]] = {
            "ls": self._ls,
            "get": self._get,
            "stat": self._stat,
            "create": self._create,
            "set": self._set,
            "delete": self._delete,
            "deleteall": self._delete_all,
        }

    def run(self, words: Sequence[str]) -> int:
        """Run a command; returns its exit code."""
        command = self._commands.get(words[0])
        if words[0] == "quit":
            return exits.OK
        if command is None:
            known = "".join(f"\t{usage}\n" for usage in _USAGES.values())
            self._call.err.write(f"Command not found: {words[0]}\n{known}")
            return _UNKNOWN_COMMAND_CODE
        self._editor.begin()
        try:
            command(words[1:])
        except NoNode as error:
            return self._fail(f"Node does not exist: {error.path}")
        except NodeExists as error:
            return self._fail(f"Node already exists: {error.path}")
        except NotEmpty as error:
            return self._fail(f"Node not empty: {error.path}")
        except BadVersion as error:
            return self._fail(f"version No is not valid : {error.path}")
        except InvalidZnodePath as error:
            return self._fail(str(error))
        except _Refused as error:
            return self._fail(str(error))
        finally:
            self._call.flush()
        return exits.OK

    def _fail(self, message: str) -> int:
        self._call.flush()
        self._call.err.write(f"{message}\n")
        return exits.FAILED

    def _print(self, text: str) -> None:
        self._call.out.write(f"{text}\n")

    # -- commands

    def _ls(self, words: Sequence[str]) -> None:
        flags, (path,) = _parsed("ls", words, "sR", 1)
        if "R" in flags:
            for node in self._editor.tree(path, None):
                self._print(node.path)
            return
        names = [child.path.rsplit("/", 1)[1] for child in self._editor.children(path)]
        self._print(f"[{', '.join(sorted(names))}]")
        if "s" in flags:
            self._print(stat_text(self._editor.stat(path)))

    def _get(self, words: Sequence[str]) -> None:
        flags, (path,) = _parsed("get", words, "s", 1)
        data, stat = self._editor.get(path)
        self._print("null" if data is None else data.decode("utf-8", "replace"))
        if "s" in flags:
            self._print(stat_text(stat))

    def _stat(self, words: Sequence[str]) -> None:
        _, (path,) = _parsed("stat", words, "", 1)
        self._print(stat_text(self._editor.stat(path)))

    def _create(self, words: Sequence[str]) -> None:
        flags, rest = _parsed("create", words, "s", 1, 2)
        data = rest[1].encode() if len(rest) > 1 else b""
        made = self._editor.create(rest[0], data, sequential="s" in flags)
        self._call.err.write(f"Created {made}\n")

    def _set(self, words: Sequence[str]) -> None:
        flags, (path, text) = _parsed("set", words, "sv", 2)
        stat = self._editor.set(path, text.encode(), _version(flags))
        if "s" in flags:
            self._print(stat_text(stat))

    def _delete(self, words: Sequence[str]) -> None:
        flags, (path,) = _parsed("delete", words, "v", 1)
        self._editor.delete(path, _version(flags))

    def _delete_all(self, words: Sequence[str]) -> None:
        _, (path,) = _parsed("deleteall", words, "", 1)
        self._editor.delete_tree(path)


def _parsed(
    command: str, words: Sequence[str], known: str, least: int, most: int | None = None
) -> tuple[dict[str, str], list[str]]:
    """Return flags and the other words; `v` has a value. Raises _Refused."""
    flags: dict[str, str] = {}
    rest: list[str] = []
    left = list(reversed(words))
    while left:
        word = left.pop()
        if not word.startswith("-") or word == "-":
            rest.append(word)
        elif word[1:] not in known or len(word) != 2:
            raise _Refused(f"{word} is not served here: {_USAGES[command]}")
        else:
            flags[word[1]] = left.pop() if word == "-v" and left else ""
    if not least <= len(rest) <= (most or least):
        raise _Refused(_USAGES[command])
    if not rest[0].startswith("/"):
        raise _Refused("Path must start with / character")
    return flags, rest


def _version(flags: dict[str, str]) -> int:
    text = flags.get("v")
    if text is None:
        return ANY_VERSION
    if not text.lstrip("-").isdecimal():
        raise _Refused(f'For input string: "{text}"')
    return int(text)


def stat_text(stat: Stat) -> str:
    """Return a stat as ZooKeeper's shell prints it."""
    rows = (
        ("cZxid", f"0x{stat.czxid:x}"),
        ("ctime", _date_text(stat.ctime_ms)),
        ("mZxid", f"0x{stat.mzxid:x}"),
        ("mtime", _date_text(stat.mtime_ms)),
        ("pZxid", f"0x{stat.pzxid:x}"),
        ("cversion", stat.cversion),
        ("dataVersion", stat.version),
        ("aclVersion", 0),
        ("ephemeralOwner", f"0x{stat.ephemeral_owner:x}"),
        ("dataLength", stat.data_length_bytes),
        ("numChildren", stat.child_count),
    )
    return "\n".join(f"{name} = {value}" for name, value in rows)


def _date_text(time_ms: int) -> str:
    return time.strftime("%a %b %d %H:%M:%S %Z %Y", time.localtime(time_ms / 1000))
