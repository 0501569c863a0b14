"""The power is cut at every operation of a start: the next start ends where this one would have."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from engine.host.memory import MachineStopped, MemoryFiles
from engine.log.directory.leader_epoch_checkpoint import EpochStart
from engine.log.local_log import LocalLog
from engine.log.log_config import LogConfig
from engine.log.log_reader import collect_aborted
from engine.log.tasks import InlineTasks
from engine.log.txn_index import AbortedTransaction, encode_txn_index
from engine.naming import FileKind
from tests.unit.log.hooks import hooks_of
from tests.unit.log.logs import DIR, batch, data_of, get, log_of, marker_of, name_of, put
from tests.unit.log.writing import batches_of, open_log

CONFIG = LogConfig(index_interval_bytes=100, producer_id_expiration_ms=1 << 50)


def segments() -> MemoryFiles:
    """Return five segments with transactions and epochs."""
    first = b"".join(batch(n) for n in range(4)) + data_of(1, 4)
    second = marker_of(1, 5) + batch(6, 4, epoch=2) + batch(10, epoch=2)
    files = log_of(
        {
            0: first,
            5: second,
            11: batch(11, epoch=2) + batch(12, epoch=2),
            13: batch(13, epoch=2),
            14: batch(14, epoch=2),
        },
        epochs=(EpochStart(0, 0), EpochStart(2, 6)),
    )
    put(files, name_of(5, FileKind.TXNINDEX), encode_txn_index([AbortedTransaction(1, 4, 5, 6)]))
    return files


def torn(files: MemoryFiles) -> None:
    put(files, name_of(14), get(files, name_of(14))[:-5])


def damaged(files: MemoryFiles) -> None:
    content = bytearray(get(files, name_of(5)))
    content[-1] ^= 1
    put(files, name_of(5), bytes(content))


def bare(files: MemoryFiles) -> None:
    for name in files.list_dir(DIR):
        if not name.endswith(".log"):
            files.remove(f"{DIR}/{name}")


def swapped(files: MemoryFiles) -> None:
    put(files, name_of(0) + ".swap", batch(2) + data_of(1, 4) + marker_of(1, 5))
    put(files, name_of(0, FileKind.INDEX) + ".swap", b"")
    put(files, name_of(0, FileKind.TIMEINDEX) + ".swap", b"")
    put(files, name_of(11) + ".deleted", b"x")


def emptied(files: MemoryFiles) -> None:
    """Leave a log that ends below its start, 40."""


def state(log: LocalLog) -> tuple[object, ...]:
    return (
        batches_of(log),
        log.log_start_offset,
        log.log_end_offset,
        log.epochs.entries,
        sorted(log.producers.to_entries()),
        collect_aborted(log.segments, 0, 1 << 40),
    )


@pytest.mark.parametrize("harm", [torn, damaged, bare, swapped, emptied])
def test_a_start_that_is_cut_is_begun_again(harm: Callable[[MemoryFiles], None]) -> None:
    start = 40 if harm is emptied else 0

    def disk() -> MemoryFiles:
        files = segments()
        harm(files)
        files.sync_all()
        return files

    def load(files: MemoryFiles) -> LocalLog:
        tasks = InlineTasks()
        log, _ = open_log(files, CONFIG, hooks_of(tasks), log_start_offset=start)
        tasks.run_waiting()
        return log

    files = disk()
    before = files.operations
    expected = state(load(files))
    count = files.operations - before
    assert count > 3
    for number in range(count):
        files = disk()
        files.stop_at(files.operations + number)
        with suppress(MachineStopped):
            load(files)
        changes = files.unsynced_changes()
        for kept in range(changes + 1):
            assert expected == state(load(files.after_crash(kept_changes=kept, torn_bytes=7)))
