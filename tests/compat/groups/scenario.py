"""What is done to the groups of some cells of a client, all of them at the same time.

1. Each group gets a topic of six partitions and three replicas (one on one broker), to which one
   producer writes with acks=all; all groups have the same broker as coordinator. Committed offsets
   are read on the way.
2. Three members start, and a fourth when these are stable.
3. The coordinator is killed, and started again after five seconds. Where it is the only broker,
   time counts from when it serves again.
4. The first member is closed by SIGTERM.
5. The second is killed; where members are static, it is started again.
6. The producer stops, and everything that was acknowledged is to be read.

A cell passes if after each event its group was stable with the expected members, with each
partition assigned once, within the session and 15 s (60 s for the start of the processes), if no
acknowledged record is missing, no committed offset went back, and no member ended by itself.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.brokers import Cluster
from tests.compat.client_programs import ClientPrograms
from tests.compat.groups.cells import Cell
from tests.compat.groups.running_group import RunningGroup
from tests.compat.observer import GroupView, Observer

_PARTITIONS: Final = 6
_REPLICAS: Final = 3
_SESSION_S: Final = 10.0
_BOUND_S: Final = _SESSION_S + 15
_START_BOUND_S: Final = 60.0
_DEAD_S: Final = 5.0
_HOLD_S: Final = 2.0
_POLL_S: Final = 0.3
_PRODUCE_S: Final = 0.04
_IN_SYNC_S: Final = 120.0
_CLOSED, _KILLED = 1, 2


class Scenario:
    """Groups of cells on one cluster."""

    def __init__(
        self, cluster: Cluster, broker_count: int, programs: ClientPrograms, folder: Path
    ) -> None:
        self._cluster = cluster
        self._broker_count = broker_count
        self._programs = programs
        self._folder = folder
        self._observer = Observer(cluster.bootstrap)
        self._is_over = threading.Event()

    def run(self, cells: Sequence[Cell]) -> list[str]:
        """Run cells, and return a line for each; it begins with ok or FAILED."""
        victim, groups = self._create(cells)
        threads = [
            threading.Thread(target=target, args=(groups,), daemon=True)
            for target in (self._produce, self._watch)
        ]
        for thread in threads:
            thread.start()
        try:
            self._change_members(groups, victim)
            self._is_over.set()
            for thread in threads:
                thread.join()
            missing = self._await_reads(groups)
            return [self._verdict(group, missing[group.name]) for group in groups]
        finally:
            self._is_over.set()
            for group in groups:
                group.end()

    def _create(self, cells: Sequence[Cell]) -> tuple[int, list[RunningGroup]]:
        """Create the topics (1); returns the coordinator of all groups as well."""
        leaders = self._offsets_leaders()
        ((victim, _),) = Counter(leaders.values()).most_common(1)
        stamp = int(time.time()) % 100_000
        groups = []
        for cell in cells:
            names = (f"{cell.label}-{stamp}-{number}" for number in range(10_000))
            name = next(n for n in names if leaders[_java_hash(n) % len(leaders)] == victim)
            groups.append(RunningGroup(cell, name, self._folder))
        admin = AdminClient({"bootstrap.servers": self._cluster.bootstrap, "log_level": 0})
        replicas = min(_REPLICAS, self._broker_count)
        topics = [NewTopic(group.name, _PARTITIONS, replicas) for group in groups]
        for created in admin.create_topics(topics).values():
            created.result()
        return victim, groups

    def _offsets_leaders(self) -> dict[int, int]:
        """Return the leaders of `__consumer_offsets`, once all of its replicas are in sync."""
        deadline_s = time.monotonic() + _IN_SYNC_S
        while time.monotonic() < deadline_s:
            try:
                self._observer.coordinator("any")
                leaders = self._observer.leaders("__consumer_offsets")
            except OSError:
                leaders = None
            if leaders is not None:
                return leaders
            time.sleep(_POLL_S)
        raise TimeoutError("__consumer_offsets is not in sync")

    def _change_members(self, groups: Sequence[RunningGroup], victim: int) -> None:
        for number in (1, 2, 3):
            self._start(groups, number)
        self._await_stable(groups, "start", lambda _: 3, _START_BOUND_S)  # (2)
        self._start(groups, 4)
        self._await_stable(groups, "join", lambda _: 4)
        self._kill(victim)  # (3)
        self._await_stable(groups, "coordinator killed", lambda _: 4, at_least_s=_BOUND_S)
        for group in groups:  # (4)
            group.members[_CLOSED].terminate()
        self._await_stable(groups, "closed", lambda _: 3)
        for group in groups:  # (5)
            group.members[_KILLED].kill()
            group.members[_KILLED].wait()
        self._start([group for group in groups if group.cell.is_static], _KILLED)
        self._await_stable(groups, "killed", lambda group: 3 if group.cell.is_static else 2)

    def _kill(self, broker_id: int) -> None:
        """Kill a broker and have it started again; wait for that where there is no other."""
        self._cluster.kill(broker_id)
        back = threading.Timer(_DEAD_S, self._cluster.restart, [broker_id])
        back.start()
        if self._broker_count == 1:
            back.join()

    def _start(self, groups: Sequence[RunningGroup], number: int) -> None:
        for group in groups:
            name = f"m{number}"
            program = self._programs.command(group.cell.client)
            arguments = group.cell.arguments(self._cluster.bootstrap, group.name, name)
            group.start(number, [*program, *arguments])

    def _produce(self, groups: Sequence[RunningGroup]) -> None:
        settings = {
            "bootstrap.servers": self._cluster.bootstrap,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 5,
            "delivery.timeout.ms": 60_000,
            "log_level": 0,
        }
        producer = Producer(settings)
        number = 0
        while not self._is_over.is_set():
            for group in groups:
                # A broker that has just started knows no topic.
                with suppress(KafkaException):
                    producer.produce(
                        group.name,
                        f"v{number}".encode(),
                        partition=number % _PARTITIONS,
                        on_delivery=_noted_in(group),
                    )
            number += 1
            producer.poll(0)
            time.sleep(_PRODUCE_S)
        producer.flush()

    def _watch(self, groups: Sequence[RunningGroup]) -> None:
        observer = Observer(self._cluster.bootstrap)
        while not self._is_over.is_set():
            for group in groups:
                try:
                    offsets = observer.committed(group.name, group.name, _PARTITIONS)
                except OSError:
                    continue
                if offsets is not None:
                    group.note_committed(offsets)
            time.sleep(_POLL_S)

    def _await_stable(
        self,
        groups: Sequence[RunningGroup],
        event: str,
        members: Callable[[RunningGroup], int],
        bound_s: float = _BOUND_S,
        at_least_s: float = 0.0,
    ) -> None:
        """Wait until each group has been as expected for a moment, or the bound has passed."""
        began_s = time.monotonic()
        since_s: dict[str, float | None] = {group.name: None for group in groups}
        while True:
            now_s = time.monotonic()
            for group in groups:
                if not self._is_stable(group, members(group)):
                    since_s[group.name] = None
                elif since_s[group.name] is None:
                    since_s[group.name] = now_s
            held = [s is not None and now_s - s >= _HOLD_S for s in since_s.values()]
            passed_s = now_s - began_s
            if (all(held) and passed_s >= at_least_s) or passed_s > bound_s + _HOLD_S:
                break
            time.sleep(_POLL_S)
        for group in groups:
            stable_s = since_s[group.name]
            group.settled_s[event] = None if stable_s is None else round(stable_s - began_s, 1)

    def _is_stable(self, group: RunningGroup, members: int) -> bool:
        view = self._view(group)
        return view[:3] == ("Stable", members, list(range(_PARTITIONS)))

    def _view(self, group: RunningGroup) -> GroupView:
        try:
            return self._observer.describe(group.name)
        except OSError as error:
            return GroupView(type(error).__name__, 0, [], -1)

    def _await_reads(self, groups: Sequence[RunningGroup]) -> Mapping[str, set[str]]:
        """Return the values that each group has not read within the bound (6)."""
        deadline_s = time.monotonic() + _BOUND_S
        while True:
            missing = {group.name: group.missing() for group in groups}
            if not any(missing.values()) or time.monotonic() > deadline_s:
                return missing
            time.sleep(_POLL_S)

    def _verdict(self, group: RunningGroup, missing: set[str]) -> str:
        early = group.ended_early({_CLOSED} if group.cell.is_static else {_CLOSED, _KILLED})
        view = self._view(group)
        passes = (
            not missing
            and not group.offsets_back
            and not early
            and group.acknowledged
            and view.partitions == list(range(_PARTITIONS))
            and all(settled_s is not None for settled_s in group.settled_s.values())
        )
        return (
            f"{'ok' if passes else 'FAILED'} {group.cell.label}: {len(group.acknowledged)} "
            f"acknowledged, {len(missing)} missing {sorted(missing)[:3]}, "
            f"offsets back {group.offsets_back[:3]}, ended {early}, at the end {view.state} with "
            f"{view.members} members, stable after {group.settled_s} s"
        )


def _noted_in(group: RunningGroup) -> Callable[[KafkaError | None, Message], None]:
    def note(error: KafkaError | None, message: Message) -> None:
        value = message.value()
        if error is None and value is not None:
            group.acknowledged.add(value.decode())

    return note


def _java_hash(text: str) -> int:
    """Return what Kafka takes modulo the number of partitions: String.hashCode, never negative."""
    code = 0
    for character in text:
        code = (31 * code + ord(character)) & 0xFFFFFFFF
    return code & 0x7FFFFFFF
