"""Options as Kafka's tools read them: long names alone, never shortened, values of any look.

`--name value` and `--name=value` are the same; words without an option are passed over.

Source: joptsimple 5.0.4 as CommandDefaultOptions sets it up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.errors import EngineError


class OptionsRefused(EngineError):
    """The words of a call do not fit its options; `shows_usage` where the help follows."""

    def __init__(self, message: str, *, shows_usage: bool = False) -> None:
        super().__init__(message)
        self.shows_usage = shows_usage


class ToolOption(NamedTuple):
    """One option; without a `value` name it is a flag."""

    name: str
    summary: str
    value: str | None = None
    is_number: bool = False


_NUMBER = re.compile(r"[+-]?[0-9]+")

#: What every tool has.
HELP = ToolOption("help", "Print this help.")
VERSION = ToolOption("version", "Print the version of Kafka that is followed.")


class GivenOptions:
    """The options of one call."""

    def __init__(self, values: dict[str, str | None]) -> None:
        self._values = values

    def has(self, name: str) -> bool:
        """Tell whether an option was given."""
        return name in self._values

    def text(self, name: str) -> str | None:
        """Return the value of an option, None where it was not given."""
        return self._values.get(name)

    def needed(self, name: str) -> str:
        """Return the value of an option that has been found to be there."""
        value = self._values[name]
        assert value is not None, name
        return value

    def number(self, name: str, default: int) -> int:
        """Return a number, `default` where it was not given."""
        value = self._values.get(name)
        return default if value is None else int(value)

    def names(self) -> Sequence[str]:
        """Return the names of what was given."""
        return list(self._values)


def read_options(options: Iterable[ToolOption], words: Sequence[str]) -> GivenOptions:
    """Return what a call gives; OptionsRefused for what is unknown, repeated or no number."""
    known = {option.name: option for option in options}
    values: dict[str, str | None] = {}
    left = list(reversed(words))
    while left:
        word = left.pop()
        if word == "--":
            break
        if not word.startswith("-") or word == "-":
            continue
        name, equals, joined = word.lstrip("-").partition("=")
        option = known.get(name)
        if option is None or not word.startswith("--"):
            raise OptionsRefused(f"{name} is not a recognized option")
        if option.value is None:
            if equals:
                raise OptionsRefused(f"Option {name} does not take an argument")
            values[name] = None
            continue
        if not equals and not left:
            raise OptionsRefused(f"Option {name} requires an argument")
        if name in values:
            raise OptionsRefused(
                f"Found multiple arguments for option {name}, but you asked for only one"
            )
        values[name] = _checked(option, joined if equals else left.pop())
    return GivenOptions(values)


def _checked(option: ToolOption, value: str) -> str:
    if option.is_number and not _NUMBER.fullmatch(value):
        raise OptionsRefused(f"Cannot parse argument '{value}' of option {option.name}")
    return value


def usage_text(tool: str, summary: str, options: Iterable[ToolOption]) -> str:
    """Return the help of a tool."""
    lines = [summary, "", f"Usage: {tool} OPTIONS", ""]
    for option in options:
        value = f" {option.value}" if option.value else ""
        lines.append(f"  --{option.name}{value}")
        lines.append(f"      {option.summary}")
    return "\n".join(lines) + "\n"
