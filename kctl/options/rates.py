"""Options of the commands that sample the write rates of partitions, and the sampling itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

# Imported late: commands import this module for its options, also if they do not sample.
if TYPE_CHECKING:
    from engine.client.blocking import KafkaClient
    from engine.client.rates import PartitionRate
    from engine.model import TopicPartition

WINDOW_S = 10.0
RateWindow = Annotated[
    float | None,
    typer.Option(
        "--rate-window",
        min=0.1,
        metavar="SECONDS",
        help="How long to sample rates; 10 by default.",
    ),
]


def sample_rates_or_report(
    client: KafkaClient, topics: Iterable[str] | None, window_s: float | None
) -> tuple[dict[TopicPartition, PartitionRate], int]:
    """Sample the write rates of topics (None: all); print the errors of partitions.

    Returns the rates by partition, and the number of errors. `window_s` is the time between the two
    samples, None for the default.
    """
    from engine.client.rates import sample_rates
    from kctl.console import report_error

    found = sample_rates(client, topics, round((window_s or WINDOW_S) * 1000))
    for subject, error in found.errors.items():
        report_error(error, subject)
    return found.rates, len(found.errors)
