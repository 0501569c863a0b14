"""What `kctl explain partition` asks the leader."""

from __future__ import annotations

from typing import Any

import pytest

from engine.client.errors import Unreachable
from engine.model import TopicPartition
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
    row = partition.of_leader(client, T0)
    assert [partition.EARLIEST] == asked
    assert 1 == capsys.readouterr().err.count("Connection refused")
    assert (None, []) == (row["high_watermark"], row["transactions"])
