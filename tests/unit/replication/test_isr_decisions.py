"""What a leader does with the controller's answer to a proposed in-sync set."""

from __future__ import annotations

import pytest

from engine.host.memory import ManualClock
from engine.ids import uuid_text
from engine.kafka_errors import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NETWORK_EXCEPTION,
    NEW_LEADER_ELECTED,
    OPERATION_NOT_ATTEMPTED,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_ID,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.replication.effects import HighWatermarkMoved, ProposeIsr
from engine.replication.partition import Partition
from engine.replication.partition_types import IsrDecision
from tests.unit.log.writing import PARTITION, sent
from tests.unit.replication.replicas import Broker, leader_of, state


def shrinking() -> tuple[Partition, ProposeIsr]:
    """Return a leader that has proposed to be alone, and the proposal."""
    clock = ManualClock()
    partition = leader_of((1, 2), clock)
    partition.append(sent(2), 1)
    clock.advance(30_001)
    (proposal,) = partition.maybe_shrink_isr()
    assert isinstance(proposal, ProposeIsr)
    return partition, proposal


def test_a_granted_set_is_committed_and_moves_the_watermark() -> None:
    partition, proposal = shrinking()
    effects = partition.on_isr_decided(proposal, IsrDecision(0, (1,), 0, 7))
    assert (HighWatermarkMoved(PARTITION, 2),) == effects
    assert ((1,), None, 7) == (*partition.in_sync, partition.partition_epoch)


def test_a_set_that_the_controller_has_already_is_granted_in_the_epoch_that_it_has() -> None:
    partition, proposal = shrinking()
    partition.on_isr_decided(proposal, IsrDecision(0, (1,), 0, 0))
    assert ((1,), None, 0) == (*partition.in_sync, partition.partition_epoch)


def test_a_set_granted_to_a_topic_that_had_the_name_before_is_not_taken() -> None:
    partition, proposal = shrinking()
    former = proposal._replace(topic_id=bytes(range(16)))
    assert () == partition.on_isr_decided(former, IsrDecision(0, (1,), 0, 7))
    assert ((1, 2), (1,)) == partition.in_sync


def test_a_proposal_names_the_topic_by_the_id_of_its_replica() -> None:
    topic_id = bytes(range(16))
    clock = ManualClock()
    partition = leader_of((1, 2), clock)
    partition.log.assign_topic_id(uuid_text(topic_id))
    partition.append(sent(2), 1)
    clock.advance(30_001)
    assert (ProposeIsr(PARTITION, (1,), 0, 0, topic_id),) == partition.maybe_shrink_isr()


@pytest.mark.parametrize("code", [OPERATION_NOT_ATTEMPTED, INELIGIBLE_REPLICA])
def test_a_proposal_that_changed_nothing_is_forgotten_and_may_be_made_again(code: int) -> None:
    partition, proposal = shrinking()
    assert () == partition.on_isr_decided(proposal, IsrDecision(code))
    assert ((1, 2), None) == partition.in_sync
    assert (proposal,) == partition.maybe_shrink_isr()


@pytest.mark.parametrize(
    "code",
    [
        UNKNOWN_TOPIC_OR_PARTITION,
        UNKNOWN_TOPIC_ID,
        FENCED_LEADER_EPOCH,
        INVALID_UPDATE_VERSION,
        INVALID_REQUEST,
        NEW_LEADER_ELECTED,
    ],
)
def test_a_leader_that_is_behind_waits_for_orders(code: int) -> None:
    partition, proposal = shrinking()
    assert () == partition.on_isr_decided(proposal, IsrDecision(code))
    assert partition.in_sync.is_in_flight
    partition.become_leader(state((1, 2), replicas=(1, 2, 3), partition_epoch=1))
    assert not partition.in_sync.is_in_flight


@pytest.mark.parametrize("code", [UNKNOWN_SERVER_ERROR, NETWORK_EXCEPTION])
def test_any_other_error_has_the_same_proposed_again(code: int) -> None:
    partition, proposal = shrinking()
    assert (proposal,) == partition.on_isr_decided(proposal, IsrDecision(code))
    assert partition.in_sync.is_in_flight


@pytest.mark.parametrize(
    "decision", [IsrDecision(0, (1,), 0, 1), IsrDecision(OPERATION_NOT_ATTEMPTED)]
)
def test_an_answer_to_what_is_in_flight_no_more_changes_nothing(decision: IsrDecision) -> None:
    partition, proposal = shrinking()
    partition.become_leader(state((1, 2), replicas=(1, 2, 3), epoch=1, partition_epoch=5))
    assert () == partition.on_isr_decided(proposal, decision)
    assert ((1, 2), 5) == (partition.in_sync.committed, partition.partition_epoch)


def test_an_order_that_comes_again_leaves_what_is_in_flight() -> None:
    # The controller sends an order until it is answered; the set that it grants meanwhile counts.
    partition, proposal = shrinking()
    partition.become_leader(state((1, 2), replicas=(1, 2, 3)))
    assert partition.in_sync.is_in_flight
    partition.on_isr_decided(proposal, IsrDecision(0, (1,), 0, 1))
    assert ((1,), None, 1) == (*partition.in_sync, partition.partition_epoch)


@pytest.mark.parametrize(("epoch", "partition_epoch"), [(0, 1), (1, 0)])
def test_a_newer_order_ends_what_is_in_flight(epoch: int, partition_epoch: int) -> None:
    partition, _ = shrinking()
    newer = state((1, 2), replicas=(1, 2, 3), epoch=epoch, partition_epoch=partition_epoch)
    partition.become_leader(newer)
    assert ((1, 2), None) == partition.in_sync


def test_an_order_that_comes_again_ends_the_wait_of_one_that_was_refused() -> None:
    partition, proposal = shrinking()
    partition.on_isr_decided(proposal, IsrDecision(INVALID_REQUEST))
    partition.become_leader(state((1, 2), replicas=(1, 2, 3)))
    assert not partition.in_sync.is_in_flight


def test_an_answer_that_is_older_than_what_is_known_changes_nothing() -> None:
    partition, proposal = shrinking()
    for decision in (IsrDecision(0, (1,), 0, -1), IsrDecision(0, (1,), 4, 1)):
        assert () == partition.on_isr_decided(proposal, decision)
        assert partition.in_sync.is_in_flight


def test_a_decision_completes_what_waited_for_the_laggard() -> None:
    broker = Broker((1, 2))
    broker.produce(sent(), timeout_ms=60_000)
    broker.clock.advance(30_001)
    broker.manager.shrink_isrs()
    (proposal,) = broker.proposed
    broker.manager.on_isr_decided(proposal, IsrDecision(0, (1,), 0, 1))
    assert [0] == broker.codes()


def test_a_decision_on_a_partition_that_is_gone_is_of_no_use() -> None:
    broker = Broker((1, 2))
    broker.manager.remove(PARTITION)
    broker.manager.on_isr_decided(ProposeIsr(PARTITION, (1,), 0, 0), IsrDecision(0, (1,), 0, 1))
    assert [] == broker.proposed
