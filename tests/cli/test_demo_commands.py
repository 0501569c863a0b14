"""`kctl demo`: on a temporary cluster, and on one that runs."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.cli.shell import Shell


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell(tmp_path_factory.mktemp("demo"))
    setting = "group.initial.rebalance.delay.ms=0"
    shell.ok("cluster", "start", "--port", "0", "--set", setting)
    yield shell
    shell.run("cluster", "destroy", "-y")


def servers(shell: Shell) -> str:
    return str(shell.status()["bootstrap_servers"])


def test_records_are_produced_and_consumed_on_a_cluster_of_the_demo_alone(shell: Shell) -> None:
    topics = shell.ok("topics", "list", "-o", "name")
    done = shell.run("demo", "produce-consume", "sync", "--records", "3", "-o", "ndjson")
    assert 0 == done.returncode, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    produced = [row for row in rows if row["event"] == "produced"]
    consumed = {row["key"]: row for row in rows if row["event"] == "consumed"}
    assert ["0", "1", "2"] == [row["key"] for row in produced]
    for row in produced:
        assert {**row, "event": "consumed", "took_ms": None} == consumed[row["key"]]
    assert "3 records produced and 3 consumed" in done.stderr
    assert topics == shell.ok("topics", "list", "-o", "name")


def test_a_topic_is_copied_exactly_once_by_two_processes(shell: Shell) -> None:
    words = ("demo", "exactly-once", "2", "2", "60", "-b", servers(shell))
    done = shell.run(*words)
    assert 2 == done.returncode
    assert "needs a yes" in done.stderr
    done = shell.run(*words, "-y", "-o", "json")
    assert 0 == done.returncode, done.stderr
    assert "60 records copied, each once and in order" in done.stderr
    rows = json.loads(done.stdout)
    assert [0, 1] == [row["instance"] for row in rows]
    assert 60 == sum(row["records"] for row in rows)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("produce-consume", "later"), "not a way to send: 'later'; expected sync or async"),
        (("exactly-once", "0", "1", "1"), "PARTITIONS"),
        (("exactly-once", "1", "1", "1", "-o", "xml"), "unknown output format"),
    ],
)
def test_words_that_mean_nothing_start_no_cluster(
    shell: Shell, words: tuple[str, ...], message: str
) -> None:
    done = shell.run("demo", *words)
    assert 2 == done.returncode
    assert message in done.stderr
    assert "starting a cluster" not in done.stderr
