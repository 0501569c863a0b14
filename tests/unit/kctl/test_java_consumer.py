"""The consumer of the drop-in tools, where the log does not have its offset."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from engine.client.blocking import KafkaClient
from engine.client.group_admin import set_offsets
from engine.client.offsets import FoundOffset, list_offsets
from engine.errors import ApiError, EngineError, api_error
from engine.kafka_errors import LEADER_NOT_AVAILABLE, TOPIC_AUTHORIZATION_FAILED
from engine.model import TopicPartition
from kctl.compat import java_consumer
from kctl.compat.java_consumer import GroupSource, consumer_settings
from tests.unit.client.test_group_consumer import T0, Stage


def group_source(monkeypatch: pytest.MonkeyPatch, code: int) -> GroupSource:
    """Return a consumer whose committed offset is gone, and whose first look-up fails."""
    stage = Stage()
    set_offsets(stage.client, "g", {T0: 99})
    codes = [code]

    def first_refused(
        client: KafkaClient, timestamps: Mapping[TopicPartition, int], *, read_committed: bool
    ) -> dict[TopicPartition, FoundOffset | EngineError]:
        if codes and T0 in timestamps:
            return {T0: api_error(codes.pop())}
        return list_offsets(client, timestamps, read_committed=read_committed)

    monkeypatch.setattr(java_consumer, "list_offsets", first_refused)
    settings = consumer_settings("g", {"auto.offset.reset": "earliest"})
    return GroupSource(stage.new_client(), settings, topic="t")


def test_a_reset_that_fails_for_now_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    source = group_source(monkeypatch, LEADER_NOT_AVAILABLE)
    polled = [one for _ in range(10) for one in source.poll(1_000)]
    assert [0, 1, 2, 3, 4] == [record.offset for one in polled for record, _ in one.records]


def test_a_reset_that_is_refused_ends_the_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    source = group_source(monkeypatch, TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(ApiError):
        for _ in range(10):
            source.poll(1_000)
