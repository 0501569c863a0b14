"""In-sync sets that a leader writes itself: over the version it knows, and told every now and then.

Source: ISR-6, SCH-3.
"""

from __future__ import annotations

import logging

import pytest

from engine.broker.isr_writes import IsrWritePorts, IsrWrites, writes_sets_itself
from engine.broker.tasks import LoopTasks
from engine.host.coroutine import drive
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers, MemoryWorkers
from engine.kafka_errors import INVALID_UPDATE_VERSION, UNKNOWN_TOPIC_OR_PARTITION
from engine.model import TopicPartition
from engine.replication.effects import ProposeIsr
from engine.replication.partition_types import IsrDecision
from engine.znode.client import ANY_VERSION
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.errors import ZnodeConnectionLost
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import Stat
from engine.znode.paths import ISR_CHANGE_NOTIFICATION, partition_state_path
from engine.znode.store import ZnodeStore
from engine.znode.values import (
    PartitionStateNode,
    decode_partition_state,
    decode_partitions,
    encode_partition_state,
)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
CONTROLLER_EPOCH = 7


class Unsteady(EmbeddedZnodeClient):
    """A session whose changes fail while the store is away."""

    is_away = False

    async def set(self, path: str, data: bytes | None, version: int = ANY_VERSION) -> Stat:
        self._meet_store(path)
        return await super().set(path, data, version)

    async def create(
        self,
        path: str,
        data: bytes | None = None,
        *,
        ephemeral: bool = False,
        sequential: bool = False,
    ) -> str:
        self._meet_store(path)
        return await super().create(path, data, ephemeral=ephemeral, sequential=sequential)

    def _meet_store(self, path: str) -> None:
        if self.is_away:
            raise ZnodeConnectionLost(f"change {path}")


