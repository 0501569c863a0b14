"""Requests that wait on connections that close: nothing of them is held from then on.

Source: PUR-1, NET-1.
"""

from __future__ import annotations

from typing import Any

import pytest

from engine.limits import SENDFILE_BYTES_MIN
from engine.wire.structs import message_class
from tests.unit.api.data_stage import T0, DataStage, fetch_request, produce_request
from tests.unit.api.follower import Follower
from tests.unit.log.writing import sent
from tests.unit.replication.replicas import borrowed_segments

#: The longest that a client can ask for: 24 days.
FOR_EVER_MS = 0x7FFFFFFF
WAYS = pytest.mark.parametrize("is_fast_path", [True, False])


def close(stage: DataStage) -> None:
    stage.client.close("the client is gone")
    stage.timers.run_until_idle()
    assert [] == stage.faults


@WAYS
@pytest.mark.parametrize("offsets", [{0: 0}, {0: 0, 1: 0}])
def test_a_fetch_ends_with_its_connection(is_fast_path: bool, offsets: dict[int, int]) -> None:
    stage = DataStage(is_fast_path=is_fast_path)
    assert stage.ask("Fetch", 17, fetch_request(17, offsets, max_wait_ms=FOR_EVER_MS)) is None
    assert 1 == stage.manager.delayed_fetch_count
    close(stage)
    assert 0 == stage.manager.delayed_fetch_count
    stage.connect()
    stage.produce(sent(), acks=1)
    assert len(sent()) == len(stage.fetch(0).records)


@WAYS
@pytest.mark.parametrize("count", [1, 2])
def test_a_produce_ends_with_its_connection_and_its_records_stay(
    is_fast_path: bool, count: int
) -> None:
    stage = DataStage((1, 2), is_fast_path=is_fast_path)
    assert stage.produce(*[sent()] * count, timeout_ms=FOR_EVER_MS) is None
    assert 1 == stage.manager.delayed_produce_count
    close(stage)
    assert 0 == stage.manager.delayed_produce_count
    stage.follow(1)
    partition = stage.manager.find(T0)
    assert (1, 1) == (partition.log.log_end_offset, partition.high_watermark)


def test_a_deletion_of_records_ends_with_its_connection() -> None:
    stage = DataStage((1, 2))
    stage.produce(sent(), acks=1)
    stage.follow(1)
    made = message_class("DeleteRecordsRequest")
    topic = made.DeleteRecordsTopic(
        name="t", partitions=[made.DeleteRecordsPartition(partition_index=0, offset=1)]
    )
    stage.frames.clear()
    request = made(topics=[topic], timeout_ms=FOR_EVER_MS)
    assert stage.ask("DeleteRecords", 2, request) is None
    assert 1 == stage.manager.delayed_delete_count
    close(stage)
    assert 0 == stage.manager.delayed_delete_count
    assert 1 == stage.manager.find(T0).log.log_start_offset


class Parked:
    """A leader, and a follower whose session is parked there."""

    def __init__(self) -> None:
        self.stage = DataStage((1, 2, 3))
        self.follower = Follower(self.stage)
        self.append()
        for _ in range(2):
            self.follower.ask("fast")
        assert (1, 1) == self.counts()

    def append(self, value: bytes = b"v") -> None:
        partition = self.stage.manager.find(T0)
        batch = memoryview(bytearray(sent(value=value)))
        self.stage.manager.perform(partition.append(batch, 1).effects)
        self.stage.timers.run_until_idle()

    def counts(self) -> tuple[int, int]:
        return self.stage.followers.parked_count, self.stage.manager.delayed_fetch_count

    def close(self, connection: Any) -> None:
        connection.close("the follower is gone")
        self.stage.timers.run_until_idle()


def test_the_fetch_of_a_session_ends_with_its_connection() -> None:
    parked = Parked()
    parked.close(parked.follower.connection)
    assert (0, 0) == parked.counts()
    parked.append()


def test_a_later_request_of_a_session_ends_with_its_connection() -> None:
    parked = Parked()
    parked.append()
    parked.follower.ask("fast")
    assert (1, 1) == parked.counts()
    parked.close(parked.follower.connection)
    assert (0, 0) == parked.counts()


def test_a_session_between_two_requests_ends_with_its_connection() -> None:
    parked = Parked()
    parked.append()
    assert (1, 1) == parked.counts()
    parked.close(parked.follower.connection)
    assert (0, 0) == parked.counts()


def test_a_session_that_goes_on_over_another_connection_outlives_the_first() -> None:
    parked = Parked()
    first = parked.follower.connection
    parked.append()
    parked.follower.connect()
    parked.follower.ask("fast")
    parked.close(first)
    assert (1, 1) == parked.counts()
    frame_count = len(parked.follower.frames)
    parked.append()
    assert frame_count + 1 == len(parked.follower.frames)


def test_what_is_parked_at_its_deadline_leaves_nothing_with_its_connection() -> None:
    parked = Parked()
    parked.append()
    parked.stage.pass_time(500)
    assert (0, 0) == parked.counts()
    parked.close(parked.follower.connection)


def test_records_that_find_a_closed_connection_are_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parked = Parked()
    borrowed = borrowed_segments(monkeypatch)
    parked.follower.connection.close("gone")
    # The leader has not heard of it yet.
    parked.append(b"v" * SENDFILE_BYTES_MIN)
    assert ([], (0, 0)) == (borrowed, parked.counts())


def test_a_request_behind_one_that_waits_is_given_up_as_well() -> None:
    stage = DataStage((1, 2))
    waiting = fetch_request(17, {1: 0}, max_wait_ms=FOR_EVER_MS)
    assert stage.produce(sent(), timeout_ms=FOR_EVER_MS) is None
    assert stage.ask("Fetch", 17, waiting) is None
    # Answered, but not sent: the first is owed before.
    assert stage.ask("Produce", 11, produce_request({"t": [(1, sent())]}, acks=1)) is None
    close(stage)
    assert (0, 0) == (stage.manager.delayed_produce_count, stage.manager.delayed_fetch_count)
