"""The options of commands that sample how fast partitions are written to, and the sampling."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

# Commands import this module for their options, also if they do not sample.
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
        help="How long rates are sampled; 10 if not given.",
    ),
]


def sampled(
    client: KafkaClient, topics: Iterable[str] | None, window_s: float | None
) -> tuple[dict[TopicPartition, PartitionRate], int]:
    """Return the rates of topics (None: all), and how many errors were reported."""
    from engine.client.rates import sample_rates
    from kctl.console import report_error

    found = sample_rates(client, topics, round((window_s or WINDOW_S) * 1000))
    for subject, error in found.errors.items():
        report_error(error, subject)
    return found.rates, len(found.errors)
