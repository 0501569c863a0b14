"""Hide records from read_committed readers.

Aborted ones, and all from the first open transaction on.

One pass reads the batches of each partition in order, by Kafka's rule for transactions. The
transaction index is read only where damage may have taken a marker (`transactions.py`). Records of
transactions that remain undecided are hidden and reported.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from engine.analysis.batch_reader import SplitReader
from engine.analysis.problem import Problem
from engine.analysis.spark_tasks import frame_of_tasks
from engine.analysis.spark_thread import on_spark_thread
from engine.analysis.splits import Split, decode_splits, encode_splits
from engine.analysis.transactions import Hidden, Outcome, PartitionTransactions
from engine.errors import EngineError, StorageError
from engine.host.ports import Files
from engine.host.source_files import SourceFiles
from engine.log.txn_index import AbortedTransaction, read_txn_index
from engine.naming import FileKind
from engine.native.batch_runs import BatchRun
from engine.records.batch_header import CONTROL_FLAG, TRANSACTIONAL_FLAG

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

ISOLATION_LEVELS = ("read_uncommitted", "read_committed")


class UnknownIsolation(EngineError):
    """The text of `--isolation` is not an isolation level."""

    exit_code = 2

    def __init__(self, name: str) -> None:
        super().__init__(f"--isolation {name}: expected read_uncommitted or read_committed")
        self.name = name


class Committed(NamedTuple):
    """Splits with their hidden ranges, and the problems of undecided transactions."""

    splits: list[Split]
    problems: list[Problem]


def check_isolation(name: str) -> str:
    """Return the isolation level's name unchanged; raises UnknownIsolation."""
    if name not in ISOLATION_LEVELS:
        raise UnknownIsolation(name)
    return name


def hide_uncommitted(files: Files, splits: list[Split]) -> Committed:
    """Return a partition's splits, marked with what read_committed readers must not see.

    That is aborted ranges, and the offsets from the last stable offset on. `splits` are all of the
    partition, in order.
    """
    read = _read(files, splits)
    if read.is_compacted and read.outcome.has_doubts:
        # Gaps before the first sign of compaction were taken for damage: read again without that.
        read = _read(files, [split._replace(is_compacted=True) for split in splits])
    found = [
        split._replace(
            aborted=tuple((*piece,) for piece in _hidden_between(read.outcome.hidden, first, end)),
            end_offset=read.outcome.stable_offset,
        )
        for split, (first, end) in zip(splits, read.ranges, strict=True)
    ]
    return Committed(found, _problems(read.outcome, splits[0], read.paths))


class _Read(NamedTuple):
    """Result of one pass over a partition; `ranges` are each split's offsets [first, end)."""

    outcome: Outcome
    ranges: list[tuple[int, int]]
    paths: list[str]
    is_compacted: bool


def _read(files: Files, splits: list[Split]) -> _Read:
    """Read all batches of a partition, in order, and decide which transactions were aborted.

    Also returns the offsets [first, end) of each split, and whether the log is compacted.
    """
    transactions = PartitionTransactions()
    ranges: list[tuple[int, int]] = []
    paths: list[str] = []
    is_compacted = False
    for split in splits:
        if split.path not in paths:
            paths.append(split.path)
            transactions.enter(split.base_offset, _read_txn_index(files, split))
        with closing(files.open(split.path)) as file:
            reader = SplitReader(file, split)
            seen = 0
            for position, batch, _ in reader.batches():
                seen = _see_damages(transactions, reader, seen)
                is_compacted = is_compacted or reader.is_compacted
                transactions.see(position, batch, is_compacted=is_compacted)
            _see_damages(transactions, reader, seen)
            ranges.append((reader.span.first_offset or 0, reader.span.next_offset or 0))
    return _Read(transactions.finish(), ranges, paths, is_compacted)


def _see_damages(transactions: PartitionTransactions, reader: SplitReader, seen: int) -> int:
    """Pass the reader's damages from index `seen` on to `transactions`; return the number of all.

    They may have held a marker that ends a transaction.
    """
    for position, may_be_marker in reader.damages[seen:]:
        transactions.see_damage(position, may_be_marker=may_be_marker)
    return len(reader.damages)


def _read_txn_index(files: Files, split: Split) -> tuple[AbortedTransaction, ...] | None:
    """Return the entries of a segment's transaction index; None if it is missing or incomplete."""
    path = split.path.removesuffix(FileKind.LOG.value) + FileKind.TXNINDEX.value
    try:
        index = read_txn_index(files, path)
    except StorageError:
        return None
    return None if index.leftover_bytes else index.entries


