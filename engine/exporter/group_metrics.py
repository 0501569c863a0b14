"""Metrics of consumer groups: states, members, commits, lag in records and in seconds.

Source: the names and labels of KMinion 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.exporter.cluster_sample import ClusterSample, GroupSample
from engine.exporter.lag_times import EndHistory
from engine.exporter.metric_family import MetricFamily
from engine.model import TopicPartition

_PREFIX = "kminion_kafka_consumer_group"
_GROUP = ("group_id",)
_GROUP_TOPIC = ("group_id", "topic_name")
_GROUP_PARTITION = ("group_id", "topic_name", "partition_id")
_STABLE = "Stable"

_Rows = list[tuple[tuple[str, ...], float]]


def group_metrics(
    sample: ClusterSample, history: EndHistory, now_ms: int
) -> Iterator[MetricFamily]:
    """Yield the metric families of all groups; lag only for partitions whose end is known.

    `history` has the end offsets of earlier scrapes, for lag in seconds at the monotonic `now_ms`.
    """
    yield from _member_families(sample)
    yield from _lag_families(sample)
    rows: _Rows = []
    for group in sample.groups:
        for key, commit in sorted(group.commits.items()):
            if key in sample.high_watermarks:
                lag_s = history.lag_s(key, commit.offset, now_ms)
                if lag_s is not None:
                    rows.append((_labels(group, key), lag_s))
    name = "kctl_kafka_consumer_group_topic_partition_lag_seconds"
    text = "For how long the first record that is not read is there, at least since the start."
    yield MetricFamily(name, text, _GROUP_PARTITION, rows)


def _labels(group: GroupSample, key: TopicPartition) -> tuple[str, str, str]:
    """Return the labels of a group's partition: group id, topic and partition number."""
    return group.listing.group_id, key.topic, str(key.partition)


def _member_families(sample: ClusterSample) -> Iterator[MetricFamily]:
    """Yield states, members and assigned partitions of the groups that were described."""
    infos: _Rows = []
    members: _Rows = []
    idle: _Rows = []
    by_topic: dict[tuple[str, str], int] = {}
    assigned: dict[tuple[str, str], int] = {}
    for group in sample.groups:
        infos.append(_info_row(group))
        if group.description is None:
            continue
        group_id, all_members = group.listing.group_id, group.description.members
        members.append(((group_id,), float(len(all_members))))
        idle.append(((group_id,), float(sum(not m.partitions for m in all_members))))
        for member in all_members:
            topics = [key.topic for key in member.partitions or ()]
            for topic in topics:
                assigned[group_id, topic] = assigned.get((group_id, topic), 0) + 1
            for topic in set(topics):
                by_topic[group_id, topic] = by_topic.get((group_id, topic), 0) + 1
    labels = ("group_id", "protocol", "protocol_type", "state", "coordinator_id")
    yield MetricFamily(f"{_PREFIX}_info", "A group: 1 if it is stable, else 0.", labels, infos)
    yield MetricFamily(f"{_PREFIX}_members", "Members of a group.", _GROUP, members)
    text = "Members of a group without any partition."
    yield MetricFamily(f"{_PREFIX}_empty_members", text, _GROUP, idle)
    text = "Members of a group that have partitions of a topic."
    yield MetricFamily(f"{_PREFIX}_topic_members", text, _GROUP_TOPIC, _rows(by_topic))
    text = "Partitions of a topic that members of a group have."
    name = f"{_PREFIX}_topic_assigned_partitions"
    yield MetricFamily(name, text, _GROUP_TOPIC, _rows(assigned))


def _info_row(group: GroupSample) -> tuple[tuple[str, ...], float]:
    """Return the labels that describe a group, with 1.0 if it is stable, else 0.0."""
    listing, description = group.listing, group.description
    state = (description.state if description is not None else listing.state) or ""
    protocol = "" if description is None else description.protocol_name
    labels = (listing.group_id, protocol, listing.protocol_type, state, str(listing.coordinator_id))
    return labels, float(state == _STABLE)


def _rows(counts: Mapping[tuple[str, str], int]) -> _Rows:
    """Return counts by label values as rows of a family, sorted by labels."""
    return [(labels, float(count)) for labels, count in sorted(counts.items())]


def _lag_families(sample: ClusterSample) -> Iterator[MetricFamily]:
    """Yield lag and committed offsets; a commit has no lag if its partition's end is unknown."""
    lags: _Rows = []
    by_topic: dict[tuple[str, str], int] = {}
    offsets: dict[tuple[str, str], int] = {}
    for group in sample.groups:
        for key, commit in sorted(group.commits.items()):
            topic = group.listing.group_id, key.topic
            offsets[topic] = offsets.get(topic, 0) + commit.offset
            end = sample.high_watermarks.get(key)
            if end is None:
                continue
            lag = max(end - commit.offset, 0)
            lags.append((_labels(group, key), float(lag)))
            by_topic[topic] = by_topic.get(topic, 0) + lag
    text = "Records of a partition that a group has not read."
    yield MetricFamily(f"{_PREFIX}_topic_partition_lag", text, _GROUP_PARTITION, lags)
    text = "Records of a topic that a group has not read."
    yield MetricFamily(f"{_PREFIX}_topic_lag", text, _GROUP_TOPIC, _rows(by_topic))
    text = "Committed offsets of a topic, summed."
    yield MetricFamily(f"{_PREFIX}_topic_offset_sum", text, _GROUP_TOPIC, _rows(offsets))
