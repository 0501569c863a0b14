"""Files of plans and journals: detect the kind, parse them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from engine.errors import EngineError
from engine.host.held_file import RealHeldFiles
from engine.host.real import RealFiles
from engine.planner.plan_fields import BadPlanFile
from engine.planner.plan_file import PlanFile, plan_from_json
from engine.reassign.journal_state import JournalState, UnreadableJournal, read_journal
from kctl.console import notify

if TYPE_CHECKING:
    from engine.reassign.known_journals import KnownJournals

_PLAN_BYTES_MAX = 64 << 20


def state_folder() -> str:
    """Return the user's directory of jobs' plans and journals, and of the known journals."""
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return f"{home}/kctl/reassign"


def known_journals() -> KnownJournals:
    """Return the list of journals that this user began on this machine."""
    from engine.reassign.known_journals import KnownJournals

    return KnownJournals(RealFiles(), RealHeldFiles(), state_folder())


class PlanTooLarge(EngineError):
    """A file is larger than the largest plan."""

    def __init__(self, path: str, size_bytes: int) -> None:
        self.path = path
        self.size_bytes = size_bytes
        super().__init__(f"{path} has {size_bytes} bytes, more than a plan may ({_PLAN_BYTES_MAX})")


class NoPlan(EngineError):
    """A file does not contain a plan."""

    def __init__(self, path: str, error: BadPlanFile | str) -> None:
        self.path = path
        self.error = error
        self.hint = "`kctl reassign plan --out FILE` writes one"
        super().__init__(f"{path} is no plan: {error}")


class PlanOrJournal(NamedTuple):
    """The content of a file: a plan or a journal; the other is None."""

    plan: PlanFile | None
    journal: JournalState | None


def read_plan(path: str) -> PlanFile:
    """Read and parse a plan file; raises PlanTooLarge, NoPlan and errors of reading."""
    files = RealFiles()
    size_bytes = files.size_bytes(path)
    if size_bytes > _PLAN_BYTES_MAX:
        raise PlanTooLarge(path, size_bytes)
    try:
        plan = plan_from_json(files.read_bytes(path).decode())
    except UnicodeDecodeError as error:
        raise NoPlan(path, "it is no text") from error
    except BadPlanFile as error:
        raise NoPlan(path, error) from error
    # A plan written by kctl may have no changes.
    if not plan.rows and plan.plan is None:
        raise NoPlan(path, "it names no partitions")
    return plan


def read_journal_state(path: str) -> JournalState:
    """Read the state that a journal records; print a warning for each unreadable line."""
    state = read_journal(RealHeldFiles(), path)
    for line_number, reason in state.damage:
        notify(f"warning: {path}: line {line_number} is passed over: {reason}")
    return state


def read_plan_or_journal(path: str) -> PlanOrJournal:
    """Read a file that contains a plan or a journal.

    Of the result, one field is set and the other None. Errors: those of `read_plan`.
    """
    try:
        return PlanOrJournal(None, read_journal_state(path))
    except UnreadableJournal:
        return PlanOrJournal(read_plan(path), None)
