"""What the rule of fenced instances finds, and what it does not ask for."""

from __future__ import annotations

from engine.model import TopicPartition
from engine.sim.fence_rules import FenceRules
from engine.sim.sent_transactions import Ids

T0 = TopicPartition("t", 0)
FIRST, SECOND, OTHER = Ids(7, 0), Ids(7, 1), Ids(8, 0)


class Run:
    """The rules of a run in which b1 leads t0."""

    def __init__(self) -> None:
        self.leader_epoch = 4
        self.is_excused = False
        self.broken: list[str] = []
        self.rules = FenceRules(
            lambda rule, _text, _partition: self.broken.append(rule),
            leader_epoch=lambda _: self.leader_epoch,
            leads=lambda host, _: host == "b1",
            is_excused=lambda _: self.is_excused,
        )

    def fence(self) -> None:
        """Have a second instance begin after the first."""
        self.rules.record_ids("id", FIRST)
        self.rules.record_ids("id", SECOND)

    def serve(self, ids: Ids, host: str = "b1") -> list[str]:
        """Have a request of an instance succeed at a machine."""
        fence = self.rules.fence_of("id", ids, T0)
        if fence is not None:
            self.rules.check_success(fence, host, "Produce")
        return self.broken


def test_an_instance_that_is_fenced_succeeds_nowhere() -> None:
    run = Run()
    run.fence()
    assert [] == run.serve(SECOND)
    assert ["T8"] == run.serve(FIRST)


def test_the_latest_instance_is_the_one_with_the_highest_epoch_in_any_order_of_responses() -> None:
    run = Run()
    run.rules.record_ids("id", SECOND)
    run.rules.record_ids("id", FIRST)
    assert [] == run.serve(SECOND)
    assert ["T8"] == run.serve(FIRST)


def test_instances_of_other_producer_ids_are_not_compared() -> None:
    run = Run()
    assert run.rules.fence_of("id", FIRST, T0) is None
    run.rules.record_ids("id", FIRST)
    run.rules.record_ids("id", OTHER)
    assert [] == run.serve(FIRST)


def test_what_was_sent_before_the_newer_instance_began_may_succeed() -> None:
    run = Run()
    run.rules.record_ids("id", FIRST)
    assert run.rules.fence_of("id", FIRST, T0) is None


def test_a_leader_that_was_deposed_may_say_yes() -> None:
    run = Run()
    run.fence()
    assert [] == run.serve(FIRST, host="b2")
    fence = run.rules.fence_of("id", FIRST, T0)
    assert fence is not None
    run.leader_epoch = 5
    run.rules.check_success(fence, "b1", "Produce")
    assert [] == run.broken


def test_nothing_is_asked_where_kafka_loses_records() -> None:
    run = Run()
    run.fence()
    run.is_excused = True
    assert [] == run.serve(FIRST)
