"""Check that the files beside a partition's segments are intact and belong there.

```
NNN.snapshot             CRC; at a segment's base or at the end of the log
leader-epoch-checkpoint  format (check_epochs.py compares it with the batches)
partition.metadata       format
*.deleted *.cleaned *.swap *.tmp, an index without its log, foreign names
```
"""

from __future__ import annotations

from engine.errors import CorruptFile, StorageError
from engine.host.ports import Files
from engine.inspection.findings import Findings, Severity
from engine.log.directory import leader_epoch_checkpoint, partition_metadata
from engine.log.directory.leader_epoch_checkpoint import EpochStart, read_leader_epochs
from engine.log.directory.partition_metadata import read_partition_metadata
from engine.log.producer_snapshot import read_producer_snapshot
from engine.log.segment_files import PartitionFiles
from engine.naming import FileKind, FileState, SegmentFileName


def check_names(findings: Findings, partition: PartitionFiles) -> None:
    """Report leftovers of interrupted changes, and files with names that Kafka does not use."""
    for leftover in partition.leftovers:
        # A .swap file is data that replaces segments at the next start; others only take space.
        is_swap = leftover.parsed is not None and leftover.parsed.state is FileState.SWAP
        findings.add(
            Severity.WARNING if is_swap else Severity.NOTE,
            "leftover-file",
            partition.file_path(leftover.name),
            f"{leftover.size_bytes} bytes of a change that did not end",
        )
    for orphan in partition.orphans:
        findings.add(
            Severity.WARNING,
            "orphan-file",
            partition.file_path(orphan.name),
            "an index without its .log",
        )
    for name in partition.unknown:
        findings.add(
            Severity.NOTE, "unknown-file", partition.file_path(name), "none of Kafka's names"
        )


def check_metadata(findings: Findings, files: Files, partition: PartitionFiles) -> None:
    """Report an unreadable `partition.metadata`.

    A missing one is valid: older releases do not write the file.
    """
    if partition_metadata.FILE_NAME not in partition.side_files:
        return
    path = partition.file_path(partition_metadata.FILE_NAME)
    try:
        read_partition_metadata(files, path)
    except CorruptFile as error:
        _report_corrupt(findings, "metadata-corrupt", path, error)


def read_epochs(
    findings: Findings, files: Files, partition: PartitionFiles
) -> tuple[EpochStart, ...] | None:
    """Return the entries of `leader-epoch-checkpoint`, None if it is missing or corrupt.

    A corrupt file is also reported in `findings`.
    """
    if leader_epoch_checkpoint.FILE_NAME not in partition.side_files:
        return None
    path = partition.file_path(leader_epoch_checkpoint.FILE_NAME)
    try:
        return read_leader_epochs(files, path)
    except CorruptFile as error:
        _report_corrupt(findings, "epochs-corrupt", path, error)
        return None


def check_snapshots(
    findings: Findings, files: Files, partition: PartitionFiles, end_offset: int
) -> None:
    """Report producer snapshots that are damaged, or at an offset where none belongs.

    They belong to the base offset of a segment, or to an offset from the last base to the log end
    offset `end_offset`.
    """
    bases = {segment.base_offset for segment in partition.segments}
    last_base = max(bases, default=0)
    for offset in partition.snapshots:
        path = partition.file_path(SegmentFileName(offset, FileKind.SNAPSHOT).name)
        try:
            read_producer_snapshot(files, path)
        except CorruptFile as error:
            _report_corrupt(findings, "snapshot-corrupt", path, error)
        if offset > end_offset:
            findings.add(
                Severity.WARNING,
                "snapshot-place",
                path,
                f"it is for offset {offset}, the log ends at {end_offset}",
                offset=offset,
                expected=end_offset,
                got=offset,
            )
        elif offset not in bases and offset < last_base:
            findings.add(
                Severity.NOTE, "snapshot-place", path, "no segment starts there", offset=offset
            )


def _report_corrupt(findings: Findings, code: str, path: str, error: StorageError) -> None:
    """Report a file that cannot be decoded, as a warning with the code `code`.

    Position, expected and actual value are taken from the error if it has them.
    """
    findings.add(
        Severity.WARNING,
        code,
        path,
        str(error).removeprefix(f"{path}: ").removeprefix(f"{path} "),
        position=getattr(error, "position", None),
        expected=getattr(error, "expected", None),
        got=getattr(error, "got", None),
    )
