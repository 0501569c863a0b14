"""Implementation of `kctl events`: compare snapshots of a cluster, print rows for differences."""

from __future__ import annotations

from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.errors import EngineError
from engine.exporter.snapshots import take_snapshot
from engine.exporter.view_changes import Change, changes_between, newest_snapshot
from kctl import exits
from kctl.connect import ClusterOptions, connect
from kctl.console import notify
from kctl.durations import parse_duration_ms
from kctl.render import check_format
from kctl.render.columns import Column
from kctl.render.rows import Row, RowWriter

EVENT_COLUMNS = (
    Column("time_ms", "TIME", is_time=True),
    Column("event", "EVENT", is_name=True),
    Column("topic", "TOPIC", kind="string?"),
    Column("partition", "PARTITION", right=True, kind="integer?"),
    Column("broker", "BROKER", right=True, kind="integer?"),
    Column("before", "BEFORE", kind="integer[]"),
    Column("after", "AFTER", kind="integer[]"),
)


class EventsRequest(NamedTuple):
    """The options of `kctl events`."""

    follows: bool
    every: str
    count_max: int | None
    output: str


def show_events(options: ClusterOptions, request: EventsRequest) -> int:
    """Print changes of topics, partitions and brokers as they happen; returns the exit code.

    Ends with Ctrl-C or after the requested number. Errors: those of the first snapshot.
    """
    check_format(request.output)
    every_ms = parse_duration_ms(request.every, "--every", lowest_ms=1_000)
    writer = RowWriter(EVENT_COLUMNS, request.output, is_stream=True)
    timeout_ms = max(round(options.timeout_s * 1000), 1)
    with connect(options) as client:
        try:
            _watch(client, request, writer, every_ms, timeout_ms)
        finally:
            writer.close()
    return exits.OK


def _watch(
    client: KafkaClient, request: EventsRequest, writer: RowWriter, every_ms: int, timeout_ms: int
) -> None:
    """Compare snapshots of the cluster, one each `every_ms`, and write their differences.

    Without --follow it compares two; with it, it continues up to the count, and an error of a
    snapshot is printed, and the next one awaited. Errors: those of snapshots.
    """
    snapshot = take_snapshot(client, timeout_ms)
    is_lost = False
    while True:
        client.connections.pause(every_ms)
        try:
            next_snapshot = newest_snapshot(snapshot, take_snapshot(client, timeout_ms))
        except EngineError as error:
            if not request.follows:
                raise
            if not is_lost:
                notify(f"warning: {error}; looking again")
            is_lost = True
            continue
        if is_lost:
            notify("the cluster answers again; what came and went meanwhile is not seen")
        is_lost = False
        for change in changes_between(snapshot, next_snapshot):
            writer.write(_change_row(change, client.clock.wall_ms()))
            if writer.count == request.count_max:
                return
        writer.flush()
        snapshot = next_snapshot
        if not request.follows:
            return


def _change_row(change: Change, now_ms: int) -> Row:
    """Return the row of a change that was detected at `now_ms` (ms since 1970)."""
    return {
        "time_ms": now_ms,
        "event": change.kind.value,
        "topic": change.topic,
        "partition": change.partition,
        "broker": change.broker_id,
        "before": list(change.before),
        "after": list(change.after),
    }
