"""Creation of topics: checks and writes.

Source: ZkAdminManager.createTopics; ZN:create-topic.
Differs: config and assignment of a topic are written together, so that a crash leaves no config
without a topic; and all topics of a request are written in one transaction if none fails.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from engine.admin.admin_ports import AdminPorts
from engine.admin.mutation_quota import EXCEEDED, UNBOUNDED, MutationQuota
from engine.admin.policies import CreateTopicRequest
from engine.admin.replica_assignment import (
    Placement,
    assign_replicas,
    check_counts,
    sorted_brokers,
)
from engine.admin.topic_errors import TopicRefused
from engine.admin.topic_results import TopicResult, refused, write_error
from engine.admin.topic_rules import (
    BROKERS_DEFAULT,
    CreatableTopic,
    already_exists,
    can_collide,
    check_assignment,
    check_collisions,
    check_configs,
    check_form,
    check_name,
)
from engine.config.broker_config import BrokerConfig
from engine.config.describe import DescribedConfig, describe_topic
from engine.config.settings import BrokerSettings
from engine.controller.grouped_writes import write_groups
from engine.controller.topic_ids import random_topic_id
from engine.errors import ApiError, ConfigError
from engine.hash_order import in_hash_order
from engine.host.turns import Share
from engine.ids import uuid_text
from engine.kafka_errors import INVALID_CONFIG, TOPIC_ALREADY_EXISTS, UNKNOWN_SERVER_ERROR
from engine.znode.model import Create, Operation, OperationResult, SetData
from engine.znode.paths import TOPICS, delete_topic_path, topic_config_path, topic_path
from engine.znode.values import (
    PartitionAssignment,
    TopicAssignment,
    encode_config,
    encode_topic,
)


class _Planned(NamedTuple):
    """A topic that passed all checks."""

    assignment: TopicAssignment
    configs: Mapping[str, str]
    result: TopicResult


class _Described(NamedTuple):
    """Described topic settings, with the settings from which they were computed."""

    settings: BrokerSettings
    configs: dict[str, str]
    described: Sequence[DescribedConfig]


class TopicCreation:
    """Checks new topics against the metadata and the znodes, then writes them."""

    def __init__(self, config: BrokerConfig, ports: AdminPorts) -> None:
        self._config = config
        self._ports = ports
        self._client = ports.znodes
        self._metadata_cache = ports.metadata_cache
        #: Description of the last created topic's settings, because topics of one request often
        #: have the same; None before the first.
        self._last_described: _Described | None = None

    async def create(
        self,
        topics: Sequence[CreatableTopic],
        *,
        validate_only: bool,
        describe: bool,
        quota: MutationQuota = UNBOUNDED,
    ) -> dict[str, TopicResult]:
        """Check topics with distinct names and write the valid ones; return the result of each.

        `validate_only` writes nothing, `describe` adds the topics' settings to the results.
        """
        results: dict[str, TopicResult] = {}
        planned: dict[str, _Planned] = {}
        share = self._ports.turns.begin()
        for topic in topics:
            if share.is_over():
                await share.next()
            try:
                # If topics are only validated, none can collide with an earlier one of the request.
                created: Collection[str] = () if validate_only else planned
                planned[topic.name] = await self._plan(topic, created, describe=describe)
            except TopicRefused as error:
                results[topic.name] = refused(error)
        if not validate_only:
            for name in [
                name
                for name, plan in planned.items()
                if not quota.take_tokens(plan.result.partition_count)
            ]:
                results[name] = EXCEEDED
                del planned[name]
            await self._write_new(planned, results, share)
        for name, plan in planned.items():
            # A topic that is only checked has no id yet.
            shown = plan.result._replace(topic_id=None) if validate_only else plan.result
            results.setdefault(name, shown)
        return {topic.name: results[topic.name] for topic in topics}

    async def _plan(
        self, topic: CreatableTopic, created: Collection[str], *, describe: bool
    ) -> _Planned:
        """Check one topic and return its replicas, settings, id and result; raises TopicRefused.

        `created` are the topics that the same request creates before it.
        """
        if topic.name in self._metadata_cache.topics:
            raise already_exists(topic.name)
        check_form(topic)
        replicas = self._place_replicas(topic)
        check_name(topic.name)
        await self._check_free(topic.name, created)
        check_assignment(replicas)
        configs = {name: value for name, value in topic.configs if value is not None}
        settings = self._ports.settings()
        check_configs(configs, settings)
        self._validate_by_policy(topic, replicas, configs)
        if 0 not in replicas:
            raise TopicRefused(UNKNOWN_SERVER_ERROR, "partition 0 has no replicas")
        topic_id = random_topic_id(self._ports.entropy)
        partitions = {index: PartitionAssignment(brokers) for index, brokers in replicas.items()}
        result = TopicResult(
            topic_id=topic_id,
            partition_count=len(replicas),
            replication_factor=len(replicas[0]),
            configs=self._describe_configs(configs, settings) if describe else (),
        )
        return _Planned(TopicAssignment(uuid_text(topic_id), partitions), configs, result)

    def _validate_by_policy(
        self,
        topic: CreatableTopic,
        replicas: Mapping[int, tuple[int, ...]],
        configs: Mapping[str, str],
    ) -> None:
        """Raise TopicRefused if the operator's CreateTopicPolicy forbids the topic."""
        policy = self._ports.policy
        if policy is None:
            return
        is_assigned = bool(topic.assignments)
        request = CreateTopicRequest(
            topic.name,
            None if is_assigned else len(replicas),
            None if is_assigned else len(replicas[0]),
            replicas if is_assigned else None,
            configs,
        )
        try:
            policy.validate(request)
        except ApiError as error:
            raise TopicRefused(error.code, error.detail) from error
        except ConfigError as error:
            raise TopicRefused(INVALID_CONFIG, error.rule) from error

    def _describe_configs(
        self, configs: dict[str, str], settings: BrokerSettings
    ) -> Sequence[DescribedConfig]:
        """Return a topic's settings in Kafka's order, as the response has them.

        The last result is cached, because a request may create many topics with equal settings.
        """
        last = self._last_described
        if last is None or last.settings != settings or last.configs != configs:
            by_name = {config.name: config for config in describe_topic(settings, configs)}
            described = [by_name[name] for name in in_hash_order(by_name)]
            last = self._last_described = _Described(settings, configs, described)
        return last.described

    def _place_replicas(self, topic: CreatableTopic) -> dict[int, tuple[int, ...]]:
        """Return the replicas of each partition of a new topic by index.

        They are as requested, or else spread over all brokers of the cluster.
        """
        if topic.assignments:
            return dict(topic.assignments)
        partition_count, replication_factor = topic.partition_count, topic.replication_factor
        if partition_count == BROKERS_DEFAULT:
            partition_count = self._config.num_partitions
        if replication_factor == BROKERS_DEFAULT:
            replication_factor = self._config.default_replication_factor
        brokers = sorted_brokers(self._metadata_cache.brokers.values())
        check_counts(partition_count, replication_factor, len(brokers))
        placement = Placement.random(self._ports.entropy, len(brokers))
        return assign_replicas(brokers, partition_count, replication_factor, placement)

    async def _check_free(self, topic: str, created: Collection[str]) -> None:
        """Raise TopicRefused if a topic of that name exists or is being deleted.

        Also if the name collides with that of another topic, stored or in `created`, in metrics.
        """
        if await self._client.exists(delete_topic_path(topic)) is not None:
            raise TopicRefused(TOPIC_ALREADY_EXISTS, f"Topic '{topic}' is marked for deletion.")
        if await self._client.exists(topic_path(topic)) is not None:
            raise already_exists(topic)
        if can_collide(topic):
            check_collisions(topic, [*await self._client.children(TOPICS), *created])

    async def _write_new(
        self, planned: Mapping[str, _Planned], results: dict[str, TopicResult], share: Share
    ) -> None:
        """Write the znodes of all planned topics; add the result of a failed one to `results`."""
        groups = []
        for name, plan in planned.items():
            if share.is_over():
                await share.next()
            groups.append(await self._creation_writes(name, plan))

        async def multi(operations: Sequence[Operation]) -> list[OperationResult]:
            """Write in a new turn of the loop if this one has used up its share."""
            if share.is_over():
                await share.next()
            return await self._client.multi(operations)

        group_results = await write_groups(multi, groups)
        for name, group_result in zip(planned, group_results, strict=True):
            error = write_error(name, group_result)
            if error is not None:
                results[name] = error

    async def _creation_writes(self, topic: str, plan: _Planned) -> list[Operation]:
        """Return the operations that create a topic and its settings.

        A config node that an earlier topic left behind is replaced.
        """
        path, data = topic_config_path(topic), encode_config(plan.configs)
        is_there = await self._client.exists(path) is not None
        config: Operation = SetData(path, data) if is_there else Create(path, data)
        return [config, Create(topic_path(topic), encode_topic(plan.assignment))]
