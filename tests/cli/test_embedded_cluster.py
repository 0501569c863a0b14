"""`kctl cluster` and `kctl broker` as processes: started, asked, killed, stopped, removed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

KCTL = [sys.executable, "-m", "kctl"]


class Shell:
    """Runs kctl with a home of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("KCTL_", "XDG_"))}
        self._environment = {
            **kept,
            "HOME": str(home),
            "XDG_DATA_HOME": str(home / "data"),
            "XDG_CONFIG_HOME": str(home / "config"),
        }

    def run(self, *words: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*KCTL, *words],
            input=stdin,
            capture_output=True,
            text=True,
            env=self._environment,
            check=False,
        )

    def ok(self, *words: str, stdin: str = "") -> str:
        done = self.run(*words, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def status(self, *words: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.ok("cluster", "status", "-o", "json", *words))
        return found

    def popen(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*KCTL, *words],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.run("cluster", "stop")


def test_a_cluster_is_started_asked_and_stopped(shell: Shell) -> None:
    started = json.loads(shell.ok("cluster", "start", "--port", "0", "-o", "json"))
    assert started["state"] == "running"
    assert shell.status() == started
    assert len(started["pids"]) == 1
    brokers = json.loads(shell.ok("brokers", "list", "-o", "json"))
    assert f"{brokers[0]['host']}:{brokers[0]['port']}" == started["bootstrap_servers"]
    assert "ready" in shell.ok("cluster", "logs", "-n", "1")
    shell.ok("cluster", "stop")
    stopped = shell.status()
    assert (stopped["state"], stopped["bootstrap_servers"], stopped["pids"]) == (
        "stopped",
        None,
        [],
    )
    assert shell.run("brokers", "list").returncode == 2


def test_topics_and_records_outlive_a_kill(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "clicks", "--partitions", "2")
    shell.ok("produce", "clicks", stdin="one\ntwo\n")
    os.kill(shell.status()["pids"][0], signal.SIGKILL)
    while shell.status()["state"] == "running":
        pass
    assert shell.status()["state"] == "crashed"
    shell.ok("cluster", "start")
    consumed = shell.ok("consume", "clicks", "--from", "beginning", "--exit")
    assert sorted(consumed.splitlines()) == ["one", "two"]


def test_clusters_live_side_by_side(shell: Shell, tmp_path: Path) -> None:
    other = str(tmp_path / "other")
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("cluster", "start", "--port", "0", "--data", other)
    servers = {
        shell.status()["bootstrap_servers"],
        shell.status("--data", other)["bootstrap_servers"],
    }
    assert len(servers) == 2
    shell.ok("cluster", "destroy", "--data", other, "-y")
    assert not Path(other).exists()
    assert shell.status()["state"] == "running"


def test_a_second_start_changes_nothing(shell: Shell) -> None:
    shell.ok("cluster", "start", "--port", "0")
    before = shell.status()
    again = shell.run("cluster", "start")
    assert again.returncode == 0
    assert "running already" in again.stderr
    assert shell.status() == before


def test_what_is_wrong_is_said_before_anything_is_made(shell: Shell) -> None:
    bad = shell.run("cluster", "start", "--set", "num.partitions=few")
    assert bad.returncode == 1
    assert "num.partitions" in bad.stderr
    assert shell.run("cluster", "start", "--set", "num.partitions").returncode == 2
    assert shell.run("cluster", "start", "--brokers", "3").returncode == 1
    assert shell.status()["state"] == "absent"
    assert shell.run("cluster", "stop").returncode == 1
    assert shell.run("cluster", "destroy", "-y").returncode == 1


def test_a_port_that_is_taken_is_named(shell: Shell, tmp_path: Path) -> None:
    shell.ok("cluster", "start", "--port", "0")
    port = shell.status()["bootstrap_servers"].rpartition(":")[2]
    other = str(tmp_path / "other")
    taken = shell.run("cluster", "start", "--data", other, "--port", port)
    assert taken.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in taken.stderr
    assert shell.status("--data", other)["state"] == "stopped"


def test_a_broker_runs_from_a_properties_file_until_sigterm(shell: Shell, tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text(
        "broker.id=7\nlisteners=PLAINTEXT://127.0.0.1:0\n"
        f"log.dirs={tmp_path / 'logs'}\nno.such.key=1\n"
    )
    with shell.popen("broker", "run", "--config", str(config)) as broker:
        assert broker.stderr is not None
        lines = []
        for line in broker.stderr:
            lines.append(line)
            if "ready: " in line:
                break
        port = lines[-1].split("on port ")[1].split()[0]
        listed = json.loads(shell.ok("brokers", "list", "-b", f"127.0.0.1:{port}", "-o", "json"))
        broker.send_signal(signal.SIGTERM)
        broker.communicate()
    assert [row["broker_id"] for row in listed] == [7]
    assert any("no.such.key" in line for line in lines)
    assert broker.returncode == 0
    assert (tmp_path / "logs" / ".kafka_cleanshutdown").exists()


def test_a_remote_metadata_store_is_refused_in_words(shell: Shell, tmp_path: Path) -> None:
    config = tmp_path / "server.properties"
    config.write_text("broker.id=7\nzookeeper.connect=localhost:2181\n")
    refused = shell.run("broker", "run", "--config", str(config))
    assert refused.returncode == 1
    assert "zookeeper.connect=localhost:2181" in refused.stderr
