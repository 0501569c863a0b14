"""`kctl spark-report`: run reports of the catalogue over log directories."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from engine.errors import EngineError
from kctl import exits
from kctl.options.cluster import FORMATS_HELP, one_command
from kctl.options.spark import (
    ConfOption,
    EngineOption,
    MasterOption,
    PartitionsOption,
    RemoteOption,
    StrictOption,
    TopicsOption,
)
from kctl.render import Column
from kctl.spark_input import (
    LOGDIRS_HELP,
    Inputs,
    checked_engine,
    parse_partition_numbers,
    parse_target,
    silence_py4j,
)

if TYPE_CHECKING:
    from engine.analysis.problem import Problem
    from engine.analysis.reports.report import Report
    from engine.analysis.statements import QueryResult

app = one_command()

LIST_COLUMNS = (
    Column("name", "NAME"),
    Column("reads", "READS"),
    Column("title", "TITLE"),
    Column("meaning", "MEANING", wide=True),
)
#: Formats in which several tables can follow each other.
_SEVERAL = ("table", "wide", "markdown", "json")


class ReportNeedsLogs(EngineError):
    """A report was requested without a log directory."""

    exit_code = 2
    hint = "such as `kctl spark-report topics /var/lib/kafka/data`"

    def __init__(self, name: str) -> None:
        super().__init__(f"report {name} needs at least one log directory")
        self.name = name


class OneTableFormat(EngineError):
    """All reports were requested in a format that can have only one table."""

    exit_code = 2
    hint = "`kctl spark-report list` has the names of single reports"

    def __init__(self, output: str) -> None:
        super().__init__(f"-o {output} is of one report; all of them go with {', '.join(_SEVERAL)}")
        self.output = output


@app.command()
def spark_report(
    name: Annotated[
        str, typer.Argument(metavar="NAME|all|list", help="A report, all of them, or their list.")
    ],
    logdirs: Annotated[
        list[str] | None,
        typer.Argument(metavar="DIR...", help=LOGDIRS_HELP),
    ] = None,
    topics: TopicsOption = None,
    partitions: PartitionsOption = None,
    engine: EngineOption = "auto",
    master: MasterOption = None,
    remote: RemoteOption = None,
    conf: ConfOption = None,
    strict: StrictOption = False,
    max_rows: Annotated[
        int, typer.Option(metavar="N", help="Largest number of rows per report, 0 for all.")
    ] = 1000,
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FORMAT", help=FORMATS_HELP),
    ] = "table",
    html: Annotated[
        str | None,
        typer.Option(
            "--html", metavar="FILE", help="Write one page of HTML instead of printing the rows."
        ),
    ] = None,
) -> int:
    """Report on log directories: sizes, keys, producers, gaps, transactions, retention, such as

    kctl spark-report topics /var/lib/kafka/data

    `kctl spark-report list` lists the reports. Damaged batches are skipped, and counted by a
    warning and on the page.
    """
    from engine.analysis.reports import REPORTS, report_named
    from engine.analysis.reports.report import rounded
    from kctl.destinations import check_destination, check_writable
    from kctl.log_damage import warn_of_damage
    from kctl.log_queries import Wanted, log_queries, warn_of, write_result
    from kctl.render import check_format, write_rows
    from kctl.render.progress import ProgressBar

    check_format(output)
    if name == "all" and output not in _SEVERAL:
        raise OneTableFormat(output)
    target = parse_target(master, remote, conf)
    checked_engine(engine, target)
    if name == "list":
        write_rows(LIST_COLUMNS, [report._asdict() for report in REPORTS], output)
        return exits.OK
    reports = REPORTS if name == "all" else (report_named(name),)
    if not logdirs:
        raise ReportNeedsLogs(name)
    check_destination(html, logdirs)
    if html is not None:
        check_writable(html, is_file=True)
    plan = Inputs(logdirs, topics, parse_partition_numbers(partitions)).plan()
    results = []
    wanted = Wanted(engine, target, plan, is_committed=False, control=False, is_strict=strict)
    with silence_py4j(), ProgressBar("reporting") as bar, log_queries(wanted, bar.show) as queries:
        for report in reports:
            bar.show(report.name)
            results.append((report, rounded(queries.run_report(report, max_rows))))
        damage = queries.take_damage()
    if html is not None:
        _write_page(html, results, (queries.problems, damage), logdirs)
    elif name == "all":
        _write_all(results, output)
    else:
        write_result(results[0][1], output)
    warn_of(queries.problems)
    warn_of_damage(damage, is_counted=queries.is_counted)
    for report, result in results:
        if result.is_cut:
            sys.stderr.write(
                f"note: {report.name}: only the first {max_rows} rows; --max-rows 0 prints all\n"
            )
    return exits.OK


def _write_page(
    path: str,
    results: list[tuple[Report, QueryResult]],
    problems: tuple[list[Problem], list[Problem]],
    logdirs: list[str],
) -> None:
    """Write the results of reports to an HTML file.

    `problems` are (differences between replicas, damage of the logs).
    """
    from engine.host.real import RealClock, RealFiles
    from kctl.commands.spark_report.page import report_page
    from kctl.time_text import time_text

    page = report_page(
        results, problems[0], logdirs, time_text(RealClock().wall_ms()) or "", problems[1]
    )
    RealFiles().replace_file(os.path.abspath(path), page.encode("utf-8", "replace"))


def _write_all(results: list[tuple[Report, QueryResult]], output: str) -> None:
    """Print all reports: as JSON one object with a list for each report, else titled tables."""
    from kctl.log_queries import shown_value, write_result
    from kctl.render import write_object

    if output == "json":
        rows = {
            report.name: [
                {name: shown_value(value) for name, value in row.items()} for row in result.rows
            ]
            for report, result in results
        }
        write_object(tuple(Column(name, name) for name in rows), rows, output)
        return
    mark = "## " if output == "markdown" else ""
    for report, result in results:
        sys.stdout.write(f"{mark}{report.name}: {report.title}\n({report.meaning})\n\n")
        if result.rows:
            write_result(result, output)
        else:
            sys.stdout.write("nothing\n")
        sys.stdout.write("\n")
