"""`kctl events` on brokers in memory: what is printed, and when it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, repeat

import pytest

from engine.client.errors import Unreachable
from engine.client.metadata import ClusterView
from engine.errors import EngineError
from kctl import exits
from kctl.commands.events import watching
from kctl.commands.events.watching import EventsRequest, show_events
from kctl.connect import ClusterOptions
from kctl.schemas import schema_of
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.reassign.memory_streams import MemoryStreams, client_of

GONE = Unreachable("here", 1, "gone")


class Stage:
    """A cluster whose topics are created while time goes by."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cluster = MemoryCluster(is_one_process=True)
        self.cluster.pass_time(1_000)
        self.streams = MemoryStreams(self.cluster)
        self.client = client_of(self.cluster, self.streams)
        monkeypatch.setattr(watching, "connect", lambda _options: self.client)
        self.to_create: Iterator[str] = iter(())
        self.streams.on_wait = self.create_next

    def create_next(self) -> None:
        name = next(self.to_create, None)
        if name is not None:
            self.cluster.create_topic(name, ((1, 2),))

    def show(self, *, follows: bool = True, count: int | None = None) -> int:
        request = EventsRequest(follows, "1s", count, "ndjson")
        return show_events(ClusterOptions(timeout_s=5), request)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def topics_in(text: str) -> list[str]:
    rows = [json.loads(line) for line in text.splitlines()]
    fields = schema_of("events")["items"]["properties"]  # type: ignore[index]
    assert all(set(row) == set(fields) for row in rows)
    return [row["topic"] for row in rows if row["event"] == "topic-created"]


def test_events_are_printed_until_there_are_enough(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    stage.to_create = iter(("a", "b", "c"))
    assert exits.OK == stage.show(count=2)
    assert ["a", "b"] == topics_in(capsys.readouterr().out)


def test_without_follow_one_interval_is_checked(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exits.OK == stage.show(follows=False)
    assert "" == capsys.readouterr().out


def test_a_cluster_that_is_away_for_a_while_is_reported_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    view = stage.client.view
    failures = chain([None, GONE, GONE], repeat(None))

    def failing(*topics: None, deadline_ms: int) -> ClusterView:
        failure = next(failures)
        if failure is not None:
            raise failure
        return view(*topics, deadline_ms=deadline_ms)

    monkeypatch.setattr(stage.client, "view", failing)
    stage.to_create = iter(("a",))
    assert exits.OK == stage.show(count=1)
    out, err = capsys.readouterr()
    assert ["a"] == topics_in(out)
    assert 1 == err.count("looking again")
    assert "answers again" in err


def test_a_first_look_that_fails_is_an_error(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object, **__: object) -> ClusterView:
        raise GONE

    monkeypatch.setattr(stage.client, "view", unreachable)
    with pytest.raises(EngineError, match="gone"):
        stage.show()
