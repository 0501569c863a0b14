"""Balancing of the bytes per second written to brokers: the search of `byte_balancing`, with rates.

Each replica receives the bytes that producers write to its partition: the leader from them, a
follower from the leader. So rates are distributed as sizes are, and the same search handles both.
It must preserve the results of earlier steps: an exchange keeps counts as they are, and no broker
gets more bytes than it may hold, or than it holds already.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from engine.planner.byte_balancing import ByteBalancing
from engine.planner.byte_bound import fewest_moves_for_bytes, fewest_moves_for_bytes_alone
from engine.planner.cluster_model import ClusterModel
from engine.planner.placement_state import PlacementState


class RateState(PlacementState):
    """A placement whose sizes are write rates; it also checks the brokers' capacity in bytes.

    Partitions are numbered by rate. `stored_bytes` are the bytes that each broker holds.
    """

    def __init__(self, state: PlacementState) -> None:
        """Create the placement of a search in which the sizes of partitions are their write rates.

        Partitions are renumbered, because they are sorted by size.
        """
        rated = [p._replace(size_bytes=p.write_rate, replica_sizes=()) for p in state.partitions]
        super().__init__(ClusterModel(state.brokers, rated), state.constraints)
        numbers = {(p.topic, p.partition): number for number, p in enumerate(state.partitions)}
        #: The number of each partition in the original search.
        self._numbers = [numbers[p.topic, p.partition] for p in self.partitions]
        self._state = state
        if state.barred:
            # Earlier searches may have barred replicas that the partitions no longer show.
            number_of = {of_search: number for number, of_search in enumerate(self._numbers)}
            self.barred.update((number_of[p], broker) for p, broker in state.barred)
        self.stored_bytes = [0] * len(self.brokers)
        self.follow()

    def follow(self) -> None:
        """Copy the placement of the original search to this one."""
        for number, of_search in enumerate(self._numbers):
            place_replicas(self, number, self._state.replicas[of_search])
        self.stored_bytes = list(self._state.held_bytes)

    def bytes_at(self, partition: int, broker: int) -> int:
        """Return the stored bytes of a broker's replica, or of a new one if the broker has none."""
        return self._state.size_at(self._numbers[partition], broker)

    def copied_bytes(self, partition: int) -> int:
        """Return the stored bytes that are copied for one more replica of a partition."""
        return self._state.copied_bytes(self._numbers[partition])

    def fits(self, partition: int, broker: int) -> bool:
        """Return True if a broker has disk space for the stored bytes of a replica."""
        stored = self.stored_bytes[broker] + self.bytes_at(partition, broker)
        return stored <= self.capacity[broker]

    def hand_back(self) -> None:
        """Copy this placement to the original search."""
        for number, of_search in enumerate(self._numbers):
            place_replicas(self._state, of_search, self.replicas[number])

    def _entered(self, partition: int, broker: int) -> None:
        """Update a broker's rate and stored bytes for a replica that was added to it."""
        super()._entered(partition, broker)
        self.stored_bytes[broker] += self.bytes_at(partition, broker)

    def _left(self, partition: int, broker: int) -> None:
        """Update a broker's rate and stored bytes for a replica that was removed from it."""
        super()._left(partition, broker)
        self.stored_bytes[broker] -= self.bytes_at(partition, broker)


def place_replicas(state: PlacementState, partition: int, replicas: Sequence[int]) -> None:
    """Place a partition's replicas on exactly these brokers, in this order."""
    held = state.replicas[partition]
    if held == replicas:
        return
    for broker in [b for b in held if b not in replicas]:
        state.remove(partition, broker)
    for broker in [b for b in replicas if b not in held]:
        state.place(partition, broker)
    held[:] = replicas


class RateBalancing(ByteBalancing):
    """The search for exchanges that balance write rates.

    `most_bytes` limits the bytes of each broker.
    """

    def __init__(self, state: RateState, most_bytes: Sequence[float]) -> None:
        constraints = state.constraints
        super().__init__(
            state, max_moves=constraints.max_moves, max_bytes=constraints.max_bytes_moved
        )
        self._rates = state
        self._most_bytes = most_bytes

    def level(self) -> float:
        """Exchange replicas until write rates are level.

        Returns the highest ratio of a broker's rate to its expected rate.
        """
        if sum(self._rates.held_bytes):
            self.level_paid(self._rates.constraints.rate_tolerance)
        return self.highest()

    def _is_allowed(self, heavy: int, light: int, there: int, back: int | None) -> bool:
        """Return True if both replicas may move, and neither broker gets too many stored bytes."""
        return super()._is_allowed(heavy, light, there, back) and (
            self._keeps_bytes(heavy, there, back) and self._keeps_bytes(light, back, there)
        )

    def _keeps_bytes(self, broker: int, gone: int | None, come: int | None) -> bool:
        """Return True if a broker is within its limit of bytes after an exchange, or no fuller.

        `gone` and `come` are the partitions that leave and come, None for none.
        """
        rates = self._rates
        more = 0 if come is None else rates.bytes_at(come, broker)
        less = 0 if gone is None else rates.bytes_at(gone, broker)
        stored = rates.stored_bytes[broker]
        return more <= less or stored + more - less <= self._most_bytes[broker]


def fewest_moves_for_rates(rates: RateState, targets: Mapping[int, int] | None) -> int:
    """Return a lower bound of the moves by which the brokers' write rates become level.

    `targets` are the replica counts with which brokers have to end; None: any counts.
    """
    if not sum(rates.held_bytes):
        return 0
    if targets is None:
        return fewest_moves_for_bytes_alone(rates, rates.constraints.rate_tolerance)
    return fewest_moves_for_bytes(rates, targets, rates.constraints.rate_tolerance)
