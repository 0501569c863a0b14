"""Implementation of `kctl compact plan` on a cluster, from settings, sizes and offsets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from engine.client.batch_reading import StoredBatches, stored_batches
from engine.client.blocking import KafkaClient
from engine.errors import EngineError
from engine.forecast.closed_segments import closed_segments
from engine.forecast.cluster_history import request_histories
from engine.forecast.log_history import LogHistory
from engine.forecast.record_trial import RecordTrial, TrialRange, try_records
from engine.host.real import RealClock
from engine.log.cleaner.cleaning_facts import CleaningSettings
from engine.log.cleaner.compaction_state import LogCompaction
from engine.log.log_config import LogConfig
from engine.model import TopicPartition
from kctl.command_results import end_with
from kctl.commands.compact.on_embedded import read_leaders_logs
from kctl.commands.compact.requests import CompactPlanRequest, KeysExceedMemory
from kctl.commands.compact.rows import Freed, draw_bars, plan_columns, print_sum, with_freed
from kctl.commands.compact.topics import CompactedTopics, find_compacted_topics
from kctl.commands.logs.progress import Progress
from kctl.commands.retention.settings import parse_overrides
from kctl.connect import ClusterOptions, connect
from kctl.console import notify, report_error
from kctl.render import check_format


def print_plan_of_cluster(options: ClusterOptions, request: CompactPlanRequest) -> int:
    """Print how many bytes compaction of a cluster's topics may free; returns the exit code.

    With --exact all records are read, and the bytes it does free are printed.
    """
    check_format(request.output)
    overrides = parse_overrides(request.settings)
    settings = request.cleaning_settings()
    now_ms = RealClock().wall_ms()
    with connect(options) as client:
        chosen = find_compacted_topics(client, request.topics, request.match, overrides)
        # Brokers report by their own settings, which --set overrides.
        logs = _fetch_logs(client, chosen, now_ms, is_reported=not overrides)
        failures = chosen.failures + sum(isinstance(log, EngineError) for log in logs.values())
        for key, log in logs.items():
            if isinstance(log, EngineError):
                report_error(log, str(key))
        known = {key: log for key, log in logs.items() if not isinstance(log, EngineError)}
        if request.exact:
            rows, unread = _rows_of_trials(client, known, settings, now_ms)
            failures += unread
        else:
            rows = [log.plan_row(None) for log in known.values()]
    print_sum(rows, is_exact=request.exact)
    if any(row["is_estimated"] for row in rows):
        notify("estimated: no request returns where segments begin, nor up to where a cleaner was")
    if request.chart:
        draw_bars(rows, is_exact=request.exact)
    columns = plan_columns(is_exact=request.exact, has_chart=request.chart)
    return end_with(columns, rows, request.output, failures=failures)


class _KnownLog(NamedTuple):
    """The estimated history of a log, and its cleaner's state if the leader reports it."""

    history: LogHistory
    config: LogConfig
    state: LogCompaction | None
    now_ms: int

    @property
    def trial_range(self) -> TrialRange:
        """Return the offsets that a cleaning would read: start, first uncleanable offset, end.

        The ends are exclusive. Without a broker's report, closed segments are estimated.
        """
        start, end = self.history.log_start_offset, self.history.high_watermark
        if self.state is not None:
            return TrialRange(start, self.state.first_uncleanable_offset, end)
        part = closed_segments(self.history, self.config, self.now_ms)
        return TrialRange(start, part.first_uncleanable_offset, end)

    def plan_row(self, trial: RecordTrial | None) -> dict[str, object]:
        """Return the partition's row: the broker's report, else an estimate.

        `trial` has the results of reading all records; None without --exact or if that failed.
        """
        if self.state is not None:
            return self._reported_row(self.state)
        part = closed_segments(self.history, self.config, self.now_ms)
        row = {
            **self.history.topic_partition._asdict(),
            "size_bytes": self.history.size_bytes,
            "first_dirty_offset": None,
            "first_uncleanable_offset": part.first_uncleanable_offset,
            "log_end_offset": self.history.high_watermark,
            "cleanable_bytes": part.size_bytes,
            "dirty_ratio": None,
            "is_due": None,
            "waits_for": None if part.waits_for is None else part.waits_for.value,
            "is_estimated": True,
        }
        if trial is not None:
            ratio = round(trial.dirty_ratio, 4)
            row |= {
                "first_dirty_offset": trial.first_dirty_offset,
                "first_uncleanable_offset": max(
                    part.first_uncleanable_offset, trial.first_dirty_offset
                ),
                "cleanable_bytes": trial.dirty_bytes,
                "dirty_ratio": ratio,
                "is_due": trial.read_bytes > 0 and ratio > self.config.min_cleanable_dirty_ratio,
            }
        return row

    def _reported_row(self, state: LogCompaction) -> dict[str, object]:
        """Return the row of a partition whose broker reports the state of its cleaner."""
        return {
            **self.history.topic_partition._asdict(),
            "size_bytes": state.size_bytes,
            "first_dirty_offset": state.first_dirty_offset,
            "first_uncleanable_offset": state.first_uncleanable_offset,
            "log_end_offset": state.log_end_offset,
            "cleanable_bytes": state.cleanable_bytes,
            "dirty_ratio": round(state.dirty_ratio, 4),
            "is_due": state.is_due,
            "waits_for": None if state.waits_for is None else state.waits_for.value,
            "is_estimated": False,
        }


