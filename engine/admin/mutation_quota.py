"""The quota on the partitions that requests create or delete.

Source: ControllerMutationQuotaManager, KIP-599.
"""

from __future__ import annotations

from typing import Final, Protocol

from engine.admin.topic_results import TopicResult
from engine.kafka_errors import THROTTLING_QUOTA_EXCEEDED

#: The result of a topic that a strict quota rejects; in Kafka too it has no message.
EXCEEDED: Final = TopicResult(THROTTLING_QUOTA_EXCEEDED)


class MutationQuota(Protocol):
    """Counts the partitions of one request."""

    @property
    def is_exceeded(self) -> bool:
        """True if any partitions of the request were rejected."""

    def take_tokens(self, partition_count: int) -> bool:
        """Count partitions to be created or deleted.

        Returns False if they exceed the client's quota.

        Partitions for which it returns False must not be changed.
        """

    def throttle_ms(self) -> int:
        """Return the present throttle time of the client in ms."""


class NoMutationQuota:
    """A quota without a limit."""

    @property
    def is_exceeded(self) -> bool:
        """False: without a quota no partition is rejected."""
        return False

    def take_tokens(self, _partition_count: int) -> bool:
        """Return True: without a quota each change is allowed."""
        return True

    def throttle_ms(self) -> int:
        """Return 0: without a quota no client is throttled."""
        return 0


UNBOUNDED: Final = NoMutationQuota()
