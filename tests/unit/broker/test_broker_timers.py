"""The timers of a broker that stops, on a loop that goes on, or is gone."""

from __future__ import annotations

from engine.broker.broker_timers import BrokerTimers
from engine.host.coroutine import drive
from engine.host.event_loop import EventLoop
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers
from engine.host.turns import Line


def test_what_was_due_at_a_stop_does_not_run() -> None:
    loop = MemoryTimers(ManualClock())
    timers = BrokerTimers(loop)
    ran: list[str] = []
    timers.call_soon(lambda: ran.append("soon"))
    timers.call_from_thread(lambda: ran.append("from a thread"))
    timers.stop()
    loop.run_until_idle()
    assert [] == ran


def test_a_line_may_be_left_when_the_loop_of_a_stopped_broker_is_gone() -> None:
    loop = EventLoop()
    timers = BrokerTimers(loop)
    line = Line(timers)
    begun: list[str] = []

    async def behind() -> None:
        await line.enter()
        begun.append("behind")

    first = drive(line.enter())
    drive(behind())
    timers.stop()
    loop.close()
    line.leave(first.result())
    timers.call_from_thread(lambda: begun.append("from a thread"))
    assert [] == begun
