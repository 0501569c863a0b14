"""The two states that are compared: the declared one, from files, and that of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from engine.security.acls import AclBinding
from engine.security.scram import ScramMechanism

#: Values of settings by name; None for the default.
Settings = Mapping[str, str | None]
#: The replicas of each partition, the preferred leader first.
Placement = tuple[tuple[int, ...], ...]
#: The types and names of a quota entity; the name of a default entity is None.
Entity = tuple[tuple[str, str | None], ...]

#: Resource name in requests for the settings of all brokers.
ALL_BROKERS = ""


class ResourceKind(Enum):
    """Kinds of resources that can be declared; the values are the sections of files."""

    BROKERS = "brokers"
    TOPICS = "topics"
    USERS = "users"
    QUOTAS = "quotas"
    ACLS = "acls"


class DeclaredTopic(NamedTuple):
    """A declared topic; None and an empty placement are left to the cluster."""

    partitions: int | None = None
    replication_factor: int | None = None
    placement: Placement = ()
    settings: Mapping[str, str | None] = {}


class DeclaredPassword(NamedTuple):
    """The password of a user in an environment variable; `value` is None if that is not set."""

    variable: str
    value: str | None

    def __repr__(self) -> str:
        return f"DeclaredPassword({self.variable})"


class DeclaredUser(NamedTuple):
    """A declared SCRAM user: iterations by mechanism, None for any."""

    mechanisms: Mapping[ScramMechanism, int | None]
    password: DeclaredPassword | None = None


class DeclaredState(NamedTuple):
    """The state that files declare. Only `kinds` are compared, also those with an empty section.

    `kept_topics` are regular expressions of topics that are not deleted if they are undeclared.
    """

    kinds: frozenset[ResourceKind] = frozenset()
    topics: Mapping[str, DeclaredTopic] = {}
    users: Mapping[str, DeclaredUser] = {}
    acls: frozenset[AclBinding] = frozenset()
    quotas: Mapping[Entity, Mapping[str, float]] = {}
    brokers: Mapping[str, Settings] = {}
    kept_topics: tuple[str, ...] = ()


class ClusterSetting(NamedTuple):
    """A setting in a cluster; `value` is None for a sensitive one.

    With `is_set` it was set dynamically for this very resource: it is neither a default nor from a
    broker's file.
    """

    value: str | None
    type: str | None
    is_set: bool
    is_sensitive: bool = False


class ClusterTopic(NamedTuple):
    """A topic in a cluster, with the replicas that it has after its ongoing reassignments."""

    placement: Placement
    settings: Mapping[str, ClusterSetting]
    is_internal: bool = False

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return len(self.placement)

    @property
    def replication_factor(self) -> int | None:
        """The number of replicas of each partition, None if partitions differ."""
        counts = {len(replicas) for replicas in self.placement}
        return counts.pop() if len(counts) == 1 else None

    @property
    def replicas_text(self) -> str:
        """The number of replicas of the partitions as text: `3`, or `2 to 3`."""
        counts = [len(replicas) for replicas in self.placement]
        few, many = min(counts, default=0), max(counts, default=0)
        return str(few) if few == many else f"{few} to {many}"


class CurrentState(NamedTuple):
    """The current state of a cluster, for the requested kinds; `broker_ids` are live brokers."""

    broker_ids: frozenset[int] = frozenset()
    topics: Mapping[str, ClusterTopic] = {}
    users: Mapping[str, Mapping[ScramMechanism, int]] = {}
    acls: frozenset[AclBinding] = frozenset()
    quotas: Mapping[Entity, Mapping[str, float]] = {}
    brokers: Mapping[str, Mapping[str, ClusterSetting]] = {}
