"""Parse commands and options like those of Kafka's tools that have commands.

Command names and long options may be abbreviated if unambiguous. A value may be attached:
`--name=value`, `-nvalue`. Options common to all commands precede the command.

Source: argparse4j 0.7.0 as ClusterTool, TransactionsCommand, ProducerPerformance set it up.

Differs: usage is not wrapped into columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple, NoReturn

from engine.errors import EngineError
from kctl.compat.java_numbers import INT_BITS, LONG_BITS, is_java_number
from kctl.compat.java_options import GivenOptions


class Arity(Enum):
    """How many values an option takes."""

    ONE = "one; the last one counts"
    NOTHING = "none: it is a flag"
    APPENDED = "one, and all of them count"
    SEVERAL = "one or more words"


class NumberType(Enum):
    """Java's integer types with their number of bits."""

    Short = 16
    Integer = INT_BITS
    Long = LONG_BITS


class CommandOption(NamedTuple):
    """An option; `number` is the integer type of its value, `choices` the only valid values."""

    name: str
    short: str
    summary: str
    is_required: bool = False
    number: NumberType | None = None
    takes: Arity = Arity.ONE
    choices: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """Return the option's names as messages contain them: `--name/-n`."""
        return f"--{self.name}/-{self.short}" if self.short else f"--{self.name}"

    @property
    def value(self) -> str:
        """Return the placeholder of the option's value in the usage, "" for a flag."""
        if self.takes is Arity.NOTHING:
            return ""
        if self.choices:
            return f" {{{','.join(self.choices)}}}"
        name = self.name.upper().replace("-", "_")
        return f" {name} [{name} ...]" if self.takes is Arity.SEVERAL else f" {name}"


class Command(NamedTuple):
    """A command with its options.

    Exactly one option of `one_of` is required, unless it is empty.
    """

    name: str
    summary: str
    options: tuple[CommandOption, ...] = ()
    one_of: tuple[str, ...] = ()


#: Option of tools that print their version.
VERSION_OPTION = CommandOption("version", "v", "Print the version.", takes=Arity.NOTHING)


class HelpRequested(EngineError):
    """The call requests help; the message is its text."""


class VersionRequested(EngineError):
    """The call requests the version of the imitated release."""


class CommandRefused(EngineError):
    """The arguments do not fit the command; the message is the usage and the error."""

    def __init__(self, message: str, help_text: str = "") -> None:
        super().__init__(message)
        self.help = help_text


class GivenCommand(NamedTuple):
    """A command and its options, including the options before the command."""

    command: Command
    given: GivenOptions


def parse_command(
    tool: str,
    summary: str,
    commands: Sequence[Command],
    arguments: Sequence[str],
    *,
    common: Sequence[CommandOption] = (),
    one_of: tuple[str, ...] = (),
) -> GivenCommand:
    """Parse the arguments of a tool with commands, such as `kafka-features upgrade …`.

    Options in `common` precede the command; exactly one of those in `one_of` is required. Errors:
    HelpRequested, VersionRequested, CommandRefused. The parser is argparse4j's.
    """
    names = ",".join(command.name for command in commands)
    before = _Reader(
        tool, Command("", summary, tuple(common), one_of), tool, f"{{{names}}} ...", commands
    )
    remaining = before.read_options(arguments, stops_at_operand=True)
    if not remaining:
        before.refuse("too few arguments")
    command = _command_named(remaining[0], commands, before)
    of_command = _Reader(tool, command, f"{tool} {command.name}")
    of_command.read_all(remaining[1:])
    before.check()
    values = before.values | of_command.values
    return GivenCommand(command, GivenOptions(values))


def _command_named(argument: str, commands: Sequence[Command], before: _Reader) -> Command:
    """Return the command with this name or unambiguous prefix; raises CommandRefused.

    `before` is the parser of the options before the command, whose usage the error shows.
    """
    exact = [command for command in commands if command.name == argument]
    fitting = exact or [command for command in commands if command.name.startswith(argument)]
    if len(fitting) != 1:
        choices = ", ".join(f"'{command.name}'" for command in commands)
        before.refuse(f"invalid choice: '{argument}' (choose from {choices})")
    return fitting[0]


def read_arguments(command: Command, arguments: Sequence[str]) -> GivenOptions:
    """Parse the options of a tool without commands; raises HelpRequested, CommandRefused."""
    reader = _Reader(command.name, command, command.name)
    reader.read_all(arguments)
    return GivenOptions(reader.values)


def refuse(command: Command, message: str) -> NoReturn:
    """Raise CommandRefused with the usage of a tool without commands."""
    _Reader(command.name, command, command.name).refuse(message)


