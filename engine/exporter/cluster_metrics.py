"""Metrics of brokers, topics and partitions.

Names with `kminion_` have the meaning and the labels that they have in KMinion, so that its
dashboards work; names with `kctl_` are for what KMinion does not export.

Source: the names and labels of KMinion 2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from engine.client.metadata import NO_BROKER, PartitionView
from engine.exporter.cluster_sample import ClusterSample
from engine.exporter.metric_family import MetricFamily, only
from engine.model import TopicPartition

_BROKER = ("broker_id", "address", "port", "rack_id")
_TOPIC = ("topic_name",)
_PARTITION = ("topic_name", "partition_id")


def cluster_metrics(sample: ClusterSample, policies: Mapping[str, str]) -> Iterator[MetricFamily]:
    """Yield all metric families about the cluster, its brokers, topics and partitions.

    `policies` are the last known cleanup policies by topic: they are not requested at each scrape.
    """
    yield from _broker_families(sample)
    yield from _size_families(sample)
    yield from _topic_families(sample, policies)
    yield from _offset_families(sample)
    yield from _replica_families(sample)
    if sample.moves is not None:
        name, text = "kctl_kafka_reassigning_partitions", "Partitions that are moved now."
        yield MetricFamily(name, text, (), only(len(sample.moves)))


def _broker_families(sample: ClusterSample) -> Iterator[MetricFamily]:
    """Yield the families about the cluster and its brokers."""
    view = sample.view
    controller_id = view.controller_id if view.is_controller_known else NO_BROKER
    count, controller = str(len(view.brokers)), str(controller_id)
    yield MetricFamily(
        "kminion_kafka_cluster_info",
        "The cluster; the value is always 1.",
        ("cluster_id", "cluster_version", "broker_count", "controller_id"),
        [((view.cluster_id or "", "", count, controller), 1.0)],
    )
    labels = ("broker_id", "address", "port", "rack_id", "is_controller")
    rows = [
        ((*_broker_labels(sample, id_), str(id_ == controller_id).lower()), 1.0)
        for id_ in sorted(view.brokers)
    ]
    yield MetricFamily("kminion_kafka_broker_info", "A broker; always 1.", labels, rows)
    with_replicas = {id_ for _, row in _partitions(sample) for id_ in row.replicas}
    up = [
        ((str(id_),), float(id_ in view.brokers and id_ not in sample.silent))
        for id_ in sorted(with_replicas.union(view.brokers))
    ]
    text = "Whether a broker answers that is registered or has replicas: 1 or 0."
    yield MetricFamily("kctl_kafka_broker_up", text, ("broker_id",), up)
    text = "The controller's broker id, -1 without one, and with KRaft, which does not say it."
    yield MetricFamily("kctl_kafka_controller_id", text, (), only(controller_id))


def _broker_labels(sample: ClusterSample, broker_id: int) -> tuple[str, str, str, str]:
    """Return the labels broker_id, address, port and rack_id of a broker."""
    broker = sample.view.brokers[broker_id]
    return str(broker_id), broker.address.host, str(broker.address.port), broker.rack or ""


def _size_families(sample: ClusterSample) -> Iterator[MetricFamily]:
    """Yield sizes by broker and by topic (all replicas), and free bytes by broker."""
    by_broker, by_topic = [], dict[str, int]()
    free = []
    for broker_id, log_dirs in sorted(sample.log_dirs.items()):
        size = 0
        for log_dir in log_dirs:
            for replica in log_dir.replicas:
                size += replica.size_bytes
                topic = replica.partition.topic
                by_topic[topic] = by_topic.get(topic, 0) + replica.size_bytes
            if log_dir.usable_bytes is not None:
                free.append(((str(broker_id), log_dir.path), float(log_dir.usable_bytes)))
        by_broker.append((_broker_labels(sample, broker_id), float(size)))
    text = "Bytes of all replicas of a broker."
    yield MetricFamily("kminion_kafka_broker_log_dir_size_total_bytes", text, _BROKER, by_broker)
    text = "Bytes of all replicas of a topic."
    sizes = [((name,), float(size)) for name, size in sorted(by_topic.items())]
    yield MetricFamily("kminion_kafka_topic_log_dir_size_total_bytes", text, _TOPIC, sizes)
    text = "Bytes that are free in a log directory, where brokers say it (from 3.3 on)."
    labels = ("broker_id", "log_dir")
    yield MetricFamily("kctl_kafka_log_dir_usable_bytes", text, labels, free)


def _topic_families(sample: ClusterSample, policies: Mapping[str, str]) -> Iterator[MetricFamily]:
    """Yield the family with a row for each topic, whose labels describe it."""
    labels = ("topic_name", "partition_count", "replication_factor", "cleanup_policy")
    rows = []
    for name, topic in sorted(sample.view.topics.items()):
        count, factor = str(len(topic.partitions)), str(topic.replication_factor)
        rows.append(((name, count, factor, policies.get(name, "")), 1.0))
    yield MetricFamily("kminion_kafka_topic_info", "A topic; always 1.", labels, rows)


def _offset_families(sample: ClusterSample) -> Iterator[MetricFamily]:
    """Yield the log start and high watermark of each partition, and their sums by topic."""
    for word, text, offsets in (
        ("low", "First offset", sample.low_watermarks),
        ("high", "End, exclusive,", sample.high_watermarks),
    ):
        rows = [(_labels(key), float(offset)) for key, offset in sorted(offsets.items())]
        name = f"kminion_kafka_topic_partition_{word}_water_mark"
        yield MetricFamily(name, f"{text} of a partition.", _PARTITION, rows)
        sums: dict[str, int] = {}
        for key, offset in sorted(offsets.items()):
            sums[key.topic] = sums.get(key.topic, 0) + offset
        name = f"kminion_kafka_topic_{word}_water_mark_sum"
        of_topics = [((topic,), float(total)) for topic, total in sums.items()]
        yield MetricFamily(name, f"{text} of all partitions, summed.", _TOPIC, of_topics)


def _labels(key: TopicPartition) -> tuple[str, str]:
    """Return the labels topic_name and partition_id of a partition."""
    return key.topic, str(key.partition)


def _replica_families(sample: ClusterSample) -> Iterator[MetricFamily]:
    """Yield leaders and replica counts, and the numbers of troubled partitions."""
    partitions = list(_partitions(sample))
    for name, text, value_of in (
        ("leader", "The leader's broker id, -1 without one.", lambda row: row.leader),
        ("replicas", "Replicas of a partition.", lambda row: len(row.replicas)),
        ("in_sync_replicas", "Replicas in sync.", lambda row: len(row.isr)),
    ):
        rows = [(_labels(key), float(value_of(row))) for key, row in partitions]
        yield MetricFamily(f"kctl_kafka_topic_partition_{name}", text, _PARTITION, rows)
    lacking = sum(_is_under_replicated(sample, key, row) for key, row in partitions)
    offline = sum(row.leader == NO_BROKER for _, row in partitions)
    text = "Partitions with fewer replicas in sync than they have, without those that a move adds."
    yield MetricFamily("kctl_kafka_under_replicated_partitions", text, (), only(lacking))
    text = "Partitions without a leader."
    yield MetricFamily("kctl_kafka_offline_partitions", text, (), only(offline))


def _partitions(sample: ClusterSample) -> Iterator[tuple[TopicPartition, PartitionView]]:
    """Yield all partitions with their metadata, sorted by topic."""
    for name, topic in sorted(sample.view.topics.items()):
        for row in topic.partitions:
            yield TopicPartition(name, row.partition), row


def _is_under_replicated(sample: ClusterSample, key: TopicPartition, row: PartitionView) -> bool:
    """Return True if a replica is not in sync; those that a reassignment adds do not count.

    Metadata lists the added ones as replicas; `sample.moves` shows which they are.
    """
    move = (sample.moves or {}).get(key)
    return (row if move is None else row._replace(adding=move.adding)).is_under_replicated
