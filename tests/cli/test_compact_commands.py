"""`kctl compact` on the logs that Kafka's cleaner was given."""

from __future__ import annotations

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.golden_cases import case_dir

SETTINGS = ("--set", "segment.bytes=8192", "--set", "index.interval.bytes=512")


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture
def logs(tmp_path: Path) -> str:
    return str(copytree(case_dir("compact") / "before1", tmp_path / "logs"))


def rows(shell: Shell, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shell.ok("compact", *words, "-o", "json"))
    return found


def offsets(shell: Shell, path: str) -> list[int]:
    """Return the offsets of the records of a log."""
    files = [str(file) for file in sorted(Path(path).glob("*.log"))]
    lines = shell.ok("dump-log", *files, "-o", "ndjson").splitlines()
    return [json.loads(line)["offset"] for line in lines]


def test_a_plan_tells_what_is_dirty_and_a_run_leaves_what_kafkas_cleaner_left(
    shell: Shell, logs: str, tmp_path: Path
) -> None:
    (planned,) = rows(shell, "plan", "--dir", logs, "kv-keep", *SETTINGS)
    assert (0, 146, 226, True) == (
        planned["first_dirty_offset"],
        planned["first_uncleanable_offset"],
        planned["log_end_offset"],
        planned["is_due"],
    )
    copy = str(tmp_path / "copy")
    (cleaned,) = rows(shell, "run", "--dir", logs, "kv-keep", *SETTINGS, "--out", copy)
    assert (146, 1, 106) == (
        cleaned["first_dirty_offset"],
        cleaned["passes"],
        cleaned["freed_records"],
    )
    assert planned["size_bytes"] - cleaned["size_bytes"] == cleaned["freed_bytes"]
    kafkas = case_dir("compact") / "after1/kv-keep-0"
    assert offsets(shell, str(kafkas)) == offsets(shell, f"{copy}/kv-keep-0")
    assert 0 == shell.run("logs", "verify", f"{copy}/kv-keep-0").returncode
    # The checkpoint names it now.
    (after,) = rows(shell, "plan", "--dir", copy, *SETTINGS)
    assert (146, 0, False) == (
        after["first_dirty_offset"],
        after["cleanable_bytes"],
        after["is_due"],
    )


def test_keys_that_do_not_fit_take_several_passes(shell: Shell, logs: str, tmp_path: Path) -> None:
    words = ("run", "--dir", logs, "kv-drop", *SETTINGS)
    (whole,) = rows(shell, *words, "--out", str(tmp_path / "whole"))
    (narrow,) = rows(shell, *words, "--buffer", "300", "--out", str(tmp_path / "narrow"))
    assert whole["passes"] == 1 < narrow["passes"]
    assert offsets(shell, f"{tmp_path}/whole/kv-drop-0") == offsets(
        shell, f"{tmp_path}/narrow/kv-drop-0"
    )


def test_a_damaged_log_is_told_and_left_and_the_others_are_cleaned(shell: Shell, logs: str) -> None:
    first = sorted(Path(logs, "kv-keep-0").glob("*.log"))[0]
    content = bytearray(first.read_bytes())
    content[100] ^= 1
    first.write_bytes(content)
    words = ("run", "--dir", logs, "kv-keep", "kv-drop", *SETTINGS, "--in-place", "-y")
    done = shell.run("compact", *words, "-o", "json")
    assert 1 == done.returncode
    assert "kv-keep-0" in done.stderr
    assert ["kv-drop"] == [row["topic"] for row in json.loads(done.stdout)]
    assert content == first.read_bytes()


def test_a_run_needs_to_be_told_where_and_asked(shell: Shell, logs: str) -> None:
    assert 2 == shell.run("compact", "run", "--dir", logs, "kv-keep").returncode
    asked = shell.run("compact", "run", "--dir", logs, "kv-keep", "--in-place")
    assert "nothing was changed" in asked.stderr
    assert 2 == shell.run("compact", "plan", "kv-keep").returncode


def test_what_cannot_be_done_is_said(shell: Shell, logs: str, tmp_path: Path) -> None:
    unknown = shell.run("compact", "plan", "--dir", logs, "kv-keep", "nope", *SETTINGS)
    assert (1, True) == (unknown.returncode, "no log of topic nope" in unknown.stderr)
    words = ("run", "--dir", logs, "kv-keep", *SETTINGS, "--out", str(tmp_path / "copy"))
    narrow = shell.run("compact", *words, "--buffer", "0")
    assert (1, True) == (narrow.returncode, "too few for the keys" in narrow.stderr)
