"""The steps to a declared topic, grouped by what must precede them. Pure.

With a `min.insync.replicas` above the present number of replicas, brokers would refuse `acks=all`:
it is set after the replicas are added. A lower value is set before replicas are removed.
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
    """The steps for a topic in order; None where nothing has to be done."""

    created: StateStep | None = None
    grown: StateStep | None = None
    configured: StateStep | None = None
    moved: StateStep | None = None
    #: Settings that need the replicas that a move adds.
    configured_later: StateStep | None = None


def compare_topic(
    name: str, declared: DeclaredTopic, cluster: CurrentState, *, prunes: bool
) -> tuple[TopicSteps, list[StateFault]]:
    """Return the steps to a declared topic, and the faults that make it impossible.

    With faults there are no steps.
    """
    current = cluster.topics.get(name)
    faults = _find_faults(name, declared, current, cluster.broker_ids)
    if faults:
        return TopicSteps(), faults
    if current is None:
        return _creation_steps(name, declared), []
    move = _move_step(name, declared, current)
    wanted = changed_settings(declared.settings, current.settings)
    if prunes:
        wanted |= settings_to_reset(declared.settings, current.settings)
    later = {
        key: wanted.pop(key)
        for key in _settings_to_delay(wanted, current, is_moving=move is not None)
    }
    topics = ResourceKind.TOPICS
    steps = TopicSteps(
        grown=_growth_step(name, declared, current),
        configured=settings_step(topics, name, wanted, current.settings),
        moved=move,
        configured_later=settings_step(topics, name, later, current.settings),
    )
    return steps, []


def _settings_to_delay(
    wanted: dict[str, str | None], current: ClusterTopic, *, is_moving: bool
) -> list[str]:
    """Return the names of the settings that have to wait for the move.

    That is min.insync.replicas, if it exceeds the present number of replicas.
    """
    value = wanted.get(_MIN_ISR)
    if not is_moving or value is None or not value.isdecimal():
        return []
    fewest = min(map(len, current.placement), default=0)
    return [_MIN_ISR] if int(value) > fewest else []


def _creation_steps(name: str, declared: DeclaredTopic) -> TopicSteps:
    """Return the steps to a topic that does not exist yet.

    Brokers create topics with the same number of replicas for each partition: if the declared
    numbers differ, a reassignment adds the others.
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
    return TopicSteps(created, moved=_move_step(name, declared, ClusterTopic(placement, {})))


def _growth_step(name: str, declared: DeclaredTopic, current: ClusterTopic) -> StateStep | None:
    """Return the step that adds partitions, None if there are enough."""
    wanted = declared.partitions or len(declared.placement)
    if wanted <= current.partitions:
        return None
    change = PropertyChange("partitions", str(current.partitions), str(wanted))
    # Brokers add partitions only with as many replicas as the present ones have.
    added = (
        declared.placement[current.partitions :]
        if _fits_replication_factor(declared, current)
        else ()
    )
    return StateStep(
        StepAction.CHANGE, ResourceKind.TOPICS, name, (change,), AddPartitions(name, wanted, added)
    )


def _fits_replication_factor(declared: DeclaredTopic, current: ClusterTopic) -> bool:
    """Return True if the partitions to add have as many declared replicas as the present ones."""
    added = declared.placement[current.partitions :]
    return all(len(replicas) == current.replication_factor for replicas in added)


def _move_step(name: str, declared: DeclaredTopic, current: ClusterTopic) -> StateStep | None:
    """Return the step that moves the replicas of the present partitions, None if none moves."""
    if declared.placement:
        wanted = declared.placement
        if len(wanted) > current.partitions and _fits_replication_factor(declared, current):
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
    """Return the replicas of partitions as text: `1:2,2:3`."""
    return ",".join(":".join(map(str, replicas)) for replicas in placement)


def _find_faults(
    name: str, declared: DeclaredTopic, current: ClusterTopic | None, broker_ids: frozenset[int]
) -> list[StateFault]:
    """Return why a topic is impossible: too many partitions now, unknown or too few brokers."""
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
    # A dead broker may be declared for the replicas that it has already.
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
