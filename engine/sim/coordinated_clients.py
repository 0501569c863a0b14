"""The clients of a run that use coordinators: transactional producers, group members, copiers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random
from typing import Protocol, TypeAlias

from engine.host.coroutine import drive
from engine.model import TopicPartition
from engine.sim.clients import ClusterRequests
from engine.sim.consumers import SimulatedConsumer
from engine.sim.coordinator_rules import CoordinatorRules
from engine.sim.copiers import Copier
from engine.sim.group_rules import OFFSETS_TOPIC
from engine.sim.invariants import Invariants
from engine.sim.ledger import Ledger
from engine.sim.members import GroupReader, SimulatedMember
from engine.sim.memberships import GroupRequests
from engine.sim.node import SimulatedBroker
from engine.sim.plan import Plan
from engine.sim.quiescence import is_held
from engine.sim.transaction_rules import TRANSACTION_TOPIC
from engine.sim.transactors import NextInstance, Transactor, ids_that_outlast_their_timeout

#: Group ids of the plan's members and of its copiers.
GROUP, COPIERS = "g", "copies"


class RunContext(Protocol):
    """The parts of a run that its clients share.

    Brokers, partitions, random numbers, connections.
    """

    nodes: dict[int, SimulatedBroker]

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions of the plan's topics."""
        ...

    def random(self, purpose: str) -> Random:
        """Return a random generator for one purpose, which the run's seed determines."""
        ...

    def client(self, name: str) -> ClusterRequests:
        """Create the connections of a client with this name, and return them."""
        ...


