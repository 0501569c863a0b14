"""`kctl top` without a screen: one frame, views, places, cells, lines."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from engine.errors import EngineError
from engine.watching.row_order import NoSuchSort
from engine.watching.watch import Watch
from engine.watching.watch_rows import Frame
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.commands.top import watching
from kctl.commands.top.cells import GAP, fit_cells
from kctl.commands.top.head_lines import HELP, KEYS, Shown, head_lines
from kctl.commands.top.top_request import TopRequest
from kctl.commands.top.views import (
    BROKERS,
    GROUPS,
    MOVES,
    PARTITIONS,
    TOPICS,
    VIEWS,
    NoSuchView,
    Order,
    View,
    filter_and_sort,
    place_of,
    place_opened_by,
    rows_at,
    sorts_descending,
)
from kctl.commands.top.watching import NoTextual, show_top
from kctl.connect import ClusterOptions
from kctl.render.rows import UnknownFormat
from kctl.schemas import schema_of
from tests.unit.exporter.test_exporter import Stage
from tests.unit.watching.samples import T0, T1, WALL_MS, group, row, sample, view

OPTIONS = ClusterOptions(timeout_s=5)
ONCE = TopRequest(every="1s", is_once=True)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    stage = Stage()
    monkeypatch.setattr(watching, "connect", lambda _options: stage.client)
    return stage


def watched() -> tuple[Watch, Frame]:
    """Return a cluster of two brokers whose second is behind, with a group."""
    watch = Watch()
    cluster = view(row(0), row(1, (2, 1), (2,)))
    fields: dict[str, Any] = {"cluster": cluster, "groups": (group("g", {T0: 1}, (T0,)),)}
    watch.add_sample(sample(0, ends={T0: 4, T1: 0}, sizes={1: {T0: 10}, 2: {T1: 99}}, **fields))
    frame = watch.add_sample(
        sample(5_000, ends={T0: 9, T1: 0}, sizes={1: {T0: 5010}, 2: {T1: 99}}, **fields)
    )
    return watch, frame


# -- one frame


def test_a_frame_as_json_is_as_its_schema_says(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exits.OK == show_top(OPTIONS, ONCE._replace(output="json"))
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator(schema_of("top")).validate(document)
    assert [1, 2, 3] == [row["broker_id"] for row in document["brokers"]]
    assert ["g"] == [row["group"] for row in document["groups"]]
    assert {"t", "__consumer_offsets"} == {row["topic"] for row in document["topics"]}
    assert [] == document["failures"]


def test_without_a_terminal_one_frame_is_printed(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exits.OK == show_top(OPTIONS, TopRequest(every="1s"))
    printed = capsys.readouterr().out
    assert [view.name for view in VIEWS if f"{place_of(view).title}\n\n" in printed] == [
        view.name for view in VIEWS
    ]
    assert "partitions in trouble\n\nnone\n" in printed


def test_one_view_may_be_printed_sorted_and_filtered(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    request = ONCE._replace(view="topics", sort="topic", output="csv", filter_text="t")
    assert exits.OK == show_top(OPTIONS, request)
    heading, *lines = capsys.readouterr().out.splitlines()
    assert heading.startswith("topic,partition_count,")
    assert ["__consumer_offsets", "t"] == [line.partition(",")[0] for line in lines]


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (ONCE._replace(every="soon"), UnreadableArgument),
        (ONCE._replace(view="racks"), NoSuchView),
        (ONCE._replace(sort="lag"), NoSuchSort),
        (ONCE._replace(output="pdf"), UnknownFormat),
    ],
)
def test_a_wrong_option_is_refused_before_the_cluster_is_asked(
    request_: TopRequest, error: type[EngineError]
) -> None:
    with pytest.raises(error):
        show_top(OPTIONS, request_)


def test_without_the_library_of_the_screen_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    monkeypatch.setattr(watching, "_is_terminal", lambda: True)
    with pytest.raises(NoTextual) as raised:
        show_top(OPTIONS, TopRequest())
    assert "kctl-kafka[top]" in (raised.value.hint or "")


# -- views and places


def test_every_view_shows_fields_that_its_rows_have() -> None:
    watch, frame = watched()
    for kind in VIEWS:
        for found in rows_at(place_of(kind), frame, watch):
            assert set(kind.fields()) == set(found)


@pytest.mark.parametrize(
    ("kind", "titles"),
    [
        (TOPICS, ["partitions of t", "replicas of t-0", "partitions that broker 1 leads"]),
        (GROUPS, ["lag of g", "replicas of t-0"]),
        (BROKERS, ["partitions that broker 1 leads", "replicas of t-0"]),
        (PARTITIONS, ["replicas of t-1", "partitions that broker 1 leads"]),
    ],
)
def test_a_row_leads_on(kind: View, titles: list[str]) -> None:
    watch, frame = watched()
    place, seen = place_of(kind), []
    for _ in titles:
        rows = filter_and_sort(place.view, rows_at(place, frame, watch))
        place = place_opened_by(place, rows[0])
        seen.append(place.title)
        assert all(set(place.view.fields()) == set(r) for r in rows_at(place, frame, watch))
        assert rows_at(place, frame, watch)
    assert titles == seen


def test_a_move_leads_to_its_replicas() -> None:
    behind = place_opened_by(place_of(MOVES), {"topic": "t", "partition": 3})
    assert ("replicas of t-3", "t", 3) == (behind.title, behind.topic, behind.partition)


def test_the_worst_partitions_come_first() -> None:
    troubles = ["under-replicated", "offline", "silent-leader"]
    rows = [dict.fromkeys(PARTITIONS.fields(), 0) | {"trouble": t} for t in troubles]
    found = [row["trouble"] for row in filter_and_sort(PARTITIONS, rows)]
    assert ["offline", "silent-leader", "under-replicated"] == found


def test_amounts_fall_and_names_rise_at_first() -> None:
    assert [True, False, False] == [
        sorts_descending(TOPICS, key) for key in ("size_bytes", "topic", "topic")
    ]
    assert not sorts_descending(PARTITIONS, "partition")
    assert Order("lag", True) == TopRequest(view="groups", sort="lag").sort_order()


# -- cells and lines


def test_columns_fit_the_width_and_names_lose_their_middle() -> None:
    name = "a-very-long-name-of-a-topic-that-somebody-chose-in-the-year-2019"
    rows = [
        dict.fromkeys(TOPICS.fields(), 1234567) | {"topic": f"{name}-{number}"}
        for number in range(2)
    ]
    columns, widths, texts = fit_cells(TOPICS.columns, rows, 80)
    assert len(TOPICS.columns) == len(columns)
    assert sum(widths) + GAP * (len(widths) - 1) <= 80
    assert [True, True] == [line[0].startswith("a-very") and "…" in line[0] for line in texts]
    assert ["0", "1"] == [line[0][-1] for line in texts]


def test_columns_that_have_no_room_leave() -> None:
    rows = [dict.fromkeys(PARTITIONS.fields(), 1) | {"replicas": (1, 2), "isr": (1,)}]
    wide, narrow = (fit_cells(PARTITIONS.columns, rows, width) for width in (200, 30))
    assert PARTITIONS.columns == tuple(wide.columns)
    assert len(narrow.columns) < len(wide.columns)
    assert "topic" == narrow.columns[0].key


def test_a_value_that_is_not_known_is_a_dash_and_a_float_has_one_digit() -> None:
    row_of_group = dict.fromkeys(GROUPS.fields(), 0) | {"lag_per_s": None, "lag_s": 12345.67}
    columns, _, (line,) = fit_cells(GROUPS.columns, [row_of_group], 120)
    by_key = {column.key: text for column, text in zip(columns, line, strict=True)}
    assert ("-", "12,345.7") == (by_key["lag_per_s"], by_key["lag_s"])


def shown(**fields: Any) -> Shown:
    return Shown(place_of(TOPICS), Order("bytes_per_s", True), "", 1)._replace(**fields)


def test_the_head_says_how_old_the_figures_are_and_what_is_wrong() -> None:
    _, frame = watched()
    lines = head_lines(frame, shown(filter_text="x"), WALL_MS + 5_000 + 17_900)
    assert lines[0].startswith("figures 17 s old  brokers 2 of 2 up  controller 1  cluster c")
    assert "partitions 2, 1 in trouble  groups 1, 0 behind  moves 0  in 1000 B/s" == lines[1]
    assert "[3 topics]" in lines[2]
    assert "topics: 1  by BYTES/S down  filter: x" == lines[3]


def test_the_head_says_that_nobody_answers() -> None:
    _, frame = watched()
    now_ms = WALL_MS + 60_000
    lines = head_lines(frame, shown(error="cannot reach b1:9092", is_paused=True), now_ms)
    assert lines[0].startswith("paused, figures 55 s old")
    assert "no answer since then: cannot reach b1:9092" == lines[1]
    assert "no answer: why" == head_lines(None, shown(error="why"), 0)[0]
    assert "the first sample is under way" == head_lines(None, shown(), 0)[0]


def test_keys_and_their_help_fit_a_terminal_of_80_by_24() -> None:
    assert len(KEYS) <= 80
    assert max(map(len, HELP.splitlines())) <= 80
    assert len(HELP.splitlines()) <= 24 - 5
