"""Lag of a group in time: the timestamps of the first records after its committed offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.fetching import Fetcher, FetchOptions
from engine.model import TopicPartition

_WAIT_MS: Final = 200
#: Limits of 1 byte: a broker still returns at least one complete batch.
_ONE_BATCH: Final = FetchOptions(max_wait_ms=100, partition_max_bytes=1)


def request_unread_times_ms(
    client: KafkaClient, offsets: Mapping[TopicPartition, int], wait_ms: int
) -> dict[TopicPartition, int]:
    """Fetch the first record at or after each offset; return its timestamp (ms), by partition.

    `kctl groups lag` shows by it how long records wait. Within `wait_ms`; a partition without such
    a record, without a timestamp, or with an error is left out.
    """
    found: dict[TopicPartition, int] = {}
    fetcher = Fetcher(client, offsets, _ONE_BATCH)
    deadline_ms = client.clock.monotonic_ms() + wait_ms
    while fetcher.partitions and client.clock.monotonic_ms() < deadline_ms:
        for consumed in fetcher.poll(_WAIT_MS):
            for run in consumed.runs[:1]:
                fetcher.stop(consumed.partition)
                if run.timestamps_ms[0] >= 0:
                    found[consumed.partition] = run.timestamps_ms[0]
            # The rest of the log may have only transaction markers.
            if consumed.next_offset >= consumed.end_offset:
                fetcher.stop(consumed.partition)
    return found
