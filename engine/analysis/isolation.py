"""What a read_committed consumer would not be given: aborted records, and all from the first
transaction on that is still open.

One pass over the batches of each partition, in order, by Kafka's rule for transactions; the
indexes are not trusted with it. Damaged batches end no transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import groupby
from typing import Any

from engine.analysis.batch_reader import SplitReader
from engine.analysis.splits import Split, decode_splits, encode_splits
from engine.errors import CorruptRecord, EngineError
from engine.host.ports import Files
from engine.host.real import RealFiles
from engine.log.transactions_seen import TransactionsSeen

ISOLATION_LEVELS = ("read_uncommitted", "read_committed")


class UnknownIsolation(EngineError):
    """An isolation level was asked for that does not exist."""

    exit_code = 2

    def __init__(self, name: str) -> None:
        super().__init__(f"--isolation {name}: expected read_uncommitted or read_committed")
        self.name = name


def check_isolation(name: str) -> str:
    """Return the level; raises UnknownIsolation."""
    if name not in ISOLATION_LEVELS:
        raise UnknownIsolation(name)
    return name


def committed_only(files: Files, splits: list[Split]) -> list[Split]:
    """Return the splits of one partition, told what a read_committed consumer is not given."""
    seen = TransactionsSeen()
    aborted: list[tuple[int, int, int]] = []
    for split in splits:
        with closing(files.open(split.path)) as file:
            for _, batch, _ in SplitReader(file, split).batches():
                try:
                    ended = seen.see(batch)
                except CorruptRecord:
                    continue
                if ended is not None and ended.aborted is not None:
                    transaction = ended.aborted
                    aborted.append(
                        (transaction.producer_id, transaction.first_offset, transaction.last_offset)
                    )
    stable = min(seen.open_at.values(), default=None)
    return [split._replace(aborted=tuple(aborted), end_offset=stable) for split in splits]


def partitions_of(splits: Iterable[Split]) -> list[list[Split]]:
    """Return the splits of each partition in a list of their own."""
    return [
        list(of_partition)
        for _, of_partition in groupby(splits, key=lambda s: (s.topic, s.partition))
    ]


def committed_on_spark(session: Any, splits: list[Split]) -> list[Split]:
    """Do the same for all partitions, each in a task of its own."""
    context = session.sparkContext
    groups = [(encode_splits(group),) for group in partitions_of(splits)]
    frame = session.createDataFrame(context.parallelize(groups, len(groups)), "splits string")
    rows = frame.mapInArrow(_map_committed, "splits string").collect()
    return [split for row in rows for split in decode_splits(row["splits"])]


def _map_committed(groups: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    for batch in groups:
        for row in batch.to_pylist():
            committed = committed_only(RealFiles(), decode_splits(row["splits"]))
            yield pa.RecordBatch.from_pydict({"splits": [encode_splits(committed)]})


def is_hidden(split: Split, producer_id: int, last_offset: int, is_transactional: bool) -> bool:
    """Tell whether a data batch is kept from the reader of this split."""
    if split.end_offset is not None and last_offset >= split.end_offset:
        return True
    return is_transactional and any(
        pid == producer_id and first <= last_offset <= last for pid, first, last in split.aborted
    )
