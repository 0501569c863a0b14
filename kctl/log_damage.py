"""Warnings about damage in the logs that a query read, and the end of one that is strict."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engine.analysis.damage import DamageCount
    from engine.analysis.problem import Problem

_PARTITIONS_MAX = 5
UNCOUNTED = "a server of Spark Connect does not report what was damaged; --strict reads for that"
HINT = (
    "`kctl logs verify` shows each place; rows with `not crcValid` of the view batches are whole"
    " batches whose bytes are wrong"
)


CHANGED_HINT = "run it again, or on a copy of the directory: a broker is using this one"


def damage_text(problems: list[Problem]) -> str:
    """Return the damage of logs in one line: how much of what, in which partitions.

    `problems` must not be empty.
    """
    from engine.analysis.damage import count_damage

    count = count_damage(problems)
    names = ", ".join(count.partitions[:_PARTITIONS_MAX])
    more = len(count.partitions) - _PARTITIONS_MAX
    where = f"{names} and {_number(more, 'more partition')}" if more > 0 else names
    return f"{', '.join(_damage_parts(count))} in {where}"


def _damage_parts(count: DamageCount) -> Iterator[str]:
    """Yield a text for each kind of damage that was counted, with its number."""
    if count.batches:
        yield f"{_number(count.batches, 'damaged batch')} ({_number(count.bytes, 'byte')})"
    if count.missing:
        bound = "up to " if count.is_missing_bound else ""
        yield f"{bound}{_number(count.missing, 'offset')} missing"
    if count.torn_tails:
        size = _number(count.tail_bytes, "byte")
        yield f"{_number(count.torn_tails, 'unfinished last write')} ({size})"
    if count.changed:
        verb = "was" if count.changed == 1 else "were"
        that = "it was" if count.changed == 1 else "they were"
        segments = _number(count.changed, "segment")
        yield f"{segments} that {verb} replaced or removed while {that} read"
    if count.others:
        yield _number(count.others, "other problem")


def _number(count: int, noun: str) -> str:
    """Return a count with its noun in singular or plural: 1 batch, 2,000 batches."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun}{'es' if noun.endswith('h') else 's'}"


def warn_of_damage(problems: list[Problem], *, is_counted: bool = True) -> None:
    """Print on stderr the damage that a query met, with a hint; nothing without damage.

    An unfinished last write alone is only noted, since it is no damage. With `is_counted` False it
    notes that damage was not counted.
    """
    from engine.analysis.damage import CHANGED, HARMLESS_CODES

    if not is_counted:
        sys.stderr.write(f"note: {UNCOUNTED}\n")
    if not problems:
        return
    text = damage_text(problems)
    if all(problem.code in HARMLESS_CODES for problem in problems):
        sys.stderr.write(f"note: the logs that were read have {text}\n")
        return
    hint = CHANGED_HINT if all(problem.code == CHANGED for problem in problems) else HINT
    sys.stderr.write(f"warning: the logs that were read have {text}\nhint: {hint}\n")
