"""The throttles that kafka-reassign-partitions sets and removes.

| setting | set by --execute | removed by --verify and --cancel | |---|---|---| | a topic's leader
list | sources of its moves, also of those in progress | on topics of the file | | a topic's
follower list | destinations of its moves | on topics of the file | | a broker's rates between
brokers | on sources and destinations | on every broker | | a broker's rate between directories | on
brokers whose replica gets a directory | on every broker |

Earlier settings are overwritten and not restored, as by Kafka's tool. `kctl reassign` restores
them.

Source: calculateProposedMoveMap, modifyReassignmentThrottle, clearAllThrottles of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.config_admin import (
    ConfigChange,
    ConfigOp,
    ConfigResourceType,
    Resource,
    alter_configs,
)
from engine.client.reassignments import OngoingReassignment
from engine.errors import EngineError
from engine.model import TopicPartition
from engine.reassign.throttles import FOLLOWER_LIST, LEADER_LIST, RATES


class MovedPartition(NamedTuple):
    """Source and destination brokers of a partition's move."""

    sources: frozenset[int]
    destinations: frozenset[int]


Moves = dict[TopicPartition, MovedPartition]


def proposed_moves(
    ongoing: Mapping[TopicPartition, OngoingReassignment],
    targets: Mapping[TopicPartition, Sequence[int]],
    current: Mapping[TopicPartition, Sequence[int]],
) -> Moves:
    """Return which replicas are copied from where to where: by reassignments, and by a file.

    The file's targets take precedence. The throttles are set for all of them.
    """
    moves = {
        key: MovedPartition(frozenset(move.original), frozenset(move.adding))
        for key, move in ongoing.items()
    }
    for key, target in targets.items():
        sources = moves[key].sources if key in moves else frozenset(current[key])
        moves[key] = MovedPartition(sources, frozenset(target) - sources)
    return moves


def throttled_replicas_by_topic(moves: Moves) -> dict[str, tuple[str, str]]:
    """Return (leader.replication.throttled.replicas, the followers' list) for each topic."""
    lists: dict[str, tuple[set[str], set[str]]] = {}
    for key, move in moves.items():
        leaders, followers = lists.setdefault(key.topic, (set(), set()))
        leaders.update(f"{key.partition}:{id_}" for id_ in move.sources)
        followers.update(f"{key.partition}:{id_}" for id_ in move.destinations - move.sources)
    return {
        topic: (",".join(sorted(leaders)), ",".join(sorted(followers)))
        for topic, (leaders, followers) in lists.items()
    }


def set_move_throttles(client: KafkaClient, moves: Moves, rate: int) -> None:
    """Set throttled replicas on topics, and the rate in bytes/s on brokers that take part.

    All are tried; raises the first error.
    """
    changes = {
        Resource(ConfigResourceType.TOPIC, topic): [
            ConfigChange(ConfigOp.SET, LEADER_LIST, leaders),
            ConfigChange(ConfigOp.SET, FOLLOWER_LIST, followers),
        ]
        for topic, (leaders, followers) in sorted(throttled_replicas_by_topic(moves).items())
    }
    _alter_each(client, changes)
    broker_ids = {id_ for move in moves.values() for id_ in (*move.sources, *move.destinations)}
    _alter_each(client, _rates(broker_ids, RATES[:2], rate))


def set_log_dir_throttle(client: KafkaClient, broker_ids: Iterable[int], rate: int) -> None:
    """Set the rate (bytes/s) of copies between log directories on brokers.

    All are tried; raises the first error.
    """
    _alter_each(client, _rates(broker_ids, RATES[2:], rate))


def clear_broker_throttles(client: KafkaClient, broker_ids: Iterable[int]) -> None:
    """Delete the throttle rates of the brokers.

    All are tried, even after failures; raises the first error.
    """
    changes = [ConfigChange(ConfigOp.DELETE, name) for name in RATES]
    _alter_each(client, {_broker(id_): changes for id_ in broker_ids})


def clear_topic_throttles(client: KafkaClient, topics: Iterable[str]) -> None:
    """Delete the lists of throttled replicas of the topics.

    All are tried, even after failures; raises the first error.
    """
    changes = [ConfigChange(ConfigOp.DELETE, name) for name in (LEADER_LIST, FOLLOWER_LIST)]
    _alter_each(client, {Resource(ConfigResourceType.TOPIC, topic): changes for topic in topics})


def _rates(
    broker_ids: Iterable[int], names: Sequence[str], rate: int
) -> dict[Resource, list[ConfigChange]]:
    """Return for each broker the changes that set these settings to a rate in bytes/s."""
    changes = [ConfigChange(ConfigOp.SET, name, str(rate)) for name in names]
    return {_broker(id_): changes for id_ in sorted(set(broker_ids))}


def _broker(broker_id: int) -> Resource:
    """Return a broker as a resource with settings."""
    return Resource(ConfigResourceType.BROKER, str(broker_id))


def _alter_each(client: KafkaClient, changes: Mapping[Resource, Sequence[ConfigChange]]) -> None:
    """Change resources one by one, even after failures; raises the first error."""
    failures: list[EngineError] = []
    failure: EngineError | None
    for resource, wanted in changes.items():
        try:
            failure = alter_configs(client, {resource: wanted})[resource]
        except EngineError as error:
            failure = error
        if failure is not None:
            failures.append(failure)
    if failures:
        raise failures[0]
