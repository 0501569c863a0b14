"""A cluster that is made up, for the pictures of screens with rates: the same at every run.

Four brokers, the fourth of which is new and has little; one partition lacks a replica, the group
`billing` falls behind, and retention deletes from all topics but one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.client.findings import WARNING, HealthFinding
from engine.client.groups import CommitView, GroupDescription, GroupListing, MemberView
from engine.client.metadata import BrokerView, ClusterView, PartitionView, TopicView
from engine.client.settings import Address
from engine.exporter.cluster_sample import ClusterSample, GroupSample
from engine.forecast.log_history import LogHistory
from engine.forecast.retention_forecast import RetentionForecast, forecast_retention
from engine.forecast.topic_settings import log_config
from engine.log.log_config import LogConfig
from engine.log.retention import SegmentFacts
from engine.model import TopicPartition
from engine.report.gathering import Gathered
from engine.watching.timed_sample import TimedSample
from tests.unit.watching.samples import log_dir

SAMPLED_MS: Final = 1_767_225_600_000
INTERVAL_MS: Final = 15_000
_HOUR_MS: Final = 3_600_000
_MIB: Final = 1 << 20
_DISK_BYTES: Final = 200 << 30
_SEGMENT_COUNT: Final = 14
_LACKING: Final = TopicPartition("orders", 1)


class _Topic(NamedTuple):
    """What each of a topic's partitions has, and is written."""

    replicas: tuple[tuple[int, ...], ...]
    size_mib: int
    bytes_per_s: int
    records_per_s: int
    retention_hours: int | None


class _Reading(NamedTuple):
    """A group that reads all of a topic: its lag by partition, and the records that it reads."""

    topic: str
    lag: int
    records_per_s: int


_TOPICS: Final = {
    "clicks": _Topic(
        ((1, 2, 3), (2, 3, 1), (3, 1, 2), (1, 3, 2), (2, 1, 3), (3, 2, 1)), 2400, 412_000, 1650, 12
    ),
    "orders": _Topic(((1, 2, 3), (2, 3, 1), (3, 1, 2)), 1900, 96_000, 240, 13),
    "payments": _Topic(((4, 1, 2), (1, 4, 3)), 350, 21_000, 60, 8),
    "sessions": _Topic(((2, 4), (3, 1)), 180, 4_000, 35, None),
}
_GROUPS: Final = {
    "billing": _Reading("orders", 18_400, 190),
    "dashboards": _Reading("clicks", 2_900, 1650),
    "fraud-scores": _Reading("payments", 1_350, 60),
}


def samples() -> tuple[TimedSample, TimedSample]:
    """Return two samples of the cluster, an interval apart."""
    return _sample(0), _sample(INTERVAL_MS)


def gathered() -> Gathered:
    """Return what a report of the cluster is made of."""
    configs = {name: _config(topic) for name, topic in _TOPICS.items() if topic.retention_hours}
    forecasts = {
        key: _forecast(key, _TOPICS[key.topic], configs[key.topic])
        for key in _sizes(INTERVAL_MS)
        if key.topic in configs
    }
    lacking = HealthFinding(
        WARNING, "under-replicated", str(_LACKING), "replica 1 is out of the in-sync set", _LACKING
    )
    return Gathered(samples(), [lacking], {}, {}, configs, forecasts, [], [])


def _sample(at_ms: int) -> TimedSample:
    sizes, ends = _sizes(at_ms), _ends(at_ms)
    view = _view()
    held: dict[int, dict[TopicPartition, int]] = {id_: {} for id_ in view.brokers}
    for key, size_bytes in sizes.items():
        for id_ in _TOPICS[key.topic].replicas[key.partition]:
            held[id_][key] = size_bytes
    found = ClusterSample(
        view,
        {id_: [log_dir(logs, _DISK_BYTES - sum(logs.values()))] for id_, logs in held.items()},
        dict.fromkeys(ends, 0),
        ends,
        {},
        tuple(_group(name, reading, at_ms) for name, reading in _GROUPS.items()),
        {},
        (),
        frozenset(),
        {},
    )
    return TimedSample(found, at_ms, SAMPLED_MS + at_ms)


def _view() -> ClusterView:
    brokers = {
        id_: BrokerView(id_, Address(f"kafka-{id_}", 9092), rack)
        for id_, rack in enumerate("abca", 1)
    }
    topics = {
        name: TopicView(
            name,
            name.encode().ljust(16, b"."),
            False,
            tuple(_row(TopicPartition(name, at), ids) for at, ids in enumerate(topic.replicas)),
        )
        for name, topic in _TOPICS.items()
    }
    return ClusterView("Zq3vT0kXQ5eWmN7bJ2hRcA", 1, brokers, topics)


def _row(key: TopicPartition, replicas: tuple[int, ...]) -> PartitionView:
    isr = replicas[:-1] if key == _LACKING else replicas
    return PartitionView(key.partition, replicas[0], 0, replicas, isr, ())


def _sizes(at_ms: int) -> dict[TopicPartition, int]:
    return {
        TopicPartition(name, number): topic.size_mib * _MIB + topic.bytes_per_s * at_ms // 1000
        for name, topic in _TOPICS.items()
        for number in range(len(topic.replicas))
    }


def _ends(at_ms: int) -> dict[TopicPartition, int]:
    return {
        key: 1_000_000 + _TOPICS[key.topic].records_per_s * at_ms // 1000 for key in _sizes(at_ms)
    }


def _group(name: str, reading: _Reading, at_ms: int) -> GroupSample:
    """Return a group with a member that has all partitions."""
    keys = tuple(key for key in _ends(0) if key.topic == reading.topic)
    at = 1_000_000 - reading.lag + reading.records_per_s * at_ms // 1000
    member = MemberView(f"{name}-1", None, name, "/10.0.0.7", keys)
    description = GroupDescription(name, "Stable", "consumer", "range", (member,))
    listing = GroupListing(name, "consumer", "Stable", "classic", 1)
    return GroupSample(listing, description, {key: CommitView(at, -1, "") for key in keys})


def _config(topic: _Topic) -> LogConfig:
    assert topic.retention_hours is not None
    return log_config({"retention.ms": str(topic.retention_hours * _HOUR_MS)})


def _forecast(key: TopicPartition, topic: _Topic, config: LogConfig) -> RetentionForecast:
    """Return the forecast of a log with a segment of each hour, all as large."""
    now_ms = SAMPLED_MS + INTERVAL_MS
    segments = [
        SegmentFacts(
            number,
            number + 1,
            topic.size_mib * _MIB // _SEGMENT_COUNT,
            now_ms - (_SEGMENT_COUNT - 1 - number) * _HOUR_MS,
            number == _SEGMENT_COUNT - 1,
        )
        for number in range(_SEGMENT_COUNT)
    ]
    log = LogHistory(key, segments, 0, _SEGMENT_COUNT, now_ms - _SEGMENT_COUNT * _HOUR_MS)
    return forecast_retention(log, config, now_ms)
