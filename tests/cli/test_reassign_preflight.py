"""What `kctl reassign execute` and its kin find before anything moves, by --dry-run and without."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Shell]:
    """Return three brokers of two directories each, with topic t of brokers 1 and 2."""
    shell = Shell(tmp_path)
    shell.ok("cluster", "start", "--brokers", "3", "--port", "0", "--log-dirs", "2")
    create = ("topics", "create", "t", "--replica-assignment", "1:2,2:1")
    shell.ok(*create, "-c", "min.insync.replicas=2")
    for number in "01":
        shell.ok("produce", "t", "-p", number, stdin="x" * 9999 + "\n")
    yield shell
    shell.run("cluster", "destroy", "-y")


def state(shell: Shell) -> list[Any]:
    (topic,) = json.loads(shell.ok("topics", "describe", "t", "-o", "json"))
    words = ("brokers", "log-dirs", "--topic", "t", "--replicas", "-o", "json")
    lying = json.loads(shell.ok(*words))
    return [
        topic["partitions"],
        [(row["partition"], row["broker_id"], row["path"]) for row in lying],
    ]


def write_plan(shell: Shell, *rows: tuple[int, list[int], list[str]]) -> str:
    """Write a plan as Kafka's tool takes it."""
    partitions = [
        {"topic": "t", "partition": number, "replicas": replicas, "log_dirs": dirs}
        for number, replicas, dirs in rows
    ]
    path = shell.home / "plan.json"
    path.write_text(json.dumps({"version": 1, "partitions": partitions}))
    return str(path)


def directories(shell: Shell) -> dict[int, list[str]]:
    rows = json.loads(shell.ok("brokers", "log-dirs", "-o", "json"))
    found: dict[int, list[str]] = {}
    for row in rows:
        found.setdefault(row["broker_id"], []).append(row["path"])
    return found


@pytest.mark.parametrize("words", [("--dry-run",), ("-y",)])
def test_a_bad_target_is_refused_before_anything_moves(
    three: Shell, words: tuple[str, ...]
) -> None:
    before, dirs = state(three), directories(three)
    for rows, reason in (
        ([(0, [3, 2], ["/nowhere", "any"])], "t-0: broker 3 has no directory /nowhere; it has"),
        ([(1, [2, 1], ["/nowhere", "any"])], "t-1: broker 2 has no directory /nowhere; it has"),
        ([(0, [3, 2], [dirs[2][0], "any"])], f"broker 3 has no directory {dirs[2][0]}"),
        ([(0, [9, 2], ["any", "any"])], "t-0: broker 9 is not alive; alive: 1, 2, 3"),
        # A sound change beside a bad one does not begin either.
        (
            [(0, [3, 2], ["any", "any"]), (1, [2, 3], ["any", "/nowhere"])],
            "t-1: broker 3 has no directory /nowhere",
        ),
    ):
        path = write_plan(three, *rows)
        done = three.run("reassign", "execute", path, *words)
        assert (1, "") == (done.returncode, done.stdout), done.stderr
        assert reason in done.stderr
        assert "nothing was moved" in done.stderr
        assert not Path(f"{path}.journal").exists()
    assert before == state(three)


def test_a_dry_run_shows_disks_throttles_and_moves_between_directories(three: Shell) -> None:
    dirs = directories(three)
    (_, lying) = state(three)
    there = {(number, broker_id): path for number, broker_id, path in lying}
    other = next(path for path in dirs[1] if path != there[1, 1])
    path = write_plan(three, (0, [3], [dirs[3][1]]), (1, [2, 1], ["any", other]))
    before = state(three)
    words = ("--throttle", "5MB", "--log-dirs-throttle", "1MB", "-o", "json")
    done = three.run("reassign", "execute", path, "--dry-run", *words)
    assert 5 == done.returncode
    rows = json.loads(done.stdout)
    assert 0 < rows[0]["bytes_moved"]
    assert 0 == rows[0]["log_dir_bytes"]
    assert (0, True) == (rows[1]["bytes_moved"], rows[1]["log_dir_bytes"] > 0)
    for line in (
        # Two directories of one disk have its room once.
        f"free in {', '.join(sorted(dirs[3]))}",
        "t-0: 1 replica, and min.insync.replicas is 2: acks=all is refused from then on",
        "throttle: leader.replication.throttled.rate=5000000 of broker 1, broker 2, broker 3",
        "throttle: follower.replication.throttled.replicas=0:3 of topic t",
        "throttle: replica.alter.log.dirs.io.max.bytes.per.second=1000000 of broker 1",
    ):
        assert line in done.stderr
    assert before == state(three)


def test_whole_jobs_are_looked_through_too(three: Shell) -> None:
    drained = three.run("brokers", "drain", "2", "--dry-run", "--throttle", "5MB")
    assert 5 == drained.returncode
    assert "broker 3: " in drained.stderr
    assert "throttle: follower.replication.throttled.rate=5000000 of broker" in drained.stderr
    fewer = three.run("topics", "set-rf", "1", "t", "--dry-run")
    assert 5 == fewer.returncode, fewer.stderr
    assert "acks=all is refused from then on" in fewer.stderr


def test_a_cancel_takes_back_a_move_between_directories(three: Shell) -> None:
    (_, lying) = state(three)
    before = {(number, broker_id): path for number, broker_id, path in lying}
    other = next(path for path in directories(three)[1] if path != before[1, 1])
    path = write_plan(three, (1, [2, 1], ["any", other]))
    executing = three.popen("reassign", "execute", path, "-y", "--log-dirs-throttle", "1")
    journal = f"{path}.journal"
    while "moving" not in three.run("reassign", "status", journal).stdout:
        assert executing.poll() is None
    cancelled = three.run("reassign", "cancel", journal, "-y", "-o", "json")
    assert (0, "cancelled") == (cancelled.returncode, json.loads(cancelled.stdout)[0]["result"])
    executing.communicate()
    assert 1 == executing.returncode
    rows = json.loads(three.ok("reassign", "status", journal, "-o", "json"))
    assert ["waiting"] == [row["phase"] for row in rows]
    assert lying == state(three)[1]
    assert [] == json.loads(three.ok("reassign", "throttles", "-o", "json"))
