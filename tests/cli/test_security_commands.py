"""`kctl acls`, `users` and `quotas` on an embedded broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.cli.test_schemas import check

pytestmark = pytest.mark.xdist_group("security")


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    found = Shell(tmp_path_factory.mktemp("security"))
    found.ok(
        *("cluster", "start", "--port", "0", "--set", "super.users=User:ANONYMOUS"),
        *("--set", "authorizer.class.name=kafka.security.authorizer.AclAuthorizer"),
    )
    yield found
    found.ok("cluster", "destroy", "-y")


def rows(shell: Shell, line: str, *, code: int = 0) -> Any:
    """Return what a command prints as JSON, held to its schema."""
    words = line.split()
    done = shell.run(*words, "-o", "json")
    assert code == done.returncode, done.stderr
    return check(" ".join(words[:2]), done.stdout)


# -- users


def test_a_password_is_made_printed_once_and_never_listed(shell: Shell) -> None:
    (created,) = rows(shell, "users create app --generate")
    assert 32 == len(created["password"])
    listed = {"user": "app", "mechanism": "SCRAM-SHA-512", "iterations": 4096}
    assert listed == {key: created[key] for key in listed}
    assert [listed] == rows(shell, "users list app")
    again = shell.run("users", "create", "app", "--generate")
    assert 1 == again.returncode
    assert "`kctl users rotate app`" in again.stderr


def test_a_password_in_a_file_is_for_its_owner_alone_and_replaces_none(
    shell: Shell, tmp_path: Path
) -> None:
    path = tmp_path / "secret"
    shell.ok("users", "create", "filed", "--generate", "--out", str(path))
    assert 0o600 == path.stat().st_mode & 0o777
    before = path.read_text()
    done = shell.run("users", "rotate", "filed", "--generate", "--out", str(path))
    assert 1 == done.returncode
    assert before == path.read_text()


def test_a_password_comes_from_stdin_a_file_or_the_environment(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p").write_text("geheim\r\nmore\n")
    monkeypatch.setitem(shell.environment, "APP_PASSWORD", "x")
    create = ("users", "create", "three", "--password-file")
    shell.ok(*create, "-", "--mechanism", "sha-256", "--iterations", "5000", stdin="x\n")
    shell.ok(*create, str(tmp_path / "p"))
    # Each mechanism keeps its iterations.
    rotated = rows(shell, "users rotate three --password-env APP_PASSWORD")
    assert [("SCRAM-SHA-256", 5000), ("SCRAM-SHA-512", 4096)] == [
        (row["mechanism"], row["iterations"]) for row in rotated
    ]
    for words in (
        (*create, "-"),
        (*create, str(tmp_path / "none")),
        ("users", "create", "four", "--generate", "--iterations", "4095"),
        ("users", "rotate", "three"),
        ("users", "rotate", "three", "--password-env", "NOT_SET"),
        ("users", "rotate", "three", "--generate", "--password-env", "APP_PASSWORD"),
        ("users", "rotate", "nobody", "--generate"),
        ("users", "list", "nobody"),
    ):
        assert shell.run(*words).returncode in (1, 2), words


def test_users_are_deleted_by_mechanism_or_as_a_whole(shell: Shell) -> None:
    for name in ("sha-256", "sha-512"):
        shell.ok("users", "create", "both", "--generate", "--mechanism", name)
    (gone,) = rows(shell, "users delete both --mechanism SCRAM-SHA-256 -y")
    assert ("SCRAM-SHA-256", "deleted") == (gone["mechanism"], gone["result"])
    assert 2 == shell.run("users", "delete", "both").returncode
    done = shell.run("users", "delete", "both", "nobody", "-y")
    assert 1 == done.returncode
    assert "nobody" in done.stderr
    assert 1 == shell.run("users", "list", "both").returncode


# -- quotas


def test_quotas_are_set_with_units_listed_and_unset(shell: Shell) -> None:
    (new,) = rows(shell, "quotas set produce=1MiB/s --user ann --client-id app")
    assert (None, 1048576, "changed") == (new["old_value"], new["value"], new["result"])
    changed = rows(shell, "quotas set producer_byte_rate=2000000 request=50% --user ann")
    assert ["2000000.0", "50.0"] == [str(row["value"]) for row in changed]
    (same,) = rows(shell, "quotas set request=50 --user ann")
    assert "unchanged" == same["result"]
    listed = rows(shell, "quotas list --user ann")
    assert {(None, "50 %"), (None, "2 MB/s"), ("app", "1 MiB/s")} == {
        (row["client_id"], row["limit"]) for row in listed
    }
    (tried,) = rows(shell, "quotas unset request --user ann --dry-run")
    assert ("would be changed", 50, None) == (tried["result"], tried["old_value"], tried["value"])
    assert 2 == len(rows(shell, "quotas unset --all --user ann"))
    (absent,) = rows(shell, "quotas unset request --user ann")
    assert "was not set" == absent["result"]
    assert ["app"] == [row["client_id"] for row in rows(shell, "quotas list --user ann")]
    shell.ok("quotas", "unset", "produce", "--user", "ann", "--client-id", "app")


def test_quotas_of_addresses_and_defaults_are_listed_with_all(shell: Shell) -> None:
    shell.ok("quotas", "set", "connections=20/s", "--ip", "10.0.0.9")
    shell.ok("quotas", "set", "mutations=0.5", "--user-default")
    found = [(row["user"], row["ip"], row["limit"]) for row in rows(shell, "quotas list")]
    assert [("<default>", None, "0.5/s"), (None, "10.0.0.9", "20/s")] == found
    shell.ok("quotas", "unset", "--all", "--ip", "10.0.0.9")
    shell.ok("quotas", "unset", "--all", "--user-default")
    assert [] == rows(shell, "quotas list")


# -- rules


@pytest.fixture
def no_rules(shell: Shell) -> Iterator[None]:
    yield
    shell.ok("acls", "delete", "--all", "-y")


@pytest.mark.usefixtures("no_rules")
def test_rules_are_created_once_listed_and_deleted(shell: Shell) -> None:
    create = "acls create --allow ann --for consumer --topic orders --group billing"
    assert ["would be created"] * 2 == [r["result"] for r in rows(shell, f"{create} --dry-run")]
    assert ["created"] * 2 == [row["result"] for row in rows(shell, create)]
    assert ["exists"] * 2 == [row["result"] for row in rows(shell, create)]
    listed = rows(shell, "acls list --principal ann --topic orders")
    assert [
        {
            "principal": "User:ann",
            "host": "*",
            "permission": "allow",
            "operation": "read",
            "resource_type": "topic",
            "resource_name": "orders",
            "pattern": "literal",
        }
    ] == listed
    deleted = rows(shell, "acls delete --topic orders -y")
    assert [{**listed[0], "result": "deleted"}] == deleted
    assert ["group"] == [row["resource_type"] for row in rows(shell, "acls list")]


@pytest.mark.usefixtures("no_rules")
def test_a_check_names_the_rule_and_ends_with_4_where_it_denies(shell: Shell) -> None:
    shell.ok("acls", "create", "--allow", "bob", "--operation", "all", "--topic", "*")
    (row,) = rows(shell, "acls check bob describe topic:t")
    assert ("allowed", "*") == (row["result"], row["rule"]["resource_name"])
    deny = "acls create --deny bob --host 10.0.0.9 --operation read --topic p --pattern prefixed"
    shell.ok(*deny.split())
    anywhere, there = rows(shell, "acls check bob read topic:pay", code=4)
    assert ("allowed", "denied") == (anywhere["result"], there["result"])
    assert "10.0.0.9" == there["rule"]["host"]


@pytest.mark.usefixtures("no_rules")
def test_the_commands_that_a_check_proposes_make_what_is_missing(shell: Shell) -> None:
    line = "acls check app --for streams --input in --topic out --group app"
    done = shell.run(*line.split())
    assert 4 == done.returncode
    commands = [li for li in done.stderr.splitlines() if li.startswith("kctl acls create ")]
    assert 5 == len(commands)
    for command in commands:
        shell.ok(*command.split()[1:])
    assert {"allowed"} == {row["result"] for row in rows(shell, line)}


@pytest.mark.usefixtures("no_rules")
def test_what_is_listed_can_be_applied_again(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "acls.yaml"
    path.write_text("acls: [{allow: [ann, bob], for: producer, topic: t}]")
    assert ["created"] * 2 == [row["result"] for row in rows(shell, f"acls apply {path}")]
    path.write_text(shell.ok("acls", "list", "-o", "yaml"))
    shell.ok("acls", "create", "--deny", "eve", "--operation", "alter", "--cluster")
    pending = rows(shell, f"acls apply {path} --prune --dry-run", code=5)
    assert ["would be deleted", "exists", "exists"] == [row["result"] for row in pending]
    refused = shell.run("acls", "apply", str(path), "--prune")
    assert (2, "") == (refused.returncode, refused.stdout)
    shell.ok("acls", "apply", str(path), "--prune", "-y")
    assert json.loads(shell.ok("acls", "list", "-o", "json")) == rows(shell, "acls list")
    assert 2 == len(rows(shell, "acls list"))
