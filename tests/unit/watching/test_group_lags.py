"""Groups by lag, judged by several samples."""

from __future__ import annotations

import pytest

from engine.watching.group_lags import GroupLag, group_lags
from engine.watching.timed_sample import TimedSample
from tests.unit.watching.samples import T0, T1, group, sample


def history(*points: tuple[int, int], owned: bool = True, name: str = "g") -> list[TimedSample]:
    """Return samples ten seconds apart: committed offset and end of t-0."""
    members = (T0,) if owned else None
    return [
        sample(
            number * 10_000,
            ends={T0: end},
            groups=(group(name, {T0: committed}, members),),
        )
        for number, (committed, end) in enumerate(points)
    ]


def only(samples: list[TimedSample]) -> GroupLag:
    (found,) = group_lags(samples)
    return found


@pytest.mark.parametrize(
    ("points", "owned", "verdict"),
    [
        (((5, 10), (10, 10)), True, "OK"),
        (((5, 10), (5, 12)), True, "STALL"),
        (((5, 10), (5, 10)), False, "STOP"),
        (((5, 10), (6, 12)), True, "WARN"),
        (((5, 10), (4, 10)), True, "REWIND"),
    ],
)
def test_a_group_has_the_verdict_on_its_worst_partition(
    points: tuple[tuple[int, int], ...], owned: bool, verdict: str
) -> None:
    found = only(history(*points, owned=owned))
    assert verdict == found.verdict
    assert found.reason.startswith("t-0: ")
    assert int(owned) == found.member_count


def test_the_trend_is_how_fast_the_lag_grows() -> None:
    found = only(history((0, 10), (0, 14), (0, 20)))
    assert (20, 0.5) == (found.lag, found.lag_per_s)
    assert only(history((0, 10))).lag_per_s is None


def test_the_trend_counts_partitions_that_all_samples_know() -> None:
    first = sample(0, ends={T0: 10}, groups=(group("g", {T0: 0}),))
    last = sample(2_000, ends={T0: 12, T1: 1000}, groups=(group("g", {T0: 0, T1: 0}),))
    found = only([first, last])
    assert (1012, 1.0) == (found.lag, found.lag_per_s)


def test_a_partition_without_a_known_end_has_no_lag() -> None:
    found = only([sample(0, ends={}, groups=(group("g", {T0: 3}, (T0, T1)),))])
    assert [(3, None, None), (None, None, None)] == [
        (p.committed_offset, p.end_offset, p.lag) for p in found.partitions
    ]
    assert ("client", "/h") == (found.partitions[0].client_id, found.partitions[0].client_host)
    assert (0, "OK") == (found.lag, found.verdict)


def test_a_group_without_commits_and_members_is_ok() -> None:
    found = only([sample(0, groups=(group("g"),))])
    assert (0, "OK", "", "Empty") == (found.lag, found.verdict, found.reason, found.state)


def test_a_group_that_a_sample_lacks_is_judged_by_the_others() -> None:
    samples = [sample(0), *history((0, 10), (0, 12))]
    assert "STALL" == only(samples).verdict


@pytest.mark.parametrize(
    ("points", "owned", "verdict"),
    [
        # Nothing was committed in between, or not enough: the next commit may do it.
        (((5, 10), (5, 12)), True, "OK"),
        (((5, 10), (6, 12)), True, "OK"),
        (((5, 10), (5, 10)), False, "STOP"),
        (((5, 10), (4, 10)), True, "REWIND"),
    ],
)
def test_a_member_is_not_judged_within_the_time_between_two_commits(
    points: tuple[tuple[int, int], ...], owned: bool, verdict: str
) -> None:
    samples = [timed._replace(at_ms=timed.at_ms // 2) for timed in history(*points, owned=owned)]
    assert verdict == only(samples).verdict


@pytest.mark.parametrize(("lasting_ms", "verdict"), [(9_499, "OK"), (9_500, "STALL")])
def test_a_stall_takes_as_long_as_two_commits_however_long_the_machine_runs(
    lasting_ms: int, verdict: str
) -> None:
    samples = [
        sample(at_ms, ends={T0: end}, groups=(group("g", {T0: 5}, (T0,)),))
        for at_ms, end in ((70_000, 10), (70_000 + lasting_ms, 12))
    ]
    assert verdict == only(samples).verdict
