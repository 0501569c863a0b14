"""The catalogue of reports over log directories, by name."""

from __future__ import annotations

from engine.analysis.reports.of_batches import BATCH_REPORTS
from engine.analysis.reports.of_coordinators import COORDINATOR_REPORTS
from engine.analysis.reports.of_records import RECORD_REPORTS
from engine.analysis.reports.of_segments import SEGMENT_REPORTS
from engine.analysis.reports.report import NoSuchReport, Report

#: All reports, in the order of `kctl spark-report list` and `all`.
REPORTS: tuple[Report, ...] = (
    *SEGMENT_REPORTS,
    *BATCH_REPORTS,
    *RECORD_REPORTS,
    *COORDINATOR_REPORTS,
)


def report_named(name: str) -> Report:
    """Return the report of REPORTS with this name; raises NoSuchReport."""
    for report in REPORTS:
        if report.name == name:
            return report
    raise NoSuchReport(name, [report.name for report in REPORTS])
