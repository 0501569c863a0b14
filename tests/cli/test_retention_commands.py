"""`kctl retention` on log directories of Kafka and on the embedded cluster."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.golden_cases import case_dir


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def logs(tmp_path: Path) -> str:
    return str(copytree(case_dir("retention") / "before", tmp_path / "logs"))


def rows(shell: Shell, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shell.ok("retention", *words, "-o", "json"))
    return found


def test_a_directory_is_planned_by_partition_by_topic_and_by_time(shell: Shell, logs: str) -> None:
    size = ("--dir", logs, "ret-size", "--set", "retention.bytes=20000", "--at", "2026-11-21")
    (row,) = rows(shell, "plan", *size)
    assert (2, 13475, ["retention.bytes"]) == (
        row["freed_segments"],
        row["freed_bytes"],
        row["reasons"],
    )
    (topic,) = rows(shell, "plan", *size, "--by-topic", "--chart")
    assert (1, 5) == (topic["partitions"], topic["segments"])
    assert set(topic["chart"]) == {"█", "░"}
    upcoming = rows(shell, "plan", *size, "--upcoming")
    assert 3 == len(upcoming)
    assert row["left_bytes"] == sum(deletion["freed_bytes"] for deletion in upcoming)
    assert 0 == upcoming[-1]["left_bytes"]


def test_what_was_named_and_is_not_there_is_told(shell: Shell, logs: str) -> None:
    done = shell.run("retention", "plan", "--dir", logs, "ret-size", "nothing")
    assert 1 == done.returncode
    assert "no log of topic nothing" in done.stderr
    assert "ret-size" in done.stdout
    wrong = shell.run("retention", "plan", "--dir", logs, "--set", "retention.ms=soon")
    assert 1 == wrong.returncode
    assert "retention.ms" in wrong.stderr
    both = shell.run("retention", "plan", "--dir", logs, "--upcoming", "--by-topic")
    assert (2, True) == (both.returncode, "do not go together" in both.stderr)
    unknown = shell.run("retention", "plan", "--dir", logs, "--set", "retention.days=3")
    assert "is no setting of topics" in unknown.stderr


def test_advice_is_printed_as_a_command(shell: Shell, logs: str) -> None:
    done = shell.run("retention", "plan", "--dir", logs, "ret-both", "--advise", "4MiB")
    assert 0 == done.returncode
    assert "kctl configs set --topic ret-both segment.bytes=" in done.stderr
    small = shell.run("retention", "plan", "--dir", logs, "ret-both", "--advise", "1MiB")
    assert (1, True) == (small.returncode, "give 2097152 bytes or more" in small.stderr)


def test_a_run_needs_to_be_told_where_and_asked(shell: Shell, logs: str) -> None:
    nowhere = shell.run("retention", "run", "--dir", logs)
    assert (2, True) == (nowhere.returncode, "--in-place and --out" in nowhere.stderr)
    asked = shell.run("retention", "run", "--dir", logs, "--in-place")
    assert 0 != asked.returncode
    assert "nothing was changed" in asked.stderr
    both = shell.run("retention", "run", "--dir", logs, "--in-place", "--out", "x")
    assert 2 == both.returncode


def test_a_run_deletes_in_a_copy_or_in_place(shell: Shell, logs: str, tmp_path: Path) -> None:
    words = ("run", "--dir", logs, "ret-size", "--set", "retention.bytes=20000")
    words = (*words, "--set", "retention.ms=-1")
    copy = str(tmp_path / "copy")
    (row,) = rows(shell, *words, "--out", copy)
    assert (104, 260) == (row["start_offset"], row["end_offset"])
    assert Path(logs, "ret-size-0/00000000000000000000.log").exists()
    assert [row] == rows(shell, *words, "--in-place", "-y")
    assert not Path(logs, "ret-size-0/00000000000000000000.log").exists()
    again = shell.run("retention", *words, "--out", copy)
    assert (1, True) == (again.returncode, "there is something already" in again.stderr)


@pytest.mark.parametrize("processes", [(), ("--processes",)], ids=["one process", "processes"])
def test_the_embedded_cluster_looks_when_told(shell: Shell, processes: tuple[str, ...]) -> None:
    shell.ok("cluster", "start", "--brokers", "2", "--port", "0", *processes)
    try:
        config = ("-c", "segment.bytes=100000", "-c", "retention.bytes=300000")
        shell.ok("topics", "create", "t", "-p", "1", "-r", "2", *config)
        lines = "".join(f"{number:0100}\n" for number in range(10_000))
        shell.ok("produce", "t", "--batch-bytes", "10000", stdin=lines)
        (told,) = rows(shell, "plan", "t")
        assert told["is_estimated"]
        (row,) = rows(shell, "run")
        assert row["start_offset"] > 0
        assert row["left_bytes"] <= 400_000
        assert abs(row["freed_bytes"] - told["freed_bytes"]) <= 100_000
        assert [] == rows(shell, "run")
        used = str(shell.home / "data/kctl/cluster/broker-1")
        held = shell.run("retention", "run", "--dir", used, "--in-place", "-y")
        assert 1 == held.returncode
        assert "lock" in held.stderr
        busy = shell.run("retention", "run", "--dir", used, "--out", str(shell.home / "copy"))
        assert (1, True) == (busy.returncode, "a broker uses" in busy.stderr)
        wrong = shell.run("retention", "run", "t")
        assert (2, True) == (wrong.returncode, "needs --dir" in wrong.stderr)
    finally:
        shell.run("cluster", "destroy", "-y")
