"""Implementation of `kctl audit`: read authorizers' decisions from logs, filter and count them."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC
from io import BufferedReader
from typing import BinaryIO, Final, NamedTuple

from engine.cluster.data_directory import DataDirectory
from engine.errors import EngineError
from engine.host.input_file import open_input
from engine.host.real import RealFiles
from engine.security.acls import AclOperation, AclResource, from_name
from engine.security.audit_lines import AuditLine, parse_audit_lines
from engine.security.principals import user_principal
from kctl.arguments import UnreadableArgument
from kctl.command_results import end_with
from kctl.embedded import cluster_path
from kctl.iso_times import parse_time_ms
from kctl.render import Column, check_format
from kctl.render.rows import OutputRow

_RESOURCE: Final = Column("resource", "RESOURCE")
COLUMNS: Final = (
    Column("time_ms", "TIME", is_time=True, kind="integer?"),
    Column("result", "RESULT"),
    Column("principal", "PRINCIPAL", is_name=True),
    Column("operation", "OPERATION"),
    _RESOURCE,
    Column("host", "HOST"),
    Column("request", "REQUEST"),
    Column("resource_type", "TYPE", wide=True),
    Column("resource_name", "NAME", wide=True),
    Column("pattern_type", "PATTERN", wide=True),
    Column("reference_count", "COUNT", right=True, wide=True),
    Column("level", "LEVEL", wide=True, kind="string?"),
)
SUMMARY_COLUMNS: Final = (
    Column("count", "TIMES", right=True),
    Column("result", "RESULT"),
    Column("principal", "PRINCIPAL", is_name=True),
    Column("operation", "OPERATION"),
    _RESOURCE,
    Column("hosts", "HOSTS", kind="string[]"),
    Column("first_ms", "FIRST", is_time=True, kind="integer?"),
    Column("last_ms", "LAST", is_time=True, kind="integer?"),
)
_STDIN: Final = "-"
_GZIP: Final = b"\x1f\x8b"


class NoEmbeddedLog(EngineError):
    """The embedded cluster has no log."""

    hint = "name a log of a broker, or the directory of an embedded cluster with --data"

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no cluster in {path}")
        self.path = path


class DamagedLog(EngineError):
    """A compressed log cannot be unpacked to its end."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} cannot be unpacked: {reason}")
        self.path = path
        self.reason = reason


class AuditFilter(NamedTuple):
    """Conditions on the decisions to show; an empty or None one matches every decision."""

    principals: frozenset[str]
    operations: frozenset[AclOperation]
    #: Resource type, and name or None for any name.
    resources: frozenset[tuple[AclResource, str | None]]
    since_ms: int | None
    until_ms: int | None
    is_denied_alone: bool

    @classmethod
    def from_options(
        cls,
        principals: Sequence[str] | None,
        operations: Sequence[str] | None,
        resources: Sequence[str] | None,
        since: str | None,
        until: str | None,
        *,
        is_denied_alone: bool,
    ) -> AuditFilter:
        """Parse the options into a filter; an option that is not given selects everything.

        A principal without a type is a `User:`. Errors: UnreadableArgument, UnreadableTime.
        """
        return cls(
            frozenset(one if ":" in one else user_principal(one) for one in principals or ()),
            frozenset(_parse_operation(one) for one in operations or ()),
            frozenset(_parse_resource(one) for one in resources or ()),
            None if since is None else parse_time_ms(since),
            None if until is None else parse_time_ms(until),
            is_denied_alone,
        )

    def matches(self, line: AuditLine) -> bool:
        """Return True if a decision of the authorizer passes every condition of the filter.

        `until_ms` is exclusive. A line without a time is outside any time range.
        """
        if self.is_denied_alone and line.is_allowed:
            return False
        if self.principals and line.principal not in self.principals:
            return False
        if self.operations and from_name(AclOperation, line.operation) not in self.operations:
            return False
        if self.resources:
            kind = from_name(AclResource, line.resource_type)
            if not self.resources & {(kind, None), (kind, line.resource_name)}:
                return False
        if self.since_ms is not None and (line.time_ms is None or line.time_ms < self.since_ms):
            return False
        return self.until_ms is None or (line.time_ms is not None and line.time_ms < self.until_ms)


class AuditRequest(NamedTuple):
    """The options of `kctl audit`."""

    files: Sequence[str]
    data: str | None
    wanted: AuditFilter
    is_utc: bool
    has_summary: bool
    output: str


