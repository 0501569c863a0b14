"""Which transactions the simulation ends in the end, and whom an unended one holds up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.client.connection import Call
from engine.client.settings import Address
from engine.host.coroutine import drive
from engine.host.promise import Promise
from engine.kafka_errors import (
    CONCURRENT_TRANSACTIONS,
    COORDINATOR_LOAD_IN_PROGRESS,
    NONE,
    NOT_COORDINATOR,
    NOT_ENOUGH_REPLICAS,
    PRODUCER_FENCED,
)
from engine.model import TopicPartition
from engine.sim.clients import ClusterRequests
from engine.sim.histories import Loss
from engine.sim.plan import plan_of
from engine.sim.sent_transactions import Ids, SentOutcome, SentTransaction, TransactorEvents
from engine.sim.simulation import Simulation
from engine.sim.transaction_requests import InstanceEnds, TransactionRequests
from engine.sim.transactors import ids_that_outlast_their_timeout
from engine.transactions.states import TransactionState
from engine.transactions.transaction import Transaction
from engine.wire import messages

T0 = TopicPartition("t", 0)
FORMER, LEADER = Address("b1", 9092), Address("b2", 9092)


@pytest.mark.parametrize(
    ("state", "start_ms", "outlasts"),
    [
        (TransactionState.ONGOING, 5_000, True),
        (TransactionState.ONGOING, 1_000, False),
        (TransactionState.COMPLETE_ABORT, 5_000, False),
    ],
)
def test_a_transaction_of_a_time_to_come_outlasts_its_timeout(
    state: TransactionState, start_ms: int, *, outlasts: bool
) -> None:
    transaction = Transaction("x", 7, 4_000, 0)
    transaction.state, transaction.start_ms = state, start_ms
    expected = {"x"} if outlasts else set()
    assert expected == ids_that_outlast_their_timeout([transaction], wall_ms=2_000)


def test_readers_are_not_waited_for_where_a_marker_may_have_been_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = Simulation(plan_of(130))
    lossy, whole = TopicPartition("t0", 0), TopicPartition("t0", 1)
    reader = SimpleNamespace(name="committed", positions={lossy: 3, whole: 4})
    monkeypatch.setattr(world.coordinated, "readers", [reader])
    monkeypatch.setattr(world, "_must_get_more", lambda _partition, _position: True)
    unread = [f"committed has read t0-{index} to {index + 3} of 0" for index in range(2)]
    assert unread == world._waiting_reasons()
    world.invariants.history(lossy).losses.append(Loss(0, 1, "an unclean election", 0))
    assert unread[1:] == world._waiting_reasons()


class _MovedPartition:
    """Links to a leader that was moved away, believes that it leads, and has too few in sync."""

    name = "tx"

    def __init__(self) -> None:
        self.leaders = {T0: FORMER}
        self.asked: list[Address] = []
        self.timers = SimpleNamespace(clock=SimpleNamespace(wall_ms=lambda: 0))

    def send(self, address: Address, _call: Call) -> Promise[Any]:
        assert len(self.asked) < 3
        self.asked.append(address)
        response = messages.ProduceResponse
        code = NONE if address == LEADER else NOT_ENOUGH_REPLICAS
        row = response.PartitionProduceResponse(index=0, error_code=code, base_offset=0)
        topic = response.TopicProduceResponse(name="t", partition_responses=[row])
        promise: Promise[Any] = Promise()
        promise.keep(SimpleNamespace(message=response(responses=[topic])))
        return promise

    def find_leaders(self, _topics: Sequence[str], done: Callable[[], None]) -> None:
        self.leaders[T0] = LEADER
        done()

    def after(self, _delay_ms: int, work: Callable[[], None]) -> None:
        work()


def test_a_producer_finds_the_leader_that_a_refusal_for_too_few_in_sync_does_not_name() -> None:
    links = _MovedPartition()
    events = cast(TransactorEvents, SimpleNamespace(fence_of=lambda *_: None))
    producer = TransactionRequests(
        cast(ClusterRequests, links), "x", ["t"], Random(0), events, gives_up=False
    )
    ids = Ids(7, 0)
    transaction = SentTransaction("tx@0", *ids)
    accepted: list[bool] = []

    async def produce() -> None:
        accepted.append(await producer.produce(ids, transaction, T0, range(2)))

    drive(produce())
    assert ([True], [FORMER, LEADER]) == (accepted, links.asked)


class _RespondingCoordinator:
    """Answers each EndTxn with the next of some error codes."""

    name = "tx"

    def __init__(self, codes: Sequence[int]) -> None:
        self.codes = list(codes)
        self.timers = SimpleNamespace(clock=SimpleNamespace(wall_ms=lambda: 0))

    def any_broker(self) -> Address:
        return LEADER

    def send(self, _address: Address, call: Call) -> Promise[Any]:
        if call.api_name == "EndTxn":
            message: Any = messages.EndTxnResponse(error_code=self.codes.pop(0))
        else:
            message = messages.FindCoordinatorResponse(host="b2", port=9092, node_id=2)
        promise: Promise[Any] = Promise()
        promise.keep(SimpleNamespace(message=message))
        return promise

    def after(self, _delay_ms: int, work: Callable[[], None]) -> None:
        work()


@pytest.mark.parametrize(
    ("first_code", "outcome"),
    [
        (CONCURRENT_TRANSACTIONS, SentOutcome.ABORTED),
        (COORDINATOR_LOAD_IN_PROGRESS, SentOutcome.UNKNOWN),
        (NOT_COORDINATOR, SentOutcome.UNKNOWN),
    ],
)
def test_a_coordinator_that_loads_again_may_have_decided_what_a_fenced_producer_sent(
    first_code: int, outcome: SentOutcome
) -> None:
    links = _RespondingCoordinator([first_code, PRODUCER_FENCED])
    events = SimpleNamespace(fence_of=lambda *_: None, record=lambda *_: None)
    producer = TransactionRequests(
        cast(ClusterRequests, links),
        "x",
        ["t"],
        Random(0),
        cast(TransactorEvents, events),
        gives_up=False,
    )
    transaction = SentTransaction("tx@0", 7, 0)
    transaction.sent[T0] = {0}
    ended = drive(producer.end(Ids(7, 0), transaction, is_commit=True))
    assert isinstance(ended.error, InstanceEnds)
    assert outcome is transaction.outcome
