"""`kctl spark-sql`: SQL over log directories."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from engine.errors import EngineError
from kctl import exits
from kctl.log_queries import Wanted, log_queries, warn_of, write_result
from kctl.options.cluster import FORMATS_HELP, one_command
from kctl.options.spark import (
    ConfOption,
    ControlOption,
    EngineOption,
    IsolationOption,
    MasterOption,
    PartitionsOption,
    RegistryOption,
    RemoteOption,
    SchemasOption,
    TopicsOption,
    ValuesOption,
)
from kctl.spark_input import (
    LOGDIRS_HELP,
    Inputs,
    check_engine,
    partition_numbers,
    quiet_py4j,
    target_of,
)
from kctl.value_options import wanted_values

app = one_command()


class WrongWords(EngineError):
    """A query or a directory is missing."""

    exit_code = 2
    hint = 'such as `kctl spark-sql "select count(*) from records" /var/lib/kafka/data`'


@app.command()
def spark_sql(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="SQL DIR...",
            help=f"SQL over the views (`show views` lists them; not with --file). {LOGDIRS_HELP}",
        ),
    ],
    file: Annotated[
        str | None,
        typer.Option("-f", "--file", metavar="FILE", help="Read the SQL from a file; - is stdin."),
    ] = None,
    topics: TopicsOption = None,
    partitions: PartitionsOption = None,
    engine: EngineOption = "auto",
    master: MasterOption = None,
    remote: RemoteOption = None,
    conf: ConfOption = None,
    include_control: ControlOption = False,
    isolation: IsolationOption = "read_uncommitted",
    values: ValuesOption = None,
    schema_registry: RegistryOption = None,
    schemas: SchemasOption = None,
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
    from kctl.render import check_format
    from kctl.render.progress import ProgressBar

    check_format(output)
    check_isolation(isolation)
    target = target_of(master, remote, conf)
    check_engine(engine, target)
    decoded = wanted_values(values, schema_registry, schemas)
    query, logdirs = _query_and_dirs(words, file)
    check_statement(query)
    plan = Inputs(logdirs, topics, partition_numbers(partitions)).plan()
    wanted = Wanted(engine, target, plan, isolation == "read_committed", include_control, decoded)
    with quiet_py4j(), ProgressBar("asking") as bar, log_queries(wanted, bar.show) as queries:
        bar.show("running the query")
        result = queries.ask(query, max_rows)
    write_result(result, output)
    warn_of(queries.problems)
    if result.is_cut:
        sys.stderr.write(f"note: only the first {max_rows} rows; --max-rows 0 prints all\n")
    return exits.OK


def _query_and_dirs(words: list[str], file: str | None) -> tuple[str, list[str]]:
    """Return the query and the directories; raises WrongWords, and StorageError for the file."""
    from engine.host.real import RealFiles

    if file is None:
        if len(words) == 1:
            raise WrongWords("SQL and at least one log directory are needed")
        return words[0], words[1:]
    if file == "-":
        return sys.stdin.read(), words
    return RealFiles().read_bytes(file).decode("utf-8-sig", "replace"), words
