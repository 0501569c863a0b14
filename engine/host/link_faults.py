"""Faults of network links between places: partitions, delay and loss.

A place is a broker, by its id as text, or the metadata store (`STORE`).

| fault | effect |
|---|---|
| partition | places of different groups do not reach each other; a place in no group reaches all |
| delay | each packet to or from the place takes so much longer, in each direction |
| loss | each packet to or from the place is lost with this probability, and sent again by TCP |

Pure: `network_links.py` applies the faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from engine.json_text import JsonObject
from engine.limits import (
    LINK_DELAY_MS_MAX,
    LINK_PACKET_BYTES,
    LINK_RETRANSMISSION_MS_MAX,
    LINK_RETRANSMISSION_MS_MIN,
)

#: The place of the metadata store.
STORE = "store"
#: Probabilities are counted in millionths: a draw is an integer below this.
LOSS_PARTS = 1_000_000


class SlowPlace(NamedTuple):
    """A place whose packets are late or lost; `loss` is a probability, in 0 ... 1."""

    delay_ms: int = 0
    loss: float = 0.0


class LinkQuality(NamedTuple):
    """One direction of a link: the delay of a packet, and its probability of loss."""

    delay_ms: int
    loss: float


class LinkFaults(NamedTuple):
    """All faults in force. Groups are disjoint; `slow` is by place."""

    groups: tuple[frozenset[str], ...] = ()
    slow: Mapping[str, SlowPlace] = {}

    def is_any(self) -> bool:
        """Return True if any fault is in force."""
        return bool(self.groups or self.slow)

    def is_cut(self, one: str, other: str) -> bool:
        """Return True if no packet passes between two places.

        A partition separates them, or one of them loses every packet.
        """
        if one == other:
            return False
        first, second = self._group_of(one), self._group_of(other)
        if first is not None and second is not None and first != second:
            return True
        quality = self.quality(one, other)
        return quality is not None and quality.loss >= 1.0

    def _group_of(self, place: str) -> int | None:
        """Return the index of a place's group, None for a place in no group, which reaches all."""
        return next((index for index, group in enumerate(self.groups) if place in group), None)

    def quality(self, one: str, other: str) -> LinkQuality | None:
        """Return delay and loss between two places, None if the link is neither slow nor lossy.

        The delays of both places add up; a packet arrives if neither place loses it.
        """
        if one == other:
            return None
        slow = [self.slow[place] for place in (one, other) if place in self.slow]
        if not slow:
            return None
        passes = 1.0
        for place in slow:
            passes *= 1.0 - place.loss
        return LinkQuality(sum(place.delay_ms for place in slow), 1.0 - passes)

    def is_faulty(self, one: str, other: str) -> bool:
        """Return True if the link between two places is cut, slow or lossy."""
        return self.is_cut(one, other) or self.quality(one, other) is not None

    def with_partition(self, groups: Iterable[Iterable[str]]) -> LinkFaults:
        """Return the faults with this partition in place of the current one."""
        return self._replace(groups=tuple(frozenset(group) for group in groups))

    def with_slow(self, place: str, slow: SlowPlace) -> LinkFaults:
        """Return the faults with the delay and loss of one place; zero for both removes them."""
        others = {name: kept for name, kept in self.slow.items() if name != place}
        is_slow = slow.delay_ms > 0 or slow.loss > 0.0
        return self._replace(slow={**others, place: slow} if is_slow else others)


def retransmission_ms(delay_ms: int, losses: int) -> int:
    """Return the extra delay of a packet that is lost `losses` times in a row.

    The first time-out is the round trip plus TCP's minimum; each further one doubles, up to
    TCP's maximum.
    """
    timeout_ms = LINK_RETRANSMISSION_MS_MIN + 2 * delay_ms
    late_ms = 0
    for _ in range(losses):
        late_ms += timeout_ms
        timeout_ms = min(2 * timeout_ms, LINK_RETRANSMISSION_MS_MAX)
    return late_ms


def packet_count(size_bytes: int) -> int:
    """Return the number of TCP packets that carry `size_bytes`, at least one."""
    return max(1, -(-size_bytes // LINK_PACKET_BYTES))


def encode_faults(faults: LinkFaults) -> JsonObject:
    """Return faults as a JSON object: the groups, and delay and loss by place."""
    return {
        "groups": [sorted(group, key=place_order) for group in faults.groups],
        "slow": {place: slow._asdict() for place, slow in faults.slow.items()},
    }


def decode_faults(content: JsonObject) -> LinkFaults:
    """Return the faults that `encode_faults` wrote; raises KeyError, TypeError or ValueError."""
    groups = tuple(frozenset(map(str, group)) for group in content["groups"])
    slow = {}
    for place, kept in content["slow"].items():
        delay_ms, loss = int(kept["delay_ms"]), float(kept["loss"])
        if not (0 <= delay_ms <= LINK_DELAY_MS_MAX and 0.0 <= loss <= 1.0):
            raise ValueError(f"a delay of {delay_ms} ms, a loss of {loss}")
        slow[str(place)] = SlowPlace(delay_ms, loss)
    return LinkFaults(groups, slow)


def place_order(place: str) -> tuple[int, str]:
    """Return the sort key of a place: brokers by id, then all other places."""
    return (int(place), "") if place.isascii() and place.isdigit() else (1 << 31, place)
