"""Creating and deleting topics and adding partitions, on the broker that is the controller.

```
check (topic_creation, topic_growth) ── rejected: its error
   │
write   create   /config/topics/t, /brokers/topics/t      one transaction, in this order
        grow     /brokers/topics/t, if its version is unchanged
        delete   /admin/delete_topics/t
   │                    the controller is notified by its watches and does the rest
wait    until this broker's metadata shows it, or the time-out (topic_waiting)
```

With a time-out of 0 or less there is no wait: the result of written topics is REQUEST_TIMED_OUT.

Source: ZkAdminManager, AdminZkClient; ZN:delete-topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.admin.admin_ports import AdminPorts
from engine.admin.mutation_quota import EXCEEDED, UNBOUNDED, MutationQuota
from engine.admin.topic_creation import TopicCreation
from engine.admin.topic_growth import MorePartitions, TopicGrowth
from engine.admin.topic_results import TopicResult, TopicResults, mark_late_topics
from engine.admin.topic_rules import CreatableTopic, is_name
from engine.config.broker_config import BrokerConfig
from engine.controller.grouped_writes import write_groups
from engine.errors import EngineError
from engine.host.coroutine import PromiseCoroutine
from engine.kafka_errors import NONE, UNKNOWN_SERVER_ERROR, UNKNOWN_TOPIC_OR_PARTITION
from engine.znode.errors import NodeError, NodeExists
from engine.znode.model import Create
from engine.znode.paths import delete_topic_path, topic_path


class TopicAdmin:
    """Topic requests of one broker; the caller has checked that it is the controller.

    Each method returns the results of all its topics; the caller runs it, and handles its
    exceptions.
    """

    def __init__(self, config: BrokerConfig, ports: AdminPorts) -> None:
        self._client = ports.znodes
        self._creation = TopicCreation(config, ports)
        self._growth = TopicGrowth(ports.znodes)
        self._waiting = ports.waiting
        self._metadata_cache = ports.metadata_cache

    # -- create --------------------------------------------------------------------------------

    async def create_topics(
        self,
        topics: Sequence[CreatableTopic],
        *,
        timeout_ms: int,
        validate_only: bool = False,
        describe: bool = True,
        quota: MutationQuota = UNBOUNDED,
    ) -> TopicResults:
        """Create topics of distinct names, and wait until their partitions have leaders.

        Returns the result of each topic; REQUEST_TIMED_OUT if its leaders are missing after
        `timeout_ms`. `describe` adds its settings. `validate_only` only checks the topics.
        """
        results = await _await_writes(
            [topic.name for topic in topics],
            self._creation.create(
                topics, validate_only=validate_only, describe=describe, quota=quota
            ),
        )
        counts = {
            name: result.partition_count for name, result in results.items() if result.code == NONE
        }
        return results if validate_only else await self._await_leaders(results, counts, timeout_ms)

    # -- delete --------------------------------------------------------------------------------

    async def delete_topics(
        self, topics: Sequence[str], *, timeout_ms: int, quota: MutationQuota = UNBOUNDED
    ) -> TopicResults:
        """Request the deletion of topics, and wait until the metadata does not have them any more.

        Returns the result of each topic. It also waits for deletions that were requested earlier.
        """
        results = await _await_writes(topics, self._delete(topics, quota))
        late = [name for name, result in results.items() if result.code == NONE]
        if late and timeout_ms > 0:
            late = await self._waiting.for_removal(late, timeout_ms)
        return mark_late_topics(results, late)

    async def _delete(self, topics: Sequence[str], quota: MutationQuota) -> TopicResults:
        """Write the deletion node of each topic within the quota, for the controller.

        Returns the result of each topic.
        """
        results: TopicResults = {}
        stored = []
        for topic in topics:
            if not quota.take_tokens(len(self._metadata_cache.topics.get(topic, ()))):
                results[topic] = EXCEEDED
            elif not (is_name(topic) and await self._client.exists(topic_path(topic))):
                results[topic] = TopicResult(UNKNOWN_TOPIC_OR_PARTITION)
            else:
                stored.append(topic)
        groups = [(Create(delete_topic_path(topic)),) for topic in stored]
        group_results = await write_groups(self._client.multi, groups)
        for topic, group_result in zip(stored, group_results, strict=True):
            is_refused = isinstance(group_result, NodeError) and not isinstance(
                group_result, NodeExists
            )
            results[topic] = TopicResult(UNKNOWN_SERVER_ERROR if is_refused else NONE)
        return results

    # -- more partitions -----------------------------------------------------------------------

    async def create_partitions(
        self,
        topics: Sequence[MorePartitions],
        *,
        timeout_ms: int,
        validate_only: bool = False,
        quota: MutationQuota = UNBOUNDED,
    ) -> TopicResults:
        """Add partitions to topics of distinct names, and wait until they have leaders.

        Returns the result of each topic. `validate_only` only checks the request.
        """
        results = await _await_writes(
            [topic.name for topic in topics],
            self._growth.grow(topics, validate_only=validate_only, quota=quota),
        )
        counts = {
            topic.name: topic.new_count for topic in topics if results[topic.name].code == NONE
        }
        return results if validate_only else await self._await_leaders(results, counts, timeout_ms)

    # -- waiting -------------------------------------------------------------------------------

    async def _await_leaders(
        self, results: TopicResults, counts: Mapping[str, int], timeout_ms: int
    ) -> TopicResults:
        """Wait until the first `counts` partitions of each topic have leaders; return all results.

        A topic that is not complete within `timeout_ms` has REQUEST_TIMED_OUT.
        """
        late = list(counts)
        if late and timeout_ms > 0:
            late = await self._waiting.await_leaders(counts, timeout_ms)
        return mark_late_topics(results, late)


async def _await_writes(names: Sequence[str], work: PromiseCoroutine[TopicResults]) -> TopicResults:
    """Await the results of the topics; after a store error each topic has UNKNOWN_SERVER_ERROR."""
    try:
        return await work
    except EngineError:
        return dict.fromkeys(names, TopicResult(UNKNOWN_SERVER_ERROR))
