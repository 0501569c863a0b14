"""Conditions on JSON values: a path by RFC 9535, and the values that it must find.

| condition | holds if |
|---|---|
| `$.user.id` | the path finds something, even null |
| `$.user.id=5` | … this JSON value, or this text |
| `$.items[?@.price > 10]` | the filter in the path finds something |

A value that is not JSON matches nothing. One that is nested too deeply is an error of its own.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from engine.errors import EngineError
from engine.json_text import TOO_DEEP
from engine.limits import JSON_DEPTH_MAX

if TYPE_CHECKING:
    from jsonpath import CompoundJSONPath, JSONPath, JSONPathEnvironment


class WrongJsonPath(EngineError):
    """A condition is not a JSONPath."""

    exit_code = 2
    hint = "`$.user.id`, `$.user.id=5` and `$.items[?@.price > 10]` are some"

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(f"{text!r} is no JSONPath: {reason}")
        self.text = text
        self.reason = reason


class JsonCondition(NamedTuple):
    """A path, and the texts and JSON values of which it must find one.

    If `wanted` is None it may find anything.
    """

    path: JSONPath | CompoundJSONPath
    wanted: tuple[object, ...] | None

    def holds(self, document: Any) -> bool:
        """Return True if the path finds one of the wanted values in a document.

        If none are wanted, it suffices that the path finds anything.
        """
        if isinstance(document, str):
            import json

            # The package would parse a text as JSON.
            document = json.dumps(document)
        seen = self.path.findall(document)
        if self.wanted is None:
            return bool(seen)
        # 1 and true are equal in Python, but not in JSON.
        return any(
            value == wanted and type(value) is type(wanted)
            for value in seen
            for wanted in self.wanted
        )


def parse_condition(text: str) -> JsonCondition:
    """Return the condition that `PATH` or `PATH=VALUE` states; raises WrongJsonPath."""
    import jsonpath

    environment = _create_environment()
    first: Exception | None = None
    # A path may contain equality signs, so the longest valid path is taken.
    for place in (len(text), *(n for n in range(len(text) - 1, 0, -1) if text[n] == "=")):
        try:
            path = environment.compile(text[:place])
        except jsonpath.JSONPathError as error:
            first = first or error
            continue
        return JsonCondition(
            path, _possible_values(text[place + 1 :]) if place < len(text) else None
        )
    raise WrongJsonPath(text, str(first).partition("\n")[0])


def _possible_values(text: str) -> tuple[object, ...]:
    """Return the values that a condition's text can mean: the text, and its value if it is JSON."""
    import json

    try:
        return (text, json.loads(text))
    except ValueError:
        return (text,)


@cache
def _create_environment() -> JSONPathEnvironment:
    """Return a compiler of JSON paths that search as deep as documents may be nested."""
    from jsonpath import JSONPathEnvironment

    class Environment(JSONPathEnvironment):
        max_recursion_depth = JSON_DEPTH_MAX + 1

    return Environment()


class TooDeepForPath(EngineError):
    """A record's value is nested too deeply for a search."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"record at offset {offset}: left out by --json-path: {TOO_DEEP}")
        self.offset = offset


def matches_json(
    raw: bytes | memoryview | None, conditions: tuple[JsonCondition, ...], offset: int
) -> bool:
    """Return True if a record's value is JSON and meets all conditions.

    Errors: TooDeepForPath.
    """
    if raw is None:
        return False
    import json

    from jsonpath import JSONPathError

    try:
        # Only as UTF-8: bytes of Kafka's integer serializer would be read as a number in UTF-32.
        document = json.loads(bytes(raw).decode("utf-8-sig", "surrogatepass"))
    except ValueError:
        return False
    except RecursionError:
        raise TooDeepForPath(offset) from None
    try:
        return all(condition.holds(document) for condition in conditions)
    except (JSONPathError, RecursionError) as error:
        raise TooDeepForPath(offset) from error
