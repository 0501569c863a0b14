"""`kctl compat kafka-verifiable-consumer`: its events, as the tool of Kafka 3.9.1 printed them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.shell import Shell

_LIMIT_S = 60.0


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell(tmp_path_factory.mktemp("shell"))
    shell.ok("cluster", "start", "--port", "0")
    yield shell
    shell.run("cluster", "stop")


def _words(cluster: Shell, tool: str, *words: str) -> tuple[str, ...]:
    servers = cluster.status()["bootstrap_servers"]
    return "compat", tool, "--bootstrap-server", servers, *words


def _events(text: str) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in text.splitlines()]
    return [{key: value for key, value in each.items() if key != "timestamp"} for each in events]


@pytest.mark.parametrize("topic", ["bad topic", "."])
def test_a_name_that_no_topic_can_have_ends_the_tool(cluster: Shell, topic: str) -> None:
    words = _words(cluster, "kafka-verifiable-consumer", "--topic", topic, "--group-id", "g")
    done = cluster.run(*words)
    assert 0 == done.returncode
    assert [{"name": "startup_complete"}, {"name": "shutdown_complete"}] == _events(done.stdout)
    assert (
        f"org.apache.kafka.common.errors.InvalidTopicException: Invalid topics: [{topic}]"
        in done.stderr
    )


def test_a_console_consumer_ends_so_too(cluster: Shell) -> None:
    done = cluster.run(*_words(cluster, "kafka-console-consumer", "--topic", "bad topic"))
    assert (0, "") == (done.returncode, done.stdout)
    assert "Processed a total of 0 messages" in done.stderr


class Member:
    """A consumer of the group; `events` are what it printed."""

    def __init__(self, cluster: Shell, topic: str) -> None:
        words = _words(cluster, "kafka-verifiable-consumer", "--topic", topic, "--group-id", topic)
        self.process = cluster.popen(*words)
        self.events: list[dict[str, Any]] = []
        # An event that does not come ends the tool, and so the test.
        self.limit = threading.Timer(_LIMIT_S, self.process.kill)
        self.limit.start()

    def next_event(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        self.events += _events(self.process.stdout.readline())
        return self.events[-1]

    def until(self, wanted: dict[str, Any]) -> None:
        while self.next_event() != wanted:
            pass

    def end(self) -> list[dict[str, Any]]:
        self.process.terminate()
        out, _ = self.process.communicate(timeout=30)
        self.events += _events(out)
        return self.events


def test_an_assignment_without_partitions_is_an_event(cluster: Shell) -> None:
    cluster.ok("topics", "create", "one", "--partitions", "1")
    given = [{"topic": "one", "partition": 0}]
    members = [Member(cluster, "one")]
    try:
        members[0].until({"name": "partitions_assigned", "partitions": given})
        members.append(Member(cluster, "one"))
        members[0].until({"name": "partitions_revoked", "partitions": given})
        # The first of the two by the id of a member has the partition.
        mine = members[0].next_event()
        members[1].until(
            {"name": "partitions_assigned", "partitions": [] if mine["partitions"] else given}
        )
        idle, busy = sorted(members, key=lambda member: len(member.events[-1]["partitions"]))
        busy.end()
        idle.until({"name": "partitions_revoked", "partitions": []})
        idle.until({"name": "partitions_assigned", "partitions": given})
        # What is committed needs the coordinator no more: a signal meets no request to it.
        cluster.ok("produce", "one", stdin="a\n")
        while idle.next_event()["name"] != "offsets_committed":
            pass
        assert idle.end()[-2:] == [
            {"name": "partitions_revoked", "partitions": given},
            {"name": "shutdown_complete"},
        ]
    finally:
        for member in members:
            member.limit.cancel()
            member.process.kill()
            member.process.wait()
