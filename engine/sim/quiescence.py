"""Check that a cluster is quiescent: all brokers up and agreeing, every replica in sync and equal.

| component | agrees with the store about |
|---|---|
| each replica | its leader and leader epoch |
| each broker's metadata cache | the partitions, and the leader, epoch and ISR of each |
| each replica's settings | min.insync.replicas and retention |
| the controller | assignments, leaders, ISRs; every phase is online (C4, C7) |

No reassignment is in progress and no topic is to be deleted (C6, C8).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from engine.broker.broker import Broker
from engine.controller.context import ControllerContext
from engine.controller.states import PartitionPhase, ReplicaPhase
from engine.log.local_log import LocalLog
from engine.model import TopicPartition
from engine.replication.partition import Partition
from engine.sim.histories import History
from engine.sim.invariants import MIN_ISR, Invariants
from engine.sim.logs import content_batches
from engine.sim.node import SimulatedBroker


def reasons_not_quiescent(
    nodes: Mapping[int, SimulatedBroker],
    invariants: Invariants,
    wanted: Iterable[TopicPartition],
    *,
    is_last_check: bool = False,
) -> list[str]:
    """Return the reasons why a cluster is not quiescent, as text; empty if it is.

    `wanted` are partitions that must exist; all existing ones are checked. At the last check the
    controller's state of a partition may have a later controller epoch than the stored state.
    """
    causes = [f"{node.name} is down" for node in nodes.values() if not node.is_up]
    active = [n.broker for n in nodes.values() if n.broker and n.broker.controller.is_active]
    if len(active) != 1:
        causes.append(f"controllers: {[broker.broker_id for broker in active]}")
    topics = invariants.topics
    causes += [f"{key} is not there" for key in wanted if key not in topics.rows]
    stuck = {key for key in topics.rows if _is_stuck(key, nodes, invariants)}
    stuck_topics = {key.topic for key in stuck}
    causes += [f"{name} is to be deleted" for name in topics.doomed() if name not in stuck_topics]
    causes += [f"{key} is being reassigned" for key in topics.moving() if key not in stuck]
    for key in topics.rows:
        causes += _partition_reasons(key, nodes, invariants)
    if not causes:
        for node in nodes.values():
            if node.broker is not None:
                causes += _metadata_reasons(node.broker, invariants)
                causes += _settings_reasons(node.broker, invariants)
        context = active[0].controller.context
        causes += _controller_reasons(context, invariants, stuck, is_last_check=is_last_check)
    return causes


def _partition_reasons(
    key: TopicPartition, nodes: Mapping[int, SimulatedBroker], invariants: Invariants
) -> list[str]:
    """Return why a partition is not quiescent; empty if it is.

    It has no leader, an incomplete ISR, or its log end offsets or high watermarks differ.
    """
    history = invariants.histories.get(key)
    if history is None or history.state is None:
        return [f"{key} has no state"]
    state, assigned = history.state, invariants.topics.replicas(key)
    following = [
        i for i in assigned if not _stays_behind(key, history, nodes[i], nodes, invariants)
    ]
    if state.leader < 0 or set(state.isr) != set(following):
        return [f"{key} has leader {state.leader}, ISR {list(state.isr)} of {list(assigned)}"]
    ends = set()
    for broker_id in following:
        if nodes[broker_id].broker is None:
            return [f"{key} has a replica on a broker that is down"]
        partition = _replica_on(nodes[broker_id], key)
        if partition is None or partition.leader_epoch != state.leader_epoch:
            return [f"{key}: {broker_id} does not follow epoch {state.leader_epoch}"]
        ends.add((partition.log.log_end_offset, partition.high_watermark))
    return (
        []
        if are_even(ends, is_held(key, nodes, invariants))
        else [f"{key}: ends and watermarks {sorted(ends)}"]
    )


def is_held(
    key: TopicPartition, nodes: Mapping[int, SimulatedBroker], invariants: Invariants
) -> bool:
    """Return True if a partition is below min.insync.replicas and a replica can never catch up.

    Records with acks=all are rejected then: producers need not have sent all before the checks.

    Source: HW-7.
    """
    history = invariants.histories.get(key)
    leader = None if history is None or history.state is None else history.state.leader
    partition = None if leader is None else _replica_on(nodes.get(leader), key)
    return (
        partition is not None and partition.is_under_min_isr and _is_stuck(key, nodes, invariants)
    )


def readable_end(
    key: TopicPartition, nodes: Mapping[int, SimulatedBroker], invariants: Invariants
) -> int | None:
    """Return the high watermark of a partition in which nothing can be committed; None for others.

    A leader that was elected with a low high watermark cannot increase it, see `is_held`.
    """
    if not is_held(key, nodes, invariants):
        return None
    history = invariants.histories[key]
    partition = None if history.state is None else _replica_on(nodes.get(history.state.leader), key)
    return None if partition is None else partition.high_watermark


def are_even(ends: Collection[tuple[int, int]], is_commit_blocked: bool) -> bool:
    """Return True if replicas, given as (log end, high watermark), are equal and all is committed.

    If nothing can be committed (`is_commit_blocked`, see `is_held`), high watermarks may be lower.
    """
    log_ends = {end for end, _ in ends}
    return len(log_ends) == 1 and (
        is_commit_blocked or all(end == watermark for end, watermark in ends)
    )


def _is_stuck(
    key: TopicPartition, nodes: Mapping[int, SimulatedBroker], invariants: Invariants
) -> bool:
    """Return True if a replica can never catch up, so that a reassignment never ends."""
    history = invariants.histories.get(key)
    return history is not None and any(
        _stays_behind(key, history, nodes[broker_id], nodes, invariants)
        for broker_id in invariants.topics.replicas(key)
    )


def _stays_behind(
    key: TopicPartition,
    history: History,
    node: SimulatedBroker,
    nodes: Mapping[int, SimulatedBroker],
    invariants: Invariants,
) -> bool:
    """Return True if a replica cannot join the ISR before more records are written, as in Kafka."""
    return (
        _has_given_up(key, history, node, nodes)
        or _has_failed_at_damage(key, node, invariants)
        or _has_all_that_is_left(key, history, node, nodes)
    )


def _has_failed_at_damage(
    key: TopicPartition, node: SimulatedBroker, invariants: Invariants
) -> bool:
    """Return True if a follower no longer fetches since it found its log damaged."""
    partition = _replica_on(node, key)
    if partition is None or partition.is_leader:
        return False
    return invariants.rots.may_have_failed_at_damage(node.broker_id, key) and not _is_fetched(
        key, node
    )


def _is_fetched(key: TopicPartition, node: SimulatedBroker) -> bool:
    """Return True if a fetcher of the broker has the partition; a failed partition is in none."""
    fetchers = {} if node.broker is None else node.broker.storage.fetchers.fetchers
    return any(key in fetcher.followed.states for fetcher in fetchers.values())


def _has_all_that_is_left(
    key: TopicPartition,
    history: History,
    node: SimulatedBroker,
    nodes: Mapping[int, SimulatedBroker],
) -> bool:
    """Return True if a follower has all records of a leader whose log ends above the last one.

    That occurs after a loss: cleaning removed a superseded record, and the superseding one was
    lost. No fetch shows that the offsets up to the log end are empty until a later batch is
    appended.
    """
    if not history.losses or history.state is None:
        return False
    follower = _replica_on(node, key)
    leader = _replica_on(nodes.get(history.state.leader), key)
    if follower is None or leader is None or follower is leader or not leader.is_leader:
        return False
    return lacks_offsets_alone(leader.log, follower.log.log_end_offset)


def lacks_offsets_alone(log: LocalLog, end_offset: int) -> bool:
    """Return True if `end_offset` is below a log's end and no batch is at or after it."""
    return log.log_start_offset <= end_offset < log.log_end_offset == log.locate(end_offset).offset


