"""`kctl retention` on log directories of Kafka and on the embedded cluster."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.log_shell import EACH_WAY, LogShell


@pytest.fixture
def shell(tmp_path: Path) -> LogShell:
    return LogShell(tmp_path, "retention", "retention", "before")


def test_a_directory_is_planned_by_partition_by_topic_and_by_time(shell: LogShell) -> None:
    size = ("--dir", shell.logs, "ret-size", "--set", "retention.bytes=20000", "--at", "2026-11-21")
    (row,) = shell.rows("plan", *size)
    assert (2, 13475, ["retention.bytes"]) == (
        row["freed_segments"],
        row["freed_bytes"],
        row["reasons"],
    )
    (topic,) = shell.rows("plan", *size, "--by-topic", "--chart")
    assert (1, 5) == (topic["partitions"], topic["segments"])
    assert set(topic["chart"]) == {"█", "░"}
    upcoming = shell.rows("plan", *size, "--upcoming")
    assert 3 == len(upcoming)
    assert row["left_bytes"] == sum(deletion["freed_bytes"] for deletion in upcoming)
    assert 0 == upcoming[-1]["left_bytes"]


def test_named_topics_that_do_not_exist_are_reported(shell: LogShell) -> None:
    done = shell.run("retention", "plan", "--dir", shell.logs, "ret-size", "nothing")
    assert 1 == done.returncode
    assert "no log of topic nothing" in done.stderr
    assert "ret-size" in done.stdout
    plan = ("plan", "--dir", shell.logs)
    assert "retention.ms" in shell.told(1, *plan, "--set", "retention.ms=soon")
    assert "do not go together" in shell.told(2, *plan, "--upcoming", "--by-topic")
    assert "is no setting of topics" in shell.told(1, *plan, "--set", "retention.days=3")


def test_compacted_topics_are_reported_as_such(shell: LogShell) -> None:
    plan = ("plan", "--dir", shell.logs, "ret-size", "ret-time")
    told = shell.told(0, *plan, "--set", "cleanup.policy=compact")
    assert "2 topics are compacted: `kctl compact plan --exact` shows what that frees" in told
    assert "compact" not in shell.told(0, *plan)


def test_advice_is_printed_as_a_command(shell: LogShell) -> None:
    plan = ("plan", "--dir", shell.logs, "ret-both", "--advise")
    assert "kctl configs set --topic ret-both segment.bytes=" in shell.told(0, *plan, "4MiB")
    assert "give 2097152 bytes or more" in shell.told(1, *plan, "1MiB")


def test_a_run_needs_a_place_and_a_confirmation(shell: LogShell) -> None:
    run = ("run", "--dir", shell.logs)
    assert "--in-place and --out" in shell.told(2, *run)
    assert "nothing was changed" in shell.told(2, *run, "--in-place")
    shell.told(2, *run, "--in-place", "--out", "x")


def test_a_run_deletes_in_a_copy_or_in_place(shell: LogShell, tmp_path: Path) -> None:
    words = ("run", "--dir", shell.logs, "ret-size", "--set", "retention.bytes=20000")
    words = (*words, "--set", "retention.ms=-1")
    copy = str(tmp_path / "copy")
    (row,) = shell.rows(*words, "--out", copy)
    assert (104, 260) == (row["start_offset"], row["end_offset"])
    assert Path(shell.logs, "ret-size-0/00000000000000000000.log").exists()
    assert [row] == shell.rows(*words, "--in-place", "-y")
    assert not Path(shell.logs, "ret-size-0/00000000000000000000.log").exists()
    assert "there is something already" in shell.told(1, *words, "--out", copy)


@EACH_WAY
def test_the_embedded_cluster_checks_on_request(
    shell: LogShell, processes: tuple[str, ...], tmp_path: Path
) -> None:
    with shell.cluster("--brokers", "2", *processes):
        config = ("-c", "segment.bytes=100000", "-c", "retention.bytes=300000")
        shell.ok("topics", "create", "t", "-p", "1", "-r", "2", *config)
        lines = "".join(f"{number:0100}\n" for number in range(10_000))
        shell.ok("produce", "t", "--batch-bytes", "10000", stdin=lines)
        (told,) = shell.rows("plan", "t")
        assert not told["is_estimated"]
        assert told["freed_least_bytes"] == told["freed_bytes"] == told["freed_most_bytes"]
        (row,) = shell.rows("run")
        assert row["start_offset"] > 0
        assert row["left_bytes"] <= 400_000
        assert row["freed_bytes"] == told["freed_bytes"] > 0
        assert [0] == [left["freed_bytes"] for left in shell.rows("plan", "t")]
        assert [] == shell.rows("run")
        used = ("run", "--dir", str(shell.broker_dir(1)))
        assert "lock" in shell.told(1, *used, "--in-place", "-y")
        assert "a broker uses" in shell.told(1, *used, "--out", str(tmp_path / "copy"))
        assert "needs --dir" in shell.told(2, "run", "t")
