"""Quotas of ZooKeeper nodes, which its shell stores in nodes.

```
/zookeeper/quota/<path>/zookeeper_limits   count=5,bytes=-1=;byteHardLimit=-1;countHardLimit=-1
/zookeeper/quota/<path>/zookeeper_stats    count=1,bytes=4        counted by the server
```

-1 means no limit. A server logs changes above a soft limit (`count`, `bytes`), and refuses changes
above a hard limit if it is configured to.

Source: SetQuotaCommand, ListQuotaCommand, DelQuotaCommand, StatsTrack and Quotas of ZooKeeper 3.8.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TextIO

from engine.znode.errors import NodeExists, NoNode
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_numbers import INT_BITS, LONG_BITS, java_number
from kctl.compat.java_split import java_split, java_split_pattern
from kctl.compat.zookeeper_arguments import (
    ShellAbort,
    ShellArguments,
    ShellRefusal,
    check_shell_path,
)

if TYPE_CHECKING:
    from engine.znode.kazoo_shell import ZnodeShellSession

_QUOTAS: Final = "/zookeeper/quota"
_LIMITS: Final = "zookeeper_limits"
_STATISTICS: Final = "zookeeper_stats"
_COUNT: Final = "count"
_BYTES: Final = "bytes"
#: Name of the limit that each flag sets.
_NAMES: Final = {"n": _COUNT, "b": _BYTES, "N": "countHardLimit", "B": "byteHardLimit"}
_OF_COUNTS: Final = "nN"
_NO_LIMIT: Final = -1
_SEPARATORS: Final = "[,;]+"


class QuotaCommands:
    """Runs the shell's commands on quotas: setquota, listquota, delquota."""

    def __init__(self, session: Callable[[], ZnodeShellSession], out: TextIO, err: TextIO) -> None:
        """Create the quota commands of zookeeper-shell.

        `session` returns the session, and opens it if needed.
        """
        self._session = session
        self._out = out
        self._err = err

    def set_limit(self, arguments: ShellArguments) -> None:
        """Run `setquota`: set one limit of a node, keeping its other limits.

        Errors: ShellRefusal, also if a node above or below has a quota.
        """
        path = arguments.operands[0]
        if path.startswith(_QUOTAS):
            self._err.write(f"cannot set a quota under the path: {_QUOTAS}\n")
            return
        limits = _parse_limits(arguments, self._err)
        if limits is None:
            return
        check_shell_path(path)
        if not self._is_there(path):
            raise ShellRefusal(f"{path} does not exist.")
        self._check_below(path)
        self._check_above(path)
        self._make_nodes(path)
        self._store_limits(path, limits)

    def print_quota(self, arguments: ShellArguments) -> None:
        """Run `listquota`: print the quota of a node, and its current nodes and bytes."""
        path = arguments.operands[0]
        self._err.write(f"absolute path is {_limit_path(path)}\n")
        check_shell_path(_limit_path(path))
        try:
            limits = self._read_track(_limit_path(path))
            self._out.write(f"Output quota for {path} {_text(limits)}\n")
            statistics = self._read_track(f"{_QUOTAS}{path}/{_STATISTICS}")
            self._out.write(f"Output stat for {path} {_text(statistics)}\n")
        except NoNode:
            self._err.write(f"quota for {path} does not exist.\n")

    def delete_limit(self, arguments: ShellArguments) -> None:
        """Run `delquota`: remove one limit of a node, without a flag all limits and their nodes."""
        path = arguments.operands[0]
        check_shell_path(_limit_path(path))
        if not self._is_there(_limit_path(path)):
            self._out.write(f"Quota does not exist for {path}\n")
            return
        try:
            self._delete_limits(path, [_NAMES[flag] for flag in arguments.flags])
        except NoNode:
            self._err.write(f"quota for {path} does not exist.\n")

    def _delete_limits(self, path: str, names: list[str]) -> None:
        """Remove the named limits; without names delete the quota's nodes and empty parents."""
        limits = self._read_track(_limit_path(path))
        if names:
            limits |= dict.fromkeys(names, _NO_LIMIT)
            self._session().set_data(_limit_path(path), _text(limits).encode())
            return
        node = f"{_QUOTAS}{path}"
        for name in self._children(node):
            self._session().delete(f"{node}/{name}")
        while node != _QUOTAS and not self._children(node):
            self._session().delete(node)
            node = node.rpartition("/")[0]

    # -- other quotas

    def _check_below(self, path: str) -> None:
        """Raise ShellRefusal if a node below has a quota: ZooKeeper allows one on each path."""
        top = f"{_QUOTAS}{path}"
        check_shell_path(top)
        left = [top]
        while left:
            node = left.pop(0)
            try:
                names = self._children(node)
            except NoNode:
                continue
            if node != top and _LIMITS in names:
                below = node.removeprefix(_QUOTAS)
                raise ShellRefusal(f"{path} has a child {below} which has a quota")
            left[:0] = [f"{node}/{name}" for name in names]

    def _check_above(self, path: str) -> None:
        """Raise ShellRefusal if a node above has a quota: ZooKeeper allows one on each path."""
        node = _QUOTAS
        for name in path.split("/")[1:]:
            node = f"{node}/{name}"
            try:
                names = self._children(node)
            except NoNode:
                return
            if node != f"{_QUOTAS}{path}" and _LIMITS in names:
                above = node.removeprefix(_QUOTAS)
                raise ShellRefusal(f"{path} has a parent {above} which has a quota")

    # -- nodes

    def _make_nodes(self, path: str) -> None:
        """Create the missing parent nodes of a quota."""
        node = ""
        for name in f"{_QUOTAS}{path}".split("/")[1:]:
            node = f"{node}/{name}"
            if not self._is_there(node):
                self._create(node, None)

    def _store_limits(self, path: str, limits: dict[str, int]) -> None:
        """Store the limits of a node, merged with existing ones; print a warning if exceeded."""
        node = _limit_path(path)
        statistics = f"{_QUOTAS}{path}/{_STATISTICS}"
        if not self._is_there(node):
            self._create(node, _text(limits).encode())
            self._create(statistics, _text({_COUNT: 0, _BYTES: 0}).encode())
            self._warn_of_exceeded(limits, self._read_track(statistics))
            return
        given = {name: limit for name, limit in limits.items() if limit > _NO_LIMIT}
        merged = self._read_track(node) | given
        self._warn_of_exceeded(merged, self._read_track(statistics))
        self._session().set_data(node, _text(merged).encode())

    def _warn_of_exceeded(self, limits: Mapping[str, int], current: Mapping[str, int]) -> None:
        """Print a warning for each limit below the current use."""
        for name, hard in ((_COUNT, _NAMES["N"]), (_BYTES, _NAMES["B"])):
            there = current.get(name, _NO_LIMIT)
            if any(_NO_LIMIT < limits.get(limit, _NO_LIMIT) < there for limit in (name, hard)):
                self._out.write(
                    f"[Warning]: the {name} quota you create is less than the existing "
                    f"{name}:{there}\n"
                )

    def _is_there(self, path: str) -> bool:
        """Return True if a node exists."""
        try:
            self._session().node_stat(path, watches=False)
        except NoNode:
            return False
        return True

    def _children(self, path: str) -> list[str]:
        """Return the names of a node's children; raises NoNode."""
        return self._session().child_names(path, watches=False)[0]

    def _create(self, path: str, data: bytes | None) -> None:
        """Create a persistent node, unless another client has created it."""
        with suppress(NodeExists):
            self._session().create_node(path, data, None, ephemeral=False, sequential=False)

    def _read_track(self, path: str) -> dict[str, int]:
        """Read the limits or statistics (StatsTrack) of a quota node.

        Errors: NoNode; ShellRefusal for an invalid number, ShellAbort for text that is not a pair.
        """
        data, _ = self._session().node_data(path, watches=False)
        text = (data or b"").decode(errors="replace")
        track = {}
        for pair in java_split_pattern(text, _SEPARATORS) if text else ():
            name, number = _first_two(java_split(pair, "="))
            try:
                track[name] = java_number(number or "-1", LONG_BITS)
            except ToolFailure as failure:
                raise ShellRefusal(str(failure)) from failure
        return track


