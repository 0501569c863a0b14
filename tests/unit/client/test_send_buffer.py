"""The room of a producer: what waits begins in its order, as soon as there is room."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from engine.client.errors import BufferExhausted, RecordAboveBuffer
from engine.client.send_buffer import SendBuffer, size_of_record
from engine.errors import EngineError


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 60))


def test_what_waits_has_begun_before_its_room_is_offered_to_another() -> None:
    async def work() -> None:
        buffer, order = SendBuffer(100, 1_000), list[str]()
        assert buffer.try_hold(100)
        waiter = buffer.enter(60, lambda: order.append("first"))
        assert not buffer.try_hold(40)
        assert buffer.is_wanted
        buffer.release(100)
        assert ["first"] == order
        assert buffer.try_hold(40)
        assert not buffer.try_hold(1)
        await buffer.await_admission(waiter)
        assert 100 == buffer.held_bytes

    run(work())


def test_one_that_waits_holds_up_a_smaller_one_behind_it() -> None:
    async def work() -> None:
        buffer, order = SendBuffer(100, 1_000), list[str]()
        assert buffer.try_hold(50)
        waiters = [buffer.enter(60, lambda: order.append("large"))]
        waiters.append(buffer.enter(10, lambda: order.append("small")))
        buffer.release(9)
        assert [] == order
        buffer.release(1)
        assert ["large"] == order
        assert buffer.leave(waiters[1])
        assert not buffer.leave(waiters[0])
        assert (100, False) == (buffer.held_bytes, buffer.is_wanted)

    run(work())


def test_one_that_leaves_lets_those_behind_it_begin() -> None:
    async def work() -> None:
        buffer, order = SendBuffer(100, 1), list[str]()
        assert buffer.try_hold(50)
        large = buffer.enter(60, lambda: order.append("large"))
        small = buffer.enter(10, lambda: order.append("small"))
        with pytest.raises(
            BufferExhausted, match=r"allocate 60 bytes.* Available memory: 40 bytes"
        ):
            await buffer.await_admission(large)
        assert ["small"] == order
        await buffer.await_admission(small)

    run(work())


def test_many_that_give_their_room_back_at_once_begin_in_turn() -> None:
    async def work() -> None:
        buffer, order = SendBuffer(100, 1_000), list[int]()
        assert buffer.try_hold(100)

        def begin(number: int) -> None:
            order.append(number)
            buffer.release(100)

        for number in range(2_000):
            buffer.enter(100, lambda number=number: begin(number))  # type: ignore[misc]
        buffer.release(100)
        assert list(range(2_000)) == order
        assert 0 == buffer.held_bytes

    run(work())


def test_more_than_all_the_room_is_refused() -> None:
    buffer = SendBuffer(100, 1)
    with pytest.raises(RecordAboveBuffer):
        buffer.try_hold(101)
    assert buffer.try_hold(100)


class Refused(EngineError):
    """What beginning fails with."""


def test_what_cannot_begin_has_its_error() -> None:
    async def work() -> None:
        buffer = SendBuffer(100, 1_000)
        assert buffer.try_hold(100)

        def refuse() -> None:
            buffer.release(10)
            raise Refused

        waiter = buffer.enter(10, refuse)
        buffer.release(100)
        with pytest.raises(Refused):
            await buffer.await_admission(waiter)
        assert 0 == buffer.held_bytes

    run(work())


def test_all_that_wait_are_given_up_together() -> None:
    async def work() -> None:
        buffer = SendBuffer(100, 1_000)
        assert buffer.try_hold(100)
        waiters = [buffer.enter(10, lambda: None) for _ in range(2)]
        buffer.fail_waiting(Refused())
        for waiter in waiters:
            with pytest.raises(Refused):
                await buffer.await_admission(waiter)
        assert not buffer.is_wanted

    run(work())


def test_a_record_occupies_its_key_its_value_and_its_headers() -> None:
    bare = size_of_record(None, None, ())
    assert bare + 5 == size_of_record(b"abc", b"de", ())
    assert bare + 3 + 4 + 2 == size_of_record(None, None, (("abc", b"defg"), ("no", None)))
