"""Latency of a producer with acks=all, measured during an execution."""

from __future__ import annotations

from engine.client.blocking import KafkaClient
from engine.client.producing import OutgoingRecord, Producer

#: The key of all records, so that a compacted topic keeps one for each partition.
_KEY = b"kctl-latency"


class ProducerLatency:
    """Measures the produce latency by one record to each partition of a topic."""

    def __init__(self, client: KafkaClient, topic: str) -> None:
        """Find the partitions of `topic`; raises ApiError if the topic does not exist."""
        view = client.view_of_existing([topic])
        self._clock = client.clock
        self._topic = topic
        self._partitions = [row.partition for row in view.topics[topic].partitions]
        self._producer = Producer(client)
        #: The measured value for a failed record, in ms.
        self._failed_ms = client.timeout_ms

    def measure_ms(self) -> int:
        """Produce a record to each partition with acks=all; return the ms until all have ended.

        A failed record counts as the client's timeout.
        """
        began_ms = self._clock.monotonic_ms()
        for partition in self._partitions:
            self._producer.add(OutgoingRecord(self._topic, _KEY, b"", partition=partition))
        results = self._producer.flush()
        took_ms = self._clock.monotonic_ms() - began_ms
        if any(result.error is not None for result in results):
            return max(took_ms, self._failed_ms)
        return took_ms
