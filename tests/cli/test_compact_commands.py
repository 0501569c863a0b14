"""`kctl compact` on the logs that Kafka's cleaner was given, and on embedded clusters."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.log_shell import EACH_WAY, LogShell
from tests.golden_cases import case_dir

SETTINGS = ("--set", "segment.bytes=8192", "--set", "index.interval.bytes=512")
#: Only when it is asked to.
NEVER_BY_ITSELF = ("--set", "log.cleaner.backoff.ms=3600000")
#: Records of as many keys are in each segment, a few times over.
KEY_COUNT, RECORD_COUNT = 200, 4000


@pytest.fixture
def shell(tmp_path: Path) -> LogShell:
    return LogShell(tmp_path, "compact", "compact", "before1")


def damage(path: Path) -> bytes:
    """Flip a bit of a record of the first segment; returns what the file has then."""
    first = min(path.glob("*.log"))
    content = bytearray(first.read_bytes())
    content[100] ^= 1
    first.write_bytes(content)
    return bytes(content)


def fill(shell: LogShell, topic: str, *configs: str, count: int = RECORD_COUNT) -> None:
    """Make a topic of two partitions with many values of few keys."""
    settings = [word for config in ("segment.bytes=100000", *configs) for word in ("-c", config)]
    shell.ok("topics", "create", topic, "-p", "2", *settings)
    lines = [
        json.dumps({"key": f"k{number % KEY_COUNT}", "value": f"{number:0100}"})
        for number in range(count)
    ]
    words = ("--input", "ndjson", "--batch-bytes", "10000")
    shell.ok("produce", topic, *words, stdin="\n".join(lines))


def by_log(rows: list[dict[str, Any]]) -> dict[tuple[str, int], dict[str, Any]]:
    return {(row["topic"], row["partition"]): row for row in rows}


# Directories


def test_a_plan_shows_what_is_dirty_and_a_run_leaves_what_kafkas_cleaner_left(
    shell: LogShell, tmp_path: Path
) -> None:
    (planned,) = shell.rows("plan", "--dir", shell.logs, "kv-keep", *SETTINGS)
    assert (0, 146, 226, True) == (
        planned["first_dirty_offset"],
        planned["first_uncleanable_offset"],
        planned["log_end_offset"],
        planned["is_due"],
    )
    copy = str(tmp_path / "copy")
    (cleaned,) = shell.rows("run", "--dir", shell.logs, "kv-keep", *SETTINGS, "--out", copy)
    assert (146, 1, 106) == (
        cleaned["first_dirty_offset"],
        cleaned["passes"],
        cleaned["freed_records"],
    )
    assert planned["size_bytes"] - cleaned["size_bytes"] == cleaned["freed_bytes"]
    kafkas = case_dir("compact") / "after1/kv-keep-0"
    assert shell.offsets(str(kafkas)) == shell.offsets(f"{copy}/kv-keep-0")
    assert 0 == shell.run("logs", "verify", f"{copy}/kv-keep-0").returncode
    # The checkpoint names it now.
    (after,) = shell.rows("plan", "--dir", copy, *SETTINGS)
    assert (146, 0, False, "active segment") == (
        after["first_dirty_offset"],
        after["cleanable_bytes"],
        after["is_due"],
        after["waits_for"],
    )


def test_an_exact_plan_shows_what_a_run_frees(shell: LogShell) -> None:
    words = ("--dir", shell.logs, "--match", "kv-.*|txn.*", *SETTINGS)
    planned = by_log(shell.rows("plan", *words, "--exact", "--chart"))
    cleaned = by_log(shell.rows("run", *words, "--in-place", "-y"))
    assert len(cleaned) > 3
    assert planned.keys() == cleaned.keys()
    for key, row in cleaned.items():
        told = planned[key]
        assert row["freed_records"] == told["freed_records"]
        # A batch with a tombstone notes when it was cleaned, by differences of more or less bytes.
        assert abs(row["freed_bytes"] - told["freed_bytes"]) < 20
        assert row["freed_bytes"] + row["size_bytes"] == told["freed_bytes"] + told["left_bytes"]
        assert set(told["chart"]) <= set("█░")


def test_directories_are_planned_side_by_side_with_a_bar(shell: LogShell, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    shell.ok("compact", "run", "--dir", shell.logs, "kv-keep", *SETTINGS, "--out", other)
    dirs = ("--dir", shell.logs, "--dir", other)
    first, second = shell.rows("plan", *dirs, "kv-keep", *SETTINGS, "--chart")
    assert {first["first_dirty_offset"], second["first_dirty_offset"]} == {0, 146}
    told = shell.told(0, "plan", *dirs, "kv-keep", *SETTINGS)
    assert "at most may go by a cleaning, of 2 partitions" in told
    assert "--exact reads them" in told


def test_keys_that_do_not_fit_take_several_passes(shell: LogShell, tmp_path: Path) -> None:
    words = ("run", "--dir", shell.logs, "kv-drop", *SETTINGS)
    (whole,) = shell.rows(*words, "--out", str(tmp_path / "whole"))
    (narrow,) = shell.rows(*words, "--buffer", "300", "--out", str(tmp_path / "narrow"))
    assert whole["passes"] == 1 < narrow["passes"]
    assert shell.offsets(f"{tmp_path}/whole/kv-drop-0") == shell.offsets(
        f"{tmp_path}/narrow/kv-drop-0"
    )
    plan = ("plan", "--dir", shell.logs, "kv-drop", *SETTINGS)
    assert "keys fit up to offset" in shell.told(1, *plan, "--exact", "--buffer", "300")


def test_a_damaged_log_is_reported_and_left_and_the_others_are_cleaned(shell: LogShell) -> None:
    content = damage(Path(shell.logs, "kv-keep-0"))
    words = ("kv-keep", "kv-drop", *SETTINGS)
    planned = shell.run("compact", "plan", "--dir", shell.logs, *words, "--exact", "-o", "json")
    assert 1 == planned.returncode
    assert "kv-keep-0" in planned.stderr
    freed = {row["topic"]: row["freed_bytes"] for row in json.loads(planned.stdout)}
    assert (True, None) == (freed["kv-drop"] > 0, freed["kv-keep"])
    words = (*words, "--in-place", "-y", "-o", "json")
    done = shell.run("compact", "run", "--dir", shell.logs, *words)
    assert 1 == done.returncode
    assert "kv-keep-0" in done.stderr
    assert ["kv-drop"] == [row["topic"] for row in json.loads(done.stdout)]
    assert content == min(Path(shell.logs, "kv-keep-0").glob("*.log")).read_bytes()


def test_a_run_needs_a_place_and_a_confirmation(shell: LogShell) -> None:
    run = ("run", "--dir", shell.logs, "kv-keep")
    shell.told(2, *run)
    assert "nothing was changed" in shell.told(2, *run, "--in-place")


def test_what_cannot_be_done_is_said(shell: LogShell, tmp_path: Path) -> None:
    plan = ("plan", "--dir", shell.logs)
    assert "no log of topic nope" in shell.told(1, *plan, "kv-keep", "nope", *SETTINGS)
    assert "--buffer needs --exact" in shell.told(2, *plan, "kv-keep", "--buffer", "1MB")
    assert "name those that are compacted" in shell.told(0, *plan)
    assert "no such file" in shell.told(1, "plan", "--dir", str(tmp_path / "nothing"))
    run = ("run", "--dir", shell.logs, "kv-keep", *SETTINGS, "--out", str(tmp_path / "copy"))
    assert "too few for the keys" in shell.told(1, *run, "--buffer", "0")


# The embedded cluster


@EACH_WAY
def test_the_embedded_cluster_cleans_on_request_what_its_plan_has(
    shell: LogShell, processes: tuple[str, ...]
) -> None:
    with shell.cluster("--brokers", "2", *NEVER_BY_ITSELF, *processes):
        # One of the first round may still be coming.
        rarely = "min.cleanable.dirty.ratio=1.0"
        fill(shell, "users", "cleanup.policy=compact", rarely)
        fill(shell, "other", "cleanup.policy=compact", rarely)
        planned = by_log(shell.rows("plan", "users", "--exact"))
        assert {("users", 0), ("users", 1)} == planned.keys()
        assert all(not row["is_estimated"] and row["freed_bytes"] for row in planned.values())
        (before, *_) = shell.rows("status", "users")
        assert ("idle", None, None) == (before["state"], before["last_ended_ms"], before["fault"])
        cleaned = by_log(shell.rows("run", "users"))
        for key, row in cleaned.items():
            told = planned[key]
            assert (told["freed_bytes"], told["left_bytes"], told["freed_records"]) == (
                row["freed_bytes"],
                row["size_bytes"],
                row["freed_records"],
            )
            assert "active segment" == row["waits_for"]
            assert row["bytes_per_s"] > 0
        after = by_log(shell.rows("status"))
        for key, row in after.items():
            if key[0] == "other":
                assert (0, None) == (row["first_dirty_offset"], row["last_ended_ms"])
                continue
            assert planned[key]["first_uncleanable_offset"] == row["first_dirty_offset"]
            assert row["first_dirty_offset"] == row["last_end_offset"]
            assert row["last_before_bytes"] > row["last_after_bytes"] > 0
        # Nothing of it is left to do.
        assert [0, 0] == [row["freed_bytes"] for row in shell.rows("run", "users")]


def test_logs_that_a_cluster_cannot_clean_are_reported_and_checked(shell: LogShell) -> None:
    with shell.cluster(*NEVER_BY_ITSELF):
        fill(shell, "users", "cleanup.policy=compact", "min.cleanable.dirty.ratio=1.0")
        fill(shell, "clicks", count=10)
        assert 0 == shell.run("compact", "status", "--check").returncode
        damage(shell.broker_dir(1) / "users-0")
        done = shell.run("compact", "run", "users", "-o", "json")
        assert 1 == done.returncode
        assert "users-0 on broker 1" in done.stderr
        assert [1] == [row["partition"] for row in json.loads(done.stdout)]
        status = shell.run("compact", "status", "--check", "-o", "json")
        assert 4 == status.returncode
        first, second = json.loads(status.stdout)
        assert ("uncleanable", "idle") == (first["state"], second["state"])
        assert "expected CRC" in first["fault"]
        assert second["fault"] is None
        assert "is not compacted" in shell.told(1, "run", "clicks")
        assert "no such topic" in shell.told(1, "status", "nope")
        for option in (("--set", "segment.ms=1"), ("--out", "x"), ("--buffer", "1MB")):
            assert "needs --dir" in shell.told(2, "run", "users", *option)


def test_what_compaction_would_free_of_a_topic_that_is_not_compacted(shell: LogShell) -> None:
    with shell.cluster(*NEVER_BY_ITSELF):
        fill(shell, "clicks")
        fill(shell, "empty", count=0)
        assert [] == shell.rows("plan")
        assert "is not compacted" in shell.told(1, "plan", "clicks")
        what_if = ("plan", "clicks", "empty", "--set", "cleanup.policy=compact")
        rough = by_log(shell.rows(*what_if))
        exact = by_log(shell.rows(*what_if, "--exact"))
        assert {False, True} == {row["is_due"] for row in exact.values()}
        for key, row in exact.items():
            assert row["is_estimated"]
            assert None is rough[key]["dirty_ratio"]
            if key[0] == "empty":
                assert (0, 0) == (row["size_bytes"], row["freed_bytes"])
                continue
            # All but the last segment for sure: each key stays once.
            assert (0, 1.0) == (row["first_dirty_offset"], row["dirty_ratio"])
            assert 0 < row["freed_bytes"] < row["cleanable_bytes"] < row["size_bytes"]
            kept = row["first_uncleanable_offset"] - row["freed_records"]
            assert 0 < kept <= KEY_COUNT
            assert rough[key]["first_uncleanable_offset"] == row["first_uncleanable_offset"]
        shell.ok("configs", "set", "--topic", "clicks", "cleanup.policy=compact")
        shell.ok("compact", "run", "clicks")
        cleaned = by_log(shell.rows("plan", "clicks"))
        # Up to where a cleaner was is seen by what is missing.
        lagging = ("plan", "clicks", "--set", "min.cleanable.dirty.ratio=0.3", "--exact")
        for key, row in by_log(shell.rows(*lagging)).items():
            assert 0 < row["first_dirty_offset"] <= cleaned[key]["first_dirty_offset"]


def test_a_watch_ends_when_nothing_is_due(shell: LogShell) -> None:
    with shell.cluster(*NEVER_BY_ITSELF):
        fill(shell, "users", "cleanup.policy=compact", "min.cleanable.dirty.ratio=1.0")
        words = ("status", "--watch", "-o", "ndjson")
        idle = shell.ok("compact", *words).splitlines()
        assert [False, False] == [json.loads(line)["is_due"] for line in idle]
        shell.ok("configs", "set", "--topic", "users", "min.cleanable.dirty.ratio=0.1")
        watch = shell.popen("compact", *words)
        assert watch.stdout is not None
        first = json.loads(watch.stdout.readline())
        assert ("idle", True) == (first["state"], first["is_due"])
        shell.ok("compact", "run", "users")
        out, _ = watch.communicate()
        assert 0 == watch.returncode
        rows = by_log([first, *map(json.loads, out.splitlines())])
        assert [(False, True)] * 2 == [
            (row["is_due"], row["last_ended_ms"] is not None) for row in rows.values()
        ]


def test_ctrl_c_ends_the_waiting_and_not_the_cleaning(shell: LogShell) -> None:
    # The first piece alone takes longer than anybody waits.
    slow = ("--set", "log.cleaner.io.max.bytes.per.second=10")
    small = ("--set", "log.cleaner.io.buffer.size=20000")
    with shell.cluster(*NEVER_BY_ITSELF, *slow, *small):
        fill(shell, "users", "cleanup.policy=compact", "min.cleanable.dirty.ratio=1.0")
        run = shell.popen("compact", "run", "users")
        deadline = time.monotonic() + 60
        while not any(row["state"] == "cleaning" for row in shell.rows("status")):
            assert time.monotonic() < deadline
        run.send_signal(signal.SIGINT)
        _, said = run.communicate()
        assert 130 == run.returncode
        assert "brokers go on with what they were asked for" in said
        first, second = shell.rows("status")
        assert {"cleaning", "waiting"} == {first["state"], second["state"]}
        (under_way,) = (row for row in (first, second) if row["state"] == "cleaning")
        assert 0 < under_way["done_bytes"] < under_way["total_bytes"]


def test_a_cluster_of_kafka_is_refused_with_the_reason(shell: LogShell, tmp_path: Path) -> None:
    stranger = LogShell(tmp_path / "stranger", "compact", "compact", "before1")
    with shell.cluster(*NEVER_BY_ITSELF):
        fill(shell, "users", "cleanup.policy=compact", "min.cleanable.dirty.ratio=0.7")
        there = ("-b", str(shell.status()["bootstrap_servers"]))
        assert "no request returns how far the cleaners" in stranger.told(1, "status", *there)
        told = stranger.told(1, "run", "users", *there)
        assert "no request makes a broker of Kafka clean a log now" in told
        changed = "kctl configs set --topic users min.cleanable.dirty.ratio=0.01 segment.ms=60000"
        assert changed in told
        back = "kctl configs set --topic users min.cleanable.dirty.ratio=0.7 && "
        assert f"{back}kctl configs unset --topic users segment.ms" in told
        rows = stranger.rows("plan", *there)
        assert {("users", 0), ("users", 1)} == by_log(rows).keys()
        assert all(row["is_estimated"] for row in rows)
    assert 3 == shell.run("compact", "status", *there, "--timeout", "2").returncode
