"""Fold findings with the same cause into one row, such as those of an unavailable broker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.client.findings import HealthFinding
from kctl.arguments import counted
from kctl.render.rows import OutputRow

#: Findings of one cause up to this number are shown in separate rows.
_APART_MAX: Final = 5
_NAMED: Final = 3


class FindingRow(NamedTuple):
    """A finding with its row."""

    finding: HealthFinding
    row: OutputRow


def fold_rows(rows: Sequence[FindingRow]) -> list[OutputRow]:
    """Return the findings as table rows, with many findings of one cause as a single row.

    That keeps the table readable if a broker fails. More than _APART_MAX findings count as many;
    the single row has the position of the first of them.
    """
    groups: dict[tuple[object, ...], list[FindingRow]] = {}
    for number, one in enumerate(rows):
        finding = one.finding
        alike = number if finding.shared_cause is None else finding.shared_cause
        groups.setdefault((finding.severity, finding.kind, alike), []).append(one)
    found: list[OutputRow] = []
    for group in groups.values():
        found += [_folded_row(group)] if len(group) > _APART_MAX else [one.row for one in group]
    return found


def _folded_row(group: Sequence[FindingRow]) -> OutputRow:
    """Return one row for findings of one cause.

    It has the first subjects, the number of all, and the earliest time.
    """
    first = group[0]
    named = ", ".join(one.finding.subject for one in group[:_NAMED])
    times = [since for one in group if (since := one.row["since"]) is not None]
    return {
        **first.row,
        "subject": f"{named} and {len(group) - _NAMED} more",
        "since": min(times, default=None),
        "cause": f"{counted(len(group), 'partition')}: {first.finding.shared_cause}",
    }