def _fetch_logs(
    client: KafkaClient, chosen: CompactedTopics, now_ms: int, *, is_reported: bool
) -> dict[TopicPartition, _KnownLog | EngineError]:
    """Fetch the offsets and sizes of each partition's log over time, or the error.

    With `is_reported`, also the cleaners' state, which only embedded clusters report.
    """
    if not chosen.configs:
        return {}
    # Times at which segments end or records become old enough to be compacted.
    cuts = {
        now_ms - lag_ms
        for config in chosen.configs.values()
        for lag_ms in (config.segment_ms, config.min_compaction_lag_ms)
    }
    histories = request_histories(client, list(chosen.configs), cuts)
    states = read_leaders_logs(client) if is_reported else {}
    logs: dict[TopicPartition, _KnownLog | EngineError] = {}
    for key, log in sorted(histories.items()):
        if isinstance(log, EngineError):
            logs[key] = log
        else:
            logs[key] = _KnownLog(log, chosen.configs[key.topic], states.get(key), now_ms)
    return logs


def _rows_of_trials(
    client: KafkaClient,
    logs: dict[TopicPartition, _KnownLog],
    settings: CleaningSettings,
    now_ms: int,
) -> tuple[list[dict[str, object]], int]:
    """Read all records, apply the cleaner's rules, and return a row for each partition.

    The second result is the number of partitions with an incomplete result, whose errors are
    printed.
    """
    rows, failures = [], 0
    # All records are read twice: for the keys, then for the result.
    total = 2 * sum(log.history.size_bytes for log in logs.values())
    with Progress(total, "reading") as progress:
        for key, log in logs.items():
            read = partial(_read, client, key, progress)
            try:
                trial = try_records(read, log.trial_range, log.config, settings, now_ms)
            except EngineError as error:
                progress.clear()
                report_error(error, str(key))
                failures += 1
                rows.append(with_freed(log.plan_row(None), Freed()))
                continue
            if trial.mapped_offset < log.trial_range.first_uncleanable_offset:
                progress.clear()
                report_error(KeysExceedMemory(str(key), trial.mapped_offset))
                failures += 1
            freed = Freed(
                trial.read_bytes - trial.kept_bytes, trial.read_records - trial.kept_records
            )
            rows.append(with_freed(log.plan_row(trial), freed))
    return rows, failures


def _read(
    client: KafkaClient, key: TopicPartition, progress: Progress, start: int, end: int
) -> Iterator[StoredBatches]:
    """Yield the batches of the offsets [start, end), advancing the progress bar."""
    for stored in stored_batches(client, key, start, end):
        progress.advance(sum(batch.size_bytes for batch in stored.batches))
        yield stored
