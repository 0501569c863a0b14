"""What goes on after a step has failed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from engine.client.errors import TimedOut
from engine.declared.resources import (
    CurrentState,
    DeclaredState,
    DeclaredTopic,
    ResourceKind,
)
from engine.declared.steps import ChangeSettings, StateStep, StepAction
from engine.errors import EngineError
from kctl.commands.apply.step_run import StepResult, StepRun
from kctl.declared.pending_steps import step_line
from tests.unit.declared.states import BROKERS, EVERY_KIND, rule, steps, topic


def some_steps() -> list[StateStep]:
    """Return steps on two topics, a rule, and a deletion."""
    declared = DeclaredState(
        kinds=EVERY_KIND,
        topics={
            name: DeclaredTopic(2, 2, (), {"min.insync.replicas": "2", "segment.ms": "5"})
            for name in "ab"
        },
        acls=frozenset((rule("new"),)),
    )
    current = CurrentState(
        BROKERS, {name: topic((1,)) for name in "ab"}, acls=frozenset((rule("old"),))
    )
    return steps(declared, current, prunes=True)


def test_a_step_in_words_steers_no_terminal() -> None:
    declared = DeclaredState(topics={"t": DeclaredTopic(settings={"k": "a\n  2. x\x1b[2J"})})
    (step,) = steps(declared, CurrentState(BROKERS, {"t": topic((1,))}))
    assert "  1. change topic t: k=a\\n  2. x\\x1b[2J" == step_line(1, step)


class Performer:
    """Carries out steps but those that fail, told as action, name and first property."""

    def __init__(self, **failing: EngineError | type[BaseException]) -> None:
        self.failing = failing
        self.done: list[str] = []

    def __call__(self, group: Sequence[StateStep]) -> list[EngineError | None]:
        errors: list[EngineError | None] = []
        for step in group:
            error = self.failing.get(_key(step))
            if isinstance(error, type):
                raise error
            errors.append(error)
            self.done += [] if error else [_key(step)]
        return errors


def _key(step: StateStep) -> str:
    first = step.changes[0].property.partition(".")[0] if step.changes else ""
    return "_".join(filter(None, (step.action.value, step.name, first)))


ALL = [
    *("change_a_partitions", "change_b_partitions", "change_a_segment", "change_b_segment"),
    *("create", "move_a_replication_factor", "move_b_replication_factor"),
    *("change_a_min", "change_b_min", "delete"),
]


def test_all_steps_are_carried_out_in_their_order() -> None:
    performer = Performer()
    run = StepRun(some_steps(), performer)
    run.run()
    assert ALL == performer.done
    assert all(result.is_done for result in run.results)


def test_later_steps_of_a_topic_and_deletions_are_skipped_after_a_failure() -> None:
    performer = Performer(move_a_replication_factor=EngineError("no"))
    run = StepRun(some_steps(), performer)
    run.run()
    assert [key for key in ALL if key not in performer.done] == [
        "move_a_replication_factor",
        "change_a_min",
        "delete",
    ]
    assert ["failed", "moved", "skipped", "changed", "skipped"] == [
        result.result for result in run.results[5:]
    ]
    assert not run.is_out_of_reach


def test_nothing_more_is_asked_of_a_cluster_that_does_not_answer() -> None:
    performer = Performer(change_b_partitions=TimedOut("CreatePartitions", 1))
    run = StepRun(some_steps(), performer)
    run.run()
    assert ["change_a_partitions"] == performer.done
    assert ["changed", "failed", *["skipped"] * 8] == [result.result for result in run.results]
    assert run.is_out_of_reach


def test_a_broker_that_does_not_answer_is_not_the_cluster() -> None:
    def settings_of(broker: str) -> StateStep:
        kind = ResourceKind.BROKERS
        return StateStep(StepAction.CHANGE, kind, broker, (), ChangeSettings(kind, broker, {}))

    def perform(group: Sequence[StateStep]) -> list[EngineError | None]:
        return [TimedOut("x", 1) if step.name == "2" else None for step in group]

    run = StepRun([settings_of("2"), *some_steps()], perform)
    run.run()
    assert not run.is_out_of_reach
    assert ["failed", "changed"] == [result.result for result in run.results[:2]]
    assert "skipped" == run.results[-1].result
    run = StepRun([settings_of(""), *some_steps()], lambda group: [TimedOut("x", 1) for _ in group])
    run.run()
    assert run.is_out_of_reach


def test_an_error_of_a_request_is_that_of_each_of_its_steps() -> None:
    class Refused(EngineError):
        pass

    performer = Performer(move_b_replication_factor=Refused)
    run = StepRun(some_steps(), performer)
    run.run()
    assert ["failed", "failed"] == [result.result for result in run.results[5:7]]


def test_interrupted_steps_are_distinguished_from_those_not_begun() -> None:
    run = StepRun(some_steps(), Performer(move_a_replication_factor=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        run.run()
    assert ["created", *["interrupted"] * 2, *["skipped"] * 3] == [
        result.result for result in run.results[4:]
    ]
    assert StepResult("created") == run.results[4]
