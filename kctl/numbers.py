"""Numbers on the command line: each within the range of the field that it is written to.

| number | from | to |
|---|---|---|
| an offset, a count of records, a seed, a producer's id | 0 | 2^63 − 1 |
| a replication factor | 1 | 2^15 − 1 |
| any other whole number | the option's minimum, else 0 | the option's maximum, else 2^31 − 1 |
| seconds | the option's minimum | 2^31 − 1 ms |

Other texts (`nan`, `inf`, numbers out of range, the empty text) are refused with this range and
exit code 2. `set_ranges` sets the ranges on all commands, so that no option is without one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kctl.arguments import UnreadableArgument

if TYPE_CHECKING:
    from typer._click.core import Command, Parameter

_Command = TypeVar("_Command", bound="Command")

INT16_MAX: Final = (1 << 15) - 1
INT32_MAX: Final = (1 << 31) - 1
INT64_MAX: Final = (1 << 63) - 1

_LONG_NAMES: Final = frozenset(
    ("from_offset", "to_offset", "producer_id", "max_records", "max_messages", "from_line", "seed")
)
_FACTOR_NAMES: Final = frozenset(("factor", "rf", "replication_factor"))
#: Milliseconds per unit of float options that are not in seconds.
_UNITS_MS: Final = {"minutes": 60_000}
_SHOWN_CHARACTERS: Final = 40


def parse_whole_number(text: str, what: str, lowest: int = 0, highest: int = INT64_MAX) -> int:
    """Return the whole number in a text, within an inclusive range.

    `what` names the text in the error.

    Errors: UnreadableArgument, which has the range.
    """
    number = read_whole(text)
    if number is None or not lowest <= number <= highest:
        raise UnreadableArgument(
            what, shortened(text), f"a whole number from {lowest} to {highest}"
        )
    return number


def read_whole(text: str) -> int | None:
    """Return the number in ASCII digits, with an optional sign; None for any other text.

    None also for more than 30 digits, leading zeros not counted.
    """
    # Python refuses to read thousands of digits, and no option takes that many.
    is_number = re.fullmatch(r"[+-]?0*[0-9]{1,30}", text, re.ASCII)
    return int(text) if is_number else None


def shortened(text: str) -> str:
    """Return an argument's text for an error, cut with "…" if it is too long to be shown."""
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def set_ranges(command: _Command) -> _Command:
    """Set the bounds of the numeric options of a Typer command and its children; return it.

    Without them a number above the request's field fails only when it is sent.
    """
    for child in getattr(command, "commands", {}).values():
        set_ranges(child)
    for parameter in command.params:
        name = getattr(parameter.type, "name", "")
        if name.startswith(("int", "float")):
            kind: Any = copy(parameter.type)
            lowest, highest = _range_of(parameter, is_whole=name.startswith("int"))
            read = read_whole if name.startswith("int") else _read_float
            kind.convert = partial(_convert, kind.fail, read, lowest, highest)
            parameter.type = kind
    return command


def _range_of(parameter: Parameter, *, is_whole: bool) -> tuple[float, float]:
    """Return the least and greatest number that an option takes, inclusive.

    Where the option has none itself, they are those of the request's field: int16, int32 or int64.
    """
    lowest, highest = getattr(parameter.type, "min", None), getattr(parameter.type, "max", None)
    if highest is None and is_whole:
        is_long, is_factor = parameter.name in _LONG_NAMES, parameter.name in _FACTOR_NAMES
        highest = INT64_MAX if is_long else INT16_MAX if is_factor else INT32_MAX
    elif highest is None:
        highest = INT32_MAX // _UNITS_MS.get(parameter.name or "", 1_000)
    return 0 if lowest is None else lowest, highest


def _convert(
    fail: Callable[..., object],
    read: Callable[[str], float | None],
    lowest: float,
    highest: float,
    value: str | float,
    parameter: object,
    context: object,
) -> float | None:
    """Return the number of an option's value, within the inclusive bounds.

    It is click's `convert` of the option's type. `read` parses the text; `fail`, click's, raises
    the usage error for any other text and for a number out of bounds.
    """
    number = read(value) if isinstance(value, str) else value
    kind = "number" if read is _read_float else "whole number"
    wanted = f"expected one from {lowest} to {highest}"
    shown = shortened(str(value))
    if number is None or number != number:  # noqa: PLR0124 (a NaN)
        fail(f"{shown!r} is not a {kind}. {wanted.capitalize()}", parameter, context)
    elif not lowest <= number <= highest:
        fail(f"{shown} is not in the range; {wanted}", parameter, context)
    return number


def _read_float(text: str) -> float | None:
    """Return the number in a text, which may be NaN or infinite; None for any other text."""
    try:
        return float(text)
    except ValueError:
        return None
