"""Topics of a cluster, reconstructed from its log directories without the metadata store.

| data | source |
|---|---|
| cluster and broker | meta.properties |
| topics and their partitions | partition directory names; count: the highest number + 1 |
| topic id | partition.metadata; where directories differ, the most frequent id |
| leader epoch | the last one in leader-epoch-checkpoint |
| producer ids in use | the snapshots |

Directories of deleted, future and stray replicas are ignored. An unreadable file loses only its own
data, and is named in `problems`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from engine.errors import StorageError
from engine.host.ports import Files
from engine.log.directory import leader_epoch_checkpoint, partition_metadata
from engine.log.directory.leader_epoch_checkpoint import read_leader_epochs
from engine.log.directory.log_dir import PartitionFolder, read_log_dir
from engine.log.directory.partition_metadata import read_partition_metadata
from engine.log.producer_snapshot import read_producer_snapshot
from engine.naming import CLUSTER_METADATA_TOPIC, DirectoryKind, FileKind, SegmentFileName

#: Stands for no known producer id.
NO_PRODUCER_ID = -1


class FoundReplica(NamedTuple):
    """One partition directory; id and epoch are None if no file contains them."""

    topic: str
    partition: int
    broker_id: int
    path: str
    topic_id: str | None
    leader_epoch: int | None
    log_bytes: int


class FoundTopic(NamedTuple):
    """A topic and its replicas by partition; those are sorted by epoch and size, descending."""

    name: str
    topic_id: str | None
    partitions: Mapping[int, tuple[FoundReplica, ...]]

    @property
    def partition_count(self) -> int:
        """The number of partitions, including those without a replica."""
        return max(self.partitions) + 1

    @property
    def log_bytes(self) -> int:
        """The total size of the fullest replica of each partition."""
        return sum(replicas[0].log_bytes for replicas in self.partitions.values())


class FoundCluster(NamedTuple):
    """The data found in the log directories."""

    #: Cluster ids, the most frequent one first.
    cluster_ids: tuple[str, ...]
    topics: tuple[FoundTopic, ...]
    producer_id_max: int
    problems: tuple[str, ...]


class _Reading:
    """Collects the data of log directories."""

    def __init__(self, files: Files) -> None:
        """Create the reader, which has read no log directory."""
        self._files = files
        self.cluster_ids: list[str] = []
        self.replicas: list[FoundReplica] = []
        #: Highest producer id in the logs: the cluster must assign higher ones.
        self.producer_id_max = NO_PRODUCER_ID
        self.problems: list[str] = []

    def read(self, broker_id: int, path: str) -> None:
        """Read one log directory; `broker_id` is used if its meta.properties has none."""
        log_dir = read_log_dir(self._files, path)
        self.problems += [str(problem) for problem in log_dir.state.problems]
        meta = log_dir.state.meta
        if meta is not None:
            broker_id = broker_id if meta.node_id is None else meta.node_id
            self.cluster_ids += [] if meta.cluster_id is None else [meta.cluster_id]
        for folder in log_dir.partitions:
            name = folder.directory
            if name is None or name.kind is not DirectoryKind.LIVE:
                continue
            if name.topic != CLUSTER_METADATA_TOPIC:
                self._read_partition(broker_id, folder)

    def _read_partition(self, broker_id: int, folder: PartitionFolder) -> None:
        """Record one replica with its topic id and last leader epoch, from its directory.

        If a file cannot be read, a problem is recorded, and the value is None.
        """
        assert folder.directory is not None
        topic_id = leader_epoch = None
        try:
            if partition_metadata.FILE_NAME in folder.files.side_files:
                path = folder.files.file_path(partition_metadata.FILE_NAME)
                topic_id = read_partition_metadata(self._files, path).topic_id
        except StorageError as error:
            self.problems.append(str(error))
        try:
            if leader_epoch_checkpoint.FILE_NAME in folder.files.side_files:
                path = folder.files.file_path(leader_epoch_checkpoint.FILE_NAME)
                epochs = read_leader_epochs(self._files, path)
                leader_epoch = epochs[-1].epoch if epochs else None
        except StorageError as error:
            self.problems.append(str(error))
        self._read_snapshots(folder)
        self.replicas.append(
            FoundReplica(
                folder.directory.topic,
                folder.directory.partition,
                broker_id,
                folder.files.path,
                topic_id,
                leader_epoch,
                folder.files.log_bytes,
            )
        )

    def _read_snapshots(self, folder: PartitionFolder) -> None:
        """Raise `producer_id_max` to the highest producer id in a partition's snapshots."""
        for offset in folder.files.snapshots:
            name = SegmentFileName(offset, FileKind.SNAPSHOT).name
            try:
                entries = read_producer_snapshot(self._files, folder.files.file_path(name))
            except StorageError as error:
                self.problems.append(str(error))
                continue
            ids = [self.producer_id_max, *(entry.producer_id for entry in entries)]
            self.producer_id_max = max(ids)


def find_cluster(files: Files, log_dirs: Iterable[tuple[int, str]]) -> FoundCluster:
    """Return the cluster whose data is in log directories, given as (presumed broker id, path)."""
    reading = _Reading(files)
    for broker_id, path in log_dirs:
        if files.is_dir(path):
            reading.read(broker_id, path)
    topics = group_topics(reading.replicas, reading.problems)
    cluster_ids = tuple(name for name, _ in Counter(reading.cluster_ids).most_common())
    return FoundCluster(cluster_ids, topics, reading.producer_id_max, tuple(reading.problems))


def group_topics(replicas: Iterable[FoundReplica], problems: list[str]) -> tuple[FoundTopic, ...]:
    """Return the topics by name, with their replicas.

    A replica with another topic id than most is left out and added to `problems`.
    """
    by_topic: dict[str, list[FoundReplica]] = {}
    for replica in replicas:
        by_topic.setdefault(replica.topic, []).append(replica)
    return tuple(
        _group_partitions(name, group, problems) for name, group in sorted(by_topic.items())
    )


def _group_partitions(name: str, replicas: list[FoundReplica], problems: list[str]) -> FoundTopic:
    """Return a topic with its replicas by partition, the fullest first.

    Replicas with another topic id than most are left out, with a problem.
    """
    votes = Counter(replica.topic_id for replica in replicas if replica.topic_id is not None)
    topic_id = max(votes, key=lambda one: (votes[one], one), default=None)
    partitions: dict[int, list[FoundReplica]] = {}
    for replica in replicas:
        if replica.topic_id not in (None, topic_id):
            problems.append(
                f"{replica.path}: topic id {replica.topic_id}, and {topic_id} in most others of "
                f"{name}: it is left out, and a broker does not serve it"
            )
            continue
        partitions.setdefault(replica.partition, []).append(replica)
    return FoundTopic(
        name,
        topic_id,
        {
            number: tuple(sorted(group, key=_fullness_key, reverse=True))
            for number, group in sorted(partitions.items())
        },
    )


def _fullness_key(replica: FoundReplica) -> tuple[int, int, int]:
    """Return the sort key of replicas: leader epoch, bytes, then the lower broker id."""
    epoch = -1 if replica.leader_epoch is None else replica.leader_epoch
    return epoch, replica.log_bytes, -replica.broker_id
