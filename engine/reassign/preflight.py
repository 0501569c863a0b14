"""Check before an execution whether a plan can be executed. Pure.

| fault | reason |
|---|---|
| a replica for a broker that is not alive or unknown | it would never be in sync |
| a directory that its broker does not have, or that is offline | the broker refuses it later |
| a directory on a broker that does not return its log directories | it cannot be checked |
| more bytes than are free, even after deletions | the disk would be full |

| warning | reason |
|---|---|
| more bytes than are free before deletions | it depends on the order |
| fewer replicas than min.insync.replicas | acks=all is refused from then on |
| a partition without a leader | there is no replica to copy from |
| more bytes than are free, if room is not required | the estimate may be too high |

Free bytes are those of KIP-827, from brokers since 3.3. Directories of one broker with the same
figures are on one disk. If the plan does not name a directory, the broker chooses: then all of its
disks together must have room, and one of them for the largest replica.

A plan whose batches wait for each other needs room for one batch at a time: replicas that a batch
removes are deleted before the next batch starts.
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
#: Directories with the same total bytes, and free bytes within this difference, are on one disk:
#: less is written between the reads of two of them, and two disks differ by more.
_SAME_DISK_BYTES: Final = 1 << 20


class PlanFault(NamedTuple):
    """A fault or a warning about a partition or a broker."""

    subject: str
    reason: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.reason}"


class PlanTarget(NamedTuple):
    """The cluster on which a plan will be executed.

    `log_dirs` has the participating live brokers' directories, or the error of a broker. `min_isr`
    is by topic, for topics with known settings.
    """

    view: ClusterView
    log_dirs: Mapping[int, Sequence[LogDirView] | EngineError]
    min_isr: Mapping[str, int]

    def size_bytes(self, change: PartitionChange, broker_id: int) -> int:
        """Return the size of a replica on its broker; if it is unknown, the size in the plan."""
        found = _size_in(change.name, self.log_dirs.get(broker_id))
        if found is not None:
            return found
        if change.old_sizes and broker_id in change.old_replicas:
            return change.old_sizes[change.old_replicas.index(broker_id)]
        return change.size_bytes

    def copied_bytes(self, change: PartitionChange) -> int:
        """Return the bytes that each added replica copies: the leader's size, else the plan's."""
        partition = self.view.partition(change.name)
        leader = None if partition is None else self.log_dirs.get(partition.leader)
        found = _size_in(change.name, leader)
        return change.size_bytes if found is None else found


class DiskRoom(NamedTuple):
    """Bytes to be copied to one disk, or to all disks of a broker, and the free bytes there.

    `short_bytes` are missing at the worst moment, `lasting_short_bytes` also after deletions.
    """

    broker_id: int
    paths: tuple[str, ...]
    coming_bytes: int
    free_bytes: int
    short_bytes: int
    lasting_short_bytes: int


class Preflight(NamedTuple):
    """Faults, warnings and disk space of a plan before its execution."""

    faults: Sequence[PlanFault]
    warnings: Sequence[PlanFault]
    rooms: Sequence[DiskRoom]


class _Copy(NamedTuple):
    """A replica that is added to or removed from a broker; without a path the broker chooses."""

    broker_id: int
    path: str | None
    size_bytes: int


def check_changes(
    changes: Sequence[PartitionChange],
    batches: Sequence[Sequence[int]],
    ground: PlanTarget,
    *,
    is_room_required: bool = True,
) -> Preflight:
    """Return faults that prevent changes, warnings, and the disk space that they need.

    `batches` are positions of changes that may run at the same time; a batch starts after the
    previous one is complete. Unless `is_room_required`, a disk that would be full is a warning:
    retention may free bytes that the estimate does not count.
    """
    faults = [fault for change in changes for fault in _target_faults(change, ground)]
    rooms = list(_disk_rooms(changes, batches, ground))
    lacks = [
        PlanFault(f"broker {room.broker_id}", _lack_text(room, room.lasting_short_bytes))
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
            f"{_lack_text(room, room.short_bytes)}, until what leaves is deleted",
        )
        for room in rooms
        if room.short_bytes and not room.lasting_short_bytes
    ]
    return Preflight(list(dict.fromkeys(faults)), warnings, rooms)


def waiting_changes(
    changes: Sequence[PartitionChange], order: PlanOrder, begun: Collection[TopicPartition]
) -> tuple[list[PartitionChange], list[list[int]]]:
    """Return the changes that have not begun, and for each batch their positions in that list."""
    batches = order.batches if order.has_barriers else [range(len(changes))]
    numbers = [number for number, change in enumerate(changes) if change.name not in begun]
    position_of = {number: position for position, number in enumerate(numbers)}
    positions = [[position_of[n] for n in batch if n in position_of] for batch in batches]
    return [changes[number] for number in numbers], positions


def _target_faults(change: PartitionChange, ground: PlanTarget) -> Iterator[PlanFault]:
    """Yield a fault for each broker or directory that cannot receive a replica of a change."""
    alive = ground.view.brokers
    for copy in _copies_to_make(change, ground):
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
    """Yield the fault of a directory that cannot receive a replica: unknown, or offline."""
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
    """Yield the warnings about a change: fewer replicas than min.insync.replicas, or no leader."""
    subject, count = str(change.name), len(change.new_replicas)
    min_isr = ground.min_isr.get(change.topic, 1)
    if count < min_isr:
        have = "1 replica" if count == 1 else f"{count} replicas"
        reason = f"{have}, and min.insync.replicas is {min_isr}: acks=all is refused from then on"
        yield PlanFault(subject, reason)
    partition = ground.view.partition(change.name)
    if partition is not None and not partition.has_leader and change.added:
        yield PlanFault(subject, "it has no leader: its replicas are copied once it has one")


# Disk space


def _copies_to_make(change: PartitionChange, ground: PlanTarget) -> list[_Copy]:
    """Return the replicas that a change copies to brokers, or between the directories of one."""
    named = dict(zip(change.new_replicas, change.new_log_dirs, strict=False))
    size_bytes = ground.copied_bytes(change)
    coming = [_Copy(id_, _named_path(named.get(id_)), size_bytes) for id_ in change.added]
    return coming + [
        _Copy(id_, path, ground.size_bytes(change, id_)) for id_, _, path in change.log_dir_moves
    ]


def _copies_to_delete(change: PartitionChange, ground: PlanTarget) -> list[_Copy]:
    """Return the replicas that are deleted after a change was copied."""
    lying = dict(zip(change.old_replicas, change.old_log_dirs, strict=False))
    leaving = [
        _Copy(id_, _named_path(lying.get(id_)), ground.size_bytes(change, id_))
        for id_ in change.removed
    ]
    return leaving + [
        _Copy(id_, _named_path(old), ground.size_bytes(change, id_))
        for id_, old, _ in change.log_dir_moves
    ]


def _named_path(name: str | None) -> str | None:
    """Return a log directory of a plan, None for "any", which lets the broker choose."""
    return None if name == _ANY else name


def _disk_rooms(
    changes: Sequence[PartitionChange], batches: Sequence[Sequence[int]], ground: PlanTarget
) -> Iterator[DiskRoom]:
    """Yield the space that each disk needs while the batches are executed.

    For replicas without a named directory the broker's disks count together.
    """
    coming = [[c for n in batch for c in _copies_to_make(changes[n], ground)] for batch in batches]
    leaving = [
        [c for n in batch for c in _copies_to_delete(changes[n], ground)] for batch in batches
    ]
    for broker_id in sorted({copy.broker_id for batch in coming for copy in batch}):
        dirs = ground.log_dirs.get(broker_id, [])
        if isinstance(dirs, EngineError):
            continue
        disks = _disks(dirs)
        if not disks:
            continue
        for paths, free_bytes in disks:
            here = (
                _copies_of_broker(coming, broker_id, paths),
                _copies_of_broker(leaving, broker_id, paths),
            )
            if any(here[0]):
                yield _disk_room(broker_id, paths, free_bytes, *here)
        of_broker = (
            _copies_of_broker(coming, broker_id, None),
            _copies_of_broker(leaving, broker_id, None),
        )
        unnamed = [c for batch in of_broker[0] for c in batch if c.path is None]
        if unnamed:
            yield _broker_room(broker_id, disks, unnamed, *of_broker)


def _broker_room(
    broker_id: int,
    disks: Sequence[tuple[tuple[str, ...], int]],
    unnamed: Sequence[_Copy],
    coming: Sequence[Sequence[_Copy]],
    leaving: Sequence[Sequence[_Copy]],
) -> DiskRoom:
    """Return the disk space of a broker that chooses the directories of some replicas itself.

    Its disks count together. `unnamed` are the replicas without a named directory.
    """
    paths = tuple(path for of_disk, _ in disks for path in of_disk)
    room = _disk_room(broker_id, paths, sum(free for _, free in disks), coming, leaving)
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


def _copies_of_broker(
    batches: Sequence[Sequence[_Copy]], broker_id: int, paths: Sequence[str] | None
) -> list[list[_Copy]]:
    """Return the copies of one broker in each batch.

    With `paths`, only those in these directories.
    """
    return [
        [c for c in batch if c.broker_id == broker_id and (paths is None or c.path in paths)]
        for batch in batches
    ]


def _disk_room(
    broker_id: int,
    paths: tuple[str, ...],
    free_bytes: int,
    coming: Sequence[Sequence[_Copy]],
    leaving: Sequence[Sequence[_Copy]],
) -> DiskRoom:
    """Return how many bytes a disk lacks, at the worst moment and at the end of a batch.

    During a batch the new and the old copies exist together.
    """
    free = free_bytes
    short = lasting = 0
    for come, leave in zip(coming, leaving, strict=True):
        free -= _total_bytes(come)
        short = max(short, -free)
        free += _total_bytes(leave)
        lasting = max(lasting, -free)
    total = sum(map(_total_bytes, coming))
    return DiskRoom(broker_id, paths, total, free_bytes, short, lasting)


def _total_bytes(copies: Iterable[_Copy]) -> int:
    """Return the sum of the copies' sizes."""
    return sum(copy.size_bytes for copy in copies)


def _disks(dirs: Sequence[LogDirView]) -> list[tuple[tuple[str, ...], int]] | None:
    """Return the disks of a broker: the log directories on each, and its free bytes.

    None if the broker does not return them. Offline directories are left out.
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


def _lack_text(room: DiskRoom, short_bytes: int) -> str:
    """Return a text with the bytes to come, the free bytes, and the missing bytes."""
    where = ", ".join(room.paths) or "no directory"
    return (
        f"{room.coming_bytes} bytes are to come, and {room.free_bytes} are free in {where}:"
        f" {short_bytes} bytes lack"
    )


def _size_in(key: TopicPartition, dirs: Sequence[LogDirView] | EngineError | None) -> int | None:
    """Return the size of a partition's replica in a broker's directories, None if it is unknown."""
    if dirs is None or isinstance(dirs, EngineError):
        return None
    sizes = [
        replica.size_bytes
        for log_dir in dirs
        for replica in log_dir.replicas
        if replica.partition == key and not replica.is_future
    ]
    return sizes[0] if sizes else None
