"""A cluster that serves copied log directories, which are never changed.

```
<data>/served.json                 {"sources": ["/copy/a", …], "writable": false}
<data>/broker-1/<topic>-<n>/…      links to the files of one copy of each partition
<data>/znodes.sqlite               topics, ids and partitions, from names and partition.metadata
```

One broker serves all of them. If several directories have a partition, the copy with the latest
leader epoch is used, then the longest one. Checkpoints of the sources are copied, so that flushed
data is not recovered; the shutdown counts as clean if it was in all sources. The broker changes
only copies of files (`engine/host/copy_on_write.py`).

Log directories do not contain the settings of topics: all records are kept, see `repair.py`.
Without `writable`, produce requests are rejected with POLICY_VIOLATION.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.cluster.data_directory import ClusterState, DataDirectory
from engine.cluster.found_topics import FoundCluster, FoundReplica, FoundTopic, find_cluster
from engine.cluster.ownership import remove_file, remove_log_dir
from engine.cluster.plan import FIRST_BROKER_ID, ClusterPlan
from engine.cluster.repair import write_store
from engine.errors import EngineError, StorageError
from engine.host.copy_on_write import CopyOnWriteFiles
from engine.host.lock_file import is_held
from engine.host.ports import Clock, FileMissing, Files
from engine.log.directory import clean_shutdown
from engine.log.directory.clean_shutdown import CleanShutdown, encode_clean_shutdown
from engine.log.directory.log_dir import (
    LOCK_FILE,
    LogDirState,
    NoLogDirectory,
    find_log_dir,
    read_state,
)
from engine.log.directory.offset_checkpoint import LOG_STARTS, RECOVERY_POINTS, encode_offsets
from engine.log.segment_files import list_partition_files
from engine.model import TopicPartition


class ServedLogs(NamedTuple):
    """The log directories that a cluster serves, and whether clients may write to it."""

    sources: tuple[str, ...]
    is_writable: bool


class Served(NamedTuple):
    """Result of serving logs: counts of partitions and bytes, and notes to print."""

    partition_count: int
    log_bytes: int
    notes: tuple[str, ...]


class SourceInUse(StorageError):
    """A broker is using a log directory that should be served."""

    hint = "copy it, or stop that broker first"

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: a broker is using this log directory")
        self.path = path


class OnePartition(StorageError):
    """A path is a partition directory instead of a log directory."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path}: is one partition, expected a log directory")
        self.hint = f"name the folder around it, {path.rpartition('/')[0] or '/'}"
        self.path = path


class TooManyBrokers(EngineError):
    """Copied log directories cannot be served by more than one broker."""

    hint = "start one broker"

    def __init__(self, broker_count: int) -> None:
        super().__init__(
            f"{broker_count} brokers were asked for, and copied log directories are served by one"
        )
        self.broker_count = broker_count


class SourceGone(StorageError):
    """A log directory that a cluster serves does not exist any more."""

    def __init__(self, path: str, data: str) -> None:
        super().__init__(f"{path}: the log directory that is served from here is gone")
        self.hint = f"put it back, or `kctl cluster destroy --data {data}`"
        self.path = path


class OtherServedCluster(EngineError):
    """A data directory has a cluster that does not match the request."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(f"the cluster in {path} {what}")
        self.hint = "give --data a folder that is empty or not there yet"
        self.path = path


def read_served(data: DataDirectory, files: Files) -> ServedLogs | None:
    """Return the log directories that a cluster serves, None if it has its own logs.

    Raises StorageError for an invalid file; SourceGone.
    """
    path = data.served_path
    try:
        content = json.loads(files.read_bytes(path))
        served = ServedLogs(tuple(map(str, content["sources"])), bool(content["writable"]))
    except FileMissing:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{path}: not a list of served log directories: {error}") from error
    for source in served.sources:
        if not files.is_dir(source):
            raise SourceGone(source, data.path)
    return served


def check_same(data: DataDirectory, files: Files, requested: ServedLogs) -> bool:
    """Return True if the requested cluster exists already; raises OtherServedCluster."""
    if data.state() is ClusterState.ABSENT:
        return False
    served = read_served(data, files)
    if served is None:
        raise OtherServedCluster(data.path, "has logs of its own")
    sources = tuple(files.absolute_path(path) for path in requested.sources)
    if served.sources != sources:
        raise OtherServedCluster(data.path, f"serves {', '.join(served.sources)}")
    if served.is_writable != requested.is_writable:
        raise OtherServedCluster(
            data.path, "is writable" if served.is_writable else "was made without --writable"
        )
    return True


def serve_logs(
    data: DataDirectory,
    files: CopyOnWriteFiles,
    clock: Clock,
    requested: ServedLogs,
    plan: ClusterPlan,
) -> Served:
    """Create the cluster that serves log directories, before its first start.

    Raises TooManyBrokers, NoLogDirectory, OnePartition, SourceInUse.
    """
    if plan.broker_count > 1:
        raise TooManyBrokers(plan.broker_count)
    sources = [files.absolute_path(path) for path in requested.sources]
    log_dirs = [log_dir for source in sources for log_dir in _log_dirs(files, source)]
    states = {path: read_state(files, path, files.list_dir(path)) for path in log_dirs}
    found = find_cluster(files, [(FIRST_BROKER_ID, path) for path in log_dirs])
    chosen = [
        _served_replica(replicas)
        for topic in found.topics
        for replicas in topic.partitions.values()
    ]
    target = data.broker_path(FIRST_BROKER_ID)
    try:
        # Written first, so that the directory is never taken for a cluster with its own logs.
        files.make_dir(data.path)
        content = {"sources": sources, "writable": requested.is_writable}
        files.replace_file(data.served_path, json.dumps(content).encode())
        for replica in chosen:
            _link_replica(files, replica, f"{target}/{replica.topic}-{replica.partition}")
        _write_checkpoints(files, target, chosen, states)
        write_store(data.store_path, clock, _move_to_one_broker(found))
    except BaseException:
        _remove_attempt(data, files)
        raise
    data.write_plan(plan)
    notes = [*found.problems, *_merge_notes(found.topics)]
    return Served(len(chosen), sum(replica.log_bytes for replica in chosen), tuple(notes))


def remove_links(data: DataDirectory, files: Files) -> None:
    """Remove the links in a cluster's directory before its removal; the linked files stay."""
    folder = data.broker_path(FIRST_BROKER_ID)
    if not files.exists(data.served_path) or not files.is_dir(folder):
        return
    for name in files.list_dir(folder):
        partition = f"{folder}/{name}"
        if files.is_dir(partition) and not files.is_link(partition):
            for inner in files.list_dir(partition):
                if files.is_link(f"{partition}/{inner}"):
                    files.remove(f"{partition}/{inner}")


