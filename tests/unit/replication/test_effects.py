"""Every effect of a partition is performed: what waits is answered, others are told."""

from __future__ import annotations

import inspect
from typing import Any, get_args

import pytest

from engine.model import TopicPartition
from engine.replication import effects
from engine.replication.effects import (
    Effect,
    FetchFrom,
    HighWatermarkMoved,
    LogEndMoved,
    LogStartMoved,
    ProposeIsr,
    RoleChanged,
    StopFetching,
)
from tests.unit.log.writing import PARTITION, sent
from tests.unit.replication.replicas import CONSUMER, FOLLOWER, Broker, fetched, state, when_there

#: Those that the tests below perform.
PERFORMED = {
    LogEndMoved,
    HighWatermarkMoved,
    LogStartMoved,
    RoleChanged,
    ProposeIsr,
    FetchFrom,
    StopFetching,
}


def test_the_driver_knows_every_effect_there_is() -> None:
    of_the_module = {
        kind
        for _, kind in inspect.getmembers(effects, inspect.isclass)
        if kind.__module__ == effects.__name__
    }
    assert of_the_module == set(get_args(Effect)) == PERFORMED


def test_a_proposal_goes_to_the_controller_and_fetching_to_the_fetchers() -> None:
    broker = Broker((1, 2))
    proposal = ProposeIsr(PARTITION, (1,), 0, 0)
    order = FetchFrom(PARTITION, 2, 1)
    broker.manager.perform([proposal, order, StopFetching(PARTITION)])
    assert [proposal] == broker.proposed
    assert [order] == broker.fetching.orders
    assert [PARTITION] == broker.fetching.stopped


def test_what_no_driver_knows_stops_it() -> None:
    broker = Broker()
    with pytest.raises(AssertionError):
        broker.manager.perform(["not an effect"])  # type: ignore[list-item]
    # It is not left believing that it still performs.
    broker.manager.perform([ProposeIsr(PARTITION, (1,), 0, 0)])
    assert 1 == len(broker.proposed)


def test_the_end_of_the_log_answers_followers_and_the_watermark_all() -> None:
    broker = Broker((1, 2))
    broker.fetch(0)
    broker.fetch(0, FOLLOWER)
    assert 2 == broker.manager.delayed_fetch_count
    broker.produce(sent())
    assert (1, 0) == (broker.manager.delayed_fetch_count, len(broker.produced))
    broker.manager.perform(fetched(broker.partition, 1))
    assert (0, 1) == (broker.manager.delayed_fetch_count, len(broker.produced))


def test_a_moved_log_start_answers_an_earlier_deletion() -> None:
    broker = Broker((1, 2))
    broker.produce(sent(3), 1)
    broker.manager.perform(fetched(broker.partition, 3))
    deleted: list[Any] = []
    when_there(broker.manager.delete_records({PARTITION: 2}, 1000), deleted.append)
    assert [] == deleted
    # All replicas are there meanwhile, and nobody has looked.
    broker.partition.followers = {
        id_: progress._replace(log_start_offset=2)
        for id_, progress in broker.partition.followers.items()
    }
    broker.manager.perform([LogStartMoved(PARTITION, 2)])
    assert [2] == [result.low_watermark for result in deleted[0].values()]


def test_a_new_role_answers_everything() -> None:
    broker = Broker((1, 2))
    broker.fetch(0, CONSUMER)
    broker.produce(sent())
    change = broker.partition.become_follower(state((2, 1), leader=2, epoch=1))
    broker.manager.perform(change.effects)
    assert [6] == broker.codes()
    assert (0, 0) == (broker.manager.delayed_fetch_count, broker.manager.delayed_produce_count)
    assert [FetchFrom(PARTITION, 2, 1)] == broker.fetching.orders


def test_a_new_role_goes_on_with_a_move_to_another_directory() -> None:
    broker = Broker((1, 2))
    broker.manager.perform([HighWatermarkMoved(PARTITION, 0)])
    assert [] == broker.moving.resumed
    broker.manager.perform([RoleChanged(PARTITION, 1)])
    assert [PARTITION] == broker.moving.resumed


@pytest.mark.parametrize("is_alive", [True, False])
def test_a_moved_log_start_answers_a_follower_whose_offset_it_has_passed(is_alive: bool) -> None:
    broker = Broker((1, 2), is_alive=lambda _broker_id: is_alive)
    broker.produce(sent(3), 1)
    broker.manager.perform(fetched(broker.partition, 3))
    broker.fetch(0, FOLLOWER._replace(min_bytes=1 << 20), last_fetched_epoch=0)
    assert [] == broker.fetches
    broker.manager.delete_records({PARTITION: 2}, 1000)
    assert [1] == [result.error.code for _, result in broker.fetches[0] if result.error]


def test_a_partition_without_a_leader_is_fetched_from_nobody() -> None:
    broker = Broker((1, 2))
    change = broker.partition.become_follower(state((2, 1), leader=-1, epoch=1))
    broker.manager.perform(change.effects)
    assert ([], [PARTITION]) == (broker.fetching.orders, broker.fetching.stopped)


def test_a_partition_that_goes_is_neither_fetched_nor_moved_any_more() -> None:
    broker = Broker((1, 2))
    other = TopicPartition("other", 0)
    broker.manager.remove(PARTITION)
    broker.manager.mark_offline(other)
    assert [PARTITION, other] == broker.fetching.stopped == broker.moving.stopped
