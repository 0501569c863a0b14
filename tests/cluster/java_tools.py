"""Kafka's own command-line tools, run as processes of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
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


#: Why tests with these tools are skipped: false wherever `make test` could fetch them.
NO_TOOLS = "Kafka's tools are not there: `make test` fetches them by Maven, where that is installed"


class Ended(NamedTuple):
    """How a tool ended."""

    status: int
    stdout: str
    stderr: str


class JavaTools:
    """The tools of one Kafka release."""

    def __init__(self, libs: Path) -> None:
        self._class_path = f"{libs}/*"

    @classmethod
    def found(cls) -> JavaTools | None:
        """Return the tools that the environment names, None if there are none."""
        libs = os.environ.get("KCTL_TEST_KAFKA_LIBS")
        if not libs or not Path(libs).is_dir() or shutil.which("java") is None:
            return None
        return cls(Path(libs))

    def run(self, tool: str, *words: str, stdin: str = "") -> Ended:
        """Run a tool to its end."""
        done = subprocess.run(
            ["java", *_JAVA_OPTIONS, "-cp", self._class_path, _CLASSES[tool], *words],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def ok(self, tool: str, *words: str, stdin: str = "") -> str:
        """Run a tool that has to succeed, and return what it printed."""
        ended = self.run(tool, *words, stdin=stdin)
        assert ended.status == 0, ended.stdout + ended.stderr
        return ended.stdout
