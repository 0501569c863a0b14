"""`kctl perf` on an embedded broker."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kctl.schemas import schema_of
from tests.cli.shell import Shell
from tests.cli.terminal import DEADLINE_S, Terminal, plain


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell(tmp_path_factory.mktemp("perf"))
    shell.ok("cluster", "start", "--port", "0")
    yield shell
    shell.run("cluster", "destroy", "-y")


def measured(shell: Shell, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(shell.ok("perf", *words, "-o", "json"))
    Draft202012Validator(schema_of(f"perf {words[0]}")).validate(found)
    return found


@pytest.mark.parametrize(
    "words",
    [
        ("produce", "-n", "3000", "-p", "3", "-z", "lz4", "--linger", "1"),
        ("produce", "-n", "300", "--keys", "7", "--rate", "3000", "-X", "linger.ms=0"),
        ("latency", "-n", "20", "--warm-up", "5", "-p", "2"),
    ],
)
def test_all_records_are_counted_and_the_topic_is_gone(
    shell: Shell, words: tuple[str, ...]
) -> None:
    found = measured(shell, *words)
    assert (int(words[2]), True, 0) == (
        found["records"],
        found["is_complete"],
        found["failed_records"],
    )
    assert found["p50_ms"] <= found["p999_ms"] <= found["max_ms"]
    assert found["records"] == sum(one["records"] for one in found["intervals"])
    assert "kctl" in found["client"]
    assert "" == shell.ok("topics", "list", "-o", "name")


def test_consuming_measures_a_topic_that_it_fills_first(shell: Shell) -> None:
    found = measured(shell, "consume", "-n", "20000", "--size", "500")
    assert found["is_complete"]
    assert (1000, 20_000) == (found["warm_up_records"], found["records"])
    assert "" == shell.ok("topics", "list", "-o", "name")


def test_a_topic_that_is_named_keeps_its_records(shell: Shell) -> None:
    shell.ok("topics", "create", "kept")
    measured(shell, "produce", "-n", "50", "--warm-up", "10", "-t", "kept")
    assert 60 == len(shell.ok("consume", "kept", "-e").splitlines())
    found = measured(shell, "consume", "-t", "kept", "--warm-up", "0")
    assert (60, 0, True) == (
        found["records"],
        found["warm_up_records"],
        found["is_complete"],
    )
    assert found["records_per_s"] > 0
    shell.ok("topics", "delete", "kept", "-y")


def test_ctrl_c_prints_what_was_measured_and_deletes_the_topic(shell: Shell) -> None:
    words = ("perf", "produce", "-n", "2000000000", "--rate", "500", "-o", "json")
    measuring = shell.popen(*words)
    while "kctl-perf-" not in (names := shell.ok("topics", "list", "-o", "name")):
        assert measuring.poll() is None
    while int(shell.ok("offsets", "get", names.strip(), "-o", "csv").split(",")[-1]) < 1100:
        assert measuring.poll() is None
    measuring.send_signal(signal.SIGINT)
    text, told = measuring.communicate()
    assert 130 == measuring.returncode, told
    found = json.loads(text)
    Draft202012Validator(schema_of("perf produce")).validate(found)
    assert 0 < found["records"] < 2000000000
    assert not found["is_complete"]
    assert "" == shell.ok("topics", "list", "-o", "name")


def test_a_terminal_has_charts_until_ctrl_c_and_then_the_result_alone(shell: Shell) -> None:
    words = ("perf", "latency", "-n", "1000000", "--rate", "200")
    terminal = Terminal(shell, *words)
    try:
        charts = terminal.wait_for(b"p99 ms").decode(errors="replace")
        assert "warming up" in charts
        assert "s left, " in charts
        assert re.search(r"records/s █+ \d+, at most \d+", charts)
        terminal.process.send_signal(signal.SIGINT)
        terminal.wait_for(b"are not counted")
        assert 130 == terminal.process.wait(DEADLINE_S)
        # The three lines are cleared, the cursor is shown, and the result follows.
        cleared, result = terminal.shown.split(b"\x1b[?25h")
        assert result.startswith(b"\r" + b"\x1b[1A\x1b[2K" * 3 + b"MEASURED")
        assert b"at most" in plain(cleared)
        assert b"at most" not in plain(result)
    finally:
        terminal.close()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("produce -t nosuch", "nosuch"),
        ("produce -t nosuch -p 3", "options of a topic that is there"),
        ("latency --size 3", "16 or more"),
        ("produce --interval 0s", "--interval"),
        ("produce -X transactional.id=a", "no client setting of this command"),
    ],
)
def test_what_cannot_be_measured_is_refused(shell: Shell, words: str, message: str) -> None:
    done = shell.run("perf", *words.split())
    assert done.returncode in (1, 2)
    assert message in done.stderr
    assert "" == shell.ok("topics", "list", "-o", "name")
