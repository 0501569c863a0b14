"""A leader's side of followers in other processes: what stands, and what ends that."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from engine.host.memory import MemoryFiles
from engine.host.ports import Connection
from engine.limits import SENDFILE_BYTES_MIN
from engine.log.log_messages import LogStartReason
from engine.model import TopicPartition
from engine.replication.isr import InSyncSet
from engine.replication.partition import Partition
from engine.replication.partition_types import FetchSpec, PartitionRead, PartitionState
from tests.unit.api.data_stage import DataStage
from tests.unit.api.follower import Follower
from tests.unit.log.writing import sent
from tests.unit.replication.replicas import borrowed_segments

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
SIZE = len(sent(1))


class Leading:
    """A leader of two partitions, and a follower whose session stands; whole fetches counted."""

    def __init__(self, files: MemoryFiles | None = None, *, is_fast_path: bool = True) -> None:
        self.stage = DataStage((1, 2, 3), files=files, is_fast_path=is_fast_path)
        self.follower = Follower(self.stage)
        self.append(T0)
        self.append(T1)
        self.follower.ask("fast")
        self.follower.ask("fast")
        self.whole_count = 0
        fetch = self.stage.manager.fetch

        def counting(*arguments: Any) -> Any:
            self.whole_count += 1
            return fetch(*arguments)

        self.stage.manager.fetch = counting  # type: ignore[method-assign]

    def append(self, key: TopicPartition, value: bytes = b"v" * 10) -> None:
        batch = memoryview(bytearray(sent(1, value=value)))
        info = self.stage.manager.find(key).append(batch, 1)
        self.stage.manager.perform(info.effects)
        self.stage.timers.run_until_idle()

    def follow(self, key: TopicPartition) -> None:
        """Let broker 3 have all of a partition."""
        here = self.stage.manager.find(key)
        end = here.log.log_end_offset
        spec = FetchSpec(end, 1, log_start_offset=0)
        self.stage.manager.perform(here.record_follower_fetch(3, spec, end))

    @property
    def parked_count(self) -> int:
        return self.stage.followers.parked_count


@pytest.fixture
def leading() -> Leading:
    return Leading()


def test_a_session_stands_from_its_first_request_that_waits() -> None:
    stage = DataStage((1, 2, 3))
    follower = Follower(stage)
    follower.ask("fast")
    assert 0 == stage.followers.parked_count
    stage.pass_time(600)
    follower.ask("fast")
    assert 1 == stage.followers.parked_count


def test_records_of_one_partition_are_sent_without_a_check_at_the_others(leading: Leading) -> None:
    for _ in range(4):
        leading.append(T0)
        assert [(0, 0, 0, SIZE)] == leading.follower.said()
        leading.follower.ask("fast")
    assert 0 == leading.whole_count
    ends = {key: leading.stage.manager.find(key).followers[2].log_end_offset for key in (T0, T1)}
    assert {T0: 5, T1: 1} == ends


def test_what_is_appended_between_two_requests_answers_the_next(leading: Leading) -> None:
    leading.append(T0)
    leading.append(T0)
    assert [(0, 0, 0, SIZE)] == leading.follower.said()
    leading.follower.ask("fast")
    assert (3, [(0, 0, 0, SIZE)]) == (len(leading.follower.frames), leading.follower.said())
    assert 0 == leading.whole_count


def test_partitions_that_moved_together_are_reported_together(leading: Leading) -> None:
    leading.append(T0)
    leading.append(T0)
    leading.append(T1)
    leading.follower.ask("fast")
    assert [(0, 0, 0, SIZE), (1, 0, 0, SIZE)] == sorted(leading.follower.said())
    assert 0 == leading.parked_count


@pytest.mark.parametrize("kind", ["nothing", "all", "little", "rack", "forget", "wrong"])
def test_any_other_request_is_read_whole(leading: Leading, kind: str) -> None:
    leading.append(T0)
    leading.follower.ask(kind)
    assert leading.whole_count or kind == "wrong"


def test_the_deadline_of_the_first_request_ends_it(leading: Leading) -> None:
    leading.append(T0)
    leading.follower.ask("fast")
    assert 1 == leading.parked_count
    leading.stage.pass_time(500)
    assert (0, []) == (leading.parked_count, leading.follower.said())
    leading.follower.ask("fast")
    assert 1 == leading.whole_count


def test_a_deadline_between_two_requests_reads_nothing(leading: Leading) -> None:
    leading.append(T0)
    frames = list(leading.follower.frames)
    leading.stage.pass_time(500)
    assert (0, frames) == (leading.parked_count, leading.follower.frames)


def test_a_connection_that_ends_as_it_is_sent_to_leaves_nothing_parked(
    leading: Leading, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refusing(connection: Connection, *_response: object) -> None:
        connection.close("too many unsent bytes")

    monkeypatch.setattr(type(leading.follower.connection), "send", refusing)
    leading.append(T0)
    assert (0, 0) == (leading.parked_count, leading.stage.manager.delayed_fetch_count)


def test_a_new_epoch_ends_it_with_the_error(leading: Leading) -> None:
    here = leading.stage.manager.find(T0)
    state = PartitionState(1, here.leader_epoch + 1, (1, 2, 3), 0, (1, 2, 3))
    leading.stage.manager.perform(here.become_leader(state).effects)
    leading.stage.timers.run_until_idle()
    ((index, error, _, _),) = leading.follower.said()
    assert (0, 74) == (index, error)
    assert 0 == leading.parked_count


def test_who_is_out_of_sync_is_read_for_whole(leading: Leading) -> None:
    here = leading.stage.manager.find(T0)
    here.in_sync = here.in_sync._replace(committed=(1, 3))
    leading.append(T0)
    assert [(0, 0, 0, SIZE)] == leading.follower.said()
    assert 0 == leading.parked_count


def test_two_sessions_stand_side_by_side_and_commit_what_both_have(leading: Leading) -> None:
    other = Follower(leading.stage, replica_id=3)
    other.ask("fast")
    other.ask("fast")
    here = leading.stage.manager.find(T0)
    for end in (2, 3, 4):
        leading.append(T0)
        if end == 3:
            # The watermark of the other partition has been told with the first.
            leading.whole_count = 0
        for follower in (leading.follower, other):
            assert end - 1 == here.high_watermark
            follower.ask("fast")
        assert end == here.high_watermark
    assert 0 == leading.whole_count


def test_a_deadline_between_two_requests_borrows_no_segment(
    leading: Leading, monkeypatch: pytest.MonkeyPatch
) -> None:
    borrowed = borrowed_segments(monkeypatch)
    leading.append(T0)
    frames = list(leading.follower.frames)
    for key in (T0, T1):
        leading.append(key, b"v" * SENDFILE_BYTES_MIN)
    leading.stage.pass_time(500)
    assert (frames, []) == (leading.follower.frames, borrowed)


def test_each_response_of_a_session_gives_its_segments_back(
    leading: Leading, monkeypatch: pytest.MonkeyPatch
) -> None:
    borrowed = borrowed_segments(monkeypatch)
    frame_count = len(leading.follower.frames)
    for _ in range(3):
        for key in (T0, T1):
            leading.append(key, b"v" * SENDFILE_BYTES_MIN)
        leading.follower.ask("fast")
        leading.stage.pass_time(500)
    # The request that waited, and one in each turn.
    assert (frame_count + 4, []) == (len(leading.follower.frames), borrowed)


def test_records_that_cannot_be_read_are_an_error_of_their_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = MemoryFiles()
    leading = Leading(files)
    borrowed = borrowed_segments(monkeypatch)
    log_path = "t-0/00000000000000000000.log"
    files.fail("read", errno.EIO, path_end=log_path, times=2)
    leading.append(T0, b"v" * SENDFILE_BYTES_MIN)
    assert [(0, 56, -1, 0)] == leading.follower.said()
    assert [] == borrowed


# What a session was told, and has not changed


@pytest.fixture
def told(leading: Leading) -> Leading:
    """A session that was told of all there is: a record in each, which both followers have."""
    manager = leading.stage.manager
    for key in (T0, T1):
        leading.follow(key)
    for kind in ("fast", "nothing", "nothing"):
        leading.follower.ask(kind)
        leading.stage.pass_time(500)
    assert ([], 0) == (leading.follower.said(), leading.parked_count)
    assert [1, 1] == [manager.find(key).high_watermark for key in (T0, T1)]
    return leading


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[TopicPartition]:
    """Return what is read from now on."""
    found: list[TopicPartition] = []
    before = Partition.read

    def noting(self: Partition, *arguments: Any, **more: Any) -> PartitionRead:
        found.append(self.topic_partition)
        return before(self, *arguments, **more)

    monkeypatch.setattr(Partition, "read", noting)
    return found


def test_partitions_without_news_are_not_read(told: Leading, read: list[TopicPartition]) -> None:
    told.follower.ask("nothing")
    assert 1 == told.parked_count
    told.stage.pass_time(500)
    assert ([], 0, []) == (told.follower.said(), told.parked_count, read)
    told.append(T1)
    told.follower.ask("nothing")
    assert ([(1, 0, 1, SIZE)], [T1]) == (told.follower.said(), read)


def test_a_follower_is_caught_up_with_what_is_not_read_for_it(
    told: Leading, read: list[TopicPartition]
) -> None:
    told.stage.clock.advance(7)
    now_ms = told.stage.clock.monotonic_ms()
    told.follower.ask("nothing")
    noted = [told.stage.manager.find(key).followers[2] for key in (T0, T1)]
    assert [(1, now_ms, now_ms)] * 2 == [
        (it.log_end_offset, it.last_fetch_ms, it.last_caught_up_ms) for it in noted
    ]
    assert [] == read


def test_who_fell_out_joins_by_a_fetch_of_what_is_not_read(
    told: Leading, read: list[TopicPartition]
) -> None:
    here = told.stage.manager.find(T1)
    here.in_sync = InSyncSet((1, 3))
    told.follower.ask("nothing")
    assert [(T1, (1, 3, 2))] == [(it.topic_partition, it.isr) for it in told.stage.proposed]
    assert [] == read


def _remove(stage: DataStage) -> None:
    # Without an event, as nothing of the manager does: the deadline looks by itself.
    del stage.manager._hosted._partitions[T1]


def _raise_start(stage: DataStage) -> None:
    log = stage.manager.find(T1).log
    assert log.maybe_increment_log_start_offset(1, 1, LogStartReason.SEGMENT_DELETION)


def _unassign(stage: DataStage) -> None:
    del stage.manager.find(T1).followers[2]


def _raise_watermark(stage: DataStage) -> None:
    stage.manager.find(T1).high_watermark = 2


def _elect_again(stage: DataStage) -> None:
    stage.manager.find(T1).become_leader(PartitionState(1, 1, (1, 2, 3), 1, (1, 2, 3)))


@pytest.mark.parametrize(
    "change", [_remove, _raise_start, _unassign, _raise_watermark, _elect_again]
)
@pytest.mark.parametrize("is_waiting", [True, False])
def test_changes_without_an_event_are_sent_as_by_a_read_of_all(
    change: Callable[[DataStage], None], is_waiting: bool
) -> None:
    said = []
    for is_fast_path in (True, False):
        leading = Leading(is_fast_path=is_fast_path)
        for key in (T0, T1):
            leading.follow(key)
        for kind in ("fast", "nothing", "nothing"):
            leading.follower.ask(kind)
            leading.stage.pass_time(500)
        if is_waiting:
            leading.follower.ask("nothing")
        change(leading.stage)
        if not is_waiting:
            leading.follower.ask("nothing")
        leading.stage.pass_time(500)
        said.append(leading.follower.frames)
        assert [1] == [index for index, *_ in leading.follower.said()]
    assert said[0] == said[1]
