"""`kctl apply`, `diff` and `export` on embedded clusters."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.shell import Shell
from tests.cli.test_reassign_commands import until_moving
from tests.cli.test_schemas import check

pytestmark = [pytest.mark.xdist_group("declared"), pytest.mark.slow]

START = (
    *("cluster", "start", "--brokers", "3", "--port", "0"),
    *("--set", "super.users=User:ANONYMOUS"),
    *("--set", "authorizer.class.name=kafka.security.authorizer.AclAuthorizer"),
    # No throttled move ends by itself: one fetch passes the throttle for hours.
    *("--set", "replication.quota.window.size.seconds=3600"),
    *("--set", "replica.fetch.max.bytes=100000"),
)
#: In the order and the words of an export.
STATE = """version: 1
brokers:
  default:
    settings:
      log.cleaner.threads: 2
  2:
    settings:
      background.threads: 11
topics:
  audit:
    partitions: 1
    replication_factor: 3
  orders:
    partitions: 3
    replication_factor: 2
    settings:
      cleanup.policy: compact,delete
      min.cleanable.dirty.ratio: 0.25
      retention.ms: 604800000
  uneven:
    placement:
      - [1]
      - [3, 2]
users:
  app:
    mechanisms:
      SCRAM-SHA-256: 8192
      SCRAM-SHA-512: 4096
    password: ${PASSWORD_OF_APP}
quotas:
  - ip: 10.0.0.9
    limits:
      connection_creation_rate: 20
  - user: <default>
    client_id: etl
    limits:
      producer_byte_rate: 1048576
      request_percentage: 12.5
acls:
  - allow: User:app
    operations: [read, describe]
    topic: orders
  - deny: User:bob
    hosts: 10.0.0.9
    operations: [write]
    topic: pay-
    pattern: prefixed
  - allow: User:app
    operations: [describe]
    cluster: true
"""


def started(home: Path) -> Shell:
    found = Shell(home)
    found.environment["XDG_STATE_HOME"] = str(home / "state")
    found.environment["PASSWORD_OF_APP"] = "geheim"
    found.ok(*START)
    return found


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    found = started(tmp_path_factory.mktemp("declared"))
    yield found
    found.ok("cluster", "destroy", "-y")


def run(shell: Shell, text: str, *words: str, code: int = 0) -> tuple[Any, str]:
    """Run a command on a file of this text; returns its rows, held to their schema, and stderr."""
    (shell.home / "state.yaml").write_text(text)
    command, *options = words
    done = shell.run(command, "-f", str(shell.home / "state.yaml"), *options, "-o", "json")
    assert code == done.returncode, (done.stdout, done.stderr)
    assert "geheim" not in done.stdout + done.stderr
    return check(command, done.stdout) if done.stdout else None, done.stderr


def results(rows: list[dict[str, Any]]) -> list[str]:
    return [f"{row['kind']} {row['name']} {row['result']}" for row in rows]


def test_an_export_applied_to_an_empty_cluster_is_exported_as_the_same_bytes(
    tmp_path: Path,
) -> None:
    exports = []
    text = STATE
    for _ in range(2):
        shell = started(tmp_path)
        try:
            rows, _ = run(shell, text, "apply", "-y")
            assert {"created", "changed", "moved"} == {row["result"] for row in rows}
            run(shell, text, "diff", "--prune")
            text = shell.ok("export")
            exports.append(text)
            shell.ok("export", "--out", f"{tmp_path}/folder/")
            shell.ok("diff", "-f", f"{tmp_path}/folder", "--prune")
        finally:
            shell.ok("cluster", "destroy", "-y")
    assert [STATE, STATE] == exports


def test_steps_are_shown_and_nothing_is_done_without_a_yes(shell: Shell) -> None:
    text = "version: 1\ntopics: {asked: {partitions: 2, replication_factor: 1}}\n"
    (row,), _ = run(shell, text, "diff", code=5)
    assert [
        {"property": "partitions", "before": None, "after": "2"},
        {"property": "replication_factor", "before": None, "after": "1"},
    ] == row["changes"]
    _, said = run(shell, text, "apply", code=2)
    assert "  1. create topic asked: partitions=2, replication_factor=1" in said
    (pending,), _ = run(shell, text, "apply", "--dry-run", code=5)
    assert "pending" == pending["result"]
    run(shell, text, "diff", code=5)


def test_what_is_refused_is_known_before_the_first_step(shell: Shell) -> None:
    shell.ok("topics", "create", "shrinking", "-p", "3")
    for text, reason in (
        (
            "topics: {new: {}, shrinking: {partitions: 2}}",
            "has 3 partitions, more than the declared 2",
        ),
        ("topics: {new: {replication_factor: 4}}", "only 3 brokers are alive"),
        ("topics: {new: {settings: {retention.ms: 7d}}}", "retention.ms"),
        ("topics: {new: {}}\nusers: {u: {password: '${UNSET}'}}", "export UNSET"),
        ("topics: {new: {}}\nquotas: [{user: u, limits: {produce: 1.5}}]", "user=u"),
        ("topics: {new: {}}\nbrokers: {9: {settings: {a: b}}}", "brokers: 9"),
    ):
        for option in ("--dry-run", "-y"):
            _, said = run(shell, f"version: 1\n{text}\n", "apply", option, code=1)
            assert reason in said
    assert "new" not in shell.ok("topics", "list", "-o", "name").splitlines()


def test_a_step_that_fails_is_reported_and_the_others_are_done(shell: Shell) -> None:
    for name in ("theirs", "ours"):
        shell.ok("topics", "create", name, "--replica-assignment", "1")
    shell.ok("quotas", "set", "produce=5", "--user", "surplus")
    shell.ok("produce", "theirs", stdin="".join(f"{number:0999}\n" for number in range(3000)))
    text = """version: 1
