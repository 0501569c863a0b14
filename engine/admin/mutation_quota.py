"""The quota that counts the partitions which a request creates or deletes.

Source: ControllerMutationQuotaManager, KIP-599.
"""

from __future__ import annotations

from typing import Final, Protocol

from engine.admin.topic_results import TopicResult
from engine.kafka_errors import THROTTLING_QUOTA_EXCEEDED

#: The result of a topic that a strict quota does not admit; Kafka has no words for it either.
EXCEEDED: Final = TopicResult(THROTTLING_QUOTA_EXCEEDED)


class MutationQuota(Protocol):
    """Counts the partitions of one request."""

    @property
    def is_exceeded(self) -> bool:
        """Return whether something was refused."""

    def admits(self, partition_count: int) -> bool:
        """Count partitions; returns whether they may come and go now."""

    def throttle_ms(self) -> int:
        """Return the throttle time of the client in ms, as of now."""


class NoMutationQuota:
    """Refuses nothing."""

    @property
    def is_exceeded(self) -> bool:
        """Return False."""
        return False

    def admits(self, _partition_count: int) -> bool:
        """Return True."""
        return True

    def throttle_ms(self) -> int:
        """Return 0."""
        return 0


UNBOUNDED: Final = NoMutationQuota()
