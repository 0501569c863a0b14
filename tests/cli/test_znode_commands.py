"""`kctl znode` on an embedded cluster's store, and on a ZooKeeper named by its address."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kctl.schemas import schema_of
from tests.cli.shell import Shell

DEADLINE_S = 60


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell(tmp_path_factory.mktemp("znode"))
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "clicks")
    yield shell
    shell.run("cluster", "stop")


def test_children_are_listed(shell: Shell) -> None:
    names = shell.ok("znode", "ls", "/brokers/topics/clicks/partitions/0", "-o", "name")
    assert names == "/brokers/topics/clicks/partitions/0/state\n"
    rows = json.loads(shell.ok("znode", "ls", "/", "-o", "json"))
    owners = {row["path"]: row["ephemeral_owner"] for row in rows}
    assert owners["/controller"].startswith("0x")
    assert owners["/brokers"] is None
    table = shell.ok("znode", "ls", "/brokers").splitlines()
    assert table[0].split() == ["PATH", "CHILDREN", "BYTES", "VERSION", "OWNER", "MODIFIED"]
    assert [line.split()[0] for line in table[1:]] == [
        "/brokers/ids",
        "/brokers/seqid",
        "/brokers/topics",
    ]


def test_data_is_printed_as_it_is(shell: Shell) -> None:
    found = json.loads(shell.ok("znode", "get", "/brokers/topics/clicks"))
    assert found["partitions"] == {"0": [1]}
    whole = json.loads(shell.ok("znode", "get", "/controller_epoch", "-o", "json"))
    assert (whole["data"], whole["data_base64"], whole["version"]) == ("1", None, 1)
    empty = shell.run("znode", "get", "/brokers")
    assert (empty.returncode, empty.stdout) == (0, "")


def test_a_stat_has_transactions_and_times(shell: Shell) -> None:
    stat = json.loads(shell.ok("znode", "stat", "/brokers/ids/1", "-o", "json"))
    assert stat["version"] == 1
    assert stat["czxid"] == stat["mzxid"]
    assert stat["ctime_ms"] == stat["mtime_ms"]
    assert "CZXID" in shell.ok("znode", "stat", "/", "-o", "wide")


def test_a_tree_goes_down_as_far_as_is_asked(shell: Shell) -> None:
    tree = shell.ok("znode", "tree", "/brokers/topics")
    assert [line.split("(")[0].rstrip() for line in tree.splitlines()] == [
        "/brokers/topics",
        "  clicks",
        "    partitions",
        "      0",
        "        state",
    ]
    rows = shell.ok("znode", "tree", "/brokers", "--depth", "1", "-o", "ndjson").splitlines()
    assert [json.loads(row)["depth"] for row in rows] == [0, 1, 1, 1]


def test_changes_are_notified_as_they_come(shell: Shell) -> None:
    with shell.popen("znode", "watch", "/config/topics", "-n", "1", "-o", "ndjson") as watching:
        assert watching.stdout is not None
        told: list[str] = []
        reader = threading.Thread(target=lambda: told.extend(watching.stdout or ()))
        reader.start()
        number = 0
        # Nothing says when the watch is set: change until it is told.
        deadline = time.monotonic() + DEADLINE_S
        while watching.poll() is None:
            if time.monotonic() > deadline:
                watching.kill()
                pytest.fail("no change was told")
            number += 1
            shell.ok("configs", "set", "--topic", "clicks", f"retention.ms={1000 + number}")
        reader.join()
    (change,) = [json.loads(line) for line in told]
    assert (change["event"], change["path"]) == ("changed", "/config/topics/clicks")
    Draft202012Validator(schema_of("znode watch")).validate([change])
    assert watching.returncode == 0


def test_any_zookeeper_is_read_below_a_chroot(shell: Shell) -> None:
    address = shell.status()["zookeeper"]
    assert "/0\n" in shell.ok(
        "znode", "ls", "/partitions", "-z", f"{address}/brokers/topics/clicks", "-o", "name"
    )


def test_errors_say_what_to_try(shell: Shell, tmp_path: Path) -> None:
    missing = shell.run("znode", "get", "/none")
    assert (missing.returncode, "no such node" in missing.stderr) == (1, True)
    assert "hint:" in missing.stderr
    gone = shell.run("znode", "ls", "-z", "127.0.0.1:1", "--timeout", "0.5")
    assert (gone.returncode, "127.0.0.1:1" in gone.stderr) == (3, True)
    assert shell.run("znode", "ls", "-z", "h:1", "--data", "d").returncode == 2
    none = shell.run("znode", "ls", "--data", str(tmp_path))
    assert (none.returncode, "kctl cluster start" in none.stderr) == (2, True)
    assert shell.run("znode", "ls", "-o", "xml").returncode == 2
    assert shell.run("znode", "ls", "-z", "a:b").returncode == 2
    assert shell.run("znode", "ls", "no/slash").returncode == 2


def test_a_command_is_over_after_its_time_though_something_hangs(shell: Shell) -> None:
    pid = shell.status()["pids"][0]
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        os.kill(pid, signal.SIGSTOP)
        try:
            for words in (["-z", address], []):
                begun = time.monotonic()
                done = shell.run("znode", "tree", *words, "--timeout", "0.5")
                assert (3, "") == (done.returncode, done.stdout)
                # What is left is the start of the interpreter.
                assert time.monotonic() - begun < 3
        finally:
            os.kill(pid, signal.SIGCONT)


def test_a_watch_outlives_a_restart_of_the_store_with_its_session(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "t")
    with shell.popen("znode", "watch", "/config/topics", "-o", "ndjson") as watching:
        assert watching.stdout is not None and watching.stderr is not None
        told: list[str] = []
        said: list[str] = []
        readers = [
            threading.Thread(target=lambda: told.extend(watching.stdout or ())),
            threading.Thread(target=lambda: said.extend(watching.stderr or ())),
        ]
        for reader in readers:
            reader.start()
        _change_until(shell, lambda: bool(told))
        shell.ok("cluster", "stop")
        # A store that is back at once may be away for less than a watch notices.
        deadline = time.monotonic() + DEADLINE_S
        while not any("the connection is lost" in line for line in said):
            assert time.monotonic() < deadline
        shell.ok("cluster", "start")
        before = len(told)
        _change_until(shell, lambda: len(told) > before)
        watching.send_signal(signal.SIGINT)
        for reader in readers:
            reader.join()
    assert 130 == watching.returncode
    assert {"changed"} == {json.loads(line)["event"] for line in told}
    assert not any("its session expired" in line for line in said)
    shell.run("cluster", "destroy", "-y")


def _change_until(shell: Shell, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    number = 0
    while not condition():
        assert time.monotonic() < deadline
        number += 1
        shell.ok("configs", "set", "--topic", "t", f"retention.ms={1000 + number}")


class TestChanges:
    def test_a_node_is_made_changed_and_removed(self, shell: Shell, tmp_path: Path) -> None:
        assert 1 == shell.run("znode", "create", "/a/b", "x").returncode
        made = json.loads(shell.ok("znode", "create", "/a/b", "x", "--parents", "-o", "json"))
        assert ("/a/b", 0, None) == (made["path"], made["version"], made["ephemeral_owner"])
        again = shell.run("znode", "create", "/a/b", "x")
        assert (1, True) == (again.returncode, "the node exists" in again.stderr)
        file = tmp_path / "data"
        file.write_bytes(b"\xff\x00")
        shell.ok("znode", "set", "/a/b", "--file", str(file), "--version", "0")
        assert "/wA=" == json.loads(shell.ok("znode", "get", "/a/b", "-o", "json"))["data_base64"]
        shell.ok("znode", "set", "/a/b", "-", stdin="from stdin")
        assert "from stdin" == shell.ok("znode", "get", "/a/b")
        shell.ok("znode", "delete", "/a/b", "-y", "--version", "2")
        shell.ok("znode", "delete", "/a", "-y")
        assert 1 == shell.run("znode", "stat", "/a").returncode

    def test_a_change_needs_the_version_that_it_names(self, shell: Shell) -> None:
        shell.ok("znode", "create", "/v", "x")
        for words in (["set", "/v", "y"], ["delete", "/v", "-y"]):
            done = shell.run("znode", *words, "--version", "7")
            assert (1, True) == (done.returncode, "expected version 7, it has" in done.stderr)
        assert "x" == shell.ok("znode", "get", "/v")
        shell.ok("znode", "delete", "/v", "-y")

    def test_sequential_nodes_get_their_digits(self, shell: Shell) -> None:
        shell.ok("znode", "create", "/seq")
        for number in range(2):
            made = shell.ok("znode", "create", "/seq/n-", "--sequential", "-o", "name")
            assert f"/seq/n-{number:010d}\n" == made
        assert 1 == shell.run("znode", "delete", "/seq", "-y").returncode
        shell.ok("znode", "delete", "/seq", "-r", "-y")

    def test_a_removal_says_how_much_of_which_cluster(self, shell: Shell) -> None:
        shell.ok("znode", "create", "/t/a/b", "-p")
        requested = shell.run("znode", "delete", "/t", "-r")
        assert 2 == requested.returncode
        assert "Delete /t and 2 nodes below it of cluster " in requested.stderr
        assert f"at {shell.status()['zookeeper']}: needs a yes" in requested.stderr
        row = json.loads(shell.ok("znode", "delete", "/t", "-r", "-y", "-o", "json"))
        assert {"path": "/t", "removed_count": 3, "result": "deleted"} == row

    def test_what_cannot_be_is_wrong_usage(self, shell: Shell) -> None:
        for words, said in (
            (["create", "/e", "-e"], "an ephemeral node would go with the session"),
            (["delete", "/", "-r", "-y"], "the root cannot be deleted"),
            (["create", "relative"], "a path starts with a slash"),
            (["set", "/controller"], "DATA, - for stdin, or --file FILE"),
            (["delete", "/a", "-r", "--version", "1"], "without --version"),
        ):
            done = shell.run("znode", *words)
            assert (2, True) == (done.returncode, said in done.stderr), words
