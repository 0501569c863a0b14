"""Assemble lines to statements and run them, independent of terminal and engine.

```
select … ;          a statement ends with a semicolon, at the end of a line or of the input
show tables ;       statements about views, `explain` too
help, exit, quit    at the beginning of a statement, with or without a semicolon
```

A statement that fails is reported, and the next one is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from engine.analysis.sql_text import statement_end, without_texts
from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.analysis.view_column import ViewColumn

_LEAVING = ("exit", "quit")
_WORDS = (
    "select", "from", "where", "group by", "order by", "having", "limit", "join", "using", "with",
    "count(*)", "sum(", "min(", "max(", "cast(", "distinct", "describe", "show tables", "explain",
    "create or replace view", "drop view",
    "and", "or", "not", "between", "like", "is null", "as", "desc", "exit", "help",
)  # fmt: skip
HELP = """A statement ends with a semicolon:

  show tables;                         the views
  describe records;                    the columns of one
  select topic, count(*) from records group by topic;
  explain select …;                    what the engine would do
  create view NAME as select …;        saves a view, also for later runs
  drop view NAME;                      removes it

exit or Ctrl-D ends, Ctrl-C drops what is typed, Tab completes views and columns.
"""


class ShellSession:
    """Collects lines until a statement is complete, and runs it."""

    def __init__(
        self,
        answer: Callable[[str], None],
        fail: Callable[[EngineError], None],
        print_help: Callable[[str], None],
    ) -> None:
        """Create a session without input; `answer` runs a statement and prints its rows.

        `fail` reports an error, `print_help` prints the help text.
        """
        self._answer = answer
        self._fail = fail
        self._print_help = print_help
        #: Lines of the incomplete statement.
        self._held = ""
        self.failure_count = 0

    @property
    def is_within(self) -> bool:
        """Return True if a statement has begun and its semicolon is missing."""
        return bool(self._held.strip())

    def forget(self) -> None:
        """Discard the incomplete statement, as after Ctrl-C."""
        self._held = ""

    def process_line(self, line: str) -> bool:
        """Run the statements that a line completes; return False if the line ends the session.

        A statement ends with a semicolon, and may extend over several lines.
        """
        word = line.strip().rstrip(";").strip().lower()
        if not self.is_within and word in _LEAVING:
            return False
        if not self.is_within and word == "help":
            self._print_help(HELP)
            return True
        self._held += line + "\n"
        while (end := statement_end(self._held)) is not None:
            statement, self._held = self._held[:end], self._held[end + 1 :]
            self._run_statement(statement)
        return True

    def close(self) -> None:
        """Run the last statement of the input, which may lack its semicolon."""
        statement, self._held = self._held, ""
        self._run_statement(statement)

    def _run_statement(self, statement: str) -> None:
        """Run a statement unless it is empty; report and count its error."""
        if not without_texts(statement).strip():
            return
        try:
            self._answer(statement.strip())
        except EngineError as error:
            self.failure_count += 1
            self._fail(error)


def completions_at(line: str, begin: int, views: Mapping[str, tuple[ViewColumn, ...]]) -> list[str]:
    """Return the keywords, views and columns that complete the word of `line` at `begin`.

    They are sorted. `views` has the columns of each view by name.
    """
    start = line[begin:]
    head, dot, rest = start.rpartition(".")
    before = line[:begin].lower().split()
    if dot:
        names: Iterable[str] = (column.name for column in views.get(head.lower(), ()))
        return sorted(f"{head}.{name}" for name in names if name.lower().startswith(rest.lower()))
    if before and before[-1] in ("from", "join", "describe", "desc", "in", "view"):
        names = views
    else:
        used = [view for view in views if view in line.lower()] or list(views)
        columns = {column.name for view in used for column in views[view]}
        names = {*columns, *views, *_WORDS}
    return sorted(name for name in names if name.lower().startswith(start.lower()))
