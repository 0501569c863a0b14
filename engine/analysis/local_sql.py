"""Translate Spark's SQL for the embedded engine: a query returns the same rows on both engines.

1. sqlglot parses Spark's SQL. A statement that is no query is refused. Saved views become
   subqueries (`view_expansion.py`).
2. The names of result columns are recorded: as written, or the text of an unnamed expression.
3. All names are resolved by the views' columns, stars are expanded, and types are derived.
4. Functions and words with another meaning in DuckDB are replaced:

| Spark | DuckDB |
|---|---|
| bytes as an argument or in a cast that needs text | decoded as UTF-8, U+FFFD for errors |
| text compared with bytes | the text's bytes |
| a doubled quote in a text | the quote |
| timestamps of the session's zone, UTC | timestamps without a zone, which are UTC |
| text of a time with a zone, cast or compared | the time in UTC |
| `percentile` interpolates | `quantile_cont` |
| `current_timestamp()` | the time at which the query was translated |

   and numbers and times by the table of `sql_differences.py`.
5. sqlglot writes DuckDB's SQL.

Source: facts/spark.md §5. Differs: functions that DuckDB lacks, and table functions, are refused;
dividing by 0 gives null.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from engine.analysis.column_types import spark_type
from engine.analysis.columns import VIEWS
from engine.analysis.local_plan import Views
from engine.analysis.saved_views import NO_VIEWS, SavedViews, failed_view
from engine.analysis.sql_differences import is_time, replace_difference, time_types, wrap_in_call
from engine.analysis.sql_text import escape_doubled_quotes
from engine.analysis.statements import QueryFailed, StatementRefused, unknown_column, unknown_view
from engine.analysis.table_values import time_text
from engine.analysis.view_expansion import ViewExpansion
from engine.host.real import RealClock

if TYPE_CHECKING:
    from sqlglot import exp

#: Names of the functions that are added to DuckDB: bytes to text, and bytes to their CRC-32.
TEXT_OF_BYTES = "kctl_text"
CRC_OF_BYTES = "kctl_crc32"

#: Starts of `TABLE t` and `VALUES …`, which are replaced with `select * from`.
_TABLE_QUERY = re.compile(r"\s*table\s+(?=[\w`])", re.I)
_VALUES_QUERY = re.compile(r"\s*(?=values\b)", re.I)


class LocalQuery(NamedTuple):
    """A query in DuckDB's SQL, and the names that Spark gives its result columns."""

    sql: str
    columns: list[str]


class _Names(NamedTuple):
    """The views with their columns, and the names from which error messages suggest similar ones.

    `tables` are all views including saved ones; `of_saved` are the columns of the saved views in
    use.
    """

    views: Views
    tables: list[str]
    of_saved: list[str]


def translate(
    query: str, max_rows: int = 0, views: Views = VIEWS, saved: SavedViews = NO_VIEWS
) -> LocalQuery:
    """Translate a query from Spark's SQL to DuckDB's, for at most `max_rows` rows (0: all).

    Raises StatementRefused for a statement that is no query, QueryFailed for an invalid query.
    """
    from sqlglot.errors import SqlglotError

    tree = _parse(query)
    written = _written_names(tree)
    expansion = ViewExpansion(saved, _parse, _spark_text)
    tree = expansion.expand(tree)
    of_views = [name for used in expansion.used.values() for name in _written_names(used)]
    names = _Names(views, [*views, *saved], [name for name in of_views if name is not None])
    try:
        tree = _check_and_resolve(tree, names)
    except QueryFailed:
        _check_saved(expansion, names)
        raise
    columns = _result_names(written, tree, views, of_views)
    _replace_differences(tree)
    if max_rows:
        tree = _limit(tree, max_rows)
    try:
        return LocalQuery(tree.sql(dialect="duckdb"), columns)
    except SqlglotError as error:
        raise QueryFailed(str(error).split("\n", 1)[0]) from error


def _parse(query: str) -> exp.Query:
    """Parse one query of Spark's SQL; `TABLE t` and `VALUES …` become a `SELECT *`.

    Raises QueryFailed for a syntax error, StatementRefused for a statement that is no query.
    """
    import logging

    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import ParseError, TokenError

    logging.getLogger("sqlglot").setLevel(logging.ERROR)
    for form in (_TABLE_QUERY, _VALUES_QUERY):
        if form.match(query):
            query = form.sub("select * from ", query, count=1)
    try:
        statements = sqlglot.parse(_quote_offsets(escape_doubled_quotes(query)), read="spark")
    except (ParseError, TokenError) as error:
        raise QueryFailed(_parsing_failure(error)) from error
    (tree,) = statements  # `check_statement` refuses several.
    writing = [n for n in tree.walk() if isinstance(n, exp.DML | exp.DDL | exp.Command)]
    for node in [n for n in (*writing, tree) if not isinstance(n, exp.Query)]:
        name = type(node).__name__.upper()
        raise StatementRefused(f"{name} is no question: log directories are only read")
    return tree


