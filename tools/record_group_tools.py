"""Records tests/golden/tools/group_tools_of_4_3.json.gz: Java's tools of groups beside ours.

    python -m tools.record_group_tools FOLDER KAFKA_LIBS STREAMS_LIBS [--only java|ours]

FOLDER is a scratch directory; KAFKA_LIBS has the jars of Kafka 4.3.0, STREAMS_LIBS kafka-streams
and rocksdbjni. Two nodes are formatted one after the other, prepared alike, and asked the calls of
`tests/group_tools.py`: the first by Java's tools, the second by ours.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.host.real import RealEntropy
from kctl.connect import Host
from tests.client_session import run_with
from tests.cluster.java_tools import Ended, ToolServer
from tests.group_tools import ADDRESS, FILES, RECORDING, STEPS, Call, kctl_words
from tools.record_client_session import FixedWallClock, RecordingStreams

_CLASSES = {
    "kafka-share-groups": "org.apache.kafka.tools.consumer.group.ShareGroupCommand",
    "kafka-streams-groups": "org.apache.kafka.tools.streams.StreamsGroupCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
}
_PORT = int(ADDRESS.rpartition(":")[2])
_PROPERTIES = f"""
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{_PORT + 1}
listeners=PLAINTEXT://{ADDRESS},CONTROLLER://127.0.0.1:{_PORT + 1}
controller.listener.names=CONTROLLER
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=4
auto.create.topics.enable=false
group.streams.initial.rebalance.delay.ms=0
"""
_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"
#: 2024-06-01T00:00:00Z; records are one second apart.
_FIRST_RECORD_MS = 1_717_200_000_000
_TOPICS = {"parcels": 3, "stock": 1, "lines": 2, "copies": 1}
_SOURCE = Path(__file__).parent / "kafka_groups" / "Groups.java"


class Stage:
    """A fresh node, its members of groups, and Java's tools."""

    def __init__(self, folder: Path, kafka_libs: str, streams_libs: str) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._class_path = f"{kafka_libs}/*:{streams_libs}/*"
        self._members: list[subprocess.Popen[bytes]] = []
        properties = folder / "node.properties"
        properties.write_text(f"{_PROPERTIES}log.dirs={folder}/data\n")
        java = ["nice", "-n", "10", "java", "-Xmx400m", "-cp", self._class_path]
        self._java = java
        words = ["format", "-t", _CLUSTER_ID, "-c", str(properties)]
        subprocess.run([*java, "kafka.tools.StorageTool", *words], check=True)
        log = (folder / "node.log").open("wb")
        command = [*java, "kafka.Kafka", str(properties)]
        self._node = subprocess.Popen(command, stdout=log, stderr=log)
        self.tools = ToolServer(self._class_path)
        self.until(lambda: self.run("kafka-configs", self._brokers).status == 0)

    _brokers = f"--bootstrap-server {ADDRESS} --describe --entity-type brokers --entity-name 1"

    def until(self, is_true: Callable[[], bool], timeout_s: float = 90.0) -> None:
        """Wait for a condition; it is asked again each half second."""
        deadline = time.monotonic() + timeout_s
        while not is_true():
            assert time.monotonic() < deadline, "the condition did not come true"
            time.sleep(0.5)

    def run(self, tool: str, words: str) -> Ended:
        """Run one of Java's tools."""
        return self.tools.run([_CLASSES[tool], *words.split()], "")

    def close(self) -> None:
        """End all processes."""
        self.stop()
        self.tools.close()
        self._node.terminate()
        self._node.wait()

    # What is done between calls

    def prepare(self, name: str) -> None:
        """Do what a preparation of the scenario names."""
        steps: dict[str, Callable[[], None]] = {
            "topics": self._topics,
            "members": self._start_members,
            "members again": self._start_members,
            "stop": self.stop,
        }
        steps[name]()

    def _topics(self) -> None:
        for topic, count in _TOPICS.items():
            _kctl(f"topics create {topic} -p {count} -r 1 -c retention.ms=-1")
            for number in range(3 * count):
                row = {
                    "value": f"w{number % 4}",
                    "partition": number % count,
                    "timestamp": _FIRST_RECORD_MS + 1000 * number,
                }
                _kctl(f"produce {topic} --input ndjson --keep-partitions", json.dumps(row).encode())
        words = f"--bootstrap-server {ADDRESS} --reset-offsets --execute --to-latest"
        self.run("kafka-consumer-groups", f"{words} --group audit --topic parcels")
        for group in ("packers", "pickers"):
            self.run(
                "kafka-configs",
                f"--bootstrap-server {ADDRESS} --alter --entity-type groups --entity-name {group} "
                "--add-config share.auto.offset.reset=earliest",
            )

    def _start_members(self) -> None:
        for words in (
            ["share", ADDRESS, "packers", "parcels", "stock"],
            ["share", ADDRESS, "pickers", "stock"],
            ["count", ADDRESS, "counter", f"{self.folder}/counter"],
            ["copy", ADDRESS, "copier", f"{self.folder}/copier"],
        ):
            if words[0] == "share" and self._has_members_before:
                continue
            pipe = subprocess.PIPE
            command = [*self._java, str(_SOURCE), *words]
            log = (self.folder / f"{words[2]}.log").open("wb")
            member = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log)
            self._members.append(member)
        for member in self._members:
            assert member.stdout is not None
            assert member.stdout.readline() == b"ready\n"
        self._has_members_before = True
        # Offsets are committed, and the targets of all groups reached.
        time.sleep(8)

    _has_members_before = False

    def stop(self) -> None:
        """Have all members leave their groups."""
        for member in self._members:
            assert member.stdin is not None
            member.stdin.write(b"\n")
            member.stdin.close()
        for member in self._members:
            member.wait()
        self._members.clear()
        time.sleep(2)


