"""What a leader's answers mean for a followed partition."""

from __future__ import annotations

import pytest

from engine.kafka_errors import (
    FENCED_LEADER_EPOCH,
    KAFKA_STORAGE_ERROR,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
)
from engine.replication.following.fetch_state import (
    PREVIOUS_PHASES,
    AppendFetched,
    BackOff,
    Drop,
    FetchFromEnd,
    FetchLeaderOffsets,
    FetchPhase,
    FetchState,
    FetchStep,
    LocalLogEnds,
    LogStep,
    PartitionResponse,
    RestartAt,
    TruncateTo,
    TruncateToDivergence,
    step_after_response,
    step_out_of_range,
    truncation_offset,
)
from engine.replication.partition_types import EpochEnd

OWN = LocalLogEnds(10, 100, 4)
START = FetchState.start(5, OWN)


def test_following_begins_at_the_own_end_in_the_epoch_of_the_last_record() -> None:
    assert (5, 100, 4, 10, FetchPhase.FETCHING) == START[:5]
    assert START.is_due(0)


@pytest.mark.parametrize(
    ("answer", "step"),
    [
        (PartitionResponse(0, 90, 5, b"records"), AppendFetched(b"records", 90, 5)),
        (PartitionResponse(0, 90, 5), AppendFetched(b"", 90, 5)),
        (
            PartitionResponse(0, diverging_epoch=EpochEnd(3, 80)),
            TruncateToDivergence(EpochEnd(3, 80)),
        ),
        (PartitionResponse(OFFSET_OUT_OF_RANGE), FetchLeaderOffsets()),
        (PartitionResponse(FENCED_LEADER_EPOCH), Drop()),
        (PartitionResponse(UNKNOWN_LEADER_EPOCH), BackOff(UNKNOWN_LEADER_EPOCH)),
        (PartitionResponse(NOT_LEADER_OR_FOLLOWER), BackOff(NOT_LEADER_OR_FOLLOWER)),
        (PartitionResponse(KAFKA_STORAGE_ERROR), BackOff(KAFKA_STORAGE_ERROR)),
    ],
)
def test_each_answer_has_one_step(answer: PartitionResponse, step: FetchStep) -> None:
    assert step == step_after_response(answer)
    assert type(step) is type(step_after_response(answer))


@pytest.mark.parametrize(
    ("leader_start", "leader_end", "step"),
    [
        (101, 200, RestartAt(101)),
        (100, 200, FetchFromEnd()),
        (0, 100, FetchFromEnd()),
        (0, 99, TruncateTo(99)),
        (0, 0, TruncateTo(0)),
    ],
    ids=["A", "A not yet", "B2", "B1", "B1 empty"],
)
def test_out_of_range_is_one_of_three_cases(
    leader_start: int, leader_end: int, step: LogStep
) -> None:
    found = step_out_of_range(OWN, leader_start, leader_end)
    assert (type(step), step) == (type(found), found)


@pytest.mark.parametrize(
    ("diverging", "own", "offset"),
    [
        (EpochEnd(3, 80), EpochEnd(3, 90), 80),
        (EpochEnd(3, 80), EpochEnd(3, 70), 70),
        # The local log lacks the epoch: one of its own epochs goes, and the leader is asked again.
        (EpochEnd(3, 80), EpochEnd(2, 60), 60),
        (EpochEnd(3, 80), EpochEnd(2, 95), 95),
        (EpochEnd(3, 80), None, 80),
        (EpochEnd(3, 180), EpochEnd(3, 100), 100),
        (EpochEnd(3, 180), None, 100),
    ],
)
def test_a_log_is_cut_where_it_parts(
    diverging: EpochEnd, own: EpochEnd | None, offset: int
) -> None:
    assert offset == truncation_offset(diverging, own, 100)


def test_a_delay_ends_with_its_time_and_with_an_answer() -> None:
    resting = START.delayed(1000)
    assert not resting.is_due(999)
    assert resting.is_due(1000)
    following = resting.fetching_from(LocalLogEnds(10, 120, 5), 3)
    assert (120, 5, None, 3) == (
        following.fetch_offset,
        following.last_fetched_epoch,
        following.delayed_until_ms,
        following.lag,
    )


@pytest.mark.parametrize(("lag", "is_caught_up"), [(None, False), (1, False), (0, True)])
def test_who_is_known_to_lack_nothing_is_caught_up(lag: int | None, is_caught_up: bool) -> None:
    assert is_caught_up is START.fetching_from(OWN, lag).is_caught_up


def test_phases_follow_on_those_of_the_table() -> None:
    assert set(FetchPhase) == set(PREVIOUS_PHASES)
    truncating = START.entering(FetchPhase.TRUNCATING)
    assert FetchPhase.FETCHING is truncating.fetching_from(OWN).phase