def _quote_offsets(query: str) -> str:
    """Return a query with the column name `offset` in backquotes.

    Without them sqlglot parses some as the clause OFFSET. An `offset` before a number remains a
    clause.
    """
    from sqlglot.dialects import Spark
    from sqlglot.tokens import TokenType

    tokens = Spark().tokenize(query)
    parts: list[str] = []
    position = 0
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        is_clause = following is not None and following.token_type is TokenType.NUMBER
        if token.token_type is TokenType.OFFSET and not is_clause:
            parts += (query[position : token.start], "`", query[token.start : token.end + 1], "`")
            position = token.end + 1
    return "".join((*parts, query[position:]))


def _parsing_failure(error: Exception) -> str:
    """Return the message of a syntax error, with line and position if sqlglot has them."""
    (first, *_) = getattr(error, "errors", None) or [{}]
    near = first.get("highlight") or ""
    place = f" (line {first.get('line')}, pos {first.get('col')})" if first.get("line") else ""
    reason = first.get("description") or str(error).split("\n", 1)[0]
    return f"Syntax error at or near '{near}': {reason}{place}"


def _resolving_failure(text: str, names: _Names) -> str:
    """Return the message for a name that cannot be resolved, from sqlglot's text.

    It names similar columns for an unknown column; else it is the text's first line.
    """
    name = re.search(r"Column '?\"?([^'\"]+)\"?'? could not|Unknown column: (\S+)", text)
    if name is None:
        return text.split("\n", 1)[0]
    return unknown_column((name[1] or name[2]).strip("`\"'."), names.views, names.of_saved)


def _resolve(tree: exp.Query, views: Views) -> exp.Query:
    """Return the query with qualified names, expanded stars and derived types.

    Raises sqlglot's OptimizeError for an unknown name.
    """
    from sqlglot.optimizer.annotate_types import annotate_types
    from sqlglot.optimizer.qualify import qualify
    from sqlglot.schema import MappingSchema

    columns = {
        view: {column.name: spark_type(column.type) for column in of_view}
        for view, of_view in views.items()
    }
    schema = MappingSchema(columns, dialect="spark")
    tree = qualify(tree, schema=schema, dialect="spark", quote_identifiers=True)
    return annotate_types(tree, schema=schema, dialect="spark")


def _check_and_resolve(tree: exp.Query, names: _Names) -> exp.Query:
    """Return the query with names resolved; raises QueryFailed for an unknown view or column."""
    from sqlglot.errors import OptimizeError

    try:
        tree = _resolve(tree, names.views)
    except OptimizeError as error:
        # Columns of an unknown view are unknown too: report the view first.
        _check_tables(tree, names)
        raise QueryFailed(_resolving_failure(str(error), names)) from error
    _check_tables(tree, names)
    return tree


def _check_saved(expansion: ViewExpansion, names: _Names) -> None:
    """Raise QueryFailed for the first saved view of a query whose own query is invalid."""
    for name, query in expansion.used.items():
        try:
            _check_and_resolve(query.copy(), names)
        except QueryFailed as error:
            raise failed_view(name, error) from error


def _check_tables(tree: exp.Query, names: _Names) -> None:
    """Raise QueryFailed for a table that is neither a view nor a `with` query."""
    from sqlglot import exp

    known = {*VIEWS, *(cte.alias.lower() for cte in tree.find_all(exp.CTE))}
    for table in tree.find_all(exp.Table):
        is_known = table.name.lower() in known and not table.db
        if isinstance(table.this, exp.Identifier) and not is_known:
            name = f"{table.db}.{table.name}" if table.db else table.name
            raise QueryFailed(unknown_view(name, names.tables))


def _written_names(tree: exp.Query) -> list[str | None]:
    """Return the names of a query's result columns as written; None for a `*`."""
    from sqlglot import exp

    names: list[str | None] = []
    for projection in tree.selects:
        if projection.is_star and not isinstance(projection, exp.Count):
            names.append(None)
        elif isinstance(projection, exp.Alias | exp.Column | exp.Dot):
            names.append(projection.alias_or_name)
        else:
            names.append(_spark_text(projection))
    return names


