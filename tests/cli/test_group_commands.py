"""`kctl groups` on a cluster: groups with a member, without one, and such as nobody knows."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.cli.shell import Shell

_DEADLINE_S = 30.0


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Return a broker with topic t of two partitions and three records in its first."""
    shell = Shell(tmp_path_factory.mktemp("groups"))
    setting = "group.initial.rebalance.delay.ms=0"
    shell.ok("cluster", "start", "--port", "0", "--set", setting)
    shell.ok("topics", "create", "t", "--partitions", "2")
    shell.ok("produce", "t", "--partition", "0", stdin="one\ntwo\nthree\n")
    yield shell
    shell.run("cluster", "destroy", "-y")


@pytest.fixture(scope="module")
def member(shell: Shell) -> Iterator[Consumer]:
    """Return a member of group live that has both partitions, and committed 1 in the first."""
    consumer = _consumer(shell, "live")
    consumer.subscribe(["t"])
    deadline_s = time.monotonic() + _DEADLINE_S
    while len(consumer.assignment()) != 2:
        assert time.monotonic() < deadline_s
        consumer.poll(0.1)
    consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    yield consumer
    consumer.close()


@pytest.fixture(scope="module")
def alone(shell: Shell) -> None:
    """Have group alone commit without members."""
    consumer = _consumer(shell, "alone")
    consumer.commit(offsets=[TopicPartition("t", 0, 3)], asynchronous=False)
    consumer.close()


def _consumer(shell: Shell, group_id: str) -> Consumer:
    status = json.loads(shell.ok("cluster", "status", "-o", "json"))
    (row,) = status if isinstance(status, list) else [status]
    return Consumer(
        {
            "bootstrap.servers": row["bootstrap_servers"],
            "group.id": group_id,
            "client.id": "app",
            "enable.auto.commit": False,
        }
    )


def rows(shell: Shell, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shell.ok("groups", *words, "-o", "json"))
    return found


@pytest.mark.usefixtures("member", "alone")
def test_groups_are_listed_by_name_and_state(shell: Shell) -> None:
    listed = rows(shell, "list")
    assert [("alone", "Empty", ""), ("live", "Stable", "consumer")] == [
        (row["group"], row["state"], row["protocol_type"]) for row in listed
    ]
    assert {("classic", 1)} == {(row["type"], row["coordinator_id"]) for row in listed}
    assert ["live"] == [row["group"] for row in rows(shell, "list", "--state", "stable")]


@pytest.mark.usefixtures("member")
def test_members_are_shown_with_the_number_of_their_partitions(shell: Shell) -> None:
    (row,) = rows(shell, "members", "live")
    assert ("Stable", "range", "app", "127.0.0.1", None, 2) == tuple(
        row[name]
        for name in (
            "state", "assignor", "client_id", "client_host", "instance_id", "partitions",
        )
    )  # fmt: skip


@pytest.mark.usefixtures("member", "alone")
def test_no_committed_offset_is_no_lag_of_zero(shell: Shell) -> None:
    lag = rows(shell, "lag", "live", "alone")
    assert [
        ("live", 0, 1, 3, 2, "app"),
        ("live", 1, None, 0, None, "app"),
        ("alone", 0, 3, 3, 0, None),
    ] == [
        tuple(
            row[name]
            for name in (
                "group", "partition", "committed_offset", "end_offset", "lag", "client_id",
            )
        )
        for row in lag
    ]  # fmt: skip


@pytest.mark.usefixtures("member")
def test_a_group_that_nobody_knows_is_an_error_beside_the_others(shell: Shell) -> None:
    for words in ("members", "lag"):
        done = shell.run("groups", words, "unknown", "live", "-o", "json")
        assert done.returncode != 0
        assert {"live"} == {row["group"] for row in json.loads(done.stdout)}
        assert "unknown: GROUP_ID_NOT_FOUND" in done.stderr
