"""A log against a list: they agree after appends, truncations, rolls, deletions and restarts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from engine.host.memory import MemoryFiles
from engine.log.log_config import LogConfig
from engine.log.log_messages import LogStartReason
from engine.log.log_reader import MAX_TIMESTAMP
from engine.log.log_types import OffsetOutOfRange
from engine.records.record import Record
from engine.records.view import batches_in
from tests.unit.log.hooks import hooks_of
from tests.unit.log.writing import NOW_MS, batches_of, fill, open_log, sent

CONFIG = LogConfig(
    segment_bytes=700, index_interval_bytes=150, segment_index_bytes=200, retention_ms=-1
)

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 8), st.integers(0, 200)),
        st.tuples(st.just("replicate"), st.integers(1, 6), st.integers(0, 20)),
        st.tuples(st.just("truncate"), st.integers(0, 60), st.just(0)),
        st.tuples(st.just("restart"), st.integers(0, 1), st.just(0)),
        st.tuples(st.just("roll"), st.just(0), st.just(0)),
        st.tuples(st.just("flush"), st.just(0), st.just(0)),
        st.tuples(st.just("delete"), st.integers(0, 40), st.just(0)),
        st.tuples(st.just("begin"), st.integers(0, 30), st.just(0)),
    ),
    min_size=1,
    max_size=25,
)


class Model:
    """The log and the batches it should hold, each (first offset, next offset, records)."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.log, _ = open_log(self.files, CONFIG)
        self.batches: list[tuple[int, int, list[Record]]] = []
        self.end = 0
        self.start = 0

    def do(self, step: str, number: int, more: int) -> None:
        getattr(self, step)(number, more)

    def _append(self, count: int) -> None:
        (found,) = list(batches_in(self.last, allow_partial_tail=False))
        self.batches.append((self.end, self.end + count, found.read_records()))
        self.end += count

    def append(self, count: int, at: int) -> None:
        self.last = sent(count, at_ms=NOW_MS + at)
        info = self.log.append_as_leader(self.last, 0, NOW_MS)
        assert (self.end, self.end + count - 1) == (info.first_offset, info.last_offset)
        self._append(count)

    def replicate(self, chunks: int, gap: int) -> None:
        """Append what a leader has, behind a gap as compaction leaves one."""
        other, _ = open_log(MemoryFiles(), CONFIG)
        other.restart_at(self.end + gap, NOW_MS)
        fill(other, range(1, chunks + 1))
        data = b"".join(raw for _, raw in batches_of(other))
        self.log.append_as_follower(memoryview(data), NOW_MS)
        self.end += gap
        for batch in batches_in(memoryview(data), allow_partial_tail=False):
            self.last = batch.raw
            self._append(batch.next_offset - batch.base_offset)

    def truncate(self, back: int, _: int) -> None:
        offset = max(self.end - back, 0)
        self.log.truncate_to(offset, NOW_MS)
        if offset < self.end:
            self.batches = [batch for batch in self.batches if batch[1] <= offset]
            self.end = offset
            self.start = min(self.start, offset)

    def restart(self, is_clean: int, _: int) -> None:
        if is_clean:
            self.log.close(NOW_MS)
        self.log, report = open_log(
            self.files,
            CONFIG,
            hooks_of(),
            recovery_point=self.log.recovery_point,
            log_start_offset=self.log.log_start_offset,
            was_stopped_cleanly=bool(is_clean),
        )
        assert not report.truncated_bytes
        # A cut inside of a batch, and a gap, leave an end that no batch says: it is forgotten.
        last = self.batches[-1][1] if self.batches else 0
        assert last <= self.log.log_end_offset <= max(self.end, last)
        self.end = self.log.log_end_offset
        self.start = max(self.start, self.log.segments.first.base_offset)

    def roll(self, _: int, __: int) -> None:
        self.log.roll(NOW_MS)

    def flush(self, _: int, __: int) -> None:
        self.log.flush(NOW_MS)
        assert self.log.recovery_point == self.end

    def delete(self, back: int, _: int) -> None:
        offset = max(self.end - back, 0)
        self.log.delete_segments_before(offset, self.end, NOW_MS)
        self.start = max(self.start, self.log.segments.first.base_offset)

    def begin(self, back: int, _: int) -> None:
        offset = max(self.end - back, 0)
        self.log.maybe_increment_log_start_offset(offset, self.end, LogStartReason.DELETE_RECORDS)
        self.start = max(self.start, offset)

    def check(self) -> None:
        log = self.log
        assert (self.start, self.end) == (log.log_start_offset, log.log_end_offset)
        visible = [batch for batch in self.batches if batch[1] > self.start]
        for first, end, records in visible:
            for offset in (first, end - 1):
                if offset >= self.start:
                    found = log.read(offset, 1)
                    (batch,) = batches_in(memoryview(found.read()), allow_partial_tail=False)
                    assert (first, end) == (batch.base_offset, batch.next_offset)
                    assert batch.is_crc_valid()
                    assert [r.value for r in records] == [r.value for r in batch.read_records()]
        self.check_times(visible)
        for offset in (self.start - 1, self.end + 1):
            try:
                log.read(offset, 1)
                raise AssertionError(offset)
            except OffsetOutOfRange:
                pass

    def check_times(self, visible: list[tuple[int, int, list[Record]]]) -> None:
        records = [
            (first + number, record.timestamp_ms)
            for first, _, found in visible
            for number, record in enumerate(found)
            if first + number >= self.start
        ]
        for timestamp in (0, NOW_MS + 50, NOW_MS + 150):
            expected = next((o for o, time in records if time >= timestamp), None)
            found = self.log.offset_for_timestamp(timestamp)
            assert expected == (found.offset if found else None)
        latest = max((time for _, time in records), default=None)
        if latest is not None and self.start == self.log.segments.first.base_offset:
            found = self.log.offset_for_timestamp(MAX_TIMESTAMP)
            assert found is not None
            assert latest == found.timestamp_ms


@settings(max_examples=100)
@given(STEPS)
def test_a_log_holds_what_a_list_would(steps: list[tuple[str, int, int]]) -> None:
    model = Model()
    for step, number, more in steps:
        model.do(step, number, more)
    model.check()
