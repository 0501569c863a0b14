"""What the controller will do with a change, in words. Source: RSN-2."""

from __future__ import annotations

from engine.planner.plan import PartitionChange
from engine.reassign.explaining import explain_steps
from tests.unit.reassign.moved_cluster import change


def letters(one: PartitionChange) -> list[str]:
    return [step.letter for step in explain_steps(one)]


def test_a_move_takes_every_phase_and_the_leader_goes_with_the_target() -> None:
    steps = explain_steps(change(0, (1, 2), (3, 2)))
    assert ["U1", "A1", "A2", "A3", "B3", "B4", "B5", "B6"] == [step.letter for step in steps]
    assert [(3, 2, 1)] * 7 + [(3, 2)] == [step.replicas for step in steps]
    assert [(1, 2)] * 3 + [(3, 2, 1)] * 2 + [(3, 2)] * 3 == [step.isr for step in steps]
    assert [1, 1, 1, 1, 3, 3, 3, 3] == [step.leader for step in steps]


def test_in_sync_sets_never_leave_the_replicas_and_leaders_never_the_set() -> None:
    for old, new in (((1, 2), (3, 4)), ((1,), (1, 2, 3)), ((1, 2, 3), (2,)), ((1, 2), (2, 1))):
        for step in explain_steps(change(0, old, new)):
            assert set(step.isr) <= set(step.replicas)
            assert step.leader in step.isr


def test_what_is_not_needed_is_left_out() -> None:
    assert ["U1", "A1", "A2", "A3", "B6"] == letters(change(0, (1, 2), (1, 2, 3)))
    assert ["U1", "B4", "B5", "B6"] == letters(change(0, (1, 2, 3), (1, 2)))
    assert ["U1", "B6", "elect"] == letters(change(0, (1, 2), (2, 1)))
    assert ["U1", "B3", "B4", "B5", "B6"] == letters(change(0, (1, 2), (2,)))


def test_an_election_alone_and_a_directory_alone_have_one_step() -> None:
    same = change(0, (1, 2), (1, 2))
    assert ["elect"] == letters(same._replace(old_leader=2))
    assert [] == letters(same)
    dirs = same._replace(old_log_dirs=("/a", "/a"), new_log_dirs=("/b", "/a"))
    (step,) = explain_steps(dirs)
    assert ("dir", "broker 1 copies its replica from /a to /b, then goes on there") == step[:2]


def test_the_size_of_the_copies_is_shown() -> None:
    a2 = explain_steps(change(0, (1,), (2,)))[2]
    assert "1000 bytes each" in a2.what
    unknown = change(0, (1,), (2,))._replace(size_bytes=0)
    assert "all there is" in explain_steps(unknown)[2].what


def test_the_first_step_names_who_comes_and_who_goes() -> None:
    what = {
        ((1, 2), (3, 2)): "{3,2,1}: {3} added and {1} to be removed",
        ((1, 2), (1, 2, 3)): "{1,2,3}: {3} added",
        ((1, 2, 3), (1, 2)): "{1,2,3}: {3} to be removed",
        ((1, 2), (2, 1)): "{2,1}: another order",
    }
    assert {moves: f"the topic's assignment becomes {end}" for moves, end in what.items()} == {
        (old, new): explain_steps(change(0, old, new))[0].what for old, new in what
    }
