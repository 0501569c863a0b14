"""Dynamic settings of a broker and its topics: their present values, and their znodes.

```
/config/changes ── new child ─────> DynamicConfigWatch ── re-reads the entity ──> LiveConfig
/config/topics/<t>  /config/brokers/<id>  /config/brokers/<default>                   │
                              topics' logs, the broker's parts  <── listeners ────────┘
```

At the start everything is read, afterwards the entity of each change (`change_watch.py`). The
creation of a topic makes no change node: its settings are read by `load_topics` when the broker
gets its first replica of it.

| content of a znode | result |
|---|---|
| an invalid value, or an unknown key | the setting is ignored and logged |
| a broker setting that is not dynamic, or not cluster-wide | same |
| a password that cannot be decrypted | same |
| values that contradict each other | logged; all present settings are kept |

Source: kafka.server.DynamicBrokerConfig, ZkConfigManager, TopicConfigHandler of 3.9.1;
`znodes.md` §5.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping

from engine.admin.config_admin import usable_broker_overrides
from engine.broker.change_watch import ChangeReader, ChangeWatch
from engine.broker.quota_settings import QUOTA_ENTITIES, QuotaSettings
from engine.broker.stored_config import stored_config
from engine.config.broker_config import BrokerConfig
from engine.config.key import topic_keys
from engine.config.settings import BrokerSettings
from engine.config.topic_config import TopicConfig
from engine.config.value import parse_value
from engine.errors import ConfigError, EngineError
from engine.host.ports import Clock, Timers
from engine.security.password_encoder import PasswordEncoder
from engine.znode.client import ZnodeClient
from engine.znode.paths import (
    BROKER_CONFIGS,
    CONFIG,
    CONFIG_CHANGES,
    DEFAULT_ENTITY,
    TOPIC_CONFIGS,
    broker_config_path,
    config_path,
    topic_config_path,
)
from engine.znode.values import decode_config_change

_log = logging.getLogger("kafka.server.DynamicBrokerConfig")


class LiveConfig:
    """The present settings of a broker and its topics; listeners are called after each change."""

    def __init__(self, settings: BrokerSettings, passwords: PasswordEncoder | None = None) -> None:
        """Create the broker's present settings, static ones first; dynamic ones are set later.

        `passwords` decrypts passwords in znodes, None without a configured secret.
        """
        self._passwords = passwords
        #: The settings as text.
        self.settings = settings
        #: The parsed values; a change replaces the object.
        self.config = BrokerConfig.parse(settings)
        #: Overrides of topics as text, by topic.
        self._topics: dict[str, Mapping[str, str]] = {}
        #: Parsed values of topics, computed on first use; cleared when the broker's settings, which
        #: are their defaults, change.
        self._topic_configs: dict[str, TopicConfig] = {}
        #: Listeners for changes of topics, called with the topic, and of the broker, called with
        #: the old and the new configuration.
        self._of_topics: list[Callable[[str], None]] = []
        self._of_broker: list[Callable[[BrokerConfig, BrokerConfig], None]] = []

    def on_topic(self, listener: Callable[[str], None]) -> None:
        """Call `listener` with a topic's name when its overrides have changed."""
        self._of_topics.append(listener)

    def on_broker(self, listener: Callable[[BrokerConfig, BrokerConfig], None]) -> None:
        """Call `listener` with the old and new broker settings after each change.

        Topics inherit broker settings that they do not override: their settings may have changed
        too.
        """
        self._of_broker.append(listener)

    def topic_overrides(self, topic: str) -> Mapping[str, str]:
        """Return the overrides of a topic as text, empty if it has none."""
        return self._topics.get(topic, {})

    def topic_config(self, topic: str) -> TopicConfig:
        """Return the parsed settings of a topic: its own overrides, else the broker's settings."""
        config = self._topic_configs.get(topic)
        if config is None:
            config = TopicConfig.of(self.topic_overrides(topic), self.settings)
            self._topic_configs[topic] = config
        return config

    def set_topic(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Replace the overrides of a topic, and call the listeners if they differ.

        Invalid overrides are logged and ignored.
        """
        usable = _valid_topic_overrides(topic, overrides)
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
        """Remove the overrides of all topics that are not in `topics`: they were deleted."""
        kept = set(topics)
        for topic in [name for name in self._topics if name not in kept]:
            self.set_topic(topic, {})

    def set_broker(self, of_broker: Mapping[str, str], of_all: Mapping[str, str]) -> None:
        """Replace the dynamic settings of this broker (`of_broker`) and of all brokers (`of_all`).

        Invalid ones are logged and ignored; if together they contradict others, nothing changes.
        """
        usable = usable_broker_overrides(
            of_broker, _log_invalid, per_broker=True, passwords=self._passwords
        )
        usable_of_all = usable_broker_overrides(of_all, _log_invalid, per_broker=False)
        if (usable, usable_of_all) == (
            self.settings.dynamic_broker,
            self.settings.dynamic_default,
        ):
            return
        settings = self.settings.with_dynamic(usable, usable_of_all)
        try:
            config = BrokerConfig.parse(settings)
        except ConfigError as error:
            _log.error("The broker's settings stay as they are: %s", error)
            return
        old, self.config, self.settings = self.config, config, settings
        self._topic_configs.clear()
        for listener in self._of_broker:
            listener(old, config)


def _valid_topic_overrides(topic: str, overrides: Mapping[str, str]) -> dict[str, str]:
    """Return the valid overrides of a topic, as text; log the invalid ones."""
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


def _log_invalid(error: ConfigError) -> None:
    """Log the error of a dynamic setting that is invalid and therefore ignored."""
    _log.error("A dynamic setting is left out: %s", error)


class SettingsClosed(EngineError):
    """The broker stopped while the settings of a topic were read."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"the settings of {topic} are not needed any more: the broker has stopped")
        self.topic = topic


class DynamicConfigWatch:
    """Updates a LiveConfig from the znodes."""

    def __init__(
        self,
        znodes: ZnodeClient,
        broker_id: int,
        live: LiveConfig,
        *,
        quotas: QuotaSettings | None = None,
        clock: Clock,
        timers: Timers,
    ) -> None:
        """Create the watch of settings in the metadata store.

        It updates `live`, and `quotas` if given.
        """
        self._znodes = znodes
        self._broker_id = broker_id
        self._live = live
        self._quotas = quotas
        reader = ChangeReader(CONFIG_CHANGES, "settings", self._load_everything, self._apply)
        #: Watches the change nodes.
        self._changes = ChangeWatch(znodes, reader, clock=clock, timers=timers)

    async def start(self) -> None:
        """Read all settings and watch for changes; must be called again in each new session.

        Raises the errors of the store; the broker cannot start then.
        """
        await self._changes.start()

    def stop(self) -> None:
        """Stop the watch, so that later changes of settings are ignored."""
        self._changes.stop()

    async def load_topics(self, topics: Iterable[str]) -> None:
        """Read the settings of topics, for instance before the broker's first replica of a topic.

        Raises SettingsClosed after `stop`: the caller must not create logs then.
        """
        for topic in topics:
            settings = await self._read(topic_config_path(topic))
            if self._changes.is_stopped:
                raise SettingsClosed(topic)
            self._live.set_topic(topic, settings)

    async def _load_everything(self) -> None:
        """Read all broker, topic and quota settings; remove those of deleted topics."""
        await self._load_broker()
        topics = await self._znodes.children(f"{CONFIG}/{TOPIC_CONFIGS}")
        await self.load_topics(topics)
        self._live.keep_topics(topics)
        if self._quotas is not None:
            await self._quotas.load()

    async def _load_broker(self) -> None:
        """Read the settings of this broker and of all brokers, and apply both at once."""
        of_broker = await self._read(broker_config_path(self._broker_id))
        of_all = await self._read(broker_config_path(None))
        self._live.set_broker(of_broker, of_all)

    async def _read(self, path: str) -> dict[str, str]:
        """Return the settings in a znode, empty if the znode does not exist."""
        return await stored_config(self._znodes, path, subject="Settings")

    async def _apply(self, data: bytes | None, path: str) -> None:
        """Load the settings of the entity that a change node names; other brokers' are ignored."""
        entity_path = decode_config_change(data, path)
        kind, _, name = entity_path.partition("/")
        if kind == TOPIC_CONFIGS:
            self._live.set_topic(name, await self._read(config_path(entity_path)))
        elif kind == BROKER_CONFIGS and name in (DEFAULT_ENTITY, str(self._broker_id)):
            await self._load_broker()
        elif kind in QUOTA_ENTITIES and self._quotas is not None:
            await self._quotas.apply(entity_path)
