"""Contexts guard their clusters: protected, read-only, kept for one cluster id."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.host.held_file import RealHeldFiles
from engine.host.process_identity import identify_process
from engine.reassign.journal import MoveJournal
from engine.reassign.journal_state import Begun, ExecutionSettings
from kctl.command_effects import CHANGES, EFFECTS
from tests.cli.commands import all_leaves, option_names
from tests.cli.shell import KCTL, Shell
from tests.cli.test_dry_runs import ACLS, COMMANDS, READING, STATE
from tests.cluster.recording_proxy import RecordingProxy

#: Words for each command that changes something and is not in COMMANDS.
OTHERS = {
    "produce": ("t",),
    "consume": ("t", "-g", "g", "-n", "1"),
    "groups reset-offsets": ("g", "--topic", "t", "--to-latest", "--execute"),
    "replay": ("{data}/broker-1/t-0", "--to", "t", "--speed", "max"),
    "copy": ("{cluster}", "{cluster}", "t", "--prefix", "copied-"),
    "perf produce": ("-n", "1", "-t", "t"),
    "perf consume": ("-n", "1"),
    "perf latency": ("-n", "1", "-t", "t"),
    "demo produce-consume": ("--records", "1", "-b", "{cluster}"),
    "retention run": (),
    "compact run": (),
    "reassign resume": ("{journal}",),
    "reassign throttle": ("{journal}", "5MB"),
    "reassign pause": ("{journal}",),
    "znode create": ("/made", "x"),
    "znode set": ("/controller", "x"),
    "znode delete": ("/controller",),
    "compat kafka-reassign-partitions": (
        "--execute",
        "--reassignment-json-file",
        "{plan}",
        "--bootstrap-server",
        "{cluster}",
    ),
    "compat kafka-delete-records": (
        "--offset-json-file",
        "{plan}",
        "--bootstrap-server",
        "{cluster}",
    ),
    "compat kafka-client-metrics": ("--delete", "--name", "x", "--bootstrap-server", "{cluster}"),
    "compat kafka-configs": (
        "--alter",
        "--topic",
        "t",
        "--add-config",
        "retention.ms=1",
        "--bootstrap-server",
        "{cluster}",
    ),
    "compat kafka-topics": ("--delete", "--topic", "t", "--bootstrap-server", "{cluster}"),
    "compat kafka-consumer-groups": (
        "--delete",
        "--group",
        "nobody",
        "--bootstrap-server",
        "{cluster}",
    ),
    "compat kafka-share-groups": (
        "--delete",
        "--group",
        "nobody",
        "--bootstrap-server",
        "{cluster}",
    ),
    "compat kafka-streams-groups": (
        "--delete",
        "--group",
        "nobody",
        "--bootstrap-server",
        "{cluster}",
    ),
    "compat kafka-leader-election": (
        "--election-type",
        "preferred",
        "--all-topic-partitions",
        "--bootstrap-server",
        "{cluster}",
    ),
}
_SERVERS = ("--bootstrap-server", "{cluster}")
#: The same for the drop-in tools that follow several releases of Kafka.
TOOLS = {
    "kafka-console-producer": ("--topic", "t", *_SERVERS),
    "kafka-console-consumer": ("--topic", "t", "--max-messages", "1", *_SERVERS),
    "kafka-acls": ("--add", "--allow-principal", "User:a", "--topic", "t", *_SERVERS),
    "kafka-transactions": (
        *_SERVERS,
        *("abort", "--topic", "t", "--partition", "0", "--start-offset", "5"),
    ),
    "kafka-cluster": ("unregister", "--id", "1", *_SERVERS),
    "kafka-features": (*_SERVERS, "disable", "--feature", "x"),
    "kafka-metadata-quorum": (
        *_SERVERS,
        *("remove-controller", "-i", "1", "-d", "AAAAAAAAAAAAAAAAAAAAAQ"),
    ),
    "kafka-delegation-tokens": (
        *("--create", "--max-life-time-period", "-1", "--command-config", "{plan}"),
        *_SERVERS,
    ),
    "kafka-producer-perf-test": (
        *("--topic", "t", "--num-records", "1", "--record-size", "1", "--throughput", "-1"),
        *("--producer-props", "bootstrap.servers={cluster}"),
    ),
    "kafka-consumer-perf-test": ("--topic", "t", "--messages", "1", *_SERVERS),
    "kafka-verifiable-producer": ("--topic", "t", "--max-messages", "1", *_SERVERS),
    "kafka-verifiable-consumer": (
        *("--topic", "t", "--group-id", "g", "--max-messages", "1"),
        *_SERVERS,
    ),
    "kafka-e2e-latency": ("{cluster}", "t", "1", "1", "1"),
    "zookeeper-shell": ("{znodes}", "create", "/made", "x"),
}
WORDS = {**COMMANDS, **OTHERS, **{f"compat {tool}": words for tool, words in TOOLS.items()}}


class Place:
    """An embedded broker behind a proxy, a shell with a context for it, files to name."""

    def __init__(self, shell: Shell, proxy: RecordingProxy) -> None:
        self.shell = shell
        self.proxy = proxy
        self.cluster_id = json.loads(shell.ok("znode", "get", "/cluster/id"))["id"]
        plan = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]}
        self.files = {
            "plan": str(shell.home / "plan.json"),
            "journal": str(shell.home / "plan.json.journal"),
            "acls": str(shell.home / "acls.yaml"),
            "state": str(shell.home / "state.yaml"),
            "data": str(shell.home / "data" / "kctl" / "cluster"),
            "cluster": proxy.bootstrap,
            "znodes": self._znodes(),
        }
        Path(self.files["plan"]).write_text(json.dumps(plan))
        Path(self.files["acls"]).write_text(ACLS)
        Path(self.files["state"]).write_text(STATE)
        begun = Begun(self.cluster_id, (), ExecutionSettings())
        MoveJournal.create(
            RealHeldFiles(), self.files["journal"], begun, identify_process()
        ).close()

    def _znodes(self) -> str:
        data = self.shell.home / "data" / "kctl" / "cluster"
        return str(json.loads((data / "running.json").read_text())["znode_address"])

    def context(self, *options: str) -> None:
        """Make the context again, as the only one."""
        Path(self.shell.environment["XDG_CONFIG_HOME"], "kctl", "config.yaml").unlink(
            missing_ok=True
        )
        self.shell.ok("context", "set", "prod", "-b", self.proxy.bootstrap, *options)
        self.proxy.recorded.clear()

    def command(self, words: str) -> list[str]:
        given = [word.format(**self.files) for word in WORDS[words]]
        yes = ["-y"] if "--yes" in option_names(all_leaves()[words]) else []
        return [*words.split(), *given, *yes]

    def changed(self) -> list[str]:
        """Return the APIs that were asked to change something."""
        return [
            name
            for name, message, _ in self.proxy.recorded
            if name not in READING and not getattr(message, "validate_only", False)
        ]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    shell = Shell(tmp_path_factory.mktemp("home"))
    shell.environment["XDG_STATE_HOME"] = str(shell.home / "state")
    shell.ok("cluster", "start", "--port", "0")
    shell.ok("topics", "create", "t")
    shell.ok("produce", "t", stdin="one\n")
    with RecordingProxy(shell.status()["bootstrap_servers"].split(",")) as proxy:
        yield Place(shell, proxy)
    shell.run("cluster", "destroy", "-y")


def test_every_command_that_changes_something_is_tried_here() -> None:
    assert set(WORDS) == {words for words, effect in EFFECTS.items() if effect.kind == CHANGES}


@pytest.mark.parametrize("words", sorted(WORDS))
def test_a_read_only_context_refuses_each_before_any_request(place: Place, words: str) -> None:
    place.context("--read-only")
    done = place.shell.run(*place.command(words), stdin="two\n")
    assert 2 == done.returncode, done.stderr
    assert "context prod is read-only" in done.stderr
    assert [] == place.proxy.recorded


@pytest.mark.parametrize("words", sorted(WORDS))
def test_a_protected_context_needs_its_name_for_each_even_with_y(place: Place, words: str) -> None:
    place.context("--protected")
    done = place.shell.run(*place.command(words), stdin="prod\n")
    assert 2 == done.returncode, done.stderr
    assert "context prod is protected" in done.stderr
    assert f"KCTL_CONFIRM=prod kctl {words}" in done.stderr
    assert [] == place.proxy.recorded


@pytest.mark.parametrize(
    "words",
    [
        "topics list",
        "configs describe --topic t",
        "check",
        "consume t -e",
        "reassign throttles",
        "topics create new --dry-run",
        "records delete t --before end --dry-run",
        "compat kafka-reassign-partitions --list --bootstrap-server {cluster}",
    ],
)
def test_reading_and_trying_go_on_in_a_guarded_context(place: Place, words: str) -> None:
    place.context("--protected", "--read-only")
    done = place.shell.run(*words.format(**place.files).split())
    assert 0 == done.returncode, done.stderr
    assert [] == place.changed()


def test_the_name_in_the_environment_confirms(place: Place) -> None:
    place.context("--protected")
    place.shell.environment["KCTL_CONFIRM"] = "prod"
    try:
        place.shell.ok("topics", "create", "meant")
    finally:
        del place.shell.environment["KCTL_CONFIRM"]
    assert "CreateTopics" in place.changed()


def typed(shell: Shell, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run kctl at a terminal where a text is typed."""
    ours, its = pty.openpty()
    os.write(ours, text.encode())
    try:
        return subprocess.run(
            [*KCTL, *words],
            stdin=its,
            capture_output=True,
            text=True,
            env=shell.environment,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(its)


def test_the_typed_name_confirms_and_another_word_does_not(place: Place) -> None:
    place.context("--protected")
    done = typed(place.shell, "y\n", "topics", "create", "typed")
    assert 1 == done.returncode
    assert "type the name of the context" in done.stderr
    assert place.cluster_id in done.stderr
    assert "not confirmed, nothing was changed" in done.stderr
    assert [] == place.proxy.recorded
    done = typed(place.shell, "prod\n", "topics", "create", "typed")
    assert 0 == done.returncode, done.stderr
    assert "CreateTopics" in place.changed()


@pytest.mark.parametrize("guard", ["--read-only", "--protected"])
def test_a_guard_holds_by_addresses_and_by_the_cluster_id(place: Place, guard: str) -> None:
    place.context(guard)
    by_address = place.shell.run("topics", "delete", "t", "-y", "-b", place.proxy.bootstrap)
    assert 2 == by_address.returncode
    assert [] == place.proxy.recorded
    # Brokers that the context does not name are those of its cluster all the same.
    servers = place.shell.status()["bootstrap_servers"]
    by_id = place.shell.run("topics", "delete", "t", "-y", "-b", servers)
    assert 2 == by_id.returncode
    assert "prod" in by_id.stderr
    assert "t\n" in place.shell.ok("topics", "list", "-o", "name")


def test_a_name_in_the_environment_opens_no_read_only_context_by_other_addresses(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.context("--read-only")
    monkeypatch.setitem(place.shell.environment, "KCTL_CONFIRM", "prod")
    servers = place.shell.status()["bootstrap_servers"]
    done = place.shell.run("topics", "create", "sneaked", "-b", servers)
    assert 2 == done.returncode, done.stderr
    assert "context prod is read-only" in done.stderr
    assert "sneaked" not in place.shell.ok("topics", "list", "-o", "name")


def test_one_name_is_enough_for_two_protected_contexts_of_one_cluster(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.context("--protected")
    servers = place.shell.status()["bootstrap_servers"]
    place.shell.ok("context", "set", "admin", "-b", servers, "--protected")
    done = typed(place.shell, "admin\n", "topics", "create", "by-typing", "--context", "admin")
    assert 0 == done.returncode, done.stderr
    for name in ("prod", "admin"):
        monkeypatch.setitem(place.shell.environment, "KCTL_CONFIRM", name)
        place.shell.ok("topics", "create", f"by-{name}", "--context", name)
    place.shell.ok("context", "set", "admin", "-b", place.proxy.bootstrap)
    for name in ("prod", "admin"):
        monkeypatch.setitem(place.shell.environment, "KCTL_CONFIRM", name)
        place.shell.ok("topics", "create", f"again-by-{name}")
    place.shell.ok("context", "set", "admin", "--read-only")
    refused = place.shell.run("topics", "create", "refused", "--context", "prod")
    assert 2 == refused.returncode, refused.stderr


def test_a_metadata_store_is_guarded_as_the_cluster_that_it_is_of(place: Place) -> None:
    place.context("--read-only")
    place.shell.ok("context", "set", "another", "-b", "127.0.0.1:1", "--use")
    done = place.shell.run("znode", "create", "/made", "x")
    assert (2, "") == (done.returncode, done.stdout)
    assert "context prod is read-only" in done.stderr
    place.context()
    place.shell.ok("znode", "create", "/made", "x")


@pytest.mark.parametrize(
    ("chroot", "words"),
    [
        ("", "set /clusters/one/config x"),
        ("/clusters", "set /one/config x"),
        ("/clusters/one/config", "create /topics x"),
        ("", "delete /clusters/one -r -y"),
        ("", "delete /clusters -r -y"),
    ],
)
def test_a_cluster_below_a_chroot_is_guarded_by_whichever_path_leads_into_it(
    place: Place, chroot: str, words: str
) -> None:
    place.context()
    if place.shell.run("znode", "stat", "/clusters/one/config").returncode:
        place.shell.ok(
            *("znode", "create", "/clusters/one/cluster/id", '{"version":"1","id":"one"}', "-p")
        )
        place.shell.ok("znode", "create", "/clusters/one/config")
        place.shell.ok("znode", "create", "/clusters/free")
    place.shell.ok("context", "set", "guarded", "-b", "127.0.0.1:1", "--read-only")
    place.shell.ok("context", "set", "guarded", "--cluster-id", "one")
    store = f"{place.shell.status()['zookeeper']}{chroot}"
    done = place.shell.run("znode", *words.split(), "-z", store)
    assert 2 == done.returncode, done.stderr
    assert "context guarded is read-only" in done.stderr
    place.shell.ok("znode", "stat", "/clusters/one/config")
    place.shell.ok("znode", "set", "/clusters/free", "x")


def test_the_cluster_id_is_learnt_when_a_context_is_set_or_first_used(place: Place) -> None:
    place.context()
    assert place.cluster_id == shown(place.shell)["cluster_id"]
    place.shell.ok("context", "set", "prod", "--cluster-id", "")
    assert shown(place.shell)["cluster_id"] is None
    place.shell.ok("topics", "list")
    assert place.cluster_id == shown(place.shell)["cluster_id"]


def shown(shell: Shell) -> dict[str, object]:
    found: dict[str, object] = json.loads(shell.ok("context", "show", "prod", "-o", "json"))
    return found


def test_a_context_of_a_cluster_that_does_not_answer_is_kept_with_a_note(place: Place) -> None:
    place.context()
    done = place.shell.run("context", "set", "later", "-b", "127.0.0.1:1")
    assert 0 == done.returncode
    assert "note: the cluster's id is learnt at the first use" in done.stderr


@pytest.mark.parametrize(
    "words", ["topics list", "check", "brokers api-versions", "topics create new", "produce t"]
)
def test_another_cluster_is_refused_with_how_to_accept_it(place: Place, words: str) -> None:
    place.context("--cluster-id", "another")
    done = place.shell.run(*words.split(), stdin="two\n")
    assert (1, "") == (done.returncode, done.stdout)
    assert f"kept for cluster another, but {place.proxy.bootstrap} answers" in done.stderr
    assert f"kctl context set prod --cluster-id {place.cluster_id}" in done.stderr
    assert {"ApiVersions", "Metadata"} == {request.api_name for request in place.proxy.recorded}
    place.shell.ok("context", "set", "prod", "--cluster-id", place.cluster_id)
    place.shell.ok("topics", "list")


def test_lists_and_the_choice_show_the_guards(place: Place) -> None:
    place.context("--protected", "--read-only")
    wanted = {"is_protected": True, "is_read_only": True, "cluster_id": place.cluster_id}
    rows = json.loads(place.shell.ok("context", "list", "-o", "json"))
    assert [wanted] == [{key: row[key] for key in wanted} for row in rows]
    choice = json.loads(place.shell.ok("context", "show", "-o", "json"))
    assert wanted == {key: choice[key] for key in wanted}
    place.shell.ok("context", "set", "prod", "--no-protected", "--no-read-only")
    assert not shown(place.shell)["is_protected"]
    assert not shown(place.shell)["is_read_only"]


def test_a_guard_that_is_no_boolean_in_the_file_is_refused(place: Place) -> None:
    place.context("--protected")
    path = Path(place.shell.environment["XDG_CONFIG_HOME"], "kctl", "config.yaml")
    path.write_text(path.read_text().replace("protected: true", "protected: sometimes"))
    done = place.shell.run("topics", "create", "new", "-b", place.proxy.bootstrap)
    assert 1 == done.returncode
    assert "context prod: protected and read_only are true or false" in done.stderr