def _remove_attempt(data: DataDirectory, files: Files) -> None:
    """Remove the files of a failed attempt, so that the directory can be used for another one."""
    remove_links(data, files)
    remove_log_dir(files, data.broker_path(FIRST_BROKER_ID))
    for path in (*data.store_files(), data.served_path):
        remove_file(files, path)


def _log_dirs(files: Files, source: str) -> list[str]:
    """Return the log directory at a path, or those directly below it.

    Raises NoLogDirectory, OnePartition, and SourceInUse if a broker uses one of them.
    """
    try:
        log_dir = find_log_dir(files, source)
    except NoLogDirectory as error:
        if not error.log_dirs:
            raise
        paths = [f"{source}/{name}" for name in error.log_dirs]
    else:
        if not log_dir.is_whole:
            raise OnePartition(source)
        paths = [log_dir.path]
    for path in paths:
        if is_held(f"{path}/{LOCK_FILE}"):
            raise SourceInUse(path)
    return paths


def _served_replica(replicas: Sequence[FoundReplica]) -> FoundReplica:
    """Return the replica to serve, the first one: `find_cluster` sorts by fullness."""
    return replicas[0]


def _link_replica(files: CopyOnWriteFiles, replica: FoundReplica, target: str) -> None:
    """Link a replica's log files into a new folder, durably; unknown files are left out."""
    files.make_dir(target)
    unknown = set(list_partition_files(files, replica.path).unknown)
    for name in files.list_dir(replica.path):
        if name not in unknown:
            files.link(f"{replica.path}/{name}", f"{target}/{name}")
    files.sync_dir(target)


def _write_checkpoints(
    files: Files, target: str, chosen: Iterable[FoundReplica], states: dict[str, LogDirState]
) -> None:
    """Write the checkpoints of one served directory from those of the copies.

    The clean shutdown marker is written only if all copies have one.
    """
    files.make_dir(target)
    for name in (RECOVERY_POINTS, LOG_STARTS):
        offsets = {}
        for replica in chosen:
            key = TopicPartition(replica.topic, replica.partition)
            offset = states[replica.path.rpartition("/")[0]].offset(name, key)
            if offset is not None:
                offsets[key] = offset
        files.replace_file(f"{target}/{name}", encode_offsets(offsets))
    if all(state.clean_shutdown is not None for state in states.values()):
        marker = encode_clean_shutdown(CleanShutdown())
        files.replace_file(f"{target}/{clean_shutdown.FILE_NAME}", marker)


def _move_to_one_broker(found: FoundCluster) -> FoundCluster:
    """Return the cluster with all partitions on one broker, and without a cluster id."""
    topics = []
    for topic in found.topics:
        partitions = {
            number: (replicas[0]._replace(broker_id=FIRST_BROKER_ID),)
            for number, replicas in topic.partitions.items()
        }
        topics.append(topic._replace(partitions=partitions))
    return found._replace(cluster_ids=(), topics=tuple(topics))


def _merge_notes(topics: Iterable[FoundTopic]) -> list[str]:
    """Return notes on the copy that is served of a partition, and on missing partitions."""
    notes = []
    for topic in topics:
        for number, (first, *others) in topic.partitions.items():
            if others:
                paths = ", ".join(replica.path for replica in others)
                notes.append(f"{topic.name}-{number}: served from {first.path}, not from {paths}")
        gaps = [str(n) for n in range(topic.partition_count) if n not in topic.partitions]
        if gaps:
            notes.append(f"{topic.name}: no directory of partition {', '.join(gaps)}: it is empty")
    return notes
