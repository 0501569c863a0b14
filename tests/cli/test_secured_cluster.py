"""`kctl cluster start --secure`: what it makes, uses again and removes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.cli.shell import Shell


def contexts(shell: Shell) -> Any:
    return json.loads(shell.ok("context", "list", "-o", "json"))


def test_a_secured_cluster_is_used_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    try:
        servers = json.loads(shell.ok("cluster", "start", "--secure", "--port", "0", "-o", "json"))[
            "bootstrap_servers"
        ]
        security = tmp_path / "data" / "kctl" / "cluster" / "security"
        assert 0o700 == security.stat().st_mode & 0o777
        modes = {path.name: path.stat().st_mode & 0o077 for path in security.iterdir()}
        assert {"ca.pem"} == {name for name, mode in modes.items() if mode}
        shell.ok("topics", "create", "t")
        assert 1 == json.loads(shell.ok("cluster", "status", "-o", "json"))["controller_id"]
        # Nobody prunes the user that the command logs in as.
        (tmp_path / "state.yaml").write_text("version: 1\nusers: {}\n")
        prune = ("--prune", "--allow-delete", "-y")
        kept = shell.run("apply", "-f", str(tmp_path / "state.yaml"), *prune)
        assert 1 == kept.returncode
        assert "logs in as that user" in kept.stderr
        # Who is nobody is not let in.
        refused = shell.run("topics", "list", "-b", servers, "--timeout", "5")
        assert (3, "") == (refused.returncode, refused.stdout)
        before = {path.name: path.read_bytes() for path in security.iterdir()}
        shell.ok("cluster", "stop")
        shell.ok("cluster", "start", "--secure")
        assert before == {path.name: path.read_bytes() for path in security.iterdir()}
        assert "t\n" == shell.ok("topics", "list", "-o", "name", "--context", "embedded")
    finally:
        shell.ok("cluster", "destroy", "-y")
    assert not security.exists()
    assert [] == contexts(shell)


def test_a_context_of_another_cluster_is_left(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.ok("context", "set", "embedded", "-b", "127.0.0.1:1")
    done = shell.run("cluster", "start", "--secure", "--port", "0")
    assert 2 == done.returncode
    assert "context embedded is there" in done.stderr
    assert "127.0.0.1:1" == contexts(shell)[0]["bootstrap_servers"]
    assert not (tmp_path / "data").exists()


def test_a_cluster_that_runs_without_security_stays_as_it_is(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    try:
        shell.ok("cluster", "start", "--port", "0")
        assert 0 != shell.run("cluster", "start", "--secure").returncode
        shell.ok("topics", "list")
        assert [] == contexts(shell)
        # Stopped, it can be secured.
        shell.ok("cluster", "stop")
        shell.ok("cluster", "start", "--secure")
        shell.ok("topics", "list", "--context", "embedded")
    finally:
        shell.ok("cluster", "destroy", "-y")
    assert not (tmp_path / "data" / "kctl" / "cluster").exists()


def test_the_administrator_is_created_beside_the_cluster(tmp_path: Path) -> None:
    done = Shell(tmp_path).run("cluster", "start", "--secure", "--foreground")
    assert 2 == done.returncode
    assert "--foreground" in done.stderr
