"""Adding partitions to topics.

Source: ZN:more-partitions; ZkAdminManager.createPartitions,
AdminZkClient.createNewPartitionsAssignment.
Differs: the write is over the version that was read, and begins again if that changed meanwhile; in
Kafka the last one counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from engine.admin.mutation_quota import EXCEEDED, UNBOUNDED, MutationQuota
from engine.admin.replica_assignment import (
    Placement,
    assign_replicas,
    check_counts,
    sorted_brokers,
)
from engine.admin.topic_errors import TopicRefused
from engine.admin.topic_results import TopicResult, refused, write_error
from engine.admin.topic_rules import (
    check_added_replicas,
    check_growth,
    check_partition_count,
    is_name,
)
from engine.controller.cluster_reader import StoredTopic, read_brokers, read_topic
from engine.controller.grouped_writes import write_groups
from engine.ids import InvalidUuid
from engine.kafka_errors import (
    REASSIGNMENT_IN_PROGRESS,
    UNKNOWN_SERVER_ERROR,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.znode.client import ZnodeClient
from engine.znode.errors import BadVersion, InvalidZnodePath, ZnodeLimitExceeded
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.model import Operation, SetData
from engine.znode.names import check_path
from engine.znode.paths import topic_path
from engine.znode.values import PartitionAssignment, TopicAssignment, encode_topic


class MorePartitions(NamedTuple):
    """A topic to make larger; `assignments` are of the new partitions, None to choose."""

    name: str
    new_count: int
    assignments: Sequence[tuple[int, ...]] | None = None


class _Growth(NamedTuple):
    """The nodes that are written to add partitions to a topic."""

    operations: list[Operation]
    added_count: int


class TopicGrowth:
    """Adds partitions to topics."""

    def __init__(self, client: ZnodeClient) -> None:
        self._client = client

    async def grow(
        self,
        topics: Sequence[MorePartitions],
        *,
        validate_only: bool,
        quota: MutationQuota = UNBOUNDED,
    ) -> dict[str, TopicResult]:
        """Check topics with distinct names, and add partitions to the valid ones."""
        if not all(_has_path(topic.name) for topic in topics):
            # Kafka requests all from its store at once, and fails at a path that no node can have.
            return {topic.name: TopicResult(UNKNOWN_SERVER_ERROR) for topic in topics}
        results: dict[str, TopicResult] = {}
        remaining = list(topics)
        while remaining:
            writes = await self._plan(remaining, results)
            if validate_only:
                break
            if remaining == list(topics):
                self._count(writes, results, quota)
            group_results = await write_groups(
                self._client.multi, [write.operations for write in writes.values()]
            )
            outdated = set()
            for name, group_result in zip(writes, group_results, strict=True):
                if isinstance(group_result, BadVersion):
                    outdated.add(name)
                else:
                    results[name] = write_error(name, group_result) or results[name]
            remaining = [topic for topic in remaining if topic.name in outdated]
        return results

    def _count(
        self,
        writes: dict[str, _Growth],
        results: dict[str, TopicResult],
        quota: MutationQuota,
    ) -> None:
        """Leave out topics that exceed the quota; counted once, also if writes are repeated."""
        for name in [name for name, write in writes.items() if not quota.admits(write.added_count)]:
            results[name] = EXCEEDED
            del writes[name]

    async def _plan(
        self, topics: Sequence[MorePartitions], results: dict[str, TopicResult]
    ) -> dict[str, _Growth]:
        """Return the nodes to write for the valid topics; refused ones get their result."""
        writes: dict[str, _Growth] = {}
        for topic in topics:
            try:
                stored = await self._stored_topic(topic.name)
                assignment = await self._grown(topic, stored.assignment)
            except TopicRefused as error:
                results[topic.name] = refused(error)
                continue
            except (InvalidZnodeValue, InvalidUuid):
                results[topic.name] = TopicResult(UNKNOWN_SERVER_ERROR)
                continue
            results[topic.name] = TopicResult()
            data = encode_topic(assignment)
            added_count = len(assignment.partitions) - len(stored.assignment.partitions)
            write = SetData(topic_path(topic.name), data, stored.version)
            writes[topic.name] = _Growth([write], added_count)
        return writes

    async def _stored_topic(self, topic: str) -> StoredTopic:
        """Return the topic from its znode; raise TopicRefused if it does not exist."""
        # A name that no topic can have may be the path of another node.
        stored = await read_topic(self._client, topic) if is_name(topic) else None
        if stored is None or not stored.assignment.partitions:
            raise TopicRefused(UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist.")
        return stored

    async def _grown(self, topic: MorePartitions, current: TopicAssignment) -> TopicAssignment:
        """Return a topic's assignment with the new partitions; raises TopicRefused."""
        partitions = current.partitions
        if any(p.adding_replicas or p.removing_replicas for p in partitions.values()):
            raise TopicRefused(
                REASSIGNMENT_IN_PROGRESS,
                f"A partition reassignment is in progress for the topic '{topic.name}'.",
            )
        old_count = len(partitions)
        check_growth(old_count, topic.new_count)
        if 0 not in partitions:
            raise TopicRefused(UNKNOWN_SERVER_ERROR, "partition 0 has no replicas")
        pattern = partitions[0].replicas
        live = await read_brokers(self._client)
        brokers = sorted_brokers(broker.node for broker in live.values())
        if topic.assignments is None:
            check_partition_count(topic.new_count)
            check_counts(topic.new_count - old_count, len(pattern), len(brokers))
            first_leader = pattern[0]
            start = next(
                (i for i, broker in enumerate(brokers) if broker.broker_id >= first_leader), 0
            )
            added = assign_replicas(
                brokers,
                topic.new_count - old_count,
                len(pattern),
                Placement(start, start, old_count),
            )
        else:
            check_added_replicas(
                topic.assignments,
                old_count=old_count,
                new_count=topic.new_count,
                replication_factor=len(pattern),
                broker_ids=live.keys(),
            )
            check_partition_count(topic.new_count)
            added = dict(enumerate(topic.assignments, old_count))
        grown = {index: PartitionAssignment(replicas) for index, replicas in added.items()}
        return current._replace(partitions={**partitions, **grown})


def _has_path(topic: str) -> bool:
    """Return whether a node may have the path of a topic of this name."""
    try:
        check_path(topic_path(topic))
    except (InvalidZnodePath, ZnodeLimitExceeded):
        return False
    return True
