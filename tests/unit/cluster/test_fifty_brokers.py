"""Brokers on the machine itself: fifty are opened and closed, and nothing is left. Source: P4."""

from __future__ import annotations

import gc
import os
import socket
import struct
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.broker.broker import Broker
from engine.broker.host import BrokerHost, real_directory_lock
from engine.cluster.cluster import Cluster, MetadataStore
from engine.config.settings import BrokerSettings
from engine.host.coroutine import drive
from engine.host.real import RealClock, RealEntropy, RealFiles
from engine.host.real_network import RealNetwork
from engine.host.real_workers import ThreadWorkers
from tests.unit.cluster.counting_loop import CountingLoop

ROUNDS, BROKERS = 10, 5
API_VERSIONS = struct.pack(">ihhih", 10, 18, 0, 1, -1)


def _descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


class Machine:
    """A loop, a store and what brokers stand on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = RealClock()
        self.loop = CountingLoop()
        self.network = RealNetwork(self.loop, self.clock)
        self.store = MetadataStore(str(folder / "store"), self.clock, self.loop)
        self.host = BrokerHost(
            self.clock,
            RealFiles(),
            self.network,
            self.loop,
            RealEntropy(),
            real_directory_lock(),
            lambda: "localhost",
            ThreadWorkers,
        )

    def settings(self, broker_id: int) -> BrokerSettings:
        return BrokerSettings(
            {
                "broker.id": str(broker_id),
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "log.dirs": str(self.folder / f"logs{broker_id}"),
                "zookeeper.connect": "localhost:2181",
                # One that has just become the controller closes what it is asked on.
                "controlled.shutdown.retry.backoff.ms": "10",
            }
        )

    def open(self) -> list[Broker]:
        return drive(self.cluster().open(range(1, BROKERS + 1))).result().brokers

    def cluster(self) -> Cluster:
        return Cluster(
            self.store, self.host, lambda broker_id, _port: self.settings(broker_id), pytest.fail
        )

    def turn(self, count: int = 20) -> None:
        for _ in range(count):
            self.loop.call_soon(self.loop.stop)
            self.loop.run()

    def close(self) -> None:
        self.store.close()
        self.network.close()
        self.loop.close()


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    machine.close()


def _use(machine: Machine, brokers: list[Broker]) -> None:
    """Ask each broker something, let one roll a thread up, and leave a client connected."""
    clients = []
    for broker in brokers:
        client = socket.create_connection(("127.0.0.1", broker.ports["PLAINTEXT"]))
        client.settimeout(20)
        client.sendall(API_VERSIONS)
        clients.append(client)
        broker.tasks.offload("flush", lambda: None, lambda _error: None)
    machine.turn()
    for client in clients:
        assert client.recv(4)
    for broker in brokers:
        stopping = drive(broker.stop())
        stopping.watch(machine.loop.stop)
        while not stopping.is_kept:
            machine.loop.run()
        stopping.result()
    for client in clients:
        client.close()


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted in /proc")
@pytest.mark.slow
def test_fifty_brokers_that_were_open_leave_nothing(machine: Machine) -> None:
    def round_of_brokers() -> list[weakref.ref[Broker]]:
        brokers = machine.open()
        machine.turn()
        _use(machine, brokers)
        machine.turn()
        return [weakref.ref(broker) for broker in brokers]

    # What is made once in a process is made in the first round.
    round_of_brokers()
    gc.collect()
    before = (_descriptors(), machine.loop.counts())
    # A thread of an earlier test may be about to end: only those that came since count.
    threads = set(threading.enumerate())
    gone = [broker for _ in range(ROUNDS) for broker in round_of_brokers()]
    gc.collect()
    assert before == (_descriptors(), machine.loop.counts())
    assert set() == set(threading.enumerate()) - threads
    assert [] == [broker for broker in gone if broker() is not None]
    assert 0 == machine.network.connection_count


@pytest.mark.parametrize("failing", [2, 3])
def test_a_port_that_is_taken_closes_the_brokers_before_it(machine: Machine, failing: int) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"PLAINTEXT://127.0.0.1:{taken.getsockname()[1]}"

        def settings_of(broker_id: int, _port: int | None) -> BrokerSettings:
            settings = machine.settings(broker_id)
            if broker_id == failing:
                settings = BrokerSettings({**settings.static, "listeners": address})
            return settings

        # What earlier tests left to the collector is not this one's.
        gc.collect()
        before = machine.loop.counts(), _descriptors()
        cluster = Cluster(machine.store, machine.host, settings_of, pytest.fail)
        with pytest.raises(Exception, match="cannot listen"):
            drive(cluster.open([1, 2, 3])).result()
        del cluster
        gc.collect()
        assert before == (machine.loop.counts(), _descriptors())
