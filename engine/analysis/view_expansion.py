"""Expand saved views in a parsed query: each use becomes the view's query, as a subquery.

A table name refers to the first that exists of: an enclosing `with`, a saved view, a view of the
logs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from engine.analysis.columns import VIEWS
from engine.analysis.saved_views import SavedViews, failed_view
from engine.analysis.statements import QueryFailed, unknown_view

if TYPE_CHECKING:
    from sqlglot import exp


class ViewExpansion:
    """Replaces uses of saved views in a query with the views' queries."""

    def __init__(
        self,
        saved: SavedViews,
        parse: Callable[[str], exp.Query],
        column_name: Callable[[exp.Expression], str],
    ) -> None:
        """Prepare to replace uses of the views `saved` by their queries.

        `parse` parses the text of a view's query; `column_name` returns the name of an unnamed
        result column.
        """
        self._saved = saved
        self._parse = parse
        self._column_name = column_name
        #: Queries of the saved views that were used, those that they use included.
        self.used: dict[str, exp.Query] = {}

    def expand(self, tree: exp.Query, within: tuple[str, ...] = ()) -> exp.Query:
        """Replace the uses of saved views in a query by their queries, and return it.

        `within` are the views that are being expanded, to find cycles. Raises QueryFailed for an
        invalid view.
        """
        from sqlglot import exp

        if self._saved:
            _rename_shadows(tree)
        for table in list(tree.find_all(exp.Table)):
            name = table.name.lower()
            if name in self._saved and not table.db and not _is_of_with(table, name):
                table.replace(_subquery_for_table(self._query_of(name, within), table))
        return tree

    def _query_of(self, name: str, within: tuple[str, ...]) -> exp.Query:
        """Return a copy of a saved view's query, in which the views it uses are replaced.

        Raises QueryFailed for a cycle.
        """
        if name in within:
            raise QueryFailed(f"the view {name} uses itself: {' → '.join((*within, name))}")
        if name not in self.used:
            try:
                query = self._parse(self._saved[name])
                self._check_tables(query)
            except QueryFailed as error:
                raise failed_view(name, error) from error
            self._name_columns(query)
            self.used[name] = self.expand(query, (*within, name))
        return self.used[name].copy()

    def _check_tables(self, query: exp.Query) -> None:
        """Raise QueryFailed if a saved view's query reads a table that is no view and no `with`."""
        from sqlglot import exp

        for table in query.find_all(exp.Table):
            name = table.name.lower()
            is_known = name in VIEWS or name in self._saved or _is_of_with(table, name)
            if isinstance(table.this, exp.Identifier) and not is_known:
                raise QueryFailed(unknown_view(table.name, [*VIEWS, *self._saved]))

    def _name_columns(self, query: exp.Query) -> None:
        """Give unnamed columns of a view's query the names that Spark gives them, as aliases."""
        from sqlglot import exp

        for projection in list(query.selects):
            is_star = projection.is_star and not isinstance(projection, exp.Count)
            if is_star or isinstance(projection, exp.Alias | exp.Column):
                continue
            is_field = isinstance(projection, exp.Dot)
            name = projection.name if is_field else self._column_name(projection)
            projection.replace(exp.alias_(projection.copy(), name, quoted=True))


def _is_of_with(table: exp.Table, name: str) -> bool:
    """Return True if a table name refers to a `with` of the query in scope.

    Inside of a `with` only its earlier parts are in scope.
    """
    from sqlglot import exp

    inner: exp.Expression = table
    while (node := inner.parent) is not None:
        parts: list[exp.CTE] = []
        if isinstance(node, exp.With):
            place = next(n for n, part in enumerate(node.expressions) if part is inner)
            parts = node.expressions[: place + bool(node.recursive)]
        elif (clause := node.args.get("with_")) and clause is not inner:
            parts = clause.expressions
        if any(part.alias.lower() == name for part in parts):
            return True
        inner = node
    return False


def _rename_shadows(tree: exp.Query) -> None:
    """Rename each `with` of a query that has the name of a view of the logs.

    A saved view that is expanded in its scope refers to the view of the logs, not to the `with`.
    """
    from sqlglot import exp

    parts = [part for part in tree.find_all(exp.CTE) if part.alias.lower() in VIEWS]
    tables = [
        table
        for table in (tree.find_all(exp.Table) if parts else ())
        if not table.db and _is_of_with(table, table.name.lower())
    ]
    for table in tables:
        if (name := table.name.lower()) in VIEWS:
            if not table.alias:
                table.set("alias", exp.TableAlias(this=table.this.copy()))
            table.set("this", exp.to_identifier(f"kctl_{name}"))
    for part in parts:
        part.args["alias"].set("this", exp.to_identifier(f"kctl_{part.alias.lower()}"))


def _subquery_for_table(query: exp.Query, table: exp.Table) -> exp.Expression:
    """Return a query as a subquery with the alias, joins and sample of the table it replaces."""
    from sqlglot import exp

    alias = table.args.get("alias") or exp.TableAlias(this=table.this.copy())
    beside = {
        key: value
        for key, value in table.args.items()
        if key in ("joins", "laterals", "pivots", "sample") and value
    }
    return exp.Subquery(this=query, alias=alias.copy(), **beside)