def _replica_on(node: SimulatedBroker | None, key: TopicPartition) -> Partition | None:
    """Return a broker's replica of a partition; None if the broker is down or has none."""
    broker = None if node is None else node.broker
    return None if broker is None else broker.storage.replica_manager.partitions.get(key)


def _has_given_up(
    key: TopicPartition,
    history: History,
    node: SimulatedBroker,
    nodes: Mapping[int, SimulatedBroker],
) -> bool:
    """Return True if a replica's fetcher has stopped for its epoch, as it may in Kafka too.

    A leader that lost writes may have batches that begin below the log end of a follower that still
    has the lost records. The first batch of a leader may contain the leader's log start offset, and
    then begins below the end of a follower that was truncated there. Source: UnifiedLog.append
    throws UnexpectedAppendOffsetException, AbstractFetcherThread.markPartitionFailed.
    """
    partition = _replica_on(node, key)
    may_not_follow = history.forks or history.begins_inside_batches
    if not may_not_follow or node.broker is None or partition is None or partition.is_leader:
        return False
    leader = None if history.state is None else _replica_on(nodes.get(history.state.leader), key)
    end, is_compacted = partition.log.log_end_offset, history.keys is not None
    if leader is None or not may_not_fit(leader, end, is_compacted=is_compacted):
        return False
    return not _is_fetched(key, node)


