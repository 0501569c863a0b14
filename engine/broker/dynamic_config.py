"""Settings that change while a broker runs: what is set now, and the znodes it comes from.

```
/config/changes ── a child more ──> DynamicConfigWatch ── re-reads the entity ──> LiveConfig
/config/topics/<t>  /config/brokers/<id>  /config/brokers/<default>                   │
                              topics' logs, the broker's rooms  <── listeners ────────┘
```

At the start everything is read, afterwards the entity that a change names. A change node older than
15 minutes is removed by any broker that sees it, so a broker whose clock is ahead can remove one
before another broker has read it. The numbers show this (`DynamicConfigWatch`), and everything is
read again. A topic is made without a change node: its settings are read by `load_topics` when the
broker first has a replica of it.

| found in a znode | done |
|---|---|
| a value that no key of its name takes | left out and logged; the others count |
| a broker's key that may not change, or not for all brokers | same |
| a password, which is encrypted | same |
| values that contradict each other | logged; the settings stay as they are |

Source: kafka.server.DynamicBrokerConfig, ZkConfigManager, TopicConfigHandler,
ZkNodeChangeNotificationListener of 3.9.1; `znodes.md` §5.
Differs: a new session with the store, or a change that was removed unread, reads everything again;
Kafka reads the changes that are there and keeps old settings of an entity whose change is gone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from engine.admin.config_admin import usable_broker_overrides
from engine.config.broker_config import BrokerConfig
from engine.config.key import topic_keys
from engine.config.settings import BrokerSettings
from engine.config.topic_config import TopicConfig
from engine.config.value import parse_value
from engine.errors import ConfigError, EngineError
from engine.host.coroutine import drive
from engine.host.ports import Clock, Timers
from engine.host.promise import Promise
from engine.limits import CONFIG_CHANGE_KEPT_MS, CONFIG_CHANGES_RETRY_MS
from engine.znode.client import ZnodeClient
from engine.znode.errors import NodeError, NoNode, SessionExpired
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.model import WatchEvent, WatchKind
from engine.znode.paths import (
    BROKER_CONFIGS,
    CONFIG,
    CONFIG_CHANGES,
    DEFAULT_ENTITY,
    TOPIC_CONFIGS,
    NotSequential,
    broker_config_path,
    config_path,
    sequence_of,
    topic_config_path,
)
from engine.znode.values import decode_config, decode_config_change

_log = logging.getLogger("kafka.server.DynamicBrokerConfig")
_changes_log = logging.getLogger("kafka.common.ZkNodeChangeNotificationListener")


class LiveConfig:
    """What a broker and its topics are set to now; listeners run after each change."""

    def __init__(self, settings: BrokerSettings) -> None:
        #: The texts behind `config`.
        self.settings = settings
        #: The checked values; a change makes a new one.
        self.config = BrokerConfig.of(settings)
        self._topics: dict[str, Mapping[str, str]] = {}
        self._topic_configs: dict[str, TopicConfig] = {}
        self._of_topics: list[Callable[[str], None]] = []
        self._of_broker: list[Callable[[BrokerConfig, BrokerConfig], None]] = []

    def on_topic(self, listener: Callable[[str], None]) -> None:
        """Run with a topic's name when its own settings have changed."""
        self._of_topics.append(listener)

    def on_broker(self, listener: Callable[[BrokerConfig, BrokerConfig], None]) -> None:
        """Run with the old and the new values when the broker's have changed.

        Topics go by a broker's values where they have none: their configs may have changed too.
        """
        self._of_broker.append(listener)

    def topic_overrides(self, topic: str) -> Mapping[str, str]:
        """Return what is set for a topic itself."""
        return self._topics.get(topic, {})

    def topic_config(self, topic: str) -> TopicConfig:
        """Return a topic's values, the broker's where it has none of its own."""
        config = self._topic_configs.get(topic)
        if config is None:
            config = TopicConfig.of(self.topic_overrides(topic), self.settings)
            self._topic_configs[topic] = config
        return config

    def set_topic(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Take what is set for a topic now; what is not usable is left out and logged."""
        usable = _usable_for_topic(topic, overrides)
        if usable == self.topic_overrides(topic):
            return
        if usable:
            self._topics[topic] = usable
        else:
            del self._topics[topic]
        self._topic_configs.pop(topic, None)
        for listener in self._of_topics:
            listener(topic)

    def keep_topics(self, topics: Iterable[str]) -> None:
        """Forget the settings of all other topics: they are gone."""
        kept = set(topics)
        for topic in [name for name in self._topics if name not in kept]:
            self.set_topic(topic, {})

    def set_broker(self, of_broker: Mapping[str, str], of_all: Mapping[str, str]) -> None:
        """Take what is set for this broker and for all now; see the module for what is not."""
        usable = usable_broker_overrides(of_broker, _leave_out, per_broker=True)
        usable_of_all = usable_broker_overrides(of_all, _leave_out, per_broker=False)
        if (usable, usable_of_all) == (
            self.settings.dynamic_broker,
            self.settings.dynamic_default,
        ):
            return
        settings = self.settings.with_dynamic(usable, usable_of_all)
        try:
            config = BrokerConfig.of(settings)
        except ConfigError as error:
            _log.error("The broker's settings stay as they are: %s", error)
            return
        old, self.config, self.settings = self.config, config, settings
        self._topic_configs.clear()
        for listener in self._of_broker:
            listener(old, config)


def _usable_for_topic(topic: str, overrides: Mapping[str, str]) -> dict[str, str]:
    usable = {}
    for name, text in overrides.items():
        key = topic_keys().get(name)
        try:
            if key is None:
                raise ConfigError(name, text, "is no setting of topics")
            parse_value(key, text)
            usable[name] = text
        except ConfigError as error:
            _log.error("A setting of topic %s is left out: %s", topic, error)
    return usable


def _leave_out(error: ConfigError) -> None:
    _log.error("A dynamic setting is left out: %s", error)


class SettingsClosed(EngineError):
    """Settings of a topic were read for a broker that has stopped meanwhile."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"the settings of {topic} are not needed any more: the broker has stopped")
        self.topic = topic


class DynamicConfigWatch:
    """Keeps a LiveConfig equal to the znodes.

    Changes are numbered without gaps, and the stat of their parent counts all that were ever made.
    A number at or above `_next_change` without a node is a change that another broker removed.
    """

    def __init__(
        self,
        znodes: ZnodeClient,
        broker_id: int,
        live: LiveConfig,
        *,
        clock: Clock,
        timers: Timers,
    ) -> None:
        self._znodes = znodes
        self._broker_id = broker_id
        self._live = live
        self._clock = clock
        self._timers = timers
        #: The number that the first change not applied yet has, or will have.
        self._next_change = 0
        #: When each change node that is there was made.
        self._made_ms: dict[str, int] = {}
        self._is_due = False
        self._is_reading = False
        #: Whether a change was told while others were read.
        self._is_behind = False
        self._is_stopped = True
        self._cancel: Callable[[], None] = lambda: None

    # Starting

    async def start(self) -> None:
        """Read everything and watch for changes; to be called again with each new session.

        Errors are those of the store; the broker cannot start then.
        """
        self._is_stopped = False
        self._is_reading = True
        try:
            changes = await self._watched_changes()
            self._next_change = await self._change_count()
            # The settings that are read next contain these changes.
            await self._load_everything()
            await self._purge(changes)
        finally:
            self._has_read()

    def stop(self) -> None:
        """Take no more changes."""
        self._is_stopped = True
        self._cancel()

    async def load_topics(self, topics: Iterable[str]) -> None:
        """Read the settings of topics, such as those that this broker begins to have.

        Raises SettingsClosed after a stop: what needs them must not go on then.
        """
        for topic in topics:
            settings = await self._read(topic_config_path(topic))
            if self._is_stopped:
                raise SettingsClosed(topic)
            self._live.set_topic(topic, settings)

    async def _load_everything(self) -> None:
        await self._load_broker()
        topics = await self._znodes.children(f"{CONFIG}/{TOPIC_CONFIGS}")
        await self.load_topics(topics)
        self._live.keep_topics(topics)

    async def _load_broker(self) -> None:
        of_broker = await self._read(broker_config_path(self._broker_id))
        of_all = await self._read(broker_config_path(None))
        self._live.set_broker(of_broker, of_all)

    async def _read(self, path: str) -> dict[str, str]:
        """Return an entity's settings; none if it has no node, or one that cannot be read."""
        try:
            data, _ = await self._znodes.get(path)
            return decode_config(data, path)
        except NoNode:
            return {}
        except (InvalidZnodeValue, NodeError) as error:
            _log.error("Settings are left out: %s", error)
            return {}

    # Changes

    async def _watched_changes(self) -> list[tuple[int, str]]:
        """Return the change nodes in the order they were made, and watch for more."""
        await self._znodes.watch(CONFIG_CHANGES, WatchKind.CHILDREN, self._note)
        changes = []
        for name in await self._znodes.children(CONFIG_CHANGES):
            try:
                changes.append((sequence_of(name), name))
            except NotSequential as error:
                _changes_log.warning("A node among the changes is left alone: %s", error)
        return sorted(changes)

    async def _change_count(self) -> int:
        """Return how many changes were ever made: cversion is `2 x made - present`."""
        stat = await self._znodes.exists(CONFIG_CHANGES)
        return 0 if stat is None else (stat.cversion + stat.child_count) // 2

    def _note(self, _event: WatchEvent) -> None:
        self._later()

    def _later(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._timers.call_soon(self._catch_up)

    def _catch_up(self) -> None:
        self._is_due = False
        if self._is_stopped:
            return
        if self._is_reading:
            # Two readers at once could end with the older settings.
            self._is_behind = True
            return
        work = drive(self._apply_changes())
        work.watch(lambda: self._applied(work))

    def _has_read(self) -> None:
        self._is_reading = False
        is_behind, self._is_behind = self._is_behind, False
        if is_behind:
            self._later()

    def _again_in(self, delay_ms: int) -> None:
        self._cancel()
        self._cancel = self._timers.call_at(self._clock.monotonic_ms() + delay_ms, self._later)

    def _applied(self, work: Promise[None]) -> None:
        try:
            work.result()
        except SessionExpired:
            # The next session begins with `start`.
            return
        except EngineError as error:
            _changes_log.error("Changes of settings could not be read, trying again: %s", error)
            if not self._is_stopped:
                self._again_in(CONFIG_CHANGES_RETRY_MS)

    async def _apply_changes(self) -> None:
        self._is_reading = True
        try:
            changes = await self._watched_changes()
            change_count = await self._change_count()
            new_names = [name for sequence, name in changes if sequence >= self._next_change]
            is_complete = len(new_names) >= change_count - self._next_change
            if not (is_complete and await self._apply_all(new_names)):
                _changes_log.warning("A change of settings was removed unread: reading all of them")
                await self._load_everything()
            self._next_change = change_count
            await self._purge(changes)
        finally:
            self._has_read()

    async def _apply_all(self, names: Iterable[str]) -> bool:
        """Apply changes in their order; return whether all of them were still there."""
        try:
            for name in names:
                await self._apply(f"{CONFIG_CHANGES}/{name}")
        except NoNode:
            return False
        return True

    async def _apply(self, path: str) -> None:
        data, _ = await self._znodes.get(path)
        try:
            entity_path = decode_config_change(data, path)
        except InvalidZnodeValue as error:
            _changes_log.error("A change is left out: %s", error)
            return
        kind, _, name = entity_path.partition("/")
        if kind == TOPIC_CONFIGS:
            self._live.set_topic(name, await self._read(config_path(entity_path)))
        elif kind == BROKER_CONFIGS and name in (DEFAULT_ENTITY, str(self._broker_id)):
            await self._load_broker()

    async def _purge(self, changes: list[tuple[int, str]]) -> None:
        """Remove what is older than any broker needs."""
        names = {name for _, name in changes}
        self._made_ms = {name: at for name, at in self._made_ms.items() if name in names}
        for name in names:
            if name not in self._made_ms:
                stat = await self._znodes.exists(f"{CONFIG_CHANGES}/{name}")
                if stat is not None:
                    self._made_ms[name] = stat.ctime_ms
        now_ms = self._clock.wall_ms()
        for name, made_ms in list(self._made_ms.items()):
            if now_ms - made_ms > CONFIG_CHANGE_KEPT_MS:
                del self._made_ms[name]
                try:
                    await self._znodes.delete(f"{CONFIG_CHANGES}/{name}")
                except NoNode:
                    continue
