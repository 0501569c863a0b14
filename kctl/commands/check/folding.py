"""Findings of one cause as one row: a broker that is gone is one row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.client.findings import HealthFinding
from kctl.arguments import counted
from kctl.render.rows import OutputRow

#: Maximum number of findings of one cause that are shown each.
_APART_MAX: Final = 5
_NAMED: Final = 3


class FindingRow(NamedTuple):
    """A finding with its row."""

    finding: HealthFinding
    row: OutputRow


def folded(rows: Sequence[FindingRow]) -> list[OutputRow]:
    """Return rows in their order; more than _APART_MAX of one cause become one, at the first."""
    groups: dict[tuple[object, ...], list[FindingRow]] = {}
    for number, one in enumerate(rows):
        finding = one.finding
        alike = number if finding.shared_cause is None else finding.shared_cause
        groups.setdefault((finding.severity, finding.kind, alike), []).append(one)
    found: list[OutputRow] = []
    for group in groups.values():
        found += [_row_of(group)] if len(group) > _APART_MAX else [one.row for one in group]
    return found


def _row_of(group: Sequence[FindingRow]) -> OutputRow:
    """Return one row for findings of one cause: first names, their number, earliest time."""
    first = group[0]
    named = ", ".join(one.finding.subject for one in group[:_NAMED])
    times = [since for one in group if (since := one.row["since"]) is not None]
    return {
        **first.row,
        "subject": f"{named} and {len(group) - _NAMED} more",
        "since": min(times, default=None),
        "cause": f"{counted(len(group), 'partition')}: {first.finding.shared_cause}",
    }
