"""The processes of the exactly-once demo, played."""

from __future__ import annotations

import json

import pytest

from engine.demo.exactly_once import CopyPlan
from engine.demo.instances import (
    CopyRun,
    InstanceFailed,
    InstanceTotals,
    KillPoint,
    KillSchedule,
    NoProgress,
    plan_kills,
)
from engine.model import TopicPartition
from tests.client_session import FixedEntropy
from tests.unit.client.fake_broker import FakeCluster

PLAN = CopyPlan("demo", 2, 2, 100)


class PlayedProcess:
    """A process that sends lines of our own."""

    def __init__(self, *lines: dict[str, object]) -> None:
        self._lines = [json.dumps(line).encode() for line in lines]
        self.exit_code: int | None = None
        self.ends: list[str] = []
        #: A line that it sends as it ends.
        self.last: bytes | None = None

    def lines(self) -> list[bytes]:
        lines, self._lines = self._lines, []
        return lines

    def close_input(self) -> None:
        self.ends.append("asked")

    def kill(self) -> None:
        self.ends.append("killed")

    def close(self, wait_s: float) -> None:
        self.ends.append("closed")
        self.exit_code = 0
        self._lines += [] if self.last is None else [self.last]


class PlayedBrokers:
    """Brokers that note their kills."""

    broker_ids = (1, 2, 3)

    def __init__(self) -> None:
        self.log: list[tuple[str, int]] = []

    def kill(self, broker_id: int) -> None:
        self.log.append(("kill", broker_id))

    def restart(self, broker_id: int) -> None:
        self.log.append(("restart", broker_id))


class Stage:
    """A group that commits so many records more at every look."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, per_look: int) -> None:
        self.client = FakeCluster().client()
        self.done = 0
        self.started: list[PlayedProcess] = []
        self.told: list[str] = []
        self.brokers = PlayedBrokers()

        def committed(*_: object) -> dict[TopicPartition, int]:
            self.done = min(self.done + per_look, PLAN.record_count)
            return {TopicPartition(PLAN.input_topic, 0): self.done, TopicPartition("other", 0): 5}

        monkeypatch.setattr("engine.demo.exactly_once.committed_offsets", committed)

    def start(self, instance: int) -> PlayedProcess:
        counts = {"records": 5, "committed": 1, "aborted": 2, "partitions": [instance]}
        self.started.append(PlayedProcess(counts))
        return self.started[-1]

    def copy(self, *, kills: bool = False) -> CopyRun:
        strikes = KillSchedule(FixedEntropy(), self.brokers, self.told.append) if kills else None
        return CopyRun(self.client, PLAN, self.start, strikes=strikes, stalled_ms=5_000)


def test_a_run_ends_when_the_group_has_committed_all(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, 40)
    run = stage.copy()
    seen: list[int] = []
    run.run(lambda done, _totals: seen.append(done))
    assert [40, 80, 100] == seen
    assert InstanceTotals(1, (1,), 1, 2, 0) == run.totals()[1]
    run.close()
    assert [["asked", "closed"]] * 2 == [process.ends for process in stage.started]


def test_what_instances_report_as_they_end_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, 100)
    run = stage.copy()
    run.run(lambda _done, _totals: None)
    last = {"records": 9, "committed": 2, "aborted": 2, "partitions": [1]}
    stage.started[1].last = json.dumps(last).encode()
    run.close()
    assert InstanceTotals(1, (1,), 2, 2, 0) == run.totals()[1]


def test_instances_and_brokers_are_killed_in_turn_and_are_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(monkeypatch, 1)
    run = stage.copy(kills=True)
    run.run(lambda _done, _totals: None)
    assert 4 == sum(process.ends == ["killed"] for process in stage.started)
    assert 4 == sum(each.kills for each in run.totals())
    kinds = [kind for kind, _ in stage.brokers.log]
    assert ["kill", "restart"] * 3 == kinds
    assert stage.told[0].startswith("instance")
    assert stage.told[1].startswith("broker")
    # Both processes of an instance count.
    assert sum(each.committed for each in run.totals()) > 2


def test_an_instance_that_ends_with_an_error_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, 0)
    stage.start = lambda _number: PlayedProcess({"error": "no way", "hint": "go round"})  # type: ignore[method-assign]
    with pytest.raises(InstanceFailed, match="instance 0: no way") as raised:
        stage.copy().run(lambda _done, _totals: None)
    assert "go round" == raised.value.hint


def test_an_instance_that_ends_without_a_word_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, 0)

    def start(_number: int) -> PlayedProcess:
        process = PlayedProcess()
        process.exit_code = -9
        return process

    stage.start = start  # type: ignore[method-assign]
    with pytest.raises(InstanceFailed, match=r"ended by itself \(exit code -9\)"):
        stage.copy().run(lambda _done, _totals: None)


def test_a_group_that_commits_nothing_more_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(monkeypatch, 0)
    with pytest.raises(NoProgress, match="0 of 100 records are committed, and none for 5 s"):
        stage.copy().run(lambda _done, _totals: None)


def test_kills_are_spread_over_the_records() -> None:
    points = plan_kills(PLAN._replace(record_count=80), has_brokers=True)
    kinds = [False, True, False, True, False, True, False]
    assert [KillPoint(10 * (n + 1), kind) for n, kind in enumerate(kinds)] == points
    assert not any(point.is_broker for point in plan_kills(PLAN, has_brokers=False))
