"""Config values: parsing, checking and formatting as in Kafka.

```
type       parsed                                             formatted
boolean    true, false in any case                            true
int ...    decimal digits with a sign, within the type        plain digits
double     decimal, with or without an exponent               Java's Double.toString: 2.0E7
list       elements between commas, surrounding blanks removed   joined by commas
others     surrounding blanks removed                         unchanged
```

Source: org.apache.kafka.common.config.ConfigDef (parseType, convertToString, validators).
Differs: NaN and infinity are rejected as doubles; a class is not loaded, only its name is kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from engine.config.key import ConfigKey, ConfigType
from engine.errors import ConfigError

#: A parsed value; lists are tuples.
ConfigValue: TypeAlias = bool | int | float | str | tuple[str, ...] | None

#: Shown instead of a password in messages.
HIDDEN = "[hidden]"

_INTEGER = re.compile(r"[+-]?[0-9]+", re.A)
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?", re.A)
_RANGE = re.compile(r"\[(-?[0-9.]+),\.\.\.(?:,(-?[0-9.]+))?\]( or -1)?")
_CHOICE = re.compile(r"(any case )?\[(.*)\]")
#: Releases that changed formats or protocols, with their numbers of steps (IV0, IV1, …).
_RELEASE_STEPS = {
    "0.8.0": 0,
    "0.8.1": 0,
    "0.8.2": 0,
    "0.9.0": 0,
    "0.10.0": 2,
    "0.10.1": 3,
    "0.10.2": 1,
    "0.11.0": 3,
    "1.0": 1,
    "1.1": 1,
    "2.0": 2,
    "2.1": 3,
    "2.2": 2,
    "2.3": 2,
    "2.4": 2,
    "2.5": 1,
    "2.6": 1,
    "2.7": 3,
    "2.8": 2,
    "3.0": 2,
    "3.1": 1,
    "3.2": 1,
    "3.3": 4,
    "3.4": 1,
    "3.5": 3,
    "3.6": 3,
    "3.7": 5,
    "3.8": 1,
    "3.9": 1,
    "4.0": 2,
}
#: An unreleased version is valid only with its step.
_UNRELEASED = "4.0"
#: Kafka accepts empty elements too. Source: ThrottledReplicaListValidator.
_REPLICAS = re.compile(r"(?:[0-9]+:[0-9]+)?", re.A)
_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
# No 64-bit number has more digits; parsing more would only take time.
_DIGITS_MAX = 400

_Check: TypeAlias = Callable[[ConfigValue], bool]


def parse_value(key: ConfigKey, text: str | None) -> ConfigValue:
    """Return the typed value of a text and check it by the key's rule; raises ConfigError.

    A `text` of None (not set) gives None.
    """
    if text is None:
        if key.is_required:
            raise ConfigError(key.name, None, "must be given")
        return None
    value = _parse_text(key, text)
    check, rule = _create_check(key.valid)
    if not check(value):
        raise ConfigError(key.name, _text_for_message(key, text), rule)
    return value


def format_value(key: ConfigKey, value: ConfigValue) -> str | None:
    """Return a value as the text that brokers send in DescribeConfigs."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    if key.type is ConfigType.DOUBLE:
        assert isinstance(value, int | float)
        return format_double(float(value))
    return str(value)