topics:
  ours: {replication_factor: 2, settings: {min.insync.replicas: 2}}
  partial: {partitions: 1, replication_factor: 1}
quotas: [{user: whole, limits: {produce: 2}}]
"""
    prune = ("--prune", "--allow-delete", "-y")
    text += "keep: {topics: ['.*']}\n"
    moving = ("topics", "set-rf", "2", "theirs", "-y", "--throttle", "2")
    with shell.popen(*moving) as process:
        until_moving(shell)
        rows, said = run(shell, text, "apply", *prune, code=1)
        process.kill()
    assert [
        "topics partial created",
        "quotas user=whole created",
        "topics ours failed",
        "topics ours skipped",
        "quotas user=surplus skipped",
    ] == results(rows)
    assert rows[2]["error"] in said
    assert "3 of 5 steps not done" in said
    shell.ok("reassign", "cancel", "--all", "-y")
    shell.ok("reassign", "throttles", "--clear", "-y")
    rows, _ = run(shell, text, "apply", *prune)
    assert ["moved", "changed", "deleted"] == [row["result"] for row in rows]


def test_an_undeclared_user_with_two_mechanisms_is_noted_once(shell: Shell) -> None:
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        shell.ok("users", "create", "twofold", "--mechanism", mechanism, "--generate")
    _, said = run(shell, "version: 1\nusers: {}\n", "diff", code=0)
    assert 1 == said.count("twofold")
    shell.ok("users", "delete", "twofold", "-y")


def test_deletion_needs_permission_and_has_a_limit(shell: Shell) -> None:
    shell.ok("topics", "create", "surplus-1", "surplus-2", "_kept")
    text = "version: 1\nkeep: {topics: ['(?!surplus-).*']}\ntopics: {}\n"
    _, said = run(shell, text, "diff", code=0)
    assert "not declared and left, topics: surplus-1, surplus-2" in said
    run(shell, text, "diff", "--prune", code=5)
    _, said = run(shell, text, "apply", "--prune", "-y", code=2)
    assert "--allow-delete" in said
    delete = ("apply", "--prune", "--allow-delete", "-y")
    _, said = run(shell, text, *delete, "--max-deletions", "1", code=2)
    assert "more than 1" in said
    rows, _ = run(shell, text, *delete)
    assert ["topics surplus-1 deleted", "topics surplus-2 deleted"] == [
        line for line in results(rows) if "deleted" in line
    ]
    assert "_kept" in shell.ok("topics", "list", "-o", "name").split()
    run(shell, text, "diff", "--prune")


def test_other_replicas_are_moved_by_a_journal(shell: Shell) -> None:
    shell.ok("topics", "create", "moving", "--replica-assignment", "1,2")
    shell.ok("topics", "create", "placed", "--replica-assignment", "1:2,2:3")
    text = """version: 1
topics:
  moving: {partitions: 3, replication_factor: 3, settings: {min.insync.replicas: 2}}
  placed: {placement: [[3, 2], [2, 3], [1, 3]]}
"""
    _, said = run(shell, text, "apply", "--dry-run", code=5)
    assert "moves: 3 partitions" in said
    rows, _ = run(shell, text, "apply", "-y", "--throttle", "50MB")
    assert [
        "change moving",
        "change placed",
        "move moving",
        "move placed",
        "change moving",
    ] == [f"{row['action']} {row['name']}" for row in rows]
    assert {"changed", "moved"} == {row["result"] for row in rows}
    run(shell, text, "diff")
    topics = json.loads(shell.ok("topics", "describe", "placed", "-o", "json"))
    assert [[3, 2], [2, 3], [1, 3]] == [p["replicas"] for p in topics[0]["partitions"]]
    assert list((shell.home / "state" / "kctl" / "reassign").glob("*-apply.journal"))


def test_interrupted_moves_go_on_by_the_same_command(shell: Shell) -> None:
    shell.ok("topics", "create", "long", "--replica-assignment", "1")
    shell.ok("produce", "long", stdin="".join(f"{number:0999}\n" for number in range(3000)))
    text = "version: 1\ntopics: {long: {replication_factor: 2}}\n"
    (shell.home / "long.yaml").write_text(text)
    command = ("apply", "-f", str(shell.home / "long.yaml"), "-y", "-o", "json")
    with shell.popen(*command, "--throttle", "2") as process:
        until_moving(shell)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate()
    assert 130 == process.returncode, stderr
    assert ["interrupted"] == [row["result"] for row in check("apply", stdout)]
    # It is where it moves to, and the journal is open.
    rows, said = run(shell, text, "diff", code=5)
    assert [] == rows
    assert "moves of an earlier apply are not over" in said
    run(shell, text, "apply", "--dry-run", code=5)
    run(shell, text, "apply", code=2)
    run(shell, text, "apply", "-y", "--throttle", "none")
    run(shell, text, "diff")
    assert [] == json.loads(shell.ok("reassign", "throttles", "-o", "json"))


def test_a_document_for_another_context_is_passed_over(shell: Shell) -> None:
    address = shell.status()["bootstrap_servers"]
    shell.ok("context", "set", "here", "-b", address)
    text = (
        "version: 1\ncontexts: [here]\ntopics: {}\n---\n"
        "version: 1\ncontexts: [there]\ntopics: {never: {}}\n"
    )
    _, said = run(shell, text, "diff", "--context", "here")
    assert "passed over" in said
    _, said = run(shell, text, "diff", "-b", address, code=2)
    assert "--context here" in said
    shell.ok("context", "delete", "here")
