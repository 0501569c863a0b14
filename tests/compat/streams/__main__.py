"""Have Kafka Streams count words exactly once while brokers and instances are killed.

    make compat-streams LIBS=DIR      or: python -m tests.compat.streams DIR --lines 20000

DIR holds the jars of kafka-streams and of what it needs; a JDK compiles the program. Two instances
with a standby replica each run `exactly_once_v2` on three embedded brokers, one process each:

1. lines are produced with acks=all and idempotence;
2. meanwhile one broker after the other is killed and started again, and one instance after every
   third broker;
3. in the end the updates of every word are read with read_committed: 1, 2, 3 and so on to the
   number of times that it was produced, none lost or repeated.

Exit code: 0 if so, 1 if not.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from engine.embedded import EmbeddedCluster

_SOURCE: Final = Path(__file__).with_name("WordCount.java")
_BROKERS: Final = 3
_SETTINGS: Final = {"zookeeper.session.timeout.ms": "6000"}
_BEFORE_KILL_S: Final = 5.0
_DEAD_S: Final = 4.0
_BACK_TIMEOUT_S: Final = 60.0


class WordCount:
    """The compiled program and its processes; their output goes to a file each."""

    def __init__(self, libs: Path, directory: Path) -> None:
        """Compile it; raises CalledProcessError where that fails."""
        classes = directory / "classes"
        self._directory = directory
        subprocess.run(["javac", "-cp", f"{libs}/*", "-d", str(classes), str(_SOURCE)], check=True)
        quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        self._command = ["java", "-Xmx256m", quiet, "-cp", f"{libs}/*:{classes}", "WordCount"]

    def start(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a process; what it prints is appended to the file of its name."""
        with (self._directory / f"{name}.txt").open("ab") as output:
            return subprocess.Popen([*self._command, *arguments], stdout=output, stderr=output)

    def run(self, *arguments: str) -> int:
        """Run it to its end, with its output on standard output, and return its exit code."""
        return subprocess.run([*self._command, *arguments], check=False).returncode

    def instance(self, number: int, bootstrap: str) -> subprocess.Popen[bytes]:
        """Start an instance that counts, with a state directory of its own."""
        return self.start(
            f"instance-{number}", "count", bootstrap, str(self._directory / f"state-{number}")
        )


def _kill_in_turn(
    cluster: EmbeddedCluster,
    program: WordCount,
    instances: list[subprocess.Popen[bytes]],
    feeding: subprocess.Popen[bytes],
) -> int:
    """Kill brokers and instances until all lines are produced; return how many brokers."""
    for turn in itertools.count():
        if feeding.poll() is not None:
            return turn
        broker_id = turn % _BROKERS + 1
        time.sleep(_BEFORE_KILL_S)
        cluster.kill(broker_id)
        time.sleep(_DEAD_S)
        cluster.restart(broker_id)
        if broker_id == _BROKERS:
            instances[0].kill()
            instances[0].wait()
            instances[0] = program.instance(0, cluster.bootstrap)
        cluster.wait_in_sync(timeout_s=_BACK_TIMEOUT_S)
    raise AssertionError("the count of turns has no end")


def run(libs: Path, lines: int, pause_ms: int) -> int:
    """Count so many lines and return the exit code."""
    with (
        tempfile.TemporaryDirectory(prefix="kctl-streams-") as directory,
        EmbeddedCluster(
            Path(directory) / "cluster", brokers=_BROKERS, is_quick=False, settings=_SETTINGS
        ) as cluster,
    ):
        program = WordCount(libs, Path(directory))
        if program.run("create", cluster.bootstrap) != 0:
            return 1
        instances = [program.instance(number, cluster.bootstrap) for number in range(2)]
        feeding = program.start("feeding", "feed", cluster.bootstrap, str(lines), str(pause_ms))
        try:
            kills = _kill_in_turn(cluster, program, instances, feeding)
            print(f"{lines} lines, brokers killed: {kills}, producer's exit code: {feeding.wait()}")
            return program.run("verify", cluster.bootstrap, str(lines)) or feeding.wait()
        finally:
            for process in (*instances, feeding):
                process.kill()
                process.wait()


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description="Kafka Streams on brokers that are killed")
    parser.add_argument("libs", type=Path, help="directory of the jars of kafka-streams")
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--pause-ms", type=int, default=300, help="after every 100 lines")
    options = parser.parse_args()
    return run(options.libs, options.lines, options.pause_ms)


if __name__ == "__main__":
    sys.exit(main())
