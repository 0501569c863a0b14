"""`kctl transactions` on a cluster: a committed one, an open one, and one that hangs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from engine.model import TopicPartition
from tests.cli.hanging import address, hang
from tests.cli.shell import Shell

_DEADLINE_S = 30.0
T0 = TopicPartition("t", 0)


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Return a broker that takes records of transactions which nobody has begun."""
    shell = Shell(tmp_path_factory.mktemp("transactions"))
    setting = "transaction.partition.verification.enable=false"
    shell.ok("cluster", "start", "--port", "0", "--set", setting)
    shell.ok("topics", "create", "t", "--partitions", "2")
    yield shell
    shell.run("cluster", "destroy", "-y")


def producer(shell: Shell, transactional_id: str) -> Producer:
    made = Producer(
        {"bootstrap.servers": address(shell), "transactional.id": transactional_id, "log_level": 0}
    )
    made.init_transactions(_DEADLINE_S)
    made.begin_transaction()
    made.produce("t", b"v", partition=1)
    assert made.flush(_DEADLINE_S) == 0
    return made


@pytest.fixture(scope="module")
def done(shell: Shell) -> None:
    """Have transactional id done commit."""
    producer(shell, "done").commit_transaction(_DEADLINE_S)


@pytest.fixture(scope="module")
def open_one(shell: Shell) -> Iterator[Producer]:
    """Have transactional id open in a transaction."""
    made = producer(shell, "open")
    yield made
    made.abort_transaction(_DEADLINE_S)


def rows(shell: Shell, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shell.ok("transactions", *words, "-o", "json"))
    return found


@pytest.mark.usefixtures("done", "open_one")
def test_ids_are_listed_by_name_and_state(shell: Shell) -> None:
    states = {row["transactional_id"]: row["state"] for row in rows(shell, "list")}
    assert ("CompleteCommit", "Ongoing") == (states["done"], states["open"])
    ongoing = rows(shell, "list", "--state", "Ongoing")
    assert ["open"] == [row["transactional_id"] for row in ongoing]
    assert [] == rows(shell, "list", "--longer-than", "1h", "--state", "Ongoing")


@pytest.mark.usefixtures("open_one")
def test_an_open_one_is_described_with_its_partitions(shell: Shell) -> None:
    (row,) = rows(shell, "describe", "open")
    assert ("Ongoing", ["t-1"], 60_000) == (row["state"], row["partitions"], row["timeout_ms"])
    assert row["open_for_ms"] >= 0
    result = shell.run("transactions", "describe", "nobody")
    assert (1, True) == (result.returncode, "TRANSACTIONAL_ID_NOT_FOUND" in result.stderr)


@pytest.mark.usefixtures("done", "open_one")
def test_producers_say_where_open_transactions_begin(shell: Shell) -> None:
    every = rows(shell, "producers", "t:1")
    assert 2 <= len(every)
    (held,) = rows(shell, "producers", "t:1", "--open")
    assert held["blocked_records"] >= 1
    assert held["transaction_start_offset"] is not None
    nothing = shell.run("transactions", "producers", "t:0", "--open")
    assert (0, True) == (nothing.returncode, "no transaction is open" in nothing.stderr)


@pytest.mark.usefixtures("open_one")
def test_what_a_coordinator_has_open_does_not_hang_and_is_not_aborted(shell: Shell) -> None:
    found = [row for row in rows_of_hanging(shell) if row["partition"] == 1]
    assert [] == found
    (held,) = rows(shell, "producers", "t:1", "--open")
    start = str(held["transaction_start_offset"])
    refused = shell.run("transactions", "abort", "t:1", "--start-offset", start, "-y")
    assert (1, True) == (refused.returncode, "does not hang" in refused.stderr)
    assert [held] == rows(shell, "producers", "t:1", "--open")


def rows_of_hanging(shell: Shell) -> list[dict[str, Any]]:
    result = shell.run("transactions", "find-hanging", "t", "--idle-for", "0s", "-o", "json")
    assert result.returncode in (0, 4)
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def test_a_hanging_transaction_is_found_and_aborted(shell: Shell) -> None:
    start = hang(shell, T0)
    (found,) = [row for row in rows_of_hanging(shell) if row["partition"] == 0]
    assert (start, None) == (found["transaction_start_offset"], found["transactional_id"])
    young = shell.run("transactions", "find-hanging", "t", "--idle-for", "1h")
    assert (0, True) == (young.returncode, "no transaction hangs" in young.stderr)
    words = ("transactions", "abort", "t:0", "--start-offset", str(start))
    tried = shell.ok(*words, "--dry-run")
    assert "would be aborted" in tried
    assert 1 == len(rows(shell, "producers", "t:0", "--open"))
    assert "aborted" in shell.ok(*words, "-y")
    assert [] == rows(shell, "producers", "t:0", "--open")
    again = shell.run(*words, "-y")
    assert (1, True) == (again.returncode, "no transaction of t-0 is open" in again.stderr)


@pytest.mark.parametrize(
    "words",
    [
        ("abort", "t", "--start-offset", "0"),
        ("abort", "t:0,1", "--start-offset", "0"),
        ("find-hanging", "--idle-for", "soon"),
        ("list", "--longer-than", "x"),
    ],
)
def test_what_cannot_be_read_is_a_wrong_usage(shell: Shell, words: tuple[str, ...]) -> None:
    assert 2 == shell.run("transactions", *words).returncode


def test_a_rehearsal_uses_the_client_settings_that_are_given(shell: Shell) -> None:
    words = ("transactions", "forge-hanging", "nosuch:0", "--timeout", "3", "-X")
    # The topic is what is missing, unless the broker is not even understood.
    assert 1 == shell.run(*words, "client.id=rehearsal").returncode
    assert 3 == shell.run(*words, "security.protocol=SSL").returncode
