"""Steps that bring a cluster to the declared state, with their changed properties.

| order | steps | why there |
|---|---|---|
| 1 | settings of all brokers, of single brokers | what is created later begins under them |
| 2 | topics created, partitions added, settings of topics | |
| 3 | users, quotas | |
| 4 | access rules created | before others are deleted, so that nobody is without both |
| 5 | replicas moved | the longest: nothing else waits for it |
| 6 | settings that need the moved replicas (`min.insync.replicas` above today's replicas) | |
| 7 | access rules, quotas, users, topics deleted | only if all before it went well |
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from engine.declared.resources import DeclaredPassword, Entity, Placement, ResourceKind, Settings
from engine.security.acls import AclBinding
from engine.security.scram import ScramMechanism


class StepAction(Enum):
    """The action of a step on its resource."""

    CREATE = "create"
    CHANGE = "change"
    MOVE = "move"
    DELETE = "delete"


class PropertyChange(NamedTuple):
    """One property that a step changes; None is: not there, or its default."""

    property: str
    before: str | None
    after: str | None


class CreateTopic(NamedTuple):
    """Create a topic; counts of None are the brokers' defaults."""

    topic: str
    partitions: int | None
    replication_factor: int | None
    placement: Placement
    settings: Mapping[str, str]


class AddPartitions(NamedTuple):
    """Add partitions to a topic; `placement` has the replicas of those that are added, or none."""

    topic: str
    total: int
    placement: Placement


class ChangeSettings(NamedTuple):
    """Set settings of a topic or broker, and unset those of None."""

    kind: ResourceKind
    resource: str
    settings: Settings


class SetCredential(NamedTuple):
    """Give a user a password for a mechanism; iterations of None are the fewest allowed."""

    user: str
    mechanism: ScramMechanism
    iterations: int | None
    password: DeclaredPassword | None


class ChangeQuotas(NamedTuple):
    """Set quotas of an entity, and remove those of None."""

    entity: Entity
    quotas: Mapping[str, float | None]


class CreateRule(NamedTuple):
    """Create an access rule."""

    rule: AclBinding


class MoveReplicas(NamedTuple):
    """Have other replicas of a topic: so many of each partition, or these."""

    topic: str
    replication_factor: int | None
    placement: Placement


class DeleteRule(NamedTuple):
    """Delete an access rule."""

    rule: AclBinding


class DeleteCredential(NamedTuple):
    """Delete the password of a user for a mechanism."""

    user: str
    mechanism: ScramMechanism


class DeleteTopic(NamedTuple):
    """Delete a topic with all its records."""

    topic: str


Operation = (
    CreateTopic
    | AddPartitions
    | ChangeSettings
    | SetCredential
    | ChangeQuotas
    | CreateRule
    | MoveReplicas
    | DeleteRule
    | DeleteCredential
    | DeleteTopic
)


class StateStep(NamedTuple):
    """One step: its action, its resource, and the operation that performs it.

    `name` is empty for access rules, whose words are those of the command line.
    """

    action: StepAction
    kind: ResourceKind
    name: str
    changes: tuple[PropertyChange, ...]
    operation: Operation

    @property
    def deletes(self) -> bool:
        """Return True if what the step takes away cannot be had back from the declared state."""
        return self.action is StepAction.DELETE
