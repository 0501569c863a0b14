"""What the rules of groups find, and what they do not ask for."""

from __future__ import annotations

import pytest

from engine.kafka_errors import ILLEGAL_GENERATION, NONE, NOT_COORDINATOR
from engine.model import TopicPartition
from engine.sim.group_rules import OFFSETS_TOPIC, GroupRules, offset_fault
from engine.sim.histories import History, Loss
from engine.sim.members import Commit

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Run:
    """The rules of a run with one group."""

    def __init__(self) -> None:
        self.history = History("offsets")
        self.broken: list[str] = []
        self.rules = GroupRules(
            {TopicPartition(OFFSETS_TOPIC, 0): self.history},
            lambda rule, _text, _partition: self.broken.append(rule),
        )

    def commit(self, code: int = NONE, *, generation_id: int = 1) -> int:
        """Have a commit of t0 answered at once; returns its number."""
        commit = self.rules.commits("g", T0, generation_id)
        self.rules.committed(commit, code)
        return commit.number


def test_a_partition_has_one_owner_in_a_generation() -> None:
    run = Run()
    run.rules.assigned("g", 1, "a", [T0])
    run.rules.assigned("g", 1, "b", [T1])
    run.rules.assigned("g", 2, "b", [T0])
    run.rules.assigned("h", 1, "b", [T0])
    assert [] == run.broken
    run.rules.assigned("g", 2, "a", [T0])
    assert ["G1"] == run.broken


def test_a_commit_of_a_generation_that_is_over_is_refused() -> None:
    run = Run()
    run.rules.assigned("g", 2, "a", [T0])
    run.commit(generation_id=2)
    run.commit(ILLEGAL_GENERATION, generation_id=1)
    assert [] == run.broken
    run.commit(generation_id=1)
    assert ["G2"] == run.broken


def test_a_commit_that_is_under_way_as_a_generation_begins_may_be_taken() -> None:
    run = Run()
    commit = run.rules.commits("g", T0, 1)
    run.rules.assigned("g", 2, "a", [T0])
    run.rules.committed(commit, NONE)
    assert [] == run.broken


def test_the_last_commit_is_there_once_the_cluster_is_quiescent() -> None:
    run = Run()
    first, last = run.commit(), run.commit()
    run.rules.check_end("g", {T0: last})
    assert [] == run.broken
    run.rules.check_end("g", {T0: first})
    assert ["G4"] == run.broken
    assert 2 == run.rules.acknowledged_count


def test_nothing_is_asked_of_a_coordinator_that_lost_records() -> None:
    run = Run()
    run.commit()
    run.history.losses.append(Loss(0, 1, "an unclean election", 0))
    run.rules.check_end("g", {})
    run.rules.assigned("g", 1, "a", [T0])
    run.rules.assigned("g", 1, "b", [T0])
    assert [] == run.broken


def _commit(number: int, sent_at: int, ended_at: int | None, code: int | None) -> Commit:
    commit = Commit(T0, number, sent_at)
    commit.ended_at, commit.code = ended_at, code
    return commit


_ACKNOWLEDGED = _commit(1, 1, 2, NONE)


@pytest.mark.parametrize(
    ("commits", "offset", "is_fault"),
    [
        ([], None, False),
        ([_ACKNOWLEDGED], 1, False),
        ([_ACKNOWLEDGED], None, True),
        ([_ACKNOWLEDGED], -1, True),
        ([_ACKNOWLEDGED], 7, True),
        # Not answered, or by a coordinator that may have written it.
        ([_ACKNOWLEDGED, _commit(2, 3, None, None)], 2, False),
        ([_ACKNOWLEDGED, _commit(2, 3, 4, NOT_COORDINATOR)], 2, False),
        ([_ACKNOWLEDGED, _commit(2, 3, 4, NOT_COORDINATOR)], 1, False),
        ([_commit(2, 3, 4, NOT_COORDINATOR)], None, False),
        ([_ACKNOWLEDGED, _commit(2, 3, 4, ILLEGAL_GENERATION)], 2, True),
        # Sent before the other was answered: either may be the later one.
        ([_commit(1, 1, 4, NONE), _commit(2, 2, 3, NONE)], 1, False),
        ([_commit(1, 1, 4, NONE), _commit(2, 2, 3, NONE)], 2, False),
        ([_commit(1, 1, 2, NONE), _commit(2, 3, 4, NONE)], 1, True),
        ([_commit(1, 1, None, None), _commit(2, 3, 4, NONE)], 1, False),
    ],
)
def test_a_final_offset_comes_from_a_commit_that_none_followed(
    commits: list[Commit], offset: int | None, is_fault: bool
) -> None:
    assert is_fault == bool(offset_fault(commits, offset))