class CoordinatedClients:
    """Starts, checks and stops transactional producers, their reader, members and copiers."""

    def __init__(
        self, plan: Plan, world: RunContext, invariants: Invariants, ledger: Ledger
    ) -> None:
        """Create it without clients; `start` creates those of `plan`."""
        self._plan = plan
        self._world = world
        self._invariants = invariants
        self._ledger = ledger
        self.transactors: list[Transactor] = []
        self.members: list[SimulatedMember] = []
        self.copiers: list[Copier] = []
        #: Consumers that read up to the last stable offset.
        self.readers: list[SimulatedConsumer] = []
        self.coordinators = CoordinatorRules(invariants.broke, world.nodes)
        #: The client that fetches the committed offsets, by group.
        self._group_readers: dict[str, GroupReader] = {}
        #: Transactional ids that a new instance has initialized at the end of the run.
        self._taken_over: set[str] = set()

    def start(self) -> None:
        """Start all transactional producers, group members and copiers of the plan."""
        partitions = self._world.partitions
        for number, transactional_id in enumerate(self._plan.transactional_ids):
            requests = self._world.client(f"tx{number}")
            random = self._world.random(requests.name)
            transactor = Transactor(
                requests,
                transactional_id,
                partitions,
                random,
                self._ledger,
                gives_up=self._plan.is_verified,
            )
            self.transactors.append(transactor)
            _begin(requests, transactor)
        if self.transactors or self._plan.copier_count:
            self._start_reader(partitions)
        for number in range(self._plan.member_count):
            requests = self._world.client(f"m{number}")
            member = SimulatedMember(
                GroupRequests(requests, GROUP, self._ledger),
                partitions,
                self._world.random(requests.name),
                self._ledger,
            )
            self.members.append(member)
            _begin(requests, member)

        for number in range(self._plan.copier_count):
            requests = self._world.client(f"cp{number}")
            copier = Copier(
                requests,
                GroupRequests(requests, COPIERS, self._ledger),
                requests.name,
                partitions,
                self._world.random(requests.name),
                self._ledger,
            )
            self.copiers.append(copier)
            _begin(requests, copier)

    def _start_reader(self, partitions: Sequence[TopicPartition]) -> None:
        """Start a read_committed consumer that reports what it reads to the transaction rules."""
        requests = self._world.client("committed")
        reader = SimulatedConsumer(
            requests,
            partitions,
            self._world.random(requests.name),
            self._ledger,
            pause_ms=200,
            on_committed=self._ledger.transactions.read,
        )
        self.readers.append(reader)
        requests.timers.call_soon(reader.start)

    def check_all(self) -> None:
        """Check rule G3: the state of the coordinators agrees with their logs."""
        if self.transactors or self.members or self.copiers:
            with self._invariants.without_disk_faults():
                self.coordinators.check()

    def finish(self) -> None:
        """Make all clients complete their current work and stop."""
        for transactor in self.transactors:
            transactor.finish()
        for member in self.members:
            member.finish()
        for copier in self.copiers:
            copier.finish()

    def waiting(self) -> list[str]:
        """Return a line for each client that has not finished, and each open transaction or commit.

        Empty once the run may end. A client is left out if it cannot finish: a coordinator's
        partition, or a partition of its transaction, has too few in-sync replicas for good.
        """
        held = {
            key.topic
            for key in self._invariants.topics.rows
            if is_held(key, self._world.nodes, self._invariants)
        }
        has_lost_offsets = self._ledger.groups.is_excused
        if OFFSETS_TOPIC in held or has_lost_offsets:
            waiting = []
        else:
            waiting = self._unsettled_reasons(GROUP, self.members)
        if held:
            return waiting
        if not has_lost_offsets and not self._has_lost_transactions():
            waiting += self._unsettled_reasons(COPIERS, self.copiers)
        return waiting + self._open_transactions()

    def _unsettled_reasons(
        self, group_id: str, members: Sequence[SimulatedMember | Copier]
    ) -> list[str]:
        """Return a line for each member of a group that runs, or for commits that are open (G5)."""
        if waiting := [f"{m.name} has not ended" for m in members if not m.is_done]:
            return waiting
        if members and group_id not in self._group_readers:
            # No client commits any more, so the offsets are final.
            requests = self._world.client("group" if group_id == GROUP else f"group {group_id}")
            reader = GroupReader(GroupRequests(requests, group_id, self._ledger))
            self._group_readers[group_id] = reader
            _begin(requests, reader)
        reader_of_group = self._group_readers.get(group_id)
        is_waited_for = reader_of_group is not None and reader_of_group.offsets is None
        return [f"the group {group_id} has members, or open commits"] * is_waited_for

    @property
    def readers_to_wait_for(self) -> list[SimulatedConsumer]:
        """Return the read_committed consumers that can reach the end.

        None of them can if a coordinator has lost transactions: those never end, and the records
        after them stay above the last stable offset.
        """
        return [] if self._has_lost_transactions() else self.readers

    def may_hold_up(self, partition: TopicPartition) -> bool:
        """Return True if an open transaction may block a partition's last stable offset forever.

        A transaction whose marker was lost after its coordinator completed it never ends.
        """
        return self._ledger.transactions.is_excused(partition)

    def _has_lost_transactions(self) -> bool:
        """Return True if records of a partition of __transaction_state were lost by a fault."""
        rules, rows = self._ledger.transactions, self._invariants.topics.rows
        return any(rules.is_excused(key) for key in rows if key.topic == TRANSACTION_TOPIC)

    def _open_transactions(self) -> list[str]:
        """Return a line for each client with open transactions, and for each partition whose last
        stable offset is below its high watermark (T7).
        """
        rules, rows = self._ledger.transactions, self._invariants.topics.rows
        if not (self.transactors or self.copiers) or self._has_lost_transactions():
            return []
        waiting = [f"{t.name} has not ended" for t in self.transactors if not t.is_done]
        if not waiting:
            self._end_transactions_of_other_times()
        for key in rows:
            leader = self._invariants.leading_partition(key)
            if leader is None or rules.is_excused(key):
                continue
            stable, watermark = leader.last_stable_offset, leader.high_watermark
            if stable < watermark:
                waiting.append(f"{key} is stable up to {stable}, committed up to {watermark}")
        return waiting

    def _end_transactions_of_other_times(self) -> None:
        """Initialize the transactional ids whose time-out a clock that was set back delays.

        A new instance of the id ends its transaction at once.
        """
        for node in self._world.nodes.values():
            if node.broker is None:
                continue
            transactions = node.broker.transactions.coordinator.registry.transactions()
            ids = ids_that_outlast_their_timeout(transactions, node.machine.clock.wall_ms())
            for transactional_id in sorted(ids - self._taken_over):
                self._taken_over.add(transactional_id)
                requests = self._world.client(f"next {transactional_id}")
                random = self._world.random(requests.name)
                _begin(requests, NextInstance(requests, transactional_id, random, self._ledger))

    def check_end(self) -> None:
        """Check the committed offsets of groups after their members have stopped."""
        groups = {key: reader.offsets for key, reader in self._group_readers.items()}
        if (offsets := groups.get(GROUP)) is not None:
            self._ledger.groups.check_end(GROUP, offsets)
        if (offsets := groups.get(COPIERS)) is not None:
            is_committed = self._ledger.transactions.is_committed
            self._ledger.copies.check_end(COPIERS, offsets, is_committed)


#: A client that `_begin` can start.
_Client: TypeAlias = Transactor | NextInstance | SimulatedMember | Copier | GroupReader


def _begin(requests: ClusterRequests, client: _Client) -> None:
    """Start a client on its machine's loop."""
    requests.timers.call_soon(partial(_run, client))


def _run(client: _Client) -> None:
    """Run a client's coroutine on the loop."""
    drive(client.run())
