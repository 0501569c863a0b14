"""The screen of `kctl top`, by textual. Its content comes from `views`, `cells`, `head_lines`.

```
cluster, brokers, age of the figures          or since when no broker responds
partitions, groups, moves, writes
1 brokers  2 partitions  3 topics  …          place, sort order, filter
rows                                          keys, or all of them after ?
```
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Resize
from textual.widgets import DataTable, Input, Static

from engine.client.blocking import KafkaClient
from engine.errors import EngineError
from engine.host.ports import Clock
from engine.watching.timed_sample import TimedSample
from engine.watching.watch import Watch
from engine.watching.watch_rows import Frame
from kctl import exits
from kctl.commands.top.cells import GAP, fit_cells
from kctl.commands.top.head_lines import HELP, KEYS, Shown, head_lines
from kctl.commands.top.sampling_thread import SamplingThread
from kctl.commands.top.top_request import TopRequest
from kctl.commands.top.views import (
    VIEWS,
    Order,
    Place,
    filter_and_sort,
    place_of,
    place_opened_by,
    rows_at,
    sorts_descending,
)
from kctl.render.rows import OutputRow

#: Maximum number of rows; a filter reaches the rest.
ROWS_MAX: Final = 500
_BAD: Final = frozenset(
    (
        *("offline", "silent-leader", "under-min-isr", "at-min-isr", "under-replicated"),
        *("silent", "gone", "STALL", "STOP", "REWIND", "WARN"),
    )
)


class TopApp(App[int]):
    """The application: shows samples that a thread, or a test, passes to `take`."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "kctl top"
    CSS = """
    Screen { layout: vertical; background: ansi_default; color: ansi_default }
    #head, #keys { height: auto; background: ansi_default; color: ansi_default }
    #head { text-wrap: nowrap; text-overflow: ellipsis }
    #keys { dock: bottom; height: 1; text-wrap: nowrap }
    #filter { display: none; height: 1; border: none; padding: 0; background: ansi_default }
    #filter.shown { display: block }
    #help { display: none; height: 1fr; background: ansi_default; color: ansi_default }
    DataTable { height: 1fr; scrollbar-size: 0 0; background: ansi_default; color: ansi_default }
    DataTable > .datatable--header { background: ansi_default; color: ansi_default;
      text-style: bold }
    DataTable > .datatable--cursor { background: ansi_default; color: ansi_default;
      text-style: reverse }
    DataTable:focus > .datatable--cursor { background: ansi_default; color: ansi_default;
      text-style: reverse }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(str(n), f"view({n - 1})", show=False) for n in range(1, len(VIEWS) + 1)),
        Binding("escape,backspace,left", "close", show=False),
        Binding("s,right_angle_bracket", "sort(1)", show=False),
        Binding("S,left_angle_bracket", "sort(-1)", show=False),
        Binding("r", "reverse", show=False),
        Binding("slash", "filter", show=False),
        Binding("p,space", "pause", show=False),
        Binding("question_mark,h", "keys", show=False),
        Binding("q,ctrl+c", "leave", show=False, priority=False),
    ]

    def __init__(self, request: TopRequest, clock: Clock) -> None:
        """Create the screen of `kctl top`, with the view, sort order and filter of `request`."""
        super().__init__(ansi_color=True)
        self._clock = clock
        #: Keeps the samples from which rates and histories are computed.
        self._watch = Watch()
        #: The last sample with its rates; None before the first.
        self._frame: Frame | None = None
        #: Opened places, each from the previous one; the last one is shown.
        self._places = [place_of(request.chosen_view())]
        order = request.sort_order()
        #: Sort order chosen by the user, by view.
        self._orders: dict[str, Order] = {} if order is None else {self.place.view.name: order}
        self._filter_text = request.filter_text
        #: Error of the last sample, None if it succeeded.
        self._error: EngineError | None = None
        #: Rows of the table after filter and limit; `_row_count` is their number before the limit.
        self._rows: list[OutputRow] = []
        self._row_count = 0
        self._is_paused = False
        #: Whether the widgets exist: samples before that are not drawn.
        self._is_composed = False
        self._width = 80
        #: Called with True to pause the sampling thread, with False to resume it.
        self.on_pause: Callable[[bool], None] = lambda _is_paused: None
        #: The exception that ended the screen, unless it was an error of the cluster.
        self.fault: Exception | None = None

    @property
    def place(self) -> Place:
        """Return the place that is shown: a view, or one that a row has opened."""
        return self._places[-1]

    # -- samples

    def take(self, timed: TimedSample) -> None:
        """Compute rates from a new sample and the earlier ones, and show them."""
        self._frame = self._watch.add_sample(timed)
        self._error = None
        self._show_rows()

    def on_sample_error(self, error: Exception) -> None:
        """Show the error of a sample; an unexpected exception ends the screen."""
        if not isinstance(error, EngineError):
            self.fault = error
            self.exit(exits.INTERNAL)
            return
        self._error = error
        self._show_head()

    # -- events of textual

    def compose(self) -> ComposeResult:
        """Yield the widgets of the screen; Textual calls it once."""
        yield Static(id="head")
        yield Vertical(DataTable(id="rows", cursor_type="row", cell_padding=0), Static(id="help"))
        yield Input(
            id="filter", placeholder="a filter, then enter", value=self._filter_text, compact=True
        )
        yield Static(Text(KEYS), id="keys")

    def on_mount(self) -> None:
        """Initialize the widgets; Textual calls it once they exist."""
        self._width = self.size.width
        self._is_composed = True
        self.query_one("#help", Static).update(Text(HELP))
        self.query_one(DataTable).focus()
        self.set_interval(1.0, self._show_head)
        self._show_rows()

    def on_resize(self, event: Resize) -> None:
        """Fit the columns to the new width of the terminal."""
        # `self.size` is updated only after this event.
        self._width = event.size.width
        self._show_rows()

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the selected row's place, such as the partitions of a topic."""
        if event.cursor_row < len(self._rows):
            self._places.append(place_opened_by(self.place, self._rows[event.cursor_row]))
            self._filter_text = ""
            self._show_rows(is_new_place=True)

    def on_input_changed(self, event: Input.Changed) -> None:
        """Apply the filter while it is typed; Textual calls it for each change."""
        self._filter_text = event.value
        self._show_rows()

    def on_input_submitted(self, _event: Input.Submitted) -> None:
        """Close the filter input, and keep the filter."""
        self._close_filter()

    # -- keys

    def action_view(self, number: int) -> None:
        """Show the view with this index; Textual calls it for a key of the views."""
        self._places = [place_of(VIEWS[number])]
        self._show_rows(is_new_place=True)

    def action_close(self) -> None:
        """Close the help, the filter or the opened place, whichever is on top."""
        if self._is_help_shown():
            self.action_keys()
        elif self.query_one("#filter").has_class("shown"):
            self.query_one("#filter", Input).value = ""
            self._close_filter()
        elif self._filter_text:
            self._filter_text = ""
            self._show_rows()
        elif len(self._places) > 1:
            self._places.pop()
            self._show_rows(is_new_place=True)

    def action_sort(self, step: int) -> None:
        """Sort by the next column (`step` 1) or the previous one (-1)."""
        keys = self.place.view.fields()
        key = keys[(keys.index(self._order().key) + step) % len(keys)]
        self._orders[self.place.view.name] = Order(key, sorts_descending(self.place.view, key))
        self._show_rows()

    def action_reverse(self) -> None:
        """Reverse the sort order of the current view."""
        order = self._order()
        self._orders[self.place.view.name] = Order(order.key, not order.is_descending)
        self._show_rows()

    def action_filter(self) -> None:
        """Open the filter input."""
        filter_input = self.query_one("#filter", Input)
        filter_input.add_class("shown")
        filter_input.value = self._filter_text
        filter_input.focus()

    def action_pause(self) -> None:
        """Pause sampling, or resume it."""
        self._is_paused = not self._is_paused
        self.on_pause(self._is_paused)
        self._show_head()

    def action_keys(self) -> None:
        """Toggle between the key help and the rows."""
        is_shown = self._is_help_shown()
        self.query_one("#help").styles.display = "none" if is_shown else "block"
        self.query_one(DataTable).styles.display = "block" if is_shown else "none"
        if is_shown:
            # Hiding the table has taken the keyboard focus from it.
            self.query_one(DataTable).focus()

    def action_leave(self) -> None:
        """Close the screen."""
        self.exit(exits.OK)

    # -- drawing

    def _is_help_shown(self) -> bool:
        return str(self.query_one("#help").styles.display) == "block"

    def _close_filter(self) -> None:
        """Hide the filter input, and return the focus to the table."""
        self.query_one("#filter").remove_class("shown")
        self.query_one(DataTable).focus()

    def _order(self) -> Order:
        """Return the sort order chosen for the current view, else the view's default."""
        view = self.place.view
        return self._orders.get(view.name, Order(view.sort, view.is_descending))

    def _show_rows(self, *, is_new_place: bool = False) -> None:
        """Draw the last frame's rows, filtered and sorted, and the head lines.

        Nothing is drawn before the widgets exist. At most ROWS_MAX rows are shown.
        """
        if not self._is_composed:
            return
        if self._frame is not None:
            rows = rows_at(self.place, self._frame, self._watch)
            found = filter_and_sort(self.place.view, rows, self._filter_text, self._order())
            self._row_count = len(found)
            self._fill_table(found[:ROWS_MAX], is_new_place=is_new_place)
        self._show_head()

    def _fill_table(self, rows: list[OutputRow], *, is_new_place: bool) -> None:
        """Replace the table's rows; the cursor stays on the row of the same name.

        In a new place it moves to the first row.
        """
        table = self.query_one(DataTable)
        cursor = table.cursor_row
        at = None if is_new_place else self._name_at(cursor)
        self._rows = rows
        columns, widths, texts = fit_cells(self.place.view.columns, rows, self._width)
        table.clear(columns=True)
        sorted_by = self._order().key
        for column, width in zip(columns, widths, strict=True):
            style = "bold underline" if column.key == sorted_by else "bold"
            heading = column.heading.rjust(width) if column.right else column.heading
            gap = GAP if len(table.columns) < len(columns) - 1 else 0
            table.add_column(Text(heading, style), width=width + gap)
        for line in texts:
            table.add_row(
                *(
                    _cell(text, width, is_right=column.right)
                    for text, width, column in zip(line, widths, columns, strict=True)
                )
            )
        names = [self._name_of(row) for row in rows]
        row_number = names.index(at) if at in names else min(cursor, len(rows) - 1)
        table.move_cursor(row=0 if is_new_place else max(row_number, 0), animate=False)

    def _name_at(self, number: int) -> tuple[object, ...] | None:
        """Return the identity of the row at this index, None if there is no such row."""
        return self._name_of(self._rows[number]) if 0 <= number < len(self._rows) else None

    def _name_of(self, row: OutputRow) -> tuple[object, ...]:
        """Return the identity of a row, by which the cursor finds it after a refresh."""
        keys = ("topic", "partition", "group", "broker_id")
        return tuple(row.get(key) for key in keys)

    def _show_head(self) -> None:
        """Draw the lines above the table; errors and the current view are highlighted.

        Called every second, too, as the age of the values is one of them.
        """
        shown = Shown(
            self.place,
            self._order(),
            self._filter_text,
            self._row_count,
            self._is_paused,
            None if self._error is None else str(self._error),
        )
        lines = head_lines(self._frame, shown, self._clock.wall_ms())
        head = Text("\n".join(lines))
        head.highlight_regex(r"(?m)^.*no answer.*$", "bold red")
        head.highlight_regex(r"\[\d \w+\]", "reverse")
        # The timer may fire while the screen is closing and its widgets are removed.
        for widget in self.query("#head").results(Static):
            widget.update(head)


def _cell(text: str, width: int, *, is_right: bool) -> Text:
    """Return a table cell, red for a bad verdict."""
    padded = text.rjust(width) if is_right else text
    return Text(padded, "bold red" if text in _BAD else "")


def run_screen(client: KafkaClient, request: TopRequest, every_ms: int) -> int:
    """Show the screen of `kctl top` until it is closed; returns the exit code.

    Raises an unexpected exception of a sample.
    """
    app = TopApp(request, client.clock)
    samples = SamplingThread(
        client,
        every_ms,
        with_groups=request.has_groups,
        on_sample=lambda timed: app.call_from_thread(app.take, timed),
        on_error=lambda error: app.call_from_thread(app.on_sample_error, error),
    )
    app.on_pause = lambda is_paused: samples.set_paused(is_paused=is_paused)
    app.call_later(samples.start)
    try:
        code = app.run(mouse=False)
    finally:
        samples.stop()
    if app.fault is not None:
        raise app.fault
    return exits.OK if code is None else code
