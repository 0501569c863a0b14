"""Decode the records of internal topics by Kafka's message schemas.

The schemas of 4.3.0 have all fields of earlier releases and are tried first; the schemas of 3.9.1
are used for records that do not fit them.
"""

from __future__ import annotations

from typing import NamedTuple

from engine.analysis.table_values import Row
from engine.errors import CorruptRecord, WireError
from engine.records.control import ControlType, control_type
from engine.records.record import Record
from engine.wire.coordinator_records import (
    RECORD_TYPES,
    decode_coordinator_record,
    key_version,
)
from engine.wire.coordinator_text import to_json_node
from engine.wire.framed_records import decode_framed_record
from engine.wire.json_form import json_node, json_text
from engine.wire.record_decoders import format_control_record
from engine.wire.structs import Struct
from engine.wire.tool_reader import ToolFailure

_RELEASE, _EARLIER_RELEASE = "4.3.0", "3.9.1"
_CONTROL_MESSAGES = {
    ControlType.LEADER_CHANGE: "LeaderChangeMessage",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    ControlType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlType.KRAFT_VOTERS: "VotersRecord",
}


class DecodedPair(NamedTuple):
    """A decoded record of a coordinator's topic; `value` is None for a tombstone."""

    name: str
    type: int
    release: str
    key: Struct
    value_version: int
    value: Struct | None

    def key_json(self) -> str | None:
        """Return all fields of the key as JSON text."""
        return readable(json_text(json_node(self.key, key_version(self.type, self.release))))

    def value_json(self) -> str | None:
        """Return all fields of the value as JSON text, None for a tombstone."""
        if self.value is None:
            return None
        return readable(json_text(to_json_node(self.value, self.value_version)))


def decode_pair(kind: str, record: Record) -> DecodedPair:
    """Decode key and value of a record of a coordinator's topic.

    `kind` is that of RECORD_TYPES. Raises CorruptRecord without a key, WireError if neither
    release's schemas fit.
    """
    if record.key is None:
        raise CorruptRecord("a key", None)
    try:
        return _decode(kind, record.key, record.value, _RELEASE)
    except WireError as failure:
        try:
            return _decode(kind, record.key, record.value, _EARLIER_RELEASE)
        except WireError:
            raise failure from None


def _decode(kind: str, key: bytes, value: bytes | None, release: str) -> DecodedPair:
    """Decode a record by the message schemas of one Kafka release; raises WireError."""
    found = decode_coordinator_record(kind, key, value, release)
    name = RECORD_TYPES[kind][release][found.type]
    return DecodedPair(name, found.type, release, found.key, found.value_version, found.value)


def metadata_row(record: Record) -> Row:
    """Return the columns type, version and fields of a KRaft metadata record.

    Raises CorruptRecord, WireError.
    """
    if record.value is None:
        raise CorruptRecord("a value", None)
    try:
        return _decode_framed(record.value, _RELEASE)
    except WireError as failure:
        try:
            return _decode_framed(record.value, _EARLIER_RELEASE)
        except WireError:
            raise failure from None


def _decode_framed(value: bytes, release: str) -> Row:
    """Return the columns type, version and fields of a metadata record.

    The schemas are those of one Kafka release. Raises WireError.
    """
    framed = decode_framed_record("cluster_metadata", value, release)
    return {
        "type": framed.message.message_name,
        "version": framed.version,
        "fields": readable(json_text(json_node(framed.message, framed.version))),
    }


def control_row(record: Record) -> Row:
    """Return the columns type, version and fields of a KRaft control record.

    Raises CorruptRecord.
    """
    kind = control_type(record)
    message = _CONTROL_MESSAGES.get(kind)
    if message is None:
        raise CorruptRecord("a control record of the quorum", kind.name)
    try:
        text = format_control_record(message, record.value)
    except ToolFailure as failure:
        raise CorruptRecord(f"a {message}", str(failure)) from failure
    return {"type": message, "version": 0, "fields": readable(text)}


def readable(text: str | None) -> str | None:
    """Return a text with lone surrogates replaced by U+FFFD, because Arrow requires valid UTF-8."""
    return (
        None if text is None else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    )
