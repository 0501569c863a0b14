"""Which of the errors of a member's commit decides what happens next."""

from __future__ import annotations

import pytest

from engine.client.offset_commit import code_to_repeat, decisive_commit_code
from engine.kafka_errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    NONE,
    NOT_COORDINATOR,
    REBALANCE_IN_PROGRESS,
    TOPIC_AUTHORIZATION_FAILED,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.wire import messages
from engine.wire.structs import Message


def answered(codes: tuple[int, ...]) -> Message:
    """Return a response with these codes for the partitions of one topic."""
    of = messages.OffsetCommitResponse
    rows = [
        of.OffsetCommitResponsePartition(partition_index=index, error_code=code)
        for index, code in enumerate(codes)
    ]
    return of(topics=[of.OffsetCommitResponseTopic(name="t", partitions=rows)])


@pytest.mark.parametrize(
    ("codes", "code", "repeated"),
    [
        ((), NONE, NONE),
        ((NONE, NONE), NONE, NONE),
        ((NONE, UNKNOWN_TOPIC_OR_PARTITION), UNKNOWN_TOPIC_OR_PARTITION, NONE),
        (
            (UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED),
            TOPIC_AUTHORIZATION_FAILED,
            TOPIC_AUTHORIZATION_FAILED,
        ),
        ((TOPIC_AUTHORIZATION_FAILED, NOT_COORDINATOR), NOT_COORDINATOR, NOT_COORDINATOR),
        (
            (UNKNOWN_TOPIC_OR_PARTITION, COORDINATOR_LOAD_IN_PROGRESS),
            COORDINATOR_LOAD_IN_PROGRESS,
            COORDINATOR_LOAD_IN_PROGRESS,
        ),
        (
            (TOPIC_AUTHORIZATION_FAILED, REBALANCE_IN_PROGRESS),
            REBALANCE_IN_PROGRESS,
            REBALANCE_IN_PROGRESS,
        ),
    ],
)
def test_what_concerns_the_group_decides_before_what_concerns_a_partition(
    codes: tuple[int, ...], code: int, repeated: int
) -> None:
    message = answered(codes)
    assert (code, repeated) == (decisive_commit_code(message), code_to_repeat(message))
