"""What Kafka says of a topic's setting that it refuses.

| wrong | message |
|---|---|
| no setting of topics | `Unknown topic config name: x` |
| not of its type | `Invalid value abc for configuration x: Not a number of type LONG` |
| too small, too large | `... Value must be at least 1`, `... Value must be no more than 1` |
| not one of the choices | `... String must be one of: compact, delete` |
| else | `Invalid value abc for configuration x: ` and our reason |

Source: ConfigDef and LogConfig of 3.9.1, and what their tools print.
"""

from __future__ import annotations

import re

from engine.config.key import ConfigKey, ConfigType, topic_keys
from engine.config.value import java_double_text
from engine.errors import ConfigError

_RANGE = re.compile(r"\[(-?[0-9.]+),\.\.\.(?:,(-?[0-9.]+))?\](?: or -1)?")
_CHOICE = re.compile(r"(?:any case )?\[(.*)\]")
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.A)
_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}


def config_message(error: ConfigError) -> str:
    """Return Kafka's words for a refused setting of a topic."""
    key = topic_keys().get(error.key)
    if key is None:
        return f"Unknown topic config name: {error.key}"
    return f"Invalid value {_shown(key, error)} for configuration {error.key}: {_why(key, error)}"


def _shown(key: ConfigKey, error: ConfigError) -> str:
    number = _number(key, str(error.value))
    if key.type is ConfigType.DOUBLE and number is not None:
        return java_double_text(number)
    return str(error.value)


def _why(key: ConfigKey, error: ConfigError) -> str:
    text = str(error.value).strip()
    if key.type is ConfigType.BOOLEAN:
        if text.lower() not in ("true", "false"):
            return "Expected value to be either true or false"
        return error.rule
    choice = _CHOICE.fullmatch(key.valid)
    limits = _RANGE.fullmatch(key.valid)
    if key.type in _BITS or key.type is ConfigType.DOUBLE:
        number = _number(key, text)
        if number is None:
            return f"Not a number of type {key.type.name}"
        return _range_rule(number, limits) or error.rule
    if choice is not None:
        return f"String must be one of: {choice.group(1)}"
    return error.rule


def _range_rule(number: float, limits: re.Match[str] | None) -> str | None:
    if limits is None:
        return None
    least, most = limits.groups()
    if number < float(least):
        return f"Value must be at least {least}"
    if most is not None and number > float(most):
        return f"Value must be no more than {most}"
    return None


def _number(key: ConfigKey, text: str) -> float | None:
    """Return a text as a number of the key's type, None if it is none."""
    if key.type is ConfigType.DOUBLE:
        try:
            return float(text)
        except ValueError:
            return None
    bits = _BITS.get(key.type)
    if bits is None or not _INTEGER.fullmatch(text):
        return None
    value = int(text)
    return value if -1 << bits - 1 <= value < 1 << bits - 1 else None
