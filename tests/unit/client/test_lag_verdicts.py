"""Verdicts on the lag of a partition, and the times of unread records."""

from __future__ import annotations

import pytest

from engine.client.lag_verdicts import LagSample, LagVerdict, judge_lag
from engine.client.time_lag import request_unread_times_ms
from engine.model import TopicPartition
from tests.unit.client.test_fetching import Log

OK, WARN = LagVerdict.OK, LagVerdict.WARN
STOP, STALL, REWIND = LagVerdict.STOP, LagVerdict.STALL, LagVerdict.REWIND


@pytest.mark.parametrize(
    ("samples", "has_member", "verdict", "reason"),
    [
        ([(5, 9)], True, OK, "fewer than two samples"),
        ([(5, 9), (9, 9), (9, 12)], True, OK, "it had read everything"),
        ([(5, 9), (6, 9)], True, OK, "the lag fell in between; it is 3"),
        ([(5, 9), (6, 10)], True, OK, "the lag stays at 4 while the offset moves on"),
        ([(5, 9), (6, 12)], True, WARN, "the lag grew from 4 to 6 while the offset moved on"),
        (
            [(5, 9), (5, 12)],
            True,
            STALL,
            "the offset stays at 5 with a lag of 7, though a member has the partition",
        ),
        (
            [(5, 9), (5, 9)],
            False,
            STOP,
            "the offset stays at 5 with a lag of 4, and no member has the partition",
        ),
        ([(9, 9), (4, 9), (9, 9)], True, REWIND, "the offset went back from 9 to 4"),
    ],
)
def test_samples_are_judged_with_a_reason(
    samples: list[tuple[int, int]], has_member: bool, verdict: LagVerdict, reason: str
) -> None:
    rows = [LagSample(*sample) for sample in samples]
    assert (verdict, reason) == judge_lag(rows, has_member=has_member)


def test_the_time_of_the_first_unread_record_is_found_where_there_is_one() -> None:
    log = Log()
    p0, p1 = TopicPartition("t", 0), TopicPartition("t", 1)
    assert {p0: 1} == request_unread_times_ms(log.client(), {p0: 1, p1: 1}, 2_000)
