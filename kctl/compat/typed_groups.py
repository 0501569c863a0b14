"""Lists and refused deletions of share and streams groups.

Source: listGroups, deleteShareGroups, preAdminCallChecks of 4.3.0's ShareGroupCommand and
StreamsGroupCommand.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TextIO

from engine.client.blocking import KafkaClient
from engine.client.groups import GroupListing
from kctl.compat.group_answers import Waits, groups_of_type
from kctl.compat.group_rows import width_of
from kctl.compat.java_admin import ILLEGAL_ARGUMENT
from kctl.compat.java_options import GivenOptions, refused
from kctl.compat.java_split import java_split

_NOT_EMPTY: Final = "org.apache.kafka.common.errors.GroupNotEmptyException"
_UNKNOWN: Final = "Unknown"


def print_groups_of_type(
    client: KafkaClient,
    given: GivenOptions,
    group_type: str,
    known_states: Sequence[str],
    out: TextIO,
) -> None:
    """Print the ids of the groups of a type; with `--state` in these states, with their states.

    Errors: ToolFailure, OptionsRefused.
    """
    if not given.has("state"):
        for group in groups_of_type(client, group_type, Waits.TWICE):
            out.write(f"{group.group_id}\n")
        return
    states = _parse_states(given.text("state"), known_states)
    groups: Sequence[GroupListing] = groups_of_type(client, group_type, Waits.ONCE, states)
    width = width_of(group.group_id for group in groups)
    rows = [(group.group_id, group.state or _UNKNOWN) for group in groups]
    out.writelines(f"{name:<{width}} {state}\n" for name, state in [("GROUP", "STATE"), *rows])


def _parse_states(text: str | None, known: Sequence[str]) -> set[str]:
    """Parse a list of states in any case into Kafka's spelling, empty for None.

    Errors: OptionsRefused.
    """
    if not text:
        return set()
    by_lower = {name.lower(): name for name in known}
    names = [word.strip().lower() for word in java_split(text, ",")]
    if not all(name in by_lower for name in names):
        raise refused(f"Invalid state list '{text}'. Valid states are: {', '.join(known)}")
    return {by_lower[name] for name in names}


def deletion_refusals(
    group_ids: Iterable[str], listed: Iterable[GroupListing], kind: str, unknown: str
) -> dict[str, str]:
    """Return the text of the refusal to delete each group that must not be deleted, by its id.

    `kind` is Share or Streams, `unknown` the text for groups that are not listed. A group that is
    listed without a state is not refused here: the broker decides.
    """
    states = {group.group_id: group.state for group in listed}
    refusals: dict[str, str] = {}
    for group_id in dict.fromkeys(group_ids):
        if group_id not in states:
            refusals[group_id] = f"{ILLEGAL_ARGUMENT}: Group '{group_id}' {unknown}"
        elif states[group_id] == "Dead":
            reason = f"{kind} group '{group_id}' group state is DEAD."
            refusals[group_id] = f"java.lang.IllegalStateException: {reason}"
        elif states[group_id] not in (None, "Empty"):
            refusals[group_id] = f"{_NOT_EMPTY}: {kind} group '{group_id}' is not EMPTY."
    return refusals
