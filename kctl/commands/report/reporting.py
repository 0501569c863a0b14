"""Implementation of `kctl report cluster`: gather, compare, print or write a page."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import NamedTuple, cast

from engine.client.blocking import KafkaClient
from engine.host.input_file import read_input
from engine.host.ports import FileMissing
from engine.host.real import RealFiles
from engine.report.cluster_report import ClusterReport
from engine.report.gathering import ExpiryOf, ReportOptions, gather_report
from engine.report.report_building import build_report
from engine.report.saved_report import SavedReport, parse_report
from kctl import exits
from kctl.commands.report.columns import FINDING_COLUMNS, PARTS, REPORT_COLUMNS, shown_rows
from kctl.connect import ClusterOptions, connect
from kctl.console import notify
from kctl.durations import parse_duration_ms
from kctl.render import check_format, write_object, write_rows
from kctl.render.rows import OutputRow

#: Formats with all parts; other formats have only findings.
_OF_ALL_PARTS = ("table", "wide", "markdown")
#: Maximum time of a request to brokers, even with a longer --timeout.
_STEP_MS_MAX = 10_000
# Maximum size of a saved report; one of 100,000 partitions has a tenth of it.
_SAVED_BYTES_MAX = 256 << 20


class ReportRequest(NamedTuple):
    """The options of `kctl report cluster`."""

    html: str | None
    since: str | None
    interval: str
    output: str | None

    def options(self, timeout_s: float) -> ReportOptions:
        """Return interval and time-out of the requests to the cluster.

        Errors: UnreadableArgument.
        """
        timeout_ms = max(min(round(timeout_s * 1000), _STEP_MS_MAX), 1)
        interval_ms = parse_duration_ms(self.interval, "--interval", lowest_ms=1_000)
        return ReportOptions(interval_ms, timeout_ms=timeout_ms)


def report_cluster(options: ClusterOptions, request: ReportRequest) -> int:
    """Gather a report on a cluster, and print it or write it as an HTML page (`--html`).

    With --since it is compared with a saved report. Returns the exit code.
    """
    output = request.output or "table"
    check_format(output)
    report_options = request.options(options.timeout_s)
    since = None if request.since is None else _read(request.since)
    if request.html is not None:
        from kctl.commands.report.charts import check_charts

        check_charts()
        _check_folder(request.html)
    with connect(options) as client:
        gathered = gather_report(
            client,
            report_options,
            expiry_of=_expiry_reader(client),
            local_files=_local_files(client),
        )
    report = build_report(gathered, report_options, since)
    if since is not None and since.cluster_id != report.cluster_id:
        notify(
            f"warning: {request.since} is of cluster {since.cluster_id}, not {report.cluster_id}"
        )
    document = document_of(report)
    if request.html is not None:
        _write_page(request.html, document)
    if request.html is None or request.output is not None:
        _print_report(document, output)
    return exits.OK


def document_of(report: ClusterReport) -> OutputRow:
    """Return a report as JSON-compatible values."""
    return cast("OutputRow", _plain_value(report))


def _plain_value(value: object) -> object:
    """Convert a value for JSON: named tuples to objects, tuples to lists."""
    if hasattr(value, "_asdict"):
        return {key: _plain_value(item) for key, item in value._asdict().items()}
    if isinstance(value, tuple | list):
        return [_plain_value(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain_value(item) for key, item in value.items()}
    return value


def _read(path: str) -> SavedReport:
    """Read the saved report of --since; raises an error for a file above `_SAVED_BYTES_MAX`."""
    return parse_report(read_input(path, _SAVED_BYTES_MAX), path)


def _expiry_reader(client: KafkaClient) -> ExpiryOf | None:
    """Return a function that reads when a broker's certificate expires; None without TLS."""
    tls = client.settings.tls
    if tls is None:
        return None
    from engine.host.certificate_expiry import fetch_certificate_expiry_ms

    return lambda host, port, timeout_s: fetch_certificate_expiry_ms(host, port, tls, timeout_s)


def _local_files(client: KafkaClient) -> RealFiles | None:
    """Return file access if the cluster is embedded on this machine, else None."""
    from kctl.run_location import find_embedded_cluster

    return None if find_embedded_cluster(client) is None else RealFiles()


def _check_folder(path: str) -> None:
    """Raise FileMissing if the page's directory does not exist, before any request."""
    folder = os.path.dirname(os.path.abspath(path))
    if not RealFiles().is_dir(folder):
        raise FileMissing(folder)


def _write_page(path: str, document: OutputRow) -> None:
    """Write the report as an HTML page, and print the number of findings."""
    from kctl.commands.report.page import cluster_page

    page = cluster_page(document)
    RealFiles().replace_file(os.path.abspath(path), page.encode("utf-8", "replace"))
    notify(f"{path}: {len(document['findings'])} findings")


def _print_report(document: OutputRow, output: str) -> None:
    """Print the report: one object as JSON or YAML, a table per part, or only the findings."""
    if output in ("json", "yaml"):
        write_object(REPORT_COLUMNS, document, output)
        return
    if output not in _OF_ALL_PARTS:
        write_rows(FINDING_COLUMNS, document["findings"], output)
        return
    mark = "## " if output == "markdown" else ""
    for part in PARTS:
        rows = shown_rows(part, document)
        if part.key == "changes" and document["since_ms"] is None:
            continue
        sys.stdout.write(f"{mark}{part.title}\n({part.meaning})\n\n")
        if rows:
            write_rows(part.columns, rows, output)
        else:
            sys.stdout.write("none\n")
        sys.stdout.write("\n")
