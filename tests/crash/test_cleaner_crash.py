"""The power is cut before every file operation of a log's cleanings: no last value is lost.

L7 the last value of each key is the same, offsets rise and are those of before, nothing behind the
last stable offset is touched; L8 what is found is a log, and a second look changes nothing; the
checkpoint never tells of a cleaning that is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from engine.host.memory import MachineStopped, MemoryFiles
from engine.log.directory.offset_checkpoint import CLEANER_POINTS, encode_offsets, read_offsets
from engine.log.local_log import LocalLog
from engine.log.tasks import InlineTasks
from engine.records.record import Record
from tests.unit.log.cleaner.cleaned_logs import (
    CONFIG,
    append_raw,
    clean,
    last_values,
    put,
    records_of_log,
)
from tests.unit.log.hooks import hooks_of
from tests.unit.log.writing import NOW_MS, PARTITION, end_of_transaction, image, open_log

POINTS = f"/data/{CLEANER_POINTS}"
DAY_MS = 86_400_000


class Life:
    """A log that is written and cleaned three times, and what it should hold."""

    def __init__(self, files: MemoryFiles) -> None:
        self.files = files
        self.tasks = InlineTasks()
        files.make_dir("/data")
        files.sync_dir("/")
        self.log, _ = open_log(files, CONFIG, hooks_of(self.tasks))
        files.sync_dir("/data")
        #: Every record that was ever flushed, aborted ones left out.
        self.written: list[Record] = []
        self.cleaned_to = 0
        self.now_ms = NOW_MS

    def run(self) -> None:
        for step in self.steps():
            step()

    def steps(self) -> Iterator[Callable[[], object]]:
        yield lambda: self.write(0)
        yield self.clean
        yield lambda: self.write(30)
        yield self.clean
        yield self.tasks.run_waiting
        yield self.wait
        yield lambda: self.write(60)
        yield self.clean
        yield self.tasks.run_waiting

    def write(self, first: int) -> None:
        log = self.log
        for number in range(first, first + 12):
            value = None if number % 5 == 4 else b"%d" % number
            put(log, (b"k%d" % (number % 7), value), (b"u%d" % number, b"x" * 30))
            if number % 3 == 2:
                log.roll(NOW_MS)
        transaction = {"producer_id": 7, "producer_epoch": 0, "is_transactional": True}
        put(log, (b"k1", b"aborted"), base_sequence=first // 30, **transaction)
        append_raw(log, end_of_transaction(7))
        log.roll(NOW_MS)
        put(log, (b"k2", b"open %d" % first))
        log.flush(NOW_MS)
        self.written = [
            *[record for record in self.written if record.offset < self.cleaned_to],
            *(r for r in records_of_log(log) if r.offset >= self.cleaned_to),
        ]
        self.written = [record for record in self.written if record.value != b"aborted"]

    def clean(self) -> None:
        self.cleaned_to = clean(
            self.log, self.files, checkpoint=self.cleaned_to, now_ms=self.now_ms
        )
        self.files.replace_file(POINTS, encode_offsets({PARTITION: self.cleaned_to}))

    def wait(self) -> None:
        self.now_ms += 2 * DAY_MS


def reopened(disk: MemoryFiles) -> LocalLog:
    return open_log(disk, CONFIG)[0]


def check(written: list[Record], disk: MemoryFiles) -> None:
    log = reopened(disk)
    records, end = records_of_log(log), log.log_end_offset
    flushed = written[-1].offset + 1 if written else 0
    assert end >= flushed
    offsets = [record.offset for record in records]
    assert sorted(set(offsets)) == offsets
    at = {record.offset: (record.key, record.value, record.timestamp_ms) for record in written}
    known = [r for r in records if r.value != b"aborted" and r.offset < flushed]
    assert all(at[r.offset] == (r.key, r.value, r.timestamp_ms) for r in known)
    assert last_values(written) == last_values(known)
    if disk.exists(POINTS):
        # Each key is there once below what was cleaned, as the checkpoint says.
        checkpoint = read_offsets(disk, POINTS)[PARTITION]
        keys = [r.key for r in records if r.offset < checkpoint]
        assert len(keys) == len(set(keys))
    again = reopened(disk)
    assert records == records_of_log(again)
    assert end == again.log_end_offset


class WatchedFiles(MemoryFiles):
    """A disk that is looked at before each change: as a cut of the power there would leave it."""

    def __init__(self) -> None:
        super().__init__()
        self.before_change: Callable[[], None] = lambda: None

    def act(self, operation: str, path: str) -> int:
        self.before_change()
        return super().act(operation, path)


def test_last_values_are_found_after_every_cut() -> None:
    files = WatchedFiles()
    life = Life(files)
    seen: set[object] = set()

    def cut() -> None:
        changes = files.unsynced_changes()
        for kept in sorted({0, changes // 3, changes // 2, max(changes - 1, 0), changes}):
            disk = files.after_crash(kept_changes=kept, torn_bytes=40)
            found = hash((image(disk), len(life.written)))
            if found not in seen:
                seen.add(found)
                check(life.written, disk)

    files.before_change = cut
    life.run()
    assert files.operations > 200
    assert len(seen) > 400


def test_a_life_without_a_cut_has_one_record_a_key() -> None:
    files = MemoryFiles()
    life = Life(files)
    life.run()
    log = reopened(files.after_crash())
    keys = [record.key for record in records_of_log(log) if record.offset < life.cleaned_to]
    assert len(set(keys)) == len(keys)
    assert not [name for name in files.list_dir("/data/t-0") if name.endswith(".cleaned")]
    check(life.written, files.after_crash())


@pytest.mark.parametrize("kept_of", [0, 1])
def test_a_cleaning_that_is_cut_off_is_done_again_with_the_same_result(kept_of: int) -> None:
    files = MemoryFiles()
    life = Life(files)
    life.write(0)
    whole = files.after_crash()
    log = reopened(whole)
    clean(log, whole)
    expected = records_of_log(log)
    start = files.operations
    life.clean()
    for number in range(start, files.operations):
        cut = MemoryFiles()
        cut.stop_at(number)
        with pytest.raises(MachineStopped):
            again = Life(cut)
            again.write(0)
            again.clean()
        disk = cut.after_crash(kept_changes=kept_of * cut.unsynced_changes())
        found = reopened(disk)
        clean(found, disk)
        assert expected == records_of_log(found)
