"""Views that a user defines by a query, and the text that stores them.

```
create view big as
select topic, partition, offset from records where value_size > 1000000;
```

The text is a list of such statements in any order, and can be edited by hand. A view may use other
saved views. Where a query uses a view, the view's query is inserted; a `with` query of the same
name takes precedence over a saved view.

Source: Spark's CREATE VIEW and DROP VIEW. Differs: comments and column lists are not supported, and
a view outlives the session.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

from engine.analysis.columns import VIEWS
from engine.analysis.sql_text import one_statement, statement_end, text_start
from engine.analysis.statements import QueryFailed
from engine.errors import EngineError

#: The query of each saved view, by its name in lower case.
SavedViews: TypeAlias = Mapping[str, str]
NO_VIEWS: Final[SavedViews] = MappingProxyType({})

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_CREATE = re.compile(r"create\s+(or\s+replace\s+)?view\s+`?(\w+)`?\s+as\b\s*", re.I)
_DROP = re.compile(r"drop\s+view\s+(if\s+exists\s+)?`?(\w+)`?", re.I)


class WrongViewName(EngineError):
    """A name is not allowed for a view."""

    exit_code = 2
    hint = "a name is letters, digits and _, such as big_values"

    def __init__(self, name: str, rule: str) -> None:
        super().__init__(f"view {name}: {rule}")
        self.name = name


class ViewExists(EngineError):
    """A view cannot be saved because its name is in use."""

    exit_code = 2

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a saved view {name} already")
        self.name = name
        self.hint = f"`create or replace view {name} as …` replaces it, `drop view {name}` removes"


class NoSavedView(EngineError):
    """The view to be dropped does not exist."""

    exit_code = 2

    def __init__(self, name: str, names: list[str]) -> None:
        super().__init__(f"no saved view {name}; saved are: {', '.join(names) or 'none'}")
        self.name = name


class WrongViewText(ValueError):
    """A text of saved views contains other things than statements that create views."""


class CreateView(NamedTuple):
    """The statement `create view`; `replaces` is True for `create or replace`."""

    name: str
    query: str
    replaces: bool = False


class DropView(NamedTuple):
    """The statement `drop view`; with `if_exists` a missing view is no error."""

    name: str
    if_exists: bool = False


def parse_view_change(statement: str) -> CreateView | DropView | None:
    """Parse a statement that creates or drops a saved view; return None for any other statement.

    Raises WrongViewName.
    """
    text = one_statement(statement[text_start(statement) :])
    if match := _CREATE.match(text):
        return CreateView(check_name(match[2]), text[match.end() :].strip(), match[1] is not None)
    if match := _DROP.fullmatch(text):
        return DropView(match[2].lower(), match[1] is not None)
    return None


def check_name(name: str) -> str:
    """Return the name for a saved view in lower case; raises WrongViewName for others."""
    if not _NAME.fullmatch(name):
        raise WrongViewName(name, "not a name")
    if name.lower() in VIEWS:
        raise WrongViewName(name, "a view of the logs has this name")
    return name.lower()


def apply_change(saved: SavedViews, change: CreateView | DropView) -> SavedViews:
    """Return the saved views after one is created or dropped; raises ViewExists, NoSavedView."""
    if isinstance(change, CreateView):
        if change.name in saved and not change.replaces:
            raise ViewExists(change.name)
        return {**saved, change.name: change.query}
    if change.name not in saved and not change.if_exists:
        raise NoSavedView(change.name, sorted(saved))
    return {name: query for name, query in saved.items() if name != change.name}


def parse_views(text: str) -> SavedViews:
    """Return the views that a text creates; of two views with one name, the last.

    Raises WrongViewText, WrongViewName.
    """
    saved: dict[str, str] = {}
    for statement in _statements(text):
        change = parse_view_change(statement)
        if isinstance(change, CreateView):
            saved[change.name] = change.query
        elif other := one_statement(statement[text_start(statement) :]):
            first = other.split("\n", 1)[0]
            raise WrongViewText(f"expected `create view NAME as …;`, not {first[:80]!r}")
    return saved


def _statements(text: str) -> Iterator[str]:
    """Yield each statement with the comments before it, and its semicolon if it has one."""
    while text:
        end = statement_end(text)
        stop = len(text) if end is None else end + 1
        yield text[:stop]
        text = text[stop:]


def apply_change_to_text(text: str, change: CreateView | DropView) -> str:
    """Return the file text of saved views after one is created or dropped.

    `apply_change` has accepted the change. Other statements and their comments are unchanged. A
    replaced view keeps its place and the comments above it. A dropped view is removed with the
    comments between it and the blank line before.
    """
    wanted = (
        create_view_statements({change.name: change.query}).rstrip()
        if isinstance(change, CreateView)
        else ""
    )
    parts: list[str] = []
    for statement in _statements(text):
        found = parse_view_change(statement)
        if not isinstance(found, CreateView) or found.name != change.name:
            parts.append(statement)
            continue
        above = statement[: text_start(statement)]
        if not wanted:
            above = above[: above.rfind("\n\n") + 1]
        parts.append(above + wanted)
        wanted = ""
    if wanted:
        before = "".join(parts).rstrip()
        is_open = (
            bool(parts) and parse_view_change(parts[-1]) is not None and not before.endswith(";")
        )
        parts = [before, "\n;" if is_open else "", "\n\n" if before else "", wanted]
    return "".join(parts).strip("\n") + "\n" if "".join(parts).strip() else ""


def create_view_statements(saved: SavedViews) -> str:
    """Return the statements that create these views, sorted by name, as text of a file."""
    # The semicolon is on its own line: a comment at the end of the query would swallow it.
    return "".join(f"create view {name} as\n{saved[name]}\n;\n\n" for name in sorted(saved))


def views_for(query: str, saved: SavedViews) -> list[str]:
    """Return the names of saved views that a query may use, each after those that it uses itself.

    Views are found as words: a view may be listed although the word means something else.
    """
    found: list[str] = []
    in_progress: set[str] = set()

    def add(text: str) -> None:
        """Append the views that `text` names, after the views that these use; stop at cycles."""
        for name in _mentioned_names(text, saved):
            if name not in found and name not in in_progress:
                in_progress.add(name)
                add(saved[name])
                found.append(name)

    add(query)
    return found


def _mentioned_names(text: str, saved: SavedViews) -> Iterator[str]:
    """Yield the names of saved views that a query mentions; saved names are lower-case words."""
    words = {word.lower() for word in re.findall(r"\w+", text)}
    yield from (name for name in saved if name in words)


def failed_view(name: str, error: QueryFailed) -> QueryFailed:
    """Return the error of a saved view whose own query is invalid, with the view's name."""
    return QueryFailed(f"the view {name}: {error.reason}")
