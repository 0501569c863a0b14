"""Messages on stderr, errors of single items, and confirmation prompts."""

from __future__ import annotations

import sys
from contextlib import suppress

from engine.errors import EngineError
from kctl import exits
from kctl.hints import hint_for


class NotConfirmed(EngineError):
    """The user did not confirm an action."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: not confirmed, nothing was changed")


class NoTerminal(EngineError):
    """An action needs confirmation, but stdin is no terminal."""

    exit_code = exits.USAGE
    hint = "add -y to do it, or --dry-run to see what would be done"

    def __init__(self, what: str, *, can_be_tried: bool = True) -> None:
        super().__init__(f"{what}: needs a yes, and stdin is no terminal; nothing was changed")
        if not can_be_tried:
            self.hint = "add -y to do it"


def show_rows() -> None:
    """Flush printed rows, so that the next message on stderr follows them.

    An error of stdout is ignored here: it is raised when the command ends.
    """
    with suppress(OSError, ValueError):
        sys.stdout.flush()


def notify(line: str) -> None:
    """Print a message on stderr, after flushing stdout."""
    show_rows()
    sys.stderr.write(f"{line}\n")


def report_error(error: EngineError, about: str | None = None) -> None:
    """Print the error of one item with its hint; the command continues with the next item.

    `about` names the item; it is printed unless the error's text contains it.
    """
    text = str(error)
    is_named = about is None or about in text
    notify(f"error: {text}" if is_named else f"error: {about}: {text}")
    hint = hint_for(error)
    if hint:
        notify(f"hint: {hint}")


def confirm(what: str, *, yes: bool, can_be_tried: bool = True) -> None:
    """Ask "{what}? [y/N]" on the terminal before a change, unless `yes` is set (-y).

    `can_be_tried` means that the command has a --dry-run, at which the error then hints.

    Errors: NotConfirmed for any answer but y or yes, NoTerminal if stdin is no terminal.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise NoTerminal(what, can_be_tried=can_be_tried)
    show_rows()
    sys.stderr.write(f"{what}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotConfirmed(what)
