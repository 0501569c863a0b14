"""`kctl spark-sql`: run one SQL query over log directories."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from kctl import exits
from kctl.log_damage import warn_of_damage
from kctl.log_queries import Wanted, log_queries, warn_of, write_result
from kctl.options.cluster import FORMATS_HELP, one_command
from kctl.options.spark import (
    ConfOption,
    ControlOption,
    EngineOption,
    IsolationOption,
    KeySchemaOption,
    KeysOption,
    MasterOption,
    PartitionsOption,
    RegistryOption,
    RemoteOption,
    SchemasOption,
    StrictOption,
    TopicsOption,
    ValuesOption,
    ViewsOption,
)
from kctl.spark_input import (
    LOGDIRS_HELP,
    Inputs,
    checked_engine,
    parse_partition_numbers,
    parse_target,
    silence_py4j,
)
from kctl.value_options import parse_wanted_values

app = one_command()


@app.command()
def spark_sql(
    arguments: Annotated[
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
    strict: StrictOption = False,
    isolation: IsolationOption = "read_uncommitted",
    values: ValuesOption = None,
    keys: KeysOption = None,
    key_schema: KeySchemaOption = None,
    schema_registry: RegistryOption = None,
    schemas: SchemasOption = None,
    save: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Save the query as a view for later runs; without DIR it is only checked.",
        ),
    ] = None,
    views: ViewsOption = None,
    max_rows: Annotated[
        int, typer.Option(metavar="N", help="Largest number of rows to print, 0 for all.")
    ] = 1000,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FORMAT", help=FORMATS_HELP),
    ] = "table",
) -> int:
    """Run a SQL query over log directories, such as

    kctl spark-sql "select topic, count(*) from records group by topic" /var/lib/kafka/data

    Damaged batches are skipped, and a warning counts them. A count of records that uses only topic,
    partition and segment is computed from batch headers: then only --strict verifies checksums.

    Views: --save NAME, or `create or replace view NAME as ...`, and `drop view NAME`.
    """
    from engine.analysis.isolation import check_isolation
    from engine.analysis.saved_views import DropView
    from engine.analysis.splits import NOTHING_TO_READ
    from engine.analysis.statements import ABOUT_VIEWS, check_statement
    from engine.host.real import RealFiles
    from kctl.commands.spark_sql.statement import (
        WrongArguments,
        read_query_and_dirs,
        read_view_change,
    )
    from kctl.render import check_format
    from kctl.render.progress import ProgressBar
    from kctl.saved_views import ViewStore, query_view_columns, views_path

    check_format(output)
    check_isolation(isolation)
    target = parse_target(master, remote, conf)
    checked_engine(engine, target)
    decoded = parse_wanted_values(values, schema_registry, schemas, keys, key_schema)
    query, logdirs = read_query_and_dirs(arguments, file)
    store = ViewStore(RealFiles(), views_path(os.environ, views))
    change = read_view_change(query, save)
    if isinstance(change, DropView):
        store.apply(change)
        return exits.OK
    if not logdirs and change is None and check_statement(query) not in ABOUT_VIEWS:
        raise WrongArguments("SQL and at least one log directory are needed")
    inputs = Inputs(logdirs, topics, parse_partition_numbers(partitions))
    plan = inputs.plan() if logdirs else NOTHING_TO_READ
    is_committed = isolation == "read_committed"
    wanted = Wanted(
        engine, target, plan, is_committed, include_control, decoded, store.load, strict
    )
    with silence_py4j(), ProgressBar("asking") as bar, log_queries(wanted, bar.show) as queries:
        bar.show("running the query")
        result = (
            query_view_columns(queries, store, change)
            if change
            else queries.run_saved(query, max_rows)
        )
        if save and logdirs:
            result = queries.run_saved(query, max_rows)
        damage = queries.take_damage()
    if change:
        store.apply(change)
    write_result(result, output)
    warn_of(queries.problems)
    warn_of_damage(damage, is_counted=queries.is_counted)
    if result.is_cut:
        sys.stderr.write(f"note: only the first {max_rows} rows; --max-rows 0 prints all\n")
    return exits.OK
