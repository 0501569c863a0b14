"""`kctl copy` from one embedded cluster to another."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from jsonschema import Draft202012Validator

from kctl.schemas import schema_of
from tests.cli.shell import Shell
from tests.cli.test_dry_runs import written
from tests.cluster.recording_proxy import RecordingProxy

COUNT = 3000


class Two(NamedTuple):
    """Two clusters, the first with a topic that a group has read half of."""

    shell: Shell
    source: str
    destination: str

    def copy(self, *words: str) -> list[dict[str, Any]]:
        text = self.shell.ok("copy", self.source, self.destination, *words, "-o", "json")
        rows: list[dict[str, Any]] = json.loads(text)
        Draft202012Validator(schema_of("copy")).validate(rows)
        return rows

    def records(self, topic: str, servers: str) -> list[str]:
        template = "%p %k %s %T %h\\n"
        words = ("consume", topic, "-e", "--read-committed", "-f", template, "-b", servers)
        return sorted(self.shell.ok(*words).splitlines())


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    shell = Shell(tmp_path_factory.mktemp("copy"))
    shell.environment["XDG_STATE_HOME"] = str(shell.home / "state")
    settings = ("--port", "0", "--set", "offsets.topic.num.partitions=1")
    settings += ("--set", "transaction.state.log.num.partitions=1")
    other = str(shell.home / "other")
    shell.ok("cluster", "start", *settings)
    shell.ok("cluster", "start", *settings, "--data", other)
    source = shell.status()["bootstrap_servers"]
    shell.ok("topics", "create", "t", "-p", "3", "-c", "retention.ms=987654321", "-b", source)
    lines = "".join(f"k{number}\tvalue {number}\n" for number in range(COUNT))
    shell.ok("produce", "t", "-k", "\\t", "-H", "a=b", "-b", source, stdin=lines)
    reset = ("groups", "reset-offsets", "half", "--topic", "t", "--to-offset", "500")
    shell.ok(*reset, "--execute", "-b", source)
    destination = shell.status("--data", other)["bootstrap_servers"]
    for servers in (source, destination):
        shell.ok("topics", "create", "full", "-b", servers)
        shell.ok("produce", "full", "-b", servers, stdin="there\n")
    yield Two(shell, source, destination)
    shell.run("cluster", "destroy", "-y")
    shell.run("cluster", "destroy", "-y", "--data", other)


def test_a_topic_is_made_as_it_is_and_all_records_come(two: Two) -> None:
    (row,) = two.copy("t")
    assert (COUNT, 0, "made", "copied") == (
        row["copied_records"],
        row["offsets_left"],
        row["destination_state"],
        row["result"],
    )
    assert two.records("t", two.source) == two.records("t", two.destination)
    described = two.shell.ok("topics", "describe", "t", "-b", two.destination)
    assert "partitions 3" in described
    assert "retention.ms=987654321" in described
    groups = two.shell.ok("groups", "list", "-o", "name", "-b", two.destination)
    assert "kctl-copy-" not in groups


def test_a_copy_that_is_killed_goes_on_by_the_same_command(two: Two) -> None:
    words = ("t", "--prefix", "killed-", "--groups", "half", "--throttle", "4kB")
    copying = two.shell.popen("copy", two.source, two.destination, *words)
    while "kctl-copy-" not in two.shell.ok("groups", "list", "-o", "name", "-b", two.destination):
        assert copying.poll() is None, copying.communicate()
    os.kill(copying.pid, signal.SIGKILL)
    copying.communicate()
    (tried,) = two.copy(*words, "--dry-run")
    assert 0 < tried["offsets_left"] < COUNT
    (row,) = two.copy(*words[:-2])
    assert (tried["offsets_left"], "there") == (row["copied_records"], row["destination_state"])
    assert two.records("t", two.source) == two.records("killed-t", two.destination)
    assert next_of(two, "t", two.source) == next_of(two, "killed-t", two.destination)


def next_of(two: Two, topic: str, servers: str) -> list[str]:
    """Return the record of each partition that the group reads next."""
    words = ("groups", "offsets", "half", "-b", servers, "-o", "json")
    return [
        two.shell.ok(
            *("consume", f"{topic}:{row['partition']}", "-n", "1", "--read-committed"),
            *("--from", str(row["committed_offset"]), "-b", servers),
        )
        for row in json.loads(two.shell.ok(*words))
        if row["topic"] == topic
    ]


def test_a_context_names_a_cluster_and_one_that_is_read_only_is_no_destination(two: Two) -> None:
    shell = two.shell
    shell.ok("context", "set", "there", "-b", two.destination, "--read-only")
    try:
        refused = shell.run("copy", two.source, "there", "t", "--prefix", "x-")
        assert (2, True) == (refused.returncode, "context there is read-only" in refused.stderr)
        # To read from it is what it is there for.
        tried = shell.ok("copy", "there", two.source, "full", "--prefix", "x-", "-o", "name")
        assert ["full"] == tried.splitlines()
    finally:
        shell.ok("context", "delete", "there")


def test_a_sample_is_anonymised_on_its_way(two: Two) -> None:
    rules = ("--sample", "20%", "--anonymise", "key=hash", "--anonymise", "headers=drop")
    (row,) = two.copy("t", "--prefix", "some-", *rules, "--anonymise", "value=mask")
    assert COUNT == row["copied_records"] + row["left_out_records"]
    records = two.records("some-t", two.destination)
    assert row["copied_records"] == len(records)
    _, key, value, *_ = records[0].split()
    assert (64, "***") == (len(key), value)


def test_a_dry_run_writes_nothing_to_either_side(two: Two) -> None:
    with RecordingProxy([two.source]) as source, RecordingProxy([two.destination]) as destination:
        words = ("t", "--prefix", "tried-", "--groups", "half", "--dry-run")
        done = two.shell.run("copy", source.bootstrap, destination.bootstrap, *words)
        assert (0, True) == (done.returncode, "would be copied" in done.stdout), done.stderr
        for proxy in (source, destination):
            assert proxy.recorded
            assert [] == written(proxy)


def test_client_settings_are_for_both_clusters_or_for_one_of_them(two: Two) -> None:
    with RecordingProxy([two.source]) as source, RecordingProxy([two.destination]) as destination:
        words = ("-X", "client.id=both", "--source-X", "client.id=reader", "--dry-run")
        two.shell.ok("copy", source.bootstrap, destination.bootstrap, "t", "--prefix", "x-", *words)
        assert [{"reader"}, {"both"}] == [
            {request.client_id for request in proxy.recorded} for proxy in (source, destination)
        ]


def test_the_cluster_is_named_that_does_not_understand_its_client(two: Two) -> None:
    words = ("t", "--prefix", "x-", "--timeout", "5")
    for side, servers in (("source", two.source), ("destination", two.destination)):
        setting = (f"--{side}-X", "security.protocol=SASL_PLAINTEXT", f"--{side}-X")
        login = (*setting, "sasl.mechanism=PLAIN", f"--{side}-X", "sasl.username=u")
        done = two.shell.run(
            "copy", two.source, two.destination, *words, *login, f"--{side}-X", "sasl.password=p"
        )
        assert 1 == done.returncode
        assert f"error: the {side}, {servers}: authentication by PLAIN failed" in done.stderr
        assert "hint: set security.protocol to PLAINTEXT" in done.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ("t -X linger.ms=5", 2, "no client setting of this command: linger.ms"),
        ("t --source-X client.id", 2, "a client setting: 'client.id'"),
        ("t --destination-X acks=1", 2, "no client setting of this command: acks"),
        ("full", 1, "there are records already at the destination: full"),
        ("nosuch", 1, "nosuch"),
        ("t --sample 200%", 2, "a share"),
        ("t --anonymise topic=hash", 2, "--anonymise topic=hash"),
        ("t --groups half --at-least-once", 2, "--groups --at-least-once"),
        ("t --throttle fast", 2, "a number of bytes"),
        ("", 2, "which topics?"),
    ],
)
def test_what_cannot_be_copied_is_refused(two: Two, words: str, code: int, message: str) -> None:
    done = two.shell.run("copy", two.source, two.destination, *words.split())
    assert code == done.returncode, done.stderr
    assert message in done.stderr


def test_a_cluster_that_is_no_context_and_no_address_is_refused(two: Two) -> None:
    done = two.shell.run("copy", "nosuch", two.destination, "t")
    assert (2, True) == (done.returncode, "no context 'nosuch'" in done.stderr)
    itself = two.shell.run("copy", two.source, two.source, "t")
    assert (2, True) == (itself.returncode, "--prefix TEXT" in itself.stderr)


def test_a_whole_copy_is_continued_with_what_came_since(two: Two) -> None:
    two.shell.ok("topics", "create", "more", "-p", "2", "-b", two.source)
    two.shell.ok("produce", "more", "-b", two.source, stdin="1\n2\n3\n")
    (first,) = two.copy("more")
    refused = two.shell.run("copy", two.source, two.destination, "more")
    assert (1, True) == (refused.returncode, "--append copies what has come" in refused.stderr)
    two.shell.ok("produce", "more", "-b", two.source, stdin="4\n5\n")
    (second,) = two.copy("more", "--append")
    (third,) = two.copy("more", "--append")
    assert [3, 2, 0] == [row["copied_records"] for row in (first, second, third)]
    assert two.records("more", two.source) == two.records("more", two.destination)


def test_a_topic_that_the_destination_does_not_create_is_reported_once(two: Two) -> None:
    done = two.shell.run("copy", two.source, two.destination, "t", "--prefix", "f-", "-r", "5")
    assert (1, 1) == (done.returncode, done.stderr.count("error: creating f-t at the destination"))
    assert 1 == done.stderr.count("error:")


def test_a_source_that_is_made_again_is_not_continued(two: Two) -> None:
    two.shell.ok("topics", "create", "again", "-b", two.source)
    two.shell.ok("produce", "again", "-b", two.source, stdin="1\n")
    two.copy("again")
    two.shell.ok("topics", "delete", "again", "-y", "-b", two.source)
    two.shell.ok("topics", "create", "again", "-b", two.source)
    two.shell.ok("produce", "again", "-b", two.source, stdin="2\n3\n")
    refused = two.shell.run("copy", two.source, two.destination, "again", "--append")
    assert (1, True) == (refused.returncode, "again was deleted and made again" in refused.stderr)
