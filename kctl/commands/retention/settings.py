"""Parse topic settings of the command line for logs."""

from __future__ import annotations

from collections.abc import Iterable

from engine.config.settings import BrokerSettings
from engine.config.topic_config import check_topic_overrides
from engine.errors import EngineError
from kctl.setting_arguments import parse_setting, without_unit


class TopicNotInDirs(EngineError):
    """A named topic has no log in the directories."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.hint = "`kctl logs dirs` shows which are there"
        super().__init__(f"no log of topic {topic} there")


def parse_overrides(arguments: Iterable[str]) -> dict[str, str]:
    """Parse KEY=VALUE topic settings of --set; 7d and 50GB become numbers. Raises ConfigError."""
    overrides = {}
    for argument in arguments:
        key, value = parse_setting(argument)
        number = without_unit(key, value)
        overrides[key] = value if number is None else str(number)
    check_topic_overrides(overrides, BrokerSettings({}))
    return overrides
