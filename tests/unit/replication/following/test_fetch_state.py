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
    AskLeaderEnds,
    CutTo,
    CutWhereParted,
    Drop,
    FetchPhase,
    FetchState,
    FetchStep,
    GoOn,
    LeaderAnswer,
    LogStep,
    OwnLog,
    Rest,
    RestartAt,
    after_answer,
    after_leader_ends,
    truncation_offset,
)
from engine.replication.partition_types import EpochEnd

OWN = OwnLog(10, 100, 4)
START = FetchState.start(5, OWN)


def test_following_begins_at_the_own_end_in_the_epoch_of_the_last_record() -> None:
    assert (5, 100, 4, 10, FetchPhase.FETCHING) == START[:5]
    assert START.is_due(0)


@pytest.mark.parametrize(
    ("answer", "step"),
    [
        (LeaderAnswer(0, 90, 5, b"records"), AppendFetched(b"records", 90, 5)),
        (LeaderAnswer(0, 90, 5), AppendFetched(b"", 90, 5)),
        (LeaderAnswer(0, diverging_epoch=EpochEnd(3, 80)), CutWhereParted(EpochEnd(3, 80))),
        (LeaderAnswer(OFFSET_OUT_OF_RANGE), AskLeaderEnds()),
        (LeaderAnswer(FENCED_LEADER_EPOCH), Drop()),
        (LeaderAnswer(UNKNOWN_LEADER_EPOCH), Rest(UNKNOWN_LEADER_EPOCH)),
        (LeaderAnswer(NOT_LEADER_OR_FOLLOWER), Rest(NOT_LEADER_OR_FOLLOWER)),
        (LeaderAnswer(KAFKA_STORAGE_ERROR), Rest(KAFKA_STORAGE_ERROR)),
    ],
)
def test_each_answer_has_one_step(answer: LeaderAnswer, step: FetchStep) -> None:
    assert step == after_answer(answer)
    assert type(step) is type(after_answer(answer))


@pytest.mark.parametrize(
    ("leader_start", "leader_end", "step"),
    [
        (101, 200, RestartAt(101)),
        (100, 200, GoOn()),
        (0, 100, GoOn()),
        (0, 99, CutTo(99)),
        (0, 0, CutTo(0)),
    ],
    ids=["A", "A not yet", "B2", "B1", "B1 empty"],
)
def test_out_of_range_is_one_of_three_cases(
    leader_start: int, leader_end: int, step: LogStep
) -> None:
    found = after_leader_ends(OWN, leader_start, leader_end)
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
    behind = resting.behind(OwnLog(10, 120, 5), 3)
    assert (120, 5, None, 3) == (
        behind.fetch_offset,
        behind.last_fetched_epoch,
        behind.delayed_until_ms,
        behind.lag,
    )


@pytest.mark.parametrize(("lag", "is_caught_up"), [(None, False), (1, False), (0, True)])
def test_who_is_known_to_lack_nothing_is_caught_up(lag: int | None, is_caught_up: bool) -> None:
    assert is_caught_up is START.behind(OWN, lag).is_caught_up


def test_phases_follow_on_those_of_the_table() -> None:
    assert set(FetchPhase) == set(PREVIOUS_PHASES)
    truncating = START.entering(FetchPhase.TRUNCATING)
    assert FetchPhase.FETCHING is truncating.behind(OWN).phase
