"""No command sends a request that writes by `--dry-run`, or before it is agreed to."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from engine.model import TopicPartition
from tests.cli.commands import all_leaves, option_names
from tests.cli.hanging import hang
from tests.cli.shell import Shell
from tests.cluster.recording_proxy import RecordingProxy

#: APIs by which nothing is changed.
READING = frozenset(
    (
        "ApiVersions",
        "DescribeAcls",
        "DescribeClientQuotas",
        "DescribeCluster",
        "DescribeConfigs",
        "DescribeDelegationToken",
        "DescribeGroups",
        "DescribeLogDirs",
        "DescribeProducers",
        "DescribeTopicPartitions",
        "DescribeTransactions",
        "DescribeUserScramCredentials",
        "Fetch",
        "FindCoordinator",
        "ListGroups",
        "ListOffsets",
        "ListPartitionReassignments",
        "ListTransactions",
        "Metadata",
        "OffsetFetch",
        "OffsetForLeaderEpoch",
    )
)
#: Words for each command that changes a cluster and can be tried, or asks first.
COMMANDS = {
    "topics create": ("new", "-p", "2", "-r", "2"),
    "topics alter": ("t", "-p", "8"),
    "topics delete": ("t",),
    "topics set-rf": ("1", "t"),
    "configs set": ("retention.ms=5", "--topic", "t"),
    "configs unset": ("retention.ms", "--topic", "t"),
    "records delete": ("t", "--before", "end"),
    "users create": ("new", "--generate"),
    "users rotate": ("known", "--generate"),
    "users delete": ("known",),
    # Refused before anything is asked for: the connection is in plain text.
    "tokens create": ("--owner", "a"),
    "tokens renew": ("id",),
    "tokens expire": ("id",),
    "quotas set": ("produce=1MB", "--user", "a"),
    "quotas unset": ("consume", "--user", "b"),
    "acls create": ("--allow", "a", "--operation", "read", "--topic", "t"),
    "acls delete": ("--topic", "t"),
    "acls apply": ("{acls}", "--prune"),
    "apply": ("-f", "{state}", "--prune", "--allow-delete"),
    "groups delete": ("g",),
    "groups delete-offsets": ("g", "--topic", "t"),
    "groups remove-members": ("g", "--all"),
    "transactions abort": ("h:0", "--start-offset", "0"),
    "brokers drain": ("3",),
    "brokers replace": ("1", "3"),
    "features upgrade": ("metadata.version=4.0",),
    "features downgrade": ("metadata.version=3.9", "--unsafe"),
    "leaders elect": ("preferred", "t"),
    "leaders balance": ("--reorder",),
    "leaders demote": ("3",),
    # Without an option that names a cluster it starts one.
    "demo exactly-once": ("1", "1", "5", "--command-config", "{plan}"),
    "reassign execute": ("{plan}", "--journal", "{plan}.new"),
    "reassign rollback": ("{plan}.journal",),
    "reassign cancel": ("{plan}.journal",),
    "reassign throttles": ("--clear",),
}
#: A file of access rules that the cluster does not have.
ACLS = "acls: [{allow: a, for: producer, topic: t}]\n"
#: Declared state with steps of all kinds.
STATE = """version: 1
topics:
  t: {partitions: 5, settings: {retention.ms: 1000000}}
  new: {partitions: 2, replication_factor: 2}
