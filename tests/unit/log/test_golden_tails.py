"""Logs whose offsets repeat, overlap and go back: our start leaves what a real broker's left."""

from __future__ import annotations

from collections import Counter

import pytest

from engine.log.recovery.loader import SegmentOffsetsDisordered, load_log
from engine.log.tasks import InlineTasks
from tests.golden_tails import KINDS, answer_of, recipes_of
from tests.recovered_tails import disk_of, listing, request_of, start_and_stop
from tests.unit.log.hooks import hooks_of


@pytest.mark.parametrize("kind", KINDS)
def test_a_start_after_a_crash_ends_where_the_broker_s_did(kind: str) -> None:
    for recipe in recipes_of(kind):
        real = answer_of(recipe)
        ours = start_and_stop(recipe)
        assert bool(real.get("fatal")) == bool(ours.get("fatal")), recipe.name
        if not real.get("fatal"):
            for name in ("log_end_offset", "log_start_offset"):
                assert real[name] == ours[name], (recipe.name, name)


@pytest.mark.parametrize("kind", KINDS)
def test_a_start_and_a_stop_leave_the_broker_s_files_byte_for_byte(kind: str) -> None:
    for recipe in recipes_of(kind):
        real = answer_of(recipe)
        if not real.get("fatal"):
            assert real["files"] == start_and_stop(recipe)["files"], recipe.name


def test_the_sample_has_logs_of_every_end() -> None:
    ends: Counter[str] = Counter()
    for kind in KINDS:
        for recipe in recipes_of(kind):
            lines = " ".join(answer_of(recipe)["lines"])
            is_emptied = "Deleting the corrupt segment" in lines
            is_fatal = answer_of(recipe).get("fatal")
            ends["fatal" if is_fatal else "emptied" if is_emptied else "other"] += 1
    assert ends["fatal"] > 5
    assert ends["emptied"] > 100
    assert ends["other"] > 100


@pytest.mark.parametrize("kind", KINDS)
def test_what_stops_a_broker_is_one_error_that_names_the_file(kind: str) -> None:
    for recipe in recipes_of(kind):
        if not answer_of(recipe).get("fatal"):
            continue
        files, path = disk_of(recipe)
        before = listing(files, path)
        with pytest.raises(SegmentOffsetsDisordered) as caught:
            load_log(files, request_of(recipe, path), hooks_of())
        (lost,) = [segment for segment in recipe.segments if segment.without]
        assert caught.value.path == f"{path}/{lost.base_offset:020d}.log"
        after = listing(files, path)
        assert {name: after[name] for name in before} == before


@pytest.mark.parametrize("kind", KINDS)
def test_a_second_start_changes_nothing(kind: str) -> None:
    for recipe in recipes_of(kind):
        if answer_of(recipe).get("fatal"):
            continue
        files, path = disk_of(recipe)
        tasks = InlineTasks()
        log, _ = load_log(files, request_of(recipe, path), hooks_of(tasks))
        tasks.run_waiting()
        log.close_files()
        before = listing(files, path)
        request = request_of(recipe, path)._replace(recovery_point=log.recovery_point)
        second, report = load_log(files, request, hooks_of())
        assert (log.log_end_offset, 0) == (second.log_end_offset, report.truncated_bytes)
        assert before == listing(files, path), recipe.name
