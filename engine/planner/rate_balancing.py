"""Balancing of the bytes that brokers take in: the search of `byte_balancing`, by rates.

Each replica takes in the bytes that producers write to its partition, the leader's from them, a
follower's from the leader. So rates are placed as sizes are, and one search does for both. It must
not undo the levels that come before: an exchange leaves counts as they are, and leaves no broker
more bytes than it may hold, or than it holds already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.planner.byte_balancing import ByteBalancing
from engine.planner.byte_bound import moves_for_bytes, moves_for_bytes_alone
from engine.planner.cluster_model import ClusterModel
from engine.planner.placement_state import PlacementState


class RateState(PlacementState):
    """A search's placement, where sizes are rates; it has room for bytes as the search has.

    Partitions are numbered by rate. `stored_bytes` are the bytes that each broker holds.
    """

    def __init__(self, state: PlacementState) -> None:
        """Renumber the partitions of a search by their write rate."""
        rated = [p._replace(size_bytes=p.write_rate, replica_sizes=()) for p in state.partitions]
        super().__init__(ClusterModel(state.brokers, rated), state.constraints)
        numbers = {(p.topic, p.partition): number for number, p in enumerate(state.partitions)}
        #: Number of each partition in the search.
        self._numbers = [numbers[p.topic, p.partition] for p in self.partitions]
        self._state = state
        if state.barred:
            # Earlier searches may know of some that the partitions tell no longer.
            number_of = {of_search: number for number, of_search in enumerate(self._numbers)}
            self.barred.update((number_of[p], broker) for p, broker in state.barred)
        self.stored_bytes = [0] * len(self.brokers)
        self.follow()

    def follow(self) -> None:
        """Place replicas as the search has placed them by now."""
        for number, of_search in enumerate(self._numbers):
            put(self, number, self._state.replicas[of_search])
        self.stored_bytes = list(self._state.held_bytes)

    def bytes_at(self, partition: int, broker: int) -> int:
        """Return the bytes of a partition's replica on a broker, or of a new one if it has none."""
        return self._state.size_at(self._numbers[partition], broker)

    def copied_bytes(self, partition: int) -> int:
        """Return the bytes that one more replica copies."""
        return self._state.copied_bytes(self._numbers[partition])

    def fits(self, partition: int, broker: int) -> bool:
        """Return True if a broker has room for a replica."""
        stored = self.stored_bytes[broker] + self.bytes_at(partition, broker)
        return stored <= self.capacity[broker]

    def hand_back(self) -> None:
        """Place the search's replicas as they are here."""
        for number, of_search in enumerate(self._numbers):
            put(self._state, of_search, self.replicas[number])

    def _entered(self, partition: int, broker: int) -> None:
        """Count a placed replica's bytes besides its rate, which this search has as its size."""
        super()._entered(partition, broker)
        self.stored_bytes[broker] += self.bytes_at(partition, broker)

    def _left(self, partition: int, broker: int) -> None:
        """Count a removed replica's bytes besides its rate, which this search has as its size."""
        super()._left(partition, broker)
        self.stored_bytes[broker] -= self.bytes_at(partition, broker)


def put(state: PlacementState, partition: int, replicas: Sequence[int]) -> None:
    """Place a partition's replicas on these brokers, in this order, and remove all others."""
    held = state.replicas[partition]
    if held == replicas:
        return
    for broker in [b for b in held if b not in replicas]:
        state.remove(partition, broker)
    for broker in [b for b in replicas if b not in held]:
        state.place(partition, broker)
    held[:] = replicas


class RateBalancing(ByteBalancing):
    """The search for exchanges by rates; `most_bytes` bounds the bytes of each broker."""

    def __init__(self, state: RateState, most_bytes: Sequence[float]) -> None:
        constraints = state.constraints
        super().__init__(
            state, max_moves=constraints.max_moves, max_bytes=constraints.max_bytes_moved
        )
        self._rates = state
        self._most_bytes = most_bytes

    def level(self) -> float:
        """Exchange replicas until rates are balanced.

        Returns the highest ratio to the expected rate.
        """
        if sum(self._rates.held_bytes):
            self.level_paid(self._rates.constraints.rate_tolerance)
        return self.highest()

    def _is_allowed(self, heavy: int, light: int, there: int, back: int | None) -> bool:
        """Return whether an exchange is allowed by rates, and by the bytes of both brokers."""
        return super()._is_allowed(heavy, light, there, back) and (
            self._keeps_bytes(heavy, there, back) and self._keeps_bytes(light, back, there)
        )

    def _keeps_bytes(self, broker: int, gone: int | None, come: int | None) -> bool:
        """Return True if an exchange keeps a broker within its byte limit or no fuller than now."""
        rates = self._rates
        more = 0 if come is None else rates.bytes_at(come, broker)
        less = 0 if gone is None else rates.bytes_at(gone, broker)
        stored = rates.stored_bytes[broker]
        return more <= less or stored + more - less <= self._most_bytes[broker]


def moves_for_rates(rates: RateState, targets: Mapping[int, int] | None) -> int:
    """Return a lower bound of the replica moves by which brokers' bytes in become level.

    `targets` are the replica counts that brokers should end with; None: counts may be uneven.
    """
    if not sum(rates.held_bytes):
        return 0
    if targets is None:
        return moves_for_bytes_alone(rates, rates.constraints.rate_tolerance)
    return moves_for_bytes(rates, targets, rates.constraints.rate_tolerance)
