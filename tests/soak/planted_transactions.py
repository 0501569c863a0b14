"""Transactions written into the logs of brokers that are stopped, as a leader would have done it.

```
one planting    a  c  b  a  c  b   A   B          a: is aborted, b: is committed
the next                        C  a  c  b …      c: is committed there; until then it is open
```

Every replica gets the same bytes at the same offsets, in the epoch of the last leader.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from engine.host.real import RealFiles
from engine.log.directory import clean_shutdown
from engine.log.directory.leader_epoch_checkpoint import (
    FILE_NAME,
    EpochStart,
    assign_epoch,
    encode_leader_epochs,
    read_leader_epochs,
)
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec
from engine.records.control import ControlType, EndTransactionMarker, build_marker
from engine.sim.records import batches
from tests.soak.keyed_partition import KeyedPartition, value_of
from tests.soak.keyed_writer import NUMBER

#: Far above what a cluster hands out here.
_FIRST_PRODUCER_ID = 1_000_000
_BATCHES, _RECORDS, _KEYS = 4, 8, 200


class _Transaction(NamedTuple):
    """One that is under way."""

    producer_id: int
    is_aborted: bool
    #: Its first record.
    first_number: int


class PlantedTransactions:
    """The transactions of one partition, over all plantings."""

    def __init__(self, partition: KeyedPartition, seed: int) -> None:
        self._partition = partition
        self._random = random.Random(seed)
        self._open: _Transaction | None = None
        self._next_producer_id = _FIRST_PRODUCER_ID
        self.committed_count = 0
        self.aborted_count = 0

    @property
    def stable_end(self) -> int:
        """Return the number behind the last record that consumers of committed ones may see."""
        if self._open is not None:
            return self._open.first_number
        return len(self._partition.records)

    @property
    def last_stable_offset(self) -> int:
        """Return up to which offset they come."""
        if self._open is not None:
            return self._partition.offset_of(self._open.first_number)
        return self._partition.end_offset

    def plant(self, replicas: Sequence[Path], *, is_last: bool = False) -> None:
        """Write transactions into the files of all replicas; the last planting leaves none open."""
        ends = {path: _end_offset(path) for path in replicas}
        wanted = self._partition.end_offset
        assert set(ends.values()) == {wanted}, f"ends {ends}, not {wanted}"
        epoch = max(_epochs(path)[-1].epoch for path in replicas)
        content = b"".join(self._content(epoch, is_last=is_last))
        for path in replicas:
            files = RealFiles()
            epochs = assign_epoch(_epochs(path), EpochStart(epoch, wanted))
            files.replace_file(str(path / FILE_NAME), encode_leader_epochs(epochs))
            with _active(path).open("ab") as log:
                log.write(content)
            # A start that trusts what is there would not look for aborted transactions in it.
            (path.parent / clean_shutdown.FILE_NAME).unlink(missing_ok=True)

    def _content(self, epoch: int, *, is_last: bool) -> list[bytes]:
        found = []
        if self._open is not None:
            found.append(self._end(self._open, epoch))
            self._open = None
        if is_last:
            return found
        started = [self._begin(is_aborted=is_aborted) for is_aborted in (True, False, False)]
        firsts: dict[int, int] = {}
        for number in range(_BATCHES):
            for transaction in started:
                firsts.setdefault(transaction.producer_id, len(self._partition.records))
                found.append(self._batch(transaction, number * _RECORDS, epoch))
        found += [self._end(transaction, epoch) for transaction in started[:2]]
        (_, _, last) = started
        self._open = last._replace(first_number=firsts[last.producer_id])
        return found

    def _begin(self, *, is_aborted: bool) -> _Transaction:
        self._next_producer_id += 1
        return _Transaction(self._next_producer_id, is_aborted, len(self._partition.records))

    def _batch(self, transaction: _Transaction, base_sequence: int, epoch: int) -> bytes:
        partition, now_ms = self._partition, int(time.time() * 1000)
        builder = BatchBuilder(
            BatchSettings(
                base_offset=partition.end_offset,
                codec=self._random.choice((Codec.NONE, Codec.LZ4, Codec.ZSTD)),
                producer_id=transaction.producer_id,
                producer_epoch=0,
                base_sequence=base_sequence,
                is_transactional=True,
                leader_epoch=epoch,
            )
        )
        for _ in range(_RECORDS):
            key = b"key-%d" % self._random.randrange(_KEYS)
            is_tombstone = self._random.random() < 0.1
            number = partition.add(key, now_ms, is_tombstone=is_tombstone)
            if transaction.is_aborted:
                partition.aborted.add(number)
            value = None if is_tombstone else value_of(number)
            builder.append(now_ms, key, value, ((NUMBER, b"%d" % number),))
        return bytes(builder.build())

    def _end(self, transaction: _Transaction, epoch: int) -> bytes:
        kind = ControlType.ABORT if transaction.is_aborted else ControlType.COMMIT
        self.aborted_count += transaction.is_aborted
        self.committed_count += not transaction.is_aborted
        offset = self._partition.end_offset
        self._partition.add_marker()
        return bytes(
            build_marker(
                EndTransactionMarker(kind, 0),
                producer_id=transaction.producer_id,
                producer_epoch=0,
                timestamp_ms=int(time.time() * 1000),
                base_offset=offset,
                leader_epoch=epoch,
            )
        )


def _active(partition: Path) -> Path:
    return max(partition.glob("*.log"))


def _epochs(partition: Path) -> tuple[EpochStart, ...]:
    return read_leader_epochs(RealFiles(), str(partition / FILE_NAME))


def _end_offset(partition: Path) -> int:
    path = _active(partition)
    ends = [batch.last_offset + 1 for batch in batches(path.read_bytes())]
    return ends[-1] if ends else int(path.stem)
