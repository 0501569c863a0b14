"""Kafka's error messages for invalid topic settings.

| fault | message |
|---|---|
| unknown key | `Unknown topic config name: x` |
| wrong type | `Invalid value abc for configuration x: Not a number of type LONG` |
| too small, too large | `... Value must be at least 1`, `... Value must be no more than 1` |
| outside of a range that also allows -1 | `... Value must be between 1 and 9 or equal to -1` |
| not one of the choices | `... String must be one of: compact, delete` |
| contradicting settings | `conflict topic config setting x (5) > y (4)` |
| a topic with tiered storage | `Tiered Storage functionality is disabled in the broker. ...` |
| any other | `Invalid value abc for configuration x: ` and our reason |

Source: ConfigDef and LogConfig of 3.9.1, whose messages were recorded for each of these.
Differs: a number too large for a double is rejected; Kafka shows it as Infinity.
"""

from __future__ import annotations

import re

from engine.config.key import ConfigKey, ConfigType, topic_keys
from engine.config.value import format_double, parse_value
from engine.errors import ConfigError

_RANGE = re.compile(r"\[(-?[0-9.]+),\.\.\.(?:,(-?[0-9.]+))?\]( or -1)?")
_CHOICE = re.compile(r"(?:any case )?\[(.*)\]")
_INTEGERS = frozenset((ConfigType.SHORT, ConfigType.INT, ConfigType.LONG))
_MIN_LAG, _MAX_LAG = "min.compaction.lag.ms", "max.compaction.lag.ms"
_CONFLICT = re.compile(r"must not exceed max\.compaction\.lag\.ms \(([0-9]+)\)", re.A)
_REMOTE_STORAGE = "remote.storage.enable"
NO_TIERED_STORAGE = (
    "Tiered Storage functionality is disabled in the broker. "
    "Topic cannot be configured with remote log storage."
)
_REPLICA_LIST = (
    "must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
)


def config_message(error: ConfigError) -> str:
    """Return the message that Kafka's broker sends for a rejected topic setting."""
    if error.kafka_message is not None:
        return error.kafka_message
    key = topic_keys().get(error.key)
    if key is None:
        return f"Unknown topic config name: {error.key}"
    conflict = _CONFLICT.fullmatch(error.rule)
    if conflict is not None:
        most = conflict.group(1)
        return f"conflict topic config setting {_MIN_LAG} ({error.value}) > {_MAX_LAG} ({most})"
    if key.name == _REMOTE_STORAGE and str(error.value).strip().lower() == "true":
        return NO_TIERED_STORAGE
    return (
        f"Invalid value {_value_text(key, error)} for configuration {error.key}: "
        f"{_reason_text(key, error)}"
    )


def _value_text(key: ConfigKey, error: ConfigError) -> str:
    """Return the rejected value as it appears in Kafka's message."""
    text = str(error.value).strip()
    number = _parse_number(key, text)
    if key.type is ConfigType.DOUBLE and number is not None:
        return format_double(number)
    if key.type is ConfigType.BOOLEAN or (
        number is None and (key.type in _INTEGERS or key.type is ConfigType.DOUBLE)
    ):
        # Java's message has the unchanged value.
        return str(error.value)
    if key.type is ConfigType.LIST:
        elements = [element.strip() for element in text.split(",")]
        choice = _CHOICE.fullmatch(key.valid)
        if choice is None:
            return f"[{', '.join(elements)}]"
        allowed = choice.group(1).split(", ")
        return next((element for element in elements if element not in allowed), text)
    return text


def _reason_text(key: ConfigKey, error: ConfigError) -> str:
    """Return Kafka's reason why a value is invalid for this key, or the engine's own rule."""
    text = str(error.value).strip()
    if key.type is ConfigType.BOOLEAN:
        if text.lower() not in ("true", "false"):
            return "Expected value to be either true or false"
        return error.rule
    if key.type in _INTEGERS or key.type is ConfigType.DOUBLE:
        number = _parse_number(key, text)
        if number is None:
            return f"Not a number of type {key.type.name}"
        return _range_rule(number, _RANGE.fullmatch(key.valid)) or error.rule
    choice = _CHOICE.fullmatch(key.valid)
    if choice is not None:
        return f"String must be one of: {choice.group(1)}"
    if key.valid == "release":
        return f"Version {text} is not a valid version"
    if key.valid == "replicas":
        return f"{key.name} {_REPLICA_LIST}"
    return error.rule


def _range_rule(number: float, limits: re.Match[str] | None) -> str | None:
    """Return Kafka's text for a number outside of its range, None if it is inside.

    `limits` is the match of the key's range, None without one.
    """
    if limits is None:
        return None
    least, most, or_minus_one = limits.groups()
    if or_minus_one:
        return f"Value must be between {least} and {most} or equal to -1"
    if number < float(least):
        return f"Value must be at least {least}"
    if most is not None and number > float(most):
        return f"Value must be no more than {most}"
    return None


def _parse_number(key: ConfigKey, text: str) -> float | None:
    """Return a text as a number of the key's type, None if either is no number."""
    if key.type is not ConfigType.DOUBLE and key.type not in _INTEGERS:
        return None
    try:
        value = parse_value(key._replace(valid="-"), text)
    except ConfigError:
        return None
    assert isinstance(value, int | float)
    return value
