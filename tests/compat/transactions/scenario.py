"""What is done to transactions of all clients at once, each with an id, a topic and a group of its own.

| cell | steps |
|---|---|
| commit | two transactions, committed |
| abort | one is aborted, one committed |
| time-out | one is left open until the coordinator aborts it, then its client commits, and goes on |
| zombie | another process of the id begins while the first one's transaction is open; the first commits |
| fenced while idle | another process of the id initializes, and the first begins a transaction |
| BROKER killed after STEP | at that step of a transaction the broker is killed, and started again 5 s later |

A step is sending, adding an offset, or committing; before the first, the id is initialized. What
fails is aborted and begun again, and where that fails it is left to another process. A cell passes
if every transaction whose commit was acknowledged is visible with read_committed, once and in its
order, and nothing else is but a commit without a known outcome, whole; if the group's offset is
that of the last commit; and if no partition is left with an open transaction.
"""  # noqa: E501 - a table

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.brokers import Cluster
from tests.compat.client_programs import ClientPrograms
from tests.compat.observer import Observer
from tests.compat.transactions.cells import Kill, Step, Victim
from tests.compat.transactions.producing_client import PARTITIONS, ProducingClient, WorkerProcess

_STATE_TOPIC: Final = "__transaction_state"
_POLL_S: Final = 0.3
_IN_SYNC_S: Final = 120.0
_DEAD_S: Final = 5.0
_TIMEOUT_MS: Final = 6_000
#: A coordinator looks for transactions over their time every 10 s.
_ABORTED_S: Final = 40.0
_CELL_S: Final = 300.0


class _KillOnce:
    """Kills a broker once all clients have come to the step, and starts it again later."""

    def __init__(self, kill: Kill, cluster: Cluster, broker_id: int, client_count: int) -> None:
        self._after = kill.after
        self._cluster = cluster
        self._broker_id = broker_id
        self._barrier = threading.Barrier(client_count, self._kill, timeout=_CELL_S)
        self.restart = threading.Timer(_DEAD_S, cluster.restart, [broker_id])

    def reached(self, step: Step) -> None:
        """Wait at the step of the kill until the broker is dead."""
        if step is self._after:
            self._barrier.wait()

    def _kill(self) -> None:
        self._cluster.kill(self._broker_id)
        self.restart.start()


