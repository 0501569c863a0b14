"""A broker that is killed again and again while clients write and change things.

    make soak-kill ROUNDS=50          or: python -m tests.soak.kill_broker --rounds 50 --seed 1

A round: writers write and an operator changes things → SIGKILL → restart → checks. A third of the
kills meets a clean shutdown, a third is followed by kills in the midst of recovery.

What is checked after each restart (`Checks`):

1. the high watermark is not below any acknowledged record;
2. every acknowledged record is at the offset that was acknowledged, and every record in the log
   was sent, in the order of its writer; what a writer without sequence numbers sent again may
   come twice or after what followed it, at most one request for each kill;
3. on a copy of the files: every batch whole with its CRC, offsets without a gap, segments named
   by their first offset; indexes, epochs, snapshots and checkpoints right (engine.inspection);
   in the end by Kafka's own dump-log too, where KCTL_TEST_KAFKA_LIBS names its jars;
4. topics and settings are what was answered; partitions and directories are the same set;
5. no producer id was given twice.

In the end the broker holds nothing too much (`HeldLedger`).

SIGKILL takes a process and leaves the page cache: what the broker wrote before it answered is
there whether it was flushed or not. So here nothing acknowledged may be lost at all, which is more
than "acknowledged and flushed"; that weaker claim meets power cuts in `tests/crash`.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tests.cluster.java_tools import JavaTools
from tests.cluster.raw_client import RawClient
from tests.soak.admin_changes import AdminChanges, topic_to_create
from tests.soak.broker_process import BrokerProcess
from tests.soak.checks import Checks
from tests.soak.held_ledger import HeldLedger
from tests.soak.writers import Kind, Place, Writer

SETTINGS = {
    "log.segment.bytes": "200000",
    "log.index.interval.bytes": "1024",
    "log.retention.check.interval.ms": "300",
    "log.initial.task.delay.ms": "100",
    "log.segment.delete.delay.ms": "500",
    "log.flush.offset.checkpoint.interval.ms": "400",
    "log.flush.start.offset.checkpoint.interval.ms": "400",
    "replica.high.watermark.checkpoint.interval.ms": "300",
    "auto.create.topics.enable": "false",
}
_AGED, _TRIMMED = "aged", Place("trimmed", 0)
_TOPICS = (
    topic_to_create("plain", 3),
    topic_to_create("flushed", 2, flush_messages="1"),
    topic_to_create("seldom-flushed", 2, flush_messages="50", flush_ms="200"),
    topic_to_create(_AGED, 1),
    topic_to_create(_TRIMMED.topic, 1),
)
_WRITERS = (
    (Place("plain", 0), Kind(False, "none")),
    (Place("plain", 1), Kind(True, "zstd")),
    (Place("plain", 2), Kind(True, "none")),
    (Place("flushed", 0), Kind(False, "gzip")),
    (Place("flushed", 1), Kind(True, "snappy")),
    (Place("seldom-flushed", 0), Kind(False, "lz4")),
    (Place("seldom-flushed", 1), Kind(True, "none")),
    (Place(_AGED, 0), Kind(True, "none")),
    (_TRIMMED, Kind(False, "none")),
)


class Pace(NamedTuple):
    """How long things go on, in seconds."""

    write_s: tuple[float, float] = (0.3, 2.5)
    stopping_s: tuple[float, float] = (0.0, 0.15)
    recovering_s: tuple[float, float] = (0.15, 0.6)


_PACE = Pace()


class Figures(NamedTuple):
    """What a run saw."""

    kills: int
    kills_of: dict[str, int]
    records: int
    acknowledged: int
    sent_again: int
    changes: int
    producer_ids: int
    log_bytes: int
    restart_ms_max: int
    is_kafka_requested: bool

    def line(self) -> str:
        """Return it as one line."""
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kills_of.items()))
        by = "us and by Kafka" if self.is_kafka_requested else "us"
        return (
            f"{self.kills} kills ({kinds}): {self.records} records, {self.acknowledged} "
            f"acknowledged, 0 lost, {self.sent_again} sent again by writers without numbers; "
            f"{self.changes} changes of topics and settings; {self.producer_ids} producer ids, "
            f"each once; {self.log_bytes >> 20} MiB of log verified at the end by {by}; "
            f"longest restart {self.restart_ms_max} ms"
        )


class Soak:
    """One broker, its writers and its operator, over all rounds."""

    def __init__(self, folder: Path, seed: int, pace: Pace) -> None:
        self._random = random.Random(seed)
        self._pace = pace
        self.broker = BrokerProcess(folder / "data", SETTINGS)
        self.broker.launch()
        self.broker.wait_ready()
        self._ledger = HeldLedger([self.broker.log_dir])
        self._ledger.begin(self.broker.pids())
        with RawClient(self.broker.address) as client:
            reply = client.ask("CreateTopics", 7, topics=list(_TOPICS), timeout_ms=10_000)
            assert not any(topic.error_code for topic in reply.topics), reply
        self.operator = AdminChanges(self.broker.address, _AGED, _TRIMMED, seed)
        self._writers_made = 0
        self.writers = [self._writer(place, kind) for place, kind in _WRITERS]
        fixed = {topic.name: topic.num_partitions for topic in _TOPICS}
        self._checks = Checks(self.broker, self.operator, fixed, folder / "copy")
        self._kills: dict[str, int] = {}
        self._restart_ms_max = 0

    def _writer(self, place: Place, kind: Kind) -> Writer:
        self._writers_made += 1
        return Writer(self.broker.address, f"w{self._writers_made}", place, kind)

    def round(self) -> None:
        """Write, kill, restart, check."""
        for one in (*self.writers, self.operator):
            one.resume()
        time.sleep(self._random.uniform(*self._pace.write_s))
        acts: list[Callable[[], None]] = [self._kill_writing, self._kill_stopping]
        acts.append(self._kill_recovering)
        self._random.choice(acts)()
        for writer in self.writers:
            writer.pause()
        # Answers that were under way still count.
        time.sleep(0.05)
        promised = self._promised()
        began = time.monotonic()
        self.broker.launch()
        self.broker.wait_ready()
        self._restart_ms_max = max(self._restart_ms_max, int(1000 * (time.monotonic() - began)))
        self._checks.watermarks(promised)
        self.operator.pause()
        for writer in self.writers:
            writer.settle()
        self._checks.everything(self.writers, sum(self._kills.values()))
        self._replace_a_writer()

    def _promised(self) -> dict[Place, int]:
        return {
            writer.place: max(list(writer.acknowledged), default=-1) + 1 for writer in self.writers
        }

    def _count(self, kind: str) -> None:
        self._kills[kind] = self._kills.get(kind, 0) + 1

    def _kill_writing(self) -> None:
        self._count("while writing")
        self.broker.kill()

    def _kill_stopping(self) -> None:
        self._count("while stopping")
        self.broker.ask_to_stop()
        time.sleep(self._random.uniform(*self._pace.stopping_s))
        self.broker.kill()

    def _kill_recovering(self) -> None:
        self._kill_writing()
        for _ in range(self._random.randint(1, 2)):
            self._count("while starting")
            self.broker.launch()
            time.sleep(self._random.uniform(*self._pace.recovering_s))
            self.broker.kill()

    def _replace_a_writer(self) -> None:
        """Let a new producer, with an id of its own, go on where another ended."""
        index = self._random.randrange(len(self.writers))
        old = self.writers[index]
        old.end()
        self._checks.retire(old)
        self.writers[index] = self._writer(old.place, old.kind)

    def finish(self, tools: JavaTools | None) -> Figures:
        """Stop everything cleanly, check the whole once more, and return the figures."""
        for writer in self.writers:
            writer.end()
        self._ledger.check(self.broker.pids())
        log_bytes = self._checks.at_rest(self.writers, tools)
        return Figures(
            sum(self._kills.values()),
            self._kills,
            self._checks.records,
            self._checks.acknowledged(self.writers),
            self._checks.sent_again,
            self.operator.changes,
            len(self._checks.producer_ids),
            log_bytes,
            self._restart_ms_max,
            tools is not None,
        )

    def abandon(self) -> None:
        """End the process in any state."""
        self.broker.kill()


def run(
    folder: Path,
    rounds: int,
    seed: int,
    pace: Pace = _PACE,
    say: Any = None,
    tools: JavaTools | None = None,
) -> Figures:
    """Run so many rounds; any broken claim is an AssertionError."""
    soak = Soak(folder, seed, pace)
    try:
        for number in range(rounds):
            soak.round()
            if say is not None:
                say(f"round {number + 1} of {rounds} held")
        return soak.finish(tools)
    finally:
        soak.abandon()


def main() -> None:
    """Run by hand."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    folder = Path(tempfile.mkdtemp(prefix="kctl-soak-"))
    try:
        figures = run(
            folder,
            options.rounds,
            options.seed,
            say=lambda line: print(line, flush=True),
            tools=JavaTools.found(),
        )
    except AssertionError:
        print(f"the files are kept in {folder}", file=sys.stderr)
        raise
    shutil.rmtree(folder)
    print(figures.line())


if __name__ == "__main__":
    main()
