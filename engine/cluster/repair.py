"""`kctl cluster repair`: reconstruction of a cluster's metadata from its log directories.

```
file             condition                     new content
cluster.json     missing or damaged            the brokers' directories, and whether they had
                                               separate processes; defaults for the rest
znodes.sqlite    missing, damaged, or of       the cluster id, topics with their ids, partitions,
                 another cluster id            leaders and ISRs: the brokers that have them
```

Log directories are not changed. The damaged file is kept next to the new one, with the suffix
`.damaged-<time>`. The new store is written under another name and then renamed: a crash leaves the
old state or the new one.

Log directories do not contain the settings of topics. So that records are not deleted by the
brokers' default retention, each topic is set to unlimited retention until an operator changes it.

Differs: Kafka has no such tool; it treats topics that are missing in ZooKeeper as deleted.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable
from typing import NamedTuple

from engine.cluster.data_directory import (
    BadClusterFile,
    BrokersStillRun,
    ClusterInUse,
    ClusterState,
    DataDirectory,
)
from engine.cluster.found_topics import FoundCluster, FoundTopic, find_cluster
from engine.cluster.ownership import broker_directories, has_store, remove_file
from engine.cluster.plan import FIRST_BROKER_ID, ClusterPlan
from engine.cluster.store_security import store_security
from engine.config.settings import BrokerSettings
from engine.errors import EngineError, ZnodeError
from engine.host.ports import Clock, Files
from engine.model import TopicPartition
from engine.naming import COMPACTED_TOPICS
from engine.znode.errors import ZnodeStoreDamaged
from engine.znode.model import Create, Operation
from engine.znode.paths import (
    CLUSTER,
    CLUSTER_ID,
    PERSISTENT_PATHS,
    PRODUCER_ID_BLOCK,
    partition_path,
    partition_state_path,
    partitions_path,
    topic_config_path,
    topic_path,
)
from engine.znode.protection import protected
from engine.znode.sqlite_journal import SqliteJournal
from engine.znode.store import ZnodeStore
from engine.znode.tree import Node
from engine.znode.values import (
    PartitionAssignment,
    PartitionStateNode,
    ProducerIdBlockNode,
    TopicAssignment,
    decode_cluster_id,
    encode_cluster_id,
    encode_config,
    encode_partition_state,
    encode_producer_id_block,
    encode_topic,
)

#: Assigned producer ids are slightly above the highest one in snapshots: ids that never wrote are
#: unknown, and there are enough ids to skip some.
_PRODUCER_IDS_SKIPPED = 1_000_000
_CONTROLLER_EPOCH = 0
_FIRST_LEADER_EPOCH = 0
_SESSION_TIMEOUT_MS = 60_000
_KEPT_FOR_GOOD = {"retention.ms": "-1", "retention.bytes": "-1"}
_COMPACTED = {"cleanup.policy": "compact"}
_NEW = ".new"


class NothingToRepairFrom(EngineError):
    """There is neither a plan nor a log directory."""

    hint = "--data names the directory that `kctl cluster start` made"

    def __init__(self, path: str) -> None:
        super().__init__(f"there is nothing of a cluster in {path}")
        self.path = path


class Repair(NamedTuple):
    """The content that a repair would write, and its gaps; nothing is written yet."""

    #: None if the stored plan is intact.
    plan: ClusterPlan | None
    #: None if the metadata store is intact.
    found: FoundCluster | None
    #: The fault of each file to be written, by path.
    reasons: dict[str, str]
    notes: tuple[str, ...]

    @property
    def is_needed(self) -> bool:
        """True if there is a file to write."""
        return self.plan is not None or self.found is not None


def check_present(data: DataDirectory, files: Files) -> None:
    """Raise NothingToRepairFrom if there is neither a plan nor a log directory."""
    if not broker_directories(data, files) and not files.exists(data.plan_path):
        raise NothingToRepairFrom(data.path)


def examine_for_repair(data: DataDirectory, files: Files) -> Repair:
    """Return the changes that a repair of a stopped cluster would write; nothing is written.

    Raises ClusterInUse, BrokersStillRun, NothingToRepairFrom; ZnodeStoreFailed for a store that
    exists but cannot be opened.
    """
    if data.state() in (ClusterState.RUNNING, ClusterState.STARTING):
        raise ClusterInUse(data.path)
    left = data.held_broker_ids()
    if left:
        # They write to the logs that would be read, and use the store that would be replaced.
        raise BrokersStillRun(data.path, left)
    reasons: dict[str, str] = {}
    rebuilt, kept = None, None
    try:
        kept = data.plan()
        reason = "missing"
    except BadClusterFile as error:
        reason = error.reason
    if kept is None:
        check_present(data, files)
        directories = broker_directories(data, files)
        reasons[data.plan_path] = reason
        rebuilt = ClusterPlan(
            broker_count=max(directories, default=FIRST_BROKER_ID),
            is_in_processes=bool(data.broker_lock_ids()),
            log_dir_count=max(map(len, directories.values()), default=1),
        )
    plan = kept or rebuilt
    assert plan is not None
    found = find_cluster(files, _log_dirs(data, plan))
    wrong = _store_fault(data, files, found)
    if wrong is None:
        return Repair(rebuilt, None, reasons, tuple(_notes_on_plan(rebuilt)))
    reasons[data.store_path] = wrong
    notes = (*_notes_on_plan(rebuilt), *found.problems, *_notes_on_topics(found.topics))
    return Repair(rebuilt, found, reasons, notes)


def _log_dirs(data: DataDirectory, plan: ClusterPlan) -> list[tuple[int, str]]:
    """Return all log directories with broker ids, that of the first broker for unknown ones."""
    own = data.own_log_dirs(plan)
    return [(own.get(path, FIRST_BROKER_ID), path) for path in data.log_dirs(plan)]


def _store_fault(data: DataDirectory, files: Files, found: FoundCluster) -> str | None:
    """Return the fault of the metadata store, None if it is intact."""
    if not has_store(data, files):
        # A cluster that never ran has no store, and no logs.
        return "missing or empty" if found.cluster_ids or found.topics else None
    try:
        cluster_id = _read_cluster_id(data.store_path)
    except ZnodeStoreDamaged as error:
        return error.reason
    except ZnodeError as error:
        return str(error)
    if not found.cluster_ids or cluster_id == found.cluster_ids[0]:
        return None
    return f"of cluster {cluster_id}, and the logs are of {found.cluster_ids[0]}"


def _read_cluster_id(store_path: str) -> str | None:
    """Return the cluster id in a store's file, None if it has none."""
    journal = SqliteJournal(store_path)
    try:
        nodes: dict[str, Node] = dict(journal.load().nodes)
    finally:
        journal.close()
    node = nodes.get(CLUSTER_ID)
    return None if node is None else decode_cluster_id(node.data, CLUSTER_ID)


