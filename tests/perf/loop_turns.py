"""The longest turn of a broker's loop, by the API that is asked, with thousands of partitions.

    python -m tests.perf.loop_turns [--tree NAME=DIRECTORY …] [--partitions 10000] [--rounds 3]
                                    [--only TEXT]

One embedded broker of each tree (a checkout; this one if none is named) has so many topics of one
partition. A client asks for one thing after the other, all partitions in one request where the API
takes them; meanwhile another process asks for ApiVersions, one at a time, by a connection of its
own. Its longest round trip is the longest time for which the loop served nobody else: of each API
the least of the rounds is shown, for other load on the machine only adds to it. Behind it is how
long the answer took. The first line is that of no request: what the machine itself adds.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from engine.wire.codec import message_codec
from engine.wire.structs import message_class
from tests.cluster.raw_client import RawClient
from tests.perf.loop_turn_cases import CASES, TIMEOUT_MS, Case, Stage
from tests.perf.ratios import machine_line
from tests.perf.request_cost import tree_broker

_CREATED_AT_ONCE = 500
#: How often the probe asks, and how long it goes on behind an answer.
_PROBE_PAUSE_S = 0.0005
_AFTER_S = 0.3


class Trip(NamedTuple):
    """One round trip of the probe, in ns of the monotonic clock."""

    began_ns: int
    ended_ns: int


class Turn(NamedTuple):
    """The longest trip while an API was at work, and how long its answer took, in ms."""

    longest_ms: float
    answer_ms: float


def _probe(address: str, pipe: Connection) -> None:
    """Ask one thing after the other until something is received, then send the slow trips."""
    with RawClient(address, timeout_s=600) as client:
        trips: list[Trip] = []
        pipe.send("ready")
        while True:
            if pipe.poll():
                if pipe.recv() == "end":
                    return
                pipe.send(trips)
                trips = []
            began_ns = time.monotonic_ns()
            client.send("ApiVersions", 0, b"")
            client.frame()
            trips.append(Trip(began_ns, time.monotonic_ns()))
            time.sleep(_PROBE_PAUSE_S)


class Probe:
    """The process that asks meanwhile."""

    def __init__(self, address: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_probe, args=(address, theirs))
        self._process.start()
        self._pipe.recv()

    def trips(self) -> list[Trip]:
        """Return the trips since the last call."""
        self._pipe.send("trips")
        found: list[Trip] = self._pipe.recv()
        return found

    def close(self) -> None:
        self._pipe.send("end")
        self._process.join()


def _create_topics(client: RawClient, count: int) -> list[str]:
    made = message_class("CreateTopicsRequest").CreatableTopic
    names = [f"topic-{number:05}" for number in range(count)]
    for start in range(0, count, _CREATED_AT_ONCE):
        rows = [
            made(name=name, num_partitions=1, replication_factor=1)
            for name in names[start : start + _CREATED_AT_ONCE]
        ]
        reply = client.ask("CreateTopics", 7, topics=rows, timeout_ms=TIMEOUT_MS)
        assert all(row.error_code == 0 for row in reply.topics)
    return names


@contextmanager
def _stage(directory: str, folder: Path, count: int) -> Iterator[tuple[Stage, str]]:
    with tree_broker("", directory, str(folder)) as tree:
        address = f"{tree.host}:{tree.port}"
        with RawClient(address, timeout_s=600) as client:
            names = _create_topics(client, count)
            reply = client.ask("Metadata", 12, topics=None)
            ids = {row.name: row.topic_id for row in reply.topics}
            yield Stage(client, names, ids, 1), address


def _ask(stage: Stage, probe: Probe, case: Case, number: int) -> Turn:
    """Send one request; raises ConnectionError where the broker ends the connection."""
    name = f"{case.name}Request"
    message = message_class(name)(**case.fields(stage, number))
    body = message_codec(name, case.version).encode(message)
    probe.trips()
    began_ns = time.monotonic_ns()
    stage.client.send(case.name, case.version, body)
    if stage.client.frame() is None:
        raise ConnectionError(case.label)
    ended_ns = time.monotonic_ns()
    # What an answer leaves to be done, as orders to the brokers, comes behind it.
    time.sleep(_AFTER_S)
    return Turn(_longest_ms(probe.trips(), began_ns), (ended_ns - began_ns) / 1e6)


def _longest_ms(trips: list[Trip], began_ns: int) -> float:
    met = [trip for trip in trips if trip.ended_ns > began_ns]
    return max((trip.ended_ns - max(trip.began_ns, began_ns)) / 1e6 for trip in met)


def _idle(probe: Probe) -> Turn:
    probe.trips()
    began_ns = time.monotonic_ns()
    time.sleep(1.0)
    return Turn(_longest_ms(probe.trips(), began_ns), 0.0)


def measure(
    directory: str, count: int, rounds: int, only: str, told: Callable[[str, Turn], None]
) -> None:
    """Measure every case on a broker of a tree."""
    with (
        tempfile.TemporaryDirectory() as folder,
        _stage(directory, Path(folder) / "cluster", count) as (stage, address),
    ):
        probe = Probe(address)
        try:
            told("nothing", min(_idle(probe) for _ in range(rounds)))
            for case in CASES:
                if only in case.label:
                    count_requested = 1 if case.is_first_alone else rounds
                    turns = [_ask(stage, probe, case, number) for number in range(count_requested)]
                    told(case.label, min(turns))
        finally:
            probe.close()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", action="append", default=[], metavar="NAME=DIRECTORY")
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    trees = [tree.split("=", 1) for tree in options.tree] or [["this tree", str(Path.cwd())]]
    print(machine_line())
    for name, directory in trees:
        print(f"\n{name}: {options.partitions} partitions\n")
        print("| API | longest turn, ms | answer, ms |\n|---|---|---|")

        def told(label: str, turn: Turn) -> None:
            print(f"| {label} | {turn.longest_ms:.0f} | {turn.answer_ms:.0f} |", flush=True)

        measure(directory, options.partitions, options.rounds, options.only, told)


if __name__ == "__main__":
    main()
