"""What is sent to where tasks run."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from engine.analysis.shipping import TASK_PACKAGES, archive_packages, runs_elsewhere, ship


def _unpacked(folder: Path, names: tuple[str, ...]) -> Path:
    """Unpack archives as Spark does: each into a folder of the name behind its `#`."""
    (folder / "sent").mkdir()
    target = folder / "received"
    archives, _ = archive_packages(list(names), str(folder / "sent"))
    for entry in archives:
        path, _, name = entry.partition("#")
        zipfile.ZipFile(path).extractall(target / name)
    return target


def test_a_python_without_packages_reads_logs_by_what_is_sent(tmp_path: Path) -> None:
    received = _unpacked(tmp_path, TASK_PACKAGES)
    code = (
        "import importlib.metadata; importlib.metadata.version('fastcrc');"
        "import cramjam, engine.analysis.batch_reader, engine.records.crc as crc, xxhash;"
        "print(crc.__file__)"
    )
    # -S: without site-packages, so that nothing installed is found.
    run = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=tmp_path, capture_output=True, text=True,
        env={"PYTHONPATH": str(received), "PATH": os.environ["PATH"]}, check=False,
    )  # fmt: skip
    assert 0 == run.returncode, run.stderr
    assert run.stdout.startswith(str(received / "engine"))


def test_parts_of_one_namespace_go_into_one_archive(tmp_path: Path) -> None:
    received = _unpacked(tmp_path, ("google.protobuf", "google._upb", "no_such_package"))
    assert ["google"] == [path.name for path in received.iterdir()]
    assert (received / "google" / "protobuf" / "descriptor.py").exists()
    assert not list(received.rglob("__pycache__"))


class _Context:
    def __init__(self, master: str) -> None:
        self.master = master
        self.archives: list[str] = []
        self.files: list[str] = []

    def addArchive(self, path: str) -> None:
        self.archives.append(path.partition("#")[2])

    def addFile(self, path: str) -> None:
        self.files.append(Path(path).name.partition(".")[0])


class _Session:
    def __init__(self, master: str) -> None:
        self.sparkContext = _Context(master)


def test_a_package_is_sent_once() -> None:
    session: Any = _Session("spark://host:1")
    ship(session, ("fastcrc",))
    ship(session, ("fastcrc", "xxhash", "_duckdb"))
    sent = [name for name in session.sparkContext.archives if not name.endswith(".dist-info")]
    assert ["fastcrc", "xxhash"] == sent
    assert ["_duckdb"] == session.sparkContext.files


@pytest.mark.parametrize(("master", "elsewhere"), [("local[2]", False), ("spark://host:1", True)])
def test_tasks_of_a_local_master_need_nothing_sent(master: str, elsewhere: bool) -> None:
    session: Any = _Session(master)
    assert elsewhere is runs_elsewhere(session)
