"""Passwords for commands: typed, read from a file, stdin or the environment, or generated.

| option | password |
|---|---|
| none, at a terminal | typed twice, not shown |
| `--password-file FILE` | the first line of the file; `-` is stdin |
| `--password-env NAME` | a variable of the environment |
| `--generate` | a random one: printed once, or with `--out FILE` in a new file of mode 0600 |

No option takes the password itself, because other users of the machine can read the arguments of a
process.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, NamedTuple

import typer

from engine.errors import EngineError
from kctl import exits


class PasswordOptions(NamedTuple):
    """The options that select the source of a password."""

    password_file: Annotated[
        str | None,
        typer.Option(
            "--password-file",
            metavar="FILE",
            help="Take the password from the first line of a file; - is stdin.",
        ),
    ] = None
    password_env: Annotated[
        str | None,
        typer.Option(
            "--password-env",
            metavar="VARIABLE",
            help="Take the password from a variable of the environment.",
        ),
    ] = None
    generate: Annotated[
        bool, typer.Option("--generate", help="Generate a random password and print it once.")
    ] = False
    out: Annotated[
        str | None,
        typer.Option(
            "--out", metavar="FILE", help="With --generate: write it to a new file of mode 0600."
        ),
    ] = None


class NoPassword(EngineError):
    """The options do not select a password, or it is empty."""

    exit_code = exits.USAGE
    hint = "give --password-file FILE (- is stdin), --password-env VARIABLE or --generate"

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


def check_password_options(options: PasswordOptions) -> None:
    """Check that the options select one source of a password; raises NoPassword.

    None is needed at a terminal, where the password is typed.
    """
    sources = [options.password_file is not None, options.password_env is not None]
    count = sum((*sources, options.generate))
    if count > 1:
        raise NoPassword("one source of the password, please")
    if options.out is not None and not options.generate:
        raise NoPassword("--out goes with --generate")
    if not count and not sys.stdin.isatty():
        raise NoPassword("which password? stdin is no terminal to ask at")


def read_password(options: PasswordOptions, user: str) -> str:
    """Return the user's password from the source that the options select.

    The options are checked, and have no --generate.

    Errors: NoPassword, FileMissing.
    """
    if options.password_file is not None:
        return _read_first_line(options.password_file)
    if options.password_env is not None:
        value = os.environ.get(options.password_env)
        if value is None:
            raise NoPassword(f"the environment has no {options.password_env}")
        return _check_password(value, options.password_env)
    return _prompt_for_password(user)


def _read_first_line(path: str) -> str:
    """Return the first line of a file or of stdin; raises NoPassword if it cannot be a password."""
    if path == "-":
        return _check_password(sys.stdin.readline().rstrip("\r\n"), "stdin")
    from engine.host.input_file import read_input

    content = read_input(path)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise NoPassword(f"{path} is no text of UTF-8") from None
    return _check_password(text.partition("\n")[0].rstrip("\r"), path)


def _prompt_for_password(user: str) -> str:
    """Ask for the user's password twice on the terminal, not shown, and return it.

    Errors: NoPassword, also if the two differ.
    """
    from getpass import getpass

    password = getpass(f"password of {user}: ", sys.stderr)
    if getpass("again: ", sys.stderr) != password:
        raise NoPassword("the two passwords differ")
    return _check_password(password, "the password")


def _check_password(password: str, source: str) -> str:
    """Return the password; raises NoPassword if it is empty or not UTF-8.

    `source` names where it is from, for the error.
    """
    if not password:
        raise NoPassword(f"{source} is empty")
    try:
        password.encode()
    except UnicodeEncodeError:
        raise NoPassword(f"{source} is no text of UTF-8") from None
    return password
