"""Implementation of `kctl retention plan`: read logs, forecast, print rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from engine.errors import EngineError
from engine.forecast.directory_history import read_histories
from engine.forecast.log_history import LogHistory
from engine.forecast.retention_advice import TopicAdvice, advise
from engine.forecast.retention_forecast import RetentionForecast, forecast_retention
from engine.forecast.topic_settings import log_config
from engine.host.real import RealClock, RealFiles
from engine.log.directory.log_dir import find_log_dir
from engine.log.log_config import LogConfig
from kctl import exits
from kctl.arguments import counted
from kctl.command_results import end_with
from kctl.commands.retention.settings import TopicNotInDirs, parse_overrides
from kctl.connect import ClusterOptions, connect
from kctl.console import notify, report_error
from kctl.iso_times import iso_time, parse_time_ms
from kctl.render import Column, check_format
from kctl.render.bars import bar
from kctl.render.rows import OutputRow
from kctl.render.table import size_text
from kctl.selection import matching_topics, name_matcher
from kctl.sizes import parse_bytes

_DAY_S = 86_400
_BAR_CELLS = 24
_SUMMED = (
    *("segments", "size_bytes", "freed_segments", "freed_bytes", "freed_least_bytes"),
    *("freed_most_bytes", "left_bytes", "bytes_per_day", "steady_bytes"),
)

_FORECAST: tuple[Column, ...] = (
    Column("segments", "SEGMENTS", right=True, kind="integer?"),
    Column("size_bytes", "SIZE", right=True, is_size=True),
    Column("freed_segments", "FREED-SEGMENTS", right=True, wide=True, kind="integer?"),
    Column("freed_bytes", "FREED", right=True, is_size=True),
    Column("freed_least_bytes", "AT-LEAST", right=True, wide=True, is_size=True),
    Column("freed_most_bytes", "AT-MOST", right=True, wide=True, is_size=True),
    Column("left_bytes", "LEFT", right=True, is_size=True),
    Column("reasons", "BY", kind="string[]"),
    Column("next_at_ms", "NEXT", is_time=True, kind="integer?"),
    Column("next_bytes", "THEN", right=True, is_size=True, kind="integer?"),
    Column("bytes_per_day", "A-DAY", right=True, is_size=True, kind="integer?"),
    Column("steady_bytes", "IN-THE-END", right=True, is_size=True, kind="integer?"),
    Column("is_estimated", "ESTIMATED", wide=True, kind="boolean"),
)
PLAN_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    *_FORECAST,
)
TOPIC_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partitions", "PARTITIONS", right=True),
    *_FORECAST,
)
CHART_COLUMN = Column("chart", "GOES OF WHAT IS THERE", is_optional=True)
UPCOMING_COLUMNS = (
    Column("at_ms", "AT", is_time=True),
    Column("topic", "TOPIC", is_name=True),
    Column("partition", "PARTITION", right=True),
    Column("segments", "SEGMENTS", right=True),
    Column("freed_bytes", "FREED", right=True, is_size=True),
    Column("left_bytes", "LEFT", right=True, is_size=True),
)
ADVICE_COLUMNS = (
    Column("topic", "TOPIC", is_name=True),
    Column("partitions", "PARTITIONS", right=True),
    Column("size_bytes", "SIZE", right=True, is_size=True),
    Column("bytes_per_day", "A-DAY", right=True, is_size=True, kind="integer?"),
    Column("budget_bytes", "BUDGET", right=True, is_size=True),
    Column("retention_ms", "RETENTION.MS", right=True, kind="integer?"),
    Column("retention_bytes", "RETENTION.BYTES", right=True),
    Column("segment_bytes", "SEGMENT.BYTES", right=True),
    Column("freed_bytes", "FREED", right=True, is_size=True),
    Column("steady_bytes", "IN-THE-END", right=True, is_size=True),
)


class PlanRequest(NamedTuple):
    """The options of `kctl retention plan`."""

    topics: list[str]
    match: str | None
    dirs: list[str]
    settings: list[str]
    at: str
    upcoming: bool
    by_topic: bool
    chart: bool
    advise: str | None
    output: str


class MixedRowKinds(EngineError):
    """Options request different kinds of rows at once."""

    exit_code = exits.USAGE
    hint = "ask for one after the other"

    def __init__(self, options: Sequence[str]) -> None:
        self.options = options
        super().__init__(f"{' and '.join(options)} do not go together")


class _Seen(NamedTuple):
    """Logs by topic, the topics' settings, and the number of logs that failed."""

    topics: dict[str, list[LogHistory]]
    configs: dict[str, LogConfig]
    failures: int


