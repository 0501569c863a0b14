"""Rollback of the metadata store to an earlier state, except for producer ids and leader epochs.

```
commits ── each is kept as a snapshot ──> one from some seconds ago is restored
                                            ├─ producer id block: the present one, no id is reused
                                            ├─ a lower leader epoch: raised above the present one
                                            └─ everything else: as it was, with its sessions
```

An operator would restore an ensemble from an older snapshot while all brokers are down. Logs have
epochs that the older data lack. A leader of a lower epoch would append records of epochs that were
used before, and followers would reject them: so the operator raises those epochs, as
`kctl cluster repair` does with the epochs in the logs.

Transaction ids increase further: a restored ZooKeeper starts a new epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.model import TopicPartition
from engine.sim.stored_paths import (
    BROKER_PATH,
    CONFIG_PATH,
    DOOM_PATH,
    STATE_PATH,
    TOPIC_PATH,
)
from engine.znode.journal import Stored
from engine.znode.paths import CONTROLLER_EPOCH, PRODUCER_ID_BLOCK, partition_state_path
from engine.znode.tree import Node
from engine.znode.values import (
    PartitionAssignment,
    PartitionStateNode,
    TopicAssignment,
    decode_config,
    decode_controller_epoch,
    decode_partition_state,
    decode_topic,
    encode_partition_state,
)

#: Largest age of a restored state.
AGE_MS_MAX = 10_000


class Snapshots:
    """The recent contents of the store, one after each transaction."""

    def __init__(self) -> None:
        self._kept: list[tuple[int, Stored]] = []

    def keep(self, now_ms: int, stored: Stored) -> None:
        """Keep the state after a transaction; drop states older than AGE_MS_MAX."""
        self._kept.append((now_ms, stored))
        while len(self._kept) > 1 and self._kept[1][0] <= now_ms - AGE_MS_MAX:
            del self._kept[0]

    def as_of(self, at_ms: int) -> Stored | None:
        """Return the state at a time, or the first one if that is later; None if there is none."""
        if not self._kept:
            return None
        early = [stored for kept_ms, stored in self._kept if kept_ms <= at_ms]
        return early[-1] if early else self._kept[0][1]


class StoredTopics(NamedTuple):
    """The brokers, topics and partitions in the nodes of a store."""

    controller_epoch: int
    broker_ids: frozenset[int]
    topics: dict[str, TopicAssignment]
    #: Topics that are to be deleted.
    doomed: frozenset[str]
    configs: dict[str, Mapping[str, str]]
    states: dict[TopicPartition, PartitionStateNode]

    def topic_id(self, name: str) -> str | None:
        """Return the id of a topic; None if the topic does not exist, or has no id."""
        topic = self.topics.get(name)
        return None if topic is None else topic.topic_id

    def row(self, key: TopicPartition) -> PartitionAssignment | None:
        """Return the replica assignment of a partition; None if the partition does not exist."""
        topic = self.topics.get(key.topic)
        return None if topic is None else topic.partitions.get(key.partition)

    def is_same(self, key: TopicPartition, other: StoredTopics) -> bool:
        """Return True if a partition is the same in both states: same topic id, same deletion.

        Leader and ISR may differ. A partition that has a stored state in only one of them was
        created again, and is not the same.
        """
        topic = key.topic
        return (
            self.row(key) is not None
            and other.row(key) is not None
            and self.topic_id(topic) == other.topic_id(topic)
            and (key in self.states) == (key in other.states)
            and (topic in self.doomed) == (topic in other.doomed)
        )

    def is_equal(self, key: TopicPartition, other: StoredTopics) -> bool:
        """Return True if all stored data of a partition is equal, except the controller epoch."""
        state, others = self.states.get(key), other.states.get(key)
        if state is not None and others is not None:
            others = others._replace(controller_epoch=state.controller_epoch)
        return self.is_same(key, other) and self.row(key) == other.row(key) and state == others

    def partitions(self) -> list[TopicPartition]:
        """Return all partitions with an assignment."""
        return [
            TopicPartition(name, index)
            for name, topic in self.topics.items()
            for index in topic.partitions
        ]


def read_topics(nodes: Mapping[str, Node]) -> StoredTopics:
    """Return the brokers, topics, partition states and settings in the nodes of a store."""
    controller = nodes.get(CONTROLLER_EPOCH)
    found = StoredTopics(
        0 if controller is None else decode_controller_epoch(controller.data, CONTROLLER_EPOCH),
        frozenset(int(match[1]) for path in nodes if (match := BROKER_PATH.fullmatch(path))),
        {},
        frozenset(match[1] for path in nodes if (match := DOOM_PATH.fullmatch(path))),
        {},
        {},
    )
    for path, node in nodes.items():
        if match := STATE_PATH.fullmatch(path):
            key = TopicPartition(match[1], int(match[2]))
            found.states[key] = decode_partition_state(node.data, path)
        elif (match := TOPIC_PATH.fullmatch(path)) and node.data is not None:
            found.topics[match[1]] = decode_topic(node.data, path)
        elif match := CONFIG_PATH.fullmatch(path):
            found.configs[match[1]] = decode_config(node.data, path)
    return found


def lost_partitions(topics: StoredTopics, topics_now: StoredTopics) -> list[TopicPartition]:
    """Return the partitions of existing topics that the restored store does not have.

    Before brokers start on the restored store, the operator removes the logs of these partitions:
    brokers would keep them, because the topic id matches. Brokers detect logs of other topics as
    strays.
    """
    return sorted(
        key
        for key in topics_now.partitions()
        if key not in topics.states and topics.topic_id(key.topic) == topics_now.topic_id(key.topic)
    )


def is_log_of(folder: str, partition: TopicPartition) -> bool:
    """Return True if a folder's name is that of a partition's log, also a future or deleted one."""
    return folder == str(partition) or folder.startswith(f"{partition}.")


def grown_topics(topics: StoredTopics, topics_now: StoredTopics) -> dict[str, int]:
    """Return the present partition count of each topic that has fewer partitions in `topics`.

    `topics` is the restored store. Clients keep using the missing partitions: the operator creates
    them again.
    """
    counts = {name: len(topic.partitions) for name, topic in topics_now.topics.items()}
    return {
        name: counts[name]
        for name, topic in sorted(topics.topics.items())
        if topics.topic_id(name) == topics_now.topic_id(name)
        and len(topic.partitions) < counts[name]
    }


def put_back(snapshot: Stored, now: Stored) -> Stored:
    """Return a snapshot adjusted for a restore, so that no id or epoch is used twice.

    The producer id block is the present one, and lower leader epochs are raised above the present
    ones.
    """
    nodes, nodes_now = dict(snapshot.nodes), dict(now.nodes)
    if PRODUCER_ID_BLOCK in nodes_now:
        nodes[PRODUCER_ID_BLOCK] = nodes_now[PRODUCER_ID_BLOCK]
    topics, topics_now = read_topics(nodes), read_topics(nodes_now)
    for key, state in topics.states.items():
        latest = topics_now.states.get(key)
        is_same = topics.topic_id(key.topic) == topics_now.topic_id(key.topic)
        if latest is not None and is_same and state.leader_epoch < latest.leader_epoch:
            path = partition_state_path(key)
            raised = state._replace(leader_epoch=latest.leader_epoch + 1)
            nodes[path] = nodes[path]._replace(
                data=encode_partition_state(raised), version=nodes[path].version + 1
            )
    return Stored(list(nodes.items()), dict(snapshot.sessions), now.zxid, now.secret)
