"""The screen of `kctl top`, driven by textual's pilot at 80 by 24."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from engine.client.errors import Unreachable
from engine.client.metadata import NO_BROKER, TopicView
from engine.host.memory import ManualClock
from engine.watching.timed_sample import TimedSample
from kctl import exits
from kctl.commands.top import screen
from kctl.commands.top.screen import TopApp
from kctl.commands.top.top_request import TopRequest
from tests.unit.watching.samples import T0, T1, WALL_MS, group, row, sample, view

pytestmark = pytest.mark.slow

Steps = Callable[[TopApp, Pilot[int]], Awaitable[None]]


def timed(at_ms: int = 0, topics: int = 3) -> TimedSample:
    """Return a cluster with topics t, t1, t2 and a partition without a leader, and a group."""
    cluster = view(row(0), row(1, (2, 1), leader=NO_BROKER), racks={1: None, 2: None, 3: None})
    others = {
        f"t{number}": TopicView(f"t{number}", bytes(15) + bytes([number]), False, (row(0),))
        for number in range(1, topics)
    }
    cluster = cluster._replace(topics={**cluster.topics, **others})
    sizes = {1: {T0: 10 + at_ms}, 2: {T1: 5}}
    ends = {T0: at_ms, T1: 0}
    groups = (group("g", {T0: 0}, (T0,)), group("other"))
    return sample(at_ms, cluster=cluster, sizes=sizes, ends=ends, groups=groups)


def drive(steps: Steps, request: TopRequest | None = None) -> TopApp:
    """Run the screen with two samples, then the steps."""
    clock = ManualClock(wall_ms=WALL_MS + 7_000)
    app = TopApp(request or TopRequest(), clock)

    async def run() -> None:
        async with app.run_test(size=(80, 24)) as pilot:
            app.take(timed())
            app.take(timed(5_000))
            await pilot.pause()
            await steps(app, pilot)

    asyncio.run(run())
    return app


def head_of(app: TopApp) -> list[str]:
    return str(app.query_one("#head", Static).render()).split("\n")


def rows_of(app: TopApp) -> list[list[str]]:
    table: DataTable[Any] = app.query_one(DataTable)
    return [
        [str(cell).strip() for cell in table.get_row_at(number)]
        for number in range(table.row_count)
    ]


def headings_of(app: TopApp) -> list[str]:
    return [str(column.label).strip() for column in app.query_one(DataTable).columns.values()]


def test_it_begins_with_topics_by_what_is_written() -> None:
    async def steps(app: TopApp, _pilot: Pilot[int]) -> None:
        assert head_of(app)[0].startswith("figures 2 s old  brokers 3 of 3 up")
        assert "topics: 3  by BYTES/S down" == head_of(app)[3]
        assert ["t", "2", "2", "1", "4.89 KiB", "1000 B", "1,000.0"] == rows_of(app)[0]
        widths = [
            column.get_render_width(app.query_one(DataTable))
            for column in app.query_one(DataTable).columns.values()
        ]
        assert sum(widths) <= 80

    drive(steps)


@pytest.mark.parametrize(
    ("key", "line", "first"),
    [
        ("1", "brokers: 3  by ID up", "1"),
        ("2", "partitions in trouble: 1  by TROUBLE up", "t"),
        ("3", "topics: 3  by BYTES/S down", "t"),
        ("4", "groups: 2  by LAG down", "g"),
        ("5", "moves: 0  by TOPIC up", None),
    ],
)
def test_a_digit_chooses_a_view(key: str, line: str, first: str | None) -> None:
    async def steps(app: TopApp, pilot: Pilot[int]) -> None:
        await pilot.press(key)
        await pilot.pause()
        assert line == head_of(app)[3]
        assert first == next((cells[0] for cells in rows_of(app)), None)

    drive(steps)


def test_enter_goes_down_and_escape_comes_back() -> None:
    async def steps(app: TopApp, pilot: Pilot[int]) -> None:
        titles = []
        for key in ("enter", "down", "enter", "escape", "escape", "escape"):
            await pilot.press(key)
            await pilot.pause()
            titles.append(head_of(app)[3].partition(":")[0])
        partitions, replicas = "partitions of t", "replicas of t-1"
        assert [partitions, partitions, replicas, partitions, "topics", "topics"] == titles

    drive(steps)


def test_a_group_shows_its_partitions() -> None:
    async def steps(app: TopApp, pilot: Pilot[int]) -> None:
        await pilot.press("4", "enter")
        await pilot.pause()
        assert ["t", "0", "0", "5000", "5000"] == rows_of(app)[0][:5]
        assert "VERDICT" in headings_of(app)

    drive(steps)


def test_columns_sort_and_the_order_turns() -> None:
    async def steps(app: TopApp, pilot: Pilot[int]) -> None:
        await pilot.press("s", "s")
        await pilot.pause()
        assert head_of(app)[3].endswith("by TOPIC up")
        assert ["t", "t1", "t2"] == [cells[0] for cells in rows_of(app)]
        await pilot.press("r")
        await pilot.pause()
        assert ["t2", "t1", "t"] == [cells[0] for cells in rows_of(app)]
        await pilot.press("S")
        await pilot.pause()
        assert head_of(app)[3].endswith("by REC/S down")

    drive(steps, TopRequest(sort="bytes_per_s"))


def test_words_filter_while_they_are_typed_and_escape_takes_them_away() -> None:
    async def steps(app: TopApp, pilot: Pilot[int]) -> None:
        await pilot.press("slash", "t", "2")
        await pilot.pause()
        assert ["t2"] == [cells[0] for cells in rows_of(app)]
        await pilot.press("enter")
        await pilot.pause()
        assert head_of(app)[3].endswith("filter: t2")
        # Keys are keys again.
        await pilot.press("escape", "4")
        await pilot.pause()
        assert "groups: 2  by LAG down" == head_of(app)[3]

    drive(steps)


def test_the_cursor_stays_on_its_row_when_figures_change() -> None:
    async def steps(app: TopApp, pilot: Pilot[int]) -> None:
        await pilot.press("s", "s", "down", "down")
        await pilot.pause()
        assert 2 == app.query_one(DataTable).cursor_row
        app.take(timed(10_000, topics=4))
        await pilot.press("r")
        await pilot.pause()
        table: DataTable[Any] = app.query_one(DataTable)
        assert "t2" == str(table.get_row_at(table.cursor_row)[0]).strip()

    drive(steps)


def test_a_cluster_that_is_gone_leaves_the_figures_and_says_how_old_they_are() -> None:
    async def steps(app: TopApp, pilot: Pilot[int]) -> None:
        app.on_sample_error(Unreachable("b1", 9092, "refused"))
        await pilot.pause()
        assert "no answer since then: cannot reach b1:9092: refused" == head_of(app)[1]
        assert 3 == len(rows_of(app))
        app.take(timed(10_000))
        await pilot.pause()
        assert head_of(app)[1].startswith("partitions 4")

    drive(steps)


def test_keys_move_and_open_rows_after_the_list_of_keys() -> None:
    async def steps(app: TopApp, pilot: Pilot[int]) -> None:
        await pilot.press("3", "question_mark")
        # The rows that nobody sees stay as they are.
        await pilot.press("down", "enter")
        assert "topics" == app.place.view.name
        await pilot.press("question_mark", "down", "enter")
        assert "topics" != app.place.view.name
        await pilot.press("question_mark", "escape", "escape")
        assert "topics" == app.place.view.name

    drive(steps)


def test_keys_are_shown_and_hidden_and_p_pauses() -> None:
    paused: list[bool] = []

    async def steps(app: TopApp, pilot: Pilot[int]) -> None:
        app.on_pause = paused.append
        await pilot.press("question_mark")
        await pilot.pause()
        assert "block" == str(app.query_one("#help").styles.display)
        assert not app.query_one(DataTable).display
        await pilot.press("escape")
        await pilot.pause()
        assert app.query_one(DataTable).display
        await pilot.press("p")
        await pilot.pause()
        assert head_of(app)[0].startswith("paused")
        await pilot.press("p")

    drive(steps)
    assert [True, False] == paused


def test_q_ends_and_a_fault_of_ours_ends_too() -> None:
    async def leave(_app: TopApp, pilot: Pilot[int]) -> None:
        await pilot.press("q")

    assert exits.OK == drive(leave).return_value
    fault = ZeroDivisionError("bug")

    async def fail(app: TopApp, pilot: Pilot[int]) -> None:
        app.on_sample_error(fault)
        await pilot.pause()

    app = drive(fail)
    assert (exits.INTERNAL, fault) == (app.return_value, app.fault)


def test_a_tick_while_the_screen_is_taken_down_shows_nothing() -> None:
    async def steps(app: TopApp, _pilot: Pilot[int]) -> None:
        await app.query_one("#head", Static).remove()
        app._show_head()

    drive(steps)


def test_many_rows_are_the_first_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screen, "ROWS_MAX", 2)

    async def steps(app: TopApp, _pilot: Pilot[int]) -> None:
        assert head_of(app)[3].startswith("topics: 3")
        assert 2 == len(rows_of(app))

    drive(steps)


def test_a_smaller_terminal_shows_fewer_columns() -> None:
    async def steps(app: TopApp, pilot: Pilot[int]) -> None:
        assert len(headings_of(app)) == 7
        await pilot.resize_terminal(30, 10)
        await pilot.pause()
        assert "TOPIC" == headings_of(app)[0]
        assert len(headings_of(app)) < 7

    drive(steps)
