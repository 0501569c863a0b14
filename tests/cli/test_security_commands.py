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
