"""Implementation of `kctl top`: a single frame, or a screen until it is closed."""

from __future__ import annotations

import sys

from engine.client.blocking import KafkaClient
from engine.errors import EngineError
from engine.watching.sampler import Sampler
from engine.watching.watch import Watch
from engine.watching.watch_rows import Frame
from kctl import exits
from kctl.commands.top.top_request import TopRequest
from kctl.commands.top.views import (
    BROKER_COLUMNS,
    GROUP_COLUMNS,
    MOVE_COLUMNS,
    PARTITION_COLUMNS,
    TOPIC_COLUMNS,
    VIEWS,
    View,
    filter_and_sort,
    place_of,
    rows_at,
)
from kctl.connect import ClusterOptions, connect
from kctl.durations import parse_duration_ms
from kctl.render import Column, check_format, write_object, write_rows
from kctl.render.rows import OutputRow

#: Formats with several views; other formats have one.
_SEVERAL = ("table", "wide", "markdown")
FRAME_COLUMNS = (
    Column("sampled_at_ms", "AT", is_time=True),
    Column("cluster_id", "CLUSTER", kind="string?"),
    Column("controller_id", "CONTROLLER", kind="integer?"),
    Column("brokers", "BROKERS", kind="object[]", fields=BROKER_COLUMNS),
    Column("partitions", "PARTITIONS IN TROUBLE", kind="object[]", fields=PARTITION_COLUMNS),
    Column("topics", "TOPICS", kind="object[]", fields=TOPIC_COLUMNS),
    Column("groups", "GROUPS", kind="object[]", fields=GROUP_COLUMNS),
    Column("moves", "MOVES", kind="object[]", fields=MOVE_COLUMNS),
    Column("failures", "NOT ANSWERED", kind="string[]"),
)


class NoTextual(EngineError):
    """The library for the screen is not installed."""

    hint = "pip install 'kctl-kafka[top]', or print one frame with --once"

    def __init__(self) -> None:
        super().__init__("the screen needs the package textual")


def show_top(options: ClusterOptions, request: TopRequest) -> int:
    """Show the screen of `kctl top` until it is closed, or print it once; returns the exit code.

    It is printed once with --once or --output, or if stdout is no terminal. Errors: those of
    options, NoTextual, those of the first request.
    """
    check_format(request.output or "table")
    every_ms = parse_duration_ms(request.every, "--every")
    request.chosen_view()
    request.sort_order()
    if request.is_once or request.output is not None or not _is_terminal():
        with connect(options) as client:
            return _print_once(client, request, every_ms)
    try:
        import textual  # noqa: F401
    except ImportError as error:
        raise NoTextual from error
    client = connect(options)
    # Report errors of address and login before the screen opens.
    client.view([])
    from kctl.commands.top.screen import run_screen

    return run_screen(client, request, every_ms)


def _is_terminal() -> bool:
    """Return True if stdin, stdout and stderr are terminals, as the screen requires."""
    return all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))


def _print_once(client: KafkaClient, request: TopRequest, every_ms: int) -> int:
    """Print one frame of values; returns the exit code.

    Its rates are computed from two samples, taken `every_ms` apart.
    """
    sampler, watch = Sampler(client, every_ms, with_groups=request.has_groups), Watch()
    watch.add_sample(sampler.take_next())
    frame = watch.add_sample(sampler.take_next())
    output = request.output or "table"
    if output in ("json", "yaml"):
        write_object(FRAME_COLUMNS, frame_document(frame, watch, request), output)
    elif output in _SEVERAL and request.view is None:
        _print_views(frame, watch, request, output)
    else:
        view = request.chosen_view()
        write_rows(view.columns, _rows(view, frame, watch, request), output)
    return exits.OK


def _print_views(frame: Frame, watch: Watch, request: TopRequest, output: str) -> None:
    """Print a titled table for each view, and failed requests to stderr."""
    mark = "## " if output == "markdown" else ""
    for view in VIEWS:
        rows = _rows(view, frame, watch, request)
        sys.stdout.write(f"{mark}{place_of(view).title}\n\n")
        if rows:
            write_rows(view.columns, rows, output)
        else:
            sys.stdout.write("none\n")
        sys.stdout.write("\n")
    for failure in frame.failures:
        sys.stderr.write(f"warning: {failure}\n")


def frame_document(frame: Frame, watch: Watch, request: TopRequest) -> OutputRow:
    """Return a frame with all views as one object, rows sorted and filtered."""
    return {
        "sampled_at_ms": frame.sampled_at_ms,
        "cluster_id": frame.cluster_id,
        "controller_id": frame.controller_id,
        **{view.name: _rows(view, frame, watch, request) for view in VIEWS},
        "failures": list(frame.failures),
    }


def _rows(view: View, frame: Frame, watch: Watch, request: TopRequest) -> list[OutputRow]:
    """Return the rows of a view, filtered, and sorted as requested if it is the chosen view."""
    order = request.sort_order() if view is request.chosen_view() else None
    return filter_and_sort(view, rows_at(place_of(view), frame, watch), request.filter_text, order)
