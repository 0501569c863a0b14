"""Parsing of an authorizer's lines in a broker's log: principal, operation and decision.

```
[2026-01-31 12:00:00,000] INFO Principal = User:bob is Denied Operation = Read from host = 10.0.0.9
on resource = Topic:LITERAL:orders for request = Fetch with resourceRefCount = 2 (kafka.authorizer.logger)
```

All in one line. Kafka's brokers since 2.4 write it, with ZooKeeper and with KRaft; the time and the
level before it depend on the broker's logging configuration. Names may have any characters. Clients
choose resource names, which may contain the words of such a line: so the principal ends at the
first place where the following words match, and the resource name at the last one. Therefore no
name can forge the denied principal.

Source: AclAuthorizer.logAuditMessage, StandardAuthorizerData.logAuditMessage, config/log4j.properties.
"""  # noqa: E501 - a line of a log

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, tzinfo
from typing import Final, NamedTuple

_DECISION: Final = re.compile(
    r"Principal = (?P<principal>.*?) is (?P<result>Allowed|Denied) "
    r"[Oo]peration = (?P<operation>\w+) from host = (?P<host>\S+) "
    r"on resource = (?P<kind>\w+):(?P<pattern>\w+):(?P<name>.*) "
    r"for request = (?P<request>\w+) with resourceRefCount = (?P<count>\d+)\b"
)
_BEGINNING: Final = "Principal = "
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[,.]\d{1,9})?")
_LEVEL: Final = re.compile(r"\b(?:TRACE|DEBUG|INFO|WARN|ERROR)\b")


class AuditLine(NamedTuple):
    """A decision of an authorizer; `time_ms` is None for a line without a time."""

    time_ms: int | None
    level: str | None
    principal: str
    is_allowed: bool
    #: For example `Read`.
    operation: str
    host: str
    #: For example `Topic`.
    resource_type: str
    pattern_type: str
    resource_name: str
    request: str
    reference_count: int


def parse_audit_line(line: str, zone: tzinfo | None = UTC) -> AuditLine | None:
    """Return the authorizer's decision in a log line, None if the line has none.

    Times in logs have no zone: `zone` is that of the broker, None for this machine's.
    """
    start = line.find(_BEGINNING)
    match = _DECISION.match(line, start) if start >= 0 else None
    if match is None:
        return None
    time, level = _TIME.search(line, 0, start), _LEVEL.search(line, 0, start)
    return AuditLine(
        None if time is None else _time_ms(time[0], zone),
        None if level is None else level[0],
        match["principal"],
        match["result"] == "Allowed",
        match["operation"],
        match["host"],
        match["kind"],
        match["pattern"],
        match["name"],
        match["request"],
        int(match["count"]),
    )


def parse_audit_lines(lines: Iterable[str], zone: tzinfo | None = UTC) -> Iterator[AuditLine]:
    """Yield the authorizer's decisions in the lines of a log, in their order."""
    for line in lines:
        decision = parse_audit_line(line, zone)
        if decision is not None:
            yield decision


def _time_ms(text: str, zone: tzinfo | None) -> int | None:
    """Return the epoch time of a log line's time in ms, None if it is invalid.

    A `zone` of None is this machine's.
    """
    try:
        moment = datetime.fromisoformat(text.replace(",", "."))
    except ValueError:
        return None
    moment = moment.astimezone() if zone is None else moment.replace(tzinfo=zone)
    return round(moment.timestamp() * 1000)
