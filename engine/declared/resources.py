"""The declared state, from files, and the current state of a cluster: the two that are compared."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from engine.security.acls import AclBinding
from engine.security.scram import ScramMechanism

#: Of a setting: its text, or None for its default.
Settings = Mapping[str, str | None]
#: The replicas of each partition, the preferred leader first.
Placement = tuple[tuple[int, ...], ...]
#: The types and names of an entity of quotas; the name of a default entity is None.
Entity = tuple[tuple[str, str | None], ...]

#: The name of the settings that all brokers share, as requests have it.
ALL_BROKERS = ""


class ResourceKind(Enum):
    """Kinds of resources that can be declared; the values are the sections of files."""

    BROKERS = "brokers"
    TOPICS = "topics"
    USERS = "users"
    QUOTAS = "quotas"
    ACLS = "acls"


class DeclaredTopic(NamedTuple):
    """A topic as it shall be; None and an empty placement are left to the cluster."""

    partitions: int | None = None
    replication_factor: int | None = None
    placement: Placement = ()
    settings: Mapping[str, str | None] = {}


class DeclaredPassword(NamedTuple):
    """The password of a user, from a variable of the environment; None where that is not set."""

    variable: str
    value: str | None

    def __repr__(self) -> str:
        return f"DeclaredPassword({self.variable})"


class DeclaredUser(NamedTuple):
    """A user of SCRAM as it shall be: iterations by mechanism, None for any."""

    mechanisms: Mapping[ScramMechanism, int | None]
    password: DeclaredPassword | None = None


class DeclaredState(NamedTuple):
    """The state that files declare. Only `kinds` are compared: an empty section is one, too.

    `kept_topics` are regular expressions of topics that are never deleted for not being declared.
    """

    kinds: frozenset[ResourceKind] = frozenset()
    topics: Mapping[str, DeclaredTopic] = {}
    users: Mapping[str, DeclaredUser] = {}
    acls: frozenset[AclBinding] = frozenset()
    quotas: Mapping[Entity, Mapping[str, float]] = {}
    brokers: Mapping[str, Settings] = {}
    kept_topics: tuple[str, ...] = ()


class ClusterSetting(NamedTuple):
    """A setting of a cluster; the value of a sensitive one is None.

    `is_set` tells that it was set for this resource itself, at run time: it is not a default, and
    not from a file of the broker.
    """

    value: str | None
    type: str | None
    is_set: bool
    is_sensitive: bool = False


class ClusterTopic(NamedTuple):
    """A topic of a cluster, with the replicas it has once all its reassignments are over."""

    placement: Placement
    settings: Mapping[str, ClusterSetting]
    is_internal: bool = False

    @property
    def partitions(self) -> int:
        """Return how many partitions there are."""
        return len(self.placement)

    @property
    def replication_factor(self) -> int | None:
        """Return how many replicas each partition has, None if they differ."""
        counts = {len(replicas) for replicas in self.placement}
        return counts.pop() if len(counts) == 1 else None

    @property
    def replicas_text(self) -> str:
        """Return the replication factor of the partitions as text: `3`, or `2 to 3`."""
        counts = [len(replicas) for replicas in self.placement]
        few, many = min(counts, default=0), max(counts, default=0)
        return str(few) if few == many else f"{few} to {many}"


class CurrentState(NamedTuple):
    """The state of a cluster, of the requested kinds; `broker_ids` are the live ones."""

    broker_ids: frozenset[int] = frozenset()
    topics: Mapping[str, ClusterTopic] = {}
    users: Mapping[str, Mapping[ScramMechanism, int]] = {}
    acls: frozenset[AclBinding] = frozenset()
    quotas: Mapping[Entity, Mapping[str, float]] = {}
    brokers: Mapping[str, Mapping[str, ClusterSetting]] = {}
