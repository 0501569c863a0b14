"""Converts the settings of a topic, from a cluster or a command line, to those of its logs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.config.settings import BrokerSettings
from engine.config.topic_config import TopicConfig
from engine.log.log_config import LogConfig
from engine.log.topic_log_config import build_log_config

_IDLE_PRODUCER_MS: Final = 86_400_000


def log_config(overrides: Mapping[str, str]) -> LogConfig:
    """Return the settings of a topic's logs; Kafka's defaults where `overrides` has none."""
    topic = TopicConfig.of(overrides, BrokerSettings({}))
    return build_log_config(topic, producer_id_expiration_ms=_IDLE_PRODUCER_MS)
