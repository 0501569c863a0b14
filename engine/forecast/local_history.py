"""Exact histories of a live cluster's logs whose directories are on this machine.

| what | source |
|---|---|
| segments | names, sizes and indexes in the leader's directory, which DescribeLogDirs names |
| log start and high watermark | ListOffsets: checkpoints of a live broker are outdated |
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.client.blocking import KafkaClient
from engine.client.cluster_admin import describe_log_dirs
from engine.errors import EngineError, StorageError
from engine.forecast.cluster_history import request_log_extents
from engine.forecast.directory_history import read_history
from engine.forecast.log_history import LogHistory
from engine.host.ports import Files
from engine.log.directory.log_dir import find_log_dir
from engine.model import TopicPartition


def read_local_histories(
    client: KafkaClient, files: Files, topics: Sequence[str]
) -> dict[TopicPartition, LogHistory]:
    """Return the histories of logs whose files are readable on this machine; skip all others.

    A log that changes while it is read is skipped, too. Raises the errors of requests to the
    cluster.
    """
    view = client.view(topics)
    leaders = {
        TopicPartition(topic, partition.partition): partition.leader
        for topic in topics
        if topic in view.topics
        for partition in view.topics[topic].partitions
        if partition.has_leader
    }
    bounds = request_log_extents(client)
    found: dict[TopicPartition, LogHistory] = {}
    for broker_id, dirs in describe_log_dirs(client, set(leaders.values()), list(topics)).items():
        if isinstance(dirs, EngineError):
            continue
        for log_dir in dirs:
            led = {
                replica.partition
                for replica in log_dir.replicas
                if leaders.get(replica.partition) == broker_id and not replica.is_future
            }
            for log in _read_unchanged(files, log_dir.path, led & bounds.keys()):
                now = bounds[log.topic_partition]
                found[log.topic_partition] = log._replace(
                    log_start_offset=now.start_offset, high_watermark=now.end_offset
                )
    return found


def _read_unchanged(files: Files, path: str, wanted: set[TopicPartition]) -> list[LogHistory]:
    """Return the histories of the wanted logs in a directory that do not change meanwhile."""
    logs: list[LogHistory] = []
    if not wanted:
        return logs
    try:
        log_dir = find_log_dir(files, path)
    except EngineError:
        return logs
    for folder in log_dir.partitions:
        if folder.topic_partition not in wanted:
            continue
        try:
            log = read_history(files, folder, log_dir)
        except StorageError:
            # It was deleted or rolled while it was read.
            continue
        if log is not None:
            logs.append(log)
    return logs
