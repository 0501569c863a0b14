"""Tasks that wait: until their time, or until the thread that owns them is back."""

from __future__ import annotations

from engine.errors import StorageError
from engine.log.tasks import DeferredTasks, InlineTasks, Steps


def test_deferred_tasks_are_passed_on_in_order_when_released() -> None:
    seen: list[str] = []

    def steps(text: str) -> Steps:
        seen.append(text)
        yield

    behind = InlineTasks()
    tasks = DeferredTasks(behind)
    tasks.once("a", 5, lambda: seen.append("once"))
    tasks.every("b", 7, lambda: seen.append("every"), first_after_ms=1)
    tasks.every_in_steps("e", 7, lambda: steps("more steps"), first_after_ms=1)
    tasks.run_in_steps("d", steps("steps"), lambda: seen.append("ended"))
    tasks.offload("c", lambda: seen.append("work"), lambda failure: seen.append("done"))
    assert ([], [], []) == (seen, behind.waiting, behind.periodic)
    tasks.release()
    assert ["steps", "ended", "work", "done"] == seen
    tasks.offload("c", lambda: seen.append("more"), lambda failure: None)
    behind.run_waiting()
    behind.run_periodic("b")
    behind.run_periodic("e")
    assert ["more", "once", "every", "more steps"] == seen[4:]


def test_a_failure_of_work_is_reported() -> None:
    told: list[StorageError | None] = []

    def fail() -> None:
        raise StorageError("no")

    InlineTasks().offload("x", fail, told.append)
    assert ["no"] == [str(error) for error in told]