class Scenario:
    """Cells of some clients on one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        broker_count: int,
        programs: ClientPrograms,
        clients: Sequence[str],
        folder: Path,
    ) -> None:
        self._cluster = cluster
        self._broker_count = broker_count
        self._programs = programs
        self._clients = clients
        self._folder = folder
        self._number = 0

    def commit(self) -> list[str]:
        """Run the cell `commit`; like the others it returns a line for each client."""

        def script(client: ProducingClient) -> None:
            worker = client.start()
            client.does(worker, "init")
            client.completes(client.completes(worker))

        return self._run("commit", script)

    def abort(self) -> list[str]:
        """Run the cell `abort`."""

        def script(client: ProducingClient) -> None:
            worker = client.start()
            client.does(worker, "init")
            self._open(client, worker)
            client.does(worker, "abort")
            client.completes(worker)

        return self._run("abort", script)

    def time_out(self) -> list[str]:
        """Run the cell `time-out`."""

        def script(client: ProducingClient) -> None:
            worker = client.start(_TIMEOUT_MS)
            client.does(worker, "init")
            values = self._open(client, worker)
            self._await_closed(client.name)
            client.commits(worker, values)
            if not client.does(worker, "abort"):
                worker.kill()
                worker = client.start()
                client.does(worker, "init")
            client.completes(worker)

        return self._run("time-out", script)

    def zombie(self) -> list[str]:
        """Run the cell `zombie`."""

        def script(client: ProducingClient) -> None:
            first, second = client.start(), client.start()
            client.does(first, "init")
            values = self._open(client, first)
            client.does(second, "init")
            client.completes(second)
            client.commits(first, values)
            client.completes(second)

        return self._run("zombie", script)

    def fenced_while_idle(self) -> list[str]:
        """Run the cell `fenced while idle`."""

        def script(client: ProducingClient) -> None:
            first, second = client.start(), client.start()
            client.does(first, "init")
            client.does(second, "init")
            values = client.values()
            # A client may learn of it as late as it commits.
            if client.does(first, "begin") and client.sends(first, values):
                client.commits(first, values)
            client.completes(second)

        return self._run("fenced while idle", script)

    def killed(self, kill: Kill) -> list[str]:
        """Run a cell in which a broker is killed."""
        killing: list[_KillOnce] = []

        def prepare(coordinator: int, leader: int) -> None:
            broker_id = coordinator if kill.victim is Victim.COORDINATOR else leader
            killing.append(_KillOnce(kill, self._cluster, broker_id, len(self._clients)))

        def script(client: ProducingClient) -> None:
            (once,) = killing
            worker = client.start()
            client.does(worker, "init")
            once.reached(Step.INIT)
            values = client.values()
            goes_on = client.does(worker, "begin") and client.sends(worker, values)
            once.reached(Step.SEND)
            goes_on = goes_on and client.adds_offset(worker)
            once.reached(Step.OFFSETS)
            goes_on = goes_on and client.commits(worker, values)
            once.reached(Step.COMMIT)
            if not goes_on and not client.does(worker, "abort"):
                worker.kill()
                worker = client.start()
                client.does(worker, "init")
            client.completes(worker)

        try:
            return self._run(kill.label, script, prepare)
        finally:
            killing[0].restart.join()

    def _open(self, client: ProducingClient, worker: WorkerProcess) -> list[str]:
        """Begin a transaction and leave it open; returns its values."""
        values = client.values()
        client.does(worker, "begin")
        client.sends(worker, values)
        client.adds_offset(worker)
        return values

    def _run(
        self,
        label: str,
        script: Callable[[ProducingClient], None],
        prepare: Callable[[int, int], None] = lambda _coordinator, _leader: None,
    ) -> list[str]:
        """Run a script with each client in a thread, and check what came of it."""
        coordinator, leader, clients = self._create(label)
        prepare(coordinator, leader)
        ends: dict[str, str] = {}

        def run(client: ProducingClient) -> None:
            try:
                script(client)
            except Exception as error:
                ends[client.client] = repr(error)

        threads = [threading.Thread(target=run, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        try:
            return [self._verdict(label, client, ends.get(client.client)) for client in clients]
        finally:
            for client in clients:
                client.end()

    def _create(self, label: str) -> tuple[int, int, list[ProducingClient]]:
        """Create the topics; returns the coordinator of all ids and the leader of all topics."""
        observer = Observer(self._cluster.bootstrap)
        self._await_in_sync(observer)
        coordinator = observer.transaction_coordinator("any")
        leader = coordinator % self._broker_count + 1
        names = {}
        for client in self._clients:
            name = ""
            while not name or observer.transaction_coordinator(name) != coordinator:
                self._number += 1
                name = f"{client}-{label.replace(' ', '-')}-{self._number}"
            names[client] = name
        replicas = sorted(
            range(1, self._broker_count + 1), key=lambda broker_id: broker_id != leader
        )
        admin = AdminClient({"bootstrap.servers": self._cluster.bootstrap, "log_level": 0})
        topics = [
            NewTopic(name, PARTITIONS, replica_assignment=[replicas] * PARTITIONS)
            for name in names.values()
        ]
        for created in admin.create_topics(topics).values():
            created.result()
        return coordinator, leader, [self._client(*row) for row in names.items()]

    def _client(self, client: str, name: str) -> ProducingClient:
        return ProducingClient(client, self._programs, self._cluster.bootstrap, name, self._folder)

    def _await_in_sync(self, observer: Observer) -> None:
        def is_in_sync() -> bool:
            observer.transaction_coordinator("any")
            return observer.leaders(_STATE_TOPIC) is not None

        _await(f"{_STATE_TOPIC} is in sync", _IN_SYNC_S, is_in_sync)

    def _await_closed(self, topic: str) -> None:
        observer = Observer(self._cluster.bootstrap)

        def is_closed() -> bool:
            stable = observer.end_offsets(topic, is_committed=True)
            return stable == observer.end_offsets(topic, is_committed=False)

        _await(f"{topic} has no open transaction", _ABORTED_S, is_closed)

    def _verdict(self, label: str, client: ProducingClient, end: str | None) -> str:
        problems = [end] if end is not None else []
        try:
            self._await_closed(client.name)
            problems += _wrongly_visible(client, self._visible(client.name))
            _, offset = problems, self._committed_offset(client.name)
            if offset != client.committed_offset:
                problems.append(f"offset {offset}, not {client.committed_offset}")
        except (OSError, RuntimeError, TimeoutError) as error:
            problems.append(repr(error))
        failures = ", ".join(client.failures) or "no errors"
        word = "FAILED" if problems else "ok"
        return f"{word} {client.client}, {label}: {failures} {'; '.join(problems)}".rstrip()

    def _committed_offset(self, group: str) -> int:
        offsets = Observer(self._cluster.bootstrap).committed(group, group, 1)
        return -1 if offsets is None else offsets[0]

    def _visible(self, topic: str) -> list[list[str]]:
        """Return what read_committed sees of each partition, up to its last stable offset."""
        settings = {
            "bootstrap.servers": self._cluster.bootstrap,
            "group.id": "verifier",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "log_level": 0,
        }
        consumer = Consumer(settings)
        seen: list[list[str]] = [[] for _ in range(PARTITIONS)]
        left = set(range(PARTITIONS))
        try:
            consumer.assign([TopicPartition(topic, partition, 0) for partition in left])
            deadline_s = time.monotonic() + _ABORTED_S
            while left:
                if time.monotonic() > deadline_s:
                    raise TimeoutError(f"{topic}: {left} were not read to their end")
                message = consumer.poll(1)
                if message is None:
                    continue
                partition, value = message.partition(), message.value()
                assert partition is not None
                if message.error() is not None:
                    left.discard(partition)
                elif value is not None:
                    seen[partition].append(value.decode())
        finally:
            consumer.close()
        return seen


def _wrongly_visible(client: ProducingClient, seen: Sequence[Sequence[str]]) -> list[str]:
    """Return in words where what is visible is not what was committed."""
    problems = []
    allowed = [client.committed]
    for values in client.perhaps_committed:
        allowed += [sorted([*before, *values], key=_attempt_of) for before in allowed]
    views = [[list(values[p::PARTITIONS]) for p in range(PARTITIONS)] for values in allowed]
    if [list(values) for values in seen] not in views:
        problems.append(f"visible are {seen}, committed {client.committed}")
    return problems


def _attempt_of(value: str) -> tuple[int, int]:
    attempt, partition = value.split("-")
    return int(attempt), int(partition)


def _await(claim: str, bound_s: float, is_true: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + bound_s
    while True:
        try:
            if is_true():
                return
        except OSError:
            pass
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"it is not so that {claim}")
        time.sleep(_POLL_S)