def _notes_on_plan(plan: ClusterPlan | None) -> list[str]:
    """Return the warning that a rebuilt plan has default settings; empty without a plan."""
    if plan is None:
        return []
    return [
        f"the cluster's settings are lost: it will listen on {plan.host}:{plan.port}, with default "
        "settings; the next `kctl cluster start` takes --port, --set and --zookeeper-port"
    ]


def _notes_on_topics(topics: Iterable[FoundTopic]) -> list[str]:
    """Return notes for the operator: lost settings, partitions without files, new topic ids."""
    notes = []
    own = [topic for topic in topics if topic.name not in COMPACTED_TOPICS]
    if own:
        kept = " and ".join(f"{key}={value}" for key, value in _KEPT_FOR_GOOD.items())
        notes.append(
            f"the settings of topics are lost: {kept}keep all records until you change that, "
            f"`kctl configs unset --topic TOPIC {' '.join(_KEPT_FOR_GOOD)}`"
        )
    for topic in topics:
        gaps = [n for n in range(topic.partition_count) if n not in topic.partitions]
        if gaps:
            named = ", ".join(map(str, gaps))
            notes.append(f"{topic.name}: no directory of partition {named}: it begins empty")
        if topic.topic_id is None:
            notes.append(f"{topic.name}: no partition.metadata has its id: it gets a new one")
    return notes