def _kctl(words: str, stdin: bytes | None = None) -> None:
    from kctl.connect import real_host

    outcome = run_with(real_host(), [*words.split(), "-b", ADDRESS], stdin)
    assert outcome.exit == 0, outcome


def _java_answer(stage: Stage, call: Call) -> dict[str, Any]:
    ended = stage.tools.run([_CLASSES[call.tool], *call.arguments(str(stage.folder))], "")
    print(f"$ {call.name}\n{ended.stdout}--\n{ended.stderr[:200]}-> {ended.status}\n", flush=True)
    first_line = ended.stderr.lstrip("\n").split("\n")[0]
    here = str(stage.folder)
    return {
        "tool": call.tool,
        "words": call.words,
        "exit": ended.status,
        "stdout": ended.stdout.replace(here, "{FOLDER}"),
        "stderr_first_line": first_line.replace(here, "{FOLDER}"),
    }


def _our_exchanges(stage: Stage, call: Call) -> list[list[str]]:
    streams = RecordingStreams()
    host = Host(streams, FixedWallClock(), RealEntropy())
    outcome = run_with(host, kctl_words(call, str(stage.folder)), None)
    print(f"$ {call.name}\n{outcome.stdout}--\n{outcome.stderr[:600]}-> {outcome.exit}\n")
    return [
        [_encoded(request), _encoded(b"\0\0\0\0" + answer[4:])]
        for request, answer in streams.exchanges
    ]


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _played(options: argparse.Namespace, answer: Callable[[Stage, Call], Any]) -> list[Any]:
    """Return the answers to all calls on a fresh node."""
    stage = Stage(options.folder, options.kafka_libs, options.streams_libs)
    try:
        for name, text in FILES.items():
            (stage.folder / name).write_text(text)
        answers = []
        for step in STEPS:
            if isinstance(step, Call):
                answers.append(answer(stage, step))
            else:
                stage.prepare(step.name)
        return answers
    finally:
        stage.close()


def main() -> None:
    """Record all calls, or those of Java or ours alone beside what the file has of the other."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("kafka_libs")
    parser.add_argument("streams_libs")
    parser.add_argument("--only", choices=("java", "ours"))
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if options.only == "ours":
        rows = json.loads(gzip.decompress(RECORDING.read_bytes()))
    else:
        rows = _played(options, _java_answer)
    if options.only != "java":
        for row, exchanges in zip(rows, _played(options, _our_exchanges), strict=True):
            row["exchanges"] = exchanges
    text = json.dumps(rows, separators=(",", ":"))
    RECORDING.write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