def _first_two(words: list[str]) -> list[str]:
    """Return the first two words; raises ShellAbort if there are fewer."""
    if len(words) < 2:
        found = len(words)
        message = f"Index {found} out of bounds for length {found}"
        raise ShellAbort(f"java.lang.ArrayIndexOutOfBoundsException: {message}")
    return words[:2]


def _limit_path(path: str) -> str:
    """Return the path of the node that stores the limits of `path`."""
    return f"{_QUOTAS}{path}/{_LIMITS}"


def _parse_limits(arguments: ShellArguments, err: TextIO) -> dict[str, int] | None:
    """Return the limits that flags set; for an invalid one print an error and return None."""
    limits = dict.fromkeys(_NAMES.values(), _NO_LIMIT)
    for flag, text in arguments.flags.items():
        try:
            limit = java_number(text, INT_BITS if flag in _OF_COUNTS else LONG_BITS)
        except ToolFailure:
            err.write("NumberFormatException happens when parsing the option value\n")
            return None
        if flag in _OF_COUNTS and limit <= 0:
            err.write("the num quota must be greater than zero\n")
            return None
        if limit < 0:
            err.write("the bytes quota must be greater than or equal to zero\n")
            return None
        limits[_NAMES[flag]] = limit
    return limits


def _text(track: Mapping[str, int]) -> str:
    """Return limits or statistics in the format of ZooKeeper's StatsTrack, old fields first."""
    text = f"count={track.get(_COUNT, _NO_LIMIT)},bytes={track.get(_BYTES, _NO_LIMIT)}"
    more = sorted(name for name in track if name not in (_COUNT, _BYTES))
    return text + ("=" if more else "") + "".join(f";{name}={track[name]}" for name in more)
