"""Reading of epochs, batches and file ends of a replica's log from outside the broker."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from engine.host.memory import MemoryFile
from engine.log.directory.leader_epoch_checkpoint import EpochStart
from engine.records.batch import BatchView
from engine.replication.partition import Partition
from engine.sim.records import BatchId, batches, id_of


def epochs_rise(epochs: Sequence[EpochStart], log_end_offset: int) -> bool:
    """Return True if epochs and start offsets increase strictly, up to the log end offset."""
    return all(
        one.epoch < next_.epoch and one.start_offset < next_.start_offset
        for one, next_ in pairwise(epochs)
    ) and not (epochs and epochs[-1].start_offset > log_end_offset)


def content_ids(
    partition: Partition, start: int | None = None, end: int | None = None
) -> list[BatchId]:
    """Return the identities of a replica's batches in [start, end).

    None means from its log start offset, or to its log end offset.
    """
    return [id_of(batch) for batch in content_batches(partition, start, end)]


def content_batches(
    partition: Partition, start: int | None = None, end: int | None = None
) -> list[BatchView]:
    """Return a replica's batches in [start, end); None means from its start, to its end."""
    log = partition.log
    first = log.log_start_offset if start is None else max(start, log.log_start_offset)
    if first >= log.log_end_offset:
        return []
    contents: list[BatchView] = []
    bound = log.log_end_offset if end is None else end
    while first < bound:
        found = log.read(first, 1 << 30, bound)
        more = [batch for batch in batches(found.read()) if batch.base_offset < bound]
        found.release()
        if not more:
            break
        contents += more
        first = more[-1].last_offset + 1
    return contents


def file_end(partition: Partition) -> int:
    """Return the end offset of the last batch in the last segment's file; its base offset if empty.

    It equals the log end offset, except after a process ended during a truncation of the file. A
    process that ended while it replaced all segments may leave none: then 0 is returned.
    """
    segments = partition.log.segments
    if not segments:
        return 0
    last = segments.active
    assert isinstance(last.file, MemoryFile), last.file
    content = batches(last.file.peek())
    return max((batch.last_offset + 1 for batch in content), default=last.base_offset)
