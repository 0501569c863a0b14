"""Roles and in-sync sets are told as a real broker tells them."""

from __future__ import annotations

import logging

import pytest

from engine.replication.effects import ProposeIsr
from engine.replication.partition_types import IsrDecision, PartitionState
from tests.unit.replication.test_leadership import T0, Stage


def _lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.name, record.getMessage()) for record in caplog.records]


def test_a_new_leader_epoch_is_sent_once(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    caplog.set_level(logging.INFO, "state.change.logger")
    assert [0] == stage.lead(T0)
    assert [11] == stage.lead(T0), "an order of the same epoch is told to be stale"
    stage.leadership.apply_states({T0: PartitionState(2, 7, (1, 2), 4, (1, 2))})
    assert [
        (
            "state.change.logger",
            "Leader t-0 with topic id None starts at leader epoch 5 from offset 0 with partition"
            " epoch 0, high watermark 0, ISR [1]. Previous leader -1 and previous leader epoch was"
            " -1.",
        ),
        (
            "state.change.logger",
            "Follower t-0 starts at leader epoch 7 from offset 0 with partition epoch 4 and high"
            " watermark 0. Current leader is 2. Previous leader 1 and previous leader epoch was 5.",
        ),
    ] == _lines(caplog)


def test_in_sync_sets_are_logged_when_proposed_and_when_committed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage()
    stage.leadership.apply_states(
        {T0: PartitionState(1, 5, (1, 2, 3), 0, (1, 2, 3))}, frozenset((T0,))
    )
    caplog.set_level(logging.INFO, "kafka.cluster.Partition")
    stage.clock.advance(31_000)
    stage.replicas.shrink_isrs()
    proposal = ProposeIsr(T0, (1,), 5, 0)
    stage.replicas.on_isr_decided(proposal, IsrDecision(0, (1,), 5, 1))
    head = "[Partition t-0 broker=1]"
    assert [
        f"{head} Shrinking ISR from 1,2,3 to 1. Leader: (highWatermark: 0, endOffset: 0)."
        " Out of sync replicas: 2,3.",
        f"{head} ISR updated to 1 and version updated to 1",
    ] == [text for _, text in _lines(caplog)]


def test_a_set_that_grows_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.leadership.apply_states({T0: PartitionState(1, 5, (1,), 0, (1, 2))}, frozenset((T0,)))
    caplog.set_level(logging.INFO, "kafka.cluster.Partition")
    stage.replicas.perform([ProposeIsr(T0, (1, 2), 5, 0)])
    assert ["[Partition t-0 broker=1] Expanding ISR from 1 to 1,2"] == [
        text for _, text in _lines(caplog)
    ]
