"""`kctl spark-shell`: run SQL over log directories interactively."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from kctl import exits
from kctl.options.cluster import FORMATS_HELP, one_command
from kctl.options.spark import (
    ConfOption,
    ControlOption,
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
    parse_partition_numbers,
    parse_target,
    silence_py4j,
)
from kctl.value_options import parse_wanted_values

app = one_command()


@app.command()
def spark_shell(
    logdirs: Annotated[list[str], typer.Argument(metavar="DIR...", help=LOGDIRS_HELP)],
    topics: TopicsOption = None,
    partitions: PartitionsOption = None,
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
    views: ViewsOption = None,
    max_rows: Annotated[
        int, typer.Option(metavar="N", help="Largest number of rows per result, 0 for all.")
    ] = 100,
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FORMAT", help=FORMATS_HELP)
    ] = "table",
) -> int:
    """Run SQL statements over log directories, one after another.

    Terminals have line editing, history and completion; statements may also come from a pipe.
    """
    from engine.analysis.isolation import check_isolation
    from engine.host.real import RealFiles
    from kctl.commands.spark_shell.session import ShellSession
    from kctl.commands.spark_shell.terminal import read_lines
    from kctl.console import report_error
    from kctl.log_damage import warn_of_damage
    from kctl.log_queries import Wanted, log_queries, warn_of, write_result
    from kctl.render import check_format
    from kctl.render.progress import ProgressBar
    from kctl.saved_views import ViewStore, run_statement, views_path

    check_format(output)
    check_isolation(isolation)
    target = parse_target(master, remote, conf)
    engine = "local" if target is None else "spark"
    decoded = parse_wanted_values(values, schema_registry, schemas, keys, key_schema)
    plan = Inputs(logdirs, topics, parse_partition_numbers(partitions)).plan()
    store = ViewStore(RealFiles(), views_path(os.environ, views))
    is_committed = isolation == "read_committed"
    wanted = Wanted(
        engine, target, plan, is_committed, include_control, decoded, store.load, strict
    )
    with silence_py4j(), ProgressBar("opening") as bar, log_queries(wanted, bar.show) as queries:
        bar.stop()
        warn_of(queries.problems)

        def answer(statement: str) -> None:
            """Run a statement and print its rows; note if there are more."""
            result = run_statement(queries, store, statement, max_rows)
            damage = queries.take_damage()
            if result is None:
                return
            write_result(result, output)
            if result.is_cut:
                note = f"note: only the first {max_rows} rows; --max-rows 0 prints all\n"
                sys.stderr.write(note)
            sys.stdout.flush()
            warn_of_damage(damage, is_counted=queries.is_counted)

        def show(text: str) -> None:
            """Print the help text of the shell."""
            sys.stdout.write(text)

        session = ShellSession(answer, report_error, show)
        read_lines(session, lambda: {**dict.fromkeys(store.load(), ()), **queries.views})
    return exits.FAILED if session.failure_count and not sys.stdin.isatty() else exits.OK
