"""Golden cases made by real Apache Kafka, unpacked once a test session.

A case is a folder of tests/golden; its README says what is in it.
"""

from __future__ import annotations

import atexit
import base64
import gzip
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(p.parent.name for p in GOLDEN.glob("*/cases.yaml"))


@cache
def _work_dir() -> Path:
    path = Path(tempfile.mkdtemp(prefix="kctl-golden-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@cache
def case_dir(name: str) -> Path:
    """Return a folder with the case as the tool saw it: links to folders, zips unpacked."""
    target = _work_dir() / name
    target.mkdir(parents=True)
    for entry in sorted((GOLDEN / name).iterdir()):
        if entry.suffix == ".zip":
            with zipfile.ZipFile(entry) as packed:
                packed.extractall(target)
        elif entry.is_dir() and entry.name not in ("expected", "truth"):
            shutil.copytree(entry, target / entry.name)
    return target


def data_dir(name: str) -> Path:
    """Return a case's log directory; of several the first that was stopped."""
    folder = case_dir(name)
    return folder / "data" if (folder / "data").exists() else folder / "stopped" / "node1"


@cache
def case(name: str) -> dict[str, Any]:
    """Return the case's description."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    with (GOLDEN / name / "cases.yaml").open("rb") as text:
        found: dict[str, Any] = yaml.load(text, Loader=loader)
    return found


@cache
def expected_outputs(name: str) -> dict[str, bytes]:
    """Return every expected output of a case by its member name."""
    with zipfile.ZipFile(GOLDEN / name / "expected" / "outputs.zip") as packed:
        return {member: packed.read(member) for member in packed.namelist()}


def truth_files(name: str) -> list[Path]:
    """Return the record truth files of a case."""
    return sorted((GOLDEN / name / "truth").glob("*.jsonl.gz"))


def truth_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield what an independent client read, one dict a record, as stored (base64 text)."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def unpacked(text: str | None) -> bytes | None:
    """Return the bytes behind a base64 field of a truth row."""
    return None if text is None else base64.b64decode(text)
