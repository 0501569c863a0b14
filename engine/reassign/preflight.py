"""Check before any move if a plan can be executed. Pure.

| refused | |
|---|---|
| a replica for a broker that is not alive, or that nobody knows | it would never be in sync |
| a directory that its broker does not have, or that is offline | the broker refuses it late |
| a directory on a broker that does not return its log directories | nobody knows |
| more bytes than are free, also once what leaves is deleted | the disk would be full |

| warned of | |
|---|---|
| more bytes than are free before what leaves is deleted | it depends on the order |
| fewer replicas than min.insync.replicas | acks=all is refused from then on |
| a partition without a leader | there is nobody to copy from |
| more bytes than are free for good, where room is not required | the estimate may be too high |

Free bytes are those of KIP-827, as brokers from 3.3 on tell them. Directories of one broker whose
figures are the same lie on one disk. A directory that is not named is the broker's choice: all of
its disks together must have room then, and one of them for the largest replica.

A plan whose batches wait for each other needs room for a batch at a time: replicas that it removes
are deleted before the next one begins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from engine.client.cluster_admin import LogDirView
from engine.client.metadata import ClusterView
from engine.errors import EngineError
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange
from engine.reassign.scheduling import PlanOrder

_ANY: Final = "any"
#: Directories with as many bytes in all, and free within this, are on one disk: less is written
#: between the looks at two of them, and two disks differ by more.
_SAME_DISK_BYTES: Final = 1 << 20


class PlanFault(NamedTuple):
    """A reason against a plan, or a warning, about a partition or a broker."""

    subject: str
    reason: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"


class PlanTarget(NamedTuple):
    """The cluster that a plan is to be executed on.

    `log_dirs` are of the live brokers that take part, or why a broker does not tell of them;
    `min_isr` is by topic, of those whose settings are known.
    """

    view: ClusterView
    log_dirs: Mapping[int, Sequence[LogDirView] | EngineError]
    min_isr: Mapping[str, int]

    def size_bytes(self, change: PartitionChange, broker_id: int) -> int:
        """Return the bytes of a replica on its broker, else those in the plan."""
        found = _size_on(change.name, self.log_dirs.get(broker_id))
        if found is not None:
            return found
        if change.old_sizes and broker_id in change.old_replicas:
            return change.old_sizes[change.old_replicas.index(broker_id)]
        return change.size_bytes

    def copied_bytes(self, change: PartitionChange) -> int:
        """Return the bytes that each added replica copies: the size at the leader."""
        partition = self.view.partition(change.name)
        leader = None if partition is None else self.log_dirs.get(partition.leader)
        found = _size_on(change.name, leader)
        return change.size_bytes if found is None else found


class DiskRoom(NamedTuple):
    """Bytes to be copied to a disk of a broker, or to all of them, and the free bytes there.

    `short_bytes` lack at the worst moment, `lasting_short_bytes` also once all that leaves is gone.
    """

    broker_id: int
    paths: tuple[str, ...]
    coming_bytes: int
    free_bytes: int
    short_bytes: int
    lasting_short_bytes: int


class Preflight(NamedTuple):
    """Faults, warnings and disk room of a plan before its execution."""

    faults: Sequence[PlanFault]
    warnings: Sequence[PlanFault]
    rooms: Sequence[DiskRoom]


class _Copy(NamedTuple):
    """A replica that comes to a broker, or leaves it; without a path the broker chooses."""

    broker_id: int
    path: str | None
    size_bytes: int


def preflight(
    changes: Sequence[PartitionChange],
    batches: Sequence[Sequence[int]],
    ground: PlanTarget,
    *,
    is_room_required: bool = True,
) -> Preflight:
    """Return faults that prevent changes, warnings, and the disk room that they need.

    `batches` are positions of changes that may run at the same time; a batch begins after the
    previous one is over. Unless `is_room_required`, a disk that would be full is a warning:
    retention may free bytes that the estimate does not count.
    """
    faults = [fault for change in changes for fault in _target_faults(change, ground)]
    rooms = list(_rooms(changes, batches, ground))
    lacks = [
        PlanFault(f"broker {room.broker_id}", _lack(room, room.lasting_short_bytes))
        for room in rooms
        if room.lasting_short_bytes
    ]
    warnings = [warning for change in changes for warning in _warnings(change, ground)]
    if is_room_required:
        faults += lacks
    else:
        warnings += lacks
    warnings += [
        PlanFault(
            f"broker {room.broker_id}",
            f"{_lack(room, room.short_bytes)}, until what leaves is deleted",
        )
        for room in rooms
        if room.short_bytes and not room.lasting_short_bytes
    ]
    return Preflight(list(dict.fromkeys(faults)), warnings, rooms)


def waiting_changes(
    changes: Sequence[PartitionChange], order: PlanOrder, begun: Collection[TopicPartition]
) -> tuple[list[PartitionChange], list[list[int]]]:
    """Return the changes that are not begun, and their positions by batches that wait in turn."""
    batches = order.batches if order.has_barriers else [range(len(changes))]
    numbers = [number for number, change in enumerate(changes) if change.name not in begun]
    position_of = {number: position for position, number in enumerate(numbers)}
    positions = [[position_of[n] for n in batch if n in position_of] for batch in batches]
    return [changes[number] for number in numbers], positions


def _target_faults(change: PartitionChange, ground: PlanTarget) -> Iterator[PlanFault]:
    """Yield the brokers and directories that cannot receive replicas of a change."""
    alive = ground.view.brokers
    for copy in _coming(change, ground):
        subject, broker_id = str(change.name), copy.broker_id
        if broker_id not in alive:
            names = ", ".join(map(str, sorted(alive))) or "none"
            yield PlanFault(subject, f"broker {broker_id} is not alive; alive: {names}")
            continue
        dirs = ground.log_dirs.get(broker_id, [])
        if isinstance(dirs, EngineError):
            if copy.path is not None:
                reason = f"broker {broker_id} does not return its log directories: {dirs}"
                yield PlanFault(subject, reason)
            continue
        yield from _directory_faults(subject, copy, dirs)


def _directory_faults(subject: str, copy: _Copy, dirs: Sequence[LogDirView]) -> Iterator[PlanFault]:
    """Yield why a directory cannot receive a replica: unknown, offline, or all are offline."""
    broker_id = copy.broker_id
    online = [log_dir.path for log_dir in dirs if log_dir.error is None]
    if copy.path is None:
        if dirs and not online:
            yield PlanFault(subject, f"all directories of broker {broker_id} are offline")
        return
    named = next((log_dir for log_dir in dirs if log_dir.path == copy.path), None)
    if named is None:
        names = ", ".join(log_dir.path for log_dir in dirs) or "none"
        yield PlanFault(subject, f"broker {broker_id} has no directory {copy.path}; it has {names}")
    elif named.error is not None:
        reason = f"{copy.path} of broker {broker_id} is offline: {named.error}"
        yield PlanFault(subject, reason)


def _warnings(change: PartitionChange, ground: PlanTarget) -> Iterator[PlanFault]:
    """Yield warnings of a change: fewer replicas than min.insync.replicas, no leader."""
    subject, count = str(change.name), len(change.new_replicas)
    min_isr = ground.min_isr.get(change.topic, 1)
    if count < min_isr:
        have = "1 replica" if count == 1 else f"{count} replicas"
        reason = f"{have}, and min.insync.replicas is {min_isr}: acks=all is refused from then on"
        yield PlanFault(subject, reason)
    partition = ground.view.partition(change.name)
    if partition is not None and not partition.has_leader and change.added:
        yield PlanFault(subject, "it has no leader: its replicas are copied once it has one")


# Room


def _coming(change: PartitionChange, ground: PlanTarget) -> list[_Copy]:
    """Return the replicas that brokers get by a change, between their directories too."""
    named = dict(zip(change.new_replicas, change.new_log_dirs, strict=False))
    size_bytes = ground.copied_bytes(change)
    coming = [_Copy(id_, _path(named.get(id_)), size_bytes) for id_ in change.added]
    return coming + [
        _Copy(id_, path, ground.size_bytes(change, id_)) for id_, _, path in change.log_dir_moves
    ]


def _leaving(change: PartitionChange, ground: PlanTarget) -> list[_Copy]:
    """Return the copies that a change deletes: removed replicas, and moved directories."""
    lying = dict(zip(change.old_replicas, change.old_log_dirs, strict=False))
    leaving = [
        _Copy(id_, _path(lying.get(id_)), ground.size_bytes(change, id_)) for id_ in change.removed
    ]
    return leaving + [
        _Copy(id_, _path(old), ground.size_bytes(change, id_))
        for id_, old, _ in change.log_dir_moves
    ]


def _path(name: str | None) -> str | None:
    """Return a log directory of a plan, None for "any": the broker chooses one then."""
    return None if name == _ANY else name


def _rooms(
    changes: Sequence[PartitionChange], batches: Sequence[Sequence[int]], ground: PlanTarget
) -> Iterator[DiskRoom]:
    """Yield the free space that each disk needs while the batches are executed.

    Replicas without a named directory may go to any: the broker's disks count together.
    """
    coming = [[c for n in batch for c in _coming(changes[n], ground)] for batch in batches]
    leaving = [[c for n in batch for c in _leaving(changes[n], ground)] for batch in batches]
    for broker_id in sorted({copy.broker_id for batch in coming for copy in batch}):
        dirs = ground.log_dirs.get(broker_id, [])
        if isinstance(dirs, EngineError):
            continue
        disks = _disks(dirs)
        if not disks:
            continue
        for paths, free_bytes in disks:
            here = _only(coming, broker_id, paths), _only(leaving, broker_id, paths)
            if any(here[0]):
                yield _room(broker_id, paths, free_bytes, *here)
        of_broker = _only(coming, broker_id, None), _only(leaving, broker_id, None)
        unnamed = [c for batch in of_broker[0] for c in batch if c.path is None]
        if unnamed:
            yield _room_of_all(broker_id, disks, unnamed, *of_broker)


def _room_of_all(
    broker_id: int,
    disks: Sequence[tuple[tuple[str, ...], int]],
    unnamed: Sequence[_Copy],
    coming: Sequence[Sequence[_Copy]],
    leaving: Sequence[Sequence[_Copy]],
) -> DiskRoom:
    """Return the room of a broker that chooses the directories of some replicas."""
    paths = tuple(path for of_disk, _ in disks for path in of_disk)
    room = _room(broker_id, paths, sum(free for _, free in disks), coming, leaving)
    if len(disks) == 1:
        return room
    largest = max(copy.size_bytes for copy in unnamed)
    lack = max(largest - max((free for _, free in disks), default=0), 0)
    return room._replace(
        short_bytes=max(room.short_bytes, lack),
        lasting_short_bytes=room.lasting_short_bytes
        if leaving and any(leaving)
        else max(room.lasting_short_bytes, lack),
    )


def _only(
    batches: Sequence[Sequence[_Copy]], broker_id: int, paths: Sequence[str] | None
) -> list[list[_Copy]]:
    """Return the copies of one broker, or of some of its directories, batch by batch."""
    return [
        [c for c in batch if c.broker_id == broker_id and (paths is None or c.path in paths)]
        for batch in batches
    ]


def _room(
    broker_id: int,
    paths: tuple[str, ...],
    free_bytes: int,
    coming: Sequence[Sequence[_Copy]],
    leaving: Sequence[Sequence[_Copy]],
) -> DiskRoom:
    """Return how many bytes a disk lacks, at worst and at the end of a batch.

    During a batch the new and the old copies exist together.
    """
    free = free_bytes
    short = lasting = 0
    for come, leave in zip(coming, leaving, strict=True):
        free -= _bytes(come)
        short = max(short, -free)
        free += _bytes(leave)
        lasting = max(lasting, -free)
    total = sum(map(_bytes, coming))
    return DiskRoom(broker_id, paths, total, free_bytes, short, lasting)


def _bytes(copies: Iterable[_Copy]) -> int:
    return sum(copy.size_bytes for copy in copies)


def _disks(dirs: Sequence[LogDirView]) -> list[tuple[tuple[str, ...], int]] | None:
    """Return the disks of a broker, as their log directories with free bytes; None if unknown.

    An offline directory has no room.
    """
    disks: list[tuple[tuple[str, ...], int, int]] = []
    for log_dir in dirs:
        if log_dir.error is not None:
            continue
        if log_dir.total_bytes is None or log_dir.usable_bytes is None:
            return None
        for number, (paths, total, free) in enumerate(disks):
            if total == log_dir.total_bytes and abs(free - log_dir.usable_bytes) < _SAME_DISK_BYTES:
                least = min(free, log_dir.usable_bytes)
                disks[number] = ((*paths, log_dir.path), total, least)
                break
        else:
            disks.append(((log_dir.path,), log_dir.total_bytes, log_dir.usable_bytes))
    return [(paths, free) for paths, _, free in disks]


def _lack(room: DiskRoom, short_bytes: int) -> str:
    """Return in words how many bytes are free, how many come, and how many lack."""
    where = ", ".join(room.paths) or "no directory"
    return (
        f"{room.coming_bytes} bytes are to come, and {room.free_bytes} are free in {where}:"
        f" {short_bytes} bytes lack"
    )


def _size_on(key: TopicPartition, dirs: Sequence[LogDirView] | EngineError | None) -> int | None:
    """Return the bytes of a partition's replica in directories, None if unknown."""
    if dirs is None or isinstance(dirs, EngineError):
        return None
    sizes = [
        replica.size_bytes
        for log_dir in dirs
        for replica in log_dir.replicas
        if replica.partition == key and not replica.is_future
    ]
    return sizes[0] if sizes else None
