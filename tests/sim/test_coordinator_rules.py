"""Against which part of its log a coordinator is held."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.groups.group import Group
from engine.groups.group_offsets import CommittedOffset
from engine.groups.records import build_offset_record
from engine.log.directory.leader_epoch_checkpoint import EpochStart
from engine.model import TopicPartition
from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, BatchSettings
from engine.sim.coordinator_rules import CoordinatorRules
from engine.sim.group_rules import OFFSETS_TOPIC
from engine.sim.node import SimulatedBroker

T0 = TopicPartition("t", 0)
KEY = TopicPartition(OFFSETS_TOPIC, 0)


class Log:
    """The log of one replica."""

    def __init__(self) -> None:
        self.content: list[bytes] = []
        self.log_start_offset = 0
        self.epochs = SimpleNamespace(entries=())

    @property
    def log_end_offset(self) -> int:
        return len(self.content)

    def commit(self, offset: int) -> None:
        builder = BatchBuilder(BatchSettings(base_offset=len(self.content)))
        record = build_offset_record("g", T0, CommittedOffset(offset))
        builder.append(0, record.key, record.value)
        self.content.append(bytes(builder.build()))

    def read(self, start: int, _max_bytes: int, end: int) -> SimpleNamespace:
        assert BatchView(memoryview(self.content[start]), 0).base_offset == start
        content = b"".join(self.content[start:end])
        return SimpleNamespace(read=lambda: content, release=lambda: None)


class Stage:
    """A broker that leads the one partition of groups, and what it knows of `g`."""

    def __init__(self) -> None:
        self.log = Log()
        self.group = Group("g", 0)
        self.code = 0
        self.loaded_epoch: int | None = None
        self.broken: list[str] = []
        self.partition = SimpleNamespace(
            topic_partition=KEY,
            log=self.log,
            is_leader=True,
            leader_epoch=0,
            epoch_start_offset=0,
        )
        registry = SimpleNamespace(
            groups={"g": self.group},
            partition_of=lambda _: 0,
            check_served=lambda _: self.code,
            loaded_epoch=lambda _: self.loaded_epoch,
        )
        replicas = SimpleNamespace(partitions={KEY: self.partition})
        broker = SimpleNamespace(
            broker_id=1,
            storage=SimpleNamespace(replica_manager=replicas),
            groups=SimpleNamespace(registry=registry),
        )
        node = SimpleNamespace(broker=broker, machine=SimpleNamespace(life=1))
        self.machine = node.machine
        self.rules = CoordinatorRules(
            lambda rule, _text, _partition: self.broken.append(rule),
            cast("dict[int, SimulatedBroker]", {1: cast(Any, node)}),
        )

    def lead(self, epoch: int) -> None:
        """Lead from the log's end on in an epoch."""
        start = self.log.log_end_offset
        self.partition.leader_epoch, self.partition.epoch_start_offset = epoch, start
        self.log.epochs.entries = (*self.log.epochs.entries, EpochStart(epoch, start))

    def knows(self, offset: int) -> None:
        """Know an offset of t0."""
        self.group.offsets.put(T0, CommittedOffset(offset), offset)

    def check(self) -> list[str]:
        self.rules.check()
        return self.broken


def test_a_coordinator_knows_what_its_log_had_as_it_began() -> None:
    stage = Stage()
    stage.log.commit(5)
    stage.lead(1)
    stage.knows(5)
    assert [] == stage.check()
    assert 1 == stage.rules.compared_count
    stage.log.commit(6)
    assert [] == stage.check()
    stage.knows(6)
    assert [] == stage.check()
    stage.knows(7)
    assert ["G3"] == stage.check()


def test_one_that_has_not_loaded_all_is_found() -> None:
    stage = Stage()
    stage.log.commit(5)
    stage.lead(1)
    assert ["G3"] == stage.check()


def test_a_leader_that_leads_on_may_know_nothing_of_a_write_that_failed() -> None:
    stage = Stage()
    stage.lead(1)
    stage.log.commit(5)
    assert [] == stage.check()
    stage.lead(2)
    assert [] == stage.check()


def test_a_leader_that_is_seen_in_a_later_epoch_may_know_nothing_of_a_write_that_failed() -> None:
    stage = Stage()
    stage.lead(1)
    stage.loaded_epoch = 1
    stage.log.commit(5)
    stage.lead(2)
    assert [] == stage.check()


def test_a_leader_that_has_loaded_in_a_later_epoch_knows_what_was_written_before() -> None:
    stage = Stage()
    stage.lead(1)
    stage.log.commit(5)
    stage.lead(2)
    # Nothing was appended in epoch 3.
    stage.loaded_epoch = 3
    stage.partition.leader_epoch = 3
    assert ["G3"] == stage.check()


def test_a_leader_that_led_before_its_start_in_the_same_epoch_leads_on() -> None:
    stage = Stage()
    stage.lead(1)
    stage.log.commit(5)
    stage.partition.epoch_start_offset = 1
    stage.knows(5)
    assert [] == stage.check()
    stage.log.commit(6)
    stage.lead(2)
    assert [] == stage.check()


@pytest.mark.parametrize("how", ["truncated", "started again"])
def test_a_leader_that_has_loaded_its_log_again_knows_all_of_it(how: str) -> None:
    stage = Stage()
    stage.lead(1)
    stage.log.commit(5)
    assert [] == stage.check()
    if how == "truncated":
        stage.log.epochs.entries = ()
    else:
        stage.machine.life = 2
    stage.lead(2)
    assert ["G3"] == stage.check()


def test_a_leader_that_got_its_partition_back_is_held_to_what_it_wrote_in_place_of_the_old() -> (
    None
):
    stage = Stage()
    stage.lead(1)
    stage.loaded_epoch = 1
    stage.log.commit(5)
    assert [] == stage.check()
    # What was not committed is truncated, in a later epoch another record is written there.
    stage.log.content.clear()
    stage.loaded_epoch = stage.partition.leader_epoch = 3
    stage.log.commit(6)
    stage.knows(6)
    assert [] == stage.check()


def test_nothing_is_asked_of_those_that_serve_nothing() -> None:
    stage = Stage()
    stage.log.commit(5)
    stage.lead(1)
    stage.code = 14
    assert [] == stage.check()
    stage.code, stage.partition.is_leader = 0, False
    assert [] == stage.check()
    assert 0 == stage.rules.compared_count
