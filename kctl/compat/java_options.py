"""Options as Kafka's tools parse them: long names without abbreviation, any text as value.

`--name value`, `--name=value` and `-name value` are the same; arguments without an option are
passed over, and so is a value of a flag. An optional value is the next argument unless that begins
like an option; an optional number is the next argument if that is a number. A repeated option, or a
value that is no number, is an error when the value is read: an option that the action does not
allow is reported first.

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
    """The arguments of a call do not fit its options; `shows_usage` where the help follows."""

    def __init__(self, message: str, *, shows_usage: bool = False) -> None:
        super().__init__(message)
        self.shows_usage = shows_usage


class ToolOption(NamedTuple):
    """One option; without a `value` name it is a flag."""

    name: str
    summary: str
    value: str | None = None
    is_value_optional: bool = False
    is_number: bool = False
    #: Options of which one is required besides; none without such a rule.
    available_if: tuple[str, ...] = ()


_JOPTSIMPLE = "joptsimple"

#: Options of every tool, which require no other.
_FOR_HELP = ("help", "version")
HELP = ToolOption("help", "Print this help.")
VERSION = ToolOption("version", "Print the version of Kafka that is followed.")


class GivenOptions:
    """The options of one call."""

    #: The arguments that belong to no option, in their order.
    arguments: Sequence[str] = ()
    #: Whose tool is followed.
    release: Release = Release.V3_9

    def __init__(
        self,
        values: dict[str, list[str]],
        occurrences: Sequence[str] = (),
        call_arguments: Sequence[str] = (),
    ) -> None:
        """`values` by the options' names; `call_arguments` are the unread arguments of the call."""
        self._values = values
        #: Names of options in the order of the call, repeated as often as given.
        self.occurrences = occurrences
        self.call_arguments = call_arguments

    @property
    def is_four(self) -> bool:
        """Return whether the tool of 4.3.0 is followed."""
        return self.release.is_four

    def has(self, name: str) -> bool:
        """Return whether an option was given."""
        return name in self._values

    def text(self, name: str) -> str | None:
        """Return the value of an option, None where it has none; ToolFailure for several."""
        found = self._values.get(name)
        if found and len(found) > 1:
            raise ToolFailure(
                f"{_JOPTSIMPLE}.MultipleArgumentsForOptionException",
                f"Found multiple arguments for option {name}, but you asked for only one",
            )
        return found[0] if found else None

    def texts(self, name: str) -> Sequence[str]:
        """Return all values of an option that may be repeated."""
        return self._values.get(name, [])

    def needed(self, name: str) -> str:
        """Return the value of an option whose presence the tool has checked before."""
        value = self.text(name)
        assert value is not None, name
        return value

    def number(self, name: str, default: int, bits: int = LONG_BITS) -> int:
        """Return a number, `default` without the option; ToolFailure for text that is no number."""
        value = self.text(name)
        return default if value is None else _number(name, value, bits)

    def numbers(self, name: str, bits: int = LONG_BITS) -> list[int]:
        """Return all numbers of an option; ToolFailure for text that is no number."""
        return [_number(name, value, bits) for value in self.texts(name)]

    def names(self) -> Sequence[str]:
        """Return the names of the options that were given."""
        return list(self._values)


def _number(name: str, value: str, bits: int) -> int:
    """Return an option's number of so many bits; raises ToolFailure."""
    if not is_java_number(value, bits):
        raise ToolFailure(
            f"{_JOPTSIMPLE}.OptionArgumentConversionException",
            f"Cannot parse argument '{value}' of option {name}",
        )
    return int(value)


def read_options(
    options: Iterable[ToolOption], call_arguments: Sequence[str], release: Release = Release.V3_9
) -> GivenOptions:
    """Return the options of a call; OptionsRefused for an unknown one or one without a value."""
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
    """Return the unknown name; an argument with one dash may combine one-letter options."""
    return name if argument.startswith("--") else argument[1]


def _check_available(known: Mapping[str, ToolOption], values: Mapping[str, list[str]]) -> None:
    """Raise OptionsRefused for options given without any of the options that they require."""
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
    """Return whether the argument behind an option is its value."""
    if not option.is_value_optional:
        return True
    if option.is_number:
        return is_java_number(argument, LONG_BITS)
    return not argument.startswith("-") or argument == "-"


def refused(message: str) -> OptionsRefused:
    """Return a refusal that is followed by the help."""
    return OptionsRefused(message, shows_usage=True)


def listed_names(names: Iterable[str]) -> str:
    """Return the names of options as messages list them."""
    return ", ".join(f"[{name}]" for name in names)


def require(given: GivenOptions, *names: str) -> None:
    """Raise OptionsRefused unless all options are given."""
    for name in names:
        if not given.has(name):
            raise refused(f'Missing required argument "[{name}]"')


def exclude(given: GivenOptions, name: str, others: Iterable[str]) -> None:
    """Raise OptionsRefused if an option occurs together with one of the others."""
    for other in others:
        if given.has(name) and given.has(other):
            raise refused(f'Option "[{name}]" can\'t be used with option "[{other}]"')


def usage_text(tool: str, summary: str, options: Iterable[ToolOption]) -> str:
    """Return the help of a tool."""
    lines = [summary, "", f"Usage: {tool} OPTIONS", ""]
    for option in options:
        value = f" {option.value}" if option.value else ""
        if option.is_value_optional:
            value = f" [{option.value}]"
        lines.append(f"  --{option.name}{value}")
        lines.append(f"      {option.summary}")
    return "\n".join(lines) + "\n"
