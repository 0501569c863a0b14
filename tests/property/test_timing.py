"""The wheel against a sorted list, the purgatory against a set."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from engine.timing.purgatory import DelayedOperation, Purgatory
from engine.timing.wheel import Timer, TimingWheel

DELAYS = st.one_of(st.integers(-5, 60), st.integers(0, 900), st.integers(0, 50_000))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), DELAYS),
        st.tuples(st.just("advance"), DELAYS),
        st.tuples(st.just("next"), st.just(0)),
        st.tuples(st.just("cancel"), st.integers(0, 30)),
    ),
    max_size=60,
)


@given(
    STEPS,
    st.integers(0, 10_000),
    st.sampled_from([1, 1, 3, 10]),
    st.sampled_from([2, 3, 20]),
)
def test_the_wheel_expires_what_a_sorted_list_expires(
    steps: list[tuple[str, int]], start_ms: int, tick_ms: int, wheel_size: int
) -> None:
    wheel: TimingWheel[Timer] = TimingWheel(start_ms, tick_ms=tick_ms, wheel_size=wheel_size)
    now_ms, pending = start_ms, list[Timer]()

    def due_ms(timer: Timer) -> int:
        return -(-timer.deadline_ms // tick_ms) * tick_ms

    for step, number in steps:
        if step == "insert":
            pending.append(Timer(now_ms + number))
            wheel.insert(pending[-1])
        elif step == "cancel" and number < len(pending):
            assert pending.pop(number).cancel()
        elif step in ("advance", "next"):
            woken_ms = wheel.next_deadline_ms() if step == "next" else now_ms + number
            now_ms = max(now_ms, woken_ms or 0)
            expected = sorted(t.deadline_ms for t in pending if due_ms(t) <= now_ms)
            assert expected == [t.deadline_ms for t in wheel.advance(now_ms)]
            pending = [t for t in pending if due_ms(t) > now_ms]
        assert len(pending) == wheel.pending_count
        following_ms = wheel.next_deadline_ms()
        assert (following_ms is None) == (not pending)
        if following_ms is not None:
            assert following_ms <= max(now_ms, min(map(due_ms, pending)))
    assert all(timer.is_pending for timer in pending)


@given(st.lists(st.integers(0, 100_000_000), min_size=1, max_size=20))
def test_following_the_next_deadline_wakes_each_timer_on_time_and_seldom(
    deadlines: list[int],
) -> None:
    wheel: TimingWheel[Timer] = TimingWheel(0)
    for deadline in deadlines:
        wheel.insert(Timer(deadline))
    wakes = 0
    while (now_ms := wheel.next_deadline_ms()) is not None:
        wakes += 1
        for timer in wheel.advance(now_ms):
            assert timer.deadline_ms == now_ms
    # A timer goes down one level at a time, and seven levels hold 20 ** 7 ms.
    assert wakes <= 7 * len(deadlines)


class Countdown(DelayedOperation):
    """Can complete once as many of its keys were signalled as it needs."""

    __slots__ = ("keys", "needed", "signalled")

    def __init__(self, deadline_ms: int, keys: frozenset[int], needed: int) -> None:
        super().__init__(deadline_ms)
        self.keys = keys
        self.needed = min(needed, len(keys))
        self.signalled: set[int] = set()

    def can_complete(self) -> bool:
        return len(self.signalled) >= self.needed

    def drop(self) -> None:
        self.signalled = set()


OPERATIONS = st.tuples(
    st.integers(0, 200), st.frozensets(st.integers(0, 4), max_size=3), st.integers(0, 3)
)
EVENTS = st.lists(
    st.one_of(
        OPERATIONS,
        st.tuples(st.just("signal"), st.integers(0, 4)),
        st.tuples(st.just("advance"), st.integers(0, 120)),
        st.tuples(st.just("force"), st.integers(0, 20)),
    ),
    max_size=60,
)


@given(EVENTS, st.sampled_from([0, 1, 5, 1000]))
def test_each_operation_completes_once_and_for_the_right_reason(
    events: list[tuple[object, ...]], purge_interval: int
) -> None:
    purgatory: Purgatory[Countdown] = Purgatory(TimingWheel(0), purge_interval=purge_interval)
    now_ms, waiting, made = 0, list[Countdown](), list[Countdown]()
    live_max = 0
    completed: list[Countdown] = []
    for event in events:
        match event:
            case ("signal", int(key)):
                for operation in waiting:
                    operation.signalled |= {key} & operation.keys
                expected = {op for op in waiting if key in op.keys and op.can_complete()}
                got = purgatory.complete_for(key)
                assert expected == set(got)
                completed += got
            case ("advance", int(step_ms)):
                now_ms += step_ms
                expected = {op for op in waiting if op.deadline_ms <= now_ms}
                got = purgatory.advance(now_ms)
                assert expected == set(got)
                completed += got
            case ("force", int(number)):
                if number < len(made) and made[number].force_complete():
                    completed.append(made[number])
            case (int(delay_ms), frozenset() as keys, int(needed)):
                operation = Countdown(now_ms + delay_ms, keys, needed)
                made.append(operation)
                if purgatory.try_complete_else_watch(operation, keys):
                    assert operation.needed == 0
                    completed.append(operation)
        waiting = [op for op in made if not op.is_completed]
        assert len(waiting) == purgatory.delayed_count
        live = sum(len(op.keys) for op in waiting)
        live_max = max(live_max, live)
        assert live <= purgatory.watched_count
        if event[0] == "advance":
            assert purgatory.watched_count <= live_max + max(live_max, purge_interval)
    completed += purgatory.drain()
    assert len(made) == len(completed) == len(set(completed))
    assert set(made) == set(completed)
