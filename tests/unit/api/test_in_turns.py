"""Large requests are served a few rows at a time, with the same bytes as at once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from engine.api.admission import Session, allow_all
from engine.api.dispatch import ApiRow, DispatchTable, Rule
from engine.api.exchange import EncodedRows, Exchange, Handled
from engine.api.in_turns import InTurns, Rows
from engine.api.promised import HandlerFailed
from engine.broker.local_messages import message_of_response
from engine.errors import api_error
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers
from engine.host.promise import Promise
from engine.host.turns import LoopTurns
from engine.kafka_errors import UNKNOWN_SERVER_ERROR
from engine.limits import ROWS_PER_SHARE, SHARE_MS_MAX
from engine.wire.codec import message_codec
from engine.wire.row_bytes import insert_rows
from engine.wire.structs import message_class

_ROWS = Rows("OffsetForLeaderEpoch", "topics", "topics", lambda row: str(row.topic))
_VERSION = 4


class Stage:
    """A handler whose every row takes some time."""

    def __init__(self, row_ms: int = 1) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.sizes: list[int] = []
        self.waits: list[Promise[Any]] = []
        self.is_waiting = False
        self.fault: Exception | None = None
        self._row_ms = row_ms
        self.handler = InTurns(self._handle, _ROWS, LoopTurns(self.timers, self.clock))
        self.exchange = Exchange(Session("peer", allow_all()), 23, _VERSION, 1, None, 0)

    def _handle(self, request: Any, _exchange: Exchange) -> Handled:
        if self.fault is not None:
            raise self.fault
        self.sizes.append(len(request.topics))
        self.clock.advance(self._row_ms * len(request.topics))
        made = message_class("OffsetForLeaderEpochResponse")
        response = made(
            topics=[made.OffsetForLeaderTopicResult(topic=row.topic) for row in request.topics]
        )
        if not self.is_waiting:
            return response
        self.waits.append(Promise())
        return self.waits[-1].then(lambda _: response)

    def ask(self, names: list[str]) -> Handled:
        made = message_class("OffsetForLeaderEpochRequest")
        request = made(topics=[made.OffsetForLeaderTopic(topic=name) for name in names])
        return self.handler.handle(request, self.exchange)


def _names(count: int) -> list[str]:
    return [f"topic-{number}" for number in range(count)]


def _bytes(response: Any) -> bytes:
    if isinstance(response, EncodedRows):
        return b"".join(insert_rows("OffsetForLeaderEpoch", _VERSION, *response.rows))
    return message_codec("OffsetForLeaderEpochResponse", _VERSION).encode(response)


def _whole(names: list[str]) -> bytes:
    made = message_class("OffsetForLeaderEpochResponse")
    return _bytes(made(topics=[made.OffsetForLeaderTopicResult(topic=name) for name in names]))


@pytest.mark.parametrize("count", [0, 1, ROWS_PER_SHARE])
def test_a_small_request_is_served_at_once(count: int) -> None:
    stage = Stage()
    assert _whole(_names(count)) == _bytes(stage.ask(_names(count)))
    assert [count] == stage.sizes


def test_a_large_request_leaves_others_their_turns() -> None:
    stage = Stage()
    names = _names(10 * ROWS_PER_SHARE + 1)
    handled = stage.ask(names)
    assert isinstance(handled, Promise)
    turns: list[int] = []

    def other() -> None:
        turns.append(sum(stage.sizes))
        if not handled.is_kept:
            stage.timers.call_soon(other)

    stage.timers.call_soon(other)
    stage.timers.run_until_idle()
    assert _whole(names) == _bytes(handled.result())
    steps = [after - before for before, after in pairwise(turns)]
    assert len(turns) >= 10
    assert max(steps) <= max(ROWS_PER_SHARE, SHARE_MS_MAX)


def test_the_next_request_of_the_connection_waits_for_the_response() -> None:
    stage = Stage()
    stage.is_waiting = True
    handled = stage.ask(_names(3 * ROWS_PER_SHARE))
    assert isinstance(handled, Promise)
    turns = handled.turns
    assert turns is not None
    stage.timers.run_until_idle()
    assert not turns.is_kept
    for waiting in stage.waits:
        waiting.keep(None)
    stage.timers.run_until_idle()
    assert (True, True) == (turns.is_kept, handled.is_kept)


def test_rows_that_cost_nothing_are_served_in_one_turn() -> None:
    handled = Stage(row_ms=0).ask(_names(1000))
    assert isinstance(handled, Promise)
    assert handled.is_kept


def test_a_request_that_names_something_twice_is_served_whole() -> None:
    stage = Stage()
    names = [*_names(100), "topic-5"]
    assert _whole(names) == _bytes(stage.ask(names))
    assert [101] == stage.sizes


def test_all_rows_begin_before_any_is_waited_for() -> None:
    stage = Stage()
    stage.is_waiting = True
    names = _names(3 * ROWS_PER_SHARE)
    handled = stage.ask(names)
    assert isinstance(handled, Promise)
    stage.timers.run_until_idle()
    assert 3 == len(stage.waits)
    for waiting in reversed(stage.waits):
        waiting.keep(None)
    stage.timers.run_until_idle()
    assert _whole(names) == _bytes(handled.result())


def test_an_error_of_some_rows_is_that_of_the_request() -> None:
    stage = Stage()
    stage.is_waiting = True
    handled = stage.ask(_names(3 * ROWS_PER_SHARE))
    assert isinstance(handled, Promise)
    stage.timers.run_until_idle()
    error = api_error(UNKNOWN_SERVER_ERROR)
    stage.waits[0].keep(None)
    stage.waits[1].fail(error)
    assert error is handled.error


def test_a_broker_of_the_same_process_gets_a_message() -> None:
    stage = Stage()
    names = _names(100)
    handled = stage.ask(names)
    assert isinstance(handled, Promise)
    stage.timers.run_until_idle()
    table = DispatchTable(allow_all())
    table.serve("OffsetForLeaderEpoch", stage.handler.handle, Rule.PER_RESOURCE)
    row: ApiRow | None = table.row(23)
    assert row is not None
    response = message_of_response(row, _VERSION, handled.result())
    assert names == [topic.topic for topic in response.topics]


def test_a_fault_in_a_later_turn_ends_the_request() -> None:
    stage = Stage()
    handled = stage.ask(_names(10 * ROWS_PER_SHARE))
    assert isinstance(handled, Promise)
    stage.fault = KeyError("a topic")
    stage.timers.run_until_idle()
    assert isinstance(handled.error, HandlerFailed)
    assert stage.fault is handled.error.fault


def test_a_broken_rule_in_a_later_turn_goes_to_the_loop() -> None:
    stage = Stage()
    handled = stage.ask(_names(10 * ROWS_PER_SHARE))
    assert isinstance(handled, Promise)
    stage.fault = AssertionError("a rule")
    with pytest.raises(AssertionError, match="a rule"):
        stage.timers.run_until_idle()
    assert not handled.is_kept


def test_all_parts_are_given_up_with_the_connection() -> None:
    stage = Stage()
    stage.is_waiting = True
    handled = stage.ask(_names(4 * ROWS_PER_SHARE))
    assert isinstance(handled, Promise)
    stage.timers.run_until_idle()
    assert len(stage.waits) > 2
    handled.abandon()
    assert all(wait.is_abandoned for wait in stage.waits)


def test_parts_that_begin_after_the_connection_is_gone_are_given_up_too() -> None:
    stage = Stage()
    stage.is_waiting = True
    handled = stage.ask(_names(4 * ROWS_PER_SHARE))
    assert isinstance(handled, Promise)
    handled.abandon()
    stage.timers.run_until_idle()
    assert len(stage.waits) > 2
    assert all(wait.is_abandoned for wait in stage.waits)
