"""Members of two groups that are killed and paused, and the brokers that coordinate them.

    make soak-groups MINUTES=30      or: python -m tests.soak.kill_members --minutes 30 --seed 1

One group assigns by range: librdkafka, kafka-python and the project's own consumer, one of them a
static member. The other one rebalances cooperatively: librdkafka and the own consumer. All process
the same topic, into which an idempotent producer writes (`ClusterLoad`). A cycle kills or pauses a
member, kills, pauses or restarts a broker (the coordinator of a group, or any), or does both; a
killed member is started again, now and then only after the group has gone on without it.

What is checked:

1. after each cycle both groups get stable, and each partition has one member;
2. in the end every acknowledged record has been processed at least once, in each group;
3. along the log of `__consumer_offsets` no committed offset of a partition goes back, and none is
   above what was processed;
4. nothing is held too much (`HeldLedger`).
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from engine.client.blocking import KafkaClient
from engine.client.groups import describe_group
from engine.client.settings import parse_addresses
from engine.errors import EngineError
from engine.groups.ports import GroupRecord
from engine.groups.records import decode_group_record, is_offset, parse_committed
from engine.host.real import RealClock, RealEntropy
from engine.host.real_streams import RealStreams
from tests.soak.cluster_load import ClusterLoad, until_in_sync
from tests.soak.cluster_processes import ClusterProcesses
from tests.soak.group_member import processed
from tests.soak.held_ledger import HeldLedger

_BROKERS: Final = (1, 2, 3)
_TOPIC: Final = "processed"
_PARTITIONS: Final = 6
_OFFSETS: Final = "__consumer_offsets"
_OFFSETS_PARTITIONS: Final = 4
_DEADLINE_S: Final = 120.0
_ZOOKEEPER_SESSION_MS: Final = 3000
_SETTINGS: Final = {
    "zookeeper.session.timeout.ms": str(_ZOOKEEPER_SESSION_MS),
    "replica.lag.time.max.ms": "3000",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": str(_OFFSETS_PARTITIONS),
    # Nothing is compacted: the log keeps every commit until the end.
    "log.cleaner.enable": "false",
}
#: Within a member's session timeout of 6 s, and long after it.
_PAUSES_S: Final = (0.5, 9.0)


class MemberSlot(NamedTuple):
    """A member that there always is, by which client, and under which name if it is static."""

    group: str
    client: str
    instance: str = ""


SLOTS: Final = (
    MemberSlot("eager", "librdkafka"),
    MemberSlot("eager", "own"),
    MemberSlot("eager", "kafka-python"),
    MemberSlot("eager", "own", "static-own"),
    MemberSlot("cooperative", "librdkafka-cooperative"),
    MemberSlot("cooperative", "own-cooperative"),
    MemberSlot("cooperative", "librdkafka-cooperative", "static-librdkafka"),
)
GROUPS: Final = ("eager", "cooperative")


class Members:
    """The processes of all members, and the files of what they have processed."""

    def __init__(self, address: str, folder: Path, random_numbers: random.Random) -> None:
        self._address = address
        self._folder = folder
        self._random = random_numbers
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._lives: Counter[int] = Counter()

    def start_missing(self) -> None:
        """Start each member that does not run."""
        for index, slot in enumerate(SLOTS):
            process = self._processes.get(index)
            if process is None or process.poll() is not None:
                self._processes[index] = self._request_log_dir_changes(index, slot)

    def _request_log_dir_changes(self, index: int, slot: MemberSlot) -> subprocess.Popen[bytes]:
        self._lives[index] += 1
        path = self._folder / f"{slot.group}-{index}-{self._lives[index]}.processed"
        words = [slot.client, self._address, slot.group, _TOPIC, str(path)]
        if slot.instance:
            words.append(slot.instance)
        with (self._folder / f"member-{index}.log").open("ab") as log:
            command = [sys.executable, "-m", "tests.soak.group_member", *words]
            return subprocess.Popen(command, stdout=log, stderr=log)

    @property
    def lives_count(self) -> int:
        """Return how many processes there were."""
        return sum(self._lives.values())

    def kill_one(self) -> None:
        """Kill one member, and let its group go on without it sometimes."""
        process = self._processes[self._random.randrange(len(SLOTS))]
        process.kill()
        process.wait()
        time.sleep(self._random.choice(_PAUSES_S))

    def pause_one(self) -> None:
        """Stop one member for a while; its group may go on without it."""
        process = self._processes[self._random.randrange(len(SLOTS))]
        process.send_signal(signal.SIGSTOP)
        time.sleep(self._random.choice(_PAUSES_S))
        process.send_signal(signal.SIGCONT)

    def kill_all(self) -> None:
        """End every member."""
        for process in self._processes.values():
            process.kill()
            process.wait()

    def processed(self, group: str) -> dict[int, list[int]]:
        """Return the numbers that a group has processed, by partition."""
        return processed(sorted(self._folder.glob(f"{group}-*.processed")))


class GroupSoak:
    """A cluster, a load, members, and what happens to their processes."""

    def __init__(self, folder: Path, seed: int, per_s: int) -> None:
        self._random = random.Random(seed)
        self._cluster = ClusterProcesses(folder / "data")
        self.done: Counter[str] = Counter()
        self.address = self._cluster.start(len(_BROKERS), _SETTINGS)
        self._ledger = HeldLedger(self._cluster.log_dirs())
        self._ledger.begin(self._cluster.pids())
        self._admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        self._client = KafkaClient(
            parse_addresses(self.address),
            streams=RealStreams(),
            clock=RealClock(),
            entropy=RealEntropy(),
        )
        self.load = ClusterLoad(self.address, _TOPIC, _PARTITIONS, per_s)
        self.load.create_topic(self._admin, list(_BROKERS))
        until_in_sync(self._admin, _TOPIC, len(_BROKERS))
        self.members = Members(self.address, folder, self._random)
        self.members.start_missing()
        self.load.start()
        self.slowest_s = 0.0

    def cycle(self) -> None:
        """Disturb something, and see both groups stable again."""
        time.sleep(self._random.uniform(0.2, 2.0))
        kind = self._random.choice(("member", "pause", "broker", "coordinator", "both"))
        self.done[kind] += 1
        if kind == "pause":
            self.members.pause_one()
        if kind in ("member", "both"):
            self.members.kill_one()
        if kind in ("broker", "coordinator", "both"):
            self._disturb_broker(is_coordinator=kind == "coordinator")
        self.members.start_missing()
        until_in_sync(self._admin, _TOPIC, len(_BROKERS))
        self._until_stable()
        assert self.load.errors == []

    def _disturb_broker(self, *, is_coordinator: bool) -> None:
        broker = str(self._random.choice(_BROKERS))
        if is_coordinator:
            port = self._client.coordinator(self._random.choice(GROUPS)).port
            brokers = self._admin.list_topics(timeout=60).brokers.values()
            broker = next((str(found.id) for found in brokers if found.port == port), broker)
        what = self._random.choice(("kill", "kill", "pause", "restart"))
        if what == "restart":
            self._cluster.kctl("restart", broker)
            return
        self._cluster.kctl(what, broker)
        time.sleep(self._random.choice((0.0, 0.5, _ZOOKEEPER_SESSION_MS / 1000 + 1)))
        self._cluster.kctl("restart" if what == "kill" else "resume", broker)

    def _until_stable(self) -> None:
        """Wait until both groups are stable, with all members, each partition with one of them."""
        begun_s = time.monotonic()
        while wrong := [found for found in map(self._unstable, GROUPS) if found]:
            assert time.monotonic() < begun_s + _DEADLINE_S, wrong
            self.members.start_missing()
            time.sleep(0.2)
        self.slowest_s = max(self.slowest_s, time.monotonic() - begun_s)

    def _unstable(self, group: str) -> str:
        """Return what a group lacks; nothing if it is as it should be."""
        try:
            found = describe_group(self._client, group)
        except EngineError as error:
            return f"{group}: {error}"
        wanted = sum(slot.group == group for slot in SLOTS)
        partitions = sorted(
            place.partition for member in found.members for place in member.partitions or ()
        )
        is_stable = found.state == "Stable" and len(found.members) == wanted
        if is_stable and partitions == list(range(_PARTITIONS)):
            return ""
        return f"{group}: {found.state} with {len(found.members)} of {wanted}, has {partitions}"

    def finish(self) -> None:
        """End the load, have everything processed, and check."""
        self.load.finish()
        counts = [number + 1 for number in self.load.acknowledged]
        for group in GROUPS:
            self._until_processed(group, counts)
        self.members.kill_all()
        until_in_sync(self._admin, _OFFSETS, len(_BROKERS))
        self._check_commits(counts)
        self._ledger.check(self._cluster.pids())

    def _until_processed(self, group: str, counts: list[int]) -> None:
        """Wait until a group's offsets are the ends of the topic, and compare what it has done."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": group, "log_level": 0})
        places = [TopicPartition(_TOPIC, partition) for partition in range(_PARTITIONS)]
        end_s = time.monotonic() + _DEADLINE_S
        while (committed := [p.offset for p in consumer.committed(places, 60)]) != counts:
            assert time.monotonic() < end_s, (group, committed, counts)
            self.members.start_missing()
            time.sleep(0.5)
        consumer.close()
        numbers = self.members.processed(group)
        for partition, count in enumerate(counts):
            missing = set(range(count)) - set(numbers[partition])
            assert not missing, (group, partition, sorted(missing)[:5])
        self.done[f"{group} twice"] = sum(map(len, numbers.values())) - sum(counts)

    def _check_commits(self, counts: list[int]) -> None:
        """Check the commits of both groups in the order of the log."""
        last: dict[tuple[str, int], int] = {}
        for record in self._offset_records():
            decoded = decode_group_record(record)
            if not is_offset(decoded) or decoded.value is None:
                continue
            key = (getattr(decoded.key, "group", ""), getattr(decoded.key, "partition", -1))
            offset = parse_committed(decoded).offset
            assert last.get(key, 0) <= offset <= counts[key[1]], (key, last.get(key), offset)
            last[key] = offset
            self.done["commits"] += 1
        wanted = {(g, p): counts[p] for g in GROUPS for p in range(_PARTITIONS)}
        assert wanted == last

    def _offset_records(self) -> list[GroupRecord]:
        """Return all records of the topic of offsets, those of a partition in their order."""
        settings = {"bootstrap.servers": self.address, "group.id": "unused", "log_level": 0}
        consumer = Consumer({**settings, "enable.auto.commit": False, "enable.partition.eof": True})
        partitions = range(_OFFSETS_PARTITIONS)
        consumer.assign([TopicPartition(_OFFSETS, p, OFFSET_BEGINNING) for p in partitions])
        records: list[GroupRecord] = []
        ended: set[int | None] = set()
        end_s = time.monotonic() + _DEADLINE_S
        while len(ended) < _OFFSETS_PARTITIONS:
            assert time.monotonic() < end_s, "the topic of offsets is not read to its end"
            for message in consumer.consume(5000, 1):
                if message.error() is not None:
                    ended.add(message.partition())
                else:
                    records.append(GroupRecord(message.key() or b"", message.value()))
        consumer.close()
        return records

    def destroy(self) -> None:
        """Stop the cluster and remove it."""
        self._cluster.kctl("destroy", "-y")


def main() -> int:
    """Disturb for so many minutes and check; the data is left where that fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--per-second", type=int, default=300)
    requested = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-groups-"))
    print(f"seed {requested.seed}, data in {folder}", flush=True)
    soak = GroupSoak(folder, requested.seed, requested.per_second)
    begun_s = time.monotonic()
    cycles = 0
    try:
        while time.monotonic() - begun_s < requested.minutes * 60:
            soak.cycle()
            cycles += 1
            if cycles % 10 == 0:
                count = soak.load.acknowledged_count
                print(f"{time.monotonic() - begun_s:.0f} s, {count} records", flush=True)
        soak.finish()
    finally:
        soak.members.kill_all()
    soak.destroy()
    print(
        f"{soak.load.acknowledged_count} records processed by both groups, none missed; "
        f"{soak.members.lives_count} members, the slowest rebalance {soak.slowest_s:.1f} s; "
        f"{dict(soak.done)}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
