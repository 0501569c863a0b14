"""Records as rows: the output of `kctl consume -o ndjson`, which `record_input` reads.

```
{"topic": "clicks", "partition": 0, "offset": 7, "timestamp": 1767225600000,
 "timestamp_type": "CreateTime", "leader_epoch": 0,
 "key": "tidal-0", "key_encoding": "utf-8", "value": "/wAB", "value_encoding": "base64",
 "headers": [{"key": "trace", "value": "9f", "encoding": "utf-8"}]}
```

Bytes that are valid UTF-8 are written as text, others as base64; the encoding tells which. For null
both text and encoding are null, which distinguishes it from the empty text.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.model import TopicPartition
from engine.records.record import NO_TIMESTAMP, Header, Record
from engine.records.record_run import RecordRun
from kctl.render import Column
from kctl.time_text import time_text

UTF_8 = "utf-8"
BASE64 = "base64"

_HEADER_COLUMNS = (
    Column("key", "KEY"),
    Column("value", "VALUE", kind="string?"),
    Column("encoding", "AS", kind="string?"),
)
RECORD_COLUMNS = (
    Column("topic", "TOPIC"),
    Column("partition", "PARTITION", right=True),
    Column("offset", "OFFSET", right=True),
    Column("timestamp", "TIMESTAMP", kind="integer?"),
    Column("timestamp_type", "TIME-OF", wide=True),
    Column("leader_epoch", "EPOCH", right=True, wide=True, kind="integer?"),
    Column("key", "KEY", kind="string?"),
    Column("key_encoding", "KEY-AS", wide=True, kind="string?"),
    Column("value", "VALUE", kind="string?"),
    Column("value_encoding", "VALUE-AS", wide=True, kind="string?"),
    Column("headers", "HEADERS", wide=True, kind="object[]", fields=_HEADER_COLUMNS),
)


#: Additional columns if schemas are known.
DECODED_COLUMNS = (
    Column("decoded_key", "DECODED KEY", wide=True, kind="any", is_optional=True),
    Column("decoded_value", "DECODED VALUE", kind="any", is_optional=True),
)


def record_row(
    partition: TopicPartition, record: Record, leader_epoch: int, *, is_table: bool = False
) -> dict[str, object]:
    """Return a record as an output row, as described in this module.

    `leader_epoch` is that of the record's batch, negative if unknown. With `is_table` the time is
    ISO 8601 instead of ms.
    """
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


def run_columns(
    partition: TopicPartition, run: RecordRun, *, is_table: bool = False
) -> tuple[dict[str, object], dict[str, Sequence[object]]]:
    """Return the rows of a run of records as columns, for fast output of many records.

    The first part has the fields that all rows share, the second the values of the fields that
    vary, a value for each record. They are equal to the rows that `record_row` returns for each
    record.
    """
    from kctl.render.bulk import Numbers, Texts

    shared: dict[str, object] = {
        "topic": partition.topic,
        "partition": partition.partition,
        "timestamp_type": run.timestamp_type.label,
        "leader_epoch": run.leader_epoch if run.leader_epoch >= 0 else None,
    }
    varying: dict[str, Sequence[object]] = {"offset": Numbers(run.offsets)}
    if is_table:
        # Many records have the same timestamp.
        times = {time: time_text_or_none(time) for time in set(run.timestamps_ms)}
        varying["timestamp"] = Texts(map(times.__getitem__, run.timestamps_ms))
    elif NO_TIMESTAMP in run.timestamps_ms:
        varying["timestamp"] = [_time(time, is_table=False) for time in run.timestamps_ms]
    else:
        varying["timestamp"] = Numbers(run.timestamps_ms)
    for name, contents in (("key", run.keys), ("value", run.values)):
        texts, encodings = texts_of(contents)
        if isinstance(encodings, list):
            varying[name], varying[f"{name}_encoding"] = Texts(texts), Texts(encodings)
        else:
            shared[f"{name}_encoding"] = encodings
            varying[name] = Texts(texts)
    if any(run.headers):
        varying["headers"] = [[_header_row(header) for header in row] for row in run.headers]
    else:
        shared["headers"] = []
    return shared, varying


def texts_of(
    contents: Sequence[bytes | None],
) -> tuple[Sequence[str | None], list[str | None] | str | None]:
    """Return the keys or the values of records as texts, with their encodings.

    The encodings are one word or None if all are the same, else a list. A text is None for null.
    """
    nulls = contents.count(None)
    if nulls == len(contents):
        return [None] * nulls, None
    if not nulls:
        try:
            return list(map(bytes.decode, contents)), UTF_8  # type: ignore[arg-type]
        except UnicodeDecodeError:
            pass
    pairs = [text_of(content) for content in contents]
    return [text for text, _ in pairs], [encoding for _, encoding in pairs]


def text_of(raw: bytes | None) -> tuple[str | None, str | None]:
    """Return the bytes of a key or value as text, with the encoding: UTF-8, else base64.

    Both are None for null.
    """
    if raw is None:
        return None, None
    try:
        return raw.decode(), UTF_8
    except UnicodeDecodeError:
        from base64 import b64encode

        return b64encode(raw).decode(), BASE64


def _header_row(header: Header) -> dict[str, object]:
    """Return a record's header as a row with `key`, `value` and the `encoding` of the value."""
    key, raw = header
    value, encoding = text_of(raw)
    return {"key": key, "value": value, "encoding": encoding}


def _time(timestamp_ms: int, *, is_table: bool) -> int | str | None:
    """Return a record's timestamp for a row: ms, or ISO 8601 for a table.

    None for a record without a timestamp.
    """
    if timestamp_ms == NO_TIMESTAMP:
        return None
    return time_text(timestamp_ms) if is_table else timestamp_ms


def time_text_or_none(timestamp_ms: int) -> str | None:
    """Return a record's timestamp in ms as ISO 8601, None for a record without one."""
    return None if timestamp_ms == NO_TIMESTAMP else time_text(timestamp_ms)
