"""Constraints of a plan, and its goals.

| constraint | meaning |
|---|---|
| excluded topics, pinned partitions | their replicas and leaders stay; they count as load |
| excluded brokers | get no additional replica and no additional leadership |
| racks strict | no partition gets more replicas into a rack than the limit of `rack_limits` |
| racks relaxed | as strict if there is a place, else any place, with a warning |
| racks ignored | racks have no effect |
| max moves, max bytes | mandatory moves come first, then those with the largest effect |
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from engine.model import TopicPartition


class RackRule(Enum):
    """How a plan treats racks."""

    STRICT = "strict"
    RELAXED = "relaxed"
    IGNORED = "ignored"


class LevelGoal(Enum):
    """A measure to level over brokers."""

    COUNTS = "counts"
    BYTES = "bytes"
    LEADERS = "leaders"
    #: Bytes per second that producers write to a broker's replicas, as leader or follower.
    BYTES_IN = "bytes-in"
    #: Bytes per second that followers fetch from a broker.
    BYTES_OUT = "bytes-out"


#: The goals that need no sampled rates.
ALL_GOALS = frozenset((LevelGoal.COUNTS, LevelGoal.BYTES, LevelGoal.LEADERS))
RATE_GOALS = frozenset((LevelGoal.BYTES_IN, LevelGoal.BYTES_OUT))


class PlanConstraints(NamedTuple):
    """The limits of a plan; the defaults forbid only harmful placements."""

    excluded_topics: frozenset[str] = frozenset()
    excluded_brokers: frozenset[int] = frozenset()
    pinned: frozenset[TopicPartition] = frozenset()
    racks: RackRule = RackRule.STRICT
    #: Limits of the number of copied replicas, and of their bytes; None for no limit.
    max_moves: int | None = None
    max_bytes_moved: int | None = None
    #: Bytes are level if no broker has more than this times its target.
    bytes_tolerance: float = 1.02
    #: The same for rates; it is larger since they are samples.
    rate_tolerance: float = 1.1
    #: Most simultaneous changes of a broker in each direction.
    moves_per_broker: int = 5
    #: The same seed gives the same plan; another seed breaks ties differently.
    seed: int = 0

    @property
    def is_unlimited(self) -> bool:
        """True if any number of replicas and bytes may be copied."""
        return self.max_moves is None and self.max_bytes_moved is None
