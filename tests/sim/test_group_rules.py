"""What the rules of groups find, and what they do not ask for."""

from __future__ import annotations

import pytest

from engine.groups.group import Group
from engine.groups.member import ClientOfMember, GroupMember, Protocol, Timeouts
from engine.groups.ports import GroupRecord
from engine.groups.records import build_group_record, group_tombstone
from engine.kafka_errors import ILLEGAL_GENERATION, NONE, NOT_COORDINATOR
from engine.model import TopicPartition
from engine.records.batch import BatchView
from engine.records.builder import BatchBuilder, BatchSettings
from engine.sim.group_rules import OFFSETS_TOPIC, GroupRules, offset_fault
from engine.sim.histories import History, Loss
from engine.sim.members import Commit
from engine.sim.records import batches

_TIMEOUTS = Timeouts(rebalance_timeout_ms=1_000, session_timeout_ms=1_000)
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

    def assign(
        self, group_id: str, generation_id: int, member_id: str, partitions: list[TopicPartition]
    ) -> None:
        """Write a generation with a member, which is given these partitions."""
        self.rules.lives.take(_written(_generation(generation_id, member_id, group_id)))
        self.rules.check_assignment(group_id, generation_id, member_id, partitions)

    def commit(self, code: int = NONE, *, generation_id: int = 1, member_id: str = "a") -> int:
        """Have a commit of t0 answered at once; returns its number."""
        commit = self.rules.record_commit("g", T0, generation_id, member_id)
        self.rules.record_response(commit, code)
        return commit.number


def test_a_partition_has_one_owner_in_a_generation() -> None:
    run = Run()
    run.assign("g", 1, "a", [T0])
    run.assign("g", 1, "b", [T1])
    run.assign("g", 2, "b", [T0])
    run.assign("h", 1, "b", [T0])
    assert [] == run.broken
    run.assign("g", 2, "a", [T0])
    assert ["G1"] == run.broken


def test_a_commit_of_a_generation_that_is_over_is_refused() -> None:
    run = Run()
    run.assign("g", 2, "a", [T0])
    run.commit(generation_id=2)
    run.commit(ILLEGAL_GENERATION, generation_id=1)
    assert [] == run.broken
    run.commit(generation_id=1)
    assert ["G2"] == run.broken


def test_a_commit_that_is_under_way_as_a_generation_begins_may_be_taken() -> None:
    run = Run()
    commit = run.rules.record_commit("g", T0, 1, "a")
    run.assign("g", 2, "a", [T0])
    run.rules.record_response(commit, NONE)
    assert [] == run.broken


def _written(*records: GroupRecord) -> BatchView:
    """Return a committed batch of the coordinators' topic."""
    builder = BatchBuilder(BatchSettings())
    for record in records:
        builder.append(0, record.key, record.value)
    (batch,) = batches(bytes(builder.build()))
    return batch


def _generation(generation_id: int, member_id: str, group_id: str = "g") -> GroupRecord:
    group = Group(group_id, 0)
    group.generation_id = generation_id
    protocols = (Protocol("range", b""),)
    group.add_member(
        GroupMember(
            member_id, None, ClientOfMember("app", "/1.2.3.4"), _TIMEOUTS, "consumer", protocols
        ),
        None,
    )
    return build_group_record(group, {member_id: b""})


def test_a_generation_that_was_never_committed_ends_no_other() -> None:
    run = Run()
    run.assign("g", 3, "a", [T0])
    # A broker that led before, and has not heard of its successor, answers a member from memory.
    run.rules.check_assignment("g", 7, "b", [T0])
    run.commit(generation_id=3)
    assert [] == run.broken
    run.assign("g", 4, "b", [T0])
    run.commit(generation_id=3)
    assert ["G2"] == run.broken


def test_a_group_that_ended_counts_its_generations_again() -> None:
    run = Run()
    run.rules.lives.take(_written(_generation(1, "a")))
    run.rules.check_assignment("g", 1, "a", [T0])
    run.rules.lives.take(_written(_generation(2, "a"), group_tombstone("g")))
    run.rules.check_assignment("g", 2, "a", [T0])
    run.rules.lives.take(_written(_generation(1, "b")))
    run.rules.check_assignment("g", 1, "b", [T0])
    run.commit(generation_id=1, member_id="b")
    assert [] == run.broken
    run.commit(generation_id=2, member_id="a")
    assert ["G2"] == run.broken
    run.rules.lives.take(_written(_generation(1, "c")))
    run.rules.check_assignment("g", 1, "c", [T0])
    assert ["G2", "G1"] == run.broken


def test_a_member_belongs_to_the_life_in_which_its_generation_was_written() -> None:
    run = Run()
    run.rules.lives.take(_written(_generation(1, "a"), group_tombstone("g"), _generation(1, "b")))
    run.rules.check_assignment("g", 1, "b", [T0])
    run.rules.check_assignment("g", 1, "a", [T0])
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
    run.assign("g", 1, "a", [T0])
    run.assign("g", 1, "b", [T0])
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