def apply(data: DataDirectory, files: Files, clock: Clock, repair: Repair) -> list[str]:
    """Write the changes of a repair; return the paths under which damaged files were kept."""
    suffix = f".damaged-{clock.wall_ms()}"
    aside = []
    if repair.found is not None:
        new = f"{data.store_path}{_NEW}"
        for path in data.store_files():
            remove_file(files, path.replace(data.store_path, new, 1))
        plan = (data.plan() if repair.plan is None else repair.plan) or ClusterPlan()
        security = store_security(BrokerSettings(plan.settings), listens=False)
        write_store(new, clock, repair.found, security.creator)
        for path in data.store_files():
            if files.exists(path):
                target = path.replace(data.store_path, f"{data.store_path}{suffix}", 1)
                files.rename(path, target)
                aside.append(target)
        files.rename(new, data.store_path)
        files.sync_dir(posixpath.dirname(data.store_path))
    if repair.plan is not None:
        if files.exists(data.plan_path):
            files.rename(data.plan_path, f"{data.plan_path}{suffix}")
            aside.append(f"{data.plan_path}{suffix}")
        data.write_plan(repair.plan)
    data.remove_running()
    return aside


def write_store(
    path: str, clock: Clock, found: FoundCluster, creator: tuple[str, str] | None = None
) -> None:
    """Write a metadata store with the found data to a new file.

    With a `creator`, its nodes have the ACLs of a protected cluster.
    """
    store = ZnodeStore(SqliteJournal(path), clock)
    try:
        session_id = store.open_session(_SESSION_TIMEOUT_MS)
        store.multi(session_id, [protected(each, creator) for each in _first_nodes(found)])
        for topic in found.topics:
            for operation in topic_nodes(topic):
                store.apply(session_id, protected(operation, creator))
        store.close_session(session_id)
    finally:
        store.close()


def _first_nodes(found: FoundCluster) -> Iterable[Operation]:
    """Yield the nodes of the cluster itself; producer ids continue above the highest found one."""
    last_id = found.producer_id_max // _PRODUCER_IDS_SKIPPED * _PRODUCER_IDS_SKIPPED
    last_id += 2 * _PRODUCER_IDS_SKIPPED - 1
    block = ProducerIdBlockNode(FIRST_BROKER_ID, last_id, last_id)
    for path in PERSISTENT_PATHS:
        data = encode_producer_id_block(block) if path == PRODUCER_ID_BLOCK else None
        yield Create(path, data)
    if found.cluster_ids:
        yield Create(CLUSTER)
        yield Create(CLUSTER_ID, encode_cluster_id(found.cluster_ids[0]))


def topic_nodes(topic: FoundTopic) -> Iterable[Operation]:
    """Yield the nodes of a topic, parents first."""
    config = _COMPACTED if topic.name in COMPACTED_TOPICS else _KEPT_FOR_GOOD
    yield Create(topic_config_path(topic.name), encode_config(config))
    somewhere = next(iter(topic.partitions.values()))[0].broker_id
    assignments = {
        number: PartitionAssignment(_brokers_of(topic, number) or (somewhere,))
        for number in range(topic.partition_count)
    }
    assignment = TopicAssignment(topic.topic_id, assignments)
    yield Create(topic_path(topic.name), encode_topic(assignment))
    yield Create(partitions_path(topic.name))
    for number, replicas in topic.partitions.items():
        partition = TopicPartition(topic.name, number)
        brokers = _brokers_of(topic, number)
        epoch = replicas[0].leader_epoch
        state = PartitionStateNode(
            brokers[0], _FIRST_LEADER_EPOCH if epoch is None else epoch, brokers, _CONTROLLER_EPOCH
        )
        yield Create(partition_path(partition))
        yield Create(partition_state_path(partition), encode_partition_state(state))


def _brokers_of(topic: FoundTopic, partition: int) -> tuple[int, ...]:
    """Return the brokers that have a partition, the leader first."""
    holders = (replica.broker_id for replica in topic.partitions.get(partition, ()))
    return tuple(dict.fromkeys(holders))
