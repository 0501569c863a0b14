"""Delayed operations that are over: what they held is gone, though some key still lists them.

Source: PUR-3.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.replication.delayed_fetch import WaitingPartition
from engine.replication.follower_encoders import create_local_park
from engine.replication.follower_session import LocalSession
from engine.replication.partition_types import FetchSpec
from tests.unit.log.writing import PARTITION, sent
from tests.unit.replication.replicas import (
    CONSUMER,
    FOLLOWER,
    Broker,
    leader_of,
    log_of,
)

OTHER = TopicPartition("other", 0)
BOTH = (PARTITION, OTHER)
WAIT_MS = 1000


def broker_of_two() -> Broker:
    """Return a leader of two partitions with one record each, which its followers lack."""
    broker = Broker((1, 2))
    broker.manager.add(leader_of((1, 2), broker.clock, log=log_of(OTHER)))
    broker.produce(sent(), 1, to=BOTH)
    return broker


def produce(broker: Broker) -> Any:
    entries = {key: memoryview(bytearray(sent())) for key in BOTH}
    return broker.manager.append_records(entries, -1, WAIT_MS)


def fetch(broker: Broker) -> Any:
    params = CONSUMER._replace(max_wait_ms=WAIT_MS)
    return broker.manager.fetch(params, [(key, FetchSpec(0, 1 << 20)) for key in BOTH])


def fetch_one(broker: Broker) -> Any:
    spec = FetchSpec(1, 1 << 20)
    params = CONSUMER._replace(max_wait_ms=WAIT_MS)
    waiting = WaitingPartition(PARTITION, spec, broker.partition.log.locate(1))
    deadline_ms = broker.clock.monotonic_ms() + WAIT_MS
    return broker.manager.wait_fast(deadline_ms, params, waiting, lambda: "read")


def follow(broker: Broker) -> Any:
    params = FOLLOWER._replace(max_wait_ms=WAIT_MS)
    specs = [(key, FetchSpec(1, 1 << 20, 0, 0, 0)) for key in BOTH]
    session = LocalSession(None)
    session.update_positions(specs)
    park = create_local_park(session.positions, lambda *_: None)
    return broker.manager.fetch(params, specs, park, session.positions)


def delete(broker: Broker) -> Any:
    for key in BOTH:
        broker.manager.partitions[key].high_watermark = 1
    return broker.manager.delete_records(dict.fromkeys(BOTH, 1), WAIT_MS)


BEGIN = pytest.mark.parametrize("begin", [produce, fetch, fetch_one, follow, delete])
Begin = Callable[[Broker], Promise[Any]]


def waiting_count(broker: Broker) -> int:
    manager = broker.manager
    return (
        manager.delayed_fetch_count + manager.delayed_produce_count + manager.delayed_delete_count
    )


@BEGIN
def test_an_operation_past_its_deadline_holds_no_result(begin: Begin) -> None:
    broker = broker_of_two()
    promise = begin(broker)
    assert 1 == waiting_count(broker)
    broker.pass_time(WAIT_MS)
    assert promise.is_kept
    held = weakref.ref(promise)
    del promise
    gc.collect()
    assert held() is None


@BEGIN
def test_an_operation_that_nobody_waits_for_is_over_and_holds_nothing(begin: Begin) -> None:
    broker = broker_of_two()
    promise = begin(broker)
    promise.abandon()
    assert (0, False) == (waiting_count(broker), promise.is_kept)
    held = weakref.ref(promise)
    del promise
    gc.collect()
    assert held() is None
    # What would have completed it finds nobody.
    broker.produce(sent(), 1, to=BOTH)
    broker.pass_time(WAIT_MS)


@BEGIN
def test_a_step_behind_an_operation_is_given_up_with_it(begin: Begin) -> None:
    broker = broker_of_two()
    steps: list[Any] = []
    begin(broker).then(steps.append).then(steps.append).abandon()
    assert 0 == waiting_count(broker)
    broker.pass_time(WAIT_MS)
    assert [] == steps


@BEGIN
def test_an_operation_that_is_over_is_not_given_up_again(begin: Begin) -> None:
    broker = broker_of_two()
    promise = begin(broker)
    broker.pass_time(WAIT_MS)
    promise.abandon()
    assert promise.is_kept


def test_what_completed_together_with_the_end_of_its_connection_is_kept() -> None:
    broker = broker_of_two()
    first, second = fetch_one(broker), fetch_one(broker)
    # The first response closes the connection that both are for.
    first.watch(second.abandon)
    broker.pass_time(WAIT_MS)
    assert ("read", "read") == (first.result(), second.result())
