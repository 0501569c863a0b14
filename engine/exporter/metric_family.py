"""A family of metrics as plain values; `text_format` writes the text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

#: The label values and the figure of each metric of a family.
Rows = Sequence[tuple[tuple[str, ...], float]]

#: Kinds of families, by Prometheus's names.
GAUGE = "gauge"
COUNTER = "counter"
SUMMARY = "summary"


class SummaryTotal(NamedTuple):
    """Count and sum of the values of a summary; `labels` has no `quantile`."""

    labels: tuple[str, ...]
    value_count: int
    value_sum: float


def only(value: float) -> Rows:
    """Return the rows of a metric family that has a single value and no labels."""
    return [((), float(value))]


class MetricFamily(NamedTuple):
    """A metric with all its rows, each with the values of the labels and a figure.

    The name of a counter has no `_total`. The last label of a summary is `quantile`.
    """

    name: str
    help: str
    labels: tuple[str, ...]
    rows: Rows
    kind: str = GAUGE
    #: Counts and sums, for a summary only.
    totals: Sequence[SummaryTotal] = ()
