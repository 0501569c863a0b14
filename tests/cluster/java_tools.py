"""Kafka's own command-line tools, run in one process of Java (`ToolServer.java`)."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

_CLASSES = {
    "reassign-partitions": "org.apache.kafka.tools.reassign.ReassignPartitionsCommand",
    "broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "console-producer": "kafka.tools.ConsoleProducer",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "dump-log": "kafka.tools.DumpLogSegments",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "producer-perf-test": "org.apache.kafka.tools.ProducerPerformance",
    "topics": "org.apache.kafka.tools.TopicCommand",
    "verifiable-producer": "org.apache.kafka.tools.VerifiableProducer",
}
#: Tools run for a second or two: starting quickly counts, compiling does not pay.
_JAVA_OPTIONS = ("-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_SERVER = Path(__file__).with_name("ToolServer.java")
#: For the shutdown hooks of tools.
_SERVER_OPTIONS = ("--add-opens", "java.base/java.lang=ALL-UNNAMED")
_LENGTH = struct.Struct(">i")


#: Why tests with these tools are skipped: false wherever `make test` could fetch them.
NO_TOOLS = "Kafka's tools are not there: `make test` fetches them by Maven, where that is installed"


class Ended(NamedTuple):
    """How a tool ended."""

    status: int
    stdout: str
    stderr: str


class ToolServer:
    """A process of Java that runs tools one after the other; it ends with this process."""

    def __init__(self, class_path: str) -> None:
        words = ["java", *_SERVER_OPTIONS, *_JAVA_OPTIONS, "-cp", class_path, str(_SERVER)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._lock = threading.Lock()

    def run(self, words: Sequence[str], stdin: str) -> Ended:
        """Run a tool to its end; `words` are its class and its arguments."""
        texts = [*words, stdin]
        fields = [_LENGTH.pack(len(text.encode())) + text.encode() for text in texts]
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(_LENGTH.pack(len(words)) + b"".join(fields))
            self._process.stdin.flush()
            status = self._number()
            return Ended(status, self._text(), self._text())

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _number(self) -> int:
        return int(_LENGTH.unpack(self._read(_LENGTH.size))[0])

    def _text(self) -> str:
        return self._read(self._number()).decode()

    def _read(self, count: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(count)
        assert len(data) == count, "the process of Kafka's tools has ended"
        return data


@cache
def tool_server(class_path: str) -> ToolServer:
    """Return the process for the tools of a class path, started when the first one is run."""
    return ToolServer(class_path)


class JavaTools:
    """The tools of one Kafka release."""

    def __init__(self, libs: Path) -> None:
        self._class_path = f"{libs}/*"

    @classmethod
    def found(cls) -> JavaTools | None:
        """Return the tools that the environment names, None if there are none."""
        libs = os.environ.get("KCTL_TEST_KAFKA_LIBS")
        if not libs or not Path(libs).is_dir() or shutil.which("javac") is None:
            return None
        return cls(Path(libs))

    def run(self, tool: str, *words: str, stdin: str = "") -> Ended:
        """Run a tool to its end."""
        return tool_server(self._class_path).run([_CLASSES[tool], *words], stdin)

    def ok(self, tool: str, *words: str, stdin: str = "") -> str:
        """Run a tool that has to succeed, and return what it printed."""
        ended = self.run(tool, *words, stdin=stdin)
        assert ended.status == 0, ended.stdout + ended.stderr
        return ended.stdout
