"""Reads rows as records: the output of `kctl consume -o ndjson` and `kctl dump-log -o ndjson`.

| field | is read as |
|---|---|
| `key`, `value` | a text, or null; `value` is required, since null deletes |
| `key_encoding`, `value_encoding` | `utf-8` (also if missing), `base64` or `escaped` |
| `key_base64`, `value_base64` | the bytes, in place of the text |
| `headers` | objects with `key` or `name`, and with `value` and its encoding as above |
| `timestamp`, `timestamp_ms` | ms; null and −1 are no time, and without either it is now |
| `partition` | used only if the command asks for it |
| `is_control` | true: a transaction marker, which is skipped |

Every other field of those rows is ignored; a field that those rows do not have is refused, because
a misspelt `value` would be lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.client.producing import OutgoingRecord
from engine.errors import EngineError
from engine.records.record import NO_TIMESTAMP, Header
from kctl.arguments import UnreadableArgument

UTF_8 = "utf-8"
BASE64 = "base64"
ESCAPED = "escaped"

#: All fields of the rows that are read.
ROW_FIELDS = frozenset(
    [
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestamp_ms",
        "timestamp_type",
        "leader_epoch",
        "key",
        "key_encoding",
        "key_base64",
        "value",
        "value_encoding",
        "value_base64",
        "headers",
        "file",
        "key_size_bytes",
        "value_size_bytes",
        "sequence",
        "producer_id",
        "producer_epoch",
        "is_transactional",
        "is_control",
        "control_type",
        "coordinator_epoch",
        "codec",
        "magic",
        "batch_base_offset",
        "batch_position",
        "is_crc_valid",
        "decoded_key",
        "decoded_value",
    ]
)
_HEADER_FIELDS = frozenset(["key", "name", "value", "encoding", "value_encoding", "value_base64"])


class UnreadableRecord(EngineError):
    """A line is not a record."""

    hint = "each line must be an object such as `kctl consume -o ndjson` prints"

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


class LineNotJson(UnreadableRecord):
    """A line is not a JSON document."""

    hint = "each line must be a JSON document of its own"


class _Wrong(Exception):
    """A field is invalid."""


class Keep(NamedTuple):
    """Which fields of rows are used beside key, value and headers."""

    partitions: bool = False
    timestamps: bool = True


def parse_record(line: bytes, number: int, topic: str, keep: Keep) -> OutgoingRecord | None:
    """Return the record that a line of NDJSON describes, None for a transaction marker.

    `keep` selects which of the row's timestamp and partition the record keeps.

    Errors: UnreadableRecord with the line's number.
    """
    try:
        row = parse_json(line, number)
        if not isinstance(row, dict):
            raise _Wrong("expected a JSON object")
        _check_fields(row, ROW_FIELDS, "a row")
        if row.get("is_control") is True:
            return None
        if "value" not in row and "value_base64" not in row:
            raise _Wrong("no `value` (null deletes, --value-json takes any document as the value)")
        return OutgoingRecord(
            topic,
            _parse_bytes(row, "key", "key_encoding"),
            _parse_bytes(row, "value", "value_encoding"),
            _parse_headers(row),
            _parse_time(row) if keep.timestamps else None,
            _partition_of(row) if keep.partitions else None,
        )
    except _Wrong as wrong:
        raise UnreadableRecord(number, str(wrong)) from None


def parse_json(line: bytes, number: int) -> object:
    """Return the JSON document in a line; raises LineNotJson with the line's `number`."""
    import json

    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LineNotJson(number, f"not JSON: {error}") from None


def _check_fields(row: Mapping[str, object], known: frozenset[str], what: str) -> None:
    """Raise _Wrong if a row or a header has a field that is not in `known`.

    The error hints at the most similar field. `what` names the object.
    """
    unknown = sorted(row.keys() - known)
    if not unknown:
        return
    from kctl.hints import did_you_mean

    near = did_you_mean(unknown[0], known)
    raise _Wrong(f"{what} has no field {unknown[0]!r}" + (f" ({near})" if near else ""))


def _parse_time(row: Mapping[str, object]) -> int | None:
    """Return the timestamp of a row in ms, None without that field.

    null and -1 become NO_TIMESTAMP.
    """
    name = "timestamp_ms" if "timestamp_ms" in row else "timestamp"
    if name not in row:
        return None
    time = row[name]
    return NO_TIMESTAMP if time in (None, NO_TIMESTAMP) else _number(time, name)


def _partition_of(row: Mapping[str, object]) -> int | None:
    """Return the partition of a row, None without one: the producer then chooses it."""
    partition = row.get("partition")
    return None if partition is None else _number(partition, "partition")


def _number(number: object, name: str) -> int:
    """Return the field `name` of a row, a whole number from 0 to 2^63 - 1.

    Errors: _Wrong for anything else.
    """
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number < 1 << 63:
        raise _Wrong(f"{name} must be a number from 0, or null")
    return number


def _parse_bytes(row: Mapping[str, object], name: str, encoding_name: str) -> bytes | None:
    """Return the bytes of a row's field, decoded by its encoding; None for null or no field.

    `name` is the field, such as `key`; `encoding_name` is the field with its encoding. NAME_base64
    has precedence.

    Errors: _Wrong.
    """
    text = row.get(f"{name}_base64")
    if text is not None:
        return _from_base64(_text(text, f"{name}_base64"), f"{name}_base64")
    text = row.get(name)
    if text is None:
        return None
    text = _text(text, name)
    encoding = row.get(encoding_name) or UTF_8
    if encoding == BASE64:
        return _from_base64(text, name)
    if encoding not in (UTF_8, ESCAPED):
        raise _Wrong(f"{encoding_name} must be {UTF_8}, {BASE64} or {ESCAPED}")
    try:
        return text.encode() if encoding == UTF_8 else _from_escapes(text.encode().decode(), name)
    except UnicodeEncodeError:
        raise _Wrong(f"{name} has half of a surrogate pair") from None


def _text(text: object, name: str) -> str:
    """Return the field `name` of a row, a text; raises _Wrong for any other value."""
    if not isinstance(text, str):
        raise _Wrong(f"{name} must be a text or null")
    return text


def _from_base64(text: str, name: str) -> bytes:
    """Return the bytes of a field's base64 text; raises _Wrong, with `name`, for other text."""
    from base64 import b64decode

    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise _Wrong(f"{name} is not base64") from None


def _from_escapes(text: str, name: str) -> bytes:
    """Return the bytes of a field's text with escapes; raises _Wrong for unknown escapes.

    `name` is the field, for the error.
    """
    from kctl.escapes import decode_escapes

    try:
        return decode_escapes(text, f"an escaped {name}")
    except UnreadableArgument as error:
        raise _Wrong(str(error)) from None


def _parse_headers(row: Mapping[str, object]) -> tuple[Header, ...]:
    """Return the headers of a record's row, as names and values; raises _Wrong if malformed.

    Empty for null or without the field.
    """
    rows = row.get("headers")
    if rows is None:
        return ()
    if not isinstance(rows, list):
        raise _Wrong("headers must be a list")
    headers = []
    for header in rows:
        name = header.get("key", header.get("name")) if isinstance(header, dict) else None
        if not isinstance(name, str):
            raise _Wrong("a header must be an object with a `key` (or `name`)")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise _Wrong("a header's key has half of a surrogate pair") from None
        _check_fields(header, _HEADER_FIELDS, "a header")
        encoding_name = "value_encoding" if "value_encoding" in header else "encoding"
        headers.append((name, _parse_bytes(header, "value", encoding_name)))
    return tuple(headers)
