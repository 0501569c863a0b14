"""The clients of a run that coordinators serve: producers with transactions, members of a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import Protocol

from engine.host.coroutine import drive
from engine.model import TopicPartition
from engine.sim.clients import ClusterLinks
from engine.sim.consumers import SimulatedConsumer
from engine.sim.group_rules import OFFSETS_TOPIC
from engine.sim.invariants import Invariants
from engine.sim.ledger import Ledger
from engine.sim.members import GroupLinks, GroupReader, SimulatedMember
from engine.sim.node import SimulatedBroker
from engine.sim.plan import Plan
from engine.sim.quiescence import is_held
from engine.sim.transaction_rules import TRANSACTION_TOPIC
from engine.sim.transactors import Transactor

#: The group of the plan's members.
GROUP = "g"


class World(Protocol):
    """What a run has for its clients."""

    nodes: dict[int, SimulatedBroker]

    @property
    def partitions(self) -> list[TopicPartition]:
        """Return the partitions of the plan's topics."""
        ...

    def random(self, purpose: str) -> Random:
        """Return the random numbers of one purpose."""
        ...

    def client(self, name: str) -> ClusterLinks:
        """Return the connections of a client."""
        ...


class CoordinatedClients:
    """Transactional producers with a reader of what they commit, and a group."""

    def __init__(self, plan: Plan, world: World, invariants: Invariants, ledger: Ledger) -> None:
        self._plan = plan
        self._world = world
        self._invariants = invariants
        self._ledger = ledger
        self.transactors: list[Transactor] = []
        self.members: list[SimulatedMember] = []
        #: Consumers that read up to the last stable offset.
        self.readers: list[SimulatedConsumer] = []
        self._group_reader: GroupReader | None = None

    def start(self) -> None:
        """Let all of them begin."""
        partitions = self._world.partitions
        for number, transactional_id in enumerate(self._plan.transactional_ids):
            links = self._world.client(f"tx{number}")
            random = self._world.random(links.name)
            transactor = Transactor(links, transactional_id, partitions, random, self._ledger)
            self.transactors.append(transactor)
            _begin(links, transactor)
        if self.transactors:
            self._start_reader(partitions)
        for number in range(self._plan.member_count):
            links = self._world.client(f"m{number}")
            member = SimulatedMember(
                GroupLinks(links, GROUP, self._ledger),
                partitions,
                self._world.random(links.name),
                self._ledger,
            )
            self.members.append(member)
            _begin(links, member)

    def _start_reader(self, partitions: Sequence[TopicPartition]) -> None:
        links = self._world.client("committed")
        reader = SimulatedConsumer(
            links,
            partitions,
            self._world.random(links.name),
            self._ledger,
            pause_ms=200,
            on_committed=self._ledger.transactions.read,
        )
        self.readers.append(reader)
        links.timers.call_soon(reader.start)

    def finish(self) -> None:
        """Let all of them come to their end."""
        for transactor in self.transactors:
            transactor.finish()
        for member in self.members:
            member.finish()

    def waiting(self) -> list[str]:
        """Return in words who has not come to its end, and what is left open behind it.

        Where too few are in sync for good, in a partition of the coordinators or any other of a
        transaction, nobody can.
        """
        held = {
            key.topic
            for key in self._invariants.topics.rows
            if is_held(key, self._world.nodes, self._invariants)
        }
        waiting = [] if OFFSETS_TOPIC in held else self._unsettled_group()
        return waiting if held else waiting + self._open_transactions()

    def _unsettled_group(self) -> list[str]:
        """Return which members go on, and whether the group has one that does not (G5)."""
        if self._ledger.groups.is_excused:
            return []
        if waiting := [f"{m.name} has not ended" for m in self.members if not m.is_done]:
            return waiting
        if self.members and self._group_reader is None:
            # Nobody commits behind its back any more.
            links = self._world.client("group")
            self._group_reader = GroupReader(GroupLinks(links, GROUP, self._ledger))
            _begin(links, self._group_reader)
        reader = self._group_reader
        return ["the group has members"] * (reader is not None and reader.offsets is None)

    @property
    def readers_to_wait_for(self) -> list[SimulatedConsumer]:
        """Return the readers that come to the end: none where transactions were lost.

        What a coordinator has lost it ends nowhere, and records behind it are never stable.
        """
        return [] if self._has_lost_transactions() else self.readers

    def _has_lost_transactions(self) -> bool:
        rules, rows = self._ledger.transactions, self._invariants.topics.rows
        return any(rules.is_excused(key) for key in rows if key.topic == TRANSACTION_TOPIC)

    def _open_transactions(self) -> list[str]:
        """Return who has not ended its transactions, and where one holds readers up (T7)."""
        rules, rows = self._ledger.transactions, self._invariants.topics.rows
        if not self.transactors or self._has_lost_transactions():
            return []
        waiting = [f"{t.name} has not ended" for t in self.transactors if not t.is_done]
        for key in rows:
            leader = self._invariants.leading_partition(key)
            if leader is None or rules.is_excused(key):
                continue
            stable, watermark = leader.last_stable_offset, leader.high_watermark
            if stable < watermark:
                waiting.append(f"{key} is stable up to {stable}, committed up to {watermark}")
        return waiting

    def check_end(self) -> None:
        """Check what the group has once its members are gone."""
        offsets: Mapping[TopicPartition, int] | None = None
        if self._group_reader is not None:
            offsets = self._group_reader.offsets
        if offsets is not None:
            self._ledger.groups.check_end(GROUP, offsets)


def _begin(links: ClusterLinks, client: Transactor | SimulatedMember | GroupReader) -> None:
    links.timers.call_soon(partial(_run, client))


def _run(client: Transactor | SimulatedMember | GroupReader) -> None:
    drive(client.run())
