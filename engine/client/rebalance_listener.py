"""Calls of an application's listener as its consumer gains and loses partitions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from engine.client.blocking import KafkaClient
from engine.errors import EngineError
from engine.model import TopicPartition


class RebalanceListener(Protocol):
    """Called as partitions are assigned or revoked, within `poll` and `close`."""

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Handle the revocation of partitions before it happens.

        Their offsets may still be committed.
        """
        ...

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Handle the assignment of added partitions; `seek` is allowed in it."""
        ...


class ListenerCalls:
    """Calls a consumer's listener.

    Requests made there have their own timeout, not that of `poll`.
    """

    def __init__(self, client: KafkaClient) -> None:
        """Create the calls of a consumer that has no listener yet."""
        self._client = client
        self.listener: RebalanceListener | None = None
        #: The last error that the listener raised: it ends the poll, even if it is retriable. None
        #: without one.
        self.failure: EngineError | None = None

    def revoked(self, partitions: Sequence[TopicPartition]) -> None:
        """Call the listener's `on_revoked` if there is a listener and a partition.

        Raises its errors.
        """
        if self.listener is not None and partitions:
            self._call_listener(self.listener.on_revoked, partitions)

    def assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Call the listener's `on_assigned`, even if no partition was added; raise its errors."""
        if self.listener is not None:
            self._call_listener(self.listener.on_assigned, partitions)

    def _call_listener(
        self, call: Callable[[Sequence[TopicPartition]], None], partitions: Sequence[TopicPartition]
    ) -> None:
        """Call a method of the listener; keep its EngineError in `failure`, and raise it.

        By `failure` the consumer distinguishes a listener's error, which it must not retry, from
        its own. Requests in the listener are not bounded by the poll's timeout.
        """
        try:
            with self._client.bound_retries(None):
                call(partitions)
        except EngineError as error:
            self.failure = error
            raise
