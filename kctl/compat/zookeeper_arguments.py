"""Parse the arguments of a ZooKeeper shell's commands: lines, options, paths and ACLs.

Source: CliCommand, AclParser, PathUtils and ZooKeeperMain.MyCommandOptions of ZooKeeper 3.8.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple, TextIO

from engine.errors import EngineError
from engine.znode.model import NodeAclEntry
from engine.znode.names import FORBIDDEN
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_numbers import INT_BITS, NUMBER_FORMAT, java_number

_WORD: Final = re.compile(r"\s*([^\"']\S*|\"[^\"]*\"|'[^']*')\s*", re.ASCII)
_QUOTED: Final = re.compile(r"(['\"])(.*)\1", re.DOTALL)
_DECODED: Final = re.compile(r"([+-]?)(0[xX]|#|0(?=.))?(.*)", re.DOTALL)
_OPTION_ERRORS: Final = "org.apache.commons.cli"
_SEPARATOR: Final = "/"
#: ZooKeeper's permission bits, in the order in which the shell prints them.
_PERMISSIONS: Final = {"c": 4, "d": 8, "r": 1, "w": 2, "a": 16}


class ShellRefusal(EngineError):
    """A command fails: its message is printed, and the exit code is 1."""


class ShellAbort(EngineError):
    """The shell ends with an exception's trace, as Java's shell does for an invalid number."""


class CommandSyntax(NamedTuple):
    """Syntax of a command: usage, one-letter flags, and the flags of these with a value."""

    usage: str
    flags: str = ""
    valued: str = ""
    #: Minimum number of operands.
    least: int = 1
    #: Options of several letters after a single dash, each with a value.
    names: tuple[str, ...] = ()
    #: Flags of which at most one may be given, and the message if one is required but missing.
    exclusive: str = ""
    required: str = ""


class ShellArguments(NamedTuple):
    """Parsed arguments of a command: flags with their values, and operands."""

    flags: dict[str, str]
    operands: list[str]

    def has(self, flag: str) -> bool:
        """Return True if the flag, such as `R` of `-R`, is given."""
        return flag in self.flags


def tokens_of_line(line: str) -> list[str]:
    """Split a line of zookeeper-shell into words; quotes around a word are removed."""
    tokens = []
    for found in _WORD.finditer(line):
        quoted = _QUOTED.fullmatch(found[1])
        tokens.append(quoted[2] if quoted else found[1])
    return tokens


def parse_arguments(syntax: CommandSyntax, tokens: Sequence[str]) -> ShellArguments:
    """Parse the flags and operands of a command of zookeeper-shell.

    Errors: ShellRefusal with the message of commons-cli.
    """
    flags: dict[str, str] = {}
    operands: list[str] = []
    left = list(reversed(tokens))
    while left:
        token = left.pop()
        if token == "--":
            operands += reversed(left)
            break
        if not token.startswith("-") or token == "-":
            operands.append(token)
            continue
        _parse_flags(syntax, token, left, flags)
    if syntax.required and not any(flag in flags for flag in syntax.exclusive):
        raise ShellRefusal(
            f"{_OPTION_ERRORS}.MissingOptionException: Missing required option: {syntax.required}"
        )
    return ShellArguments(flags, operands)


def _parse_flags(syntax: CommandSyntax, token: str, left: list[str], flags: dict[str, str]) -> None:
    """Parse a token of flags such as `-sR`, `-sv 3`, `-v3` or `-v=3` into `flags`.

    `left` has the later tokens in reverse order. The first value of a repeated flag counts.
    """
    if token[1:] in syntax.names:
        flags.setdefault(token[1:], _value_of(token[1:], left))
        return
    for at, letter in enumerate(token[1:], 2):
        _check_exclusive(syntax, letter, flags)
        if letter in syntax.valued:
            value = token[at:]
            value = value.removeprefix("=") if value else _value_of(letter, left)
            flags.setdefault(letter, value)
            return
        if letter not in syntax.flags:
            raise ShellRefusal(
                f"{_OPTION_ERRORS}.UnrecognizedOptionException: Unrecognized option: {token}"
            )
        flags[letter] = ""


def _check_exclusive(syntax: CommandSyntax, letter: str, flags: dict[str, str]) -> None:
    """Raise ShellRefusal if a flag that excludes `letter` is given already."""
    earlier = [flag for flag in flags if flag in syntax.exclusive and flag != letter]
    if letter in syntax.exclusive and earlier:
        raise ShellRefusal(
            f"{_OPTION_ERRORS}.AlreadySelectedException: The option '{letter}' was specified but "
            f"an option from this group has already been selected: '{earlier[0]}'"
        )


def _value_of(letter: str, left: list[str]) -> str:
    """Remove the next token from `left` and return it as a flag's value; raises ShellRefusal."""
    if not left or (left[-1].startswith("-") and not _is_number(left[-1])):
        raise ShellRefusal(
            f"{_OPTION_ERRORS}.MissingArgumentException: Missing argument for option: {letter}"
        )
    return left.pop()