def _spark_text(projection: exp.Expression) -> str:
    """Return the name that Spark gives an unnamed expression: `count(1)`, `max(offset)`."""
    from sqlglot import exp

    projection = projection.copy()
    for count in projection.find_all(exp.Count):
        if isinstance(count.this, exp.Star):
            count.set("this", exp.Literal.number(1))
    if isinstance(projection, exp.Binary):
        projection = exp.Paren(this=projection)
    text = projection.sql(dialect="spark", normalize_functions="lower", comments=False)
    return str(text).replace("`", "")


def _result_names(
    written: list[str | None], tree: exp.Query, views: Views, of_views: list[str | None]
) -> list[str]:
    """Return the names of the result columns: as written, and for `*` those of the view.

    sqlglot changes the letters' case. `of_views` are the column names that the queries of saved
    views write.
    """
    expanded = tree.named_selects
    if None not in written:
        return [name or "" for name in written]
    names = {c.name.lower(): c.name for columns in views.values() for c in columns}
    names |= {name.lower(): name for name in (*of_views, *written) if name is not None}
    # Columns of `values` have no names; Spark names them col1, col2, …
    names |= {f"_col_{number}": f"col{number + 1}" for number in range(len(expanded))}
    return [names.get(name.lower(), name) for name in expanded]


def _replace_differences(tree: exp.Query) -> None:
    """Replace, in the query, expressions that DuckDB evaluates differently from Spark.

    See the module's docstring.
    """
    from sqlglot import exp

    nodes = list(tree.walk())
    untyped = [node for node in nodes if _casts_untyped_to_text(node)]
    for node in nodes:
        if _is_bytes(node) and _wants_text(node):
            wrap_in_call(node, TEXT_OF_BYTES)
        if not replace_difference(node):
            _replace_time_or_bytes(node)
    # The innermost first, and last of all: the copies made here contain replaced nodes only.
    for node in reversed(nodes):
        if isinstance(node, exp.JSONExtractScalar):
            node.replace(_null_unless_json(node))
        elif any(node is cast for cast in untyped):
            node.replace(_text_of_either(node))


def _replace_time_or_bytes(node: exp.Expression) -> None:
    """Replace a node of times, bytes or quantiles that DuckDB evaluates differently."""
    from sqlglot import exp

    if isinstance(node, exp.DataType) and node.this in time_types():
        node.set("this", exp.DataType.Type.TIMESTAMP)
    elif isinstance(node, exp.Cast) and node.to.this in time_types() and _is_text(node.this):
        # In DuckDB a cast to a time without a zone ignores the zone in the text.
        node.set("this", type(node)(this=node.this, to=_zoned_type()))
    elif _is_text(node) and _is_compared_with(node, is_time):
        compared = exp.Cast(this=None, to=exp.DataType(this=exp.DataType.Type.TIMESTAMP))
        node.replace(compared)
        compared.set("this", exp.Cast(this=node, to=_zoned_type()))
    elif isinstance(node, exp.CurrentTimestamp):
        node.replace(_timestamp_now())
    elif isinstance(node, exp.Anonymous) and node.name.lower() == "crc32":
        node.set("this", CRC_OF_BYTES)
    elif isinstance(node, exp.Quantile):
        # Parts are moved: those of a copy would not be replaced.
        value = exp.Cast(this=node.this, to=exp.DataType(this=exp.DataType.Type.DOUBLE))
        share = node.args["quantile"]
        node.replace(exp.Anonymous(this="quantile_cont", expressions=[value, share]))
    elif isinstance(node, exp.Length) and _is_bytes(node.this):
        node.replace(exp.Anonymous(this="octet_length", expressions=[node.this]))
    elif isinstance(node, exp.Literal) and node.is_string and _is_compared_with(node, _is_bytes):
        wrap_in_call(node, "encode")


def _null_unless_json(extract: exp.JSONExtractScalar) -> exp.Expression:
    """Return an expression that is null for invalid JSON, as in Spark; DuckDB would fail."""
    from sqlglot import exp

    is_json = exp.Anonymous(this="json_valid", expressions=[extract.this.copy()])
    return exp.Case(ifs=[exp.If(this=is_json, true=extract.copy())])


def _casts_untyped_to_text(node: exp.Expression) -> bool:
    """Return True for a cast to text of a value whose type only DuckDB knows, at run time.

    Such a value may be bytes, which Spark casts by UTF-8 and DuckDB by escapes.
    """
    from sqlglot import exp

    if not isinstance(node, exp.Cast) or not node.to.is_type(*exp.DataType.TEXT_TYPES):
        return False
    value = node.this
    is_typed = value.type is not None and not value.is_type(exp.DataType.Type.UNKNOWN)
    return not is_typed and not _is_bytes(value)


