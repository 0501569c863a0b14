"""The timing wheel: the worked example of its docstring, and the rules around it."""

from __future__ import annotations

from engine.timing.wheel import Timer, TimingWheel


def wheel_with(*deadlines: int, start_ms: int = 0) -> tuple[TimingWheel[Timer], list[Timer]]:
    wheel: TimingWheel[Timer] = TimingWheel(start_ms)
    timers = [Timer(deadline) for deadline in deadlines]
    for timer in timers:
        wheel.insert(timer)
    return wheel, timers


def expired_at(wheel: TimingWheel[Timer], now_ms: int) -> list[int]:
    return [timer.deadline_ms for timer in wheel.advance(now_ms)]


def test_a_ring_is_used_again_behind_the_clock() -> None:
    """TW-4."""
    wheel, [two] = wheel_with(2)
    assert (1, 2) == wheel.bucket_of(two)
    assert [2] == expired_at(wheel, 2)
    eight_more, nineteen_more = Timer(2 + 8), Timer(2 + 19)
    wheel.insert(eight_more)
    wheel.insert(nineteen_more)
    assert (1, 10) == wheel.bucket_of(eight_more)
    assert (1, 1) == wheel.bucket_of(nineteen_more)
    assert [10] == expired_at(wheel, 20)
    assert [21] == expired_at(wheel, 21)


def test_what_is_beyond_the_span_goes_to_the_wheel_above() -> None:
    """TW-5."""
    wheel, timers = wheel_with(350, 450, 446, 455, 473)
    assert [(2, 17), (3, 1), (3, 1), (3, 1), (3, 1)] == [wheel.bucket_of(t) for t in timers]


def test_the_clock_itself_is_on_no_level_and_the_end_of_one_on_the_next() -> None:
    wheel, timers = wheel_with(0, 1, 19, 20, 399, 400)
    buckets = [wheel.bucket_of(timer) for timer in timers]
    assert [None, (1, 1), (1, 19), (2, 1), (2, 19), (3, 1)] == buckets


def test_a_due_bucket_gives_its_timers_to_lower_wheels() -> None:
    """TW-6."""
    wheel, [timer] = wheel_with(450)
    assert 400 == wheel.next_deadline_ms()
    assert [] == expired_at(wheel, 400)
    assert (2, 2) == wheel.bucket_of(timer)
    assert 440 == wheel.next_deadline_ms()
    assert [] == expired_at(wheel, 440)
    assert (1, 10) == wheel.bucket_of(timer)
    assert 450 == wheel.next_deadline_ms()
    assert [450] == expired_at(wheel, 450)
    assert wheel.next_deadline_ms() is None
    assert wheel.bucket_of(timer) is None


def test_a_late_advance_expires_everything_due_in_order() -> None:
    wheel, timers = wheel_with(9000, 5, 450, 21, 8000, 20, 19)
    assert [5, 19, 20, 21, 450, 8000] == expired_at(wheel, 8999)
    assert [timers[0]] == [timer for timer in timers if timer.is_pending]


def test_a_passed_deadline_expires_with_the_next_advance() -> None:
    wheel, timers = wheel_with(100, 50, -3, start_ms=100)
    assert 3 == wheel.pending_count
    assert 100 == wheel.next_deadline_ms()
    assert timers[0].cancel()
    assert [-3, 50] == expired_at(wheel, 100)


def test_a_cancelled_timer_neither_expires_nor_wakes_anyone() -> None:
    wheel, [near, far] = wheel_with(30, 30_000)
    assert near.cancel()
    assert not near.cancel()
    assert 1 == wheel.pending_count
    assert 24_000 == wheel.next_deadline_ms()
    assert [30_000] == expired_at(wheel, 30_000)
    assert not far.cancel()


def test_a_bucket_emptied_by_cancels_is_used_again() -> None:
    wheel, [first] = wheel_with(7)
    first.cancel()
    second = Timer(7)
    wheel.insert(second)
    assert 7 == wheel.next_deadline_ms()
    second.cancel()
    assert wheel.next_deadline_ms() is None
    third = Timer(7)
    wheel.insert(third)
    assert [third] == wheel.advance(7)


def test_a_timer_can_be_inserted_again_after_it_expired() -> None:
    wheel, [timer] = wheel_with(5)
    wheel.advance(5)
    timer.deadline_ms = 12
    wheel.insert(timer)
    assert [12] == expired_at(wheel, 12)


def test_a_coarse_tick_is_never_early() -> None:
    wheel: TimingWheel[Timer] = TimingWheel(0, tick_ms=10, wheel_size=4)
    for deadline in (15, 20, 21, 395):
        wheel.insert(Timer(deadline))
    assert [] == expired_at(wheel, 19)
    assert 20 == wheel.next_deadline_ms()
    assert [15, 20] == expired_at(wheel, 20)
    assert [21] == expired_at(wheel, 30)
    assert [395] == expired_at(wheel, 400)


def test_a_coarse_tick_is_not_early_on_its_way_down_either() -> None:
    wheel: TimingWheel[Timer] = TimingWheel(0, tick_ms=10, wheel_size=4)
    wheel.insert(Timer(415))
    assert [] == expired_at(wheel, 419)
    assert [415] == expired_at(wheel, 420)


def test_a_clock_that_is_set_back_stays() -> None:
    wheel, _ = wheel_with(30)
    assert [] == expired_at(wheel, 10)
    assert [] == expired_at(wheel, 5)
    assert [30] == expired_at(wheel, 30)


def test_the_largest_deadline_of_all_has_a_level() -> None:
    wheel, [timer] = wheel_with((1 << 63) - 1)
    assert (15, 5) == wheel.bucket_of(timer)
    assert [] == expired_at(wheel, 1 << 62)


def test_draining_takes_all_timers_off() -> None:
    wheel, timers = wheel_with(500, -1, 7)
    assert [-1, 7, 500] == [timer.deadline_ms for timer in wheel.drain()]
    assert not any(timer.is_pending for timer in timers)
    assert 0 == wheel.pending_count
    assert wheel.next_deadline_ms() is None
    assert [] == wheel.drain()