def _is_number(token: str) -> bool:
    """Return True if a token is a negative number, which may be a flag's value."""
    return re.fullmatch(r"-\d+(\.\d+)?", token, re.ASCII) is not None


def java_int(text: str) -> int:
    """Parse an integer like Java's parseInt; raises ShellAbort."""
    try:
        return java_number(text)
    except ToolFailure as failure:
        raise ShellAbort(f"{failure.java_class}: {failure}") from failure


def decode_java_int(text: str) -> int:
    """Parse an integer like Java's Integer.decode: hexadecimal with 0x or #, octal with 0.

    Errors: ShellAbort.
    """
    if not text:
        raise ShellAbort(f"{NUMBER_FORMAT}: Zero length string")
    found = _DECODED.fullmatch(text)
    assert found is not None  # The pattern takes all texts.
    sign, prefix, digits = found.groups()
    if digits[:1] in ("+", "-") and digits:
        raise ShellAbort(f"{NUMBER_FORMAT}: Sign character in wrong position")
    radix = 10 if prefix is None else 8 if prefix == "0" else 16
    if radix == 10:
        return java_int(f"{sign}{digits}".removeprefix("+"))
    try:
        number = int(digits, radix)
    except ValueError:
        number = 1 << INT_BITS
    if "_" in digits or number >= 1 << (INT_BITS - 1):
        sign = sign.removeprefix("+")
        raise ShellAbort(f'{NUMBER_FORMAT}: For input string: "{sign}{digits}" under radix {radix}')
    return -number if sign == "-" else number


def check_shell_path(path: str, *, is_sequential: bool = False) -> None:
    """Raise ShellRefusal with the message of ZooKeeper's client for an invalid path."""
    checked = f"{path}1" if is_sequential else path
    if not checked:
        raise ShellRefusal("Path length must be > 0")
    if not checked.startswith(_SEPARATOR):
        raise ShellRefusal("Path must start with / character")
    if checked == _SEPARATOR:
        return
    if checked.endswith(_SEPARATOR):
        raise ShellRefusal("Path must not end with / character")
    reason = _path_fault(checked)
    if reason is not None:
        raise ShellRefusal(f'Invalid path string "{checked}" caused by {reason}')


def _path_fault(path: str) -> str | None:
    """Return the first fault in a path's names with its position, None for a valid path."""
    at = 1
    for name in path[1:].split(_SEPARATOR):
        if not name:
            return f"empty node name specified @{at}"
        if found := FORBIDDEN.search(name):
            kind = "null character not allowed" if found[0] == "\0" else "invalid character"
            return f"{kind} @{at + found.start()}"
        at += len(name)
        if name in (".", ".."):
            return f"relative paths not allowed @{at - 1}"
        at += 1
    return None


def parse_acl(text: str, err: TextIO) -> list[NodeAclEntry]:
    """Parse ACL entries `scheme:id:permissions,…` of zookeeper-shell.

    Invalid entries are printed to `err` and left out, as in Java.
    """
    entries = []
    texts = text.split(",")
    # Like Java's split: drop trailing empty parts, unless the text is empty.
    while text and texts and not texts[-1]:
        texts.pop()
    for entry_text in texts:
        scheme, first, rest = entry_text.partition(":")
        name, last, permissions = rest.rpartition(":")
        if not first or not last:
            err.write(f"{entry_text} does not have the form scheme:id:perm\n")
            continue
        bits = 0
        for letter in permissions:
            if letter not in _PERMISSIONS:
                err.write(f"Unknown perm type: {letter}\n")
            bits |= _PERMISSIONS.get(letter, 0)
        entries.append(NodeAclEntry(bits, scheme, name))
    return entries


def permissions_text(bits: int) -> str:
    """Return the permission bits of an ACL as letters, such as `cdrwa`."""
    return "".join(letter for letter, bit in _PERMISSIONS.items() if bits & bit)
