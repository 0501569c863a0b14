"""`kctl.pytest_plugin` in runs of pytest of its own: what it loads, and what it leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from engine.host import processes

pytestmark = [pytest.mark.xdist_group("kafka-fixtures"), pytest.mark.slow]

_TIMEOUT_S = 60
_OWN = """
import os, pathlib

def test_one(kafka, kafka_cluster):
    assert [0] == kafka.produce(kafka.topic("orders"), "value")
    pids = [*kafka.cluster.pids, *kafka_cluster(brokers=2).pids]
    text = " ".join(map(str, pids))
    pathlib.Path(__file__).with_name(os.environ["PYTEST_XDIST_WORKER"]).write_text(text)
"""
_WAITING = """
import time

def test_waits(kafka_cluster):
    print("pids", kafka_cluster(brokers=2).pids, flush=True)
    time.sleep(600)
"""


def _command(folder: Path, *words: str) -> list[str]:
    options = [
        "-p",
        "kctl.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "--basetemp",
        str(folder / "t"),
    ]
    return [sys.executable, "-m", "pytest", "-q", "-s", *options, *words, str(folder)]


def _write(folder: Path, text: str) -> None:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_own.py").write_text(text)


def _pids(text: str) -> list[int]:
    line = next(line for line in text.splitlines() if "pids" in line)
    return [int(word.strip("[],")) for word in line.partition("pids")[2].split()]


def test_a_run_leaves_no_process_and_no_file_with_a_cluster_for_each_worker(
    tmp_path: Path,
) -> None:
    _write(tmp_path, _OWN)
    done = subprocess.run(
        _command(tmp_path, "-n", "2", "--dist", "each"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "2 passed" in done.stdout, done.stdout
    pids = [int(pid) for path in tmp_path.glob("gw*") for pid in path.read_text().split()]
    assert 8 == len(set(pids))
    assert [] == [pid for pid in pids if processes.is_running(pid)]
    assert [] == [path for path in (tmp_path / "t").rglob("*") if path.is_file()]


def test_clusters_end_with_a_run_that_is_killed(tmp_path: Path) -> None:
    _write(tmp_path, _WAITING)
    with subprocess.Popen(
        _command(tmp_path), stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        assert run.stdout is not None
        line = next(line for line in run.stdout if "pids" in line)
        pids = _pids(line)
        assert 3 == len(pids)
        # A paused broker ends, too.
        os.kill(pids[-1], signal.SIGSTOP)
        run.kill()
    for pid in pids:
        assert processes.Started(pid, -1).wait_until_ended(_TIMEOUT_S)


def test_the_plugin_loads_nothing_of_the_engine() -> None:
    program = (
        "import kctl.pytest_plugin, sys; "
        "print(sorted(m for m in sys.modules if m.startswith(('engine', 'kctl'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "['kctl', 'kctl.pytest_plugin']\n" == done.stdout
