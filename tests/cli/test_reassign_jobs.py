"""Whole jobs on three brokers: drain, replace, another replication factor, leadership moved."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import KCTL, Shell


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Shell]:
    """Return three brokers, with topic t of four partitions and records."""
    shell = start_three(tmp_path)
    yield shell
    shell.run("cluster", "destroy", "-y")


def start_three(folder: Path, *settings: str) -> Shell:
    """Start three brokers with settings, and write records to topic t of four partitions."""
    shell = Shell(folder)
    shell.environment["XDG_STATE_HOME"] = str(folder / "state")
    words = ["--brokers", "3", "--port", "0"]
    for setting in ("auto.leader.rebalance.enable=false", *settings):
        words += ["--set", setting]
    shell.ok("cluster", "start", *words)
    shell.ok("topics", "create", "t", "--replica-assignment", "1:3,2:3,3:1,3:2")
    lines = "".join(f"{number:0999}\n" for number in range(4000))
    shell.ok("produce", "t", "--batch-bytes", "100000", stdin=lines)
    return shell


def partitions(shell: Shell) -> dict[int, dict[str, Any]]:
    (topic,) = json.loads(shell.ok("topics", "describe", "t", "-o", "json"))
    return {row["partition"]: row for row in topic["partitions"]}


def replicas(shell: Shell) -> dict[int, list[int]]:
    return {number: row["replicas"] for number, row in partitions(shell).items()}


def test_a_broker_is_drained_and_the_job_goes_on_where_it_was(three: Shell) -> None:
    assert 5 == three.run("brokers", "drain", "3", "--dry-run").returncode
    command = [*KCTL, "brokers", "drain", "3", "-y", "--throttle", "400000"]
    with subprocess.Popen(
        [*command, "--moves-per-broker", "1"],
        stderr=subprocess.PIPE,
        text=True,
        env=three.environment,
    ) as draining:
        assert draining.stderr is not None
        said = iter(draining.stderr.readline, "")
        assert any(line.startswith("journal: ") for line in said)
        while not json.loads(three.ok("reassign", "status", "-o", "json")):
            pass
        draining.send_signal(signal.SIGKILL)
    again = three.run("brokers", "drain", "3", "-y")
    assert (0, True) == (again.returncode, "going on with the job of before" in again.stderr)
    assert "broker 3 holds no replica" in again.stderr
    assert all(3 not in ids for ids in replicas(three).values())
    assert 0 == three.run("check", "--strict").returncode
    empty = three.run("brokers", "drain", "3")
    assert (0, True) == (empty.returncode, "nothing is to be done" in empty.stderr)

    three.ok("brokers", "replace", "1", "3", "-y")
    assert all(1 not in ids for ids in replicas(three).values())


def test_a_drain_that_no_plan_can_make_fails(three: Shell) -> None:
    three.ok("topics", "create", "wide", "-p", "1", "-r", "3")
    # The replica of wide has no other broker; those of t have, and are moved.
    for words, goes_on in ((("--dry-run",), True), (("-y",), True), (("-y",), False)):
        done = three.run("brokers", "drain", "3", *words)
        assert 1 == done.returncode, done.stderr
        assert "warning: wide-0: drain is not reached" in done.stderr
        end = "the plan is the nearest to it" if goes_on else "nothing can be done"
        assert f"error: the goal cannot be reached; {end}" in done.stderr
        assert "holds no replica" not in done.stderr
    assert all(3 not in ids for ids in replicas(three).values())


def test_the_replication_factor_goes_up_and_down(three: Shell) -> None:
    three.ok("topics", "set-rf", "3", "t", "-y")
    assert {3} == {len(ids) for ids in replicas(three).values()}
    fewer = three.run("topics", "set-rf", "1", "--match", "t", "-y")
    assert (0, True) == (fewer.returncode, "8 replicas removed, 0 B" in fewer.stderr)
    assert {1} == {len(ids) for ids in replicas(three).values()}
    refused = three.run("topics", "set-rf", "4", "t", "-y")
    assert 1 == refused.returncode, refused.stderr


def test_a_broker_leads_nothing_and_gets_its_leadership_back(three: Shell) -> None:
    before = partitions(three)
    three.ok("leaders", "demote", "3", "-y")
    now = partitions(three)
    assert 3 not in {row["leader"] for row in now.values()}
    assert [sorted(row["replicas"]) for row in before.values()] == [
        sorted(row["replicas"]) for row in now.values()
    ]
    skew = json.loads(three.ok("leaders", "list", "--by-broker", "-o", "json"))
    assert {3: -100} == {r["broker_id"]: r["skew_percentage"] for r in skew if not r["leaders"]}
    three.ok("leaders", "demote", "3", "--back", "-y")
    assert [row["replicas"] for row in before.values()] == list(replicas(three).values())
    assert [row["leader"] for row in before.values()] == [
        row["leader"] for row in partitions(three).values()
    ]


def test_leaders_are_levelled_by_another_order(three: Shell) -> None:
    three.ok("leaders", "demote", "1", "-y")
    three.ok("leaders", "balance", "--reorder", "-y")
    rows = json.loads(three.ok("leaders", "list", "--by-broker", "-o", "json"))
    leaders = [row["leaders"] for row in rows]
    assert max(leaders) - min(leaders) <= 1
    level = three.run("leaders", "balance", "--reorder", "--dry-run")
    assert (0, True) == (level.returncode, "nothing is to be done" in level.stderr)


def test_a_plan_is_rehearsed_on_a_copy_and_nothing_is_changed(three: Shell) -> None:
    before = partitions(three)
    path = str(three.home / "plan.json")
    three.ok("reassign", "plan", "--drain", "3", "--out", path)
    done = three.run("reassign", "rehearse", path, "-o", "json")
    assert 0 == done.returncode, done.stderr
    assert "4 partitions as planned" in done.stderr
    steps = json.loads(done.stdout)
    last = {row["partition"]: row for row in steps}
    assert {"done"} == {row["phase"] for row in last.values()}
    assert all(3 not in row["isr"] for row in last.values())
    assert {"waiting", "A2", "done"} <= {row["phase"] for row in steps}
    assert before == partitions(three)
    assert 1 == three.run("reassign", "rehearse", path, "--kill", "9").returncode


def test_a_plan_that_was_carried_out_in_part_is_rehearsed(three: Shell) -> None:
    path = three.home / "plan.json"
    three.ok("reassign", "plan", "--drain", "3", "--out", str(path))
    one = three.home / "one.json"
    one.write_text(json.dumps({"version": 1, "partitions": [plan_rows(path)[0]]}))
    three.ok("reassign", "execute", str(one), "-y")
    done = three.run("reassign", "rehearse", str(path), "-o", "json")
    assert 0 == done.returncode, done.stderr
    last = {row["partition"]: row["phase"] for row in json.loads(done.stdout)}
    assert {"done"} == set(last.values())


def plan_rows(path: Path) -> list[dict[str, object]]:
    rows = json.loads(path.read_text())["partitions"]
    assert isinstance(rows, list)
    return [{key: row[key] for key in ("topic", "partition", "replicas")} for row in rows]


def test_a_cluster_with_topics_of_every_kind_is_rehearsed(three: Shell) -> None:
    kinds = {
        "__consumer_offsets": ("cleanup.policy=compact", "segment.bytes=104857600"),
        "both": ("cleanup.policy=compact,delete", "retention.ms=1", "max.compaction.lag.ms=1"),
        "gone": ("retention.ms=1", "retention.bytes=1", "segment.ms=1", "file.delete.delay.ms=1"),
        "late": ("message.timestamp.before.max.ms=0", "message.timestamp.after.max.ms=0"),
        "needy": ("min.insync.replicas=3", "unclean.leader.election.enable=true"),
        "small": ("max.message.bytes=10", "segment.bytes=1048576", "index.interval.bytes=0"),
        "tight": ("compression.type=zstd", "preallocate=true", "flush.messages=1"),
    }
    for name, settings in kinds.items():
        words = [word for setting in settings for word in ("--config", setting)]
        three.ok("topics", "create", name, "--replica-assignment", "1:3,3:2", *words)
    lines = "".join(f"{number}:{number:0100}\n" for number in range(200))
    for name in ("both", "gone", "needy", "tight"):
        three.ok("produce", name, "-k", ":", "--acks", "1", stdin=lines)
    path = str(three.home / "plan.json")
    three.ok("reassign", "plan", "--drain", "3", "--out", path)
    done = three.run("reassign", "rehearse", path, "-o", "json")
    assert 0 == done.returncode, done.stderr
    assert "warning" not in done.stderr
    assert "as planned" in done.stderr


def test_a_rehearsal_with_a_death_ends_as_planned(three: Shell) -> None:
    path = str(three.home / "plan.json")
    three.ok("reassign", "plan", "--drain", "3", "--out", path)
    done = three.run("reassign", "rehearse", path, "--kill", "1", "-o", "json")
    assert 0 == done.returncode, done.stderr
    assert "4 partitions as planned" in done.stderr
