"""Commands and their options as those of Kafka's tools read them that have commands.

Names of commands and long options may be shortened while only one fits. A value may be joined:
`--name=value`, `-nvalue`.

Source: argparse4j 0.7.0 as ClusterTool sets it up.
Differs: usage is not wrapped into columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from engine.errors import EngineError
from kctl.compat.java_numbers import is_java_number
from kctl.compat.java_options import GivenOptions


class CommandOption(NamedTuple):
    """An option with a value; `is_number` where that is an Integer."""

    name: str
    short: str
    summary: str
    is_required: bool = False
    is_number: bool = False

    @property
    def shown(self) -> str:
        """Return both names, as messages have them."""
        return f"--{self.name}/-{self.short}"

    @property
    def value(self) -> str:
        """Return the name of its value in usages."""
        return self.name.upper().replace("-", "_")


class Command(NamedTuple):
    """A command: its options, and those of which exactly one is needed."""

    name: str
    summary: str
    options: tuple[CommandOption, ...]
    one_of: tuple[str, ...] = ()


class HelpRequested(EngineError):
    """The message is the help that a call asked for."""


class CommandRefused(EngineError):
    """The words of a call do not fit its command; the message is the usage and what is wrong."""


class GivenCommand(NamedTuple):
    """A command and its options."""

    command: Command
    given: GivenOptions


def read_command(
    tool: str, summary: str, commands: Sequence[Command], words: Sequence[str]
) -> GivenCommand:
    """Return the command of a call; raises HelpRequested, CommandRefused."""
    names = ",".join(command.name for command in commands)
    usage = f"usage: {tool} [-h] {{{names}}} ...\n"
    if not words:
        _refuse(usage, tool, "too few arguments")
    first = words[0]
    if first in ("-h", "--help"):
        rows = [f"  {command.name}\n      {command.summary}\n" for command in commands]
        raise HelpRequested(f"{usage}\n{summary}\n\n{''.join(rows)}")
    if first.startswith("-") and first != "-":
        _refuse(usage, tool, f"unrecognized arguments: '{first}'")
    exact = [command for command in commands if command.name == first]
    fitting = exact or [command for command in commands if command.name.startswith(first)]
    if len(fitting) != 1:
        choices = ", ".join(f"'{command.name}'" for command in commands)
        _refuse(usage, tool, f"invalid choice: '{first}' (choose from {choices})")
    return GivenCommand(fitting[0], _CommandReader(tool, fitting[0]).read(words[1:]))


def _refuse(usage: str, tool: str, message: str) -> NoReturn:
    raise CommandRefused(f"{usage}{tool}: error: {message}")


class _CommandReader:
    """Reads the options of one command."""

    def __init__(self, tool: str, command: Command) -> None:
        self._tool = tool
        self._command = command
        self._values: dict[str, list[str]] = {}

    def read(self, words: Sequence[str]) -> GivenOptions:
        """Return what words give."""
        left = list(reversed(words))
        while left:
            word = left.pop()
            if word in ("-h", "--help"):
                raise HelpRequested(self._help())
            option, joined = self._option(word)
            if joined is None and (not left or _looks_like_an_option(left[-1])):
                self._refuse(f"argument {option.shown}: expected one argument")
            self._take(option, left.pop() if joined is None else joined)
        self._check()
        return GivenOptions(self._values)

    def _option(self, word: str) -> tuple[CommandOption, str | None]:
        name, is_joined, joined = word.partition("=")
        for option in self._command.options:
            if name in (f"--{option.name}", f"-{option.short}"):
                return option, joined if is_joined else None
        if name.startswith("--"):
            fitting = [o for o in self._command.options if f"--{o.name}".startswith(name)]
            if len(fitting) == 1:
                return fitting[0], joined if is_joined else None
        elif word.startswith("-"):
            for option in self._command.options:
                if word[1:2] == option.short:
                    return option, word[2:]
        return self._refuse(f"unrecognized arguments: '{word}'")

    def _take(self, option: CommandOption, value: str) -> None:
        one_of = self._command.one_of if option.name in self._command.one_of else ()
        for other in one_of:
            if other != option.name and other in self._values:
                shown = self._named(other).shown
                self._refuse(f"argument {option.shown}: not allowed with argument {shown}")
        if option.is_number and not is_java_number(value):
            self._refuse(f"argument {option.shown}: could not convert '{value}' to Integer")
        # The last one counts.
        self._values[option.name] = [value]

    def _check(self) -> None:
        for option in self._command.options:
            if option.is_required and option.name not in self._values:
                self._refuse(f"argument {option.shown} is required")
        one_of = self._command.one_of
        if one_of and not any(name in self._values for name in one_of):
            names = " ".join(self._named(name).shown for name in one_of)
            self._refuse(f"one of the arguments {names} is required")

    def _named(self, name: str) -> CommandOption:
        return next(option for option in self._command.options if option.name == name)

    def _usage(self) -> str:
        words = ["usage:", self._tool, self._command.name, "[-h]"]
        for option in self._command.options:
            if option.name not in self._command.one_of:
                text = f"--{option.name} {option.value}"
                words.append(text if option.is_required else f"[{text}]")
        if self._command.one_of:
            needed = map(self._named, self._command.one_of)
            words.append("(" + " | ".join(f"--{o.name} {o.value}" for o in needed) + ")")
        return " ".join(words) + "\n"

    def _help(self) -> str:
        rows = [f"  {o.shown} {o.value}\n      {o.summary}\n" for o in self._command.options]
        return f"{self._usage()}\n{self._command.summary}\n\n{''.join(rows)}"

    def _refuse(self, message: str) -> NoReturn:
        _refuse(self._usage(), self._tool, message)


def _looks_like_an_option(word: str) -> bool:
    return word.startswith("-") and word != "-" and not is_java_number(word)
