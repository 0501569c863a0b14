"""`kctl cluster` where something is amiss: other files, lost metadata, starts at once, a hang."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.shell import Shell

DEADLINE_S = 60


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.run("cluster", "stop")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_a_folder_with_other_files_is_left_alone(shell: Shell, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    for words in (["start", "--port", "0"], ["start", "--foreground"], ["destroy", "-y"]):
        done = shell.run("cluster", *words, "--data", str(mine))
        assert (1, "") == (done.returncode, done.stdout), words
    assert "no cluster" in done.stderr
    assert ["notes.txt"] == [path.name for path in mine.iterdir()]


def test_what_is_not_the_clusters_outlives_it_and_is_named(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "t")
    mine = Path(shell.status()["data"]) / "broker-1" / "notes.txt"
    mine.write_text("mine")
    done = shell.run("cluster", "destroy", "-y")
    assert (0, True) == (done.returncode, f"{mine} is not the cluster's and stays" in done.stderr)
    assert [mine] == [path for path in mine.parent.parent.rglob("*") if path.is_file()]


def test_a_removal_says_which_cluster_before_it_asks(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    status = shell.status()
    (cluster_id,) = json.loads(shell.ok("znode", "get", "/cluster/id", "-o", "json"))["data"][
        len('{"version":"1","id":"') : -2
    ].split()
    done = shell.run("cluster", "destroy")
    assert 2 == done.returncode
    assert f"({cluster_id} at {status['bootstrap_servers']})" in done.stderr


def test_a_repaired_cluster_serves_all_records_with_the_same_ids(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "clicks", "-p", "3", "-c", "retention.ms=60000")
    shell.ok("topics", "create", "orders")
    lines = "".join(f"{number}\n" for number in range(200))
    shell.ok("produce", "clicks", stdin=lines)
    before = json.loads(shell.ok("topics", "list", "-o", "json"))
    shell.ok("cluster", "stop")
    data = Path(shell.status()["data"])
    (data / "cluster.json").write_text("{")
    (data / "znodes.sqlite").unlink()
    for words in ("start", "status"):
        damaged = shell.run("cluster", words)
        assert (1, True) == (damaged.returncode, "kctl cluster repair --data" in damaged.stderr)
    assert 5 == shell.run("cluster", "repair", "--dry-run").returncode
    assert 2 == shell.run("cluster", "repair").returncode
    assert not (data / "znodes.sqlite").exists()
    shell.ok("cluster", "repair", "-y")
    shell.ok("cluster", "start", "--port", "0")
    assert before == json.loads(shell.ok("topics", "list", "-o", "json"))
    consumed = shell.ok("consume", "clicks", "-e")
    assert sorted(consumed.splitlines()) == sorted(lines.splitlines())
    shell.ok("produce", "clicks", stdin="more\n")
    assert 0 == shell.run("cluster", "destroy", "-y").returncode
    assert not data.exists()


def test_a_lost_store_is_said_before_a_process_is_started(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("cluster", "stop")
    data = Path(shell.status()["data"])
    shutil.copytree(data, f"{data}-kept")
    (data / "znodes.sqlite").unlink()
    lost = shell.run("cluster", "start")
    assert (1, True) == (lost.returncode, "has lost its znodes.sqlite" in lost.stderr)
    assert not (data / "znodes.sqlite").exists()
    (data / "znodes.sqlite").write_bytes(b"not a database, " * 100)
    damaged = shell.run("cluster", "start")
    assert (1, True) == (damaged.returncode, "not a database" in damaged.stderr)
    assert f"hint: `kctl cluster repair --data {data}`" in damaged.stderr
    assert "nothing to repair" in shell.run("cluster", "repair", "--data", f"{data}-kept").stderr


def test_of_four_starts_at_once_one_starts_and_all_find_it(shell: Shell) -> None:
    port = str(_free_port())
    starts = [shell.popen("cluster", "start", "--port", port, "-o", "json") for _ in range(4)]
    told = [start.communicate() for start in starts]
    assert [0] * 4 == [start.returncode for start in starts], told
    assert 1 == len({json.loads(out)["pids"][0] for out, _ in told})
    assert 3 == sum("running already" in said for _, said in told)
    assert json.loads(Path(shell.status()["data"], "cluster.json").read_text())["port"] == int(port)


def test_other_settings_on_a_running_cluster_change_nothing(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0", "--set", "num.partitions=3")
    before = shell.status()
    for words, said in (
        (["--port", "9999"], "port 0, not 9999"),
        (["--set", "num.partitions=4"], "it sets num.partitions"),
        (["--unset", "num.partitions"], "it sets num.partitions still"),
        (["--set", "log.retention.ms=5"], "it does not set log.retention.ms"),
    ):
        done = shell.run("cluster", "start", *words)
        assert (1, "") == (done.returncode, done.stdout), words
        assert "nothing was changed" in done.stderr and said in done.stderr
    assert before == shell.status()
    assert 0 == shell.run("cluster", "start", "--set", "num.partitions=3").returncode


def test_the_exit_code_of_status_says_whether_the_cluster_runs(shell: Shell) -> None:
    assert 1 == shell.run("cluster", "status").returncode
    shell.ok("cluster", "start", "--port", "0")
    assert 0 == shell.run("cluster", "status").returncode
    pid = shell.status()["pids"][0]
    os.kill(pid, signal.SIGSTOP)
    hung = shell.run("cluster", "status", "-o", "json")
    os.kill(pid, signal.SIGCONT)
    assert (3, "hung") == (hung.returncode, json.loads(hung.stdout)["state"])
    assert f"kill -CONT {pid}" in hung.stderr
    shell.ok("cluster", "stop")
    assert 1 == shell.run("cluster", "status").returncode


def test_clusters_that_were_started_are_listed(shell: Shell, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    assert [] == json.loads(shell.ok("cluster", "list", "-o", "json"))
    shell.ok("cluster", "start", "--port", "0", "--data", other)
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("cluster", "stop")
    rows = json.loads(shell.ok("cluster", "list", "-o", "json"))
    assert [("stopped", None), ("running", shell.status("--data", other)["zookeeper"])] == [
        (row["state"], row["zookeeper"]) for row in rows
    ]
    shell.ok("cluster", "destroy", "-y", "--data", other)
    assert 1 == len(json.loads(shell.ok("cluster", "list", "-o", "json")))


def test_the_metadata_store_listens_at_the_given_address(shell: Shell) -> None:
    port = _free_port()
    shell.ok("cluster", "start", "--port", "0", "--zookeeper-port", str(port))
    assert f"127.0.0.1:{port}" == shell.status()["zookeeper"]
    shell.ok("cluster", "stop")
    with socket.create_server(("127.0.0.1", port)):
        taken = shell.run("cluster", "start")
    assert (1, True) == (taken.returncode, f"cannot listen on 127.0.0.1:{port}" in taken.stderr)
    shell.ok("cluster", "start")
    assert f"127.0.0.1:{port}" == shell.status()["zookeeper"]


def test_a_running_file_that_is_damaged_says_how_to_go_on(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    status = shell.status()
    running = Path(status["data"]) / "running.json"
    running.write_text("{")
    for verb in ("stop", "status"):
        done = shell.run("cluster", verb)
        assert (1, True) == (done.returncode, f"error: {running}: not JSON" in done.stderr)
        assert "hint: end the process by hand: `fuser " in done.stderr
    lock = done.stderr.split("`fuser ")[1].split("`")[0]
    assert Path(lock).is_file()
    os.kill(status["pids"][0], signal.SIGTERM)
    deadline = time.monotonic() + DEADLINE_S
    while shell.run("cluster", "stop").returncode and time.monotonic() < deadline:
        pass
    assert "was not running" in shell.run("cluster", "stop").stderr
    shell.ok("cluster", "start")


def test_a_cluster_that_is_not_ready_in_time_is_a_time_out(shell: Shell) -> None:
    done = shell.run("cluster", "start", "--port", "0", "--timeout", "0.01")
    assert (3, True) == (done.returncode, "not ready after 0.01 s" in done.stderr), done.stderr


def test_a_cluster_that_does_not_stop_in_time_is_a_time_out(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    (pid,) = shell.status()["pids"]
    os.kill(pid, signal.SIGSTOP)
    try:
        done = shell.run("cluster", "stop", "--timeout", "0.1")
        assert (3, True) == (done.returncode, "did not stop in time" in done.stderr)
    finally:
        os.kill(pid, signal.SIGCONT)
