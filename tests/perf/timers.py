"""Costs of a timer and of a delayed operation, in µs of CPU time; printed, never asserted."""

from __future__ import annotations

import heapq
import random
import time

from engine.timing.purgatory import DelayedOperation, Purgatory
from engine.timing.wheel import Timer, TimingWheel


class Never(DelayedOperation):
    """Waits for its deadline, or for `ready`."""

    __slots__ = ("ready",)

    def __init__(self, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self.ready = False

    def can_complete(self) -> bool:
        return self.ready

    def drop(self) -> None:
        """Do nothing: there is no response."""


def wheel_costs(count: int) -> tuple[float, float, float]:
    """Return µs to insert, cancel and expire with `count` timers within 30 s."""
    drawn = random.Random(1)
    timers = [Timer(drawn.randrange(30_000)) for _ in range(count)]
    wheel: TimingWheel[Timer] = TimingWheel(0)
    start = time.process_time()
    for timer in timers:
        wheel.insert(timer)
    inserted = time.process_time()
    for timer in timers[::2]:
        timer.cancel()
    cancelled = time.process_time()
    expired = 0
    while (now_ms := wheel.next_deadline_ms()) is not None:
        expired += len(wheel.advance(now_ms))
    done = time.process_time()
    return (
        (inserted - start) / count * 1e6,
        (cancelled - inserted) / (count / 2) * 1e6,
        (done - cancelled) / max(expired, 1) * 1e6,
    )


def heap_costs(count: int) -> tuple[float, float]:
    """Return µs to push and to pop, the floor of a heap of timers."""
    drawn = random.Random(1)
    timers = [(drawn.randrange(30_000), number) for number in range(count)]
    heap: list[tuple[int, int]] = []
    start = time.process_time()
    for timer in timers:
        heapq.heappush(heap, timer)
    pushed = time.process_time()
    while heap:
        heapq.heappop(heap)
    return (pushed - start) / count * 1e6, (time.process_time() - pushed) / count * 1e6


def purgatory_cost(count: int) -> float:
    """Return µs for an operation that waits and is completed by an event."""
    purgatory: Purgatory[Never] = Purgatory(TimingWheel(0), purge_interval=1000)
    start = time.process_time()
    for number in range(count):
        operation = Never(30_000 + number // 1000)
        purgatory.try_complete_else_watch(operation, (number % 100,))
        operation.ready = True
        purgatory.complete_for(number % 100)
    return (time.process_time() - start) / count * 1e6


def main() -> None:
    """Print the costs."""
    for count in (100_000, 1_000_000):
        insert, cancel, expire = wheel_costs(count)
        push, pop = heap_costs(count)
        print(
            f"{count} timers: wheel insert {insert:.2f} cancel {cancel:.2f} expire {expire:.2f}"
            f" | heap push {push:.2f} pop {pop:.2f}"
        )
    print(f"delayed operation, completed by an event: {purgatory_cost(200_000):.2f}")


if __name__ == "__main__":
    main()
