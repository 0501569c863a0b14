"""Steps to one declared topic, in groups by what has to be done before them. Pure.

A `min.insync.replicas` above the replicas that there are would have brokers refuse `acks=all`: it
is set once the replicas are there. One that falls is set before replicas are taken away.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from engine.declared.faults import StateFault
from engine.declared.resources import (
    ClusterTopic,
    CurrentState,
    DeclaredTopic,
    Placement,
    ResourceKind,
)
from engine.declared.step_making import (
    changed_settings,
    settings_step,
    settings_to_reset,
    shown_settings,
)
from engine.declared.steps import (
    AddPartitions,
    CreateTopic,
    MoveReplicas,
    PropertyChange,
    StateStep,
    StepAction,
)

_MIN_ISR: Final = "min.insync.replicas"
_GROWS: Final = "partitions are only added: delete the topic and create it again, or declare {}"


class TopicSteps(NamedTuple):
    """The steps of one topic, in their order; None where there is nothing to do."""

    created: StateStep | None = None
    grown: StateStep | None = None
    configured: StateStep | None = None
    moved: StateStep | None = None
    #: Settings that need the replicas that a move brings.
    configured_later: StateStep | None = None


def compare_topic(
    name: str, declared: DeclaredTopic, cluster: CurrentState, *, prunes: bool
) -> tuple[TopicSteps, list[StateFault]]:
    """Return the steps to a declared topic, and the parts of it that are impossible."""
    current = cluster.topics.get(name)
    faults = _faults(name, declared, current, cluster.broker_ids)
    if faults:
        return TopicSteps(), faults
    if current is None:
        return _creation(name, declared), []
    move = _move(name, declared, current)
    wanted = changed_settings(declared.settings, current.settings)
    if prunes:
        wanted |= settings_to_reset(declared.settings, current.settings)
    later = {key: wanted.pop(key) for key in _waiting(wanted, current, is_moving=move is not None)}
    topics = ResourceKind.TOPICS
    steps = TopicSteps(
        grown=_growth(name, declared, current),
        configured=settings_step(topics, name, wanted, current.settings),
        moved=move,
        configured_later=settings_step(topics, name, later, current.settings),
    )
    return steps, []


def _waiting(wanted: dict[str, str | None], current: ClusterTopic, *, is_moving: bool) -> list[str]:
    """Return the settings that are to wait for the move."""
    value = wanted.get(_MIN_ISR)
    if not is_moving or value is None or not value.isdecimal():
        return []
    fewest = min(map(len, current.placement), default=0)
    return [_MIN_ISR] if int(value) > fewest else []


def _creation(name: str, declared: DeclaredTopic) -> TopicSteps:
    """Return the steps to a topic that does not exist.

    Brokers create topics with one replication factor: where partitions declare different ones, the
    further replicas are added by a reassignment.
    """
    fewest = min(map(len, declared.placement), default=0)
    placement = tuple(replicas[:fewest] for replicas in declared.placement)
    settings = {key: value for key, value in declared.settings.items() if value is not None}
    partitions = declared.partitions or len(declared.placement) or None
    counts = {"partitions": partitions, "replication_factor": declared.replication_factor}
    changes = [PropertyChange(k, None, str(count)) for k, count in counts.items() if count]
    if placement:
        changes.append(PropertyChange("placement", None, placement_text(placement)))
    created = StateStep(
        StepAction.CREATE,
        ResourceKind.TOPICS,
        name,
        (*changes, *shown_settings(settings)),
        CreateTopic(name, partitions, declared.replication_factor, placement, settings),
    )
    return TopicSteps(created, moved=_move(name, declared, ClusterTopic(placement, {})))


def _growth(name: str, declared: DeclaredTopic, current: ClusterTopic) -> StateStep | None:
    """Return the step that adds partitions, None if the topic has enough."""
    wanted = declared.partitions or len(declared.placement)
    if wanted <= current.partitions:
        return None
    change = PropertyChange("partitions", str(current.partitions), str(wanted))
    # Brokers create partitions with as many replicas as the others have, and no other number.
    added = declared.placement[current.partitions :] if _fits(declared, current) else ()
    return StateStep(
        StepAction.CHANGE, ResourceKind.TOPICS, name, (change,), AddPartitions(name, wanted, added)
    )


def _fits(declared: DeclaredTopic, current: ClusterTopic) -> bool:
    """Return True if declared places of partitions to add have today's number of replicas."""
    added = declared.placement[current.partitions :]
    return all(len(replicas) == current.replication_factor for replicas in added)


def _move(name: str, declared: DeclaredTopic, current: ClusterTopic) -> StateStep | None:
    """Return the step that moves replicas of partitions that are there once it is grown."""
    if declared.placement:
        wanted = declared.placement
        if len(wanted) > current.partitions and _fits(declared, current):
            wanted = wanted[: current.partitions]
        if wanted == current.placement:
            return None
        before, after = placement_text(current.placement), placement_text(wanted)
        change = PropertyChange("placement", before, after)
        operation = MoveReplicas(name, None, wanted)
    else:
        factor = declared.replication_factor
        if factor in (None, current.replication_factor) or not current.placement:
            return None
        change = PropertyChange("replication_factor", current.replicas_text, str(factor))
        operation = MoveReplicas(name, factor, ())
    return StateStep(StepAction.MOVE, ResourceKind.TOPICS, name, (change,), operation)


def placement_text(placement: Placement) -> str:
    """Return the replicas of partitions as one word: `1:2,2:3`."""
    return ",".join(":".join(map(str, replicas)) for replicas in placement)


def _faults(
    name: str, declared: DeclaredTopic, current: ClusterTopic | None, broker_ids: frozenset[int]
) -> list[StateFault]:
    """Return why a declared topic is impossible: fewer partitions, brokers unknown or too few."""
    wanted = declared.partitions or len(declared.placement)
    reasons: list[tuple[str, str | None]] = []
    if current is not None and 0 < wanted < current.partitions:
        reasons.append(
            (
                f"has {current.partitions} partitions, more than the declared {wanted}",
                _GROWS.format(current.partitions),
            )
        )
    unknown = sorted({id_ for replicas in declared.placement for id_ in replicas} - broker_ids)
    # Replicas that are on a dead broker already may stay declared there.
    held = {id_ for replicas in current.placement for id_ in replicas} if current else set()
    unknown = [id_ for id_ in unknown if id_ not in held]
    if unknown:
        ids = ", ".join(map(str, unknown))
        reasons.append((f"placement: no such broker is alive: {ids}", None))
    factor = declared.replication_factor
    is_more = factor is not None and (current is None or factor != current.replication_factor)
    if factor is not None and is_more and factor > len(broker_ids):
        alive = len(broker_ids)
        reasons.append((f"replication_factor {factor}: only {alive} brokers are alive", None))
    return [StateFault(ResourceKind.TOPICS, name, *reason) for reason in reasons]
