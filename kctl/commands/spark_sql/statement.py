"""Parse the arguments of `kctl spark-sql`: a query, directories, a change of saved views."""

from __future__ import annotations

import sys

from engine.analysis.saved_views import CreateView, DropView, check_name, parse_view_change
from engine.analysis.sql_text import one_statement
from engine.analysis.statements import StatementRefused, check_statement
from engine.errors import EngineError
from engine.host.real import RealFiles


class WrongArguments(EngineError):
    """The query or the directory is missing."""

    exit_code = 2
    hint = 'such as `kctl spark-sql "select count(*) from records" /var/lib/kafka/data`'


def read_view_change(query: str, save: str | None) -> CreateView | DropView | None:
    """Return the change of saved views that a statement or `--save` makes; None for a query.

    Raises StatementRefused, WrongViewName.
    """
    change = parse_view_change(query)
    if change is not None and save is not None:
        raise StatementRefused("--save NAME takes a query, not a statement about a view")
    if change is None or isinstance(change, CreateView):
        check_statement(change.query if change else query)
    return change if save is None else CreateView(check_name(save), one_statement(query))


def read_query_and_dirs(arguments: list[str], file: str | None) -> tuple[str, list[str]]:
    """Return the query and the directories to query.

    The query is in `file` if given (`-`: stdin), else it is the first argument. Raises StorageError
    for an unreadable file.
    """
    if file is None:
        return arguments[0], arguments[1:]
    if file == "-":
        return sys.stdin.read(), arguments
    return RealFiles().read_bytes(file).decode("utf-8-sig", "replace"), arguments
