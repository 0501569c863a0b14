"""`<base offset>.txnindex`: the aborted transactions whose ABORT marker is in the segment.

```
entry (34 bytes)   int16 version 0   int64 producerId   int64 firstOffset   int64 lastOffset
                   int64 lastStableOffset
```

`lastOffset` is the marker's offset, `lastStableOffset` the last stable offset right after the
abort. The file is created for the first aborted transaction. Entries rise by `lastOffset`, but not
necessarily by `firstOffset`.

Source: Kafka's TransactionIndex and AbortedTxn.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.errors import CorruptFile
from engine.host.ports import Buffer, Files
from engine.limits import SIDE_FILE_BYTES_MAX
from engine.log.directory.small_file import read_small_file

#: Bytes of one entry.
ENTRY_BYTES = 34
#: The only existing version.
VERSION = 0

_ENTRY = struct.Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    """One aborted transaction; `first_offset` and `last_offset` (the marker's) are inclusive."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int
    version: int = VERSION


class TransactionIndex(NamedTuple):
    """The entries of one .txnindex file, and the bytes of an incomplete entry at its end."""

    entries: tuple[AbortedTransaction, ...]
    leftover_bytes: int = 0

    def find_problem(self, base_offset: int) -> str | None:
        """Return the problem that Kafka's sanity check finds, None for a sound index."""
        for transaction in self.entries:
            if transaction.last_offset < base_offset:
                return (
                    f"last offset {transaction.last_offset} is below the base offset {base_offset}"
                )
        return None


def parse_txn_index(content: Buffer, path: str) -> TransactionIndex:
    """Return the entries of a file's content; raises CorruptFile for an unknown version.

    An incomplete last entry is ignored, as brokers do.
    """
    whole = len(content) - len(content) % ENTRY_BYTES
    entries: list[AbortedTransaction] = []
    for version, *fields in _ENTRY.iter_unpack(memoryview(content)[:whole]):
        if version != VERSION:
            position = len(entries) * ENTRY_BYTES
            raise CorruptFile(path, f"version {VERSION}", version, position=position)
        entries.append(AbortedTransaction._make((*fields, version)))
    return TransactionIndex(tuple(entries), len(content) - whole)


def encode_txn_index(entries: Iterable[AbortedTransaction]) -> bytes:
    """Return the content of a .txnindex file with these entries, in this order."""
    return b"".join(
        _ENTRY.pack(
            transaction.version,
            transaction.producer_id,
            transaction.first_offset,
            transaction.last_offset,
            transaction.last_stable_offset,
        )
        for transaction in entries
    )


def read_txn_index(files: Files, path: str) -> TransactionIndex:
    """Return the entries of the .txnindex file at `path`; raises CorruptFile."""
    return parse_txn_index(read_small_file(files, path, SIDE_FILE_BYTES_MAX), path)


def find_aborted(
    entries: Sequence[AbortedTransaction], start_offset: int, end_offset: int
) -> tuple[list[AbortedTransaction], bool]:
    """Return (the aborted transactions that overlap [start, end), True if the search is complete).

    It is complete if an entry's last stable offset is at or above the end: later segments have no
    further entry. Source: TransactionIndex.collectAbortedTxns.
    """
    aborted = []
    for transaction in entries:
        if transaction.last_offset >= start_offset and transaction.first_offset < end_offset:
            aborted.append(transaction)
        if transaction.last_stable_offset >= end_offset:
            return aborted, True
    return aborted, False
