"""Unfinished moves of an earlier `kctl apply`, from the journal of each cluster."""

from __future__ import annotations

import re

from engine.client.blocking import KafkaClient
from engine.host.held_file import RealHeldFiles
from engine.reassign.journal import is_open
from kctl.arguments import counted
from kctl.commands.reassign.files import read_journal_state, state_folder
from kctl.console import notify


def has_earlier_moves(client: KafkaClient) -> bool:
    """Return True if the reassignments of an earlier `apply` are unfinished; print that then."""
    path = journal_path(client)
    if not is_open(RealHeldFiles(), path):
        return False
    state = read_journal_state(path)
    left = [change for change in state.begun.changes if change.name not in state.ended]
    notify(
        f"the moves of an earlier apply are not over: {len(left)} of "
        f"{counted(len(state.begun.changes), 'partition')} left; {path}"
    )
    return True


def journal_path(client: KafkaClient) -> str:
    """Return the path of the journal of reassignments by `apply` for this cluster."""
    cluster = re.sub(r"[^\w-]", "_", client.view([]).cluster_id or "cluster")
    return f"{state_folder()}/{cluster}-apply.journal"