def _text_of_either(cast: exp.Expression) -> exp.Expression:
    """Return a cast to text that decodes the value as UTF-8 if DuckDB finds it to be bytes."""
    from sqlglot import exp

    value = cast.this
    is_bytes = exp.EQ(
        this=exp.Anonymous(this="typeof", expressions=[value.copy()]),
        expression=exp.Literal.string("BLOB"),
    )
    content = exp.TryCast(this=value.copy(), to=exp.DataType(this=exp.DataType.Type.BINARY))
    text = exp.Anonymous(this=TEXT_OF_BYTES, expressions=[content])
    return exp.Case(ifs=[exp.If(this=is_bytes, true=text)], default=cast.copy())


def _timestamp_now() -> exp.Expression:
    """Return the current time as a literal, so that all rows of a query get the same."""
    from sqlglot import exp

    now = time_text(RealClock().wall_ms() * 1000).removesuffix("+00:00")
    return exp.cast(exp.Literal.string(now), exp.DataType.Type.TIMESTAMP)


def _is_bytes(node: exp.Expression) -> bool:
    """Return True if an expression's type is bytes; derive it for `max_by` and `min_by`."""
    from sqlglot import exp

    if isinstance(node, exp.ArgMax | exp.ArgMin):
        return _is_bytes(node.this)
    if isinstance(node, exp.Window) and isinstance(node.this, exp.ArgMax | exp.ArgMin):
        return _is_bytes(node.this.this)
    return (
        not isinstance(node, exp.DataType | exp.Literal | exp.Identifier)
        and node.type is not None
        and node.type.this in (exp.DataType.Type.BINARY, exp.DataType.Type.VARBINARY)
    )


def _wants_text(node: exp.Expression) -> bool:
    """Return True if the parent of an expression is a cast to text or takes text arguments."""
    from sqlglot import exp

    parent = node.parent
    if isinstance(parent, exp.Cast):
        return bool(parent.is_type(*exp.DataType.TEXT_TYPES))
    if isinstance(parent, exp.DPipe):
        return not (_is_bytes(parent.left) and _is_bytes(parent.right))
    takers = (
        exp.Like, exp.ILike, exp.RegexpLike, exp.RegexpExtract, exp.RegexpReplace, exp.Upper,
        exp.Lower, exp.Trim, exp.Split, exp.StrPosition, exp.JSONExtract, exp.JSONExtractScalar,
        exp.StartsWith, exp.EndsWith, exp.Contains, exp.Initcap, exp.Decode, exp.Levenshtein,
        exp.Substring, exp.Concat, exp.ConcatWs, exp.ParseJSON, exp.Replace, exp.Translate,
    )  # fmt: skip
    return isinstance(parent, takers)


def _is_compared_with(node: exp.Expression, is_kind: Callable[[exp.Expression], bool]) -> bool:
    """Return True if a node is compared with another node for which `is_kind` returns True."""
    from sqlglot import exp

    parent = node.parent
    if isinstance(parent, exp.In | exp.Between):
        return parent.this is not node and is_kind(parent.this)
    if isinstance(parent, exp.EQ | exp.NEQ | exp.GT | exp.GTE | exp.LT | exp.LTE | exp.NullSafeEQ):
        return is_kind(parent.right if parent.left is node else parent.left)
    return False


def _is_text(node: exp.Expression) -> bool:
    """Return True for a value that is known to be text; False for types and identifiers."""
    from sqlglot import exp

    is_value = not isinstance(node, exp.DataType | exp.Identifier)
    return is_value and node.type is not None and bool(node.is_type(*exp.DataType.TEXT_TYPES))


def _zoned_type() -> exp.DataType:
    """Return DuckDB's TIMESTAMPTZ: a cast to it applies the zone in a text, as Spark does."""
    from sqlglot import exp

    return exp.DataType(this=exp.DataType.Type.TIMESTAMPTZ)


def _limit(tree: exp.Query, max_rows: int) -> exp.Query:
    """Return the query limited to `max_rows` + 1 rows; a smaller limit of its own is kept.

    The additional row shows that rows are cut.
    """
    from sqlglot import exp

    limit = tree.args.get("limit")
    if limit is None:
        return tree.limit(max_rows + 1, copy=False)
    given = limit.expression if isinstance(limit, exp.Limit) else None
    if isinstance(given, exp.Literal) and not given.is_string and int(given.this) > max_rows:
        limit.set("expression", exp.Literal.number(max_rows + 1))
    return tree
