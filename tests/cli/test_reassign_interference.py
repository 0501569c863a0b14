"""Two processes at one plan: cancels that reach the process at work, jobs that are open."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.cli.test_reassign_jobs import replicas, start_three

#: One fetch passes it for hours, and brings less than a partition: no move ends by itself.
THROTTLE = ("--throttle", "2")
ENDLESS = ("replication.quota.window.size.seconds=3600", "replica.fetch.max.bytes=1000")


BEFORE = {0: [1, 3], 1: [2, 3], 2: [3, 1], 3: [3, 2]}


def moving(shell: Shell) -> list[Any]:
    rows: list[Any] = json.loads(shell.ok("reassign", "status", "-o", "json"))
    return rows


def await_moves(shell: Shell) -> None:
    while not moving(shell):
        pass


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Shell]:
    """Return three brokers among which a throttled move does not end."""
    shell = start_three(tmp_path, *ENDLESS)
    yield shell
    shell.run("cluster", "destroy", "-y")


@pytest.fixture
def plan(three: Shell) -> str:
    path = str(three.home / "plan.json")
    three.ok("reassign", "plan", "--drain", "3", "--out", path)
    return path


@pytest.fixture
def executing(three: Shell, plan: str) -> Iterator[subprocess.Popen[str]]:
    """Return a process that executes the plan, slowly, and has begun to."""
    process = three.popen("reassign", "execute", plan, "-y", *THROTTLE)
    with process:
        await_moves(three)
        yield process
        process.kill()


def throttles(shell: Shell) -> list[Any]:
    rows = json.loads(shell.run("check", "-o", "json").stdout)
    return [row for row in rows if "throttle" in row["finding"]]


def test_a_cancel_reaches_the_process_at_work(
    three: Shell, plan: str, executing: subprocess.Popen[str]
) -> None:
    cancel = three.run("reassign", "cancel", f"{plan}.journal", "-y", "-o", "json")
    assert (0, True) == (cancel.returncode, f"process {executing.pid} on" in cancel.stderr)
    rows = json.loads(cancel.stdout)
    assert 4 == len(rows)
    assert "cancelled" in {row["result"] for row in rows}
    assert [] == moving(three)
    assert [] == throttles(three)
    assert 1 == executing.wait()
    assert executing.stderr is not None
    assert "asked for that" in executing.stderr.read()
    over = three.run("reassign", "cancel", f"{plan}.journal", "-y")
    assert (0, True) == (over.returncode, "over already" in over.stderr)


def test_a_stopped_process_is_named_and_follows_the_cancel_when_it_goes_on(
    three: Shell, plan: str, executing: subprocess.Popen[str]
) -> None:
    executing.send_signal(signal.SIGSTOP)
    cancel = three.run("reassign", "cancel", f"{plan}.journal", "-y", "--timeout", "1")
    assert 1 == cancel.returncode
    assert f"process {executing.pid}" in cancel.stderr
    assert "has not answered for 1 s" in cancel.stderr
    executing.send_signal(signal.SIGCONT)
    assert 1 == executing.wait()
    assert [] == moving(three)
    assert [] == throttles(three)


def test_moves_that_are_cancelled_by_name_stop_the_process_at_work(
    three: Shell, plan: str, executing: subprocess.Popen[str]
) -> None:
    three.ok("reassign", "cancel", "--all", "-y")
    assert 1 == executing.wait()
    assert executing.stderr is not None
    told = executing.stderr.read()
    assert "its move was cancelled by another client before it was complete" in told
    assert f"kctl reassign resume {plan}.journal" in told
    assert [] == moving(three)
    assert [] == throttles(three)
    three.ok("reassign", "cancel", f"{plan}.journal", "-y")


def test_one_process_at_a_time_is_at_work_by_a_journal(
    three: Shell, plan: str, executing: subprocess.Popen[str]
) -> None:
    journal = f"{plan}.journal"
    for words in (("resume", journal), ("execute", plan, "-y")):
        refused = three.run("reassign", *words)
        assert 1 == refused.returncode
        assert f"process {executing.pid}" in refused.stderr
    executing.kill()
    executing.wait()
    refused = three.run("reassign", "execute", plan, "-y")
    assert (1, True) == (refused.returncode, f"kctl reassign resume {journal}" in refused.stderr)
    rolled_back = three.run("reassign", "rollback", journal, "-y")
    assert 0 == rolled_back.returncode, rolled_back.stderr
    assert [] == moving(three)
    assert [] == throttles(three)
    assert BEFORE == replicas(three)


def test_an_open_job_is_shown_and_not_touched_until_it_is_agreed_to(three: Shell) -> None:
    drain = ("brokers", "drain", "3")
    with three.popen(*drain, "-y", *THROTTLE, "--moves-per-broker", "1") as process:
        await_moves(three)
        running = three.run(*drain, "-y")
        assert (1, True) == (running.returncode, f"process {process.pid}" in running.stderr)
        process.kill()
    three.ok("reassign", "cancel", "--all", "-y")
    # A broker may hear of the cancel a moment later than the controller has done it.
    while [2] * 4 != list(map(len, (before := replicas(three)).values())):
        pass
    for words in (("--dry-run",), ("--dry-run", "-y")):
        shown = three.run(*drain, *words, "-o", "json")
        assert 5 == shown.returncode
        assert "4 of 4 partitions left, --throttle 2 B/s" in shown.stderr
        assert 4 == len(json.loads(shown.stdout))
    refused = three.run(*drain)
    assert (2, True) == (refused.returncode, "needs a yes" in refused.stderr)
    assert ([], before) == (moving(three), replicas(three))


def rates(shell: Shell) -> set[str]:
    rows = json.loads(shell.ok("reassign", "throttles", "-o", "json"))
    return {row["value"] for row in rows if row["setting"].endswith(".rate")}


def test_a_move_at_work_gets_another_throttle_and_a_pause(
    three: Shell, plan: str, executing: subprocess.Popen[str]
) -> None:
    journal = f"{plan}.journal"
    assert {"2"} == rates(three)
    changed = three.run("reassign", "throttle", journal, "3")
    assert (0, "throttle 3 B/s, from now on\n") == (changed.returncode, changed.stderr)
    assert {"3"} == rates(three)
    paused = three.run("reassign", "pause", journal)
    assert (0, "nothing new begins, from now on\n") == (paused.returncode, paused.stderr)
    resumed = three.run("reassign", "resume", journal, "--throttle", "none")
    assert (0, "no throttle, what waits begins, from now on\n") == (
        resumed.returncode,
        resumed.stderr,
    )
    assert 0 == executing.wait()
    assert executing.stderr is not None
    assert "asked for a pause" in executing.stderr.read()
    assert [] == throttles(three)
    assert all(3 not in ids for ids in replicas(three).values())
    assert 2 == three.run("reassign", "throttle", journal, "fast").returncode
    over = three.run("reassign", "throttle", journal, "1MB")
    assert (0, True) == (over.returncode, "over already" in over.stderr)


def test_a_change_without_a_process_holds_for_the_next_one(
    three: Shell, plan: str, executing: subprocess.Popen[str]
) -> None:
    journal = f"{plan}.journal"
    executing.kill()
    executing.wait()
    later = three.run("reassign", "throttle", journal, "none")
    assert (0, True) == (later.returncode, f"once `kctl reassign resume {journal}`" in later.stderr)
    assert {"2"} == rates(three)
    three.ok("reassign", "resume", journal)
    assert [] == throttles(three)
    assert all(3 not in ids for ids in replicas(three).values())


def test_throttles_that_no_move_needs_are_shown_and_taken_away(
    three: Shell, plan: str, executing: subprocess.Popen[str]
) -> None:
    rows = json.loads(three.ok("reassign", "throttles", "-o", "json"))
    assert all(row["moves"] and row["left"] == row["value"] for row in rows)
    executing.kill()
    executing.wait()
    three.ok("reassign", "cancel", "--all", "-y")
    shown = three.run("reassign", "throttles", "-o", "json")
    assert "needed by no move: --clear" in shown.stderr
    assert {(0, None)} == {(row["moves"], row["left"]) for row in json.loads(shown.stdout)}
    assert 2 == three.run("reassign", "throttles", "--clear").returncode
    assert 5 == three.run("reassign", "throttles", "--clear", "--dry-run").returncode
    assert len(rows) == len(json.loads(three.ok("reassign", "throttles", "-o", "json")))
    three.ok("reassign", "throttles", "--clear", "-y")
    assert [] == json.loads(three.ok("reassign", "throttles", "-o", "json"))
    assert [] == throttles(three)


def test_a_throttle_that_is_set_for_all_brokers_is_one_and_taken_away(
    three: Shell, plan: str, executing: subprocess.Popen[str]
) -> None:
    rate = "follower.replication.throttled.rate"
    three.ok("configs", "set", "--broker-defaults", f"{rate}=7")
    executing.kill()
    executing.wait()
    three.ok("configs", "unset", "--broker=1", "--broker=2", "--broker=3", rate)

    def of_all() -> list[Any]:
        rows = json.loads(three.ok("reassign", "throttles", "-o", "json"))
        return [(row["value"], row["moves"]) for row in rows if row["name"] == "default"]

    assert [("7", len(moving(three)))] == of_all()
    three.ok("reassign", "throttles", "--clear", "-y")
    assert [("7", len(moving(three)))] == of_all()
    three.ok("reassign", "cancel", "--all", "-y")
    three.ok("reassign", "throttles", "--clear", "-y")
    assert [] == throttles(three)


def test_the_order_of_before_is_the_plans(
    three: Shell, plan: str, executing: subprocess.Popen[str]
) -> None:
    rows = json.loads(three.ok("reassign", "status", f"{plan}.journal", "-o", "json"))
    assert {row["partition"]: row["original"] for row in rows} == BEFORE
    known = three.run("reassign", "status")
    assert "does not keep the order of ORIGINAL" in known.stderr
    cancelled = three.run("reassign", "cancel", "--all", "-y")
    assert "may prefer another leader now" in cancelled.stderr
    assert 1 == executing.wait()


def test_a_plan_of_another_cluster_is_refused(three: Shell, plan: str) -> None:
    content = json.loads(Path(plan).read_text())
    content["kctl"]["cluster_id"] = "elsewhere"
    Path(plan).write_text(json.dumps(content))
    reason = "error: the plan is of cluster elsewhere, this is cluster "
    for command in ("execute", "verify", "status", "explain", "rehearse"):
        refused = three.run("reassign", command, plan)
        assert (1, True) == (refused.returncode, reason in refused.stderr), (command, refused)
    assert ([], BEFORE) == (moving(three), replicas(three))


def test_a_move_is_no_fault(three: Shell, plan: str, executing: subprocess.Popen[str]) -> None:
    rows = json.loads(three.ok("check", "-o", "json"))
    moves = [row for row in rows if row["finding"] == "move"]
    assert {row["subject"] for row in moves} == {
        f"{row['topic']}-{row['partition']}" for row in moving(three)
    }
    assert all(" of " in row["cause"] and "become" in row["cause"] for row in moves)
    assert {"move", "throttle"} == {row["finding"] for row in rows} - {"not-preferred"}
    assert [] == json.loads(three.ok("topics", "list", "--under-replicated", "-o", "json"))
    described = json.loads(three.ok("topics", "describe", "t", "--check", "-o", "json"))
    assert not any(row["under_replicated"] for row in described[0]["partitions"])
    # Nor is one waited for.
    three.ok("check", "--wait", "--timeout", "5")
    executing.kill()
