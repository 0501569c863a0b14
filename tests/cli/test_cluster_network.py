"""Network partitions and slow links of the embedded cluster, rehearsed as an operator would."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell

SETTINGS = (
    "zookeeper.session.timeout.ms=4000",
    "replica.lag.time.max.ms=4000",
    "min.insync.replicas=2",
    "default.replication.factor=3",
)
modes = pytest.mark.parametrize("how", ["--one-process", "--processes"])


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.run("cluster", "destroy", "-y")


def start(shell: Shell, how: str) -> dict[int, str]:
    """Start three brokers; returns their addresses."""
    words = [word for setting in SETTINGS for word in ("--set", setting)]
    shell.ok("cluster", "start", "--brokers", "3", "--port", "0", how, *words)
    return {broker["broker_id"]: broker["address"] for broker in shell.status()["brokers"]}


def until(claim: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 40
    while not claim():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def state(shell: Shell, address: str) -> dict[str, Any]:
    """Return partition 0 of topic t as a broker sees it."""
    described = json.loads(shell.ok("topics", "describe", "t", "-b", address, "-o", "json"))
    found: dict[str, Any] = described[0]["partitions"][0]
    return found


def files_of_faults(shell: Shell) -> list[str]:
    return sorted(
        path.name for path in Path(shell.status()["data"]).iterdir() if ".network" in path.name
    )


@modes
def test_a_partition_loses_nothing_that_was_acknowledged(shell: Shell, how: str) -> None:
    addresses = start(shell, how)
    shell.ok("topics", "create", "t", "-p", "1")
    shell.ok("produce", "t", stdin="before\n")
    # The hardest case: the leader alone, and the controller with it where that is the same.
    old = state(shell, addresses[1])["leader"]
    others = [str(broker_id) for broker_id in addresses if broker_id != old]
    shell.ok("cluster", "partition", str(old), ",".join([*others, "store"]))
    parted = {
        "kind": "partition",
        "places": f"{old} | {','.join(others)},store",
        "delay_ms": None,
        "loss": None,
    }
    assert [parted] == shell.status()["faults"]
    assert parted["places"] in shell.run("cluster", "status").stdout
    # Its leader of old takes what one replica is enough for, and acknowledges no more than that.
    shell.ok("produce", "t", "-b", addresses[old], "--acks", "1", stdin="lost\n")
    failed = shell.run("produce", "t", "-b", addresses[old], "--timeout", "2", stdin="never\n")
    assert 0 != failed.returncode
    other = addresses[int(others[0])]
    until(lambda: state(shell, other)["leader"] not in (old, -1))
    reached = ",".join(addresses[int(broker_id)] for broker_id in others)
    shell.ok("produce", "t", "-b", reached, stdin="during\n")
    shell.ok("cluster", "heal")
    assert [] == shell.status()["faults"]
    shell.ok("check", "--wait", "--timeout", "60")
    assert sorted(map(int, addresses)) == sorted(state(shell, other)["isr"])
    assert ["before", "during"] == shell.ok("consume", "t", "-e").splitlines()
    assert ["cluster.network"] == files_of_faults(shell)


@modes
def test_a_cluster_stops_during_a_partition_and_starts_without_it(shell: Shell, how: str) -> None:
    start(shell, how)
    shell.ok("cluster", "partition", "1", "2", "3", "store")
    shell.ok("cluster", "stop", "--timeout", "20")
    assert ("stopped", []) == (shell.status()["state"], shell.status()["faults"])
    assert ["cluster.network"] == files_of_faults(shell)
    shell.ok("cluster", "start")
    assert [] == shell.status()["faults"]
    shell.ok("topics", "create", "t")


@modes
def test_a_broker_that_restarts_keeps_its_faults(shell: Shell, how: str) -> None:
    addresses = start(shell, how)
    shell.ok("topics", "create", "t", "-p", "1")
    shell.ok("cluster", "slow", "2", "--delay", "150ms", "--loss", "0.5%")
    shell.ok("cluster", "restart", "2")
    slow = {"kind": "slow", "places": "2", "delay_ms": 150, "loss": 0.005}
    assert [slow] == shell.status()["faults"]
    until(lambda: len(state(shell, addresses[1])["isr"]) == 3)
    began_s = time.monotonic()
    shell.ok("produce", "t", stdin="one\n")
    # Its replica goes to broker 2 in 150 ms, and is acknowledged in as many.
    assert time.monotonic() - began_s > 0.3
    shell.ok("cluster", "slow", "2", "--delay", "0ms")
    assert [] == shell.status()["faults"]


def test_wrong_places_and_times_are_refused(shell: Shell) -> None:
    shell.ok("cluster", "start", "--brokers", "2", "--port", "0")
    refused = {
        ("partition", "1"): "two groups or more",
        ("partition", "1,2", "2"): "each broker once, in one group",
        ("partition", "1", "7"): "one of 1, 2, or store",
        ("partition", "1,", "2"): "one of 1, 2, or store",
        ("slow", "7", "--delay", "1ms"): "one of 1, 2, or store",
        ("slow", "1"): "--delay, --loss or both",
        ("slow", "1", "--delay", "-1ms"): "not a delay: '-1ms'",
        ("slow", "1", "--delay", "nan"): "not a delay: 'nan'",
        ("slow", "1", "--delay", "601s"): "up to 600s",
        ("slow", "1", "--delay", "50"): "such as 50ms",
        ("slow", "1", "--loss", "100.1%"): "0% ... 100%",
        ("slow", "1", "--loss", "-1%"): "0% ... 100%",
        ("slow", "1", "--loss", "nan%"): "0% ... 100%",
        ("slow", "1", "--loss", "1e400%"): "0% ... 100%",
    }
    for words, reason in refused.items():
        done = shell.run("cluster", *words)
        assert (2, True) == (done.returncode, reason in done.stderr), (words, done.stderr)
    assert [] == shell.status()["faults"]
    shell.ok("cluster", "stop")
    for words in (["partition", "1", "2"], ["heal"], ["slow", "1", "--loss", "1%"]):
        done = shell.run("cluster", *words)
        assert (1, True) == (done.returncode, "does not run" in done.stderr)


def test_a_broker_that_stands_still_is_healed_when_it_goes_on(shell: Shell) -> None:
    start(shell, "--processes")
    shell.ok("cluster", "partition", "1,2,store", "3")
    shell.ok("cluster", "pause", "3")
    shell.ok("cluster", "heal")
    assert ["cluster.network"] == files_of_faults(shell)
    shell.ok("cluster", "resume", "3")
    shell.ok("topics", "create", "t", "-p", "1")
    shell.ok("check", "--wait", "--timeout", "60")


def test_brokers_that_outlive_the_metadata_store_lose_their_faults_with_it(shell: Shell) -> None:
    start(shell, "--processes")
    shell.ok("cluster", "partition", "1,2,store", "3")
    data = Path(shell.status()["data"])
    os.kill(json.loads((data / "running.json").read_text())["pid"], signal.SIGKILL)
    until(lambda: shell.status()["state"] == "crashed")
    shell.ok("cluster", "start")
    assert [] == shell.status()["faults"]
    shell.ok("topics", "create", "t", "-p", "1")
    shell.ok("produce", "t", stdin="one\n")
    shell.ok("check", "--wait", "--timeout", "60")
    assert ["cluster.network"] == files_of_faults(shell)
