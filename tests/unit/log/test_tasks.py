"""Tasks that wait: until their time, or until the thread that owns them is back."""

from __future__ import annotations

from engine.errors import StorageError
from engine.log.tasks import DeferredTasks, InlineTasks


def test_deferred_tasks_are_passed_on_in_order_when_released() -> None:
    seen: list[str] = []
    behind = InlineTasks()
    tasks = DeferredTasks(behind)
    tasks.once("a", 5, lambda: seen.append("once"))
    tasks.every("b", 7, lambda: seen.append("every"), first_after_ms=1)
    tasks.offload("c", lambda: seen.append("work"), lambda failure: seen.append("done"))
    assert ([], [], []) == (seen, behind.waiting, behind.periodic)
    tasks.release()
    assert ["work", "done"] == seen
    tasks.offload("c", lambda: seen.append("more"), lambda failure: None)
    behind.run_waiting()
    behind.run_periodic("b")
    assert ["work", "done", "more", "once", "every"] == seen


def test_a_failure_of_work_is_told() -> None:
    told: list[StorageError | None] = []

    def fail() -> None:
        raise StorageError("no")

    InlineTasks().offload("x", fail, told.append)
    assert ["no"] == [str(error) for error in told]
