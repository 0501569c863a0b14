"""Brokers of an embedded cluster one by one: stopped, killed, paused, added, removed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import KCTL, Shell

#: A broker whose session ends soon.
QUICK = ("--set", "zookeeper.session.timeout.ms=3000")


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.run("cluster", "destroy", "-y")


@pytest.fixture
def three(shell: Shell) -> Shell:
    """Return three brokers in processes of their own."""
    words = ("--brokers", "3", "--port", "0", "--racks", "a,b", "--processes", *QUICK)
    shell.ok("cluster", "start", *words)
    return shell


def brokers(shell: Shell) -> dict[int, dict[str, Any]]:
    return {broker["broker_id"]: broker for broker in shell.status()["brokers"]}


def states(shell: Shell) -> list[str]:
    return [broker["state"] for broker in brokers(shell).values()]


def test_each_broker_is_a_process_and_comes_back_the_same(three: Shell) -> None:
    status = three.status()
    own = [broker["pid"] for broker in status["brokers"]]
    assert 3 == len(set(own))
    assert {*own} < set(status["pids"])
    assert 4 == len(status["pids"])
    assert ["a", "b", "a"] == [broker["rack"] for broker in status["brokers"]]
    assert 1 == sum(broker["is_controller"] for broker in status["brokers"])
    three.ok("topics", "create", "t", "-p", "3", "-r", "3")
    three.ok("produce", "t", stdin="one\ntwo\n")
    three.ok("cluster", "stop")
    assert ["stopped"] * 3 == states(three)
    three.ok("cluster", "start")
    assert ["running"] * 3 == states(three)
    assert ["one", "two"] == sorted(three.ok("consume", "t", "-e").splitlines())


def test_a_broker_that_is_killed_is_reported_with_the_end_of_its_log(three: Shell) -> None:
    address = brokers(three)[2]["address"]
    three.ok("cluster", "kill", "2")
    done = three.run("cluster", "status")
    assert 1 == done.returncode
    said = done.stderr.splitlines()
    assert "broker 2 is crashed" == said[0]
    assert 2 <= len(said) <= 6
    again = three.run("cluster", "kill", "2")
    assert (1, "error: broker 2 does not run, it is crashed") == (
        again.returncode,
        again.stderr.splitlines()[0],
    )
    # At once: its session lives on for seconds, and nobody waits for that.
    three.ok("cluster", "restart", "2")
    assert (["running"] * 3, address) == (states(three), brokers(three)[2]["address"])


def test_a_broker_that_is_paused_goes_on(three: Shell) -> None:
    three.ok("cluster", "pause", "1")
    assert ["paused", "running", "running"] == states(three)
    three.ok("cluster", "resume", "1")
    assert ["running"] * 3 == states(three)


def test_a_cluster_stops_with_brokers_that_are_paused_or_gone(three: Shell) -> None:
    three.ok("cluster", "pause", "1")
    three.ok("cluster", "kill", "2")
    three.ok("cluster", "stop", "--timeout", "20")
    assert "stopped" == three.status()["state"]
    three.ok("cluster", "start")
    assert ["running"] * 3 == states(three)


def test_brokers_outlive_the_metadata_store_and_go_on_with_it(three: Shell) -> None:
    three.ok("topics", "create", "t", "-p", "1", "-r", "3")
    own = [broker["pid"] for broker in brokers(three).values()]
    running = json.loads((Path(three.status()["data"]) / "running.json").read_text())
    os.kill(running["pid"], signal.SIGKILL)
    while three.status()["state"] == "running":
        pass
    assert ("crashed", ["running"] * 3) == (three.status()["state"], states(three))
    three.ok("cluster", "start")
    assert own == [broker["pid"] for broker in brokers(three).values()]
    # Sessions that ended meanwhile begin again, and replicas that left an in-sync set come back.
    three.ok("check", "--wait", "--timeout", "60")
    three.ok("produce", "t", stdin="one\n")
    assert ["one"] == three.ok("consume", "t", "-e").splitlines()
    # And they are stopped without it too.
    os.kill(min(set(three.status()["pids"]) - set(own)), signal.SIGKILL)
    three.ok("cluster", "stop")
    assert set(states(three)) <= {"stopped"}


@pytest.mark.parametrize("how", ["--processes", "--one-process"])
def test_brokers_are_added_and_removed(shell: Shell, how: str) -> None:
    shell.ok("cluster", "start", "--brokers", "2", "--port", "0", how)
    shell.ok("topics", "create", "t", "-p", "2", "-r", "2")
    shell.ok("cluster", "add")
    assert ([1, 2, 3], ["running"] * 3) == (list(brokers(shell)), states(shell))
    listed = json.loads(shell.ok("brokers", "list", "-o", "json"))
    assert [1, 2, 3] == [broker["broker_id"] for broker in listed]
    held = shell.run("cluster", "remove", "2", "-y")
    assert (1, "error: broker 2 holds replicas of 2 partitions: t-0, t-1") == (
        held.returncode,
        held.stderr.splitlines()[0],
    )
    data = Path(shell.status()["data"])
    assert (data / "broker-3").is_dir()
    unasked = shell.run("cluster", "remove", "3")
    assert 2 == unasked.returncode
    shell.ok("cluster", "remove", "3", "-y")
    assert [1, 2] == list(brokers(shell))
    assert [] == [path.name for path in data.glob("broker-3*")]
    shell.ok("cluster", "stop")
    shell.ok("cluster", "start")
    assert ([1, 2], ["running"] * 2) == (list(brokers(shell)), states(shell))


@pytest.mark.parametrize("how", ["--processes", "--one-process"])
def test_a_broker_that_shuts_down_gives_its_leaders_away(shell: Shell, how: str) -> None:
    shell.ok("cluster", "start", "--brokers", "2", "--port", "0", how)
    shell.ok("topics", "create", "t", "-p", "4", "-r", "2")
    shell.ok("brokers", "shutdown", "2")
    described = json.loads(shell.ok("topics", "describe", "t", "-o", "json"))
    assert [1] * 4 == [partition["leader"] for partition in described[0]["partitions"]]
    assert ["running", "stopped"] == states(shell)
    assert 1 == shell.run("cluster", "status").returncode
    again = shell.run("brokers", "shutdown", "2")
    assert (1, True) == (again.returncode, "broker 2 does not run" in again.stderr)
    shell.ok("cluster", "restart", "2")
    assert ["running"] * 2 == states(shell)


def test_a_broker_of_a_shared_process_is_restarted_and_not_killed(shell: Shell) -> None:
    shell.ok("cluster", "start", "--brokers", "2", "--port", "0")
    before = brokers(shell)
    shell.ok("cluster", "restart", "2")
    assert before[2]["address"] == brokers(shell)[2]["address"]
    for word in ("kill", "pause", "resume"):
        done = shell.run("cluster", word, "1")
        assert 1 == done.returncode
        assert "broker 1 has no process of its own" in done.stderr
        assert "--processes" in done.stderr
    nobody = shell.run("cluster", "restart", "7")
    assert (1, True) == (nobody.returncode, "has no broker 7: it has 1, 2" in nobody.stderr)


def test_queries_that_do_not_run_are_reported(shell: Shell) -> None:
    for words in (["restart", "1"], ["add"], ["remove", "1", "-y"], ["kill", "1"]):
        done = shell.run("cluster", *words)
        assert (1, True) == (done.returncode, "there is no cluster" in done.stderr), words
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("cluster", "stop")
    for words in (["restart", "1"], ["add"], ["remove", "1", "-y"]):
        done = shell.run("cluster", *words)
        assert (1, True) == (done.returncode, "does not run" in done.stderr), words


def test_one_process_and_many_take_turns(shell: Shell) -> None:
    shell.ok("cluster", "start", "--brokers", "2", "--port", "0")
    other = shell.run("cluster", "start", "--processes", "--racks", "x")
    assert 1 == other.returncode
    assert "it was started with racks none, its brokers run in one process" in other.stderr
    shell.ok("cluster", "stop")
    shell.ok("cluster", "start", "--processes", "--racks", "x")
    assert ["x", "x"] == [broker["rack"] for broker in brokers(shell).values()]
    assert 3 == len(shell.status()["pids"])
    shell.ok("cluster", "stop")
    shell.ok("cluster", "start", "--one-process", "--racks", "")
    assert [None, None] == [broker["rack"] for broker in brokers(shell).values()]
    assert 1 == len(shell.status()["pids"])


def test_brokers_have_as_many_log_directories_as_asked(shell: Shell) -> None:
    shell.ok("cluster", "start", "--brokers", "2", "--port", "0", "--log-dirs", "2")
    shell.ok("topics", "create", "t", "-p", "4", "-r", "2")
    shell.ok("cluster", "stop")
    # One more counts from a start on; none is taken away.
    fewer = shell.run("cluster", "start", "--log-dirs", "1")
    assert (1, True) == (fewer.returncode, "made with --log-dirs 2, not 1" in fewer.stderr)
    shell.ok("cluster", "start", "--log-dirs", "3", "--processes")
    rows = json.loads(shell.ok("brokers", "log-dirs", "-o", "json"))
    found = [(row["broker_id"], Path(row["path"]).name, row["replicas"]) for row in rows]
    assert found == [
        (1, "broker-1", 2), (1, "broker-1-2", 2), (1, "broker-1-3", 0),
        (2, "broker-2", 2), (2, "broker-2-2", 2), (2, "broker-2-3", 0),
    ]  # fmt: skip
    assert "log directories: 3 each" in shell.run("cluster", "start", "--log-dirs", "4").stderr


def _server_behind_a_free_port() -> socket.socket:
    """Listen on a port whose predecessor is free, below those that systems give out by turns."""
    for port in range(20_000 + os.getpid() % 5_000 * 2, 32_000, 2):
        try:
            with socket.create_server(("127.0.0.1", port)):
                return socket.create_server(("127.0.0.1", port + 1))
        except OSError:
            continue
    raise AssertionError("no two ports are free")


def test_a_broker_that_does_not_start_stops_the_others(shell: Shell) -> None:
    with _server_behind_a_free_port() as taken:
        port = taken.getsockname()[1]
        words = ("--brokers", "2", "--port", str(port - 1), "--processes")
        started = shell.run("cluster", "start", *words)
    assert 1 == started.returncode
    assert f"broker 2 did not start: cannot listen on 127.0.0.1:{port}" in started.stderr
    assert ("stopped", ["stopped", "stopped"]) == (shell.status()["state"], states(shell))


def test_of_a_start_that_is_given_up_no_process_is_left(shell: Shell) -> None:
    words = ("--brokers", "2", "--port", "0", "--processes", "--timeout", "0.01")
    done = shell.run("cluster", "start", *words)
    assert (3, True) == (done.returncode, "not ready after 0.01 s" in done.stderr)
    data = shell.status()["data"]
    # Where one came as far as a process of a broker, it ends by itself.
    while any(data.encode() in command for command in _commands()):
        pass


def _commands() -> list[bytes]:
    listed = subprocess.run(["ps", "-A", "-o", "args="], capture_output=True, check=True)
    return listed.stdout.splitlines()


def test_throttles_are_shown(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "t")
    key = "leader.replication.throttled.replicas"
    shell.ok("configs", "set", "--topic", "t", f"{key}=*")
    shell.ok("configs", "set", "--broker", "1", "leader.replication.throttled.rate=1000")
    status = shell.status()
    assert (0, 0, 1) == tuple(
        status[name] for name in ("under_replicated", "offline", "controller_id")
    )
    assert [
        {"kind": "topic", "name": "t", "setting": key, "value": "*"},
        {
            "kind": "broker",
            "name": "1",
            "setting": "leader.replication.throttled.rate",
            "value": "1000",
        },
    ] == status["throttles"]
    assert key in shell.ok("cluster", "status")


def test_the_log_of_a_brokers_process_is_shown(three: Shell) -> None:
    assert "ready: " in three.ok("cluster", "logs", "--broker", "2")
    done = three.run("cluster", "logs", "--broker", "9")
    assert (1, True) == (done.returncode, "has no log of its own" in done.stderr)


@pytest.mark.parametrize("is_apart", [False, True])
def test_status_says_why_a_broker_halted_that_found_no_descriptor(
    shell: Shell, is_apart: bool
) -> None:
    words = ("cluster", "start", "--brokers", "1", "--port", "0", *["--processes"] * is_apart)
    command = ["bash", "-c", 'ulimit -n 100; exec "$@"', "bash", *KCTL, *words]
    subprocess.run(command, env=shell.environment, check=True, capture_output=True)
    shell.run("topics", "create", "t", "-p", "150", "--timeout", "5")
    status, deadline_s = shell.status(), time.monotonic() + 30
    while status["brokers"][0]["halt"] is None:
        assert time.monotonic() < deadline_s
        status = shell.status()
    halt = status["brokers"][0]["halt"]
    assert "FATAL every log directory is offline" in halt["line"]
    assert "Too many open files" in halt["cause"]
    told = shell.run("cluster", "status")
    subject = "broker 1" if is_apart else "the cluster"
    assert (1, True) == (told.returncode, f"error: {subject} was halted: " in told.stderr)
    assert halt["line"] in told.stderr
    assert "hint: allow more open files (`ulimit -n NUMBER` in the same shell), then" in told.stderr
