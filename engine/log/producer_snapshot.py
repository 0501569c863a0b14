"""`<offset>.snapshot`: the state of every producer up to an offset (exclusive).

```
file             int16 version 1   uint32 CRC-32C of byte 6 … end   int32 count   count entries
entry (46 bytes) int64 producerId   int16 epoch   int32 lastSequence   int64 lastOffset
                 int32 offsetDelta   int64 timestamp   int32 coordinatorEpoch (−1 none)
                 int64 currentTxnFirstOffset (−1 none)
```

Only the last batch of a producer is stored; a producer that has written no batch in its epoch has
lastSequence and lastOffset −1.

Source: Kafka's ProducerStateManager.readSnapshot and writeSnapshot.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from engine.errors import CorruptFile
from engine.host.ports import Buffer, Files
from engine.limits import SIDE_FILE_BYTES_MAX
from engine.log.directory.small_file import read_small_file
from engine.records.crc import crc32c

#: The only existing version.
VERSION = 1
#: Bytes of one producer's entry.
ENTRY_BYTES = 46

_HEADER = struct.Struct(">hIi")
_ENTRY = struct.Struct(">qhiqiqiq")
_CRC_FROM = 6
_SEQUENCES = 1 << 31


class SnapshotCrcMismatch(CorruptFile):
    """The CRC in a producer snapshot differs from the CRC of its bytes."""

    def __init__(self, path: str, stored_crc: int, computed_crc: int) -> None:
        super().__init__(path, f"CRC {stored_crc}", computed_crc, position=2)
        self.stored_crc = stored_crc
        self.computed_crc = computed_crc


class ProducerEntry(NamedTuple):
    """One producer's state, in the order of the file."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int = -1
    current_txn_first_offset: int = -1

    @property
    def has_batch(self) -> bool:
        """Return True if the entry has the producer's last batch, False with only its epoch."""
        return self.last_offset >= 0

    @property
    def first_sequence(self) -> int:
        """Return the first sequence of the last batch, −1 without one.

        Sequences wrap from 2147483647 to 0.
        """
        if not self.has_batch:
            return -1
        return (self.last_sequence - self.offset_delta) % _SEQUENCES


def parse_producer_snapshot(content: Buffer, path: str) -> tuple[ProducerEntry, ...]:
    """Return the producers in the content of a `.snapshot` file, in its order.

    Raises CorruptFile, or SnapshotCrcMismatch when only the CRC is wrong.
    """
    if len(content) < _HEADER.size:
        raise CorruptFile(path, f"at least {_HEADER.size} bytes", len(content))
    version, stored_crc, count = _HEADER.unpack_from(content)
    if version != VERSION:
        raise CorruptFile(path, f"version {VERSION}", version, position=0)
    room = (len(content) - _HEADER.size) // ENTRY_BYTES
    if not 0 <= count <= room:
        raise CorruptFile(path, f"a count of entries up to {room}", count, position=_CRC_FROM)
    computed_crc = crc32c(memoryview(content)[_CRC_FROM:])
    if stored_crc != computed_crc:
        raise SnapshotCrcMismatch(path, stored_crc, computed_crc)
    end = _HEADER.size + count * ENTRY_BYTES
    entries = _ENTRY.iter_unpack(memoryview(content)[_HEADER.size : end])
    return tuple(ProducerEntry(*fields) for fields in entries)


def encode_producer_snapshot(entries: Sequence[ProducerEntry]) -> bytes:
    """Return the content of a `.snapshot` file with these producers in this order, and a CRC."""
    content = bytearray(_HEADER.size + len(entries) * ENTRY_BYTES)
    _HEADER.pack_into(content, 0, VERSION, 0, len(entries))
    for number, producer in enumerate(entries):
        _ENTRY.pack_into(content, _HEADER.size + number * ENTRY_BYTES, *producer)
    crc = crc32c(memoryview(content)[_CRC_FROM:])
    _HEADER.pack_into(content, 0, VERSION, crc, len(entries))
    return bytes(content)


def read_producer_snapshot(files: Files, path: str) -> tuple[ProducerEntry, ...]:
    """Return the producers in the `.snapshot` file at `path`; raises CorruptFile."""
    return parse_producer_snapshot(read_small_file(files, path, SIDE_FILE_BYTES_MAX), path)
