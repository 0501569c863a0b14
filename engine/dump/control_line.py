"""The part of a control record's line that shows its content."""

from __future__ import annotations

import struct

from engine.errors import CorruptRecord
from engine.records.record import Record

_SHORT_PAIR = struct.Struct(">hh")
_MARKER = struct.Struct(">hi")

#: Type id → (Kafka's name, message type of its value, name before the JSON).
_TYPES = {
    0: ("ABORT", "", ""),
    1: ("COMMIT", "", ""),
    2: ("LEADER_CHANGE", "LeaderChangeMessage", "LeaderChange:"),
    3: ("SNAPSHOT_HEADER", "SnapshotHeaderRecord", "SnapshotHeader"),
    4: ("SNAPSHOT_FOOTER", "SnapshotFooterRecord", "SnapshotFooter"),
    5: ("KRAFT_VERSION", "KRaftVersionRecord", "KRaftVersion"),
    6: ("KRAFT_VOTERS", "VotersRecord", "KRaftVoters"),
}


def format_control(record: Record, is_four: bool) -> str:
    """Return the text that Kafka's tool prints for a control record; it begins with a blank.

    `is_four` selects the text of 4.3. Raises CorruptRecord if the record's key or value is too
    short, or has a negative version.
    """
    if record.key is None or len(record.key) < 4:
        got = "null" if record.key is None else f"{len(record.key)} bytes"
        raise CorruptRecord("a control record key of at least 4 bytes", got)
    version, type_id = _SHORT_PAIR.unpack_from(record.key)
    if version < 0:
        raise CorruptRecord("a control record key version of at least 0", version)
    name, message, payload_name = _TYPES.get(type_id, ("UNKNOWN", "", ""))
    if type_id in (0, 1):
        return f" endTxnMarker: {name} coordinatorEpoch: {_parse_coordinator_epoch(record)}"
    if not message or (type_id == 2 and not is_four):
        return f" controlType: {name}({type_id})"
    return f" {payload_name} {_json(record, message)}"


def parse_control(record: Record) -> tuple[str, int | None]:
    """Return a control record's type and, for a transaction marker, its coordinator epoch.

    The type is UNKNOWN without a readable key; the epoch is None for all other types.
    """
    if record.key is None or len(record.key) < 4:
        return "UNKNOWN", None
    _, type_id = _SHORT_PAIR.unpack_from(record.key)
    name, _, _ = _TYPES.get(type_id, ("UNKNOWN", "", ""))
    return name, _parse_coordinator_epoch(record) if type_id in (0, 1) else None


def _parse_coordinator_epoch(record: Record) -> int:
    """Return the coordinator epoch in a transaction marker; raises CorruptRecord."""
    if record.value is None or len(record.value) < 6:
        got = "null" if record.value is None else f"{len(record.value)} bytes"
        raise CorruptRecord("a transaction marker value of at least 6 bytes", got)
    version, epoch = _MARKER.unpack_from(record.value)
    if version < 0:
        raise CorruptRecord("a transaction marker version of at least 0", version)
    return int(epoch)


def _json(record: Record, message: str) -> str:
    """Return the value of a control record as JSON, decoded by the schema of `message`."""
    from engine.wire.record_decoders import format_control_record

    return str(format_control_record(message, record.value))
