"""The commands of scripts.

| command | does |
|---|---|
| `brokers 1 2 3 [key=value …]` | makes a cluster of brokers with these settings |
| `topic t 1,2,3 [1,2 …] [key=value …]` | creates a topic, the replicas of each partition in the order of assignment |
| `append 1 t-0 a b [acks=all] [producer=7 sequence=0]` | appends records as a producer's at broker 1, each a batch |
| `fetch 2 3 t-0 [epoch=0]` | lets followers fetch from the leader they know, one round each |
| `read 1 t-0 0 [epoch=0]` | reads as a consumer does, from an offset on |
| `latest 1 t-0` | asks for the end as a consumer sees it |
| `pass 15000` | lets ms go by |
| `check-lag 1` | runs the task that drops followers which lag |
| `checkpoint 1` | runs the task that writes watermarks down |
| `flush 1` | makes all of a broker's logs durable |
| `roll 1 t-0` | closes the segment that a log is written to |
| `clean 1 t-0 a b [changes=3]` | rewrites the closed segments two by two without some values; the broker dies after so many renames |
| `kill 1`, `power-cut 1` | ends a process; with the power, what was not synced is lost as well |
| `start 1`, `stop 1` | starts a broker from its disk; stops one cleanly |
| `cut 1`, `heal 1` | keeps the controller's requests and the broker's proposals on their way; delivers them |
| `lose 1` | loses what is on its way to a broker that is cut off |
| `expire 1`, `rejoin 1` | the session of a broker ends by silence; it begins the next |
| `hold 1` | keeps the requests of a broker's controller where they are |
| `pause 1`, `wake 1` | the controller of a broker does nothing, nor do its requests go; they go, then it goes on |
| `depose` | deletes `/controller` |
| `elect preferred t-0`, `elect unclean t-0` | asks the controller for an election |
| `state t-0`, `records t-0`, `epochs t-0` | shows a partition in the store and at each replica; its records; its leader epochs |
| `controller` | shows who is the controller, and its epoch |
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.errors import ApiError
from engine.host.promise import Promise
from engine.kafka_errors import kafka_error
from engine.log.batch_scan import scan_batches
from engine.log.local_log import LocalLog
from engine.log.log_reader import LATEST
from engine.model import TopicPartition
from engine.records.batch import BatchView
from engine.replication.partition import ACKS_ALL, ACKS_LEADER, Partition
from engine.replication.partition_types import FetchParams, FetchSpec
from engine.replication.watermark import Isolation
from engine.znode.values import NO_LEADER
from tests.scripts.cleaning import clean
from tests.scripts.follower import fetch_once
from tests.scripts.language import BadScript
from tests.scripts.stage import Node, Stage, listed, now
from tests.unit.log.writing import sent, sent_by

_PRODUCE_TIMEOUT_MS = 60_000
_READ_BYTES = 1 << 20


class Script:
    """Runs commands, one after the other; a new one has no cluster yet."""

    def __init__(self) -> None:
        self._stage: Stage | None = None
        self._produced = 0

    def run(self, line: str) -> list[str]:
        """Do what a line says; returns what it prints, and what happened because of it."""
        verb, *words = line.split()
        command = _COMMANDS.get(verb)
        if command is None:
            raise BadScript(f"no command: {line}")
        options = dict(word.split("=", 1) for word in words if "=" in word)
        printed = command(self, [word for word in words if "=" not in word], options)
        return [*self.stage.take_notes(), *(printed or [])]

    @property
    def stage(self) -> Stage:
        """The cluster; `brokers` makes it."""
        if self._stage is None:
            raise BadScript("a script begins with `brokers`")
        return self._stage

    def _node(self, word: str) -> Node:
        node = self.stage.nodes.get(int(word))
        if node is None:
            raise BadScript(f"broker {word} is down")
        return node

    def _partition(self, node: Node, words: list[str]) -> Partition:
        return node.replicas.find(_key(words[0]))

    # A cluster and its topics

    def brokers(self, words: list[str], options: dict[str, str]) -> None:
        self._stage = Stage(**options)
        for word in words:
            self._stage.start(int(word))

    def topic(self, words: list[str], options: dict[str, str]) -> None:
        name, *replicas = words
        assigned = [tuple(map(int, word.split(","))) for word in replicas]
        self.stage.create_topic(name, assigned, options)

    # Records

    def append(self, words: list[str], options: dict[str, str]) -> list[str]:
        broker, key, *values = words
        acks = ACKS_ALL if options.get("acks") == "all" else ACKS_LEADER
        lines = []
        for number, value in enumerate(values):
            batch = memoryview(bytearray(_batch(value, number, options)))
            lines += self._appended(self._node(broker), _key(key), value, batch, acks)
        return lines

    def _appended(
        self, node: Node, key: TopicPartition, value: str, batch: memoryview, acks: int
    ) -> list[str]:
        answer = node.replicas.append_records({key: batch}, acks, _PRODUCE_TIMEOUT_MS)
        if not isinstance(answer, Promise):
            return _refusal(node, value, answer[key])
        if answer.is_kept:
            return [f"{node.broker_id}: {value} acknowledged"]
        note = self.stage.note

        def tell() -> None:
            refusal = _refusal(node, value, answer.result()[key])
            note(refusal[0] if refusal else f"{node.broker_id}: {value} acknowledged")

        answer.watch(tell)
        return [f"{node.broker_id}: {value} waits"]

    def fetch(self, words: list[str], options: dict[str, str]) -> list[str]:
        *brokers, name = words
        lines = []
        for broker in brokers:
            node = self._node(broker)
            follower = self._partition(node, [name])
            leader = self.stage.nodes.get(follower.leader_id)
            if leader is None:
                lines.append(f"{broker}: reaches no leader")
                continue
            epoch = int(options["epoch"]) if "epoch" in options else None
            lines += fetch_once(
                follower, node.replicas, leader.replicas, self.stage.clock, epoch=epoch
            )
            lines += self.stage.take_notes()
        return lines

    def read(self, words: list[str], options: dict[str, str]) -> list[str]:
        broker, name, offset = words
        epoch = int(options["epoch"]) if "epoch" in options else None
        spec = FetchSpec(int(offset), _READ_BYTES, epoch)
        answer = self._node(broker).replicas.fetch(FetchParams(max_wait_ms=0), [(_key(name), spec)])
        assert isinstance(answer, list)
        ((_, result),) = answer
        if result.error is not None:
            return [f"consumer: {result.error.name}"]
        values = _values(memoryview(result.records.read())) if result.size_bytes else []
        return [f"consumer: {' '.join(values) or 'nothing'}"]

    def latest(self, words: list[str], options: dict[str, str]) -> list[str]:
        broker, name = words
        partition = self._partition(self._node(broker), [name])
        try:
            found = partition.find_offset(LATEST, Isolation.HIGH_WATERMARK)
        except ApiError as error:
            return [f"consumer: {error.name}"]
        assert found is not None
        return [f"consumer: {found.offset}"]

    # Time and tasks

    def pass_(self, words: list[str], options: dict[str, str]) -> None:
        self.stage.pass_time(int(words[0]))

    def check_lag(self, words: list[str], options: dict[str, str]) -> None:
        for word in words:
            self._node(word).replicas.shrink_isrs()

    def checkpoint(self, words: list[str], options: dict[str, str]) -> None:
        for word in words:
            self._node(word).checkpoint()

    def flush(self, words: list[str], options: dict[str, str]) -> None:
        for log in self._node(words[0]).logs.logs.values():
            log.flush(self.stage.clock.wall_ms())

    def roll(self, words: list[str], options: dict[str, str]) -> None:
        broker, name = words
        self._partition(self._node(broker), [name]).log.roll(self.stage.clock.wall_ms())

    def clean(self, words: list[str], options: dict[str, str]) -> list[str]:
        broker, name, *values = words
        node = self._node(broker)
        log = self._partition(node, [name]).log
        last = clean(node.files, log, set(values), int(options.get("changes", "1000")))
        self.stage.kill(node.broker_id, with_its_power="power" in options)
        return [f"{broker}: dies, has renamed {last or 'nothing'}"]

    # Brokers that come and go

    def kill(self, words: list[str], options: dict[str, str]) -> None:
        for word in words:
            self.stage.kill(int(word))

    def power_cut(self, words: list[str], options: dict[str, str]) -> None:
        for word in words:
            self.stage.kill(int(word), with_its_power=True)

    def start(self, words: list[str], options: dict[str, str]) -> None:
        for word in words:
            self.stage.start(int(word))

    def stop(self, words: list[str], options: dict[str, str]) -> None:
        self.stage.stop(int(words[0]))

    def cut(self, words: list[str], options: dict[str, str]) -> None:
        self._node(words[0]).is_cut = True

    def heal(self, words: list[str], options: dict[str, str]) -> None:
        self._node(words[0]).is_cut = False
        self.stage.pass_on()

    def lose(self, words: list[str], options: dict[str, str]) -> None:
        for node in self.stage.nodes.values():
            node.requests.lose(int(words[0]))

    def expire(self, words: list[str], options: dict[str, str]) -> None:
        self.stage.expire(int(words[0]))

    def rejoin(self, words: list[str], options: dict[str, str]) -> None:
        self.stage.rejoin(int(words[0]))

    # The controller

    def hold(self, words: list[str], options: dict[str, str]) -> None:
        self._node(words[0]).requests.is_held = True

    def pause(self, words: list[str], options: dict[str, str]) -> None:
        node = self._node(words[0])
        node.timers.pause()
        node.requests.is_held = True

    def wake(self, words: list[str], options: dict[str, str]) -> None:
        node = self._node(words[0])
        node.requests.is_held = False
        node.requests.pass_on()
        node.timers.go_on()

    def depose(self, words: list[str], options: dict[str, str]) -> None:
        now(self.stage.admin.delete("/controller"))

    def elect(self, words: list[str], options: dict[str, str]) -> list[str]:
        kind, name = words
        requested = self.stage.active.controller.elect_leaders(
            [_key(name)], is_unclean=kind == "unclean"
        )
        notes = self.stage.take_notes()
        outcome = requested.result()[_key(name)]
        word = (
            f"leader {outcome.leader_id}" if outcome.code == 0 else kafka_error(outcome.code).name
        )
        return [*notes, f"{name}: {word}"]

    def controller(self, words: list[str], options: dict[str, str]) -> list[str]:
        node = self.stage.active
        return [f"controller {node.broker_id}, epoch {node.controller.epoch}"]

    # What is there

    def state(self, words: list[str], options: dict[str, str]) -> list[str]:
        key = _key(words[0])
        stored = self.stage.stored(key)
        leader = "none" if stored.leader == NO_LEADER else stored.leader
        recovering = ", recovering" if stored.leader_recovery_state else ""
        lines = [
            f"stored: leader {leader}, epoch {stored.leader_epoch}, isr {listed(stored.isr)}"
            f"{recovering}"
        ]
        for broker_id, node in sorted(self.stage.nodes.items()):
            partition = node.replicas.partitions.get(key)
            if partition is not None:
                lines.append(f"{broker_id}: {_state(partition)}")
        return lines

    def records(self, words: list[str], options: dict[str, str]) -> list[str]:
        return self._of_each(words[0], lambda log: " ".join(_values_of(log)))

    def epochs(self, words: list[str], options: dict[str, str]) -> list[str]:
        return self._of_each(
            words[0],
            lambda log: " ".join(
                f"{entry.epoch}@{entry.start_offset}" for entry in log.epochs.entries
            ),
        )

    def _of_each(self, name: str, show: Callable[[LocalLog], str]) -> list[str]:
        lines = []
        for broker_id, node in sorted(self.stage.nodes.items()):
            log = node.logs.get(_key(name))
            if log is not None:
                lines.append(f"{broker_id}: {show(log) or 'empty'}")
        return lines


_COMMANDS: dict[str, Callable[[Script, list[str], dict[str, str]], list[str] | None]] = {
    "brokers": Script.brokers,
    "topic": Script.topic,
    "append": Script.append,
    "fetch": Script.fetch,
    "read": Script.read,
    "latest": Script.latest,
    "pass": Script.pass_,
    "check-lag": Script.check_lag,
    "checkpoint": Script.checkpoint,
    "roll": Script.roll,
    "clean": Script.clean,
    "flush": Script.flush,
    "kill": Script.kill,
    "power-cut": Script.power_cut,
    "start": Script.start,
    "stop": Script.stop,
    "cut": Script.cut,
    "heal": Script.heal,
    "lose": Script.lose,
    "expire": Script.expire,
    "rejoin": Script.rejoin,
    "hold": Script.hold,
    "pause": Script.pause,
    "wake": Script.wake,
    "depose": Script.depose,
    "elect": Script.elect,
    "controller": Script.controller,
    "state": Script.state,
    "records": Script.records,
    "epochs": Script.epochs,
}


def _key(word: str) -> TopicPartition:
    topic, _, index = word.rpartition("-")
    if not topic or not index.isdigit():
        raise BadScript(f"no partition: {word}")
    return TopicPartition(topic, int(index))


def _batch(value: str, number: int, options: dict[str, str]) -> memoryview:
    if "producer" not in options:
        return sent(value=value.encode())
    sequence = int(options["sequence"]) + number
    return sent_by(int(options["producer"]), sequence, value=value.encode())


def _state(partition: Partition) -> str:
    log, in_sync = partition.log, partition.in_sync
    where = (
        f"log {log.log_start_offset}..{log.log_end_offset}, watermark {partition.high_watermark}"
    )
    if not partition.is_leader:
        leader = "nobody" if partition.leader_id == NO_LEADER else partition.leader_id
        return f"follows {leader} in epoch {partition.leader_epoch}, {where}"
    isr = f"isr {listed(in_sync.committed)}"
    if in_sync.pending is not None:
        isr += f" or {listed(in_sync.pending)}"
    return f"leads in epoch {partition.leader_epoch}, {where}, {isr}"


def _refusal(node: Node, value: str, result: Any) -> list[str]:
    if result.error is None:
        return []
    return [f"{node.broker_id}: {value} refused, {result.error.code} {result.error.name}"]


def _values_of(log: LocalLog) -> list[str]:
    """Return offset, epoch and value of each record of a log."""
    return [
        f"{record.offset}:{bytes(record.value or b'').decode()}/{batch.leader_epoch}"
        for segment in log.segments
        for _, batch in scan_batches(segment.file)
        for record in batch.records()
    ]


def _values(batches: memoryview) -> list[str]:
    values = []
    while batches:
        batch = BatchView(batches)
        values += [bytes(record.value or b"").decode() for record in batch.records()]
        batches = batches[batch.size_bytes :]
    return values
