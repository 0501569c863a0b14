"""Compares the declared state with the current one, and returns the steps between them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from engine.declared.faults import StateFault
from engine.declared.pruning import undeclared_broker_steps, undeclared_steps
from engine.declared.resources import (
    ALL_BROKERS,
    CurrentState,
    DeclaredState,
    DeclaredUser,
    ResourceKind,
)
from engine.declared.step_making import (
    changed_settings,
    entity_text,
    quota_step,
    rule_step,
    settings_step,
    settings_to_reset,
)
from engine.declared.steps import PropertyChange, SetCredential, StateStep, StepAction
from engine.declared.topic_comparison import compare_topic
from engine.security.scram import ScramMechanism


class StateComparison(NamedTuple):
    """The steps to the declared state, and what of it is impossible."""

    steps: Sequence[StateStep]
    faults: Sequence[StateFault]


def compare(
    declared: DeclaredState, cluster: CurrentState, *, prunes: bool = False
) -> StateComparison:
    """Return the steps from the current to the declared state, in the order of their execution.

    Without `prunes` nothing changes that is not declared. Also returns the faults that make a
    declared state impossible.
    """
    topics = [
        compare_topic(name, topic, cluster, prunes=prunes)
        for name, topic in sorted(declared.topics.items())
    ]
    broker_steps, broker_faults = _compare_brokers(declared, cluster, prunes=prunes)
    phases: list[StateStep | None] = [
        *broker_steps,
        *(of_topic.created for of_topic, _ in topics),
        *(of_topic.grown for of_topic, _ in topics),
        *(of_topic.configured for of_topic, _ in topics),
        *_user_steps(declared, cluster),
        *_quota_steps(declared, cluster),
        *(rule_step(StepAction.CREATE, r) for r in sorted(declared.acls - cluster.acls)),
        *(of_topic.moved for of_topic, _ in topics),
        *(of_topic.configured_later for of_topic, _ in topics),
        *(undeclared_steps(declared, cluster) if prunes else ()),
    ]
    faults = [*broker_faults, *(fault for _, of_topic in topics for fault in of_topic)]
    return StateComparison([step for step in phases if step is not None], faults)


def _compare_brokers(
    declared: DeclaredState, cluster: CurrentState, *, prunes: bool
) -> tuple[list[StateStep], list[StateFault]]:
    """Return the steps to the declared settings of brokers, and a fault for each unknown broker."""
    steps: list[StateStep] = []
    faults: list[StateFault] = []
    for name, settings in sorted(
        declared.brokers.items(), key=lambda item: _order_of_broker(item[0])
    ):
        current = cluster.brokers.get(name)
        if current is None:
            faults.append(StateFault(ResourceKind.BROKERS, name, "no such broker is alive"))
            continue
        wanted = changed_settings(settings, current)
        if prunes:
            wanted |= settings_to_reset(settings, current, is_shared=name == ALL_BROKERS)
        step = settings_step(ResourceKind.BROKERS, name, wanted, current)
        steps += [] if step is None else [step]
    if prunes:
        steps += undeclared_broker_steps(declared, cluster)
    return steps, faults


def _order_of_broker(name: str) -> int:
    """Return a broker id as sort key, −1 for all brokers, whose settings come first."""
    return -1 if name == ALL_BROKERS else int(name)


def _user_steps(declared: DeclaredState, cluster: CurrentState) -> Iterator[StateStep]:
    """Yield a step for each credential that a user lacks or has with other iterations."""
    for name, user in sorted(declared.users.items()):
        current = cluster.users.get(name, {})
        for mechanism, iterations in sorted(user.mechanisms.items()):
            if mechanism not in current or iterations not in (None, current[mechanism]):
                yield _credential_step(name, user, mechanism, current.get(mechanism))


def _credential_step(
    name: str, user: DeclaredUser, mechanism: ScramMechanism, current: int | None
) -> StateStep:
    """Return the step that sets a SCRAM credential.

    `current` is the present number of iterations, None without the credential.
    """
    iterations = user.mechanisms[mechanism]
    before = None if current is None else f"{current} iterations"
    after = "a password" if iterations is None else f"{iterations} iterations"
    return StateStep(
        StepAction.CREATE if current is None else StepAction.CHANGE,
        ResourceKind.USERS,
        name,
        (PropertyChange(mechanism.key, before, after),),
        SetCredential(name, mechanism, iterations, user.password),
    )


def _quota_steps(declared: DeclaredState, cluster: CurrentState) -> Iterator[StateStep]:
    """Yield a step for each entity of which a declared quota differs in the cluster."""
    for entity, quotas in sorted(declared.quotas.items(), key=lambda item: entity_text(item[0])):
        current = cluster.quotas.get(entity, {})
        wanted = {key: value for key, value in sorted(quotas.items()) if current.get(key) != value}
        if wanted:
            action = StepAction.CHANGE if current else StepAction.CREATE
            yield quota_step(action, entity, wanted, current)
