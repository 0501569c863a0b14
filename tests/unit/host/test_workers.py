"""Work on a worker thread: on threads of the machine, and on turns of a memory one."""

from __future__ import annotations

import threading

from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers, MemoryWorkers
from engine.host.real_workers import ThreadWorkers


def test_threads_are_started_with_the_first_work_and_ended_by_the_stop() -> None:
    before = set(threading.enumerate())
    workers = ThreadWorkers(2)
    assert set() == set(threading.enumerate()) - before
    names: list[str] = []
    for _ in range(5):
        workers.submit("flush", lambda: names.append(threading.current_thread().name))
    workers.stop()
    assert 5 == len(names)
    assert all(name.startswith("kafka-scheduler-flush") for name in names)
    assert set() == set(threading.enumerate()) - before


def test_memory_workers_take_a_turn_each_and_run_the_rest_at_the_stop() -> None:
    timers = MemoryTimers(ManualClock())
    workers = MemoryWorkers(timers)
    done: list[str] = []
    workers.submit("flush", lambda: done.append("first"))
    timers.call_soon(lambda: done.append("between"))
    workers.submit("flush", lambda: done.append("second"))
    assert [] == done
    timers.run_until_idle()
    assert ["first", "between", "second"] == done
    workers.submit("flush", lambda: done.append("third"))
    workers.stop()
    timers.run_until_idle()
    assert ["first", "between", "second", "third"] == done
