"""Proposals of in-sync sets: one request in flight, batches, pauses, decisions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.broker.isr_proposals import IsrProposalPorts, IsrProposals
from engine.errors import api_error
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers
from engine.host.promise import Promise
from engine.kafka_errors import (
    INELIGIBLE_REPLICA,
    OPERATION_NOT_ATTEMPTED,
    STALE_BROKER_EPOCH,
    UNKNOWN_SERVER_ERROR,
)
from engine.limits import ISR_PROPOSAL_RETRY_MS
from engine.model import TopicPartition
from engine.replication.effects import ProposeIsr
from engine.replication.partition_types import IsrDecision
from engine.wire.codec import message_codec
from engine.wire.structs import message_class

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
TOPIC_ID = bytes(range(16))
RESPONSE = message_class("AlterPartitionResponse")


def proposal(
    key: TopicPartition = T0,
    isr: tuple[int, ...] = (1,),
    epoch: int = 5,
    topic_id: bytes | None = TOPIC_ID,
) -> ProposeIsr:
    return ProposeIsr(key, isr, epoch, 3, topic_id)


class Stage:
    """The proposals of broker 1 and a controller that answers when told."""

    def __init__(self, version: int = 3) -> None:
        self.version = version
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.requests: list[Any] = []
        self.promises: list[Promise[Any]] = []
        self.highest: list[int | None] = []
        self.decided: list[tuple[ProposeIsr, IsrDecision]] = []
        self.again: Callable[[ProposeIsr], None] | None = None
        self.epoch = 40
        ports = IsrProposalPorts(lambda: self.epoch, self.ask, self.decide)
        self.proposals = IsrProposals(1, ports, self.timers, self.clock)

    def ask(
        self, api_name: str, message: Callable[[int], Any], *, highest: int | None = None
    ) -> Promise[Any]:
        assert api_name == "AlterPartition"
        version = self.version if highest is None else min(highest, self.version)
        codec = message_codec("AlterPartitionRequest", version)
        self.requests.append(codec.decode(codec.encode(message(version))))
        self.highest.append(highest)
        self.promises.append(Promise())
        return self.promises[-1]

    def decide(self, requested: ProposeIsr, decision: IsrDecision) -> None:
        self.decided.append((requested, decision))
        if decision.error_code and self.again is not None:
            self.again(requested)

    def propose(self, *requested: ProposeIsr) -> None:
        for one in requested:
            self.proposals.propose(one)
        self.timers.run_until_idle()

    def answer(self, *rows: Any, error_code: int = 0, name: str = "") -> None:
        topic = RESPONSE.TopicData(topic_name=name, partitions=list(rows))
        if not name:
            topic.topic_id = TOPIC_ID
        topics = [topic] if rows else []
        self.promises[-1].keep(RESPONSE(error_code=error_code, topics=topics))
        self.timers.run_until_idle()

    def pause(self) -> None:
        self.clock.advance(ISR_PROPOSAL_RETRY_MS)
        self.timers.run_until_idle()


def row(index: int = 0, **fields: Any) -> Any:
    return RESPONSE.PartitionData(partition_index=index, **fields)


GRANTED = {"leader_id": 1, "leader_epoch": 5, "isr": [1], "partition_epoch": 4}


def test_what_is_proposed_in_one_turn_leaves_in_one_request() -> None:
    stage = Stage()
    stage.propose(proposal(T0), proposal(T1, (1, 2)))
    (request,) = stage.requests
    assert (1, 40) == (request.broker_id, request.broker_epoch)
    (topic,) = request.topics
    assert TOPIC_ID == topic.topic_id
    assert [(0, 5, 3, [(1, -1)]), (1, 5, 3, [(1, -1), (2, -1)])] == [
        (
            partition.partition_index,
            partition.leader_epoch,
            partition.partition_epoch,
            [(broker.broker_id, broker.broker_epoch) for broker in partition.new_isr_with_epochs],
        )
        for partition in topic.partitions
    ]
    stage.answer(row(0, **GRANTED), row(1, **{**GRANTED, "isr": [1, 2]}))
    assert [
        (proposal(T0), IsrDecision(0, (1,), 5, 4)),
        (proposal(T1, (1, 2)), IsrDecision(0, (1, 2), 5, 4)),
    ] == stage.decided
    assert 0 == stage.proposals.waiting_count


@pytest.mark.parametrize("version", [0, 1, 2])
def test_older_controllers_get_ids_of_brokers_alone(version: int) -> None:
    stage = Stage(version)
    stage.propose(proposal(T0, (1, 2)))
    (topic,) = stage.requests[0].topics
    assert [1, 2] == topic.partitions[0].new_isr
    stage.answer(row(0, **GRANTED), name="t" if version < 2 else "")
    assert [(proposal(T0, (1, 2)), IsrDecision(0, (1,), 5, 4))] == stage.decided


def test_without_the_id_of_a_topic_names_are_used() -> None:
    stage = Stage()
    stage.propose(proposal(topic_id=None), proposal(T1))
    assert ([1], "t") == (stage.highest, stage.requests[0].topics[0].topic_name)


def test_a_topic_that_took_a_name_over_is_distinguished_from_the_one_before() -> None:
    stage = Stage()
    other = bytes(range(1, 17))
    stage.propose(proposal(T0), proposal(T1, topic_id=other))
    assert [(TOPIC_ID, [0]), (other, [1])] == [
        (topic.topic_id, [partition.partition_index for partition in topic.partitions])
        for topic in stage.requests[0].topics
    ]


def test_one_request_is_in_flight_and_the_rest_waits_together() -> None:
    stage = Stage()
    stage.propose(proposal(T0))
    stage.propose(proposal(T1))
    stage.propose(proposal(TopicPartition("t", 2)))
    assert 1 == len(stage.requests)
    stage.answer(row(0, **GRANTED))
    assert [[0], [1, 2]] == [
        [partition.partition_index for partition in request.topics[0].partitions]
        for request in stage.requests
    ]


def test_a_second_proposal_of_a_partition_is_not_attempted() -> None:
    stage = Stage()
    stage.propose(proposal(T0))
    stage.propose(proposal(T0, (1, 2), 6))
    assert [(proposal(T0, (1, 2), 6), IsrDecision(OPERATION_NOT_ATTEMPTED))] == stage.decided
    assert 1 == len(stage.requests)


def test_an_error_of_the_partition_is_its_own() -> None:
    stage = Stage()
    stage.propose(proposal(T0), proposal(T1))
    stage.answer(row(0, error_code=INELIGIBLE_REPLICA), row(1, **GRANTED))
    assert [INELIGIBLE_REPLICA, 0] == [decision.error_code for _, decision in stage.decided]


def test_what_is_proposed_again_after_an_error_waits_a_moment() -> None:
    stage = Stage()
    stage.again = stage.proposals.propose
    stage.propose(proposal(T0))
    stage.answer(row(0, error_code=UNKNOWN_SERVER_ERROR))
    assert 1 == len(stage.requests)
    stage.pause()
    assert 2 == len(stage.requests)


def test_an_answer_that_refuses_all_is_asked_again_with_the_epoch_of_then() -> None:
    stage = Stage()
    stage.propose(proposal(T0))
    stage.answer(error_code=STALE_BROKER_EPOCH)
    assert ([], 1) == (stage.decided, stage.proposals.waiting_count)
    stage.epoch = 41
    stage.pause()
    assert [40, 41] == [request.broker_epoch for request in stage.requests]


def test_a_request_that_is_not_answered_is_made_again() -> None:
    stage = Stage()
    stage.propose(proposal(T0))
    stage.promises[-1].fail(api_error(UNKNOWN_SERVER_ERROR))
    stage.pause()
    stage.answer(row(0, **GRANTED))
    assert [(proposal(T0), IsrDecision(0, (1,), 5, 4))] == stage.decided


def test_a_partition_that_the_answer_leaves_out_is_requested_again() -> None:
    stage = Stage()
    stage.propose(proposal(T0), proposal(T1))
    stage.answer(row(0, **GRANTED))
    stage.pause()
    (topic,) = stage.requests[-1].topics
    assert [1] == [partition.partition_index for partition in topic.partitions]


def test_after_the_stop_nothing_is_asked_or_decided() -> None:
    stage = Stage()
    stage.propose(proposal(T0))
    stage.proposals.stop()
    stage.answer(row(0, **GRANTED))
    stage.propose(proposal(T1))
    stage.pause()
    assert ([], 1) == (stage.decided, len(stage.requests))
