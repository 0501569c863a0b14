"""Moves under way in `kctl check`: rows of their own, whose they are, and no fault."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell


@pytest.fixture
def moving(tmp_path: Path) -> Iterator[tuple[Shell, subprocess.Popen[str]]]:
    """Return three brokers on which a process moves t-0 from broker 2 to 3, and takes minutes."""
    shell = Shell(tmp_path)
    words = ("--brokers", "3", "--port", "0", "--set", "auto.leader.rebalance.enable=false")
    shell.ok("cluster", "start", *words)
    shell.ok("topics", "create", "t", "--replica-assignment", "1:2")
    lines = "".join(f"{number:0999}\n" for number in range(3000))
    shell.ok("produce", "t", "--batch-bytes", "10000", stdin=lines)
    plan = tmp_path / "plan.json"
    partition = {"topic": "t", "partition": 0, "replicas": [1, 3]}
    plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
    command = ("reassign", "execute", str(plan), "-y", "--throttle", "20000")
    executing = shell.popen(*command)
    assert executing.stderr is not None
    while "journal" not in executing.stderr.readline():
        assert executing.poll() is None
    while not moves(shell):
        assert executing.poll() is None
    yield shell, executing
    executing.kill()
    executing.communicate()
    shell.run("cluster", "destroy", "-y")


def moves(shell: Shell, *words: str) -> list[dict[str, Any]]:
    done = shell.run("check", "-o", "json", *words)
    rows = json.loads(done.stdout)
    assert {"move", "throttle", "not-preferred"} >= {row["finding"] for row in rows}, rows
    return [row for row in rows if row["finding"] == "move"]


def test_a_move_is_a_row_with_its_progress_and_owner(
    moving: tuple[Shell, subprocess.Popen[str]],
) -> None:
    shell, executing = moving
    (row,) = moves(shell)
    move = row["move"]
    assert ("notice", "t-0", [1, 2], [1, 3]) == (
        row["severity"],
        row["subject"],
        move["original"],
        move["target"],
    )
    assert 0 <= move["copied_bytes"] < move["total_bytes"]
    assert 0 <= move["bytes_per_s"] < 2_000_000
    assert str(shell.home / "plan.json.journal") == move["journal"]
    assert f"process {executing.pid} on " in move["process"]
    assert f"; ours, by {move['journal']}: process {executing.pid}" in row["cause"]

    executing.kill()
    executing.wait()
    (left,) = moves(shell)
    assert (move["journal"], None) == (left["move"]["journal"], left["move"]["process"])
    assert f"no process executes it: `kctl reassign resume {move['journal']}`" in left["cause"]

    shell.environment["XDG_STATE_HOME"] = str(shell.home / "another")
    (foreign,) = moves(shell)
    assert (None, None) == (foreign["move"]["journal"], foreign["move"]["process"])
    assert foreign["cause"].endswith("of another client: no journal of this machine has it")


def test_a_wait_is_not_for_moves_unless_it_is_said(
    moving: tuple[Shell, subprocess.Popen[str]],
) -> None:
    shell, executing = moving
    assert 0 == shell.run("check", "--wait", "--timeout", "60").returncode
    # What is strict about notices waits for no move either, and says in the end that there is one.
    assert 4 == shell.run("check", "--wait", "--strict", "--timeout", "60").returncode
    assert executing.poll() is None
    assert 4 == shell.run("check", "--moves").returncode
    assert 4 == shell.run("check", "--wait", "--moves", "--timeout", "2").returncode
    shell.ok("reassign", "throttle", str(shell.home / "plan.json.journal"), "100MB")
    assert 0 == shell.run("check", "--wait", "--moves", "--timeout", "60").returncode
    assert [] == moves(shell)
