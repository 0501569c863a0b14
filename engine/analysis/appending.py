"""Append to an earlier export: only records at or above the end offsets in its manifest.

1. The manifest of the folder is read. Its form must be equal: columns, format, condition,
   anonymised columns, markers and isolation.
2. Records of each partition below the manifest's `next_offset` are left out: complete segments,
   and the beginning of the segment that contains the offset.
3. The earlier files are copied into the staging folder, so that readers see all files at once.
   If another export was published since step 1, this one fails.

A log that was truncated or recreated is noticed only if it ends below that offset: a problem
`short`. Offsets that were deleted before a run read them are a problem `deleted`. The problems that
the earlier export listed stay in the list, once.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypedDict

from engine.analysis.batch_order import OffsetSpan
from engine.analysis.export_folder import MANIFEST
from engine.analysis.problem import Problem
from engine.analysis.splits import Split
from engine.errors import EngineError
from engine.host.ports import FileMissing, Files
from engine.json_text import JsonObject
from engine.log.directory.file_copy import copy_file


class AppendMismatch(EngineError):
    """An earlier export has another form, or its manifest lacks the end offsets."""

    exit_code = 2
    hint = "export without --append, or into another folder"

    def __init__(self, out: str, what: str) -> None:
        super().__init__(f"{out} cannot be appended to: {what}")
        self.out = out


class ExportChanged(EngineError):
    """Another export into the same folder was published after this run had read the manifest."""

    hint = "run it again"

    def __init__(self, out: str) -> None:
        super().__init__(f"{out} was exported into meanwhile")
        self.out = out


class ExportedFile(TypedDict):
    """A file of an export, as its manifest lists it."""

    name: str
    records: int
    bytes: int


class ExportedEnd(TypedDict):
    """The offset after the exported records of a partition, as a manifest lists it."""

    topic: str
    partition: int
    next_offset: int


class Earlier(NamedTuple):
    """An earlier export: the bytes of its manifest, and the manifest decoded from JSON."""

    content: bytes
    manifest: JsonObject

    @property
    def ends(self) -> dict[tuple[str, int], int]:
        """Return the offset after the last exported one for each (topic, partition)."""
        return {
            (entry["topic"], entry["partition"]): entry["next_offset"]
            for entry in self.manifest["partitions"]
        }

    @property
    def run_count(self) -> int:
        """Return the number of runs that have added to the export, by its manifest."""
        return int(self.manifest.get("runs", 1))


def read_earlier_export(files: Files, out: str, form: Mapping[str, object]) -> Earlier | None:
    """Return the export to append to in the folder `out`, None if the folder has no manifest.

    Raises AppendMismatch for another form or a manifest without end offsets.
    """
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


def check_form(out: str, earlier: Mapping[str, object], form: Mapping[str, object]) -> None:
    """Raise AppendMismatch if an export to append to was made with other columns or options.

    Each field of `form` must have the same value in the manifest `earlier`.
    """
    for name, value in form.items():
        if earlier.get(name) != value:
            raise AppendMismatch(out, f"its {name} is {earlier.get(name)}, here it is {value}")


def splits_not_exported(splits: list[Split], earlier: Earlier) -> list[Split]:
    """Return the splits that have records above the earlier export's end offsets.

    They are limited to these records by their log start offset.
    """
    ends = earlier.ends
    found = []
    for split in splits:
        end = ends.get((split.topic, split.partition), 0)
        if split.next_base is None or split.next_base > end:
            start = max(split.log_start_offset, end)
            found.append(split._replace(log_start_offset=start))
    return found


def deleted_offset_problems(splits: Iterable[Split], earlier: Earlier) -> list[Problem]:
    """Return a problem for each partition whose records were deleted before any run read them.

    The log start offset of the first split is then above the end of the earlier export.
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


def shortened_log_problems(spans: Iterable[OffsetSpan], earlier: Earlier | None) -> list[Problem]:
    """Return a problem `short` for each log that ends below the earlier export's end offset."""
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
    """Return the offset after a split's last good batch; its base offset if it has none."""
    return span.base_offset if span.next_offset is None else span.next_offset


def exported_ends(
    spans: Iterable[OffsetSpan], splits: Iterable[Split], earlier: Earlier | None
) -> list[ExportedEnd]:
    """Return the manifest's list of partitions, each with the offset after its exported records.

    The next run starts there. With read_committed that is at most the last stable offset.
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


def carry_over(files: Files, out: str, staging: str, earlier: Earlier) -> list[ExportedFile]:
    """Copy the files of an earlier export to the staging folder; return their manifest entries.

    The new export replaces the earlier one as a whole. Raises ExportChanged if the manifest has
    changed since it was read.
    """
    if files.read_bytes(f"{out}/{MANIFEST}") != earlier.content:
        raise ExportChanged(out)
    listed: list[ExportedFile] = earlier.manifest["files"]
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


def read_earlier_problems(files: Files, path: str) -> list[Problem]:
    """Return the problems that an earlier export wrote to the Parquet file at `path`."""
    import io

    import pyarrow.parquet as pq

    rows = pq.read_table(io.BytesIO(files.read_bytes(path))).to_pylist()
    return [Problem(**row) for row in rows]
