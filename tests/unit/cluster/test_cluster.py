"""Brokers of one process that are stopped and started alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from engine.broker.broker import Broker
from engine.cluster.cluster import Cluster
from engine.config.settings import BrokerSettings
from engine.host.coroutine import drive
from engine.host.memory_network import MemoryListener, MemoryNetwork
from engine.host.ports import Connection, ListenOptions
from engine.host.promise import Promise
from engine.host.real_network import CannotListen
from engine.znode.client import ZnodeClient
from engine.znode.embedded import EmbeddedZnodeClient
from tests.unit.broker.memory_cluster import LOG_DIR, MemoryCluster


class TakenPorts(MemoryNetwork):
    """A network some of whose ports others listen on."""

    taken: frozenset[int] = frozenset()

    def listen(
        self, host: str, port: int, on_connect: Callable[[Connection], None], options: ListenOptions
    ) -> MemoryListener:
        if port in self.taken:
            raise CannotListen(host, port, "in use")
        return super().listen(host, port, on_connect, options)


class Stage:
    """A cluster in memory whose brokers are those of `Cluster`."""

    def __init__(self) -> None:
        self.memory = MemoryCluster(is_one_process=True)
        for broker_id in (3, 2, 1):
            self.memory.stop(broker_id)
        self.requested: list[tuple[int, int | None]] = []
        self.sessions: list[EmbeddedZnodeClient] = []
        self.network = TakenPorts(self.memory.timers)
        host = self.memory.host_of(1)._replace(network=self.network)
        self.cluster = Cluster(self, host, self.settings, self.memory.fatal.append)

    def client(self, session_timeout_ms: int) -> ZnodeClient:
        self.sessions.append(EmbeddedZnodeClient(self.memory.store, session_timeout_ms))
        return self.sessions[-1]

    def settings(self, broker_id: int, port: int | None) -> BrokerSettings:
        self.requested.append((broker_id, port))
        return BrokerSettings(
            {
                "broker.id": str(broker_id),
                "listeners": f"PLAINTEXT://here:{port or 0}",
                "log.dirs": f"{LOG_DIR}-{broker_id}",
                "zookeeper.connect": "here:2181",
            }
        )

    def finish(self, work: Promise[object]) -> None:
        self.memory.timers.run_until_idle()
        work.result()

    def broker(self, broker_id: int) -> Broker:
        return next(one for one in self.cluster.brokers if one.broker_id == broker_id)


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.finish(drive(stage.cluster.open([1, 2])))
    return stage


def test_a_broker_that_is_started_again_listens_where_it_did(stage: Stage) -> None:
    before = stage.cluster.addresses()
    stage.finish(drive(stage.cluster.stop(2)))
    assert {1: before[1]} == stage.cluster.addresses()
    stage.finish(drive(stage.cluster.start_again(2)))
    assert before == stage.cluster.addresses()
    assert (2, int(before[2].rpartition(":")[2])) == stage.requested[-1]


def test_a_port_that_others_took_meanwhile_is_left_to_them(stage: Stage) -> None:
    port = stage.broker(2).ports["PLAINTEXT"]
    stage.finish(drive(stage.cluster.stop(2)))
    stage.network.taken = frozenset((port,))
    stage.finish(drive(stage.cluster.start_again(2)))
    assert [(2, port), (2, None)] == stage.requested[-2:]


def test_one_that_is_started_again_knows_the_cluster(stage: Stage) -> None:
    stage.finish(drive(stage.cluster.stop(2)))
    starting = drive(stage.cluster.start_again(2))
    assert not starting.is_kept
    stage.finish(starting)
    assert {1, 2} == set(stage.broker(2).metadata_cache.brokers)
