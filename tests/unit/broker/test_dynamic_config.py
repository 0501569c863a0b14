"""Settings follow their znodes: at the start, by changes, and after trouble."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from engine.broker.dynamic_config import DynamicConfigWatch, LiveConfig
from engine.config.settings import BrokerSettings
from engine.host.coroutine import drive
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers
from engine.host.promise import Promise
from engine.limits import CONFIG_CHANGE_KEPT_MS, CONFIG_CHANGES_RETRY_MS
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.errors import ZnodeConnectionLost
from engine.znode.memory_journal import MemoryJournal
from engine.znode.paths import (
    CONFIG_CHANGE_PREFIX,
    CONFIG_CHANGES,
    PERSISTENT_PATHS,
    broker_config_path,
    topic_config_path,
)
from engine.znode.store import ZnodeStore
from engine.znode.values import encode_config, encode_config_change

STATIC = {"broker.id": "1", "zookeeper.connect": "here:2181", "num.io.threads": "8"}


class LosingClient(EmbeddedZnodeClient):
    """Loses its connection for as many reads as it is told; a read may wait, too."""

    lost = 0
    held: Promise[None] | None = None

    async def get(self, path: str) -> Any:
        held, self.held = self.held, None
        if held is not None:
            await held
        if self.lost:
            self.lost -= 1
            raise ZnodeConnectionLost("cut")
        return await super().get(path)


class Stage:
    """A broker's settings over a store, and what its rooms were told."""

    def __init__(self) -> None:
        self.clock = ManualClock(wall_ms=1_000_000)
        self.timers = MemoryTimers(self.clock)
        self.store = ZnodeStore(MemoryJournal(), self.clock)
        self.client = LosingClient(self.store, 18_000)
        self.do(self.client.connect())
        for path in PERSISTENT_PATHS:
            self.do(self.client.create(path))
        self.live = LiveConfig(BrokerSettings(STATIC))
        self.told: list[str] = []
        self.live.on_topic(self.told.append)
        self.live.on_broker(lambda old, new: self.told.append("broker"))
        self.watch = DynamicConfigWatch(
            self.client, 1, self.live, clock=self.clock, timers=self.timers
        )

    def do(self, work: Coroutine[Any, None, Any]) -> Any:
        return drive(work).result()

    def put(self, path: str, **config: str) -> None:
        """Write an entity's settings without telling anyone."""
        data = encode_config({name.replace("_", "."): text for name, text in config.items()})
        if self.do(self.client.exists(path)) is None:
            self.do(self.client.create(path, data))
        else:
            self.do(self.client.set(path, data))

    def tell(self, entity_path: str) -> None:
        data = encode_config_change(entity_path)
        self.do(self.client.create(CONFIG_CHANGE_PREFIX, data, sequential=True))

    def change(self, path: str, **config: str) -> None:
        """Write and tell, and let the broker see it."""
        self.put(path, **config)
        self.tell(path.removeprefix("/config/"))
        self.timers.run_until_idle()

    def start(self) -> None:
        self.do(self.watch.start())

    def remove_changes(self) -> None:
        for name in self.changes():
            self.do(self.client.delete(f"{CONFIG_CHANGES}/{name}"))

    def changes(self) -> Sequence[str]:
        found: Sequence[str] = self.do(self.client.children(CONFIG_CHANGES))
        return found


def test_everything_is_read_at_the_start() -> None:
    stage = Stage()
    stage.put(topic_config_path("t"), retention_ms="1000")
    stage.put(broker_config_path(1), num_io_threads="16")
    stage.put(broker_config_path(None), log_retention_ms="77")
    stage.put(broker_config_path(2), num_io_threads="5")
    stage.start()
    assert 1000 == stage.live.topic_config("t").retention_ms
    assert 77 == stage.live.topic_config("other").retention_ms
    assert 16 == stage.live.config.num_io_threads
    assert ["broker", "t"] == stage.told


