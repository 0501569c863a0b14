"""What a simulated producer makes of a refusal for the order of its sequences."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from engine.client.settings import Address
from engine.kafka_errors import NOT_ENOUGH_REPLICAS, OUT_OF_ORDER_SEQUENCE_NUMBER
from engine.model import TopicPartition
from engine.sim.clients import ACKS_ALL, ProducerKind, SentBatch, SimulatedProducer
from engine.wire import messages

T0 = TopicPartition("t", 0)
LEADER = Address("b1", 9092)


class _Links:
    name = "p"


@dataclass
class _Log:
    """What is so in the cluster, and what the producer says is broken."""

    is_leader: bool = True
    epoch: int = 7
    has_it: bool = False
    has_committed_it: bool = False
    has_later_ones: bool = False
    has_lost_those_before: bool = False
    losses: int = 0
    broken: list[str] = field(default_factory=list)

    def record(self, subject: str, text: str) -> None:
        """Keep no trace."""

    def broke(self, rule: str, text: str, partition: TopicPartition | None) -> None:
        self.broken.append(rule)

    def leads(self, host: str, partition: TopicPartition) -> bool:
        return self.is_leader

    def leader_epoch(self, partition: TopicPartition) -> int:
        return self.epoch

    def loss_count(self, partition: TopicPartition) -> int:
        return self.losses

    def is_written(self, producer: SimulatedProducer, batch: SentBatch) -> bool:
        return self.has_it

    def is_committed(self, producer: SimulatedProducer, batch: SentBatch) -> bool:
        return self.has_committed_it

    def is_overtaken(self, producer: SimulatedProducer, batch: SentBatch) -> bool:
        return self.has_later_ones

    def is_forgotten(self, producer: SimulatedProducer, batch: SentBatch) -> bool:
        return self.has_lost_those_before


def refused(log: Any, code: int = OUT_OF_ORDER_SEQUENCE_NUMBER) -> tuple[bool, list[str]]:
    """Return whether a batch counts as accepted after a refusal, and what is broken."""
    kind = ProducerKind(ACKS_ALL, True, 3, 100)
    links: Any = _Links()
    producer = SimulatedProducer(links, kind, [T0], Random(0), log)
    batch = SentBatch(T0, 4, 1)
    batch.leader_epoch = 7
    row = messages.ProduceResponse.PartitionProduceResponse(error_code=code)
    producer._apply_result(batch, LEADER, row)
    return batch.is_accepted, log.broken


@pytest.mark.parametrize(
    ("log", "is_accepted"),
    [
        (_Log(is_leader=False), False),
        # Another has led since it was sent.
        (_Log(epoch=9), False),
        # It may be lost with its leader, and has to come again then.
        (_Log(has_it=True), False),
        (_Log(has_it=True, has_committed_it=True), True),
        (_Log(has_later_ones=True), True),
        # It goes on with another id, too.
        (_Log(has_lost_those_before=True), False),
        # It goes on with another id.
        (_Log(losses=1), False),
    ],
)
def test_a_refusal_that_has_its_reason_breaks_nothing(log: _Log, is_accepted: bool) -> None:
    assert (is_accepted, []) == refused(log)


def test_a_sequence_that_nobody_knows_is_missing() -> None:
    assert (False, ["T5"]) == refused(_Log())


def test_what_may_be_sent_again_breaks_nothing() -> None:
    assert (False, []) == refused(_Log(), NOT_ENOUGH_REPLICAS)
