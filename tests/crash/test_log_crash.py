"""The power is cut before every file operation of a log's life: what is found then is a log.

L1 offsets rise without a gap; L2 a prefix of what was written, with all below the recovery point;
L3 side files as the records say; L8 a folder as before an operation or as after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from engine.errors import StorageError
from engine.host.memory import MachineStopped, MemoryFiles
from engine.inspection.verify import VerifyOptions, verify_partition
from engine.log.batch_scan import scan_batches
from engine.log.directory.log_dir import find_log_dir
from engine.log.directory.offset_checkpoint import (
    LOG_STARTS,
    RECOVERY_POINTS,
    encode_offsets,
    read_offsets,
)
from engine.log.local_log import LocalLog
from engine.log.log_config import LogConfig
from engine.log.producer_state import AppendOrigin, ProducerState
from engine.log.tasks import InlineTasks
from engine.model import TopicPartition
from engine.records.batch import BatchView
from tests.unit.log.hooks import hooks_of
from tests.unit.log.writing import (
    NOW_MS,
    PARTITION,
    batches_of,
    end_of_transaction,
    image,
    open_log,
    sent,
    sent_by,
)

CONFIG = LogConfig(
    segment_bytes=400, index_interval_bytes=100, retention_ms=-1, producer_id_expiration_ms=1 << 50
)
Batches = list[tuple[int, bytes]]


class LateTasks(InlineTasks):
    """Keeps syncs of rolled segments waiting, as a busy machine does."""

    def __init__(self) -> None:
        super().__init__()
        self.late: list[tuple[Callable[[], None], Callable[[StorageError | None], None]]] = []

    def offload(
        self, name: str, work: Callable[[], None], done: Callable[[StorageError | None], None]
    ) -> None:
        self.late.append((work, done))

    def run_late(self) -> None:
        late, self.late = self.late, []
        for work, done in late:
            work()
            done(None)


class Life:
    """A log that does everything once, and what it should hold."""

    def __init__(self, files: MemoryFiles, tasks: InlineTasks) -> None:
        self.files = files
        self.tasks = tasks
        files.make_dir("/data")
        files.sync_dir("/")
        hooks = hooks_of(tasks, on_truncated=self._checkpoint)
        self.log, _ = open_log(files, CONFIG, hooks)
        files.sync_dir("/data")
        #: What readers see, after the last operation that ended and after the one under way.
        self.before: Batches = []
        self.after: Batches = []
        #: What a truncation cut off: it may come back until something is appended behind the cut.
        self.cut_off: Batches = []
        self.flushed = 0
        self.start = 0

    def run(self) -> None:
        for step in self.steps():
            step()
            if len(self.after) > len(self.before):
                self.cut_off = []
            self.before = list(self.after)

    def steps(self) -> Iterator[Callable[[], object]]:
        for number in range(4):
            yield lambda n=number: self.append(sent_by(1, 3 * n, 3))
        yield self.flush
        yield self.checkpoint
        yield lambda: self.append(sent_by(7, 0, 2, is_transactional=True))
        yield lambda: self.append(sent(4))
        yield lambda: self.append(end_of_transaction(7))
        yield self.settle
        yield self.checkpoint
        yield lambda: self.append(sent_by(7, 2, 2, is_transactional=True), epoch=1)
        yield lambda: self.append(sent_by(1, 12, 3), epoch=1)
        yield lambda: self.append(end_of_transaction(7), epoch=1)
        yield self.flush
        yield self.checkpoint
        yield lambda: self.truncate_to(6)
        yield lambda: self.append(sent_by(1, 6, 5), epoch=2)
        yield lambda: self.append(sent(5, value=b"w" * 30), epoch=2)
        yield lambda: self.append(sent(5, value=b"w" * 30), epoch=2)
        yield self.settle
        yield self.delete
        yield self.checkpoint
        yield self.tasks.run_waiting
        yield lambda: self.append(sent(2), epoch=2)
        yield self.close

    def append(self, batch: memoryview, epoch: int = 0) -> None:
        base = self.log.log_end_offset
        patched = memoryview(bytearray(batch))
        BatchView(patched).patch(base_offset=base, leader_epoch=epoch)
        self.after = [*self.before, (base, bytes(patched))]
        origin = self.origin_of(patched)
        self.log.append_as_leader(batch, epoch, NOW_MS, origin)

    @staticmethod
    def origin_of(batch: memoryview) -> AppendOrigin:
        is_marker = BatchView(batch).is_control
        return AppendOrigin.COORDINATOR if is_marker else AppendOrigin.CLIENT

    def flush(self) -> None:
        self.log.flush(NOW_MS)
        self.flushed = self.log.recovery_point

    def settle(self) -> None:
        if isinstance(self.tasks, LateTasks):
            self.tasks.run_late()
        self.flushed = self.log.recovery_point

    def checkpoint(self) -> None:
        self._checkpoint(PARTITION)

    def _checkpoint(self, partition: TopicPartition) -> None:
        for name, offset in (
            (RECOVERY_POINTS, self.log.recovery_point),
            (LOG_STARTS, self.log.log_start_offset),
        ):
            self.files.replace_file(f"/data/{name}", encode_offsets({partition: offset}))

    def truncate_to(self, offset: int) -> None:
        self.flushed = min(self.flushed, offset)
        self.after = [(base, raw) for base, raw in self.before if base < offset]
        self.cut_off = list(self.before)
        self.log.truncate_to(offset, NOW_MS)

    def delete(self) -> None:
        end = self.log.log_end_offset
        self.log.delete_segments_before(end - 5, end, NOW_MS)
        self.start = self.log.log_start_offset

    def close(self) -> None:
        self.log.close(NOW_MS)
        self.flushed = self.log.log_end_offset


def reopened(disk: MemoryFiles) -> LocalLog:
    known = {}
    for key, name in (("recovery_point", RECOVERY_POINTS), ("log_start_offset", LOG_STARTS)):
        if disk.exists(f"/data/{name}"):
            known[key] = read_offsets(disk, f"/data/{name}")[PARTITION]
    return open_log(disk, CONFIG, **known)[0]


def check(life: Life, disk: MemoryFiles) -> None:
    log = reopened(disk)
    found = batches_of(log)
    history = life.after if len(life.after) > len(life.before) else life.before
    expected = [item for item in history if item[0] >= log.log_start_offset]
    cut_off = [item for item in life.cut_off if item[0] >= log.log_start_offset]
    assert found in (expected[: len(found)], cut_off[: len(found)]), "a prefix of what was written"
    assert log.log_end_offset >= life.flushed, "all that was flushed"
    ends = [base + BatchView(memoryview(raw)).last_offset_delta + 1 for base, raw in found]
    assert log.log_end_offset == (ends[-1] if ends else log.log_start_offset)
    assert log.recovery_point <= log.log_end_offset
    for base, raw in found:
        assert log.read(base, 1).read() == raw
    if not log.log_start_offset:
        assert state_from_batches(log) == sorted(log.producers.to_entries())
    again = reopened(disk)
    assert found == batches_of(again)
    again.close(NOW_MS)
    partition = find_log_dir(disk, "/data").partitions[0]
    report = verify_partition(disk, partition, None, VerifyOptions(deep=True))
    codes = {finding.code for finding in report.findings} - {"leftover"}
    if log.log_start_offset > log.segments.first.base_offset:
        # Records below the start need no epoch; a check that knows no start asks for one.
        codes -= {"epochs-wrong"}
    assert set() == codes, report.findings


def state_from_batches(log: LocalLog) -> list[object]:
    state = ProducerState()
    for segment in log.segments:
        for _, batch in scan_batches(segment.file):
            assert isinstance(batch, BatchView)
            state.apply_batch(batch)
    return sorted(state.to_entries())


def operations(kind: type[InlineTasks]) -> int:
    files = MemoryFiles()
    Life(files, kind()).run()
    return files.operations


@pytest.mark.parametrize("tasks", [InlineTasks, LateTasks])
def test_a_log_is_found_whole_after_every_cut(tasks: type[InlineTasks]) -> None:
    count = operations(tasks)
    assert count > 150
    seen: set[object] = set()
    for number in range(3, count):
        files = MemoryFiles()
        files.stop_at(number)
        life = None
        try:
            life = Life(files, tasks())
            life.run()
        except MachineStopped:
            pass
        if life is None:
            continue
        changes = files.unsynced_changes()
        for kept in sorted({0, changes // 3, changes // 2, max(changes - 1, 0), changes}):
            disk = files.after_crash(kept_changes=kept, torn_bytes=40)
            # Many cuts leave the same: what was durable before them.
            found = hash((image(disk), life.flushed, tuple(life.before), tuple(life.after)))
            if found not in seen:
                seen.add(found)
                check(life, disk)


def test_a_life_without_a_cut_is_kept_whole() -> None:
    files = MemoryFiles()
    life = Life(files, InlineTasks())
    life.run()
    check(life, files.after_crash())
