"""Parse options like Kafka's tools: long names without abbreviation, any text as value.

`--name value`, `--name=value` and `-name value` are the same; arguments without an option are
ignored, and so is the value of a flag. The next argument is an optional value unless it looks like
an option, and an optional number if it is a number. A repeated option, or a value that is not a
number, is reported only when the value is used: an option that the action does not allow is
reported first.

Source: joptsimple 5.0.4 as CommandDefaultOptions sets it up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from engine.errors import EngineError
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_numbers import LONG_BITS, is_java_number
from kctl.compat.releases import Release


class OptionsRefused(EngineError):
    """The options of a call are invalid; with `shows_usage` the help is printed, too."""

    def __init__(self, message: str, *, shows_usage: bool = False) -> None:
        super().__init__(message)
        self.shows_usage = shows_usage


class ToolOption(NamedTuple):
    """An option; without a `value` placeholder it is a flag."""

    name: str
    summary: str
    value: str | None = None
    is_value_optional: bool = False
    is_number: bool = False
    #: Options of which at least one must be given, too; empty without such a rule.
    available_if: tuple[str, ...] = ()


_JOPTSIMPLE = "joptsimple"

#: Options of every tool, valid in any combination.
_FOR_HELP = ("help", "version")
HELP = ToolOption("help", "Print this help.")
VERSION = ToolOption("version", "Print the version of Kafka that is followed.")


class GivenOptions:
    """The parsed options of a call."""

    #: Arguments that belong to no option, in order.
    arguments: Sequence[str] = ()
    #: Kafka release whose tool is imitated.
    release: Release = Release.V3_9

    def __init__(
        self,
        values: dict[str, list[str]],
        occurrences: Sequence[str] = (),
        call_arguments: Sequence[str] = (),
    ) -> None:
        """Create the options of a call, with the values of each by name.

        `occurrences` are names in the order of the call; `call_arguments` are the unparsed
        arguments.
        """
        self._values = values
        #: Option names in the order of the call, including repetitions.
        self.occurrences = occurrences
        self.call_arguments = call_arguments

    @property
    def is_four(self) -> bool:
        """Return True if the tool of 4.3.0 is imitated."""
        return self.release.is_four

    def has(self, name: str) -> bool:
        """Return True if the option is given."""
        return name in self._values

    def text(self, name: str) -> str | None:
        """Return the value of an option, None without the option or a value.

        Errors: ToolFailure for several values.
        """
        found = self._values.get(name)
        if found and len(found) > 1:
            raise ToolFailure(
                f"{_JOPTSIMPLE}.MultipleArgumentsForOptionException",
                f"Found multiple arguments for option {name}, but you asked for only one",
            )
        return found[0] if found else None

    def texts(self, name: str) -> Sequence[str]:
        """Return all values of a repeatable option, in the order of the call."""
        return self._values.get(name, [])

    def needed(self, name: str) -> str:
        """Return the value of an option that is known to be given."""
        value = self.text(name)
        assert value is not None, name
        return value

    def number(self, name: str, default: int, bits: int = LONG_BITS) -> int:
        """Return the value of an option as a signed integer of `bits`, `default` without it.

        Errors: ToolFailure.
        """
        value = self.text(name)
        return default if value is None else _parse_number(name, value, bits)

    def numbers(self, name: str, bits: int = LONG_BITS) -> list[int]:
        """Return all integers of a repeatable option; raises ToolFailure."""
        return [_parse_number(name, value, bits) for value in self.texts(name)]

    def names(self) -> Sequence[str]:
        """Return the names of the given options, each once."""
        return list(self._values)


def _parse_number(name: str, value: str, bits: int) -> int:
    """Parse an option's integer of this number of bits; raises ToolFailure."""
    if not is_java_number(value, bits):
        raise ToolFailure(
            f"{_JOPTSIMPLE}.OptionArgumentConversionException",
            f"Cannot parse argument '{value}' of option {name}",
        )
    return int(value)


def parse_options(
    options: Iterable[ToolOption], call_arguments: Sequence[str], release: Release = Release.V3_9
) -> GivenOptions:
    """Parse the arguments of a tool as joptsimple does.

    Errors: OptionsRefused for an unknown or incomplete option.
    """
    known = {option.name: option for option in options}
    values: dict[str, list[str]] = {}
    occurrences: list[str] = []
    arguments: list[str] = []
    left = list(reversed(call_arguments))
    while left:
        argument = left.pop()
        if argument == "--":
            arguments += reversed(left)
            break
        if not argument.startswith("-") or argument == "-":
            arguments.append(argument)
            continue
        name, is_joined, joined = argument.removeprefix("-").removeprefix("-").partition("=")
        option = known.get(name)
        if option is None:
            raise OptionsRefused(f"{_unknown_name(argument, name)} is not a recognized option")
        occurrences.append(name)
        found = values.setdefault(name, [])
        if option.value is None:
            continue
        if is_joined:
            found.append(joined)
        elif left and _is_value(option, left[-1]):
            found.append(left.pop())
        elif not option.is_value_optional:
            raise OptionsRefused(f"Option {name} requires an argument")
    if not any(name in values for name in _FOR_HELP):
        _check_available(known, values)
    given = GivenOptions(values, occurrences, call_arguments)
    given.arguments = arguments
    given.release = release
    return given


def _unknown_name(argument: str, name: str) -> str:
    """Return the name to report: of an argument with one dash only its first letter."""
    return name if argument.startswith("--") else argument[1]


def _check_available(known: Mapping[str, ToolOption], values: Mapping[str, list[str]]) -> None:
    """Raise OptionsRefused for an option of which no required other option is given."""
    unavailable = [
        name
        for name in values
        if (needed := known[name].available_if) and not any(other in values for other in needed)
    ]
    if unavailable:
        raise OptionsRefused(
            f"Option(s) [{', '.join(unavailable)}] are unavailable given other options on the "
            "command line"
        )


def _is_value(option: ToolOption, argument: str) -> bool:
    """Return True if the argument after an option is its value; that may be optional."""
    if not option.is_value_optional:
        return True
    if option.is_number:
        return is_java_number(argument, LONG_BITS)
    return not argument.startswith("-") or argument == "-"


def refused(message: str) -> OptionsRefused:
    """Return the error for refused options, which is printed with the help."""
    return OptionsRefused(message, shows_usage=True)


def listed_names(names: Iterable[str]) -> str:
    """Return option names as a list for messages: `[a], [b]`."""
    return ", ".join(f"[{name}]" for name in names)


def require(given: GivenOptions, *names: str) -> None:
    """Raise OptionsRefused unless all the options are given."""
    for name in names:
        if not given.has(name):
            raise refused(f'Missing required argument "[{name}]"')


def exclude(given: GivenOptions, name: str, others: Iterable[str]) -> None:
    """Raise OptionsRefused if the option `name` is given together with one of `others`."""
    for other in others:
        if given.has(name) and given.has(other):
            raise refused(f'Option "[{name}]" can\'t be used with option "[{other}]"')


def usage_text(tool: str, summary: str, options: Iterable[ToolOption]) -> str:
    """Return the help of a tool: its summary, and each option with its placeholder."""
    lines = [summary, "", f"Usage: {tool} OPTIONS", ""]
    for option in options:
        value = f" {option.value}" if option.value else ""
        if option.is_value_optional:
            value = f" [{option.value}]"
        lines.append(f"  --{option.name}{value}")
        lines.append(f"      {option.summary}")
    return "\n".join(lines) + "\n"
