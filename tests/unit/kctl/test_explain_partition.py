"""What `kctl explain partition` asks the leader."""

from __future__ import annotations

from typing import Any

import pytest

from engine.client.errors import Unreachable
from engine.errors import EngineError
from engine.model import TopicPartition
from kctl import exits
from kctl.commands.explain import partition

T0 = TopicPartition("t", 0)


def test_a_leader_that_is_gone_is_reported_once_and_asked_no_more(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[int] = []

    def unreachable(_: Any, times: dict[TopicPartition, int], **__: Any) -> Any:
        asked.extend(times.values())
        return {T0: Unreachable("localhost", 1, "Connection refused")}

    monkeypatch.setattr(partition, "list_offsets", unreachable)
    client: Any = None
    failures = partition.Failures()
    row = partition.read_leader_fields(client, T0, failures)
    assert exits.UNREACHABLE == failures.exit_code
    assert [partition.EARLIEST] == asked
    assert 1 == capsys.readouterr().err.count("Connection refused")
    assert (None, []) == (row["high_watermark"], row["transactions"])


def test_the_first_of_what_could_not_be_asked_is_the_exit_code() -> None:
    failures = partition.Failures()
    assert exits.OK == failures.exit_code
    failures.report(EngineError("no"), "transactions")
    failures.report(Unreachable("localhost", 1, "gone"), "the metadata store")
    assert exits.FAILED == failures.exit_code


def test_groups_of_a_coordinator_that_is_gone_are_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = Unreachable("localhost", 1, "Connection refused")
    errors: dict[str, EngineError] = {f"g{number}": gone for number in range(1000)}
    errors["other"] = EngineError("not this one")

    def list_groups(_: Any) -> Any:
        return [], {}

    def groups_at(*_: Any) -> Any:
        return ["late"], errors

    monkeypatch.setattr(partition, "list_groups", list_groups)
    monkeypatch.setattr(partition, "find_groups_at", groups_at)
    client: Any = None
    failures = partition.Failures()
    assert ["late"] == partition._groups_at(client, T0, 5, failures)
    shown = capsys.readouterr().err
    assert 1 == shown.count("Connection refused")
    assert "1000 groups, as g0" in shown
    assert "group other" in shown
    assert exits.UNREACHABLE == failures.exit_code
