"""Records as rows: what `kctl consume -o ndjson` prints; `record_input` reads it back.

```
{"topic": "clicks", "partition": 0, "offset": 7, "timestamp": 1767225600000,
 "timestamp_type": "CreateTime", "leader_epoch": 0,
 "key": "tidal-0", "key_encoding": "utf-8", "value": "/wAB", "value_encoding": "base64",
 "headers": [{"key": "trace", "value": "9f", "encoding": "utf-8"}]}
```

Bytes that are UTF-8 stand as their text, others as base64; the encoding says which. Null has
neither a text nor an encoding, so that it is not the empty text.
"""

from __future__ import annotations

from typing import Any

from engine.model import TopicPartition
from engine.records.record import NO_TIMESTAMP, Header, Record
from kctl.render import Column

UTF_8 = "utf-8"
BASE64 = "base64"

RECORD_COLUMNS = (
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION", right=True),
    Column("offset", "OFFSET", right=True),
    Column("timestamp", "TIMESTAMP"),
    Column("timestamp_type", "TIME-OF", wide=True),
    Column("leader_epoch", "EPOCH", right=True, wide=True),
    Column("key", "KEY"),
    Column("key_encoding", "KEY-AS", wide=True),
    Column("value", "VALUE"),
    Column("value_encoding", "VALUE-AS", wide=True),
    Column("headers", "HEADERS", wide=True),
)


def record_row(
    partition: TopicPartition, record: Record, leader_epoch: int, *, is_table: bool = False
) -> dict[str, Any]:
    """Return a record as a row; tables have a readable time."""
    key, key_encoding = text_of(record.key)
    value, value_encoding = text_of(record.value)
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "offset": record.offset,
        "timestamp": _time(record.timestamp_ms, is_table=is_table),
        "timestamp_type": record.timestamp_type.label,
        "leader_epoch": leader_epoch if leader_epoch >= 0 else None,
        "key": key,
        "key_encoding": key_encoding,
        "value": value,
        "value_encoding": value_encoding,
        "headers": [_header_row(header) for header in record.headers],
    }


def text_of(raw: bytes | None) -> tuple[str | None, str | None]:
    """Return bytes as text, and how they are encoded in it."""
    if raw is None:
        return None, None
    try:
        return raw.decode(), UTF_8
    except UnicodeDecodeError:
        from base64 import b64encode

        return b64encode(raw).decode(), BASE64


def _header_row(header: Header) -> dict[str, Any]:
    key, raw = header
    value, encoding = text_of(raw)
    return {"key": key, "value": value, "encoding": encoding}


def _time(timestamp_ms: int, *, is_table: bool) -> int | str | None:
    if timestamp_ms == NO_TIMESTAMP:
        return None
    return time_text(timestamp_ms) if is_table else timestamp_ms


def time_text(timestamp_ms: int) -> str:
    """Return a time as ISO 8601 in UTC; a number where no calendar has the day."""
    from datetime import UTC, datetime, timedelta

    try:
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
