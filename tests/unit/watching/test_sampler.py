"""Samples one after another, on brokers in memory: how often a broker is asked."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from engine.client.connection import Call
from engine.client.errors import Unreachable
from engine.client.settings import Address
from engine.limits import WATCH_REQUESTS_PER_S
from engine.watching.sampler import Sampler, WatchStopped
from engine.watching.watch import Watch
from tests.unit.exporter.test_exporter import Stage


class Requests:
    """The requests that a client sends, with their times."""

    def __init__(self, stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[tuple[Address, str, int]] = []
        submit, clock = stage.client.connections.submit, stage.client.clock

        def counted(address: Address, call: Call, *rest: Any, **options: Any) -> None:
            self.sent.append((address, call.api_name, clock.monotonic_ms()))
            submit(address, call, *rest, **options)

        monkeypatch.setattr(stage.client.connections, "submit", counted)

    def most_in_a_second(self) -> int:
        return max(
            sum(to == address and at_ms <= at < at_ms + 1000 for to, _, at in self.sent)
            for address, _, at_ms in self.sent
        )

    def count(self, api_name: str) -> int:
        return sum(name == api_name for _, name, _ in self.sent)


@pytest.mark.parametrize("every_ms", [100, 5_000])
def test_no_broker_gets_more_than_two_requests_in_a_second(
    every_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage()
    requests, sampler = Requests(stage, monkeypatch), Sampler(stage.client, every_ms)
    began_ms = stage.client.clock.monotonic_ms()
    watch = Watch()
    for _ in range(4):
        frame = watch.add_sample(sampler.take_next())
    assert WATCH_REQUESTS_PER_S == requests.most_in_a_second()
    assert stage.client.clock.monotonic_ms() - began_ms >= 3 * every_ms
    assert (3, 1) == (len(frame.brokers), len(frame.groups))
    # Settings of topics are asked for with the first sample.
    assert 1 == requests.count("DescribeConfigs")


def test_a_sample_is_due_an_interval_after_the_one_before_began() -> None:
    stage = Stage()
    sampler, clock = Sampler(stage.client, 60_000), stage.client.clock
    begins = list[int]()
    for _ in range(3):
        sampler.take_next()
        begins.append(sampler._began_ms or 0)
    assert [60_000, 60_000] == [after - before for before, after in pairwise(begins)]
    assert clock.monotonic_ms() - begins[-1] < 30_000


def test_groups_may_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    requests = Requests(stage, monkeypatch)
    Sampler(stage.client, 1_000, with_groups=False).take_next()
    assert (0, 0) == (requests.count("ListGroups"), requests.count("OffsetFetch"))


def test_a_cluster_that_is_gone_for_a_while_is_asked_by_the_same_pace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage()
    sampler, watch = Sampler(stage.client, 2_000), Watch()
    watch.add_sample(sampler.take_next())
    view = stage.client.view
    tries: list[int] = []

    def gone(*_: object, **__: object) -> None:
        tries.append(stage.client.clock.monotonic_ms())
        raise Unreachable("here", 1, "gone")

    monkeypatch.setattr(stage.client, "view", gone)
    for _ in range(3):
        with pytest.raises(Unreachable):
            sampler.take_next()
    assert all(after - before >= 1_000 for before, after in pairwise(tries))
    monkeypatch.setattr(stage.client, "view", view)
    assert 2 == len(watch.add_sample(sampler.take_next()).topics)


def test_a_pause_ends_when_nobody_wants_the_sample() -> None:
    stage = Stage()
    sampler = Sampler(stage.client, 60_000, is_stopped=lambda: True)
    with pytest.raises(WatchStopped):
        while True:
            sampler.take_next()
