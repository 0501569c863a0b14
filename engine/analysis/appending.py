"""Append to an earlier export: only records behind the end offsets in its manifest.

1. The manifest of the folder is read. It has to be of the same form: columns, format, condition,
   anonymised columns, markers and isolation.
2. Records of each partition below the manifest's `next_offset` are left out: whole segments, and
   the beginning of the one after them.
3. The earlier files are copied into the staging folder, so that the folder still appears at once.
   Another export that was published since step 1 ends this one.

A log that was truncated or made again is not noticed, unless it ends before that offset, which is
a problem `short`; offsets that were deleted before a run came to them are a problem `deleted`.
Damage of the earlier export stays as it was listed, and is not listed again.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from engine.analysis.batch_order import OffsetSpan
from engine.analysis.export_folder import MANIFEST
from engine.analysis.problem import Problem
from engine.analysis.splits import Split
from engine.errors import EngineError
from engine.host.ports import FileMissing, Files
from engine.log.directory.file_copy import copy_file


class AppendMismatch(EngineError):
    """An earlier export has another form, or does not say how far it came."""

    exit_code = 2
    hint = "export without --append, or into another folder"

    def __init__(self, out: str, what: str) -> None:
        super().__init__(f"{out} cannot be appended to: {what}")
        self.out = out


class ExportChanged(EngineError):
    """Another export into the same folder ended while this one was planned."""

    hint = "run it again"

    def __init__(self, out: str) -> None:
        super().__init__(f"{out} was exported into meanwhile")
        self.out = out


class Earlier(NamedTuple):
    """An earlier export: its manifest as bytes and decoded, with the ends of its partitions."""

    content: bytes
    manifest: dict[str, Any]

    @property
    def ends(self) -> dict[tuple[str, int], int]:
        """Return the offset after the last exported one, of each partition."""
        return {
            (entry["topic"], entry["partition"]): entry["next_offset"]
            for entry in self.manifest["partitions"]
        }

    @property
    def run_count(self) -> int:
        """Return how many runs the export was made by."""
        return int(self.manifest.get("runs", 1))


def earlier_export(files: Files, out: str, form: dict[str, Any]) -> Earlier | None:
    """Return the export in a folder, None without one; raises AppendMismatch for another form."""
    try:
        content = files.read_bytes(f"{out}/{MANIFEST}")
    except FileMissing:
        return None
    try:
        manifest = json.loads(content)
        earlier = Earlier(content, manifest)
        earlier.ends.items()
    except (ValueError, KeyError, TypeError) as error:
        raise AppendMismatch(out, "its manifest does not say how far it came") from error
    check_form(out, manifest, form)
    return earlier


def check_form(out: str, earlier: Mapping[str, Any], form: Mapping[str, Any]) -> None:
    """Raise AppendMismatch unless an earlier export has the same form."""
    for name, value in form.items():
        if earlier.get(name) != value:
            raise AppendMismatch(out, f"its {name} is {earlier.get(name)}, here it is {value}")


def not_exported(splits: list[Split], earlier: Earlier) -> list[Split]:
    """Return the splits with records that an earlier export has not, and only those records."""
    ends = earlier.ends
    found = []
    for split in splits:
        end = ends.get((split.topic, split.partition), 0)
        if split.next_base is None or split.next_base > end:
            start = max(split.log_start_offset, end)
            found.append(split._replace(log_start_offset=start))
    return found


def deleted_offsets(splits: Iterable[Split], earlier: Earlier) -> list[Problem]:
    """Return the offsets that were deleted before any export read them, as problems.

    Compares the end of the earlier export with the log start offsets of the splits still to export.
    """
    firsts: dict[tuple[str, int], Split] = {}
    for split in splits:
        firsts.setdefault((split.topic, split.partition), split)
    found = []
    for place, end in earlier.ends.items():
        first = firsts.get(place)
        start = max(first.base_offset, first.log_start_offset) if first else 0
        if first and start > end:
            message = f"offsets {end} to {start - 1} were deleted before a run exported them"
            found.append(Problem(*place, first.path, 0, 0, "deleted", message))
    return found


def shortened(spans: Iterable[OffsetSpan], earlier: Earlier | None) -> list[Problem]:
    """Return the logs that end below the offset that an earlier export reached, as problems."""
    last: dict[tuple[str, int], OffsetSpan] = {}
    for span in spans:
        place = (span.topic, span.partition)
        if place not in last or _end_of(last[place]) < _end_of(span):
            last[place] = span
    ends = earlier.ends if earlier else {}
    return [
        Problem(*place, span.path, span.start, 0, "short", message)
        for place, span in sorted(last.items())
        if (end := ends.get(place, 0)) > _end_of(span)
        for message in (
            f"the log ends at offset {_end_of(span)}, and an earlier run came to {end}:"
            " it was truncated or made again",
        )
    ]


def _end_of(span: OffsetSpan) -> int:
    """Return the offset behind a split's last good batch, without one its base offset."""
    return span.base_offset if span.next_offset is None else span.next_offset


def exported_ends(
    spans: Iterable[OffsetSpan], splits: Iterable[Split], earlier: Earlier | None
) -> list[dict[str, Any]]:
    """Return the manifest's entries of partitions: the offset up to which each is exported.

    With read_committed, records above the last stable offset are left to the next run.
    """
    settled = {(s.topic, s.partition): s.end_offset for s in splits if s.end_offset is not None}
    ends = dict(earlier.ends) if earlier else {}
    for span in spans:
        place = (span.topic, span.partition)
        if span.next_offset is not None:
            end = min(span.next_offset, settled.get(place, span.next_offset))
            ends[place] = max(ends.get(place, 0), end)
    return [
        {"topic": topic, "partition": partition, "next_offset": end}
        for (topic, partition), end in sorted(ends.items())
    ]


def carry_over(files: Files, out: str, staging: str, earlier: Earlier) -> list[dict[str, Any]]:
    """Copy the files of an earlier export to the staging folder; return their manifest rows."""
    if files.read_bytes(f"{out}/{MANIFEST}") != earlier.content:
        raise ExportChanged(out)
    listed: list[dict[str, Any]] = earlier.manifest["files"]
    folders = sorted({posixpath.dirname(entry["name"]) for entry in listed} - {""})
    for folder in folders:
        files.make_dir(f"{staging}/{folder}")
    for entry in listed:
        copy_file(files, f"{out}/{entry['name']}", f"{staging}/{entry['name']}")
    for folder in sorted({above for f in folders for above in _with_parents(f)}, reverse=True):
        files.sync_dir(f"{staging}/{folder}")
    return listed


def _with_parents(folder: str) -> Iterable[str]:
    """Yield the folders above a relative folder, from the outermost, and the folder itself."""
    parts = folder.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts) + 1))


def earlier_problems(files: Files, path: str) -> list[Problem]:
    """Return the problems that an earlier export listed."""
    import io

    import pyarrow.parquet as pq

    rows = pq.read_table(io.BytesIO(files.read_bytes(path))).to_pylist()
    return [Problem(**row) for row in rows]
