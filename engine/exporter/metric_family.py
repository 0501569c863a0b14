"""A family of metrics as plain values: the text format is written by a library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

#: The values of the labels, and the value, of each metric of a family.
Rows = Sequence[tuple[tuple[str, ...], float]]

#: Kinds of families, in the words of Prometheus.
GAUGE = "gauge"
COUNTER = "counter"
SUMMARY = "summary"


class SummaryTotal(NamedTuple):
    """Count and sum of a summary's values; the labels are without `quantile`."""

    labels: tuple[str, ...]
    value_count: int
    value_sum: float


def only(value: float) -> Rows:
    """Return the rows of a family without labels."""
    return [((), float(value))]


class MetricFamily(NamedTuple):
    """A metric with all its rows: the values of its labels, and its value.

    The name of a counter is without `_total`. The last label of a summary is `quantile`.
    """

    name: str
    help: str
    labels: tuple[str, ...]
    rows: Rows
    kind: str = GAUGE
    #: Of a summary.
    totals: Sequence[SummaryTotal] = ()
