"""Settings on the command line: parses KEY=VALUE, and makes hints about refused settings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from kctl.arguments import UnreadableArgument, is_utf8

_SECOND, _DAY = 1000, 86_400_000
_UNITS = {
    "ms": {
        "ms": 1,
        "s": _SECOND,
        "m": 60 * _SECOND,
        "min": 60 * _SECOND,
        "h": 3600 * _SECOND,
        "d": _DAY,
        "w": 7 * _DAY,
        "y": 365 * _DAY,
    },
    "bytes": {
        f"{letter}{ending}": 1 << 10 * (power + 1)
        for power, letter in enumerate("kmgt")
        for ending in ("", "b", "ib")
    },
}
_NAMES = {"ms": "milliseconds", "bytes": "bytes"}


def settings_of(arguments: Iterable[str]) -> dict[str, str]:
    """Return the settings of KEY=VALUE arguments, the last one of a repeated key.

    Errors: UnreadableArgument.
    """
    return dict(parse_setting(argument) for argument in arguments)


def parse_setting(argument: str) -> tuple[str, str]:
    """Return the key and the value of a KEY=VALUE argument; raises UnreadableArgument.

    Spaces around both are removed; the value may be empty.
    """
    key, equals, value = argument.partition("=")
    if not key.strip() or not equals:
        raise UnreadableArgument("a setting", argument, "KEY=VALUE, as in num.partitions=3")
    if not is_utf8(argument):
        raise UnreadableArgument("a setting", argument, "a text of UTF-8")
    return key.strip(), value.strip()


def hint_on_settings(settings: Mapping[str, str | None], keys: Iterable[str]) -> str | None:
    """Return a hint about settings that a broker refused, None without any.

    `keys` are the known ones. The hint suggests the most similar key for an unknown one, and the
    plain number for a value with a unit.
    """
    from kctl.hints import did_you_mean

    names = list(keys)
    hints = []
    for key, value in settings.items():
        if key not in names:
            hints.append(did_you_mean(key, names))
        elif value is not None:
            hints.append(_hint_on_unit(key, value))
    return " ".join(hint for hint in hints if hint) or None


def without_unit(key: str, value: str) -> int | None:
    """Return a setting's value such as `7d` as a number in the key's unit, else None.

    The unit is the key's last word, ms or bytes: retention.ms=7d is 604,800,000.
    """
    number = re.fullmatch(r"([0-9]{1,15})\s*([a-z]+)", value.strip().lower())
    factor = _UNITS.get(_unit_of(key), {}).get(number[2]) if number else None
    return None if number is None or factor is None else int(number[1]) * factor


def _unit_of(key: str) -> str:
    """Return the last word of a key, which may be its unit: `ms` of `retention.ms`."""
    return key.rpartition(".")[2]


def _hint_on_unit(key: str, value: str) -> str | None:
    """Return the hint for a setting's value with a unit, which Kafka refuses.

    None for other values.
    """
    number = without_unit(key, value)
    return None if number is None else f"{key} is in {_NAMES[_unit_of(key)]}: {value} is {number}"
