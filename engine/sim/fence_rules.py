"""Rule T8: requests of a producer fail once a newer instance of its transactional id has started.

Once a newer instance has the response to its InitProducerId, each later request of an earlier
instance fails: the coordinator rejects its epoch, and leaders verify with the coordinator each
partition in which the producer has no open transaction (KIP-890).

Exceptions: a former leader, or a leader that lost records, may accept a request for a batch that
its log already has, because that changes nothing. In this version of Kafka, a late request of an
earlier transaction of the *same* epoch is accepted as one of the open transaction.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.model import TopicPartition
from engine.sim.sent_transactions import Fence, Ids


class FenceRules:
    """Records the latest instance of each transactional id, and checks requests of earlier ones."""

    def __init__(
        self,
        broke: Callable[[str, str, TopicPartition | None], None],
        *,
        leader_epoch: Callable[[TopicPartition], int],
        leads: Callable[[str, TopicPartition], bool],
        is_excused: Callable[[TopicPartition], bool],
    ) -> None:
        """Set up the rules; `broke` reports a violation by its rule, text and partition.

        `leader_epoch` returns the epoch of a partition's leader. `leads` returns True if a named
        broker leads a partition. `is_excused` returns True for a partition that lost records by a
        fault: its transactions are not checked.
        """
        self._broke = broke
        self._leader_epoch, self._leads, self._is_excused = leader_epoch, leads, is_excused
        #: Latest producer id and epoch of each transactional id.
        self._latest: dict[str, Ids] = {}

    def record_ids(self, transactional_id: str, ids: Ids) -> None:
        """Record the producer id and epoch of an instance; an older epoch is ignored."""
        latest = self._latest.get(transactional_id)
        if latest is None or latest.producer_id != ids.producer_id or latest < ids:
            self._latest[transactional_id] = ids

    def fence_of(self, transactional_id: str, ids: Ids, partition: TopicPartition) -> Fence | None:
        """Return the fence that must reject an instance's request; None for the latest instance."""
        latest = self._latest.get(transactional_id)
        if latest is None or latest.producer_id != ids.producer_id or latest <= ids:
            return None
        return Fence(partition, self._leader_epoch(partition))

    def check_success(self, fence: Fence, host: str, request_name: str) -> None:
        """Check rule T8: no request of a fenced instance succeeds at broker `host`.

        `fence` was determined when the request was sent. Excused unless the broker is still the
        leader of the same epoch.
        """
        partition, leader_epoch = fence
        is_leader = self._leads(host, partition) and self._leader_epoch(partition) == leader_epoch
        if is_leader and not self._is_excused(partition):
            self._broke(
                "T8", f"{request_name} of an instance that is fenced succeeded at {host}", None
            )
