"""A broker whose session with the metadata store expires, on the embedded store by its clock."""

from __future__ import annotations

from engine.broker.broker import Broker
from engine.broker.host import BrokerHost
from engine.config.settings import BrokerSettings
from engine.host.coroutine import drive
from engine.host.memory import ManualClock, MemoryFiles, SeededEntropy
from engine.host.memory_network import MemoryNetwork, MemoryTimers, MemoryWorkers
from engine.limits import BROKER_SESSION_RETRY_MS
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.memory_journal import MemoryJournal
from engine.znode.model import Create, Delete, SetData
from engine.znode.store import ZnodeStore

TIMEOUT_MS = 6000
LONG_MS = 3_600_000
PATH = "/brokers/ids/1"


class Stage:
    """A broker, its store, and another session that looks at it."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timers = MemoryTimers(self.clock)
        self.store = ZnodeStore(MemoryJournal(), self.clock)
        self.me = self.store.open_session(LONG_MS)
        host = BrokerHost(
            self.clock,
            MemoryFiles(),
            MemoryNetwork(self.timers),
            self.timers,
            SeededEntropy(),
            lambda path: lambda: None,
            lambda: "here",
            lambda _count: MemoryWorkers(self.timers),
        )
        settings = BrokerSettings(
            {"broker.id": "1", "listeners": "PLAINTEXT://h:9092", "log.dirs": "/logs"}
        )
        self.fatal: list[str] = []
        znodes = EmbeddedZnodeClient(self.store, TIMEOUT_MS)
        opening = Broker.open(settings, host, znodes, {}, on_fatal=self.fatal.append)
        self.broker = drive(opening).result()
        self.timers.run_until_idle()

    def expire(self) -> None:
        self.clock.advance(TIMEOUT_MS)
        self.store.expire_sessions()

    def owner(self, path: str) -> int:
        stat = self.store.exists(self.me, path)
        return 0 if stat is None else stat.ephemeral_owner

    def stop(self) -> None:
        drive(self.broker.stop()).result()
        self.store.close()


def test_a_broker_registers_again_and_is_elected_again() -> None:
    stage = Stage()
    broker = stage.broker
    before, session = broker.epoch, broker.znodes.session_id
    assert broker.controller.is_active
    assert broker.controller.epoch == 1
    stage.expire()
    assert stage.owner(PATH) == stage.owner("/controller") == 0
    stage.timers.run_until_idle()
    assert stage.owner(PATH) == stage.owner("/controller") == broker.znodes.session_id != session
    assert broker.epoch > before
    assert broker.controller.is_active
    assert broker.controller.epoch == 2
    stage.stop()


def test_another_controller_is_accepted_meanwhile() -> None:
    stage = Stage()
    stage.expire()
    store = stage.store
    store.apply(
        stage.me, Create("/controller", b'{"version":2,"brokerid":9,"timestamp":"1"}', True)
    )
    stage.timers.run_until_idle()
    assert not stage.broker.controller.is_active
    assert stage.broker.controller.controller_id == 9
    stage.stop()


def test_settings_changed_meanwhile_are_taken() -> None:
    stage = Stage()
    store, me = stage.store, stage.me
    stage.expire()
    store.apply(
        me, Create("/config/brokers/1", b'{"version":1,"config":{"log.cleaner.threads":"3"}}')
    )
    stage.timers.run_until_idle()
    assert stage.broker.live.settings.value("log.cleaner.threads") == 3
    store.apply(
        me, SetData("/config/brokers/1", b'{"version":1,"config":{"log.cleaner.threads":"2"}}')
    )
    change = b'{"version":2,"entity_path":"brokers/1"}'
    store.apply(me, Create("/config/changes/config_change_", change, False, True))
    stage.timers.run_until_idle()
    assert stage.broker.live.settings.value("log.cleaner.threads") == 2
    stage.stop()


def test_an_id_that_is_taken_is_tried_again_until_it_is_free() -> None:
    stage = Stage()
    stage.expire()
    stage.store.apply(stage.me, Create(PATH, b"{}", True))
    stage.timers.run_until_idle()
    assert stage.owner(PATH) == stage.me
    stage.store.apply(stage.me, Delete(PATH))
    stage.clock.advance(BROKER_SESSION_RETRY_MS)
    stage.timers.run_until_idle()
    assert stage.owner(PATH) == stage.broker.znodes.session_id
    stage.stop()


def test_a_stopped_broker_begins_no_session() -> None:
    stage = Stage()
    drive(stage.broker.stop()).result()
    count = len(stage.store.session_ids())
    stage.expire()
    stage.timers.run_until_idle()
    assert len(stage.store.session_ids()) == count
    assert stage.owner(PATH) == 0