def test_a_change_is_read_when_it_is_announced() -> None:
    stage = Stage()
    stage.start()
    stage.put(topic_config_path("t"), retention_ms="1000")
    stage.timers.run_until_idle()
    assert {} == stage.live.topic_overrides("t")
    stage.tell("topics/t")
    stage.timers.run_until_idle()
    stage.change(topic_config_path("t"), retention_ms="2000")
    assert 2000 == stage.live.topic_config("t").retention_ms
    assert ["t", "t"] == stage.told


def test_watchers_only_take_note() -> None:
    stage = Stage()
    stage.start()
    stage.put(topic_config_path("t"), retention_ms="1000")
    stage.tell("topics/t")
    assert [] == stage.told
    stage.timers.run_until_idle()
    assert ["t"] == stage.told


def test_a_brokers_values_stand_behind_those_of_topics() -> None:
    stage = Stage()
    stage.start()
    assert 604_800_000 == stage.live.topic_config("t").retention_ms
    stage.change(broker_config_path(1), log_retention_ms="5")
    assert 5 == stage.live.topic_config("t").retention_ms
    stage.change(broker_config_path(1))
    assert 604_800_000 == stage.live.topic_config("t").retention_ms
    assert ["broker", "broker"] == stage.told


def test_other_brokers_and_users_are_none_of_its_business() -> None:
    stage = Stage()
    stage.start()
    stage.change(broker_config_path(2), num_io_threads="9")
    stage.change("/config/users/bob", producer_byte_rate="1")
    assert [] == stage.told


def test_unchanged_partitions_are_left_out() -> None:
    stage = Stage()
    stage.start()
    stage.change(topic_config_path("t"))
    stage.change(broker_config_path(1))
    assert [] == stage.told


def test_a_topic_made_again_has_its_new_settings() -> None:
    stage = Stage()
    stage.put(topic_config_path("t"), retention_ms="1000")
    stage.start()
    stage.put(topic_config_path("t"), segment_ms="1")
    stage.do(stage.watch.load_topics(["t", "unknown"]))
    assert {"segment.ms": "1"} == stage.live.topic_overrides("t")
    assert {} == stage.live.topic_overrides("unknown")


