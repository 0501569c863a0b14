"""Settings of topics on the command line as their logs take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.config.settings import BrokerSettings
from engine.config.topic_config import TopicConfig, check_topic_overrides
from engine.errors import EngineError
from engine.log.log_config import LogConfig
from engine.log.topic_log_config import log_config_of
from kctl.setting_arguments import parse_setting, without_unit

_IDLE_PRODUCER_MS = 86_400_000


class TopicNotInDirs(EngineError):
    """A topic was named that has no log in the directories."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.hint = "`kctl logs dirs` shows which are there"
        super().__init__(f"no log of topic {topic} there")


def overrides_of(words: Iterable[str]) -> dict[str, str]:
    """Return the settings that words give, 7d and 50GB as numbers; raises ConfigError."""
    overrides = {}
    for word in words:
        key, value = parse_setting(word)
        number = without_unit(key, value)
        overrides[key] = value if number is None else str(number)
    check_topic_overrides(overrides, BrokerSettings({}))
    return overrides


def log_config(overrides: Mapping[str, str]) -> LogConfig:
    """Return the settings of a topic's logs, Kafka's defaults where nothing else is said."""
    topic = TopicConfig.of(overrides, BrokerSettings({}))
    return log_config_of(topic, producer_id_expiration_ms=_IDLE_PRODUCER_MS)
