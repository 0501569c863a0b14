"""`kctl check`, `leaders` and `explain` on three brokers: as they are, and with one gone."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Shell]:
    """Return three brokers of one process, with topic t of all of them, and the rest still."""
    shell = Shell(tmp_path)
    words = ("--brokers", "3", "--port", "0", "--set", "auto.leader.rebalance.enable=false")
    shell.ok("cluster", "start", *words)
    create = ("topics", "create", "t", "--replica-assignment", "2:1:3,1:2:3", "-c")
    shell.ok(*create, "min.insync.replicas=2")
    yield shell
    shell.run("cluster", "destroy", "-y")


def test_a_broker_that_is_gone_is_found_explained_and_waited_for(three: Shell) -> None:
    well = three.run("check")
    assert (0, "nothing is wrong") == (well.returncode, well.stderr.strip())
    three.ok("produce", "t", stdin="one\ntwo\nthree\n")
    explained = json.loads(three.ok("explain", "partition", "t:0", "-o", "json"))
    assert (2, 0, 2, False) == tuple(
        explained[name] for name in ("leader", "leader_epoch", "min_isr", "unclean_allowed")
    )
    assert explained["state_version"] == 0
    assert (
        "1 leads, nothing is lost; acks=all goes on, 2 in sync"
        == (explained["replicas"][0]["if_died"])
    )
    three.ok("brokers", "shutdown", "2")
    done = three.run("check", "-o", "json")
    assert 4 == done.returncode
    found = {(row["finding"], row["subject"]): row for row in json.loads(done.stdout)}
    assert {("at-min-isr", "t-0"), ("at-min-isr", "t-1")} == set(found)
    row = found["at-min-isr", "t-0"]
    assert row["since"]
    assert row["cause"].endswith("acks=all needs 2: none more may be lost; broker 2 is gone")
    assert 0 == three.run("check", "--ignore", "at-min-isr").returncode
    shown = three.run("topics", "describe", "t", "--at-min-isr", "--check")
    assert 4 == shown.returncode
    assert 0 == three.run("topics", "describe", "t", "--unavailable", "--check").returncode
    replica = json.loads(three.ok("explain", "partition", "t-0", "-o", "json"))["replicas"][0]
    assert (2, False, False, None) == (
        replica["broker_id"],
        replica["alive"],
        replica["in_sync"],
        replica["end_offset"],
    )
    three.ok("cluster", "restart", "2")
    assert 0 == three.run("check", "--wait", "--timeout", "60").returncode


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[Shell]:
    """Return three brokers in processes of their own, each the leader of a partition of t."""
    shell = Shell(tmp_path)
    words = ("--brokers", "3", "--port", "0", "--processes")
    # No broker loses its session while it stands still.
    settings = ("auto.leader.rebalance.enable=false", "zookeeper.session.timeout.ms=120000")
    shell.ok("cluster", "start", *words, *(word for one in settings for word in ("--set", one)))
    shell.ok("topics", "create", "t", "--replica-assignment", "1:2:3,2:3:1,3:1:2")
    yield shell
    shell.run("cluster", "destroy", "-y")


def found_by(shell: Shell, *words: str) -> set[tuple[str, str]]:
    done = shell.run("check", "-o", "json", *words)
    assert 4 == done.returncode, done.stderr
    return {
        (row["finding"], row["subject"])
        for row in json.loads(done.stdout)
        if row["finding"] != "not-preferred"
    }


def test_brokers_that_stand_still_are_found_with_all_that_they_lead(apart: Shell) -> None:
    status = apart.status()
    controller = status["controller_id"]
    other = next(id_ for id_ in (1, 2, 3) if id_ != controller)
    apart.ok("cluster", "pause", str(other))
    of_other = {("unreachable", f"broker {other}"), ("silent-leader", f"t-{other - 1}")}
    assert of_other == found_by(apart, "--timeout", "3")
    # The first address is that of one that accepts connections and says nothing.
    addresses = {row["broker_id"]: row["address"] for row in status["brokers"]}
    servers = ",".join(addresses[id_] for id_ in (other, 6 - other - controller))
    assert of_other == found_by(apart, "--timeout", "3", "-b", servers)
    assert of_other == found_by(apart, "--wait", "--timeout", "3")
    apart.ok("cluster", "pause", str(controller))
    of_controller = {
        ("no-controller", "cluster"),
        ("unreachable", f"broker {controller}"),
        ("silent-leader", f"t-{controller - 1}"),
    }
    assert of_other | of_controller == found_by(apart, "--timeout", "4")
    for broker_id in (controller, other):
        apart.ok("cluster", "resume", str(broker_id))


def test_a_metadata_store_that_stands_still_is_a_finding(apart: Shell) -> None:
    status = apart.status()
    (store,) = set(status["pids"]) - {row["pid"] for row in status["brokers"]}
    os.kill(store, signal.SIGSTOP)
    try:
        found = found_by(apart, "--timeout", "4")
    finally:
        os.kill(store, signal.SIGCONT)
    assert {("store", "metadata store"), ("unasked", "cluster")} == found


def test_leaders_are_listed_and_balanced(three: Shell) -> None:
    three.ok("brokers", "shutdown", "2")
    three.ok("cluster", "restart", "2")
    three.ok("check", "--wait", "--timeout", "60")
    strict = three.run("check", "--strict", "-o", "json")
    assert 4 == strict.returncode
    assert ["not-preferred"] == [row["finding"] for row in json.loads(strict.stdout)]
    away = three.run("leaders", "list", "--not-preferred", "--check", "-o", "json")
    assert 4 == away.returncode
    (row,) = json.loads(away.stdout)
    assert ("t", 0, 1, 2) == (row["topic"], row["partition"], row["leader"], row["preferred"])
    by_broker = json.loads(three.ok("leaders", "list", "--by-broker", "-o", "json"))
    assert [(2, 0, 1, 100)] == [
        (row["broker_id"], row["leaders"], row["away"], row["away_percentage"])
        for row in by_broker
        if row["broker_id"] == 2
    ]
    plan = three.run("leaders", "balance", "--dry-run", "-o", "json")
    assert 5 == plan.returncode
    assert [(0, 1, 2)] == [
        (row["partition"], row["old_leader"], row["new_leader"]) for row in json.loads(plan.stdout)
    ]
    unsaid = three.run("leaders", "balance", stdin="")
    assert 0 != unsaid.returncode
    elected = json.loads(three.ok("leaders", "elect", "preferred", "t", "-y", "-o", "json"))
    assert [(0, 2, "elected")] == [
        (row["partition"], row["new_leader"], row["result"]) for row in elected
    ]
    assert [] == json.loads(three.ok("leaders", "balance", "-o", "json"))
    assert [] == json.loads(three.ok("leaders", "elect", "unclean", "t", "-o", "json"))


def test_a_search_for_problems_needs_no_names_of_topics(three: Shell) -> None:
    assert [] == json.loads(three.ok("topics", "describe", "--unavailable", "-o", "json"))
    every = json.loads(three.ok("topics", "describe", "--check", "-o", "json"))
    assert "t" in [topic["name"] for topic in every]
    unnamed = three.run("topics", "describe")
    assert unnamed.returncode == 2
    assert "which topics? None is named" in unnamed.stderr


def test_words_that_name_nothing_are_refused(three: Shell) -> None:
    for words, said in (
        (("leaders", "elect", "any", "t"), "not an election: 'any'"),
        (("leaders", "elect", "preferred"), "which topics? None is named"),
        (("leaders", "list", "nobody"), "UNKNOWN_TOPIC_OR_PARTITION: nobody"),
        (("explain", "partition", "t"), "not a partition: 't'; expected TOPIC:PARTITION"),
        (("explain", "partition", "t:7"), "not a partition: 't:7'; expected t:0 to t:1"),
        (("explain", "partition", "t-07"), "not a partition: 't-07'; expected t-0 to t-1"),
        (("explain", "partition", "nobody:0"), "UNKNOWN_TOPIC_OR_PARTITION: nobody"),
        (("check", "nobody"), "UNKNOWN_TOPIC_OR_PARTITION: nobody"),
        (("check", "--ignore", "gremlins"), "not a finding: 'gremlins'; expected offline"),
    ):
        done = three.run(*words)
        assert done.returncode in (1, 2), words
        assert said in done.stderr, words
