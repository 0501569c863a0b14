"""States of clusters and files in few words, for the tests of their comparison."""

from __future__ import annotations

from engine.declared.comparison import compare
from engine.declared.resources import (
    ClusterSetting,
    ClusterTopic,
    CurrentState,
    DeclaredState,
    ResourceKind,
)
from engine.declared.steps import StateStep
from engine.security.acls import (
    AccessEntry,
    AclBinding,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    PatternType,
)

BROKERS = frozenset((1, 2, 3))
EVERY_KIND = frozenset(ResourceKind)


def topic(*placement: tuple[int, ...], internal: bool = False, **settings: str) -> ClusterTopic:
    """Return a topic; its settings have `_` for `.`, and are set."""
    found = {
        name.replace("_", "."): ClusterSetting(value, None, is_set=True)
        for name, value in settings.items()
    }
    return ClusterTopic(placement, found, internal)


def rule(user: str, operation: AclOperation = AclOperation.READ) -> AclBinding:
    pattern = AclPattern(AclResource.TOPIC, "t", PatternType.LITERAL)
    return AclBinding(pattern, AccessEntry(f"User:{user}", "*", operation, AclPermission.ALLOW))


def steps(
    declared: DeclaredState, cluster: CurrentState, *, prunes: bool = False
) -> list[StateStep]:
    """Return the steps of states without faults."""
    comparison = compare(declared, cluster, prunes=prunes)
    assert not comparison.faults
    return list(comparison.steps)


def told(found: list[StateStep]) -> list[str]:
    """Return steps as words: action, kind, name, properties."""
    return [
        " ".join(
            (
                step.action.value,
                step.kind.value,
                step.name or "-",
                *(f"{c.property}:{c.before}>{c.after}" for c in step.changes),
            )
        )
        for step in found
    ]