def test_bad_settings_are_left_out_and_the_others_count(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.start()
    with caplog.at_level(logging.ERROR):
        stage.change(topic_config_path("t"), retention_ms="soon", no_such_key="1", segment_ms="9")
        stage.change(
            broker_config_path(1),
            num_io_threads="16",
            broker_id="7",
            log_retention_ms="soon",
            some_plugin_key="x",
        )
        stage.change(broker_config_path(None), advertised_listeners="PLAINTEXT://x:1")
    assert {"segment.ms": "9"} == stage.live.topic_overrides("t")
    usable = {"num.io.threads": "16", "some.plugin.key": "x"}
    assert usable == stage.live.settings.dynamic_broker
    assert {} == stage.live.settings.dynamic_default
    assert 5 == len({record.getMessage() for record in caplog.records})


def test_a_password_is_left_out_and_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage()
    stage.start()
    key = "listener.name.inside.ssl.keystore.password"
    stage.change(broker_config_path(1), **{key: "encryptor:secret"})
    assert {} == stage.live.settings.dynamic_broker
    assert "secret" not in caplog.text


def test_threads_may_have_moved_far_in_several_steps() -> None:
    stage = Stage()
    stage.put(broker_config_path(1), num_io_threads="64")
    stage.start()
    assert 64 == stage.live.config.num_io_threads


def test_values_that_contradict_each_other_change_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage()
    stage.start()
    stage.change(broker_config_path(1), log_cleaner_dedupe_buffer_size="1048576")
    assert {} == stage.live.settings.dynamic_broker
    assert "stay as they are" in caplog.text


@pytest.mark.parametrize(
    "spoil",
    [
        lambda stage: stage.do(stage.client.create("/config/topics/t", b"no json")),
        lambda stage: stage.tell("topics/a//b"),
        lambda stage: stage.tell("nothing"),
        lambda stage: stage.do(
            stage.client.create(CONFIG_CHANGE_PREFIX, b"no json", sequential=True)
        ),
        lambda stage: stage.do(stage.client.create(f"{CONFIG_CHANGES}/odd", b"{}")),
    ],
)
def test_damaged_nodes_do_not_stop_those_after_them(spoil: Callable[[Stage], None]) -> None:
    stage = Stage()
    stage.start()
    spoil(stage)
    stage.tell("topics/t")
    stage.change(topic_config_path("later"), retention_ms="1")
    assert "later" in stage.told


def test_old_changes_are_removed() -> None:
    stage = Stage()
    stage.change(topic_config_path("a"), retention_ms="1")
    stage.start()
    assert 1 == len(stage.changes())
    stage.clock.advance(CONFIG_CHANGE_KEPT_MS + 1)
    stage.client.heartbeat()
    stage.change(topic_config_path("b"), retention_ms="1")
    assert ["config_change_0000000001"] == stage.changes()


def test_a_change_that_another_broker_removed_unread_is_taken_all_the_same() -> None:
    stage = Stage()
    stage.start()
    stage.put(topic_config_path("t"), retention_ms="1000")
    stage.tell("topics/t")
    stage.remove_changes()
    stage.timers.run_until_idle()
    assert 1000 == stage.live.topic_config("t").retention_ms


def test_a_change_that_is_removed_between_its_listing_and_its_reading_is_taken() -> None:
    stage = Stage()
    stage.start()
    held: Promise[None] = Promise()
    stage.client.held = held
    stage.change(topic_config_path("a"), retention_ms="1")
    stage.change(topic_config_path("b"), retention_ms="2")
    stage.remove_changes()
    held.keep(None)
    stage.timers.run_until_idle()
    assert 1 == stage.live.topic_config("a").retention_ms
    assert 2 == stage.live.topic_config("b").retention_ms


def test_a_gap_in_the_numbers_reads_all_settings_once() -> None:
    stage = Stage()
    stage.start()
    stage.put(topic_config_path("a"), retention_ms="1")
    stage.tell("topics/a")
    stage.remove_changes()
    stage.put(topic_config_path("b"), retention_ms="2")
    stage.tell("topics/c")
    stage.timers.run_until_idle()
    assert ["a", "b"] == sorted(stage.told)
    stage.put(topic_config_path("b"), retention_ms="3")
    stage.tell("topics/a")
    stage.timers.run_until_idle()
    assert 2 == stage.live.topic_config("b").retention_ms


def test_a_node_with_a_number_of_another_store_stands_for_no_change_that_was_removed() -> None:
    stage = Stage()
    stage.start()
    copied = f"{CONFIG_CHANGE_PREFIX}{123:010}"
    stage.put(topic_config_path("x"), retention_ms="3")
    stage.do(stage.client.create(copied, encode_config_change("topics/x")))
    stage.timers.run_until_idle()
    assert ["x"] == stage.told
    stage.put(topic_config_path("a"), retention_ms="7")
    stage.tell("topics/a")
    stage.do(stage.client.delete(f"{CONFIG_CHANGE_PREFIX}{1:010}"))
    stage.timers.run_until_idle()
    assert 7 == stage.live.topic_config("a").retention_ms


def test_a_foreign_node_with_the_next_number_hides_no_change_that_gets_it() -> None:
    stage = Stage()
    stage.start()
    foreign = f"{CONFIG_CHANGE_PREFIX}{0:010}"
    stage.do(stage.client.create(foreign, encode_config_change("topics/x")))
    stage.timers.run_until_idle()
    stage.do(stage.client.delete(foreign))
    for number in range(2):
        stage.change(topic_config_path(f"t{number}"), retention_ms="5")
        assert 5 == stage.live.topic_config(f"t{number}").retention_ms


def test_a_directory_with_fewer_changes_than_were_applied_is_read_again() -> None:
    stage = Stage()
    for number in (2, 3, 4):
        name = f"{CONFIG_CHANGE_PREFIX}{number:010}"
        stage.do(stage.client.create(name, encode_config_change("topics/x")))
    stage.start()
    stage.remove_changes()
    stage.put(topic_config_path("t"), retention_ms="5")
    stage.tell("topics/t")
    stage.timers.run_until_idle()
    assert 5 == stage.live.topic_config("t").retention_ms


@pytest.mark.parametrize("is_running", [False, True])
def test_a_node_with_a_number_of_another_store_hides_no_change(is_running: bool) -> None:
    stage = Stage()
    if is_running:
        stage.start()
    copied = f"{CONFIG_CHANGE_PREFIX}{123:010}"
    stage.do(stage.client.create(copied, encode_config_change("topics/x")))
    if not is_running:
        stage.start()
    for number in range(3):
        stage.change(topic_config_path(f"t{number}"), retention_ms="5")
        assert 5 == stage.live.topic_config(f"t{number}").retention_ms


@pytest.mark.parametrize("operation", ["children", "exists"])
def test_a_change_that_is_announced_during_the_reading_of_the_changes_is_not_missed(
    operation: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stage = Stage()
    stage.start()
    real = getattr(stage.client, operation)

    async def announce(path: str) -> Any:
        """Answer, and let another change follow."""
        monkeypatch.setattr(stage.client, operation, real)
        answer = await real(path)
        stage.put(topic_config_path("b"), retention_ms="2")
        stage.tell("topics/b")
        return answer

    stage.put(topic_config_path("a"), retention_ms="1")
    stage.tell("topics/a")
    monkeypatch.setattr(stage.client, operation, announce)
    stage.timers.run_until_idle()
    assert ["a", "b"] == stage.told
    assert 2 == stage.live.topic_config("b").retention_ms
    assert "removed unread" not in caplog.text


def test_a_lost_connection_is_tried_again() -> None:
    stage = Stage()
    stage.start()
    stage.client.lost = 1
    stage.change(topic_config_path("t"), retention_ms="1000")
    assert [] == stage.told
    stage.clock.advance(CONFIG_CHANGES_RETRY_MS)
    stage.timers.run_until_idle()
    assert ["t"] == stage.told


def test_a_change_during_the_reading_of_others_waits_for_no_time() -> None:
    stage = Stage()
    stage.start()
    held: Promise[None] = Promise()
    stage.client.held = held
    stage.change(topic_config_path("a"), retention_ms="1")
    stage.change(topic_config_path("b"), retention_ms="2")
    assert [] == stage.told
    held.keep(None)
    stage.timers.run_until_idle()
    assert ["a", "b"] == stage.told


def test_a_change_during_the_start_waits_for_no_time() -> None:
    stage = Stage()
    held: Promise[None] = Promise()
    stage.client.held = held
    starting = drive(stage.watch.start())
    stage.change(topic_config_path("b"), retention_ms="2")
    held.keep(None)
    assert starting.is_kept
    stage.timers.run_until_idle()
    stage.change(topic_config_path("b"), retention_ms="3")
    assert 3 == stage.live.topic_config("b").retention_ms


def test_a_new_session_reads_everything_again() -> None:
    stage = Stage()
    stage.put(topic_config_path("gone"), retention_ms="1")
    stage.start()
    stage.do(stage.client.close())
    other = EmbeddedZnodeClient(stage.store, 18_000)
    stage.do(other.connect())
    stage.do(other.delete(topic_config_path("gone")))
    stage.do(other.create(topic_config_path("t"), encode_config({"retention.ms": "3"})))
    stage.do(stage.client.connect())
    stage.start()
    assert {} == stage.live.topic_overrides("gone")
    assert 3 == stage.live.topic_config("t").retention_ms
    stage.change(topic_config_path("t"), retention_ms="4")
    assert 4 == stage.live.topic_config("t").retention_ms


def test_nothing_is_taken_after_the_stop() -> None:
    stage = Stage()
    stage.start()
    stage.watch.stop()
    stage.change(topic_config_path("t"), retention_ms="4")
    assert [] == stage.told
