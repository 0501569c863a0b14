"""Read statements from a terminal, with editing, history and completion, or from a pipe."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

from kctl.commands.spark_shell.session import ShellSession, completions_at
from kctl.exits import Terminated

if TYPE_CHECKING:
    from engine.analysis.view_column import ViewColumn

#: Returns the currently defined views with their columns.
Views: TypeAlias = "Callable[[], Mapping[str, tuple[ViewColumn, ...]]]"
_HISTORY_LINES_MAX = 1000
_PROMPT, _WITHIN = "sql> ", "  -> "


def history_path(environment: Mapping[str, str]) -> str:
    """Return the path of the file that keeps typed statements, for line editing."""
    home = environment.get("XDG_STATE_HOME") or f"{environment.get('HOME', '')}/.local/state"
    return f"{home}/kctl/spark_shell_history"


def read_lines(session: ShellSession, views: Views) -> None:
    """Pass the lines of standard input to a session until the input ends, or `exit`.

    On a terminal with line editing, and Ctrl-C discards the incomplete statement.
    """
    if not sys.stdin.isatty():
        for line in sys.stdin:
            if not session.process_line(line.rstrip("\n")):
                return
        session.close()
        return
    with _line_editing(views):
        while True:
            try:
                line = input(_WITHIN if session.is_within else _PROMPT)
                if not session.process_line(line):
                    return
            except EOFError:
                sys.stdout.write("\n")
                return
            except Terminated:
                raise
            except KeyboardInterrupt:
                # Of a running statement too: the next one can be typed.
                session.forget()
                sys.stdout.write("\n")


@contextmanager
def _line_editing(views: Views) -> Iterator[None]:
    """Enable line editing by readline in the block, if Python has readline."""
    try:
        import readline
    except ImportError:
        yield
        return
    path = history_path(os.environ)
    with suppress(OSError):
        readline.read_history_file(path)
    readline.set_history_length(_HISTORY_LINES_MAX)
    readline.set_completer_delims(" \t\n(),;=<>")
    found: list[str] = []

    def complete(_start: str, number: int) -> str | None:
        """Return completion `number` as readline asks for it, None after the last."""
        if number == 0:
            found[:] = completions_at(
                readline.get_line_buffer()[: readline.get_endidx()], readline.get_begidx(), views()
            )
        return found[number] if number < len(found) else None

    readline.set_completer(complete)
    readline.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        readline.set_completer(None)
        with suppress(OSError):
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            readline.write_history_file(path)
