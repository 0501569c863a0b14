"""Offsets between the splits of a partition."""

from __future__ import annotations

from engine.analysis.batch_order import OffsetSpan
from engine.analysis.gaps import add_gaps
from engine.analysis.problem import Problem


def _span(
    base: int, first: int | None, behind: int | None, *, start: int = 0, **signs: bool
) -> OffsetSpan:
    flags = {"after_damage": False, "ends_in_damage": False, "is_compacted": False} | signs
    return OffsetSpan("t", 0, f"{base}.log", base, start, first, behind, **flags)


def _gap(code: str) -> Problem:
    return Problem("t", 0, "0.log", 7, 0, code, "")


def _codes(*spans: OffsetSpan, problems: tuple[Problem, ...] = ()) -> list[str]:
    return [problem.code for problem in add_gaps(problems, spans)]


def test_splits_that_follow_each_other_have_no_gap() -> None:
    assert [] == _codes(_span(0, 0, 10), _span(0, 10, 20, start=99), _span(20, 20, 30))


def test_a_segment_that_starts_later_is_behind_a_gap() -> None:
    (problem,) = add_gaps([], [_span(0, 0, 10), _span(15, 15, 20)])
    assert ("gap", "15.log") == (problem.code, problem.segment)
    assert "offsets 10 to 14 are missing" == problem.message


def test_an_empty_segment_says_by_its_name_how_far_the_log_went() -> None:
    assert ["gap"] == _codes(_span(0, 0, 10), _span(15, None, None))
    assert [] == _codes(_span(0, 0, 10), _span(10, None, None))


def test_a_split_without_a_good_batch_loses_what_it_had() -> None:
    damaged = _span(0, None, None, start=50, ends_in_damage=True)
    assert ["lost"] == _codes(_span(0, 0, 10), damaged, _span(20, 20, 30))


def test_segments_that_overlap_are_found() -> None:
    assert ["overlap"] == _codes(_span(0, 0, 10), _span(5, 5, 9))


def test_gaps_of_a_compacted_log_are_none_and_losses_stay() -> None:
    spans = (_span(0, 0, 10, is_compacted=True), _span(15, 15, 20))
    assert ["lost"] == _codes(*spans, problems=(_gap("gap"), _gap("lost")))
    damaged = _span(0, 0, 10, is_compacted=True, ends_in_damage=True)
    (problem,) = add_gaps([], [damaged, _span(15, 15, 20)])
    assert "some of offsets 10 to 14 are missing, lost to the damage before" == problem.message


def test_a_log_that_ends_below_its_checkpoints_is_short() -> None:
    spans = [span._replace(reached_offset=25) for span in (_span(0, 0, 10), _span(10, 10, 20))]
    (problem,) = add_gaps([], spans)
    assert ("short", "10.log") == (problem.code, problem.segment)
    assert problem.message.startswith("offsets 20 to 24 are missing at the end")
    assert [] == add_gaps([], [span._replace(reached_offset=20) for span in spans])


def test_a_compacted_segment_that_ends_below_its_indexes_is_short() -> None:
    closed = _span(0, 0, 10, is_compacted=True)._replace(indexed_offset=12)
    (problem,) = add_gaps([], [closed, _span(20, 20, 30)])
    assert ("short", "0.log") == (problem.code, problem.segment)
    assert problem.message.startswith("some of offsets 10 to 12 are missing")
    assert [] == add_gaps([], [closed._replace(indexed_offset=9), _span(20, 20, 30)])