class _Reader:
    """Parses the options of a command, or the options before it."""

    def __init__(
        self,
        tool: str,
        command: Command,
        shown: str,
        usage_tail: str = "",
        commands: Sequence[Command] = (),
    ) -> None:
        """Create a parser of the options of `command`.

        `shown` is its name in the usage, `usage_tail` the text after it; `commands` are listed in
        the help.
        """
        self._tool = tool
        self._command = command
        self._shown = shown
        self._usage_tail = usage_tail
        self._commands = commands
        #: Values by option name.
        self.values: dict[str, list[str]] = {}

    def read_all(self, arguments: Sequence[str]) -> None:
        """Parse arguments that must all be options, and check that required ones are given.

        Errors: HelpRequested, VersionRequested, CommandRefused.
        """
        self.read_options(arguments)
        self.check()

    def read_options(
        self, arguments: Sequence[str], *, stops_at_operand: bool = False
    ) -> Sequence[str]:
        """Parse options, with `stops_at_operand` up to the first operand.

        Returns the remaining arguments. Errors: HelpRequested, VersionRequested, CommandRefused.
        """
        left = list(reversed(arguments))
        while left:
            argument = left.pop()
            if argument in ("-h", "--help"):
                raise HelpRequested(self.help_text())
            if stops_at_operand and not _resembles_an_option(argument):
                return [argument, *reversed(left)]
            option, joined = self._find_option(argument)
            if option is VERSION_OPTION:
                raise VersionRequested
            self._store_values(option, self._take_values(option, joined, left))
        return ()

    def _take_values(self, option: CommandOption, joined: str | None, left: list[str]) -> list[str]:
        """Return the values of an option, and remove them from `left`.

        `joined` is a value attached to the option, or None; `left` has the other arguments, the
        next one last. Errors: CommandRefused.
        """
        if option.takes is Arity.NOTHING:
            return []
        if joined is None and (not left or _resembles_an_option(left[-1])):
            self.refuse(f"argument {option.shown}: expected {_COUNTS[option.takes]}")
        values = [left.pop() if joined is None else joined]
        while option.takes is Arity.SEVERAL and left and not _resembles_an_option(left[-1]):
            values.append(left.pop())
        return values

    def _find_option(self, argument: str) -> tuple[CommandOption, str | None]:
        """Return the option that an argument names, and the value attached to it, or None.

        A unique prefix of a long name is sufficient. Errors: CommandRefused.
        """
        name, is_joined, joined = argument.partition("=")
        for option in self._command.options:
            if name in (f"--{option.name}", f"-{option.short}"):
                return option, joined if is_joined else None
        if name.startswith("--"):
            fitting = [o for o in self._command.options if f"--{o.name}".startswith(name)]
            if len(fitting) == 1:
                return fitting[0], joined if is_joined else None
        elif argument.startswith("-"):
            for option in self._command.options:
                if option.short and argument[1:2] == option.short:
                    return option, argument[2:]
        return self.refuse(f"unrecognized arguments: '{argument}'")

    def _store_values(self, option: CommandOption, values: list[str]) -> None:
        """Store an option's values; raises CommandRefused if they are invalid or excluded."""
        one_of = self._command.one_of if option.name in self._command.one_of else ()
        for other in one_of:
            if other != option.name and other in self.values:
                shown = self._named(other).shown
                self.refuse(f"argument {option.shown}: not allowed with argument {shown}")
        for value in values:
            if option.number and not is_java_number(value, option.number.value):
                self.refuse(
                    f"argument {option.shown}: could not convert '{value}' to {option.number.name} "
                    f'(For input string: "{value}")'
                )
            if option.choices and value not in option.choices:
                choices = ",".join(option.choices)
                self.refuse(
                    f"argument {option.shown}: invalid choice: '{value}' "
                    f"(choose from {{{choices}}})"
                )
        if option.takes is Arity.APPENDED:
            values = [*self.values.get(option.name, ()), *values]
        self.values[option.name] = values

    def check(self) -> None:
        """Raise CommandRefused unless all required options are given."""
        for option in self._command.options:
            if option.is_required and option.name not in self.values:
                self.refuse(f"argument {option.shown} is required")
        one_of = self._command.one_of
        if one_of and not any(name in self.values for name in one_of):
            names = " ".join(self._named(name).shown for name in one_of)
            self.refuse(f"one of the arguments {names} is required")

    def _named(self, name: str) -> CommandOption:
        """Return the command's option with this name."""
        return next(option for option in self._command.options if option.name == name)

    def _usage(self) -> str:
        """Return the usage line of the command."""
        parts = ["usage:", self._shown, "[-h]"]
        for option in self._command.options:
            if option.name not in self._command.one_of:
                text = f"--{option.name}{option.value}"
                parts.append(text if option.is_required else f"[{text}]")
        if self._command.one_of:
            needed = map(self._named, self._command.one_of)
            parts.append("(" + " | ".join(f"--{o.name}{o.value}" for o in needed) + ")")
        return " ".join([*parts, self._usage_tail]).rstrip() + "\n"

    def help_text(self) -> str:
        """Return the help of the command: usage, summary, options, and commands if it has any."""
        rows = [f"  {o.shown}{o.value}\n      {o.summary}\n" for o in self._command.options]
        rows += [f"  {command.name}\n      {command.summary}\n" for command in self._commands]
        return f"{self._usage()}\n{self._command.summary}\n\n{''.join(rows)}"

    def refuse(self, message: str) -> NoReturn:
        """Raise CommandRefused with the usage and the message, as argparse4j prints them."""
        text = f"{self._usage()}{self._tool}: error: {message}"
        raise CommandRefused(text, self.help_text())


_COUNTS = {
    Arity.ONE: "one argument",
    Arity.APPENDED: "one argument",
    Arity.SEVERAL: "at least one argument",
}


def _resembles_an_option(argument: str) -> bool:
    """Return True if argparse4j treats an argument as an option: not `-` or a number."""
    return argument.startswith("-") and argument != "-" and not is_java_number(argument)
