"""What the rule of copies finds, and what it does not ask for."""

from __future__ import annotations

import pytest

from engine.model import TopicPartition
from engine.sim.copy_rules import CopyRules, chain_fault
from engine.sim.histories import History, Loss
from engine.sim.sent_transactions import Copied, SentOutcome, SentTransaction

T0 = TopicPartition("t", 0)
OFFSETS = TopicPartition("__consumer_offsets", 0)
COMMITTED, ABORTED = SentOutcome.COMMITTED, SentOutcome.ABORTED
OPEN, UNKNOWN = SentOutcome.OPEN, SentOutcome.UNKNOWN


class Run:
    """The rules of a run with one group of copiers."""

    def __init__(self) -> None:
        self.histories = {key: History(f"{key}") for key in (T0, OFFSETS)}
        self.broken: list[str] = []
        self.rules = CopyRules(
            self.histories, lambda rule, _text, _partition: self.broken.append(rule)
        )

    def copy(self, first: int, next_: int, outcome: SentOutcome) -> SentTransaction:
        """Have a transaction copy t0 from one offset to another."""
        transaction = SentTransaction(f"cp@{first}", 7, 0)
        transaction.outcome = outcome
        self.rules.record_begin(Copied("copies", T0, first, next_), transaction)
        return transaction

    def resume(self, offset: int, *, is_leader: bool = True) -> list[str]:
        """Have a copier ask where to go on, and be told an offset at once."""
        floors = self.rules.floors("copies")
        self.rules.check_resume("copies", {T0: offset}, floors, is_leader=is_leader)
        return self.broken

    def check(self, offset: int) -> list[str]:
        """Return the rules that an offset at rest breaks."""
        told = {COMMITTED: True, ABORTED: False}
        self.rules.check_end("copies", {T0: offset}, lambda it: told.get(it.outcome))
        return self.broken


@pytest.mark.parametrize(
    ("spans", "end_offset", "fault"),
    [
        ([], 0, ""),
        ([(0, 3), (3, 9)], 9, ""),
        ([(3, 9), (0, 3)], 9, ""),
        ([], 4, "copied up to 0, 4 is committed"),
        ([(0, 3)], 0, "copied up to 3, 0 is committed"),
        ([(0, 3), (0, 5)], 5, "0 to 3 is copied twice"),
        ([(0, 3), (2, 5)], 5, "2 to 3 is copied twice"),
        ([(0, 3), (4, 5)], 5, "3 to 4 is copied never"),
    ],
)
def test_committed_copies_follow_each_other_up_to_the_committed_offset(
    spans: list[tuple[int, int]], end_offset: int, fault: str
) -> None:
    assert fault == chain_fault([Copied("copies", T0, *span) for span in spans], end_offset)


@pytest.mark.parametrize(
    ("outcome", "offset", "broken"),
    [
        (COMMITTED, 5, []),
        (COMMITTED, 0, ["X1"]),
        (COMMITTED, 4, ["X1"]),
        # The end was sent, and had no answer.
        (UNKNOWN, 5, []),
        (UNKNOWN, 0, []),
        (ABORTED, 0, []),
        (ABORTED, 5, ["X1"]),
        (OPEN, 0, []),
        (OPEN, 5, ["X1"]),
    ],
)
def test_a_copier_goes_on_from_what_a_transaction_has_committed(
    outcome: SentOutcome, offset: int, broken: list[str]
) -> None:
    run = Run()
    run.copy(0, 5, outcome)
    assert broken == run.resume(offset)


def test_a_commit_that_was_acknowledged_meanwhile_need_not_be_known() -> None:
    run = Run()
    transaction = run.copy(0, 5, UNKNOWN)
    floors = run.rules.floors("copies")
    transaction.outcome = COMMITTED
    run.rules.check_resume("copies", {T0: 0}, floors, is_leader=True)
    assert [] == run.broken


def test_aborted_records_are_never_copied() -> None:
    run = Run()
    run.copy(0, 5, ABORTED)
    run.copy(0, 3, COMMITTED)
    assert [] == run.check(3)
    assert ["X1"] == run.check(5)


def test_nothing_is_required_of_a_transaction_whose_end_is_unknown() -> None:
    run = Run()
    run.copy(0, 5, UNKNOWN)
    assert [] == run.check(2)


@pytest.mark.parametrize("lost", [T0, OFFSETS])
def test_nothing_is_asked_of_copies_where_kafka_loses_records(lost: TopicPartition) -> None:
    run = Run()
    run.copy(0, 5, COMMITTED)
    run.histories[lost].losses.append(Loss(0, 1, "an unclean election", 0))
    assert [] == run.resume(0)
    assert [] == run.check(0)


def test_nothing_is_asked_of_a_group_that_a_deposed_coordinator_has_answered() -> None:
    run = Run()
    run.copy(0, 5, COMMITTED)
    assert [] == run.resume(0, is_leader=False)
    assert [] == run.check(0)


def test_groups_do_not_count_for_each_other() -> None:
    run = Run()
    run.copy(0, 5, COMMITTED)
    assert {} == run.rules.floors("others")
    run.rules.check_end("others", {T0: 2}, lambda _: True)
    assert [] == run.broken
    assert 1 == run.rules.committed_count