def show_plan(options: ClusterOptions, request: PlanRequest) -> int:
    """Print what retention deletes now and later, of a cluster or of directories (`--dir`).

    With --advise, settings for a budget of bytes are printed instead. Returns the exit code.
    Errors: MixedRowKinds, those of options and requests.
    """
    check_format(request.output)
    _check_rows(request)
    overrides = parse_overrides(request.settings)
    now_ms = parse_time_ms(request.at, RealClock().wall_ms())
    seen = (
        _read_dirs(request, overrides)
        if request.dirs
        else _request_cluster(options, request, overrides, now_ms)
    )
    if request.advise is not None:
        budget = parse_bytes(request.advise)
        advice = advise(seen.topics, seen.configs, budget, now_ms) if seen.topics else []
        return _print_advice(advice, request, seen.failures)
    forecasts = [
        forecast_retention(log, seen.configs[topic], now_ms)
        for topic, logs in sorted(seen.topics.items())
        for log in logs
    ]
    _print_sum(forecasts)
    _print_compacted(seen.configs)
    if request.upcoming:
        rows = sorted(
            (row for forecast in forecasts for row in _deletion_rows(forecast)),
            key=lambda row: (row["at_ms"], row["topic"], row["partition"]),
        )
        return end_with(UPCOMING_COLUMNS, rows, request.output, failures=seen.failures)
    rows = _topic_rows(forecasts) if request.by_topic else [_forecast_row(f) for f in forecasts]
    columns = TOPIC_COLUMNS if request.by_topic else PLAN_COLUMNS
    if request.chart:
        columns = (*columns, CHART_COLUMN)
        largest = max((row["size_bytes"] for row in rows), default=0)
        for row in rows:
            row["chart"] = bar(row["freed_bytes"], row["size_bytes"], largest, _BAR_CELLS)
    return end_with(columns, rows, request.output, failures=seen.failures)


def _check_rows(request: PlanRequest) -> None:
    """Raise MixedRowKinds if options request several kinds of rows."""
    kinds = {
        "--advise": request.advise is not None,
        "--upcoming": request.upcoming,
        "--by-topic or --chart": request.by_topic or request.chart,
    }
    requested = [name for name, is_requested in kinds.items() if is_requested]
    if len(requested) > 1:
        raise MixedRowKinds(requested)


def _read_dirs(request: PlanRequest, overrides: Mapping[str, str]) -> _Seen:
    """Read the selected logs of the `--dir` directories.

    Their settings are Kafka's defaults, overridden by --set. Errors of directories and missing
    topics are printed and counted.
    """
    files = RealFiles()
    matcher = None if request.match is None else name_matcher(request.match)
    wanted = set(request.topics)
    topics: dict[str, list[LogHistory]] = {}
    failures = 0
    for path in request.dirs:
        try:
            for log in read_histories(files, find_log_dir(files, path)):
                topic = log.topic_partition.topic
                is_all = not wanted and matcher is None
                if is_all or topic in wanted or (matcher is not None and matcher.fullmatch(topic)):
                    topics.setdefault(topic, []).append(log)
        except EngineError as error:
            report_error(error, path)
            failures += 1
    for topic in sorted(wanted - set(topics)):
        report_error(TopicNotInDirs(topic))
        failures += 1
    for logs in topics.values():
        logs.sort(key=lambda log: log.topic_partition)
    config = log_config(overrides)
    notify(
        "settings are Kafka's defaults but for --set: log directories do not have those of topics"
    )
    return _Seen(topics, dict.fromkeys(topics, config), failures)


def _request_cluster(
    options: ClusterOptions, request: PlanRequest, overrides: Mapping[str, str], now_ms: int
) -> _Seen:
    """Request the selected topics' settings, and sizes and ages of their logs.

    Segments are estimated, but exact for an embedded cluster of this machine. Errors of topics and
    partitions are printed and counted.
    """
    from engine.client.config_admin import ConfigResourceType, Resource, describe_configs
    from engine.forecast.cluster_history import request_histories
    from engine.forecast.local_history import read_local_histories
    from kctl.run_location import find_embedded_cluster

    with connect(options) as client:
        names = matching_topics(client, request.topics, request.match)
        resources = [Resource(ConfigResourceType.TOPIC, name) for name in names]
        configs: dict[str, LogConfig] = {}
        failures = 0
        for resource, entries in describe_configs(client, resources).items():
            if isinstance(entries, EngineError):
                report_error(entries, resource.name)
                failures += 1
                continue
            own_values = {entry.name: entry.value for entry in entries if entry.value is not None}
            configs[resource.name] = log_config({**own_values, **overrides})
        cuts = [now_ms - config.retention_ms for config in configs.values()]
        topics: dict[str, list[LogHistory]] = {}
        found = request_histories(client, list(configs), set(cuts)) if configs else {}
        if configs and find_embedded_cluster(client) is not None:
            found |= read_local_histories(client, RealFiles(), list(configs))
        for key, log in found.items():
            if isinstance(log, EngineError):
                report_error(log, str(key))
                failures += 1
            else:
                topics.setdefault(key.topic, []).append(log)
    return _Seen(topics, configs, failures)