def may_not_fit(leader: Partition, end_offset: int, *, is_compacted: bool) -> bool:
    """Return True if `end_offset`, a follower's log end, may be inside a batch of the leader.

    Such a follower can append nothing more: its log rejects a batch that begins below its end. Also
    True if the leader has cleaned or deleted the batch.
    """
    if is_compacted or end_offset < leader.log.log_start_offset:
        return True
    return any(batch.base_offset < end_offset for batch in content_batches(leader, end_offset)[:1])


def _metadata_reasons(broker: Broker, invariants: Invariants) -> list[str]:
    """Return the differences between a broker's metadata cache and the store, as text.

    Empty if there are none: the cluster is then quiescent in this respect.
    """
    cache, who = broker.metadata_cache, f"broker {broker.broker_id}"
    causes = []
    for key in invariants.topics.rows:
        state, cached = invariants.history(key).state, cache.partition(key)
        if state is None or cached is None:
            causes.append(f"{who} does not know {key}")
        elif (cached.leader_id, cached.leader_epoch, set(cached.isr)) != (
            state.leader,
            state.leader_epoch,
            set(state.isr),
        ):
            causes.append(f"{who} takes {key} for {cached}, stored {state}")
    unknown = sorted(set(cache.topics) - set(invariants.topics.by_name))
    return causes + [f"{who} believes in {name}" for name in unknown]


def _settings_reasons(broker: Broker, invariants: Invariants) -> list[str]:
    """Return the differences between the topic configs of replicas and the store, as text."""
    causes = []
    for key, partition in broker.storage.replica_manager.partitions.items():
        stored = invariants.configs.get(key.topic, {})
        believed = {
            MIN_ISR: partition.config.min_insync_replicas,
            "retention.ms": partition.log.config.retention_ms,
            "retention.bytes": partition.log.config.retention_bytes,
        }
        for name, value in believed.items():
            if name in stored and int(stored[name]) != value:
                causes.append(f"broker {broker.broker_id} takes {name} of {key} for {value}")
    return causes


def _controller_reasons(
    context: ControllerContext,
    invariants: Invariants,
    stuck: set[TopicPartition],
    *,
    is_last_check: bool,
) -> list[str]:
    """Return the differences between the controller's context and the store, as text.

    A controller updates its state of a partition when a replica outside the ISR stops, but writes
    nothing: the store gets the new controller epoch with the next change, which may never happen.
    Source: ReplicaStateMachine.doRemoveReplicasFromIsr.
    """
    topics, causes = invariants.topics, []
    if sorted(context.partitions()) != sorted(topics.rows):
        causes.append(f"the controller knows {sorted(context.partitions())}")
    for key, row in topics.rows.items():
        leadership, state = context.leaderships.get(key), invariants.history(key).state
        expected = [state]
        if is_last_check and state is not None:
            expected.append(state._replace(controller_epoch=context.epoch))
        if leadership is None or leadership.state not in expected:
            causes.append(f"the controller takes {key} for {leadership}")
        if context.assignment(key) != row:
            causes.append(f"the controller assigns {key} to {context.assignment(key)}, not {row}")
    waiting: list[object] = [*(context.reassigning - stuck)]
    waiting += context.to_delete - {key.topic for key in stuck}
    waiting += [p for p, at in context.partition_phases.items() if at is not PartitionPhase.ONLINE]
    waiting += [
        replica
        for replica, phase in context.replica_phases.items()
        if phase is not ReplicaPhase.ONLINE and replica.partition not in stuck
    ]
    return causes + [f"the controller is not done with {what}" for what in waiting]
