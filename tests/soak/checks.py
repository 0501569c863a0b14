"""What must hold after a restart; see `kill_broker.py` for the list."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, TopicPartition

from engine.host.real import RealFiles
from engine.inspection.findings import Finding
from engine.inspection.verify import verify_log_dir, verify_partition
from engine.log.directory.log_dir import read_log_dir
from tests.cluster.java_tools import JavaTools
from tests.cluster.raw_client import RawClient
from tests.soak import partition_files
from tests.soak.admin_changes import AdminChanges, latest, retention_bytes, topics_of
from tests.soak.broker_process import BrokerProcess
from tests.soak.writers import Entry, Place, Writer, entry_of

_DEADLINE_S = 20.0
_POLL_S = 0.02
_EARLIEST = -2
_COPIES_MAX = 3
# A single word on a command line may have 128 KiB.
_FILES_A_CALL = 500
#: The files are empty until the segment is closed; a kill may even come before they are made.
_OPEN_INDEX = frozenset(("timeindex-entry", "timeindex-absent", "index-absent"))
T = TypeVar("T")


def eventually(attempt: Callable[[], T]) -> T:
    """Return what `attempt` returns as soon as it does not fail; its failure after a deadline."""
    deadline = time.monotonic() + _DEADLINE_S
    while True:
        try:
            return attempt()
        except (AssertionError, LookupError, OSError):
            if time.monotonic() > deadline:
                raise
        time.sleep(_POLL_S)


class Seen:
    """What was read of one writer's records, in the order of the log."""

    def __init__(self) -> None:
        self.last = -1
        self.highest = -1
        self.times_back = 0
        #: Numbers that later ones came before: of two requests that a disconnection ended, a
        #: client that numbers none may send the second one first.
        self.overtaken: set[int] = set()


def _is_open_index(finding: Finding) -> bool:
    """Return whether a finding is only that the newest segment's indexes live in memory."""
    path = Path(finding.path)
    newest = max(log.stem for log in path.parent.glob("*.log"))
    return path.stem == newest and finding.code in _OPEN_INDEX


def ask_kafka(tools: JavaTools, log_dir: Path) -> None:
    """Have Kafka's own tool check all indexes."""
    indexes = sorted(map(str, [*log_dir.glob("*-*/*.index"), *log_dir.glob("*-*/*.timeindex")]))
    for check in ("--index-sanity-check", "--verify-index-only"):
        for first in range(0, len(indexes), _FILES_A_CALL):
            named = ",".join(indexes[first : first + _FILES_A_CALL])
            said = tools.ok("dump-log", check, "--files", named)
            wrong = [line for line in said.splitlines() if "ismatch" in line or "not found" in line]
            assert not wrong, wrong[:5]