def format_double(value: float) -> str:
    """Return a double as Java prints it: 0.5, 100.0, 2.147483647E9, Infinity, NaN."""
    if not math.isfinite(value):
        return {"inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), "NaN")
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    # The position of the decimal point, counted from the first digit that is not zero.
    places = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{places - 1}"


def _parse_text(key: ConfigKey, text: str) -> ConfigValue:
    """Return the typed value of a text, which is not checked by the key's rule.

    Raises ConfigError.
    """
    trimmed = text.strip()
    if key.type is ConfigType.BOOLEAN:
        if trimmed.lower() not in ("true", "false"):
            raise ConfigError(key.name, text, "must be true or false")
        return trimmed.lower() == "true"
    if key.type in _BITS:
        return _parse_integer(key, trimmed)
    if key.type is ConfigType.DOUBLE:
        if len(trimmed) > _DIGITS_MAX or not _DOUBLE.fullmatch(trimmed):
            raise ConfigError(key.name, text[:_DIGITS_MAX], "must be a number")
        value = float(trimmed.rstrip("dDfF"))
        if value in (float("inf"), float("-inf")):
            raise ConfigError(key.name, text, "must be a number that a double can hold")
        return value
    if key.type is ConfigType.LIST:
        return tuple(re.split(r"\s*,\s*", trimmed)) if trimmed else ()
    return trimmed


def _parse_integer(key: ConfigKey, trimmed: str) -> int:
    """Return the whole number in a text; raises ConfigError if it does not fit into the type."""
    bits = _BITS[key.type]
    if len(trimmed) <= _DIGITS_MAX and _INTEGER.fullmatch(trimmed):
        value = int(trimmed)
        if -1 << bits - 1 <= value < 1 << bits - 1:
            return value
    raise ConfigError(key.name, trimmed[:_DIGITS_MAX], f"must be a whole number of {bits} bits")


@cache
def _create_check(valid: str) -> tuple[_Check, str]:
    """Return the check for the rule `valid` of a table's row, and the rule's text for messages."""
    if valid == "-":
        return (lambda value: True), ""
    if valid == "non-empty string":
        return (lambda value: value != ""), "must not be empty"
    if valid == "release":
        return _is_release, "must be a release of Kafka such as 3.0-IV1"
    if valid == "replicas":
        return _are_replicas, "must be * or a list of partition:broker"
    numbers = _RANGE.fullmatch(valid)
    if numbers:
        return _create_range_check(*numbers.groups()), f"must be within {valid}"
    choice = _CHOICE.fullmatch(valid)
    assert choice is not None, valid
    return _create_choice_check(choice), f"must be of {valid}"


def _create_range_check(low: str, high: str | None, or_minus_one: str | None) -> _Check:
    """Return a check that a number is from `low` to `high`, inclusive, or an allowed −1."""
    least = float(low) if "." in low else int(low)
    most = None if high is None else float(high) if "." in high else int(high)

    def within(value: ConfigValue) -> bool:
        """Return True for a number in the range (inclusive), or an allowed −1."""
        assert isinstance(value, int | float)
        if or_minus_one and value == -1:
            return True
        return value >= least and (most is None or value <= most)

    return within


def _create_choice_check(choice: re.Match[str]) -> _Check:
    """Return a check that a value, or each element of a list, is one of the names in `choice`."""
    any_case, names = choice.groups()
    allowed = frozenset(names.split(", "))

    def among(value: ConfigValue) -> bool:
        """Return True if the value, or each element of a list, is one of the names."""
        if isinstance(value, tuple):
            return all(element in allowed for element in value)
        assert isinstance(value, str)
        return (value.upper() if any_case else value) in allowed

    return among


def _is_release(value: ConfigValue) -> bool:
    """Return True if a text begins with a Kafka release or one of its IV steps; more may follow."""
    assert isinstance(value, str)
    numbers = value.split(".")
    head = ".".join(numbers[: 3 if value.startswith("0.") else 2])
    release, dash, step = head.partition("-IV")
    if release not in _RELEASE_STEPS:
        return False
    if not dash:
        return release != _UNRELEASED
    return step in map(str, range(_RELEASE_STEPS[release]))


def _are_replicas(value: ConfigValue) -> bool:
    """Return True if a list of throttled replicas is `*`, or only has elements partition:broker."""
    assert isinstance(value, tuple)
    return "".join(value) == "*" or all(_REPLICAS.fullmatch(element) for element in value)


def _text_for_message(key: ConfigKey, text: str) -> str:
    """Return a setting's text for error messages, HIDDEN if it is a password."""
    return HIDDEN if key.is_sensitive else text
