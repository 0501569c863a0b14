"""Plans the repair of a partition directory, without changing it.

In the order of execution:

```
1 leftovers     removed or completed as by a broker at its start (swap_recovery.py)
2 .log          cut at the first bad batch, or at its beginning if an index cannot hold its
                offsets; all later segments are removed
3 indexes       .index .timeindex .txnindex rewritten if they are wrong or missing
4 leader epochs entries after the new end are removed, missing ones are added from the batches
5 snapshots     damaged ones and those after the new end are removed: a broker rebuilds them
```

A batch is bad if a broker's recovery would cut there: a size below 14, a batch that does not end in
the file, a wrong checksum.

Source: Kafka's LogLoader.recoverLog and LogSegment.recover; L2, L3, LOG-12.
Differs: a batch below its segment's base offset, or 2^31 above it, is cut as well; a broker does
not start with such a log. Every segment is checked, not only those from the recovery point on; with
`recovery_point` older ones keep their damage, and then their indexes, as in a broker.
Kept, as by a broker: batches with a magic byte above 2 or a wrong leader epoch, which no checksum
covers, and offsets that are missing, or that overlap or repeat where no index entry is due.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

from engine.errors import CorruptFile
from engine.host.ports import Files
from engine.inspection.check_epochs import compare_epochs
from engine.inspection.findings import Findings
from engine.inspection.repair_actions import (
    Action,
    CutFile,
    RemoveFile,
    RenameFile,
    RepairOptions,
    RepairPlan,
    WriteFile,
)
from engine.inspection.segment_recovery import (
    PartitionTrail,
    PassOptions,
    SegmentEmptied,
    SegmentIndexes,
    SegmentRecovery,
    recover_segment,
)
from engine.log.directory import leader_epoch_checkpoint
from engine.log.directory.leader_epoch_checkpoint import (
    EpochStart,
    assign_epoch,
    encode_leader_epochs,
    read_leader_epochs,
    truncated_from_end,
)
from engine.log.directory.log_dir import PartitionFolder
from engine.log.offset_index import read_offset_index
from engine.log.producer_snapshot import read_producer_snapshot
from engine.log.recovery.swap_recovery import plan_swaps, read_end_offset
from engine.log.time_index import read_time_index
from engine.log.txn_index import encode_txn_index, read_txn_index
from engine.naming import FileKind, SegmentFileName, parse_segment_file


def plan_repair(
    files: Files,
    partition: PartitionFolder,
    options: RepairOptions | None = None,
    *,
    on_read: Callable[[int], object] | None = None,
) -> RepairPlan:
    """Return the plan that repairs a partition directory; it has no actions if all is intact.

    `on_read` gets the size of each .log that was read.
    """
    return _Planner(files, partition, options or RepairOptions(), on_read).plan()


class _Planner:
    def __init__(
        self,
        files: Files,
        partition: PartitionFolder,
        options: RepairOptions,
        on_read: Callable[[int], object] | None,
    ) -> None:
        """`on_read` gets the size of each .log that was read."""
        self._files = files
        self._on_read = on_read
        self._partition = partition
        self._layout = partition.files
        self._options = options
        self._actions: list[Action] = []
        #: State carried from segment to segment.
        self._trail = PartitionTrail()
        #: Final size of each .log by base offset.
        self._log_bytes: dict[int, int] = {}
        self._end_offset = 0
        #: Bytes that the repair removes at the end, and the offset from which records are lost.
        #: None: none are.
        self._lost_bytes = 0
        self._lost_from: int | None = None
        #: Present name of each file, by its name after the leftovers are handled.
        self._present: dict[str, str] = {}
        #: Present name and size of each .log, by base offset.
        self._logs: dict[int, tuple[str, int]] = {}

    def plan(self) -> RepairPlan:
        """Return the plan, with the actions in the order of execution."""
        self._plan_leftovers()
        self._plan_segments()
        self._plan_epochs()
        self._plan_snapshots()
        removed = {action.name for action in self._actions if isinstance(action, RemoveFile)}
        carried = [(now, name) for name, now in self._present.items() if name not in removed]
        carried += [(name, name) for name in self._layout.side_files]
        carried += [(parsed.name, parsed.name) for parsed in self._layout.checkpoints]
        return RepairPlan(
            self._partition.name,
            self._layout.path,
            tuple(self._actions),
            tuple(carried),
            self._log_bytes,
            self._end_offset,
            self._lost_bytes,
            self._lost_from,
            self._trail.overlaps,
        )

    # 1 leftovers

    def _plan_leftovers(self) -> None:
        """Plan to complete or remove what interrupted cleanings, splits and deletions left."""
        swaps = plan_swaps(
            self._layout,
            lambda name: read_end_offset(self._files, self._layout.file_path(name)),
        )
        for name, reason in swaps.removed:
            self._actions.append(RemoveFile(name, reason))
        for name, target in swaps.renamed:
            self._actions.append(RenameFile(name, target, "a finished cleaning"))
        self._logs = dict(swaps.logs)
        self._present = dict(swaps.present)

    # 2 and 3 logs and their indexes

    def _plan_segments(self) -> None:
        """Check the segments in order; truncate at the first damage, else repair indexes.

        Damage in a segment below the recovery point, which a broker would not check, is kept.
        """
        bases = sorted(self._logs)
        checked_from = self._first_checked(bases)
        for number, base_offset in enumerate(bases):
            is_last = number == len(bases) - 1
            _, size = self._logs[base_offset]
            present = self._read_indexes(base_offset)
            recovery = self._recover_segment(
                base_offset, present, is_last=is_last, is_checked=base_offset >= checked_from
            )
            if self._on_read:
                self._on_read(size)
            self._end_offset = max(self._end_offset, recovery.next_offset)
            if recovery.damage is not None and base_offset < checked_from:
                self._log_bytes[base_offset] = size
                self._trail.is_complete = False
                continue
            self._log_bytes[base_offset] = recovery.good_bytes
            if recovery.damage is not None:
                self._end_offset = recovery.next_offset
                self._plan_truncation(base_offset, recovery, size, bases[number + 1 :])
                self._plan_indexes(base_offset, present, recovery, is_last=True)
                return
            self._plan_indexes(base_offset, present, recovery, is_last=is_last)

    def _recover_segment(
        self, base_offset: int, present: SegmentIndexes, *, is_last: bool, is_checked: bool
    ) -> SegmentRecovery:
        """Read a .log, and return what of it is valid, with new indexes.

        If no index can hold its offsets, it counts as damaged from the position at which a broker's
        recovery truncates it.
        """
        name, _ = self._logs[base_offset]
        before = deepcopy(self._trail)

        def read(end_bytes: int | None = None) -> SegmentRecovery:
            """Read the segment up to `end_bytes`, None for all of it."""
            return recover_segment(
                self._files,
                self._layout.file_path(name),
                base_offset,
                present=present,
                trail=self._trail,
                options=PassOptions(
                    self._options.index_interval_bytes,
                    is_last,
                    skips_disorder=not is_checked,
                    cuts_overlaps=self._options.cuts_overlaps and is_checked,
                    end_bytes=end_bytes,
                ),
            )

        try:
            return read()
        except SegmentEmptied as disorder:
            # The trail has seen what follows the cut and will be removed.
            self._trail = before
            return read(disorder.cut_at)._replace(damage=str(disorder))

    def _first_checked(self, bases: list[int]) -> int:
        """Return the base offset of the segment that contains the recovery point.

        A broker checks segments from there on after an unclean stop. It is 0 without a recovery
        point.
        """
        point = self._options.recovery_point
        if point is None:
            return 0
        return max((base for base in bases if base <= point), default=0)

    def _plan_truncation(
        self, base_offset: int, recovery: SegmentRecovery, size: int, later: list[int]
    ) -> None:
        """Plan to truncate a segment after its good bytes, and to remove all later segments.

        `size` is the segment's size in bytes; `later` are the base offsets of the later ones.
        """
        log = SegmentFileName(base_offset, FileKind.LOG).name
        self._lost_bytes = size - recovery.good_bytes
        self._lost_from = recovery.next_offset
        # From the last one down: after a crash, what is left is a complete beginning.
        for following in reversed(later):
            _, following_bytes = self._logs[following]
            self._lost_bytes += following_bytes
            self._plan_removal(following, f"it follows damage in {log}")
        reason = f"at position {recovery.good_bytes}: {recovery.damage}"
        self._actions.append(CutFile(log, recovery.good_bytes, size, reason))

    def _plan_removal(self, base_offset: int, reason: str) -> None:
        """Plan to remove all files of a segment, the `.log` last.

        If the repair is interrupted, the .log still shows that the segment exists.
        """
        for kind in (
            FileKind.SNAPSHOT,
            FileKind.TXNINDEX,
            FileKind.TIMEINDEX,
            FileKind.INDEX,
            FileKind.LOG,
        ):
            name = SegmentFileName(base_offset, kind).name
            if name in self._present:
                self._actions.append(RemoveFile(name, reason, kind is FileKind.LOG))
                del self._present[name]

    def _read_indexes(self, base_offset: int) -> SegmentIndexes:
        """Return the usable indexes of a segment.

        An index is None if it is missing or has a fault for which a broker would rebuild it.
        """
        index = time_index = txn_index = None
        path = self._present_path(base_offset, FileKind.INDEX)
        if path:
            index = read_offset_index(self._files, path, base_offset)
            index = None if index.find_problem() or index.hides_entries else index
        path = self._present_path(base_offset, FileKind.TIMEINDEX)
        if path:
            time_index = read_time_index(self._files, path, base_offset)
            time_index = (
                None if time_index.find_problem() or time_index.hides_entries else time_index
            )
        path = self._present_path(base_offset, FileKind.TXNINDEX)
        if path:
            try:
                txn_index = read_txn_index(self._files, path)
            except CorruptFile:
                txn_index = None
        return SegmentIndexes(index, time_index, txn_index)

    def _present_path(self, base_offset: int, kind: FileKind) -> str | None:
        """Return the path of a segment's file, None if it does not exist or will be removed.

        A file that the plan renames is still read under its old name.
        """
        name = self._present.get(SegmentFileName(base_offset, kind).name)
        return self._layout.file_path(name) if name else None

    def _plan_indexes(
        self,
        base_offset: int,
        present: SegmentIndexes,
        recovery: SegmentRecovery,
        *,
        is_last: bool,
    ) -> None:
        """Plan to write the indexes of a segment that are missing, unusable or wrong.

        `present` are the usable indexes on disk, `recovery` has those made from the .log. After
        damage, or if all are to be rebuilt, also indexes that fit are written.
        """
        forced = self._options.rebuild_all or recovery.damage is not None
        # A broker creates the indexes of a new segment when it first needs them; but Kafka's dump
        # tool fails without them, so a segment that is emptied gets them.
        may_lack = is_last and not recovery.good_bytes and recovery.damage is None
        for kind, fits, is_there, content in (
            (
                FileKind.INDEX,
                recovery.offset_index_fits,
                present.offset_index is not None,
                recovery.offset_index.encode(),
            ),
            (
                FileKind.TIMEINDEX,
                recovery.time_index_fits,
                present.time_index is not None,
                recovery.time_index.encode(),
            ),
        ):
            if not fits or forced:
                has_file = self._present_path(base_offset, kind) is not None
                if has_file or not may_lack:
                    reason = "wrong" if is_there else ("unusable" if has_file else "missing")
                    self._plan_write(base_offset, kind, content, "rebuilt" if fits else reason)
        entries = present.txn_index.entries if present.txn_index else ()
        has_file = self._present_path(base_offset, FileKind.TXNINDEX) is not None
        is_odd = has_file and (present.txn_index is None or present.txn_index.leftover_bytes)
        if recovery.transactions != entries or is_odd:
            content = encode_txn_index(recovery.transactions)
            self._plan_write(
                base_offset, FileKind.TXNINDEX, content, "wrong" if has_file else "missing"
            )

    def _plan_write(self, base_offset: int, kind: FileKind, content: bytes, reason: str) -> None:
        """Plan to write a file of a segment, unless the present one has this content already."""
        path = self._present_path(base_offset, kind)
        if path and self._files.read_bytes(path) == content:
            return
        self._actions.append(WriteFile(SegmentFileName(base_offset, kind).name, content, reason))

    # 4 leader epochs

    def _plan_epochs(self) -> None:
        """Plan to write `leader-epoch-checkpoint` if it does not fit the repaired log.

        A missing one is written if batches have leader epochs.
        """
        name = leader_epoch_checkpoint.FILE_NAME
        path = self._layout.file_path(name)
        stored: tuple[EpochStart, ...] | None = None
        if name in self._layout.side_files:
            try:
                stored = read_leader_epochs(self._files, path)
            except CorruptFile:
                stored = None
        if stored is not None and self._lost_from is None and self._epochs_fit(stored):
            return
        entries = self._rebuilt_epochs(stored or ())
        if stored is None and not entries and name not in self._layout.side_files:
            return
        if entries != stored:
            reason = "wrong or after the end" if stored is not None else "missing or unusable"
            self._actions.append(WriteFile(name, encode_leader_epochs(entries), reason))

    def _rebuilt_epochs(self, stored: tuple[EpochStart, ...]) -> tuple[EpochStart, ...]:
        """Return the epoch entries for the repaired log, from the stored entries and the batches.

        They are those that a broker's recovery would leave; if these contradict the batches, one
        entry for each epoch of the batches.
        """
        runs = self._trail.epochs.runs
        entries: tuple[EpochStart, ...] = ()
        for epoch_start in stored:
            entries = assign_epoch(entries, epoch_start)
        for run in runs:
            if not entries or run.epoch > entries[-1].epoch:
                entries = assign_epoch(entries, EpochStart(run.epoch, run.first_offset))
        # An entry at the end is that of a leader that has not written anything yet.
        entries = truncated_from_end(entries, self._end_offset + (self._lost_from is None))
        if self._epochs_fit(entries):
            return entries
        return tuple(EpochStart(run.epoch, run.first_offset) for run in runs)

    def _epochs_fit(self, entries: tuple[EpochStart, ...]) -> bool:
        """Return True if these checkpoint entries agree with the leader epochs of the batches."""
        findings = Findings()
        compare_epochs(
            findings,
            "",
            runs=self._trail.epochs.runs,
            entries=entries,
            end_offset=self._end_offset,
        )
        return not findings.all()

    # 5 snapshots

    def _plan_snapshots(self) -> None:
        """Plan to remove producer snapshots that are damaged or after the log's end."""
        for name in sorted(self._present):
            parsed = parse_segment_file(name)
            if parsed.kind is not FileKind.SNAPSHOT:
                continue
            if parsed.base_offset > self._end_offset:
                self._remove_snapshot(name, f"the log ends at {self._end_offset}")
                continue
            try:
                read_producer_snapshot(self._files, self._layout.file_path(self._present[name]))
            except CorruptFile as error:
                self._remove_snapshot(name, f"expected {error.expected}, got {error.got}")

    def _remove_snapshot(self, name: str, reason: str) -> None:
        """Plan to remove a producer snapshot, and take it out of the present files."""
        self._actions.append(RemoveFile(name, reason))
        del self._present[name]