def _hidden_between(hidden: Iterable[Hidden], first: int, end: int) -> Iterator[Hidden]:
    """Yield the hidden ranges that overlap the offsets [first, end)."""
    for piece in hidden:
        if piece.last_offset >= first and piece.first_offset < end:
            yield piece


def _problems(outcome: Outcome, split: Split, paths: list[str]) -> list[Problem]:
    """Return a problem for each part of a transaction whose marker may be in damaged bytes."""
    return [
        Problem(
            split.topic,
            split.partition,
            paths[damage.segment],
            damage.position,
            0,
            "undecided",
            f"the end of the transaction of producer {piece.producer_id} may be in these damaged"
            f" bytes: its records at offsets {piece.first_offset} to {piece.last_offset} are left"
            " out",
        )
        for piece, damage in outcome.undecided
    ]


def partitions_of(splits: Iterable[Split]) -> list[list[Split]]:
    """Return the splits in a list for each partition; those of one partition are consecutive."""
    return [
        list(of_partition)
        for _, of_partition in groupby(splits, key=lambda s: (s.topic, s.partition))
    ]


def hide_uncommitted_here(files: Files, splits: list[Split]) -> Committed:
    """Mark what read_committed hides in the splits of all partitions, in this process."""
    found = [hide_uncommitted(files, of_partition) for of_partition in partitions_of(splits)]
    return Committed(
        [split for committed in found for split in committed.splits],
        [problem for committed in found for problem in committed.problems],
    )


def hide_uncommitted_on_spark(session: SparkSession, splits: list[Split]) -> Committed:
    """Mark what read_committed hides in the splits, each partition in its own Spark task."""
    groups = [(encode_splits(group),) for group in partitions_of(splits)]
    frame = frame_of_tasks(session, groups, "splits string")
    found = frame.mapInArrow(_map_committed, "splits string, problems string")
    rows = on_spark_thread(session, found.collect)
    return Committed(
        [split for row in rows for split in decode_splits(row["splits"])],
        [Problem(*fields) for row in rows for fields in json.loads(row["problems"])],
    )


def _map_committed(groups: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Apply `hide_uncommitted` to each row's splits, in a Spark task (`mapInArrow`)."""
    import pyarrow as pa

    for batch in groups:
        for row in batch.to_pylist():
            committed = hide_uncommitted(SourceFiles(), decode_splits(row["splits"]))
            yield pa.RecordBatch.from_pydict(
                {
                    "splits": [encode_splits(committed.splits)],
                    "problems": [json.dumps(committed.problems)],
                }
            )


class HiddenRecords:
    """Decides which batches of a split are hidden from a read_committed reader."""

    def __init__(self, split: Split) -> None:
        """Prepare to decide which batches of a split read_committed hides.

        `hide_uncommitted` has set its hidden ranges and its end.
        """
        #: Last stable offset; None if readers get uncommitted records too.
        self._end_offset = split.end_offset
        #: First and last offsets of the aborted ranges of each producer id, both ascending.
        self._firsts: dict[int, list[int]] = {}
        self._lasts: dict[int, list[int]] = {}
        # Ranges of one producer do not overlap, so both lists are ascending.
        for producer_id, first, last in sorted(split.aborted, key=lambda piece: piece[2]):
            self._firsts.setdefault(producer_id, []).append(first)
            self._lasts.setdefault(producer_id, []).append(last)

    def pass_over(self, run: BatchRun) -> None:
        """Mark the hidden batches of a run as not to be read."""
        if self._end_offset is None and not self._lasts:
            return
        fields = ("producer_id", "base_offset", "last_delta", "attributes")
        batches = zip(*map(run.field, fields), strict=True)
        for number, (producer_id, base_offset, last_delta, attributes) in enumerate(batches):
            is_data = attributes & (TRANSACTIONAL_FLAG | CONTROL_FLAG) == TRANSACTIONAL_FLAG
            if self.has(producer_id, base_offset + last_delta, is_transactional=is_data):
                run.pass_over(number)

    def has(self, producer_id: int, last_offset: int, *, is_transactional: bool) -> bool:
        """Return True if the batch of a producer that ends at `last_offset` is hidden.

        `is_transactional` is True for transactional data batches, False for control batches.
        """
        if self._end_offset is not None and last_offset >= self._end_offset:
            return True
        if not is_transactional or producer_id not in self._lasts:
            return False
        number = bisect_left(self._lasts[producer_id], last_offset)
        firsts = self._firsts[producer_id]
        return number < len(firsts) and firsts[number] <= last_offset
