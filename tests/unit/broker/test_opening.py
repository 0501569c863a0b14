"""Brokers are opened whole or not at all, and leave nothing when they stop."""

from __future__ import annotations

import gc
import logging
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from engine.broker.broker import Broker
from engine.broker.broker_timers import BrokerTimers
from engine.broker.close_stack import CloseStack
from engine.broker.host import BrokerHost
from engine.broker.peers import Serve
from engine.cluster.cluster import Cluster
from engine.config.settings import BrokerSettings
from engine.errors import EngineError, StorageError
from engine.host.coroutine import drive
from engine.host.memory import ManualClock, MemoryFiles, SeededEntropy
from engine.host.memory_network import MemoryListener, MemoryNetwork, MemoryTimers, MemoryWorkers
from engine.host.ports import Connection, ListenOptions
from engine.host.promise import Promise
from engine.log.directory.log_directory import LogDirectoryLocked
from engine.wire.headers import API_VERSIONS_KEY, encode_request_header
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.errors import ZnodeStoreFailed
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import Operation, OperationResult
from engine.znode.paths import broker_path
from engine.znode.store import ZnodeStore

_SESSION_MS = 18_000


class PortTaken(StorageError):
    """What a network says of a port that another listener has."""

    def __init__(self, port: int) -> None:
        super().__init__(f"port {port} is taken")
        self.port = port


class StrictNetwork(MemoryNetwork):
    """Ports are there once."""

    def listen(
        self, host: str, port: int, on_connect: Callable[[Connection], None], options: ListenOptions
    ) -> MemoryListener:
        if any(listener.port == port for listener in self.listeners):
            raise PortTaken(port)
        return super().listen(host, port, on_connect, options)


class FailingZnodes(EmbeddedZnodeClient):
    """Fails at the n-th request of a session."""

    def __init__(self, store: ZnodeStore, fails_at: int = -1) -> None:
        super().__init__(store, _SESSION_MS)
        self.requests = 0
        self._fails_at = fails_at

    def _live_session(self) -> int:
        self.requests += 1
        if self.requests == self._fails_at:
            raise ZnodeStoreFailed("the store", "write", "told to fail")
        return super()._live_session()


class SlowZnodes(EmbeddedZnodeClient):
    """Answers a registration when it is told to."""

    def __init__(self, store: ZnodeStore) -> None:
        super().__init__(store, _SESSION_MS)
        self.answered: Promise[None] = Promise()

    async def multi(self, operations: Sequence[Operation]) -> list[OperationResult]:
        done = await super().multi(operations)
        if any(operation.path == broker_path(1) for operation in operations):
            await self.answered
        return done