def _print_sum(forecasts: Sequence[RetentionForecast]) -> None:
    """Print the bytes that retention deletes now, and warn of records with future timestamps.

    A record of the future keeps its segment and all after it until then.
    """
    freed = sum(forecast.freed_bytes for forecast in forecasts)
    size = sum(forecast.size_bytes for forecast in forecasts)
    least = sum(forecast.freed_least_bytes for forecast in forecasts)
    most = sum(forecast.freed_most_bytes for forecast in forecasts)
    share = f" ({freed * 100 / size:.1f} %)" if size else ""
    logs = counted(len(forecasts), "partition")
    gone = f"{size_text(freed)} of {size_text(size)}{share}"
    if least != most:
        # Only complete segments are deleted, but segment boundaries are not known.
        gone = f"{size_text(least)} to {size_text(most)} of {size_text(size)}"
    notify(f"{gone} go now, of {logs}")
    for forecast in forecasts:
        if forecast.future_ms is not None:
            dated = f"{forecast.topic_partition}: a record is dated {iso_time(forecast.future_ms)}"
            notify(f"warning: {dated}, in the future: its segment and all after it stay until then")


def _print_compacted(configs: Mapping[str, LogConfig]) -> None:
    """Print how many topics are compacted: the plan does not include what cleaning frees."""
    count = sum(config.is_compacted for config in configs.values())
    if count:
        verb = "is" if count == 1 else "are"
        topics = counted(count, "topic")
        notify(f"{topics} {verb} compacted: `kctl compact plan --exact` shows what that frees")


def _forecast_row(forecast: RetentionForecast) -> OutputRow:
    """Return the row of a partition's forecast; segment counts are None if it is estimated."""
    following = forecast.later[0] if forecast.later else None
    rate = forecast.bytes_per_s
    return {
        **forecast.topic_partition._asdict(),
        "segments": None if forecast.is_estimated else forecast.segment_count,
        "size_bytes": forecast.size_bytes,
        "freed_segments": None if forecast.is_estimated else forecast.freed_segments,
        "freed_bytes": forecast.freed_bytes,
        "freed_least_bytes": forecast.freed_least_bytes,
        "freed_most_bytes": forecast.freed_most_bytes,
        "left_bytes": forecast.left_bytes,
        "reasons": [reason.value for reason in forecast.freed],
        "next_at_ms": None if following is None else following.when_ms,
        "next_bytes": None if following is None else following.size_bytes,
        "bytes_per_day": None if rate is None else round(rate * _DAY_S),
        "steady_bytes": forecast.steady_bytes,
        "is_estimated": forecast.is_estimated,
    }


def _topic_rows(forecasts: Iterable[RetentionForecast]) -> list[OutputRow]:
    """Return a row for each topic: sums over its partitions, and the earliest next deletion."""
    rows: dict[str, OutputRow] = {}
    for forecast in forecasts:
        row = _forecast_row(forecast)
        del row["partition"]
        known = rows.get(row["topic"])
        if known is None:
            rows[row["topic"]] = {"partitions": 1, **row}
            continue
        known["partitions"] += 1
        for key in _SUMMED:
            known[key] = _sum(known[key], row[key])
        known["reasons"] = sorted({*known["reasons"], *row["reasons"]})
        times = [at for at in (known["next_at_ms"], row["next_at_ms"]) if at is not None]
        if times and min(times) != known["next_at_ms"]:
            known["next_at_ms"], known["next_bytes"] = row["next_at_ms"], row["next_bytes"]
    return list(rows.values())


def _sum(left: int | None, right: int | None) -> int | None:
    """Return the sum, None (unknown) if either number is None."""
    return None if left is None or right is None else left + right


def _deletion_rows(forecast: RetentionForecast) -> Iterable[OutputRow]:
    """Yield a row for each later deletion in a partition, with the bytes left after it."""
    left = forecast.left_bytes
    for deletion in forecast.later:
        left -= deletion.size_bytes
        yield {
            "at_ms": deletion.when_ms,
            **forecast.topic_partition._asdict(),
            "segments": deletion.segment_count,
            "freed_bytes": deletion.size_bytes,
            "left_bytes": left,
        }


def _print_advice(advice: Sequence[TopicAdvice], request: PlanRequest, failures: int) -> int:
    """Print each topic's advised settings and the command to set them; returns the exit code."""
    rows = [
        {
            "topic": row.topic,
            "partitions": row.partition_count,
            "size_bytes": row.size_bytes,
            "bytes_per_day": None if row.bytes_per_s is None else round(row.bytes_per_s * _DAY_S),
            "budget_bytes": row.budget_bytes,
            "retention_ms": row.retention_ms,
            "retention_bytes": row.retention_bytes,
            "segment_bytes": row.segment_bytes,
            "freed_bytes": row.freed_bytes,
            "steady_bytes": row.steady_bytes,
        }
        for row in advice
    ]
    code = end_with(ADVICE_COLUMNS, rows, request.output, failures=failures)
    for row in advice:
        settings_text = " ".join(f"{key}={value}" for key, value in row.settings().items())
        notify(f"kctl configs set --topic {row.topic} {settings_text}")
    if any(row.retention_ms is None for row in advice):
        notify("note: where growth is not known, the budget is shared evenly and by bytes alone")
    return code
