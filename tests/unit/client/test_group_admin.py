"""Offsets that are set by request: which responses are results, and which want another broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from engine.client.blocking import KafkaClient
from engine.client.group_admin import set_offsets
from engine.errors import ApiError
from engine.kafka_errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    NONE,
    NOT_COORDINATOR,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.model import TopicPartition
from engine.wire import messages
from engine.wire.structs import Message

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Answered:
    """A coordinator that answers a commit of two partitions once, with a code for each."""

    def __init__(self, *codes: int) -> None:
        response = messages.OffsetCommitResponse
        rows = [
            response.OffsetCommitResponsePartition(partition_index=index, error_code=code)
            for index, code in enumerate(codes)
        ]
        topic = response.OffsetCommitResponseTopic(name="t", partitions=rows)
        self.message = response(topics=[topic])
        self.code = NONE

    def send_to_coordinator(
        self, _key: str, _api: str, _message: Any, *, retriable_code: Callable[[Message], int]
    ) -> Answered:
        self.code = retriable_code(self.message)
        return self


@pytest.mark.parametrize(
    ("codes", "retried"),
    [
        ((NONE, NONE), NONE),
        ((UNKNOWN_TOPIC_OR_PARTITION, NONE), NONE),
        ((TOPIC_AUTHORIZATION_FAILED, NOT_COORDINATOR), NOT_COORDINATOR),
        ((NOT_COORDINATOR, NOT_COORDINATOR), NOT_COORDINATOR),
        ((UNKNOWN_TOPIC_OR_PARTITION, COORDINATOR_LOAD_IN_PROGRESS), COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
def test_a_commit_is_sent_again_where_any_partition_shows_another_coordinator(
    codes: tuple[int, int], retried: int
) -> None:
    coordinator = Answered(*codes)
    results = set_offsets(cast(KafkaClient, coordinator), "g", {T0: 5, T1: 6})
    assert retried == coordinator.code
    found = [NONE if error is None else cast(ApiError, error).code for error in results.values()]
    assert list(codes) == found
