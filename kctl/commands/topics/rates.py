"""Columns of `--rate`: write rates of topics and partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from engine.model import TopicPartition
from kctl.render import Column

if TYPE_CHECKING:
    from engine.client.rates import PartitionRate

PARTITION_RATE_COLUMNS = (
    Column("bytes_per_s", "BYTES/S", right=True, is_size=True, kind="integer?", is_optional=True),
    Column("records_per_s", "RECORDS/S", right=True, kind="number?", is_optional=True),
    Column("is_estimate", "ESTIMATE", wide=True, kind="boolean?", is_optional=True),
)
TOPIC_RATE_COLUMNS = (
    *PARTITION_RATE_COLUMNS,
    Column("hottest_partition", "HOTTEST", right=True, kind="integer?", is_optional=True),
    Column(
        "hottest_bytes_per_s",
        "ITS-BYTES/S",
        right=True,
        is_size=True,
        kind="integer?",
        is_optional=True,
    ),
)


def partition_rate_row(rate: PartitionRate | None) -> dict[str, object]:
    """Return the columns of a partition's rate, None values for an unknown rate."""
    if rate is None:
        return dict.fromkeys(("bytes_per_s", "records_per_s", "is_estimate"))
    return {
        "bytes_per_s": rate.bytes_per_s,
        "records_per_s": round(rate.records_per_s, 1),
        "is_estimate": rate.is_estimate,
    }


def topic_rate_row(
    topic: str, partitions: Iterable[int], rates: Mapping[TopicPartition, PartitionRate]
) -> dict[str, object]:
    """Return the columns of a topic's rate: sums, and the partition with most bytes.

    They are None if no partition's rate is known. Equal rates: the lowest partition.
    """
    found = {
        partition: rate
        for partition in partitions
        if (rate := rates.get(TopicPartition(topic, partition))) is not None
    }
    if not found:
        return {**partition_rate_row(None), "hottest_partition": None, "hottest_bytes_per_s": None}
    written = sum(rate.bytes_per_s for rate in found.values())
    hottest = max(found, key=lambda partition: (found[partition].bytes_per_s, -partition))
    return {
        "bytes_per_s": written,
        "records_per_s": round(sum(rate.records_per_s for rate in found.values()), 1),
        "is_estimate": any(rate.is_estimate for rate in found.values()),
        "hottest_partition": hottest if written else None,
        "hottest_bytes_per_s": found[hottest].bytes_per_s if written else None,
    }
