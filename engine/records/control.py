"""Control records: transaction markers, and the control records of KRaft.

```
key                  int16 version 0 | int16 type
value of 0 and 1     int16 version 0 | int32 coordinator epoch
value of 2 and above a message of KRaft's schemas, returned undecoded
```

A batch of control records has the control bit; a transaction marker is one record in a batch of 78
bytes with the transactional bit, without a sequence. Versions above 0 are decoded as 0, as in
Kafka. Source: `ControlRecordType`, `EndTransactionMarker`.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from engine.errors import CorruptRecord
from engine.records.batch_header import HEADER_BYTES
from engine.records.builder import BatchBuilder, BatchRefused, BatchSettings, assemble_batch
from engine.records.record import Record

#: Size of a batch with a transaction marker.
MARKER_BATCH_BYTES = 78

_KEY = struct.Struct(">hh")
_END_VALUE = struct.Struct(">hi")
#: A marker's only record: its length, attributes, deltas and size of the key; the key; the size of
#: the value; the value; no headers.
_MARKER_RECORD = struct.Struct(">5shhBhiB")
_MARKER_START, _VALUE_SIZE, _NO_HEADERS = b"\x20\x00\x00\x00\x08", 12, 0
_VERSION = 0


class ControlType(IntEnum):
    """Types of control records."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTransactionMarker(NamedTuple):
    """The end of a transaction.

    ABORT or COMMIT, and the epoch of the coordinator that decided it.
    """

    control_type: ControlType
    coordinator_epoch: int


_TYPES = {int(kind): kind for kind in ControlType}
_ENDS = (ControlType.ABORT, ControlType.COMMIT)


def control_type_id(record: Record) -> int:
    """Return the number of a control record's type, even if unknown; raises CorruptRecord."""
    key = record.key or b""
    if len(key) < _KEY.size:
        raise CorruptRecord(f"a control record key of {_KEY.size} bytes", f"{len(key)} bytes")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise CorruptRecord("a control record version from 0", version)
    return int(number)


def control_type(record: Record) -> ControlType:
    """Return a control record's type, UNKNOWN for a number of a later Kafka.

    Raises CorruptRecord.
    """
    return _TYPES.get(control_type_id(record), ControlType.UNKNOWN)


def parse_marker(record: Record) -> EndTransactionMarker:
    """Return the ABORT or COMMIT marker in a control record.

    Raises CorruptRecord for other types.
    """
    kind = control_type(record)
    if kind not in _ENDS:
        raise CorruptRecord("an ABORT or COMMIT record", kind.name)
    value = record.value or b""
    if len(value) < _END_VALUE.size:
        raise CorruptRecord(f"a marker of {_END_VALUE.size} bytes", f"{len(value)} bytes")
    version, coordinator_epoch = _END_VALUE.unpack_from(value)
    if version < 0:
        raise CorruptRecord("a marker version from 0", version)
    return EndTransactionMarker(kind, coordinator_epoch)


def read_marker(batch: memoryview) -> EndTransactionMarker | None:
    """Return the marker in a control batch of exactly the form that `build_marker` writes.

    None for a control batch of any other form, which `parse_marker` reads record by record.
    """
    if len(batch) != MARKER_BATCH_BYTES:
        return None
    start, key_version, kind, size, version, coordinator_epoch, headers = (
        _MARKER_RECORD.unpack_from(batch, HEADER_BYTES)
    )
    if (start, key_version, size, version, headers) != (
        _MARKER_START,
        _VERSION,
        _VALUE_SIZE,
        _VERSION,
        _NO_HEADERS,
    ) or kind not in _ENDS:
        return None
    return EndTransactionMarker(_TYPES[kind], coordinator_epoch)


def control_key(kind: ControlType) -> bytes:
    """Return the key of a control record; raises BatchRefused for UNKNOWN."""
    if kind is ControlType.UNKNOWN:
        raise BatchRefused("a known control record type", kind.name)
    return _KEY.pack(_VERSION, kind)


def build_marker(
    marker: EndTransactionMarker,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """Return the batch that ends a producer's transaction in one partition."""
    if marker.control_type not in _ENDS:
        raise BatchRefused("ABORT or COMMIT", marker.control_type.name)
    settings = BatchSettings(
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
        leader_epoch=leader_epoch,
    )
    settings.check()
    record = _MARKER_RECORD.pack(
        _MARKER_START,
        _VERSION,
        marker.control_type,
        _VALUE_SIZE,
        _VERSION,
        marker.coordinator_epoch,
        _NO_HEADERS,
    )
    return assemble_batch(
        settings,
        last_offset=base_offset,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        record_count=1,
        payload=record,
    )


def build_control_batch(
    kind: ControlType,
    value: bytes,
    *,
    timestamp_ms: int,
    base_offset: int = 0,
    leader_epoch: int = -1,
) -> bytearray:
    """Return a batch of one KRaft control record with this encoded value."""
    settings = BatchSettings(base_offset=base_offset, is_control=True, leader_epoch=leader_epoch)
    builder = BatchBuilder(settings)
    builder.append(timestamp_ms, control_key(kind), value)
    return builder.build()
