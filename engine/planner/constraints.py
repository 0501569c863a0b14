"""Constraints of a plan, and its goals.

| constraint | what it holds |
|---|---|
| excluded topics, pinned partitions | their replicas and leaders stay; they still count |
| excluded brokers | get no replica and no leadership that they do not have |
| racks strict | no partition gets more replicas into a rack than the limit of `rack_limits` |
| racks relaxed | as strict where there is a place, else any place, with a warning |
| racks ignored | racks do not matter |
| max moves, max bytes | what must move comes first, then what helps most |
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from engine.model import TopicPartition


class RackRule(Enum):
    """The weight of racks in a plan."""

    STRICT = "strict"
    RELAXED = "relaxed"
    IGNORED = "ignored"


class LevelGoal(Enum):
    """The measure to level over brokers."""

    COUNTS = "counts"
    BYTES = "bytes"
    LEADERS = "leaders"
    #: Bytes that producers write to a broker's replicas each second, as leader or follower.
    BYTES_IN = "bytes-in"
    #: Bytes that followers fetch from a broker each second.
    BYTES_OUT = "bytes-out"


#: Goals that need no samples of rates.
ALL_GOALS = frozenset((LevelGoal.COUNTS, LevelGoal.BYTES, LevelGoal.LEADERS))
RATE_GOALS = frozenset((LevelGoal.BYTES_IN, LevelGoal.BYTES_OUT))


class PlanConstraints(NamedTuple):
    """Limits of a plan; the defaults forbid nothing but harm."""

    excluded_topics: frozenset[str] = frozenset()
    excluded_brokers: frozenset[int] = frozenset()
    pinned: frozenset[TopicPartition] = frozenset()
    racks: RackRule = RackRule.STRICT
    #: Replicas that are copied, and their bytes; None for no bound.
    max_moves: int | None = None
    max_bytes_moved: int | None = None
    #: Bytes are level when no broker has more than this times what it should.
    bytes_tolerance: float = 1.02
    #: The same of rates, which are samples: more than that is no difference.
    rate_tolerance: float = 1.1
    #: Changes at work at the same time that one broker takes part in, inwards and outwards each.
    moves_per_broker: int = 5
    #: Plans of one seed are the same; another breaks ties elsewhere.
    seed: int = 0

    @property
    def is_unlimited(self) -> bool:
        """Whether any number of replicas and bytes may be copied."""
        return self.max_moves is None and self.max_bytes_moved is None
