"""Steps that delete the resources of a cluster that no file declares. Pure.

Only declared kinds are considered. Kafka's own topics are never deleted: those that brokers call
internal, and all whose names begin with `__`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from engine.declared.resources import ALL_BROKERS, CurrentState, DeclaredState, ResourceKind
from engine.declared.step_making import (
    entity_text,
    quota_step,
    rule_step,
    settings_step,
    settings_to_reset,
)
from engine.declared.steps import (
    DeleteCredential,
    DeleteTopic,
    PropertyChange,
    StateStep,
    StepAction,
)

_OF_KAFKA: Final = "__"


def undeclared_steps(declared: DeclaredState, cluster: CurrentState) -> list[StateStep]:
    """Return the steps that delete undeclared resources, in the order of their execution.

    Resources of a kind that no file declares are kept.
    """
    steps: list[StateStep] = []
    if ResourceKind.ACLS in declared.kinds:
        surplus = sorted(cluster.acls - declared.acls)
        steps += [rule_step(StepAction.DELETE, rule) for rule in surplus]
    if ResourceKind.QUOTAS in declared.kinds:
        steps += _quota_steps(declared, cluster)
    if ResourceKind.USERS in declared.kinds:
        steps += _credential_steps(declared, cluster)
    if ResourceKind.TOPICS in declared.kinds:
        steps += _topic_steps(declared, cluster)
    return steps


def undeclared_broker_steps(declared: DeclaredState, cluster: CurrentState) -> list[StateStep]:
    """Return the steps that unset the settings of brokers that no file names."""
    if ResourceKind.BROKERS not in declared.kinds:
        return []
    steps = []
    for name, settings in sorted(cluster.brokers.items()):
        if name not in declared.brokers:
            surplus = settings_to_reset({}, settings, is_shared=name == ALL_BROKERS)
            steps.append(settings_step(ResourceKind.BROKERS, name, surplus, settings))
    return [step for step in steps if step is not None]


def _quota_steps(declared: DeclaredState, cluster: CurrentState) -> Iterator[StateStep]:
    """Yield a step for each entity that has quotas which no file declares."""
    for entity, current in sorted(cluster.quotas.items(), key=lambda item: entity_text(item[0])):
        wanted = declared.quotas.get(entity, {})
        surplus = {key: None for key in sorted(current) if key not in wanted}
        if surplus:
            yield quota_step(StepAction.DELETE, entity, surplus, current)


def _credential_steps(declared: DeclaredState, cluster: CurrentState) -> Iterator[StateStep]:
    """Yield a step for each SCRAM credential that no file declares."""
    for name, mechanisms in sorted(cluster.users.items()):
        user = declared.users.get(name)
        for mechanism, iterations in sorted(mechanisms.items()):
            if user is None or mechanism not in user.mechanisms:
                change = PropertyChange(mechanism.key, f"{iterations} iterations", None)
                operation = DeleteCredential(name, mechanism)
                yield StateStep(StepAction.DELETE, ResourceKind.USERS, name, (change,), operation)


def _topic_steps(declared: DeclaredState, cluster: CurrentState) -> Iterator[StateStep]:
    """Yield a step for each topic that is neither declared, nor internal, nor kept."""
    kept = [re.compile(pattern) for pattern in declared.kept_topics]
    for name, topic in sorted(cluster.topics.items()):
        if name in declared.topics or topic.is_internal or name.startswith(_OF_KAFKA):
            continue
        if any(pattern.fullmatch(name) for pattern in kept):
            continue
        change = PropertyChange("partitions", str(topic.partitions), None)
        yield StateStep(StepAction.DELETE, ResourceKind.TOPICS, name, (change,), DeleteTopic(name))
