"""Perform steps in order; decide which ones are still performed after a failure.

| after a step has failed | |
|---|---|
| steps of other resources | are performed |
| later steps of the same topic | are skipped: they depend on it |
| deletions | are skipped: the replacement of a deleted resource may be missing |
| any step, if no broker responded | is skipped: it would time out as well |
| any step, if one broker did not accept its own settings | is performed |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from engine.declared.resources import ALL_BROKERS, ResourceKind
from engine.declared.step_execution import Errors, step_groups
from engine.declared.steps import ChangeSettings, StateStep, StepAction
from engine.errors import EngineError
from kctl import exits

_DONE: Final = {
    StepAction.CREATE: "created",
    StepAction.CHANGE: "changed",
    StepAction.MOVE: "moved",
    StepAction.DELETE: "deleted",
}
FAILED: Final = "failed"
SKIPPED: Final = "skipped"
INTERRUPTED: Final = "interrupted"


class StepResult(NamedTuple):
    """The result of a step."""

    result: str
    error: EngineError | None = None

    @property
    def is_done(self) -> bool:
        """Return True if the step was carried out."""
        return self.result in _DONE.values()


class StepRun:
    """Performs steps by `perform`, which returns the error of each step of a group.

    An error that `perform` raises counts for each step of the group.
    """

    def __init__(
        self, steps: Sequence[StateStep], perform: Callable[[Sequence[StateStep]], Errors]
    ) -> None:
        """Create a run in which no step is performed yet."""
        self._steps = steps
        self._perform = perform
        #: Results by position of the step; a step without a result was skipped.
        self._results: dict[int, StepResult] = {}
        #: Topics with a failed step: their later steps are skipped.
        self._failed_topics: set[str] = set()
        #: Whether any step failed: deletions are skipped from then on.
        self._has_failures = False
        #: Whether the cluster did not respond to a step: all further steps are skipped.
        self.is_out_of_reach = False

    @property
    def results(self) -> list[StepResult]:
        """Return the result of each step; SKIPPED for a step that was not started."""
        skipped = StepResult(SKIPPED)
        return [self._results.get(number, skipped) for number in range(len(self._steps))]

    def run(self) -> None:
        """Perform all steps, group by group, except those that earlier failures exclude.

        Failures are recorded in `results`, not raised; KeyboardInterrupt is recorded and raised.
        """
        number = 0
        for group in step_groups(self._steps):
            wanted = [(number + at, step) for at, step in enumerate(group) if self._may_run(step)]
            number += len(group)
            if wanted:
                self._run_group(wanted)

    def _may_run(self, step: StateStep) -> bool:
        """Return True if a step may be performed after the failures up to now.

        False for all if the cluster is out of reach, for deletions after any failure, and for steps
        on a topic with a failed step.
        """
        if self.is_out_of_reach or (step.deletes and self._has_failures):
            return False
        return step.kind is not ResourceKind.TOPICS or step.name not in self._failed_topics

    def _run_group(self, wanted: Sequence[tuple[int, StateStep]]) -> None:
        """Perform steps of one kind together, each given with its position, and record the results.

        An error that `_perform` raises fails each step of the group.
        """
        steps = [step for _, step in wanted]
        try:
            errors = self._perform(steps)
        except EngineError as of_all:
            errors = [of_all] * len(steps)
        except KeyboardInterrupt:
            self._results |= {number: StepResult(INTERRUPTED) for number, _ in wanted}
            raise
        for (number, step), error in zip(wanted, errors, strict=True):
            self._results[number] = StepResult(_DONE[step.action])
            if error is not None:
                self._record_failure(number, step, error)

    def _record_failure(self, number: int, step: StateStep, error: EngineError) -> None:
        """Record a failed step.

        No step on the same topic is performed after it, and none at all if the cluster does not
        respond.
        """
        self._results[number] = StepResult(FAILED, error)
        self._has_failures = True
        is_silence = getattr(error, "exit_code", None) == exits.UNREACHABLE
        # If one broker refuses its own settings, the other brokers may still respond.
        self.is_out_of_reach |= is_silence and not _is_of_one_broker(step)
        if step.kind is ResourceKind.TOPICS:
            self._failed_topics.add(step.name)


def _is_of_one_broker(step: StateStep) -> bool:
    """Return True if a step changes settings of a single broker, which must handle the request."""
    operation = step.operation
    return (
        isinstance(operation, ChangeSettings)
        and operation.kind is ResourceKind.BROKERS
        and operation.resource != ALL_BROKERS
    )