def show_audit(request: AuditRequest) -> int:
    """Print the authorizer's decisions sorted by time, or their counts; returns the exit code."""
    check_format(request.output)
    zone = UTC if request.is_utc else None
    found = [
        decision
        for path in request.files or _embedded_log_paths(request.data)
        for decision in parse_audit_lines(_read_lines(path), zone)
        if request.wanted.matches(decision)
    ]
    if request.has_summary:
        return end_with(SUMMARY_COLUMNS, _summary_rows(found), request.output)
    # Sort only if every line has a time: a line without one keeps its place in its log.
    if all(decision.time_ms is not None for decision in found):
        found.sort(key=lambda decision: decision.time_ms or 0)
    return end_with(COLUMNS, map(_decision_row, found), request.output)


def _embedded_log_paths(data: str | None) -> list[str]:
    """Return the existing log files of an embedded cluster and its brokers.

    `data` is its directory, None for the default. Errors: NoEmbeddedLog.
    """
    files = RealFiles()
    directory = DataDirectory(files, cluster_path(os.environ, data))
    plan = directory.plan()
    if plan is None:
        raise NoEmbeddedLog(directory.path)
    paths = [directory.log_path]
    paths += [directory.broker_log_path(broker_id) for broker_id in plan.broker_ids()]
    return [path for path in paths if files.exists(path)]


def _read_lines(path: str) -> Iterator[str]:
    """Yield the lines of a log, plain or compressed by gzip, without reading it into memory.

    Errors: FileMissing, FileRefused, DamagedLog.
    """
    if path == _STDIN:
        yield from _decoded_lines(sys.stdin.buffer, "stdin")
        return
    with open_input(path) as file:
        yield from _decoded_lines(file, path)


def _decoded_lines(stream: BinaryIO, path: str) -> Iterator[str]:
    """Yield the lines of a stream, decompressed if it is gzip; raises DamagedLog if that fails."""
    buffered = stream if isinstance(stream, BufferedReader) else None
    if buffered is None or not buffered.peek(len(_GZIP)).startswith(_GZIP):
        yield from (line.decode(errors="replace") for line in stream)
        return
    import gzip
    import zlib

    try:
        with gzip.GzipFile(fileobj=buffered) as unpacked:
            yield from (line.decode(errors="replace") for line in unpacked)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DamagedLog(path, str(error)) from error


def _decision_row(line: AuditLine) -> OutputRow:
    """Return one decision of the authorizer as an output row."""
    return {
        "time_ms": line.time_ms,
        "result": _result(line),
        "principal": line.principal,
        "operation": line.operation,
        "resource": _resource_text(line),
        "host": line.host,
        "request": line.request,
        "resource_type": line.resource_type,
        "resource_name": line.resource_name,
        "pattern_type": line.pattern_type,
        "reference_count": line.reference_count,
        "level": line.level,
    }


def _summary_rows(lines: Iterable[AuditLine]) -> list[OutputRow]:
    """Count decisions by result, principal, operation and resource; the most frequent first.

    Each row also has the hosts, and the first and last time, None if no line has a time.
    """
    groups: dict[tuple[str, str, str, str], list[AuditLine]] = {}
    for line in lines:
        key = _result(line), line.principal, line.operation, _resource_text(line)
        groups.setdefault(key, []).append(line)
    counts = Counter({key: len(group) for key, group in groups.items()})
    rows: list[OutputRow] = []
    for key, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        times = [line.time_ms for line in groups[key] if line.time_ms is not None]
        result, principal, operation, resource = key
        rows.append(
            {
                "count": count,
                "result": result,
                "principal": principal,
                "operation": operation,
                "resource": resource,
                "hosts": sorted({line.host for line in groups[key]}),
                "first_ms": min(times, default=None),
                "last_ms": max(times, default=None),
            }
        )
    return rows


def _result(line: AuditLine) -> str:
    """Return `allowed` or `denied`, the text of column `result`."""
    return "allowed" if line.is_allowed else "denied"


def _resource_text(line: AuditLine) -> str:
    """Return a resource as the log writes it, such as `Topic:orders`."""
    return f"{line.resource_type}:{line.resource_name}"


def _parse_operation(text: str) -> AclOperation:
    """Parse the name of an operation; raises UnreadableArgument."""
    operation = from_name(AclOperation, text.strip().replace("-", "_"))
    if operation is AclOperation.UNKNOWN:
        raise UnreadableArgument("an operation", text, "a name such as read or create-tokens")
    return operation


def _parse_resource(text: str) -> tuple[AclResource, str | None]:
    """Parse `KIND[:NAME]`; the name is None if it is not given. Raises UnreadableArgument."""
    kind_text, colon, name = text.strip().partition(":")
    kind = from_name(AclResource, kind_text.replace("-", "_"))
    if kind is AclResource.UNKNOWN:
        expected = "a kind and perhaps a name, such as topic or topic:orders"
        raise UnreadableArgument("a resource", text, expected)
    return kind, name if colon else None
