"""Logs to write to, in memory, and what producers send."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from engine.host.memory import MemoryFiles
from engine.host.ports import Files
from engine.log.batch_scan import scan_batches
from engine.log.local_log import LocalLog
from engine.log.log_config import LogConfig
from engine.log.recovery.loader import LoadReport, LoadRequest, load_log
from engine.log.tasks import InlineTasks, LogHooks
from engine.model import TopicPartition
from engine.naming import FileKind
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.control import ControlType, EndTransactionMarker, build_marker
from engine.replication.fetched_append import append_fetched
from tests.unit.log.hooks import hooks_of

DIR = "/data/t-0"
PARTITION = TopicPartition("t", 0)
NOW_MS = 1_700_000_000_000
SMALL = LogConfig(segment_bytes=600, index_interval_bytes=100, segment_index_bytes=1 << 10)


def sent(
    count: int = 1, *, value: bytes = b"v" * 10, at_ms: int = NOW_MS, **more: Any
) -> memoryview:
    """Return a batch as a producer sends it, its records 1 ms apart."""
    builder = BatchBuilder(BatchSettings(**more))
    for number in range(count):
        builder.append(at_ms + number, b"k%d" % number, value)
    return memoryview(builder.build())


def sent_by(producer_id: int, sequence: int, count: int = 1, **more: Any) -> memoryview:
    """Return a batch of an idempotent producer."""
    more.setdefault("producer_epoch", 0)
    return sent(count, producer_id=producer_id, base_sequence=sequence, **more)


def end_of_transaction(
    producer_id: int, kind: ControlType = ControlType.ABORT, *, epoch: int = 0, by: int = 0
) -> memoryview:
    """Return a marker as a coordinator sends it."""
    marker = EndTransactionMarker(kind, by)
    return memoryview(
        build_marker(marker, producer_id=producer_id, producer_epoch=epoch, timestamp_ms=NOW_MS)
    )


def open_log(
    files: Files,
    config: LogConfig = SMALL,
    hooks: LogHooks | None = None,
    *,
    directory: str = DIR,
    **known: Any,
) -> tuple[LocalLog, LoadReport]:
    """Open the log of DIR, which is made if it is not there."""
    files.make_dir(directory)
    request = LoadRequest(directory, PARTITION, config, NOW_MS, **known)
    return load_log(files, request, hooks or hooks_of())


def new_log(config: LogConfig = SMALL, tasks: InlineTasks | None = None) -> LocalLog:
    """Return an empty log on a disk of its own."""
    return open_log(MemoryFiles(), config, hooks_of(tasks))[0]


def fill(log: LocalLog, counts: Iterable[int], *, epoch: int = 0) -> None:
    """Append batches with these numbers of records."""
    for count in counts:
        log.append_as_leader(sent(count), epoch, NOW_MS)


def log_that_lost_its_end(count: int, end_offset: int) -> LocalLog:
    """Return a log of `count` records whose end is farther on: what came between was cleaned away.

    What superseded that was cut off.
    """
    log, source = new_log(), new_log()
    if count:
        fill(log, [count])
    source.restart_at(end_offset, NOW_MS)
    fill(source, [1])
    append_fetched(log, memoryview(batches_of(source)[0][1]), NOW_MS)
    log.truncate_to(end_offset, NOW_MS)
    return log


def batches_of(log: LocalLog) -> list[tuple[int, bytes]]:
    """Return (base offset, bytes) of every batch that readers see."""
    found = []
    for segment in log.segments:
        for _, batch in scan_batches(segment.file):
            if batch.last_offset >= log.log_start_offset:
                found.append((batch.base_offset, bytes(batch.raw)))
    return found


def names(files: Files, directory: str = DIR, kind: FileKind | None = None) -> list[str]:
    """Return the names in a directory, or those of one kind."""
    found = files.list_dir(directory)
    return [name for name in found if kind is None or name.endswith(kind.value)]


def image(files: Files, path: str = "") -> tuple[tuple[str, bytes | None], ...]:
    """Return all that is on a disk, to tell whether two crashes left the same."""
    found: list[tuple[str, bytes | None]] = []
    for name in files.list_dir(path or "/"):
        whole = f"{path}/{name}"
        if files.is_dir(whole):
            found += [(whole, None), *image(files, whole)]
        else:
            found.append((whole, files.read_bytes(whole)))
    return tuple(found)
