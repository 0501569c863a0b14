"""`kctl spark-sql`: SQL over log directories."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from kctl import exits
from kctl.options.cluster import FORMATS_HELP, one_command
from kctl.spark_input import Inputs, check_engine, engine_for, partition_numbers, quiet_py4j

if TYPE_CHECKING:
    from engine.analysis.batch_reader import Problem
    from engine.analysis.splits import Split
    from engine.analysis.statements import QueryResult

app = one_command()


@app.command()
def spark_sql(
    query: Annotated[
        str, typer.Argument(metavar="SQL", help="SQL over the views records, batches, segments.")
    ],
    logdirs: Annotated[
        list[str],
        typer.Argument(metavar="DIR...", help="Log directories, or single partition directories."),
    ],
    topics: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Regular expression for whole topic names.")
    ] = None,
    partitions: Annotated[
        str | None, typer.Option(metavar="NUMBERS", help="Partition numbers, such as 0,2,5-9.")
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="local: DuckDB in this process; spark; auto: local below 20 GiB without --master.",
        ),
    ] = "auto",
    master: Annotated[
        str | None, typer.Option(metavar="MASTER", help="Spark master; local[*] by default.")
    ] = None,
    include_control: Annotated[
        bool, typer.Option("--include-control", help="Transaction markers are records too.")
    ] = False,
    isolation: Annotated[
        str,
        typer.Option(
            metavar="LEVEL", help="read_uncommitted, or read_committed: without aborted records."
        ),
    ] = "read_uncommitted",
    max_rows: Annotated[
        int, typer.Option(metavar="N", help="Rows to print at most, 0 for all.")
    ] = 1000,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FORMAT", help=FORMATS_HELP),
    ] = "table",
) -> int:
    """Ask SQL of log directories, such as

    kctl spark-sql "select topic, count(*) from records group by topic" /var/lib/kafka/data
    """
    from engine.analysis.isolation import check_isolation
    from engine.analysis.statements import check_statement
    from kctl.render import Column, RowWriter, check_format
    from kctl.render.progress import ProgressBar

    check_format(output)
    check_isolation(isolation)
    check_engine(engine, master)
    check_statement(query)
    splits = Inputs(logdirs, topics, partition_numbers(partitions)).splits()
    asked = _Asked(query, splits, isolation == "read_committed", include_control, max_rows)
    with quiet_py4j(), ProgressBar("asking") as bar:
        if engine_for(engine, master, splits) == "local":
            result, undecided = _ask_here(asked, bar.say)
        else:
            result, undecided = _ask_spark(asked, master or "local[*]", bar.say)
    writer = RowWriter([Column(name, name) for name in result.columns], output)
    for row in result.rows:
        writer.write({name: _plain(value) for name, value in row.items()})
    writer.close()
    for problem in undecided:
        sys.stderr.write(
            f"warning: {problem.segment} at position {problem.position}: {problem.message}\n"
        )
    if result.is_cut:
        sys.stderr.write(f"note: only the first {max_rows} rows; --max-rows 0 prints all\n")
    return exits.OK


class _Asked(NamedTuple):
    """A query, what it is asked of, and how."""

    query: str
    splits: list[Split]
    is_committed: bool
    control: bool
    max_rows: int


def _ask_here(asked: _Asked, say: Callable[[str], None]) -> tuple[QueryResult, list[Problem]]:
    """Return the rows by the embedded engine, and the transactions that were not decided."""
    from engine.analysis.isolation import Committed, committed_here
    from engine.analysis.local_query import require_local_engine, run_local_query
    from engine.host.real import RealFiles

    require_local_engine()
    read = Committed(asked.splits, [])
    if asked.is_committed:
        say("looking for transactions")
        read = committed_here(RealFiles(), asked.splits)
    say("running the query")
    result = run_local_query(
        asked.query, read.splits, control=asked.control, max_rows=asked.max_rows
    )
    return result, read.problems


def _ask_spark(
    asked: _Asked, master: str, say: Callable[[str], None]
) -> tuple[QueryResult, list[Problem]]:
    """Return the rows by Spark, and the transactions that were not decided."""
    from engine.analysis.isolation import Committed, committed_on_spark
    from engine.analysis.spark_query import run_query
    from engine.analysis.spark_session import require_spark, start_session

    require_spark()
    say("starting Spark")
    session = start_session(master)
    read = Committed(asked.splits, [])
    if asked.is_committed:
        say("looking for transactions")
        read = committed_on_spark(session, asked.splits)
    say("running the query")
    result = run_query(
        session, asked.query, read.splits, control=asked.control, max_rows=asked.max_rows
    )
    session.stop()
    return result, read.problems


def _plain(value: Any) -> Any:
    """Return a value that every output format can show: times as ISO 8601, bytes as text."""
    if isinstance(value, bytes | bytearray):
        from engine.dump.rows import text_form

        text, _ = text_form(bytes(value))
        return text
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if type(value).__name__ == "Decimal":
        return int(value) if value == value.to_integral_value() else float(value)
    return value
