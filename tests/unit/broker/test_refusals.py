"""Refused peers are counted, and told at a bounded rate."""

from __future__ import annotations

import pytest

from engine.broker.refusals import Refusals
from engine.host.memory import ManualClock
from engine.limits import REFUSAL_KINDS_MAX, REFUSAL_LINES_PER_PERIOD, REFUSAL_PERIOD_MS


def test_each_refusal_is_counted_and_only_some_are_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    refusals = Refusals(ManualClock())
    for n in range(1000):
        refusals.note(f"10.0.0.1:{n}", "a frame of -1 bytes")
    assert refusals.counts["a frame of -1 bytes"] == 1000
    assert len(caplog.records) == REFUSAL_LINES_PER_PERIOD


def test_the_next_period_says_how_many_were_left_out(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    refusals = Refusals(clock)
    for _ in range(REFUSAL_LINES_PER_PERIOD + 7):
        refusals.note("peer", "why")
    caplog.clear()
    clock.advance(REFUSAL_PERIOD_MS)
    refusals.note("peer", "why")
    assert [record.getMessage() for record in caplog.records] == [
        "7 more connections were closed for bad requests",
        "connection of peer closed: why",
    ]


def test_a_period_lasts_its_time_whenever_the_process_began(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    clock.advance(10 * REFUSAL_PERIOD_MS)
    refusals = Refusals(clock)
    for _ in range(REFUSAL_LINES_PER_PERIOD):
        refusals.note("peer", "why")
    clock.advance(REFUSAL_PERIOD_MS - 1)
    refusals.note("peer", "why")
    assert REFUSAL_LINES_PER_PERIOD == len(caplog.records)


def test_reasons_that_a_peer_makes_up_do_not_fill_the_memory() -> None:
    refusals = Refusals(ManualClock())
    for n in range(10 * REFUSAL_KINDS_MAX):
        refusals.note("peer", f"a frame of -{n} bytes")
    assert len(refusals.counts) <= REFUSAL_KINDS_MAX + 1
    assert sum(refusals.counts.values()) == 10 * REFUSAL_KINDS_MAX


def test_refused_peers_are_logged_at_info_with_lines_for_each_kind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="kafka.network")
    clock = ManualClock()
    refusals = Refusals(clock)
    for _ in range(REFUSAL_LINES_PER_PERIOD + 3):
        refusals.note_rejection("10.0.0.1:9", "waits")
    refusals.note_rejection("10.0.0.1:9", "Too many open files")
    refusals.note("10.0.0.1:9", "a frame of -1 bytes")
    assert refusals.counts["waits"] == REFUSAL_LINES_PER_PERIOD + 3
    lines = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    acceptor = "kafka.network.DataPlaneAcceptor"
    assert lines == [
        *[(acceptor, "INFO", "connection of 10.0.0.1:9: waits")] * REFUSAL_LINES_PER_PERIOD,
        (acceptor, "INFO", "connection of 10.0.0.1:9: Too many open files"),
        (
            "kafka.network.Processor",
            "WARNING",
            "connection of 10.0.0.1:9 closed: a frame of -1 bytes",
        ),
    ]
    caplog.clear()
    clock.advance(REFUSAL_PERIOD_MS)
    refusals.note_rejection("10.0.0.1:9", "waits")
    assert caplog.records[0].getMessage() == "3 more connections were rejected or had to wait"
