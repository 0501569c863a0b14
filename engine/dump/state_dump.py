"""Dumps `.snapshot` (producer state) and `.txnindex` files.

```
snapshot   int16 version | uint32 crc of all from byte 6 on | int32 count | count x 46 bytes
entry      int64 producer id | int16 epoch | int32 last sequence | int64 last offset
           int32 offset delta | int64 timestamp | int32 coordinator epoch | int64 txn start
txnindex   34-byte entries: int16 version | int64 producer id, first, last, last stable offset
```

Source: DumpLogSegments.dumpProducerIdSnapshot and dumpTxnIndex, ProducerStateManager,
TransactionIndex.
"""

from __future__ import annotations

import struct

from engine.dump.file_names import base_offset_of
from engine.dump.output import Output
from engine.errors import CorruptFile
from engine.host.ports import Files
from engine.records.crc import crc32c
from engine.records.record import decrement_sequence

_HEAD = struct.Struct(">hIi")
_PRODUCER = struct.Struct(">qhiqiqiq")
# Kafka reads one byte of the version.
_ABORTED = struct.Struct(">bxqqqq")
_ENTRIES_POSITION = 6


def dump_producer_snapshot(files: Files, path: str, out: Output, is_four: bool) -> str | None:
    """Print a producer snapshot's entries; return what is wrong with a damaged one, else None."""
    raw = files.read_bytes(path)
    fault = _check_snapshot(raw)
    if fault is not None:
        return fault
    _, _, count = _HEAD.unpack_from(raw)
    for producer in _PRODUCER.iter_unpack(raw[_HEAD.size : _HEAD.size + count * _PRODUCER.size]):
        out.line(_format_producer(producer, is_four))
    return None


def _check_snapshot(raw: bytes) -> str | None:
    """Return Kafka's message for a snapshot that it cannot load, None for a valid one."""
    if len(raw) < _HEAD.size:
        return f"Snapshot failed schema validation: {len(raw)} bytes hold no header"
    version, stored, count = _HEAD.unpack_from(raw)
    left = len(raw) - _HEAD.size
    if count < 0 or count * _PRODUCER.size > left:
        return f"Snapshot failed schema validation: {count} producers in {left} bytes"
    if version != 1:
        return f"Snapshot contained an unknown file version {version}"
    computed = crc32c(memoryview(raw)[_ENTRIES_POSITION:])
    if stored != computed:
        return (
            "Snapshot is corrupt (CRC is no longer valid)."
            f" Stored crc: {stored}. Computed crc: {computed}"
        )
    return None


def _format_producer(producer: tuple[int, ...], is_four: bool) -> str:
    """Return the line that Kafka 4.3 (`is_four`) or 3.9 prints for a producer's entry."""
    pid, epoch, sequence, offset, delta, timestamp, coordinator, txn = producer
    started = f"OptionalLong[{txn}]" if txn >= 0 else "OptionalLong.empty"
    line = (
        f"producerId: {pid} producerEpoch: {epoch} coordinatorEpoch: {coordinator}"
        f" currentTxnFirstOffset: {started} lastTimestamp: {timestamp}"
    )
    if offset < 0:
        # Kafka 3.9 prints a blank in place of the last batch.
        return line if is_four else line + " "
    first = decrement_sequence(sequence, delta)
    return (
        f"{line} firstSequence: {first} lastSequence: {sequence}"
        f" lastOffset: {offset} offsetDelta: {delta} timestamp: {timestamp}"
    )


def dump_txn_index(files: Files, path: str, out: Output) -> None:
    """Print the entries of a transaction index; a missing file counts as an empty one.

    Raises CorruptFile, before anything is printed, for an entry of an unknown version.
    """
    base_offset_of(path)
    if not files.exists(path):
        return
    raw = files.read_bytes(path)
    whole = len(raw) // _ABORTED.size * _ABORTED.size
    entries = list(_ABORTED.iter_unpack(raw[:whole]))
    for n, (version, *_) in enumerate(entries):
        if version > 0:
            raise CorruptFile(path, "version 0", version, position=n * _ABORTED.size)
    for version, pid, first, last, stable in entries:
        out.line(
            f"version: {version} producerId: {pid} firstOffset: {first}"
            f" lastOffset: {last} lastStableOffset: {stable}"
        )
