"""`kctl reassign` on three brokers of one process: a plan's whole life."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import KCTL, Shell

#: What our part of a plan says of a partition.
_OWN_ROW = {
    "old_replicas": [1],
    "old_leader": 1,
    "new_leader": 1,
    "size_bytes": 0,
    "old_sizes": [],
    "old_log_dirs": [],
    "is_mandatory": False,
}
MOVED = {0: [1, 2], 1: [2, 1], 2: [1, 2], 3: [2, 1]}


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Shell]:
    """Return three brokers, with topic t of four partitions, two replicas each, one on broker 3."""
    shell = start_three(tmp_path)
    yield shell
    shell.run("cluster", "destroy", "-y")


@pytest.fixture
def throttled(tmp_path: Path) -> Iterator[Shell]:
    """Return the same, where no throttled move ends: one fetch passes the throttle for hours."""
    shell = start_three(
        tmp_path, "replication.quota.window.size.seconds=3600", "replica.fetch.max.bytes=1000"
    )
    yield shell
    shell.run("cluster", "destroy", "-y")


def start_three(folder: Path, *settings: str) -> Shell:
    """Start three brokers with settings, and write records to a topic."""
    shell = Shell(folder)
    words = ["--brokers", "3", "--port", "0"]
    for setting in ("auto.leader.rebalance.enable=false", *settings):
        words += ["--set", setting]
    shell.ok("cluster", "start", *words)
    shell.ok("topics", "create", "t", "--replica-assignment", "1:3,2:3,3:1,3:2")
    lines = "".join(f"{number:0999}\n" for number in range(8000))
    shell.ok("produce", "t", "--batch-bytes", "100000", stdin=lines)
    return shell


def rows(shell: Shell, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shell.ok(*words, "-o", "json"))
    return found


def replicas(shell: Shell) -> dict[int, list[int]]:
    (topic,) = rows(shell, "topics", "describe", "t")
    return {row["partition"]: row["replicas"] for row in topic["partitions"]}


def plan(shell: Shell, *words: str) -> str:
    path = str(shell.home / "plan.json")
    shell.ok("reassign", "plan", *words, "--out", path)
    return path


def test_a_plan_is_made_explained_executed_verified_and_rolled_back(three: Shell) -> None:
    before = replicas(three)
    path = plan(three, "--drain", "3")
    told = three.run("reassign", "plan", "--drain", "3", "--exit-code", "--throttle", "1MB")
    assert 5 == told.returncode
    assert "4 moves (no plan does with fewer than 4)" in told.stderr
    assert " s at 977 KiB/s" in told.stderr
    brokers = {row["broker_id"]: row for row in rows(three, "reassign", "plan", "--drain", "3")}
    assert (4, 0) == (brokers[3]["replicas_before"], brokers[3]["replicas_after"])
    assert ["U1", "A1", "A2", "A3"] == [
        row["step"] for row in rows(three, "reassign", "explain", path)[:4]
    ]
    undone = three.run("reassign", "verify", path, "-o", "json")
    assert 4 == undone.returncode
    assert {"waiting"} == {row["phase"] for row in json.loads(undone.stdout)}
    assert 5 == three.run("reassign", "execute", path, "--dry-run").returncode
    assert before == replicas(three)

    measured = three.run("reassign", "execute", path, "-y", "--latency-topic", "t")
    assert (2, True) == (measured.returncode, "add `--throttle auto`" in measured.stderr)
    nowhere = ("--throttle", "auto", "--latency-topic", "nothing")
    assert 1 == three.run("reassign", "execute", path, "-y", *nowhere).returncode
    assert before == replicas(three)
    done = rows(three, "reassign", "execute", path, "-y", "--throttle", "100MB")
    assert {"done"} == {row["result"] for row in done}
    assert all(3 not in ids for ids in replicas(three).values())
    assert 0 == three.run("reassign", "verify", path).returncode
    assert 0 == three.run("check", "--strict").returncode
    assert "carried out already" in three.run("reassign", "execute", path, "-y").stderr
    assert "is over already" in three.run("reassign", "resume", f"{path}.journal").stderr

    three.ok("reassign", "rollback", f"{path}.journal", "-y")
    assert before == replicas(three)
    assert "where it was before" in three.run("reassign", "rollback", f"{path}.journal").stderr


def test_the_phases_of_a_move_are_seen_in_order(three: Shell) -> None:
    path = plan(three, "--drain", "3")
    command = [*KCTL, "reassign", "status", path, "--watch", "-o", "ndjson"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=three.environment
    ) as watching:
        assert watching.stdout is not None
        first = [json.loads(watching.stdout.readline()) for _ in range(4)]
        assert {"waiting"} == {row["phase"] for row in first}
        three.ok("reassign", "execute", path, "-y", "--throttle", "1500000")
        seen = first + [json.loads(line) for line in watching.stdout]
    assert 0 == watching.returncode
    order = ["waiting", "A1", "A2", "B3", "B4", "B5", "done"]
    for number in MOVED:
        phases = [row["phase"] for row in seen if row["partition"] == number]
        places = [order.index(phase) for phase in phases]
        assert sorted(places) == places
        assert ["waiting", "done"] == [phases[0], phases[-1]]
    assert any(row["phase"] == "A2" and row["adding"] for row in seen)
    copied = [row["copied_bytes"] for row in seen if row["partition"] == 0]
    assert sorted(copied) == copied


def test_an_execution_that_was_killed_is_resumed(three: Shell) -> None:
    path = plan(three, "--drain", "3")
    command = [*KCTL, "reassign", "execute", path, "-y", "--throttle", "1600000"]
    with subprocess.Popen(
        [*command, "--moves-per-broker", "1"],
        stderr=subprocess.PIPE,
        text=True,
        env=three.environment,
    ) as executing:
        assert executing.stderr is not None
        assert executing.stderr.readline().startswith("journal: ")
        until_moving(three)
        executing.send_signal(signal.SIGKILL)
    throttled = three.run("check", "--strict")
    assert 4 == throttled.returncode
    refused = three.run("reassign", "execute", path, "-y", "--journal", f"{path}.journal")
    assert 1 == refused.returncode
    three.ok("reassign", "resume", f"{path}.journal", "--timeout", "60")
    assert all(3 not in ids for ids in replicas(three).values())
    assert 0 == three.run("check", "--strict").returncode


def until_moving(shell: Shell) -> list[dict[str, Any]]:
    """Wait until something moves."""
    for _ in range(200):
        moving = rows(shell, "reassign", "status")
        if moving:
            return moving
    raise AssertionError("nothing began to move")


def test_what_moves_can_be_taken_back_by_the_journal_and_without_it(throttled: Shell) -> None:
    before = replicas(throttled)
    path = plan(throttled, "--drain", "3")
    words = ("reassign", "execute", path, "-y", "--throttle", "2")
    with subprocess.Popen(
        [*KCTL, *words], stderr=subprocess.PIPE, env=throttled.environment
    ) as moving:
        until_moving(throttled)
        moving.send_signal(signal.SIGINT)
        assert moving.stderr is not None
        assert b"reassign resume" in moving.stderr.read()
    assert 130 == moving.returncode
    assert 1 == throttled.run("reassign", "plan", "--balance").returncode
    throttled.ok("reassign", "cancel", f"{path}.journal", "-y")
    assert before == replicas(throttled)
    assert 0 == throttled.run("check", "--strict").returncode
    assert "nothing of that moves" in throttled.run("reassign", "cancel", "--all", "-y").stderr


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("plan",), 2, "a plan is for one thing: none is given"),
        (("plan", "--balance", "--repair"), 2, "not --repair and --balance"),
        (("plan", "--drain", "x"), 2, "not a list of brokers: 'x'"),
        (("plan", "--replace", "1"), 2, "OLD:NEW"),
        (("plan", "--drain", "9"), 1, "9"),
        (("plan", "--drain", "1"), 1, "there is no broker for it: of 0 that may take replicas"),
        (("plan", "--drain", "1"), 1, "the goal cannot be reached; nothing can be done"),
        (("plan", "nowhere", "--rf", "2"), 1, "no topic nowhere"),
        (("plan", "--rf", "2", "--racks", "some"), 2, "strict, relaxed, ignored"),
        (("plan", "--balance", "--throttle", "fast"), 2, "not a number of bytes: 'fast'"),
        (("execute", "absent.json"), 1, "absent.json"),
        (("execute", "bad.json"), 1, "bad.json is no plan: it names no partitions"),
        (("execute", "ghost.json"), 1, "ghost-0: is not in the cluster"),
        (("execute", "dead.json", "-y"), 1, "broker 9 is not alive; alive: 1"),
        (("execute", "other.json", "-y"), 1, "of cluster elsewhere"),
        (("resume", "bad.json"), 1, "no journal of a reassignment"),
        (("cancel",), 2, "none is named"),
    ],
)
def test_what_cannot_be_is_refused(
    one: Shell, words: tuple[str, ...], code: int, said: str
) -> None:
    files = [str(one.home / word) if word.endswith(".json") else word for word in words]
    done = one.run("reassign", *files)
    assert said.lower() in done.stderr.lower()
    assert code == done.returncode
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Return one broker with topic t, and files that are no plans for it."""
    home = tmp_path_factory.mktemp("one")
    shell = Shell(home)
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "t", "-p", "1")
    targets = {"bad": [], "ghost": [("ghost", [1])], "dead": [("t", [9])]}
    for name, partitions in targets.items():
        found = [{"topic": t, "partition": 0, "replicas": ids} for t, ids in partitions]
        document: dict[str, Any] = {"version": 1, "partitions": found}
        (home / f"{name}.json").write_text(json.dumps(document))
    shell.ok("reassign", "plan", "--balance", "--out", str(home / "other.json"))
    other = json.loads((home / "other.json").read_text())
    other["partitions"] = [{"topic": "t", "partition": 0, "replicas": [1]}]
    other["kctl"] |= {"cluster_id": "elsewhere", "batches": [[0]], "partitions": [_OWN_ROW]}
    (home / "other.json").write_text(json.dumps(other))
    yield shell
    shell.run("cluster", "destroy", "-y")


def test_a_cancel_of_all_names_nothing_beside(three: Shell) -> None:
    refused = three.run("reassign", "cancel", "t", "--all", "-y")
    assert 2 == refused.returncode
    assert "error: --all cancels all moves, not only t" in refused.stderr
