"""The cells of the matrix: what happens to a transaction, and after which of its steps."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

CLIENTS: Final = (
    "confluent",
    "kafka-python",
    "aiokafka",
    "java",
    "java-newer",
    "franz-go",
    "kafkajs",
)


class Step(Enum):
    """The steps of a transaction, in order."""

    INIT = "init"
    SEND = "send"
    OFFSETS = "offsets"
    COMMIT = "commit"


class Victim(Enum):
    """Which broker is killed: the coordinator, or the leader of all partitions written to."""

    COORDINATOR = "coordinator"
    LEADER = "leader"


class Kill(NamedTuple):
    """A broker that is killed after a step of the first transaction."""

    victim: Victim
    after: Step

    @property
    def label(self) -> str:
        """Return its name in the table."""
        return f"{self.victim.value} killed after {self.after.value}"


def kills_of(broker_count: int) -> list[Kill]:
    """Return the kills for a cluster; a broker that is alone is the coordinator and the leader."""
    victims = tuple(Victim) if broker_count > 1 else (Victim.COORDINATOR,)
    return [Kill(victim, step) for victim in victims for step in Step]
