"""The groups of the partitions that this broker leads, loaded from their logs.

```
 leader of a partition ── loading: read it to its end ── owned: its groups are served
                              │ 14 LOAD_IN_PROGRESS         │
 resigned ────────────────────┴──────> 16 NOT_COORDINATOR <─┘ groups are Dead, parked requests end
```

1. Read the log from its start: the last record of each key counts, a tombstone removes the key.
2. Make the groups that have a record, and those with only committed offsets, in several turns of
   the loop.
3. Own the partition, unless the broker resigned or a later load began meanwhile. A group that is
   served already stays: after an increase of the partition count two partitions may have records
   of it.
4. Apply the markers that were written during the load: it reads up to the log end offset at its
   begin.
5. Start the session timers of members, in turns of the loop: before, heartbeats are not served.

Source: G3, GRP-19, D14; GroupMetadataManager.loadGroupsAndOffsets, removeGroupsAndOffsets of 3.9.1.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from engine.coordinator_loads import CoordinatorLoad, CoordinatorLoads
from engine.groups.group import Group
from engine.groups.loaded_groups import LoadedGroups
from engine.groups.ports import GroupLog
from engine.groups.states import GroupState
from engine.host.coroutine import drive
from engine.host.turns import LoopTurns
from engine.kafka_errors import (
    COORDINATOR_LOAD_IN_PROGRESS,
    COORDINATOR_NOT_AVAILABLE,
    INVALID_GROUP_ID,
    NOT_COORDINATOR,
)
from engine.naming import CONSUMER_OFFSETS, coordinator_partition, fits_coordinator_key

_log = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")


class _Ended(NamedTuple):
    """A transaction marker of a producer."""

    producer_id: int
    is_commit: bool


class GroupRegistry:
    """The groups that this broker coordinates, by group id."""

    def __init__(
        self,
        log: GroupLog,
        turns: LoopTurns,
        *,
        on_loaded: Callable[[Group], None],
        on_unloaded: Callable[[Group], None],
    ) -> None:
        """Create a registry without loaded partitions.

        `on_loaded` is called with each group after its partition was loaded, `on_unloaded` with
        each
        group after this broker has resigned.
        """
        self._log = log
        self._turns = turns
        self._on_loaded, self._on_unloaded = on_loaded, on_unloaded
        #: Loaded groups by id.
        self.groups: dict[str, Group] = {}
        #: The highest number of groups up to now: Kafka's hash table of groups never shrinks.
        self.held_count = 0
        #: Group ids of each partition of `__consumer_offsets`, in the order of their addition.
        self._ids_of: dict[int, dict[str, None]] = {}
        #: Leader epoch of each partition that is completely loaded.
        self._owned: dict[int, int] = {}
        #: Partitions that are being loaded.
        self._loads = CoordinatorLoads(CONSUMER_OFFSETS, turns, _log)
        #: Groups with undecided commits, by the producer id of the open transaction.
        self._open: dict[int, set[str]] = {}
        #: Transaction markers that were written while a partition was loaded, by partition: applied
        #: when the load has ended.
        self._ended_during_load: dict[int, list[_Ended]] = {}
        self._is_stopped = False

    def partition_of(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` to which a group belongs."""
        return coordinator_partition(group_id, self._log.partition_count())

    @property
    def is_loading(self) -> bool:
        """True if at least one partition is being loaded."""
        return bool(self._loads)

    @property
    def is_stopped(self) -> bool:
        """True after `stop` was called."""
        return self._is_stopped

    def check_served(self, group_id: str, *, may_be_empty: bool = False) -> int:
        """Return 0 if this broker coordinates the group, else the error code of the request.

        INVALID_GROUP_ID, COORDINATOR_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS or
        NOT_COORDINATOR. An empty group id is valid with `may_be_empty`.

        Differs: an id too long for a record is invalid; Kafka fails at each write.
        """
        if (not group_id and not may_be_empty) or not fits_coordinator_key(group_id):
            return INVALID_GROUP_ID
        if self._is_stopped:
            return COORDINATOR_NOT_AVAILABLE
        partition = self.partition_of(group_id)
        if partition in self._loads:
            return COORDINATOR_LOAD_IN_PROGRESS
        return 0 if partition in self._owned else NOT_COORDINATOR

    def owned_partition_of(self, group_id: str) -> int | None:
        """Return the `__consumer_offsets` partition of a group, None if it is not served here.

        A partition that is being loaded is not served. `check_served` returns the reason for None.
        """
        partition = coordinator_partition(group_id, self._log.partition_count())
        return partition if partition in self._owned else None

    def add(self, group: Group) -> Group:
        """Register a new group under its id and return it."""
        return self._register(group, self.partition_of(group.group_id))

    def _register(self, group: Group, partition: int) -> Group:
        """Register a group under its id and its partition of `__consumer_offsets`; return it."""
        self.groups[group.group_id] = group
        self.held_count = max(self.held_count, len(self.groups))
        self._ids_of.setdefault(partition, {})[group.group_id] = None
        return group

    def remove(self, group: Group) -> None:
        """Remove a group that is Dead, unless another group object has its id."""
        if self.groups.get(group.group_id) is group:
            del self.groups[group.group_id]
            # The id is under another partition if the topic got more partitions: that entry is
            # harmless.
            self._ids_of.get(self.partition_of(group.group_id), {}).pop(group.group_id, None)
            self._unregister_commits(group)

    # Transactions

    def note_open(self, producer_id: int, group_id: str) -> None:
        """Note that a producer's open transaction has commits of a group, for its marker."""
        self._open.setdefault(producer_id, set()).add(group_id)

    def note_ended(self, producer_id: int, group_id: str) -> None:
        """Note that a producer has no undecided commits of a group any more."""
        group_ids = self._open.get(producer_id)
        if group_ids is not None:
            group_ids.discard(group_id)
            if not group_ids:
                del self._open[producer_id]

    def _unregister_commits(self, group: Group) -> None:
        """Remove a removed group from the open transactions of all producers.

        Source: GroupMetadataManager.removeGroupFromAllProducers.
        """
        for producer_id in group.offsets.open_producers:
            self.note_ended(producer_id, group.group_id)

    def end_transaction(
        self, producer_id: int, partitions: Collection[int], *, is_commit: bool
    ) -> None:
        """Apply or drop a producer's commits in the groups of `partitions`, after its marker.

        A marker for a partition that is being loaded is applied again after the load.
        """
        for partition in partitions:
            if partition in self._ended_during_load:
                self._ended_during_load[partition].append(_Ended(producer_id, is_commit))
        for group_id in tuple(self._open.get(producer_id, ())):
            group = self.groups.get(group_id)
            if group is None:
                self.note_ended(producer_id, group_id)
            elif self.partition_of(group_id) in partitions:
                group.offsets.end_transaction(producer_id, is_commit=is_commit)
                self.note_ended(producer_id, group_id)

    # Partitions

    def loaded_epoch(self, partition: int) -> int | None:
        """Return the leader epoch in which a partition was loaded, None if it is not loaded.

        A broker that remains the leader in a later epoch does not load again.
        """
        return self._owned.get(partition)

    def elected(self, partition: int, leader_epoch: int) -> None:
        """Load the groups of a partition, because this broker became its leader.

        Does nothing if the partition is loaded already.
        """
        if self._is_stopped or partition in self._owned:
            return
        drive(self._load_partition(self._loads.begin(partition, leader_epoch)))

    def on_resigned(self, partition: int) -> None:
        """Unload the groups of a partition, because this broker is not its leader any more.

        The groups are Dead from now on; their parked requests are answered in later turns of the
        loop.
        """
        self._loads.end(partition)
        self._ended_during_load.pop(partition, None)
        self._owned.pop(partition, None)
        found = (self.groups.pop(name, None) for name in self._ids_of.pop(partition, {}))
        gone = [group for group in found if group is not None]
        now_ms = self._turns.clock.wall_ms()
        for group in gone:
            self._unregister_commits(group)
            group.transition_to(GroupState.DEAD, now_ms)
        drive(self._turns.each(gone, self._on_unloaded))

    def stop(self) -> None:
        """Unload all groups; `check_served` returns COORDINATOR_NOT_AVAILABLE from now on."""
        self._is_stopped = True
        self._loads.end_all()
        self._ended_during_load.clear()
        self._owned.clear()
        self.groups.clear()
        self._ids_of.clear()
        self._open.clear()

    def _begin_reading(self, partition: int) -> LoadedGroups:
        """Return the empty state of a load, and collect markers during it."""
        # Records written before this reading begins are read.
        self._ended_during_load[partition] = []
        return LoadedGroups()

    async def _load_partition(self, load: CoordinatorLoad) -> None:
        """Read a partition's records and register its groups, unless this broker resigns meanwhile.

        Markers that came during the reading are applied afterwards; then `on_loaded` is called for
        each group. The numbers are the steps in the module's docstring.
        """
        partition, clock = load.partition, self._turns.clock
        began_ms = clock.monotonic_ms()
        # 1
        loaded = await self._loads.read_partition(
            load,
            partial(self._begin_reading, partition),
            self._log.read,
            LoadedGroups.apply_records,
        )
        if loaded is None:
            return
        # 2
        groups: list[tuple[Group, int]] = []

        def place(group: Group) -> None:
            """Add a loaded group with its partition."""
            groups.append((group, self.partition_of(group.group_id)))

        await self._turns.each(self._loads.iter_while_current(load, loaded.iter_groups()), place)
        # 3
        if not self._loads.is_current(load):
            return
        self._loads.end(partition)
        self._owned[partition] = load.leader_epoch
        added = {group.group_id: group for group, at in groups if self._register_loaded(group, at)}
        for producer_id, group_id, key, committed, log_offset in loaded.pending:
            if group_id in added:
                offsets = added[group_id].offsets
                offsets.prepare_in_transaction(producer_id, {key: committed})
                offsets.note_transactional_append(producer_id, key, committed, log_offset)
                self.note_open(producer_id, group_id)
        _log.info(
            "Finished loading offsets and group metadata from __consumer_offsets-%d in %d"
            " milliseconds for epoch %d",
            partition,
            clock.monotonic_ms() - began_ms,
            load.leader_epoch,
        )
        # 4
        for ended in self._ended_during_load.pop(partition):
            self.end_transaction(ended.producer_id, (partition,), is_commit=ended.is_commit)
        # 5
        await self._turns.each(self._iter_registered(added.values()), self._on_loaded)

    def _iter_registered(self, groups: Iterable[Group]) -> Iterator[Group]:
        """Yield each of `groups` that is still registered when its turn comes."""
        return (group for group in groups if self.groups.get(group.group_id) is group)

    def _register_loaded(self, group: Group, partition: int) -> bool:
        """Register a loaded group and return True.

        False if a group of that id is registered already.

        Source: GroupMetadataManager.loadGroup.
        """
        served = self.groups.get(group.group_id)
        if served is None:
            self._register(group, partition)
        else:
            _log.debug(
                "Attempt to load group %s from log with generation %d failed because there is"
                " already a cached group with generation %d",
                group.group_id,
                group.generation_id,
                served.generation_id,
            )
        return served is None
