"""Implementation of `kctl reassign throttle` and `pause`: change a running execution.

The change is written to the journal. The process that executes the journal reads and confirms it;
without such a process the next `resume` applies it.
"""

from __future__ import annotations

import time

from engine.errors import EngineError
from engine.host.held_file import RealHeldFiles
from engine.host.process_identity import ProcessIdentity, identify_process
from engine.reassign.adaptive_rate import FIRST_RATE
from engine.reassign.journal import is_held, request_change
from engine.reassign.journal_state import SettingsChange, read_journal
from kctl import exits
from kctl.commands.reassign.files import read_journal_state
from kctl.console import notify
from kctl.render.table import size_text
from kctl.sizes import parse_bytes

_POLL_S = 0.1


class ChangeRefused(EngineError):
    """The executing process refused a change."""

    def __init__(self, path: str, writer: ProcessIdentity | None, reason: str) -> None:
        self.path = path
        self.writer = writer
        self.reason = reason
        self.hint = f"it goes on as before; `kctl reassign status {path}` shows it"
        super().__init__(f"{writer or 'the process'} that executes {path} refused: {reason}")


class ChangeNotAnswered(EngineError):
    """The executing process did not react to a change in time."""

    def __init__(self, path: str, writer: ProcessIdentity | None, waited_s: float) -> None:
        """Create the error for a process that does not react to a change of its settings.

        `writer` None means that the journal does not name its process.
        """
        self.path = path
        self.writer = writer
        self.waited_s = waited_s
        self.hint = "the request stays in the journal: it is followed when that process goes on"
        super().__init__(
            f"{writer or 'the process'} that executes {path} has not answered for {waited_s:g} s:"
            " it may be stopped, or its cluster out of reach"
        )


def throttle_of(text: str) -> SettingsChange:
    """Return the change that --throttle requests: `50MB`, `auto` or `none`.

    Errors: UnreadableArgument.
    """
    if text == "auto":
        return SettingsChange(FIRST_RATE, is_adaptive=True)
    return SettingsChange(0 if text == "none" else parse_bytes(text), is_adaptive=False)


def change_execution(path: str, change: SettingsChange, timeout_s: float) -> int:
    """Ask the process that executes a journal to change throttle, limit or pause.

    Waits until it has answered; returns the exit code. Without such a process, the change applies
    once the execution is resumed. Errors: ChangeRefused, ChangeNotAnswered, ChangeTooLate, those of
    the journal.
    """
    state = read_journal_state(path)
    if state.is_over:
        notify(f"{path}: it is over already")
        return exits.OK
    files = RealHeldFiles()
    number = request_change(files, path, change, identify_process())
    deadline_s = time.monotonic() + timeout_s
    while is_held(files, path):
        state = read_journal(files, path)
        if number in state.answers:
            break
        if time.monotonic() > deadline_s:
            raise ChangeNotAnswered(path, state.writer, timeout_s)
        time.sleep(_POLL_S)
    state = read_journal(files, path)
    if state.is_over and number not in state.answers:
        notify(f"{path}: it was over before that was read")
        return exits.OK
    refusal = state.answers.get(number)
    if refusal is not None:
        raise ChangeRefused(path, state.writer, refusal)
    is_followed = number in state.answers
    holds = "from now on" if is_followed else f"once `kctl reassign resume {path}` goes on"
    notify(f"{change_text(change)}, {holds}")
    return exits.OK


def change_text(change: SettingsChange) -> str:
    """Return a change of an execution's settings as text, such as `throttle 50 MB/s`."""
    parts = []
    if change.is_adaptive:
        parts.append("throttle auto")
    elif change.replication_rate is not None:
        rate = change.replication_rate
        parts.append(f"throttle {size_text(rate)}/s" if rate else "no throttle")
    if change.moves_per_broker is not None:
        parts.append(f"{change.moves_per_broker} moves at once for each broker")
    if change.is_paused is not None:
        parts.append("nothing new begins" if change.is_paused else "what waits begins")
    return ", ".join(parts)
