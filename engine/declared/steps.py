"""Steps that bring a cluster to the declared state, and the properties that they change.

| order | steps | reason |
|---|---|---|
| 1 | settings of all brokers, of single brokers | what is created later starts with them |
| 2 | topics created, partitions added, settings of topics | |
| 3 | users, quotas | |
| 4 | ACLs created | before others are deleted, so that nobody is without both |
| 5 | replicas moved | this takes longest: nothing else waits for it |
| 6 | settings that need the moved replicas (`min.insync.replicas` above the present replicas) | |
| 7 | ACLs, quotas, users, topics deleted | only if all steps before succeeded |
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from engine.declared.resources import DeclaredPassword, Entity, Placement, ResourceKind, Settings
from engine.security.acls import AclBinding
from engine.security.scram import ScramMechanism


class StepAction(Enum):
    """What a step does to its resource."""

    CREATE = "create"
    CHANGE = "change"
    MOVE = "move"
    DELETE = "delete"


class PropertyChange(NamedTuple):
    """A property that a step changes; None means that it does not exist or has its default."""

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
    """Add partitions up to `total`; `placement` has the replicas of the new ones, or is empty."""

    topic: str
    total: int
    placement: Placement


class ChangeSettings(NamedTuple):
    """Set the settings of a topic or broker; those with a value of None are unset."""

    kind: ResourceKind
    resource: str
    settings: Settings


class SetCredential(NamedTuple):
    """Set a user's password for a mechanism; iterations of None are the minimum."""

    user: str
    mechanism: ScramMechanism
    iterations: int | None
    password: DeclaredPassword | None


class ChangeQuotas(NamedTuple):
    """Set the quotas of an entity; those with a value of None are removed."""

    entity: Entity
    quotas: Mapping[str, float | None]


class CreateRule(NamedTuple):
    """Create an ACL."""

    rule: AclBinding


class MoveReplicas(NamedTuple):
    """Change the replicas of a topic, to a number for each partition or to a placement."""

    topic: str
    replication_factor: int | None
    placement: Placement


class DeleteRule(NamedTuple):
    """Delete an ACL."""

    rule: AclBinding


class DeleteCredential(NamedTuple):
    """Delete a user's credential for a mechanism."""

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
    """A step: its action, its resource, and the operation to execute.

    `name` is empty for ACLs; kctl writes them in the terms of its command line.
    """

    action: StepAction
    kind: ResourceKind
    name: str
    changes: tuple[PropertyChange, ...]
    operation: Operation

    @property
    def deletes(self) -> bool:
        """True if the step removes a resource or setting that the declared state cannot restore."""
        return self.action is StepAction.DELETE
