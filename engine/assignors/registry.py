"""The assignors by the names that members propose them with.

Differs: sticky and cooperative-sticky, which Kafka's clients have too, are not here yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.assignors import range as by_range
from engine.assignors import round_robin
from engine.assignors.subscription import Assign

#: In the order in which a member prefers them.
ASSIGNORS: Final[Mapping[str, Assign]] = {
    by_range.NAME: by_range.assign_range,
    round_robin.NAME: round_robin.assign_round_robin,
}
