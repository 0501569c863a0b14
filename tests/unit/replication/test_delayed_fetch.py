"""Fetches that wait: each case in which waiting is over."""

from __future__ import annotations

from engine.errors import StorageError
from engine.log.log_types import OffsetMetadata
from engine.model import TopicPartition
from engine.replication.delayed_fetch import DelayedFetch, FastDelayedFetch, WaitingPartition
from engine.replication.errors import UnknownTopicOrPartition
from engine.replication.partition import Partition
from engine.replication.partition_types import FetchParams, FetchSpec
from tests.unit.log.writing import PARTITION, fill, new_log, sent
from tests.unit.replication.replicas import (
    CONSUMER,
    FOLLOWER,
    fetched,
    leader_of,
    partition_of,
    state,
)


def waiting_on(
    partition: Partition | None,
    params: FetchParams = CONSUMER,
    *,
    offset: int | None = None,
    start: OffsetMetadata | None = None,
    max_bytes: int = 1 << 20,
    count: int = 1,
    is_throttled: bool = False,
    **more: int,
) -> DelayedFetch:
    """Return a fetch that waits at the log's end, or at `offset`."""

    def find(topic_partition: TopicPartition) -> Partition:
        if partition is None:
            raise UnknownTopicOrPartition(topic_partition)
        return partition

    if partition is not None:
        offset = partition.log.log_end_offset if offset is None else offset
        start = start or partition.log.locate(offset)
    spec = FetchSpec(offset or 0, max_bytes, **more)
    waiting = [WaitingPartition(PARTITION, spec, start or OffsetMetadata(0, 0, 0))] * count
    return DelayedFetch(100, params, waiting, find, lambda _partition, _id: is_throttled)


def test_a_consumer_waits_for_the_watermark_and_a_follower_for_the_end() -> None:
    partition = leader_of((1, 2))
    consumer, follower = waiting_on(partition), waiting_on(partition, FOLLOWER)
    assert not consumer.can_complete()
    assert not follower.can_complete()
    partition.append(sent(), 1)
    assert not consumer.can_complete()
    assert follower.can_complete()
    fetched(partition, 1)
    assert consumer.can_complete()


def test_the_bytes_of_all_partitions_are_summed() -> None:
    partition = leader_of()
    size = len(sent())
    enough = CONSUMER._replace(min_bytes=2 * size)
    one, two = waiting_on(partition, enough), waiting_on(partition, enough, count=2)
    partition.append(sent(), 1)
    assert not one.can_complete()
    assert two.can_complete()


def test_a_partition_counts_up_to_its_own_limit() -> None:
    partition = leader_of()
    operation = waiting_on(partition, CONSUMER._replace(min_bytes=50), max_bytes=10)
    partition.append(sent(), 1)
    assert not operation.can_complete()


def test_the_wait_of_a_consumer_ends_with_exactly_the_bytes_that_it_waits_for() -> None:
    partition = leader_of()
    partition.append(sent(), 1)
    waiting = WaitingPartition(PARTITION, FetchSpec(1, 1 << 20), partition.log.locate(1))
    enough, more = (
        FastDelayedFetch(
            100,
            CONSUMER._replace(min_bytes=min_bytes),
            waiting,
            {PARTITION: partition},
            lambda: None,
        )
        for min_bytes in (len(sent()), len(sent()) + 1)
    )
    assert not enough.can_complete()
    partition.append(sent(), 1)
    assert (True, False) == (enough.can_complete(), more.can_complete())


def test_a_new_segment_ends_the_wait() -> None:
    partition = leader_of()
    partition.append(sent(), 1)
    operation = waiting_on(partition, CONSUMER._replace(min_bytes=1 << 20), offset=0)
    assert not operation.can_complete()
    partition.log.roll(0)
    partition.append(sent(), 1)
    assert operation.can_complete()


def test_a_roll_alone_is_no_news_at_the_end() -> None:
    partition = leader_of()
    partition.append(sent(), 1)
    operation = waiting_on(partition)
    partition.log.roll(0)
    assert not operation.can_complete()


def test_a_truncation_below_the_offset_ends_the_wait() -> None:
    partition = leader_of()
    partition.append(sent(), 1)
    operation = waiting_on(partition)
    partition.truncate_to(0)
    assert operation.can_complete()


def test_a_lost_leader_ends_the_wait() -> None:
    partition = leader_of()
    operation = waiting_on(partition)
    partition.become_follower(state((2, 1), leader=2, epoch=1))
    assert operation.can_complete()


def test_a_fenced_epoch_ends_the_wait() -> None:
    partition = leader_of()
    operation = waiting_on(partition, current_leader_epoch=0)
    assert not operation.can_complete()
    partition.become_leader(state(epoch=1))
    assert operation.can_complete()


def test_a_parted_log_ends_the_wait() -> None:
    log = new_log()
    fill(log, [1], epoch=1)
    fill(log, [1], epoch=3)
    partition = partition_of(log=log)
    partition.become_leader(state((1, 2), epoch=4))
    assert not waiting_on(partition, FOLLOWER, last_fetched_epoch=3).can_complete()
    assert waiting_on(partition, FOLLOWER, last_fetched_epoch=2).can_complete()
    assert waiting_on(partition, FOLLOWER, last_fetched_epoch=7).can_complete()


def test_a_partition_that_is_gone_or_broken_ends_the_wait() -> None:
    assert waiting_on(None).can_complete()

    def broken(topic_partition: TopicPartition) -> Partition:
        raise StorageError(f"{topic_partition} cannot be read")

    waiting = [WaitingPartition(PARTITION, FetchSpec(0, 10), OffsetMetadata(0, 0, 0))]
    assert DelayedFetch(100, CONSUMER, waiting, broken, lambda _key, _id: False).can_complete()


def test_what_a_throttle_holds_back_is_waited_for_on_a_new_segment_too() -> None:
    partition = leader_of((1, 2))
    held, free = (
        waiting_on(partition, FOLLOWER, is_throttled=is_throttled) for is_throttled in (True, False)
    )
    partition.append(sent(), 1)
    assert (False, True) == (held.can_complete(), free.can_complete())
    partition.log.roll(0)
    partition.append(sent(), 1)
    assert (False, True) == (held.can_complete(), free.can_complete())
    partition.become_leader(state((1, 2), replicas=(1, 2, 3), epoch=1))
    epoch = waiting_on(partition, FOLLOWER, is_throttled=True, current_leader_epoch=0)
    assert epoch.can_complete()
