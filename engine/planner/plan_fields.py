"""Reading of a plan file's JSON field by field; errors name the position in the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, TypeVar

from engine.errors import EngineError

T = TypeVar("T")

_INT32_MAX: Final = (1 << 31) - 1
_INT64_MAX: Final = (1 << 63) - 1
#: How many characters of a value are shown in an error.
_SHOWN_CHARS: Final = 60


class BadPlanFile(EngineError):
    """Raised if a file is not a valid plan: `place` is the position in it, `reason` the fault."""

    def __init__(self, place: str, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(f"{place}: {reason}" if place else reason)


def parse_plan_json(text: str) -> PlanFields:
    """Return the fields of a plan file; raises BadPlanFile unless it is one JSON object."""
    try:
        value = json.loads(text, object_pairs_hook=_checked_object, parse_constant=_reject_constant)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise BadPlanFile(place, "is not JSON from here on") from error
    except RecursionError as error:
        raise BadPlanFile("", "is not a plan: lists or objects are nested too deep") from error
    except ValueError as error:
        # Python's parser rejects whole numbers of thousands of digits.
        raise BadPlanFile("", "has a number of too many digits") from error
    return PlanFields("", value)


def _checked_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object of name-value pairs; raises BadPlanFile if a name occurs twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadPlanFile("", f"has {json.dumps(twice)} twice in one object")
    return found


def _reject_constant(word: str) -> None:
    """Raise BadPlanFile for NaN or an infinity, which Python's parser would accept."""
    raise BadPlanFile("", f"has {word}, which is no number")


class PlanFields:
    """A JSON object of a plan file.

    Every method raises BadPlanFile for a value of the wrong type.
    """

    def __init__(self, place: str, value: object) -> None:
        """Wrap the object at `place` in the file, which is "" for the whole file.

        Raises BadPlanFile if the value is no object.
        """
        if not isinstance(value, dict):
            raise BadPlanFile(place, "is not an object" if place else "is not a JSON object")
        self.place = place
        self._values: dict[str, object] = value

    def has(self, name: str) -> bool:
        """Return True if the field exists and is not null."""
        return self._values.get(name) is not None

    def where(self, name: str) -> str:
        """Return the position of a field in the file, for error messages."""
        return f"{self.place}.{name}" if self.place else name

    def whole(self, name: str, *, largest: int = _INT64_MAX) -> int:
        """Return the whole number of 0 to `largest` in a field; raises BadPlanFile."""
        return self._read(name, lambda value: _as_whole(value, largest), "a whole number")

    def broker_id(self, name: str) -> int:
        """Return the broker id or partition number in a field; raises BadPlanFile."""
        return self.whole(name, largest=_INT32_MAX)

    def number(self, name: str) -> float:
        """Return the number of 0 or more in a field; raises BadPlanFile."""
        return self._read(name, _as_number, "a number")

    def text(self, name: str) -> str:
        """Return the string in a field, which may be empty; raises BadPlanFile."""
        return self._read(name, _as_text, "a text")

    def flag(self, name: str) -> bool:
        """Return the boolean in a field; raises BadPlanFile."""
        return self._read(name, lambda v: v if isinstance(v, bool) else None, "true or false")

    def broker_ids(self, name: str) -> tuple[int, ...]:
        """Return the distinct broker ids in a field; raises BadPlanFile."""
        ids = self._read(name, lambda v: _as_list(v, _as_broker_id), "a list of brokers")
        if len(set(ids)) < len(ids):
            raise BadPlanFile(self.where(name), f"has a broker twice: {list(ids)}")
        return ids

    def wholes(self, name: str) -> tuple[int, ...]:
        """Return the whole numbers of 0 or more in a field; raises BadPlanFile."""
        what = "a list of whole numbers"
        return self._read(name, lambda v: _as_list(v, lambda one: _as_whole(one, _INT64_MAX)), what)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the strings in a field; raises BadPlanFile."""
        return self._read(name, lambda v: _as_list(v, _as_text), "a list of texts")

    def fields(self, name: str) -> PlanFields:
        """Return the object in a field; raises BadPlanFile."""
        return PlanFields(self.where(name), self._present(name))

    def rows(self, name: str) -> list[PlanFields]:
        """Return the objects in a field's list; raises BadPlanFile."""
        values = self._list_of(name)
        return [PlanFields(f"{self.where(name)}[{at}]", value) for at, value in enumerate(values)]

    def lists(self, name: str) -> list[tuple[int, ...]]:
        """Return the lists of whole numbers in a field's list; raises BadPlanFile."""
        found = []
        for at, value in enumerate(self._list_of(name)):
            numbers = _as_list(value, lambda one: _as_whole(one, _INT64_MAX))
            if numbers is None:
                place = f"{self.where(name)}[{at}]"
                raise BadPlanFile(
                    place, f"is {_text_for_error(value)}, not a list of whole numbers"
                )
            found.append(numbers)
        return found

    def _list_of(self, name: str) -> list[object]:
        """Return the list in a field; raises BadPlanFile, with the position, for another type."""
        value = self._present(name)
        if not isinstance(value, list):
            raise BadPlanFile(self.where(name), f"is {_text_for_error(value)}, not a list")
        return value

    def _present(self, name: str) -> object:
        """Return a field's value; raises BadPlanFile if the field is missing."""
        if name not in self._values:
            raise BadPlanFile(self.where(name), "is missing")
        return self._values[name]

    def _read(self, name: str, read: Callable[[object], T | None], what: str) -> T:
        """Return a field's value converted by `read`; raises BadPlanFile if that returns None.

        `what` names the expected type in the error.
        """
        value = self._present(name)
        found = read(value)
        if found is None:
            raise BadPlanFile(self.where(name), f"is {_text_for_error(value)}, not {what}")
        return found


def _as_whole(value: object, largest: int) -> int | None:
    """Return a whole number of 0 to `largest`, None for any other value, also true and false."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and isinstance(value, int) and 0 <= value <= largest else None


def _as_broker_id(value: object) -> int | None:
    """Return a broker id of 0 or more, None for any other value."""
    return _as_whole(value, _INT32_MAX)


def _as_number(value: object) -> float | None:
    """Return a JSON number of 0 to 2^63 - 1 as a float, None for any other value."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not isinstance(value, int | float) or not 0 <= value <= _INT64_MAX:
        return None
    return float(value)


def _as_text(value: object) -> str | None:
    """Return a string, None for any other value."""
    return value if isinstance(value, str) else None


def _as_list(value: object, read: Callable[[object], T | None]) -> tuple[T, ...] | None:
    """Return a list's items converted by `read`.

    None if the value is no list, or if `read` returns None for an item.
    """
    if not isinstance(value, list):
        return None
    found = [one for item in value if (one := read(item)) is not None]
    return tuple(found) if len(found) == len(value) else None


def _text_for_error(value: object) -> str:
    """Return a value as JSON for an error message, truncated if it is long."""
    text = json.dumps(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
