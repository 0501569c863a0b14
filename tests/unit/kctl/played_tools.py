"""Recorded calls of Kafka's tools, played with ours on three brokers in memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from engine.client.topic_admin import delete_topics
from engine.host.memory import MemoryFiles
from engine.model import TopicPartition
from kctl.compat.tools import run_tool
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.reassign.memory_streams import MemoryStreams, client_of

_GOLDEN = Path(__file__).parents[2] / "golden" / "tools"
#: As long as a call of a tool takes that starts a Java machine.
_BETWEEN_STEPS_MS = 2000
_VARIABLES = {"BOOTSTRAP": "here:9092", "WORK": "/given", "DATA": "/data"}


class Ended(NamedTuple):
    """What a call printed and returned."""

    exit_code: int
    stdout: str
    stderr: str


class Recorded:
    """Calls of Kafka's tools with what they printed, in the order in which they were made."""

    def __init__(self, name: str) -> None:
        text = (_GOLDEN / f"{name}.yaml").read_text()
        # Several times as quick, where PyYAML was built with it.
        recorded = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        self.files: dict[str, str] = recorded["files"]
        self.all_steps: list[dict[str, Any]] = recorded["steps"]
        #: The calls of tools that we have, by their ids, but for those that are only made.
        self.calls = {
            step["id"]: step
            for step in self.all_steps
            if "tool" in step and step.get("compare", True)
        }
        self._always = recorded["always"]
        self._rules = {rule["name"]: rule for rule in recorded["rules"]}

    def normalised(self, step: dict[str, Any], text: str) -> str:
        """Return a text without what may differ from one run of Kafka's tool to the next."""
        for name in [*self._always, *step.get("rules", [])]:
            text = re.sub(self._rules[name]["pattern"], self._rules[name]["replace"], text)
        if step.get("sort"):
            text = "".join(sorted(f"{line}\n" for line in text.splitlines()))
        return text


class PlayedTools:
    """Three brokers with racks and two log directories each, as they were when it was recorded."""

    between_steps_ms = _BETWEEN_STEPS_MS

    def __init__(self, recorded: Recorded, **settings: str) -> None:
        self.recorded = recorded
        self.cluster = MemoryCluster(
            is_one_process=True,
            log_dirs="/data/b{id}/d1,/data/b{id}/d2",
            broker_rack="r{id}",
            auto_leader_rebalance_enable="false",
            **settings,
        )
        self.files = MemoryFiles()
        for name, text in recorded.files.items():
            self.files.make_dir("/given")
            self.files.replace_file(f"/given/{name}", _filled(text).encode())

    def play(self) -> dict[str, Ended]:
        """Play all steps in their order; a step that was repeated is, until it says the same."""
        ended = {}
        for step in self.recorded.all_steps:
            self.cluster.pass_time(self.between_steps_ms)
            if "tool" not in step:
                self._prepare(step)
                continue
            for _ in range(1 + step.get("retry", 0)):
                ended[step["id"]] = found = self.run_step(step)
                if not step.get("compare", True) or self._is_as_recorded(step, found):
                    break
                self.cluster.pass_time(1000)
        return ended

    def _is_as_recorded(self, step: dict[str, Any], ended: Ended) -> bool:
        normalised = self.recorded.normalised
        return normalised(step, step["stdout"]) == normalised(step, ended.stdout)

    def run_step(self, step: dict[str, Any]) -> Ended:
        """Run the call of a step."""
        return self.run(step["tool"], step["args"])

    def run(self, tool: str, words: list[str]) -> Ended:
        """Run a tool of ours."""
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run_tool(
                tool,
                [_filled(word) for word in words],
                connecting=lambda _options: client_of(self.cluster, MemoryStreams(self.cluster)),
                files=self.files,
            )
        return Ended(code, _bare(out.getvalue()), _bare(err.getvalue()))

    # What other tools did

    def _prepare(self, step: dict[str, Any]) -> None:
        if "broker" in step:
            actions: dict[str, Callable[[int], Any]] = {
                "stop-broker": self._stop,
                "kill-broker": self.cluster.cut_power,
                "start-broker": self.cluster.start,
            }
            actions[step["action"]](step["broker"])
        else:
            self.prepare(step["id"])

    def prepare(self, name: str) -> None:
        """Do what a step of another tool did."""
        _PREPARATIONS[name](self)

    def _stop(self, broker_id: int) -> None:
        self.cluster.begin_stop(broker_id)
        while broker_id in self.cluster.brokers:
            self.cluster.pass_time(100)

    def create(self, topic: str, *replicas: tuple[int, ...]) -> None:
        """Create a topic."""
        self.cluster.create_topic(topic, replicas)

    def fill(self, topic: str, leader: int) -> None:
        """Write records that a throttled follower takes a while for."""
        for _ in range(200):
            self.cluster.produce(leader, 5, key=TopicPartition(topic, 0))

    def delete(self, *topics: str) -> None:
        """Delete topics."""
        with client_of(self.cluster) as client:
            delete_topics(client, topics)


_PREPARATIONS: dict[str, Callable[[PlayedTools], None]] = {
    "election-topic": lambda it: it.create("votes", (1, 2), (2, 3), (3, 1)),
    "reassign-topic": lambda it: it.create("moves", (1,), (2,)),
    "reassign-topic2": lambda it: it.create("wide", (1, 2)),
    "produce-moves": lambda it: it.fill("moves", 1),
    "slow-topic": lambda it: it.create("heavy", (1,)),
    "slow-topic2": lambda it: it.create("heavy2", (2,)),
    "slow-data": lambda it: it.fill("heavy", 1),
    "slow-data2": lambda it: it.fill("heavy2", 2),
    "slow-delete": lambda it: it.delete("heavy", "heavy2"),
    "down-create-1": lambda it: it.create("down-a", (3, 1)),
    "down-create-2": lambda it: it.create("down-b", (3,)),
    "down-create-3": lambda it: it.create("down-c", (1, 3)),
    "down-create-4": lambda it: it.create("down-d", (2, 3)),
    "down-create-unclean": lambda it: it.create("down-u", (2, 3)),
}


def _filled(text: str) -> str:
    for name, value in _VARIABLES.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _bare(text: str) -> str:
    return text.replace("/given/", "{WORK}/").replace("/data/", "{DATA}/")
