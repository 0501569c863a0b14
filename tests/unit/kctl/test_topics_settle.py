"""A change counts as made for the next command: the brokers tell of it before this one ends."""

from __future__ import annotations

from typing import Any

import pytest

from kctl.commands.topics.metadata_wait import await_created, await_deleted, await_partitions
from tests.unit.client.fake_broker import FakeCluster


class LateCluster(FakeCluster):
    """Brokers that tell of a change after so many questions, if ever."""

    def __init__(self, before: dict[Any, int], after: dict[Any, int], questions: int) -> None:
        super().__init__()
        self.leaders, self._after = before, after
        self._questions = questions
        self.handlers["Metadata"] = self.metadata_by_then

    def metadata_by_then(self, body: Any, version: int, address: tuple[str, int]) -> Any:
        self._questions -= 1
        if self._questions < 0:
            self.leaders = self._after
        return self.metadata(body, version, address)


ONE, GROWN = {("t", 0): 1}, {("t", 0): 1, ("t", 1): 2}


@pytest.mark.parametrize("questions", [0, 1, 5])
def test_a_new_topic_is_waited_for(questions: int) -> None:
    cluster = LateCluster({}, ONE, questions)
    await_created(cluster.client(), ["t"])
    assert ["Metadata"] * (questions + 1) == cluster.requested_apis()


def test_a_new_topic_counts_once_it_has_leaders() -> None:
    cluster = LateCluster({("t", 0): -1}, ONE, 2)
    await_created(cluster.client(), ["t"])
    assert 3 == len(cluster.requested_apis())


def test_new_partitions_are_waited_for() -> None:
    cluster = LateCluster(ONE, GROWN, 3)
    await_partitions(cluster.client(), {"t": 2})
    assert 4 == len(cluster.requested_apis())


def test_a_deleted_topic_is_waited_for() -> None:
    cluster = LateCluster(ONE, {}, 3)
    await_deleted(cluster.client(), ["t"])
    assert 4 == len(cluster.requested_apis())


def test_nothing_is_asked_when_nothing_was_changed() -> None:
    cluster = FakeCluster()
    await_created(cluster.client(), [])
    assert not cluster.requested


def test_a_change_that_does_not_show_is_said_and_no_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = LateCluster({}, {}, 0)
    await_created(cluster.client(), ["t"])
    assert "shows in a moment" in capsys.readouterr().err
    assert 5_000 < cluster.clock.now_ms < 12_000


def test_brokers_that_go_away_end_the_wait(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = FakeCluster()
    cluster.handlers["Metadata"] = lambda _body, _version, _address: None
    await_created(cluster.client(), ["t"])
    assert "shows in a moment" in capsys.readouterr().err