class Stage:
    """The writes of broker 1, which leads t-0 in epoch 5 with the set 1, 2, 3."""

    def __init__(self) -> None:
        self.clock = ManualClock(monotonic_ms=1_000_000)
        self.timers = MemoryTimers(self.clock)
        self.store = ZnodeStore(MemoryJournal(), self.clock)
        self.client = Unsteady(self.store, 1 << 30)
        drive(self.client.connect()).result()
        for path in (ISR_CHANGE_NOTIFICATION, *self._parents(partition_state_path(T0))):
            drive(self.client.create(path)).result()
        self.write(PartitionStateNode(1, 5, (1, 2, 3), CONTROLLER_EPOCH))
        self.decided: list[tuple[ProposeIsr, IsrDecision]] = []
        tasks = LoopTasks(
            self.timers,
            self.clock,
            workers=MemoryWorkers(self.timers),
            on_failure=lambda name, error: pytest.fail(f"{name}: {error}"),
        )
        ports = IsrWritePorts(
            self.client,
            lambda _key: CONTROLLER_EPOCH,
            lambda proposal, decision: self.decided.append((proposal, decision)),
        )
        self.writes = IsrWrites(1, ports, tasks, self.clock)
        self.writes.start()

    @staticmethod
    def _parents(path: str) -> list[str]:
        parts = path.split("/")[1:]
        return ["/" + "/".join(parts[: count + 1]) for count in range(len(parts))]

    def write(self, state: PartitionStateNode) -> int:
        path = partition_state_path(T0)
        return drive(self.client.set(path, encode_partition_state(state))).result().version

    def stored(self) -> PartitionStateNode:
        path = partition_state_path(T0)
        return decode_partition_state(drive(self.client.get(path)).result()[0], path)

    def propose(self, isr: tuple[int, ...], version: int, key: TopicPartition = T0) -> ProposeIsr:
        proposal = ProposeIsr(key, isr, 5, version)
        self.writes.propose(proposal)
        assert not self.decided or self.decided[-1][0] is not proposal
        self.timers.run_until_idle()
        return proposal

    def pass_time(self, duration_ms: int) -> None:
        for _ in range(duration_ms // 500):
            self.clock.advance(500)
            self.timers.run_until_idle()

    def told(self) -> list[list[TopicPartition]]:
        names = drive(self.client.children(ISR_CHANGE_NOTIFICATION)).result()
        paths = [f"{ISR_CHANGE_NOTIFICATION}/{name}" for name in names]
        return [decode_partitions(drive(self.client.get(path)).result()[0], path) for path in paths]


def test_a_set_is_written_over_the_version_that_is_known() -> None:
    stage = Stage()
    proposal = stage.propose((1, 2), 1)
    assert [(proposal, IsrDecision(0, (1, 2), 5, 2))] == stage.decided
    assert PartitionStateNode(1, 5, (1, 2), CONTROLLER_EPOCH) == stage.stored()
    assert 0 == stage.writes.waiting_count


def test_a_controller_that_was_there_first_has_the_word() -> None:
    stage = Stage()
    stage.write(PartitionStateNode(2, 6, (2, 3), 8))
    stage.propose((1, 2), 1)
    assert [INVALID_UPDATE_VERSION] == [decision.error_code for _, decision in stage.decided]
    assert PartitionStateNode(2, 6, (2, 3), 8) == stage.stored()


def test_a_write_whose_answer_was_lost_is_a_success() -> None:
    stage = Stage()
    version = stage.write(PartitionStateNode(1, 5, (1, 2), 6))
    stage.propose((1, 2), 1)
    assert [IsrDecision(0, (1, 2), 5, version)] == [decision for _, decision in stage.decided]


def test_a_partition_that_is_gone_is_reported_as_such() -> None:
    stage = Stage()
    stage.propose((1,), 1, T1)
    assert [UNKNOWN_TOPIC_OR_PARTITION] == [decision.error_code for _, decision in stage.decided]


def test_a_store_that_is_away_is_asked_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    stage = Stage()
    stage.client.is_away = True
    stage.propose((1, 2), 1)
    assert [] == stage.decided
    assert 1 == stage.writes.waiting_count
    assert "trying again" in caplog.text
    stage.client.is_away = False
    stage.pass_time(500)
    assert [0] == [decision.error_code for _, decision in stage.decided]


def test_changes_are_announced_after_a_time_of_quiet_in_one_node() -> None:
    stage = Stage()
    stage.propose((1, 2), 1)
    stage.pass_time(2500)
    # The first is told at once.
    assert [[T0]] == stage.told()
    stage.propose((1,), 2)
    stage.pass_time(5000)
    assert [[T0]] == stage.told()
    stage.pass_time(2500)
    assert [[T0], [T0]] == stage.told()
    stage.pass_time(20_000)
    assert [[T0], [T0]] == stage.told()


def test_changes_without_end_are_reported_once_a_minute() -> None:
    stage = Stage()
    stage.pass_time(60_000)
    for version in range(1, 50):
        stage.propose((1, 2) if version % 2 else (1, 2, 3), version)
        stage.pass_time(2500)
    assert 2 <= len(stage.told()) <= 3


def test_a_note_that_could_not_be_made_comes_later() -> None:
    stage = Stage()
    stage.propose((1, 2), 1)
    stage.client.is_away = True
    stage.pass_time(10_000)
    stage.client.is_away = False
    assert [] == stage.told()
    stage.pass_time(2500)
    assert [[T0]] == stage.told()


def test_nothing_is_decided_after_the_stop() -> None:
    stage = Stage()
    stage.writes.stop()
    stage.propose((1, 2), 1)
    assert [] == stage.decided
    assert (1, 2, 3) == stage.stored().isr


@pytest.mark.parametrize(
    ("release", "writes"),
    [
        ("0.10.2-IV0", True),
        ("0.11.0", True),
        ("2.6", True),
        ("2.6-IV0", True),
        ("2.7-IV1", True),
        ("2.7-IV2", False),
        ("2.7", False),
        ("2.7.1", False),
        ("3.9-IV0", False),
        ("2.6-IV0.1", True),
    ],
)
def test_leaders_ask_from_release_2_7_on(release: str, writes: bool) -> None:
    assert writes is writes_sets_itself(release)
