"""Every single damage of a small log directory, and what verify and export make of it.

```
flip    one bit of one byte, or all of them
cut     a file at one length
```

A damage passes if for every partition

```
no error but the engine's own comes out of verify, plan or export
a row that is given is the undamaged one, or its batch is named as damaged
an offset that is not given any more is in a range that export and verify name as missing, or
behind the last good batch of a log whose end they report
an export that is strict refuses unless it has all rows as they were
```

In a compacted log verify need not name offsets, but it reports a problem. With read_committed no
record is given that was not committed; what is not given any more is named in the same way, or as
undecided, or lies behind the start of a transaction that the lost end of a log has left open.

One damage cannot be decided by what a log has: a base offset, which no checksum covers, of a
compacted log that still fits between its neighbours. These are counted, and not run.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from engine.analysis.columns import RECORDS
from engine.analysis.damage import HARMLESS_CODES
from engine.analysis.gaps import add_gaps
from engine.analysis.isolation import hide_uncommitted, partitions_of
from engine.analysis.problem import Problem
from engine.analysis.record_batches import SplitRecords
from engine.analysis.splits import NothingSelected, Selection, Split, plan_splits
from engine.errors import EngineError
from engine.host.memory import MemoryFiles
from engine.inspection.findings import Finding
from engine.inspection.verify import VerifyOptions, verify_log_dir, verify_partition
from engine.log.batch_scan import scan_batches
from engine.log.directory.leader_epoch_checkpoint import EpochStart, encode_leader_epochs
from engine.log.directory.log_dir import NoLogDirectory, find_log_dir
from engine.log.directory.offset_checkpoint import (
    CLEANER_POINTS,
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    encode_offsets,
)
from engine.log.producer_snapshot import encode_producer_snapshot
from engine.log.txn_index import AbortedTransaction, encode_txn_index
from engine.model import TopicPartition
from engine.naming import FileKind
from engine.records.codec import Codec
from engine.records.control import ControlType
from tests.unit.log.logs import batch, data_of, marker_of, name_of, put, put_segment

ROOT = "/data"
_SPLIT_BYTES = 600
Key = tuple[str, int]
Row = dict[str, Any]
Disk = dict[str, bytes]


class Damage(NamedTuple):
    """One damage: of a file, at a position; `mask` 0 cuts the file there."""

    path: str
    position: int
    mask: int


class Outcome(NamedTuple):
    """What came of one damage; `faults` is empty if it passed."""

    faults: tuple[str, ...]
    lost_rows: int
    is_reported: bool


def _message(magic: int, offset: int) -> bytes:
    times = (1_700_000_000_000 + offset).to_bytes(8, "big") if magic else b""
    key, value = b"k%02d" % offset, b"v" * 12
    parts = b"".join(len(part).to_bytes(4, "big") + part for part in (key, value))
    body = bytes((magic, 0)) + times + parts
    message = zlib.crc32(body).to_bytes(4, "big") + body
    return offset.to_bytes(8, "big") + len(message).to_bytes(4, "big") + message


def _plain() -> tuple[dict[int, bytes], tuple[EpochStart, ...]]:
    first = b"".join(batch(2 * n, 2, codec=Codec.GZIP if n == 3 else Codec.NONE) for n in range(8))
    second = b"".join(batch(16 + 3 * n, 3, epoch=0 if n < 2 else 3) for n in range(5))
    return {0: first, 16: second, 31: batch(31, 2, epoch=3) + batch(33, 1, epoch=3)}, (
        EpochStart(0, 0),
        EpochStart(3, 22),
    )


def _transactions() -> dict[int, bytes]:
    first = (
        data_of(7, 0) + data_of(8, 1, 2) + data_of(7, 3) + marker_of(7, 4) + data_of(7, 5, 2)
        + marker_of(8, 7, ControlType.COMMIT) + batch(8, 2)
    )  # fmt: skip
    second = (
        marker_of(7, 10, ControlType.COMMIT) + data_of(8, 11) + data_of(7, 12)
        + marker_of(8, 13) + data_of(8, 14) + marker_of(7, 15, ControlType.COMMIT)
    )  # fmt: skip
    return {0: first, 10: second}


def _build() -> Disk:
    files = MemoryFiles()
    segments, epochs = _plain()
    logs: dict[str, dict[int, bytes]] = {
        "plain": segments,
        "txn": _transactions(),
        "old": {0: b"".join(_message(n % 2, n) for n in range(8)), 8: _message(1, 8)},
        "compact": {
            0: batch(1) + batch(4, 2) + batch(9) + batch(10) + batch(13),
            20: batch(20) + batch(21, 2),
        },
    }
    ends = {"plain": 34, "txn": 16, "old": 9, "compact": 23}
    for topic, log in logs.items():
        path = f"{ROOT}/{topic}-0"
        files.make_dir(path)
        for base_offset, content in log.items():
            put_segment(files, base_offset, content, path=path)
        stored = epochs if topic == "plain" else (EpochStart(0, 0),) if topic != "old" else ()
        put(files, "leader-epoch-checkpoint", encode_leader_epochs(stored), path)
        put(files, name_of(ends[topic], FileKind.SNAPSHOT), encode_producer_snapshot([]), path)
    aborted = {
        0: [AbortedTransaction(7, 0, 4, 1)],
        10: [AbortedTransaction(8, 11, 13, 12)],
    }
    for base_offset, entries in aborted.items():
        name = name_of(base_offset, FileKind.TXNINDEX)
        put(files, name, encode_txn_index(entries), f"{ROOT}/txn-0")
    offsets = {TopicPartition(topic, 0): end for topic, end in ends.items()}
    for name in (RECOVERY_POINTS, HIGH_WATERMARKS):
        put(files, name, encode_offsets(offsets), ROOT)
    cleaned = encode_offsets({TopicPartition("compact", 0): 20})
    put(files, CLEANER_POINTS, cleaned, ROOT)
    put(files, "meta.properties", b"version=0\nbroker.id=1\ncluster.id=c\n", ROOT)
    return {
        f"{folder}/{name}": files.read_bytes(f"{folder}/{name}")
        for folder in (ROOT, *(f"{ROOT}/{topic}-0" for topic in logs))
        for name in files.list_dir(folder)
        if not files.is_dir(f"{folder}/{name}")
    }


@cache
def undamaged() -> Disk:
    """Return the files of the directory by path."""
    return _build()


def damages() -> Iterator[Damage]:
    """Yield every damage: each bit and all bits of each byte, each shorter length of each file."""
    for path, content in sorted(undamaged().items()):
        for position in range(len(content)):
            for bit in range(8):
                yield Damage(path, position, 1 << bit)
            yield Damage(path, position, 0xFF)
            yield Damage(path, position, 0)


def is_undecidable(damage: Damage) -> bool:
    """Return whether a damage moves a batch of the compacted log within the room that it has."""
    content = undamaged()[damage.path]
    if not damage.mask or "/compact-0/" not in damage.path or not damage.path.endswith(".log"):
        return False
    file = MemoryFiles().open("log", write=True, create=True)
    file.append([content])
    places = [(p, b.base_offset, b.last_offset) for p, b in scan_batches(file)]
    for number, (position, base_offset, last_offset) in enumerate(places):
        if not position <= damage.position < position + 8:
            continue
        moved = base_offset ^ damage.mask << 8 * (7 - damage.position + position)
        lowest = places[number - 1][2] + 1 if number else _base_of(damage.path)
        highest = places[number + 1][1] - 1 if number + 1 < len(places) else _end_of(damage.path)
        return lowest <= moved and moved + last_offset - base_offset <= highest
    return False


def _base_of(path: str) -> int:
    return int(path.rpartition("/")[2].split(".")[0])


def _end_of(path: str) -> int:
    """Return the last offset that a segment can have by the name of the next one."""
    folder = path.rpartition("/")[0]
    bases = sorted(_base_of(p) for p in undamaged() if p.startswith(folder) and p.endswith(".log"))
    return min((base - 1 for base in bases if base > _base_of(path)), default=-1)


def run(damage: Damage) -> Outcome:
    """Return what verify and export make of a damage."""
    disk = dict(undamaged())
    content = bytearray(disk[damage.path])
    if damage.mask:
        content[damage.position] ^= damage.mask
    else:
        del content[damage.position :]
    disk[damage.path] = bytes(content)
    parts = damage.path.removeprefix(f"{ROOT}/").split("/")
    topics = [parts[0].removesuffix("-0")] if len(parts) > 1 else ["plain", "txn", "old", "compact"]
    faults: list[str] = []
    lost, is_reported = 0, False
    for topic in topics:
        try:
            checked = _check(_view(disk, topic), _view_undamaged(topic))
        except EngineError as error:
            if not isinstance(error, NothingSelected | NoLogDirectory):
                faults.append(f"{type(error).__name__}: {error}")
            is_reported = True
        except Exception as error:
            faults.append(f"{type(error).__name__}: {error}")
        else:
            faults += checked.faults
            lost += checked.lost_rows
            is_reported = is_reported or checked.is_reported
    return Outcome(tuple(faults), lost, is_reported)


class _View(NamedTuple):
    """What verify and export say of one partition."""

    rows: dict[Key, Row]
    repeated: int
    committed: dict[Key, Row]
    problems: list[Problem]
    undecided: list[Problem]
    findings: list[Finding]
    stable_offset: int | None


@cache
def _view_undamaged(topic: str) -> _View:
    view = _view(undamaged(), topic)
    assert view.problems == view.undecided == view.findings == []
    return view


def _view(disk: Disk, topic: str) -> _View:
    files = MemoryFiles()
    folder = f"{ROOT}/{topic}-0"
    files.make_dir(folder)
    for path, content in disk.items():
        parent, _, name = path.rpartition("/")
        if parent in (ROOT, folder):
            put(files, name, content, parent)
    found = find_log_dir(files, ROOT)
    findings = verify_log_dir(found)
    for partition in found.partitions:
        options = VerifyOptions(deep=True)
        findings += verify_partition(files, partition, found.state, options).findings
    splits = plan_splits(files, [ROOT], Selection(), _SPLIT_BYTES)
    rows, problems, repeated = _exported(files, splits)
    committed = [hide_uncommitted(files, group) for group in partitions_of(splits)]
    settled = [split for part in committed for split in part.splits]
    return _View(
        rows,
        repeated,
        _exported(files, settled)[0],
        problems,
        [problem for part in committed for problem in part.problems],
        [finding for finding in findings if finding.is_problem],
        settled[0].end_offset,
    )


def _exported(files: MemoryFiles, splits: list[Split]) -> tuple[dict[Key, Row], list[Problem], int]:
    records = SplitRecords(files, RECORDS, include_control=False)
    rows = [
        row for split in splits for part in records.batches_of(split) for row in part.to_pylist()
    ]
    by_key = {(row["topic"], row["offset"]): row for row in rows}
    return by_key, add_gaps(records.problems, records.spans), len(rows) - len(by_key)


def _check(view: _View, truth: _View) -> Outcome:
    faults = []
    named = {
        (p.segment, p.position) for p in view.problems if p.code not in ("lost", "gap", "short")
    }
    for kind, rows, expected in (
        ("row", view.rows, truth.rows),
        ("committed row", view.committed, truth.committed),
    ):
        for key, row in rows.items():
            place = (row["segment"], row["batchPosition"])
            if row != expected.get(key) and place not in named:
                faults.append(f"a wrong {kind} is given as good: {key}")
    is_refused = any(problem.code not in HARMLESS_CODES for problem in view.problems)
    if not is_refused and (view.rows != truth.rows or view.repeated):
        faults.append("a strict export publishes other rows")
    if view.repeated and not view.problems:
        faults.append("a row is given twice")
    missing = {key[1] for key in truth.rows.keys() - view.rows.keys()}
    hidden = {key[1] for key in truth.committed.keys() - view.committed.keys()}
    by_export = _named_by(view.problems)
    by_verify = _named_by(view.findings)
    undecided = _named_by(view.undecided)
    is_compacted = any(split_key[0] == "compact" for split_key in truth.rows)
    last_given = max((key[1] for key in view.rows), default=-1)
    for offset in sorted(missing):
        is_tail = offset > last_given
        if offset not in by_export and not (is_tail and view.problems):
            faults.append(f"export does not name offset {offset} as missing")
        verify_names = offset in by_verify or (view.findings and (is_tail or is_compacted))
        if not verify_names:
            faults.append(f"verify does not name offset {offset} as missing")
    is_end_lost = bool({"short", "torn_tail"} & {p.code for p in view.problems})
    for offset in sorted(hidden - missing - undecided):
        if is_end_lost and view.stable_offset is not None and offset >= view.stable_offset:
            continue
        faults.append(f"a committed record is hidden and not named: {offset}")
    is_reported = bool(view.problems or view.findings or view.undecided)
    return Outcome(tuple(faults), len(missing), is_reported)


def _named_by(reports: Sequence[Problem | Finding]) -> set[int]:
    """Return the offsets that reports name, the first thousand of each range."""
    found: set[int] = set()
    for report in reports:
        for first, last in re.findall(r"offsets (\d+) to (\d+)", report.message):
            found.update(range(int(first), min(int(last), int(first) + 1000) + 1))
        if (ends := re.search(r"ends at offset (\d+), but (\d+)", report.message)) is not None:
            found.update(range(int(ends[1]), min(int(ends[2]), int(ends[1]) + 1000)))
    return found
