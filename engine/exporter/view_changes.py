"""The changes between two snapshots of a cluster.

| change | of | before, after |
|---|---|---|
| topic-created, topic-deleted | a topic; both if it has another id than before | – |
| leader-changed | a partition | broker ids, none without a leader |
| isr-shrank, isr-grew | a partition | the in-sync replicas |
| move-began, move-ended | a partition | – |
| broker-lost, broker-back | a broker that is not registered any more, or again | – |
| controller-changed | the cluster, except with KRaft | broker ids, none without one |

An ISR that lost one replica and gained another has both changes. A change that was reverted between
two snapshots is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from engine.client.metadata import NO_BROKER, ClusterView, PartitionView, TopicView
from engine.kafka_errors import NONE
from engine.model import TopicPartition


class ChangeKind(Enum):
    """The kinds of changes; see the table of the module."""

    TOPIC_CREATED = "topic-created"
    TOPIC_DELETED = "topic-deleted"
    LEADER_CHANGED = "leader-changed"
    ISR_SHRANK = "isr-shrank"
    ISR_GREW = "isr-grew"
    MOVE_BEGAN = "move-began"
    MOVE_ENDED = "move-ended"
    BROKER_LOST = "broker-lost"
    BROKER_BACK = "broker-back"
    CONTROLLER_CHANGED = "controller-changed"


class ClusterSnapshot(NamedTuple):
    """A cluster at one moment: its topics, and the partitions that are being reassigned.

    `moving` is None if it is unknown: then no move is seen to begin or end.
    """

    view: ClusterView
    moving: frozenset[TopicPartition] | None


class Change(NamedTuple):
    """A change; `before` and `after` are broker ids."""

    kind: ChangeKind
    topic: str | None = None
    partition: int | None = None
    broker_id: int | None = None
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()


def newest_snapshot(before: ClusterSnapshot, after: ClusterSnapshot) -> ClusterSnapshot:
    """Return the later snapshot, with those parts of the earlier one that are more recent.

    These are reassignments that the controller did not return, topics whose metadata is an error,
    and partitions with a higher leader epoch: the later response was from a broker with outdated
    metadata.
    """
    topics = {}
    for name, new in after.view.topics.items():
        old = before.view.topics.get(name)
        topics[name] = new if old is None else _newest_topic(old, new)
    moving = before.moving if after.moving is None else after.moving
    return ClusterSnapshot(after.view._replace(topics=topics), moving)


def _newest_topic(old: TopicView, new: TopicView) -> TopicView:
    """Return the newer state of each partition, by leader epoch.

    The later response may be of a broker with outdated metadata. An error in it returns `old`,
    another topic id returns `new`.
    """
    if new.error_code != NONE:
        return old
    if old.topic_id != new.topic_id:
        return new
    known = {row.partition: row for row in old.partitions}
    if all(
        row.leader_epoch >= known.get(row.partition, row).leader_epoch for row in new.partitions
    ):
        return new
    rows = [
        max(row, known.get(row.partition, row), key=lambda one: one.leader_epoch)
        for row in new.partitions
    ]
    return new._replace(partitions=tuple(rows))


def changes_between(before: ClusterSnapshot, after: ClusterSnapshot) -> list[Change]:
    """Return the changes from one snapshot of a cluster to a later one.

    They are in the order of controller, brokers, topics and partitions, reassignments.
    """
    return [
        *_controller_changes(before.view, after.view),
        *_broker_changes(before.view, after.view),
        *_topic_changes(before.view, after.view),
        *_move_changes(before, after),
    ]


def _controller_changes(before: ClusterView, after: ClusterView) -> Iterator[Change]:
    """Yield the change of the controller, if both views know it."""
    if not (before.is_controller_known and after.is_controller_known):
        return
    if before.controller_id != after.controller_id:
        ids = (_known(before.controller_id), _known(after.controller_id))
        yield Change(ChangeKind.CONTROLLER_CHANGED, before=ids[0], after=ids[1])


def _known(broker_id: int) -> tuple[int, ...]:
    """Return a broker id as a tuple, an empty tuple for NO_BROKER."""
    return () if broker_id == NO_BROKER else (broker_id,)


def _broker_changes(before: ClusterView, after: ClusterView) -> Iterator[Change]:
    """Yield brokers that are gone, then those that are new or back."""
    for broker_id in sorted(before.brokers.keys() - after.brokers.keys()):
        yield Change(ChangeKind.BROKER_LOST, broker_id=broker_id)
    for broker_id in sorted(after.brokers.keys() - before.brokers.keys()):
        yield Change(ChangeKind.BROKER_BACK, broker_id=broker_id)


def _topic_changes(before: ClusterView, after: ClusterView) -> Iterator[Change]:
    """Yield the changes of topics; a topic with another id was deleted and created again."""
    for name in sorted(before.topics.keys() | after.topics.keys()):
        old, new = before.topics.get(name), after.topics.get(name)
        if old is not None and new is not None and old.topic_id == new.topic_id:
            yield from _partitions_changes(old, new)
            continue
        if old is not None:
            yield Change(ChangeKind.TOPIC_DELETED, name)
        if new is not None:
            yield Change(ChangeKind.TOPIC_CREATED, name)


def _partitions_changes(old: TopicView, new: TopicView) -> Iterator[Change]:
    """Yield the changes of leaders and ISRs of the partitions that are in both views of a topic."""
    known = {row.partition: row for row in old.partitions}
    for row in new.partitions:
        if row.partition in known:
            yield from _partition_changes(new.name, known[row.partition], row)


def _partition_changes(topic: str, old: PartitionView, new: PartitionView) -> Iterator[Change]:
    """Yield the changes of a partition's leader and ISR."""
    if old.leader != new.leader:
        leaders = (_known(old.leader), _known(new.leader))
        kind = ChangeKind.LEADER_CHANGED
        yield Change(kind, topic, new.partition, before=leaders[0], after=leaders[1])
    if set(old.isr) - set(new.isr):
        kind = ChangeKind.ISR_SHRANK
        yield Change(kind, topic, new.partition, before=old.isr, after=new.isr)
    if set(new.isr) - set(old.isr):
        kind = ChangeKind.ISR_GREW
        yield Change(kind, topic, new.partition, before=old.isr, after=new.isr)


def _move_changes(before: ClusterSnapshot, after: ClusterSnapshot) -> Iterator[Change]:
    """Yield the reassignments that ended, then those that began, if both snapshots have them."""
    if before.moving is None or after.moving is None:
        return
    for key in sorted(before.moving - after.moving):
        yield Change(ChangeKind.MOVE_ENDED, key.topic, key.partition)
    for key in sorted(after.moving - before.moving):
        yield Change(ChangeKind.MOVE_BEGAN, key.topic, key.partition)