users: {}
quotas: [{user: a, limits: {produce: 1MB}}]
acls: [{allow: a, for: producer, topic: t}]
brokers: {default: {settings: {log.cleaner.threads: 2}}}
"""
#: Of the embedded cluster alone, which they ask by a file and not by the protocol.
OF_EMBEDDED = {"compact run", "retention run"}
JOBS = (
    "drain-3",
    "replace-1-3",
    f"set-rf-1-{sha256(b't').hexdigest()[:12]}",
    "leaders",
    "demote-3",
)


def changing() -> dict[str, Any]:
    """Return the commands of a cluster that have --dry-run, or ask first."""
    return {
        words: command
        for words, command in all_leaves().items()
        if "--bootstrap-server" in option_names(command)
        and option_names(command) & {"--dry-run", "--yes"}
    }


def test_every_command_that_changes_a_cluster_is_tried_here() -> None:
    assert set(COMMANDS) == set(changing()) - OF_EMBEDDED


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Shell, RecordingProxy]]:
    """Return three brokers with a plan, and journals of executions that were killed."""
    shell = Shell(tmp_path_factory.mktemp("home"))
    shell.environment["XDG_STATE_HOME"] = str(shell.home / "state")
    words = ["--brokers", "3", "--port", "0"]
    # No throttled move ends by itself: one fetch passes the throttle for hours.
    for setting in (
        "auto.leader.rebalance.enable=false",
        "replication.quota.window.size.seconds=3600",
        "replica.fetch.max.bytes=1000",
        "offsets.topic.num.partitions=1",
        "offsets.topic.replication.factor=1",
        "transaction.partition.verification.enable=false",
        "authorizer.class.name=kafka.security.authorizer.AclAuthorizer",
        "super.users=User:ANONYMOUS",
    ):
        words += ["--set", setting]
    shell.ok("cluster", "start", *words)
    shell.ok("topics", "create", "t", "--replica-assignment", "1:3,3:2,3:1,3:2")
    shell.ok("acls", "create", "--allow", "b", "--operation", "read", "--topic", "t")
    shell.ok("users", "create", "known", "--generate")
    shell.ok("quotas", "set", "consume=1MB", "--user", "b")
    (shell.home / "acls.yaml").write_text(ACLS)
    (shell.home / "state.yaml").write_text(STATE)
    shell.ok("produce", "t", stdin="".join(f"{number:0999}\n" for number in range(2000)))
    # A reset makes a group that nobody knows.
    shell.ok("groups", "reset-offsets", "g", "--topic", "t", "--to-latest", "--execute")
    shell.ok("topics", "create", "h", "--replica-assignment", "2")
    assert 0 == hang(shell, TopicPartition("h", 0))
    plan = shell.home / "plan.json"
    # The offsets topic is so small that its move may end before it is taken back.
    shell.ok("reassign", "plan", "t", "--drain", "3", "--out", str(plan))
    killed(shell, "reassign", "execute", str(plan))
    shell.ok("reassign", "cancel", "--all", "-y")
    addresses = shell.status()["bootstrap_servers"].split(",")
    with RecordingProxy(addresses) as proxy:
        yield shell, proxy
    shell.run("cluster", "destroy", "-y")


def killed(shell: Shell, *words: str) -> None:
    """Run a command that moves replicas, and kill it when it has begun to."""
    with shell.popen(*words, "-y", "--throttle", "2") as process:
        while not shell.ok("reassign", "status", "-o", "csv").splitlines()[1:]:
            pass
        process.kill()


@pytest.mark.parametrize("is_job_open", [False, True], ids=["fresh", "open"])
@pytest.mark.parametrize("words", sorted(COMMANDS))
def test_nothing_that_writes_is_sent(
    cluster: tuple[Shell, RecordingProxy], words: str, *, is_job_open: bool
) -> None:
    shell, proxy = cluster
    plan = str(shell.home / "plan.json")
    leave_behind(shell, plan, is_job_open=is_job_open)
    acls, state = (str(shell.home / f"{name}.yaml") for name in ("acls", "state"))
    told = [word.format(plan=plan, acls=acls, state=state) for word in COMMANDS[words]]
    options = option_names(changing()[words])
    tries = [("--dry-run",)] if "--dry-run" in options else []
    if tries and "--yes" in options:
        tries.append(("--dry-run", "-y"))
    if "--yes" in options:
        tries.append(())
    for added in tries:
        proxy.recorded.clear()
        done = shell.run(*words.split(), *told, *added, "-b", proxy.bootstrap)
        assert proxy.recorded, done.stderr
        assert "internal error" not in done.stderr
        assert [] == written(proxy), (added, done.stderr)


def leave_behind(shell: Shell, plan: str, *, is_job_open: bool) -> None:
    """Leave the journals of jobs that were killed, or none; the plan's own is always there."""
    folder = Path(shell.environment["XDG_STATE_HOME"], "kctl", "reassign")
    shutil.rmtree(folder, ignore_errors=True)
    if is_job_open:
        folder.mkdir(parents=True)
        journal = Path(f"{plan}.journal")
        cluster_id = json.loads(journal.read_bytes().splitlines()[0])["cluster_id"]
        for job in JOBS:
            shutil.copy(journal, folder / f"{cluster_id}-{job}.json.journal")


def written(proxy: RecordingProxy) -> list[str]:
    """Return the APIs that were asked to change something, and not only to check it."""
    return [
        name
        for name, message, _ in proxy.recorded
        if name not in READING and not getattr(message, "validate_only", False)
    ]
