"""The file of saved views: SQL, by default beside the file of contexts.

| first that is given | purpose |
|---|---|
| `--views FILE` | a file of one investigation, which can be handed on |
| `KCTL_VIEWS` | the same, for a whole shell |
| `$XDG_CONFIG_HOME/kctl/views.sql` | the user's own file |

`engine/analysis/saved_views.py` documents the format of the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from engine.analysis.saved_views import (
    CreateView,
    DropView,
    SavedViews,
    WrongViewName,
    WrongViewText,
    apply_change,
    apply_change_to_text,
    create_view_statements,
    parse_view_change,
    parse_views,
)
from engine.analysis.statements import check_statement
from engine.errors import EngineError
from engine.host.ports import Files
from kctl.console import notify

if TYPE_CHECKING:
    from engine.analysis.statements import QueryResult
    from kctl.log_queries import LogQueries

_FILE = "kctl/views.sql"


class BadViewFile(EngineError):
    """The file of saved views is malformed."""

    hint = "correct it by hand; it is a list of `create view NAME as SELECT …;`"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


def views_path(environment: Mapping[str, str], given: str | None = None) -> str:
    """Return the path of the file of saved views.

    It is the value `given` of --views, else KCTL_VIEWS, else kctl/views.sql in XDG_CONFIG_HOME or
    ~/.config.
    """
    named = given or environment.get("KCTL_VIEWS")
    if named:
        return named
    home = environment.get("XDG_CONFIG_HOME") or f"{environment.get('HOME', '')}/.config"
    return f"{home}/{_FILE}"


class ViewStore:
    """The saved views in one file."""

    def __init__(self, files: Files, path: str) -> None:
        self._files = files
        self.path = path

    def load(self) -> SavedViews:
        """Return the views saved in the file, none if there is no file.

        Errors: BadViewFile, StorageError.
        """
        try:
            return parse_views(self._text())
        except (WrongViewText, WrongViewName, UnicodeDecodeError) as error:
            raise BadViewFile(self.path, str(error)) from error

    def apply(self, change: CreateView | DropView) -> None:
        """Save or remove a view in the file, under its lock; print on stderr what was done.

        Errors: ViewExists, NoSavedView, BadViewFile, StorageError.
        """
        from engine.host.lock_file import lock_file

        self._files.make_dir(self.path.rpartition("/")[0] or ".")
        release = lock_file(f"{self.path}.lock", waits=True)
        try:
            before = self.load()
            after = apply_change(before, change)
            if after != before:
                self._files.replace_file(
                    self.path, apply_change_to_text(self._text(), change).encode()
                )
        finally:
            release()
        if isinstance(change, CreateView):
            notify(f"saved view {change.name} in {self.path}")
        elif change.name in before:
            notify(f"removed view {change.name} in {self.path}")
        else:
            notify(f"no view {change.name} in {self.path}")

    def _text(self) -> str:
        """Return the file's text without a byte order mark, empty if there is no file."""
        if not self._files.exists(self.path):
            return ""
        return self._files.read_bytes(self.path).decode("utf-8-sig")


def query_view_columns(queries: LogQueries, store: ViewStore, change: CreateView) -> QueryResult:
    """Return the columns of a view that is about to be saved, by a query without rows.

    Errors: ViewExists, WrongViewName, and those of its query.
    """
    saved = apply_change(store.load(), change)
    if parse_views(create_view_statements({change.name: change.query})) != {
        change.name: change.query
    }:
        raise WrongViewName(change.name, "its query ends within a text or a comment")
    return queries.run_with(saved, f"describe `{change.name}`", 0)


def run_statement(
    queries: LogQueries, store: ViewStore, statement: str, max_rows: int
) -> QueryResult | None:
    """Run a query of spark-sql, or a statement that saves or drops a view.

    It returns the rows of the query, or the columns of the saved view; None after dropping a view.

    Errors: StatementRefused, those of a query and of `ViewStore.apply`.
    """
    change = parse_view_change(statement)
    if not isinstance(change, DropView):
        check_statement(change.query if change else statement)
    result = None
    if change is None:
        return queries.run_saved(statement, max_rows)
    if isinstance(change, CreateView):
        result = query_view_columns(queries, store, change)
    store.apply(change)
    return result
