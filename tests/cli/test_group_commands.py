"""`kctl groups` on a cluster: groups with a member, without one, and such as nobody knows."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
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


def _consumer(shell: Shell, group_id: str, **settings: str) -> Consumer:
    status = json.loads(shell.ok("cluster", "status", "-o", "json"))
    (row,) = status if isinstance(status, list) else [status]
    return Consumer(
        {
            "bootstrap.servers": row["bootstrap_servers"],
            "group.id": group_id,
            "client.id": "app",
            "enable.auto.commit": False,
            **settings,
        }
    )


def rows(shell: Shell, *words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(shell.ok("groups", *words, "-o", "json"))
    return found


def test_the_list_has_the_lag_of_each_group(shell: Shell, member: Consumer, alone: None) -> None:
    found = {row["group"]: row for row in rows(shell, "list", "--lag")}
    names = ("topics", "partitions", "lag")
    assert [1, 1, 2] == [found["live"][name] for name in names]
    assert [1, 1, 0] == [found["alone"][name] for name in names]
    assert "LAG" in shell.ok("groups", "list", "--lag").splitlines()[0]
    assert "LAG" not in shell.ok("groups", "list").splitlines()[0]


@pytest.mark.usefixtures("member", "alone")
def test_groups_are_listed_by_name_and_state(shell: Shell) -> None:
    listed = [row for row in rows(shell, "list") if row["group"] in ("alone", "live")]
    assert [("alone", "Empty", ""), ("live", "Stable", "consumer")] == [
        (row["group"], row["state"], row["protocol_type"]) for row in listed
    ]
    assert {("classic", 1)} == {(row["type"], row["coordinator_id"]) for row in listed}
    stable = [row["group"] for row in rows(shell, "list", "--state", "stable")]
    assert "live" in stable
    assert "alone" not in stable


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


@pytest.mark.usefixtures("member", "alone")
def test_a_time_between_samples_goes_with_watching(shell: Shell) -> None:
    done = shell.run("groups", "lag", "live", "--every", "1")
    assert 2 == done.returncode
    assert "--every: goes with --watch" in done.stderr


@pytest.mark.usefixtures("member", "alone")
def test_a_lag_that_is_watched_has_a_verdict_and_an_age(shell: Shell) -> None:
    words = ("lag", "live", "alone", "--time", "--watch", "0.3", "--every", "0.1", "-o", "json")
    done = shell.run("groups", *words)
    assert 4 == done.returncode, done.stderr
    found = {(row["group"], row["partition"]): row for row in json.loads(done.stdout)}
    assert ("STALL", "OK") == (found["live", 0]["verdict"], found["alone", 0]["verdict"])
    assert "the offset stays at 1 with a lag of 2" in found["live", 0]["reason"]
    assert found["live", 0]["lag_ms"] > 0
    assert 0 == found["alone", 0]["lag_ms"]
    assert (None, None) == (found["live", 1]["verdict"], found["live", 1]["lag_ms"])


@pytest.mark.usefixtures("member")
def test_a_group_that_nobody_knows_is_an_error_beside_the_others(shell: Shell) -> None:
    for words in ("members", "lag"):
        done = shell.run("groups", words, "unknown", "live", "-o", "json")
        assert done.returncode != 0
        assert {"live"} == {row["group"] for row in json.loads(done.stdout)}
        assert "unknown: GROUP_ID_NOT_FOUND" in done.stderr


@pytest.mark.usefixtures("member", "alone")
def test_a_group_is_described_in_one_row(shell: Shell) -> None:
    live, alone = rows(shell, "describe", "live", "alone")
    names = ("state", "assignor", "members", "topics", "partitions", "uncommitted", "lag")
    assert ("Stable", "range", 1, 1, 2, 1, 2) == tuple(live[name] for name in names)
    assert ("Empty", "", 0, 1, 1, 0, 0) == tuple(alone[name] for name in names)
    assert shell.status()["bootstrap_servers"] == live["coordinator"]


@pytest.mark.usefixtures("alone")
def test_what_was_committed_is_shown(shell: Shell) -> None:
    (row,) = rows(shell, "offsets", "alone")
    assert {
        "group": "alone",
        "topic": "t",
        "partition": 0,
        "committed_offset": 3,
        "leader_epoch": None,
        "metadata": "",
    } == row


@pytest.mark.usefixtures("alone")
def test_a_reset_shows_old_and_new_offsets_and_needs_execute(shell: Shell, tmp_path: Path) -> None:
    words = ("groups", "reset-offsets", "alone", "--topic", "t", "-o", "csv")
    planned = shell.run(*words, "--to-earliest")
    assert 0 == planned.returncode
    assert "2 offsets would change: nothing is done without --execute" in planned.stderr
    assert planned.stdout.splitlines()[1:] == ["alone,t,0,3,0,-3,", "alone,t,1,,0,,"]
    assert [3] == [row["committed_offset"] for row in rows(shell, "offsets", "alone")]
    (tmp_path / "plan.csv").write_text(planned.stdout)
    plan = ("--from-file", str(tmp_path / "plan.csv"), "--execute")
    shell.ok("groups", "reset-offsets", "alone", *plan)
    assert [0, 0] == [row["committed_offset"] for row in rows(shell, "offsets", "alone")]
    back = ("--topic", "t:0", "--to-offset", "3", "--execute")
    assert [(0, 3, 3)] == [
        (row["committed_offset"], row["new_offset"], row["change"])
        for row in rows(shell, "reset-offsets", "alone", *back)
    ]
    shifted = ("--topic", "t:0", "--shift-by", "-2")
    assert [1] == [row["new_offset"] for row in rows(shell, "reset-offsets", "alone", *shifted)]
    (deleted,) = rows(shell, "delete-offsets", "alone", "--topic", "t:1", "-y")
    assert (1, 0, "deleted") == (
        deleted["partition"],
        deleted["committed_offset"],
        deleted["result"],
    )


@pytest.mark.usefixtures("member")
def test_a_group_in_use_is_neither_reset_nor_deleted(shell: Shell) -> None:
    for words in (("reset-offsets", "live", "--topic", "t", "--to-latest"), ("delete", "live")):
        done = shell.run("groups", *words)
        assert 1 == done.returncode
        assert "group live is in use (Stable): 1 member: app at 127.0.0.1" in done.stderr
        assert "hint: stop its members" in done.stderr


@pytest.mark.usefixtures("alone")
def test_a_group_is_deleted_after_a_yes(shell: Shell) -> None:
    consumer = _consumer(shell, "spare")
    consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
    consumer.close()
    assert 2 == shell.run("groups", "delete", "spare").returncode
    (tried,) = rows(shell, "delete", "spare", "--dry-run")
    (deleted,) = rows(shell, "delete", "spare", "-y")
    assert ["would be deleted", "deleted"] == [tried["result"], deleted["result"]]
    assert "spare" not in [row["group"] for row in rows(shell, "list")]


def test_members_are_removed_by_id_by_instance_or_all(shell: Shell) -> None:
    consumer = _consumer(shell, "static", **{"group.instance.id": "one"})
    consumer.subscribe(["t"])
    deadline_s = time.monotonic() + _DEADLINE_S
    while len(consumer.assignment()) != 2:
        assert time.monotonic() < deadline_s
        consumer.poll(0.1)
    assert 2 == shell.run("groups", "remove-members", "static", "-y").returncode
    done = shell.run("groups", "remove-members", "static", "--member", "nobody", "-y")
    assert 1 == done.returncode
    assert "group static has no member nobody" in done.stderr
    (tried,) = rows(shell, "remove-members", "static", "--all", "--dry-run")
    (removed,) = rows(shell, "remove-members", "static", "--instance-id", "one", "-y")
    assert ["would be removed", "removed"] == [tried["result"], removed["result"]]
    assert [] == rows(shell, "members", "static")
    consumer.close()


def test_a_group_goes_on_where_it_was(shell: Shell) -> None:
    def values(*words: str) -> list[str]:
        return shell.ok("consume", "t", "-g", "readers", *words).splitlines()

    assert ["one", "two"] == values("-n", "2")
    assert ["three"] == values("-e")
    assert [] == values("-e")
    committed = {row["partition"]: row["lag"] for row in rows(shell, "lag", "readers")}
    assert {0: 0, 1: 0} == committed
    assert [] == rows(shell, "members", "readers")


def test_a_group_that_begins_at_the_end_reads_nothing_of_before(shell: Shell) -> None:
    assert "" == shell.ok("consume", "t", "-g", "late", "--from", "end", "-e")


def test_a_broker_without_the_consumer_protocol_is_named_and_what_to_set(shell: Shell) -> None:
    done = shell.run("consume", "t", "-g", "new", "-X", "group.protocol=consumer", "-e")
    assert 1 == done.returncode
    assert "the cluster does not support the consumer protocol of groups" in done.stderr
    assert "set group.protocol to classic" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("t:0", "-g", "g"), "not a topic for --group: 't:0'"),
        (("t", "-g", "g", "--until", "5"), "not an end for --group: '5'"),
        (("t", "-g", "g", "-X", "partition.assignment.strategy=best"), "not an assignor: 'best'"),
        (("t", "-g", "g", "-X", "group.protocol=new"), "not a value of group.protocol: 'new'"),
        (
            ("t", "-g", "g", "-X", "group.protocol=consumer", "-X", "session.timeout.ms=9000"),
            "session.timeout.ms cannot be set when group.protocol=CONSUMER",
        ),
        (
            ("t", "-g", "g", "-X", "group.remote.assignor=range"),
            "group.remote.assignor cannot be set when group.protocol=CLASSIC",
        ),
        (("t", "-X", "session.timeout.ms=10000"), "no client setting of this command"),
    ],
)
def test_what_does_not_go_with_a_group_is_refused(
    shell: Shell, words: tuple[str, ...], message: str
) -> None:
    done = shell.run("consume", *words)
    assert 2 == done.returncode
    assert message in done.stderr


@pytest.mark.usefixtures("member")
def test_a_group_is_shared_with_other_clients(shell: Shell) -> None:
    consumer = _consumer(shell, "shared")
    consumer.subscribe(["t"])
    with shell.popen("consume", "t", "-g", "shared", "-X", "heartbeat.interval.ms=100") as ours:
        deadline_s = time.monotonic() + _DEADLINE_S
        while not (len(consumer.assignment()) == 1 and len(rows(shell, "members", "shared")) == 2):
            assert time.monotonic() < deadline_s
            consumer.poll(0.1)
        assert {1} == {row["partitions"] for row in rows(shell, "members", "shared")}
        ours.terminate()
    (left,) = rows(shell, "members", "shared")
    assert "app" == left["client_id"]
    consumer.close()
