"""Estimate the history of a live cluster's logs from what brokers return.

No request returns where segments begin. So a log is divided at points in time, evenly from its
oldest to its newest record, and the offsets at these times give the size of each part. Brokers
delete whole segments: up to a segment's bytes may stay longer than estimated.

| what | request |
|---|---|
| bytes | DescribeLogDirs, of the leader's replica |
| offsets at times | ListOffsets |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.cluster_admin import LogDirView, describe_log_dirs
from engine.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, FoundOffset, list_offsets
from engine.errors import EngineError
from engine.forecast.log_history import LogHistory
from engine.log.retention import SegmentFacts
from engine.model import TopicPartition

#: Number of parts that a log is divided into.
_PARTS: Final = 24

Histories = dict[TopicPartition, LogHistory | EngineError]


def request_histories(
    client: KafkaClient, topics: Sequence[str], cuts_ms: Iterable[int] = ()
) -> Histories:
    """Return each partition's log as estimated segments, or the error of its requests.

    No request returns real segments. They are estimated from the log's size and its offsets at
    times that divide it evenly from the oldest record to the newest, and at `cuts_ms`: times (ms
    since 1970) at which the caller wants the size, such as the one before which retention deletes.
    """
    view = client.view_of_existing(topics)
    keys = [
        TopicPartition(topic.name, partition.partition)
        for topic in view.topics.values()
        for partition in topic.partitions
    ]
    sizes, failures = _request_sizes(client, keys)
    requested = [key for key in keys if key not in failures]
    bounds: dict[int, dict[TopicPartition, FoundOffset]] = {}
    # The first offset with a timestamp of at least 0 is that of the oldest record with a time.
    for what in (EARLIEST, LATEST, 0, MAX_TIMESTAMP):
        bounds[what] = _request_offsets(client, dict.fromkeys(requested, what), failures)
        requested = [key for key in requested if key not in failures]
    times = {
        key: _division_times(
            bounds[0][key].timestamp_ms,
            bounds[MAX_TIMESTAMP][key].timestamp_ms,
            cuts_ms,
            client.clock.wall_ms(),
        )
        for key in requested
    }
    cuts: dict[TopicPartition, list[tuple[int, int]]] = {key: [] for key in requested}
    for number in range(max(map(len, times.values()), default=0)):
        at = {key: listed[number] for key, listed in times.items() if number < len(listed)}
        for key, place in _request_offsets(client, at, failures).items():
            cuts[key].append((at[key], place.offset))
    histories: Histories = dict(failures)
    for key in requested:
        if key not in failures:
            first, last = bounds[EARLIEST][key].offset, bounds[LATEST][key].offset
            newest_ms = bounds[MAX_TIMESTAMP][key].timestamp_ms
            oldest_ms = bounds[0][key].timestamp_ms
            segments = _estimated_parts(sizes[key], first, last, cuts[key], newest_ms)
            histories[key] = LogHistory(
                key,
                segments,
                first,
                last,
                oldest_ms if oldest_ms >= 0 else None,
                is_estimated=True,
            )
    return {key: histories[key] for key in keys}


class LogExtent(NamedTuple):
    """The start, end (exclusive) and size of a log on the leader."""

    start_offset: int
    end_offset: int
    size_bytes: int


def request_log_extents(client: KafkaClient) -> dict[TopicPartition, LogExtent]:
    """Return the start, end and size of all partitions whose leaders respond."""
    keys = [
        TopicPartition(topic.name, partition.partition)
        for topic in client.view(None).topics.values()
        for partition in topic.partitions
    ]
    sizes, failures = _request_sizes(client, keys)
    starts = _request_offsets(client, dict.fromkeys(keys, EARLIEST), failures)
    ends = _request_offsets(client, dict.fromkeys(keys, LATEST), failures)
    return {
        key: LogExtent(starts[key].offset, ends[key].offset, sizes[key])
        for key in keys
        if key not in failures
    }


def _request_sizes(
    client: KafkaClient, keys: Sequence[TopicPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, EngineError]]:
    """Return the size of each partition on its leader, 0 if unknown, and the brokers' errors."""
    view = client.view({key.topic for key in keys})
    leaders = {key: p.leader for key in keys if (p := view.partition(key)) and p.has_leader}
    topics = sorted({key.topic for key in keys})
    log_dirs = describe_log_dirs(client, set(leaders.values()), topics)
    sizes, failures = leaders_sizes(leaders, log_dirs)
    return dict.fromkeys(keys, 0) | sizes, failures


def leaders_sizes(
    leaders: Mapping[TopicPartition, int],
    log_dirs: Mapping[int, Sequence[LogDirView] | EngineError],
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, EngineError]]:
    """Return the size of each partition on its leader, and the errors of those without one.

    The future replica of a move between directories does not count.
    """
    sizes: dict[TopicPartition, int] = {}
    failures: dict[TopicPartition, EngineError] = {}
    for broker_id, dirs in log_dirs.items():
        if isinstance(dirs, EngineError):
            failures |= {key: dirs for key, leader in leaders.items() if leader == broker_id}
            continue
        for replica in (replica for log_dir in dirs for replica in log_dir.replicas):
            if leaders.get(replica.partition) == broker_id and not replica.is_future:
                sizes[replica.partition] = replica.size_bytes
    return sizes, failures


def _request_offsets(
    client: KafkaClient,
    times: dict[TopicPartition, int],
    failures: dict[TopicPartition, EngineError],
) -> dict[TopicPartition, FoundOffset]:
    """Return the partitions' offsets at `times`; errors of partitions are added to `failures`."""
    found = {}
    for key, place in (list_offsets(client, times) if times else {}).items():
        if isinstance(place, EngineError):
            failures[key] = place
        else:
            found[key] = place
    return found


def _division_times(
    oldest_ms: int, newest_ms: int, cuts_ms: Iterable[int], now_ms: int | None = None
) -> list[int]:
    """Return the times at which a log is divided into parts, the earliest first.

    The span up to now is divided, too: otherwise a single record with a future timestamp would
    leave all others in one part.
    """
    if oldest_ms < 0 or newest_ms <= oldest_ms:
        return []
    ends_ms = {newest_ms, newest_ms if now_ms is None else min(newest_ms, max(now_ms, oldest_ms))}
    even = {
        oldest_ms + (end_ms - oldest_ms) * part // _PARTS
        for end_ms in ends_ms
        for part in range(1, _PARTS)
    } - {oldest_ms}
    return sorted(even | {cut for cut in cuts_ms if oldest_ms < cut <= newest_ms})


def _estimated_parts(
    size_bytes: int, first: int, last: int, cuts: Sequence[tuple[int, int]], newest_ms: int
) -> list[SegmentFacts]:
    """Return the parts of a log as segments, assuming that all records have the same size.

    `cuts` are times with the offsets of the first later records.
    """
    parts: list[SegmentFacts] = []
    base, given = first, 0
    # Records of a part are older than its cut; the last part ends with the newest record.
    for at_ms, end in [*((at - 1, end) for at, end in cuts if end < last), (newest_ms, last)]:
        # Large parts are divided evenly, so that retention.bytes is forecast with precision, too.
        step = max(1, (last - first) // _PARTS)
        while base < end:
            offset = min(base + step, end) if end - base > 2 * step else end
            upto = size_bytes * (offset - first) // (last - first)
            parts.append(SegmentFacts(base, offset, upto - given, at_ms, offset == last))
            base, given = offset, upto
    return parts or [SegmentFacts(first, last, size_bytes, newest_ms, True)]
