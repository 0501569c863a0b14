"""Addition of partitions to topics.

Source: ZN:more-partitions; ZkAdminManager.createPartitions,
AdminZkClient.createNewPartitionsAssignment.
Differs: a topic is written only if its version is unchanged, otherwise it is read again; in Kafka
the last writer wins.
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
    """A request for more partitions; `assignments` are for the new ones, None to choose them."""

    name: str
    new_count: int
    assignments: Sequence[tuple[int, ...]] | None = None


class _Growth(NamedTuple):
    """The writes that add partitions to a topic."""

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
        """Check topics with distinct names and add partitions to the valid ones.

        Returns all results.

        A topic that was changed meanwhile is read and checked again. `validate_only` writes
        nothing.
        """
        if not all(_has_path(topic.name) for topic in topics):
            # Kafka reads all topics at once, and fails as a whole for an invalid path.
            return {topic.name: TopicResult(UNKNOWN_SERVER_ERROR) for topic in topics}
        results: dict[str, TopicResult] = {}
        remaining = list(topics)
        while remaining:
            writes = await self._plan(remaining, results)
            if validate_only:
                break
            if remaining == list(topics):
                self._reject_over_quota(writes, results, quota)
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

    def _reject_over_quota(
        self,
        writes: dict[str, _Growth],
        results: dict[str, TopicResult],
        quota: MutationQuota,
    ) -> None:
        """Count the added partitions for the quota, and reject the topics that exceed it.

        They move from `writes` to `results`. Called once, not for repeated writes.
        """
        for name in [
            name for name, write in writes.items() if not quota.take_tokens(write.added_count)
        ]:
            results[name] = EXCEEDED
            del writes[name]

    async def _plan(
        self, topics: Sequence[MorePartitions], results: dict[str, TopicResult]
    ) -> dict[str, _Growth]:
        """Return the writes of the valid topics by name.

        The result of each topic is added to `results`.
        """
        writes: dict[str, _Growth] = {}
        for topic in topics:
            try:
                stored = await self._read_stored_topic(topic.name)
                assignment = await self._grow_assignment(topic, stored.assignment)
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

    async def _read_stored_topic(self, topic: str) -> StoredTopic:
        """Return the topic in its znode; raises TopicRefused if it does not exist."""
        # An invalid topic name could be the path of another node.
        stored = await read_topic(self._client, topic) if is_name(topic) else None
        if stored is None or not stored.assignment.partitions:
            raise TopicRefused(UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{topic}' does not exist.")
        return stored

    async def _grow_assignment(
        self, topic: MorePartitions, current: TopicAssignment
    ) -> TopicAssignment:
        """Return a topic's stored assignment with the new partitions added.

        Raises TopicRefused if it is being reassigned, or if the request is invalid.
        """
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
    """Return True if a topic of this name can have a znode."""
    try:
        check_path(topic_path(topic))
    except (InvalidZnodePath, ZnodeLimitExceeded):
        return False
    return True
