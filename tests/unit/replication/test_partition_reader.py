"""Reads over partitions: whose bytes are counted and throttled, and what is given back."""

from __future__ import annotations

import pytest

from engine.host.memory import ManualClock
from engine.kafka_errors import CORRUPT_MESSAGE
from engine.limits import SENDFILE_BYTES_MIN
from engine.log.log_config import LogConfig
from engine.replication.delayed_fetch import FetchResults
from engine.replication.partition_types import FetchParams, FetchSpec
from engine.replication.replica_manager import ReplicaManager
from tests.unit.log.writing import PARTITION, sent
from tests.unit.replication.replicas import (
    CONSUMER,
    FOLLOWER,
    borrowed_segments,
    partition_of,
    ports_of,
    quota_of,
    state,
)

SHORT = sent()
LARGE = sent(value=b"v" * 3 * SENDFILE_BYTES_MIN)


class Reading:
    """Broker 1 leads a throttled partition of brokers 1, 0 and 3, which has a large record."""

    def __init__(self, bound_per_s: int = 1 << 40, records: memoryview = LARGE) -> None:
        clock = ManualClock()
        self.quota = quota_of(clock, [PARTITION], bound_per_s)
        self.manager = ReplicaManager(clock, ports_of(leader_quota=self.quota))
        self.partition = partition_of(clock, log_config=LogConfig())
        self.partition.become_leader(state((1,), replicas=(1, 0, 3)))
        self.manager.add(self.partition)
        self.partition.append(memoryview(bytearray(records)), 1)

    def read(self, params: FetchParams, count: int = 1) -> FetchResults:
        specs = [(PARTITION, FetchSpec(0, 1 << 30))] * count
        results = self.manager.fetch(params._replace(max_wait_ms=0), specs)
        assert isinstance(results, list)
        return results


def test_a_batch_that_is_cut_is_left_out_and_its_file_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    borrowed, reading = borrowed_segments(monkeypatch), Reading()
    reading.partition.high_watermark = 1
    params = CONSUMER._replace(max_bytes=len(LARGE) + 2 * SENDFILE_BYTES_MIN)
    results = reading.read(params, 2)
    assert [len(LARGE), 0] == [result.size_bytes for _, result in results]
    assert 1 == len(borrowed)


def test_what_a_throttle_holds_back_is_left_out_and_its_file_given_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    borrowed, reading = borrowed_segments(monkeypatch), Reading(bound_per_s=1)
    reading.quota.record(PARTITION, 1 << 20)
    assert [0] == [result.size_bytes for _, result in reading.read(FOLLOWER._replace(replica_id=3))]
    assert [] == borrowed


@pytest.mark.parametrize("replica_id", [0, 3])
def test_each_follower_is_throttled_and_noted(replica_id: int) -> None:
    reading = Reading(bound_per_s=1)
    follower = FOLLOWER._replace(replica_id=replica_id)
    sizes = [result.size_bytes for _ in range(2) for _, result in reading.read(follower)]
    assert [len(LARGE), 0] == sizes
    assert 0 == reading.partition.followers[replica_id].log_end_offset


def test_consumers_are_neither_throttled_nor_counted() -> None:
    reading = Reading(bound_per_s=1)
    reading.partition.high_watermark = 1
    sizes = [result.size_bytes for _ in range(2) for _, result in reading.read(CONSUMER)]
    assert [len(LARGE)] * 2 == sizes
    assert not reading.quota.is_exceeded


def test_a_follower_in_sync_is_counted_and_not_throttled() -> None:
    reading = Reading(bound_per_s=1)
    reading.partition.become_leader(state((1, 3), replicas=(1, 0, 3), partition_epoch=1))
    follower = FOLLOWER._replace(replica_id=3)
    sizes = [result.size_bytes for _ in range(2) for _, result in reading.read(follower)]
    assert [len(LARGE)] * 2 == sizes
    assert reading.quota.is_exceeded


@pytest.mark.parametrize("offset", [0, 1])
@pytest.mark.parametrize("rolled", [False, True])
@pytest.mark.parametrize("params", [CONSUMER, FOLLOWER._replace(replica_id=3)])
def test_a_read_at_a_batch_that_reaches_past_its_segment_is_answered_with_its_damage(
    offset: int, rolled: bool, params: FetchParams
) -> None:
    reading = Reading(records=SHORT)
    for _ in range(2):
        reading.partition.append(memoryview(bytearray(SHORT)), 1)
    log = reading.partition.log
    if rolled:
        log.roll(0, log.log_end_offset)
        reading.partition.append(memoryview(bytearray(SHORT)), 1)
    reading.partition.high_watermark = log.log_end_offset
    first = log.segments.floor(0)
    assert first is not None
    # The length of the first batch, behind its base offset.
    first.file.write_at(8, (1 << 20).to_bytes(4, "big"))
    specs = [(PARTITION, FetchSpec(offset, 1 << 30))]
    results = reading.manager.fetch(params._replace(max_wait_ms=0), specs)
    assert isinstance(results, list)
    ((_, result),) = results
    assert result.error is not None
    assert CORRUPT_MESSAGE == result.error.code
