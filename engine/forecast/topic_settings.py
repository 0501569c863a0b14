"""Settings of a topic, as a cluster or a person gives them, as its logs take them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.config.settings import BrokerSettings
from engine.config.topic_config import TopicConfig
from engine.log.log_config import LogConfig
from engine.log.topic_log_config import log_config_of

_IDLE_PRODUCER_MS: Final = 86_400_000


def log_config(overrides: Mapping[str, str]) -> LogConfig:
    """Return the settings of a topic's logs, Kafka's defaults where nothing else is said."""
    topic = TopicConfig.of(overrides, BrokerSettings({}))
    return log_config_of(topic, producer_id_expiration_ms=_IDLE_PRODUCER_MS)
