"""Comparing exported records with what an independent client read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from tests.golden_cases import case_dir, truth_rows, unpacked

#: Cases whose records are in one folder, and folders of a case with a truth of their own.
_ONE_FOLDER = {"codecs": "data", "plain": "data", "formats": "data", "groups": "data",
               "stamps": "data", "txn": "data", "epochs": "rest/broker1"}  # fmt: skip
_FOLDERS = {
    "compact": ["before1", "after1", "before2", "after2", "before3", "after3"],
    "retention": ["before", "window"],
    "recovery-391": ["recovered"],
    "recovery-430": ["recovered"],
}


class TruthSet(NamedTuple):
    """A log directory and the truth files of its topics under one isolation level."""

    case: str
    folder: str
    isolation: str

    @property
    def log_dir(self) -> Path:
        return case_dir(self.case) / self.folder

    def files(self) -> dict[str, Path]:
        """Return topic → truth file. Where both levels agree there is one file for both."""
        root = Path(__file__).parent / "golden" / self.case / "truth"
        place = root if self.case in _ONE_FOLDER or "kraft" in self.case else root / self.folder
        found = {p.name.split(".read_")[0]: p for p in place.glob("*.read_uncommitted.jsonl.gz")}
        if self.isolation == "read_committed":
            found |= {p.name.split(".read_")[0]: p for p in place.glob("*.read_committed.jsonl.gz")}
        return found


def truth_sets(isolation: str) -> list[TruthSet]:
    """Return every golden directory that has a truth."""
    sets = [TruthSet(case, folder, isolation) for case, folder in _ONE_FOLDER.items()]
    sets += [TruthSet(c, folder, isolation) for c, fs in _FOLDERS.items() for folder in fs]
    sets += [TruthSet(case, "stopped/node1", isolation) for case in ("kraft-391", "kraft-430")]
    return sets


_TYPES = {"CreateTime": 0, "LogAppendTime": 1, "NotAvailable": -1, "NoTimestampType": -1}


def truth_records(path: Path) -> list[tuple[Any, ...]]:
    """Return the records of a truth file in a form that can be compared, sorted."""
    rows = [
        (
            row["partition"],
            row["offset"],
            # The client says 0 for a record without a time, Kafka and we say -1.
            row["timestamp"] if _TYPES[row["timestampType"]] >= 0 else -1,
            _TYPES[row["timestampType"]],
            unpacked(row["key"]),
            unpacked(row["value"]),
            tuple((name, unpacked(value)) for name, value in row["headers"]),
        )
        for row in truth_rows(path)
    ]
    return sorted(rows, key=lambda row: row[:2])


def exported_records(rows: Iterable[dict[str, Any]]) -> dict[str, list[tuple[Any, ...]]]:
    """Return exported rows by topic in the same form."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault(row["topic"], []).append(
            (
                row["partition"],
                row["offset"],
                round(row["timestamp"].timestamp() * 1000),
                row["timestampType"],
                row["key"],
                row["value"],
                tuple((h["key"], h["value"]) for h in row["headers"] or ()),
            )
        )
    return {topic: sorted(rows, key=lambda row: row[:2]) for topic, rows in found.items()}