class Machine:
    """What brokers stand on, all of it counted."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.files = MemoryFiles(clock=self.clock)
        self.network = StrictNetwork(self.timers)
        self.store = ZnodeStore(MemoryJournal(), self.clock)
        self.locks: set[str] = set()
        self.fatal: list[str] = []
        self.peers: dict[int, Serve] = {}
        self.host = BrokerHost(
            self.clock,
            self.files,
            self.network,
            self.timers,
            SeededEntropy(7),
            self._lock,
            lambda: "here",
            lambda _count: MemoryWorkers(self.timers),
        )

    def _lock(self, path: str) -> Callable[[], None]:
        if path in self.locks:
            raise LogDirectoryLocked(path)
        self.files.open(path, write=True, create=True)
        self.locks.add(path)
        return lambda: self.locks.remove(path)

    def client(self, _session_timeout_ms: int) -> EmbeddedZnodeClient:
        return EmbeddedZnodeClient(self.store, _SESSION_MS)

    def open(self, znodes: EmbeddedZnodeClient | None = None, **settings: str) -> Broker:
        opening = Broker.open(
            settings_of(1, **settings),
            self.host,
            znodes or self.client(0),
            self.peers,
            on_fatal=self.fatal.append,
        )
        return drive(opening).result()

    def left(self) -> dict[str, Any]:
        """Return everything that a broker has opened and that is still there."""
        left = {
            "listeners": self.network.listeners,
            "locks": self.locks,
            "sessions": self.store.session_ids(),
            "timers": self.timers.waiting_count,
            "peers": self.peers,
        }
        return {name: value for name, value in left.items() if value}


def settings_of(broker_id: int, /, **settings: str) -> BrokerSettings:
    given = {name.replace("_", "."): text for name, text in settings.items()}
    return BrokerSettings(
        {
            "broker.id": str(broker_id),
            "listeners": "PLAINTEXT://here:0",
            "log.dirs": f"/data{broker_id}",
            "zookeeper.connect": "here:2181",
            **given,
        }
    )


PROTOCOLS = "A:PLAINTEXT,B:PLAINTEXT"


def test_a_failure_of_any_request_to_the_store_leaves_nothing() -> None:
    machine = Machine()
    counted = FailingZnodes(machine.store)
    broker = machine.open(counted)
    drive(broker.stop()).result()
    assert counted.requests > 20
    failed = 0
    for fails_at in range(1, counted.requests):
        machine = Machine()
        try:
            broker = machine.open(FailingZnodes(machine.store, fails_at))
        except EngineError:
            failed += 1
        else:
            # It was a request of the controller module, which tries again.
            drive(broker.stop()).result()
        assert {} == machine.left(), fails_at
    assert failed > 10


class SlowRecovery(Machine):
    """The session expires while the broker opens its logs, as often as it is told to."""

    def _lock(self, path: str) -> Callable[[], None]:
        self.clock.advance(_SESSION_MS)
        self.store.expire_sessions()
        return super()._lock(path)


def test_a_broker_whose_session_expires_as_it_recovers_its_logs_begins_another() -> None:
    machine = SlowRecovery()
    broker = machine.open()
    machine.timers.run_until_idle()
    (session,) = machine.store.session_ids()
    assert session == broker.znodes.session_id
    stat = machine.store.exists(session, broker_path(1))
    assert stat is not None
    assert session == stat.ephemeral_owner
    assert broker.controller.is_active
    drive(broker.stop()).result()
    assert {} == machine.left()


def test_a_second_listener_that_cannot_be_bound_leaves_nothing_of_the_first() -> None:
    machine = Machine()
    taken = machine.open(listeners="PLAINTEXT://here:7")
    with pytest.raises(PortTaken):
        machine.open(
            log_dirs="/other",
            broker_id="2",
            listeners="A://here:1,B://here:7",
            listener_security_protocol_map=PROTOCOLS,
            inter_broker_listener_name="A",
        )
    assert [7] == [listener.port for listener in machine.network.listeners]
    assert {"/data1/.lock"} == machine.locks
    drive(taken.stop()).result()
    assert {} == machine.left()


def test_a_directory_that_is_locked_leaves_the_others_unlocked() -> None:
    machine = Machine()
    taken = machine.open()
    with pytest.raises(LogDirectoryLocked):
        machine.open(log_dirs="/other,/data1")
    assert {"/data1/.lock"} == machine.locks
    drive(taken.stop()).result()
    assert {} == machine.left()


def test_an_id_that_another_broker_has_leaves_nothing_of_the_second() -> None:
    machine = Machine()
    first = machine.open()
    with pytest.raises(EngineError, match=r"broker\.id 1 is in use"):
        machine.open(log_dirs="/other")
    assert list(machine.peers) == [1]
    drive(first.stop()).result()
    assert {} == machine.left()


def test_a_fault_of_the_code_cleans_up_too(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()

    def fail(_self: Broker) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Broker, "_join_cluster", fail)
    with pytest.raises(ZeroDivisionError):
        machine.open()
    assert {} == machine.left()


def test_a_stop_undoes_the_levels_of_loggers_and_may_come_twice() -> None:
    machine = Machine()
    broker = machine.open()
    logger = logging.getLogger("kafka.test.opening")
    logger.setLevel(logging.WARNING)
    broker.loggers.set_level("kafka.test.opening", "DEBUG")
    drive(broker.stop()).result()
    assert logging.WARNING == logger.level
    drive(broker.stop()).result()
    assert {} == machine.left()


def test_clients_are_closed_with_their_broker_and_what_waits_is_let_go() -> None:
    machine = Machine()
    broker = machine.open()
    closed: list[str] = []
    client = machine.network.connect("here", broker.ports["PLAINTEXT"])
    client.on_close = closed.append
    machine.timers.run_until_idle()
    drive(broker.stop()).result()
    machine.timers.run_until_idle()
    assert ["closed by the peer"] == closed
    assert 0 == broker.server.client_count
    assert {} == machine.left()


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_a_broker_of_a_cluster_that_does_not_open_closes_those_before_it(failing: int) -> None:
    machine = Machine()

    def settings(broker_id: int, _port: int | None) -> BrokerSettings:
        return settings_of(broker_id, **({"log_dirs": " , "} if broker_id == failing else {}))

    cluster = Cluster(machine, machine.host, settings, machine.fatal.append)
    with pytest.raises(EngineError):
        drive(cluster.open([1, 2, 3])).result()
    machine.timers.run_until_idle()
    assert {} == machine.left()
    # They were stopped in order: the next start needs no recovery.
    for broker_id in range(1, failing):
        assert machine.files.exists(f"/data{broker_id}/.kafka_cleanshutdown")


def test_nobody_holds_a_broker_that_has_stopped() -> None:
    machine = Machine()
    broker = machine.open()
    machine.timers.run_until_idle()
    alive = weakref.ref(broker)
    drive(broker.stop()).result()
    machine.timers.run_until_idle()
    del broker
    gc.collect()
    assert alive() is None


def test_steps_are_undone_the_last_first_in_spite_of_any_failure() -> None:
    undone: list[str] = []
    closing = CloseStack()

    def fail() -> None:
        undone.append("fails")
        raise StorageError("not in order")

    async def wait() -> None:
        undone.append("waits")

    closing.add("first", lambda: undone.append("first"))
    closing.add("waits", wait)
    closing.add("fails", fail)
    drive(closing.run()).result()
    assert ["fails", "waits", "first"] == undone
    drive(closing.run()).result()
    assert 3 == len(undone)


def test_nothing_of_a_brokers_timers_runs_after_its_stop() -> None:
    clock = ManualClock()
    loop = MemoryTimers(clock)
    timers = BrokerTimers(loop)
    ran: list[str] = []
    timers.call_at(5, lambda: ran.append("due"))
    cancel = timers.call_at(6, lambda: ran.append("cancelled"))
    timers.call_soon(lambda: ran.append("soon"))
    cancel()
    cancel()
    clock.advance(5)
    loop.run_until_idle()
    assert ["soon", "due"] == ran
    timers.call_at(20, lambda: ran.append("late"))
    timers.call_soon(lambda: ran.append("late"))
    timers.call_from_thread(lambda: ran.append("late"))
    timers.stop()
    timers.call_at(20, lambda: ran.append("late"))
    assert 0 == loop.waiting_count
    clock.advance(50)
    loop.run_until_idle()
    assert ["soon", "due"] == ran


def test_no_request_is_served_before_the_broker_knows_its_epoch() -> None:
    machine = Machine()
    znodes = SlowZnodes(machine.store)
    opening = drive(
        Broker.open(settings_of(1), machine.host, znodes, {}, on_fatal=machine.fatal.append)
    )
    machine.timers.run_until_idle()
    (listener,) = machine.network.listeners
    replies: list[bytes] = []
    client = machine.network.connect("here", listener.port)
    client.on_frame = lambda frame: replies.append(bytes(frame))
    client.send([encode_request_header(API_VERSIONS_KEY, 0, 5, "tester")])
    machine.timers.run_until_idle()
    assert not opening.is_kept
    assert [] == replies
    znodes.answered.keep(None)
    machine.timers.run_until_idle()
    assert opening.result().epoch >= 0
    assert 1 == len(replies)