class Checks:
    """Holds what was seen so far against what must be."""

    def __init__(
        self, broker: BrokerProcess, operator: AdminChanges, fixed: dict[str, int], copy: Path
    ) -> None:
        self._broker = broker
        self._operator = operator
        self._fixed = fixed
        self._copy = copy
        #: Records that were read, and of them those that were there already.
        self.records = 0
        self.sent_again = 0
        #: All producer ids with who got them.
        self.producer_ids: dict[int, str] = {}
        self._next: dict[Place, int] = {}
        self._seen: dict[str, Seen] = {}
        self._retired: list[Writer] = []
        self._kills = 0

    def retire(self, writer: Writer) -> None:
        """Keep what a writer that has ended was promised."""
        self._retired.append(writer)

    def acknowledged(self, writers: list[Writer]) -> int:
        """Return how many records were acknowledged with their offsets."""
        return sum(len(writer.acknowledged) for writer in (*self._retired, *writers))

    def watermarks(self, promised: dict[Place, int]) -> None:
        """Check that consumers may read at least what was acknowledged before the kill."""

        def ask() -> dict[Place, int]:
            with RawClient(self._broker.address) as client:
                return latest(client, list(promised))

        found = eventually(ask)
        behind = {
            place: (found[place], offset)
            for place, offset in promised.items()
            if found[place] < offset
        }
        assert not behind, f"high watermark and acknowledged end: {behind}"

    def everything(self, writers: list[Writer], kills: int) -> None:
        """Check a settled broker: nobody writes, everything sent was answered."""
        self._kills = kills
        self._metadata()
        self._records(writers, from_start=False)
        self._files()
        self._ids()
        assert self._broker.is_alive, self._broker.said()
        assert not self._broker.faults(), self._broker.faults()[:5]

    def at_rest(self, writers: list[Writer], tools: JavaTools | None) -> int:
        """Check all records and all files once more, over a clean stop; return the log's bytes."""
        self._records(writers, from_start=True)
        self._broker.stop()
        self._verify(self._broker.log_dir)
        if tools is not None:
            ask_kafka(tools, self._broker.log_dir)
        files = partition_files.partitions(self._broker.log_dir)
        return sum(f.stat().st_size for path in files.values() for f in path.glob("*.log"))

    # Metadata

    def _metadata(self) -> None:
        def compare() -> dict[str, int]:
            with RawClient(self._broker.address) as client:
                found = topics_of(client)
                retention = retention_bytes(client, "aged")
            wanted = {Place(name, n) for name, count in found.items() for n in range(count)}
            there = set(partition_files.partitions(self._broker.log_dir))
            assert there == wanted, f"directories and partitions differ: {there ^ wanted}"
            self._check_topics(found)
            assert retention in self._operator.retention, (retention, self._operator.retention)
            self._operator.retention = {retention}
            return found

        self._operator.learn(eventually(compare))
        stray = [n for n in partition_files.leftovers(self._broker.log_dir) if "-stray" in n]
        assert not stray, stray

    def _check_topics(self, found: dict[str, int]) -> None:
        fixed = {name: found.get(name) for name in self._fixed}
        assert fixed == self._fixed, fixed
        # A topic whose deletion was answered must not come back; one that was asked may go yet.
        assert not self._operator.gone & set(found), self._operator.gone & set(found)

    # Records

    def _records(self, writers: list[Writer], *, from_start: bool) -> None:
        places = [writer.place for writer in writers]
        with RawClient(self._broker.address) as client:
            starts = latest(client, places, _EARLIEST)
            ends = latest(client, places)
        for place in places:
            self._check_start(place, starts[place], ends[place])
        begin = starts if from_start else {p: max(starts[p], self._next.get(p, 0)) for p in places}
        if from_start:
            self._seen, self._next = {}, {}
            self.records = self.sent_again = 0
        promised: dict[Place, dict[int, Entry]] = {place: {} for place in places}
        for writer in (*self._retired, *writers):
            promised[writer.place].update(writer.acknowledged)
        found = self._read(begin, ends)
        numbered = {w.name for w in (*self._retired, *writers) if w.kind.is_idempotent}
        for place, entries in found.items():
            self._compare(place, begin[place], entries, promised[place], numbered)
            self._next[place] = ends[place]
        self._check_writers(writers)

    def _check_start(self, place: Place, start: int, end: int) -> None:
        assert 0 <= start <= end
        if place.topic == "trimmed":
            assert start <= self._operator.trim_requested, (start, self._operator.trim_requested)
        elif place.topic != "aged":
            assert start == 0, f"{place} starts at {start}"

    def _read(self, begin: dict[Place, int], ends: dict[Place, int]) -> dict[Place, list[Entry]]:
        """Consume [begin, end) of every partition."""
        found: dict[Place, list[Entry]] = {place: [] for place in begin}
        missing = {
            place: ends[place] - begin[place] for place in begin if ends[place] > begin[place]
        }
        consumer = Consumer(
            {
                "bootstrap.servers": self._broker.address,
                "group.id": "unused",
                "enable.auto.commit": False,
                "check.crcs": True,
                "auto.offset.reset": "error",
                "fetch.wait.max.ms": 50,
            }
        )
        consumer.assign(self._positions(begin, found, missing))
        while any(missing.values()):
            messages = consumer.consume(min(sum(missing.values()), 10_000), _DEADLINE_S)
            assert messages, f"not consumed in time: {missing}"
            is_cut = False
            for message in messages:
                place = Place(message.topic(), message.partition())
                if message.error() is not None:
                    self._assert_aged(place, begin[place] + len(found[place]), message.error())
                    begin[place] = self._start_of(place)
                    found[place] = []
                    missing[place] = ends[place] - begin[place]
                    is_cut = True
                    continue
                if not missing.get(place):
                    continue
                entries = found[place]
                assert message.offset() == begin[place] + len(entries), f"{place}: a gap"
                entries.append(entry_of(message.value()))
                missing[place] -= 1
            if is_cut:
                consumer.assign(self._positions(begin, found, missing))
        consumer.close()
        return found

    @staticmethod
    def _positions(
        begin: dict[Place, int], found: dict[Place, list[Entry]], missing: dict[Place, int]
    ) -> list[TopicPartition]:
        return [
            TopicPartition(place.topic, place.partition, begin[place] + len(found[place]))
            for place, count in missing.items()
            if count
        ]

    def _start_of(self, place: Place) -> int:
        with RawClient(self._broker.address) as client:
            return latest(client, [place], _EARLIEST)[place]

    def _assert_aged(self, place: Place, offset: int, error: KafkaError) -> None:
        """Check that what cannot be read has been taken by retention, which never rests."""
        assert place.topic == "aged" and error.code() == KafkaError._AUTO_OFFSET_RESET, error
        start = self._start_of(place)
        assert start > offset, f"{place} starts at {start}, and {offset} is not read: {error}"

    def _compare(
        self,
        place: Place,
        begin: int,
        entries: list[Entry],
        promised: dict[int, Entry],
        numbered: set[str],
    ) -> None:
        # What retention or a deletion of records took was not read: writers go on behind it.
        is_cut = begin > self._next.get(place, 0)
        met: set[str] = set()
        for offset, entry in enumerate(entries, begin):
            wanted = promised.get(offset, entry)
            assert wanted == entry, f"{place} at {offset}: {entry}, acknowledged {wanted}"
            seen = self._seen.setdefault(entry.writer, Seen())
            if is_cut and entry.writer not in met and entry.number > seen.highest:
                seen.last = seen.highest = entry.number - 1
                seen.overtaken.clear()
            met.add(entry.writer)
            if entry.writer not in numbered:
                seen.overtaken.update(range(seen.highest + 1, entry.number))
            elif entry.number > seen.highest + 1:
                raise AssertionError(f"{place} at {offset}: {seen.highest}, {entry}")
            seen.times_back += entry.number <= seen.last
            self.sent_again += entry.number <= seen.highest and entry.number not in seen.overtaken
            seen.overtaken.discard(entry.number)
            seen.last = entry.number
            seen.highest = max(seen.highest, entry.number)
        self.records += len(entries)

    def _check_writers(self, writers: list[Writer]) -> None:
        for writer in (*self._retired, *writers):
            seen = self._seen.get(writer.name, Seen())
            if writer in writers and seen.highest >= 0:
                assert seen.highest == writer.sent - 1, (writer.name, writer.sent)
                assert seen.last == seen.highest or not writer.kind.is_idempotent, writer.name
            assert not seen.overtaken, f"{writer.name} lacks {sorted(seen.overtaken)[:5]}"
            allowed = 0 if writer.kind.is_idempotent else self._kills
            assert seen.times_back <= allowed, f"{writer.name} went back {seen.times_back} times"

    # Files

    def _files(self) -> None:
        for attempt in range(_COPIES_MAX):
            # Retention may take a segment while the files are copied.
            try:
                self._verify(partition_files.copy(self._broker.log_dir, self._copy), is_live=True)
                return
            except (AssertionError, OSError):
                if attempt == _COPIES_MAX - 1:
                    raise
            time.sleep(0.5)

    def _verify(self, log_dir: Path, *, is_live: bool = False) -> None:
        for place, path in partition_files.partitions(log_dir).items():
            for batch in partition_files.batches(path):
                if batch.producer_id >= 0:
                    owner = self.producer_ids.setdefault(batch.producer_id, str(place))
                    assert owner == str(place), f"{batch}: {owner} and {place}"
        found = read_log_dir(RealFiles(), str(log_dir))
        problems = [finding for finding in verify_log_dir(found) if finding.is_problem]
        for partition in found.partitions:
            if partition.is_kept:
                report = verify_partition(RealFiles(), partition, found.state)
                problems += [finding for finding in report.findings if finding.is_problem]
        if is_live:
            problems = [finding for finding in problems if not _is_open_index(finding)]
        assert not problems, problems[:5]

    def _ids(self) -> None:
        for producer_id in self._operator.producer_ids:
            assert producer_id not in self.producer_ids, f"{producer_id} was given twice"
            self.producer_ids[producer_id] = "asked for"
        self._operator.producer_ids.clear()
