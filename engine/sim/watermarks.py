"""Rule HW-10: a follower's high watermark lags by at most one fetch cycle.

```
check    broker 2's high watermark of t-0 is below both its log end and its leader's high watermark:
         recorded, with the fetch session and its epoch
 …       two requests later: one began after the check, and its response has been processed
check    it is still below the leader's former high watermark: it would never learn of it
```

A fetch session sends a high watermark once. A follower that ignores it and continues the session
gets it again with the next record, or never. A follower whose fetch offset is below the leader's
log start gets only that error, and learns the high watermark after it restarted its log.

Source: HW-8, HW-10, FET-7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from engine.model import TopicPartition
from engine.replication.following.fetch_state import FetchPhase
from engine.replication.following.replica_fetcher import ReplicaFetcher
from engine.replication.partition import Partition
from engine.sim.node import SimulatedBroker

Broke = Callable[[str, str, TopicPartition], None]
#: Session epochs between two checks, if a request began after the first check and its response was
#: processed before the second.
_EPOCHS = 2


class Lag(NamedTuple):
    """A follower whose high watermark is lower than it could be."""

    fetcher: ReplicaFetcher
    leader: Partition
    leader_epoch: int
    session_id: int
    session_epoch: int
    leader_watermark: int
    #: Whether the leader returned OFFSET_OUT_OF_RANGE.
    is_truncating: bool
    truncation_count: int

    def is_later_than(self, before: Lag) -> bool:
        """Return True if this is a later observation of the same follower and fetch session."""
        return (
            self.fetcher is before.fetcher
            and self.leader is before.leader
            and self.leader_epoch == before.leader_epoch
            and self.session_id == before.session_id
            and self.session_epoch >= before.session_epoch
        )

    def is_answered(self, before: Lag) -> bool:
        """Return True if a fetch that began after the earlier observation got its response."""
        return self.session_epoch - before.session_epoch >= _EPOCHS

    def is_out_of_range(self, before: Lag) -> bool:
        """Return True if the follower may have got OFFSET_OUT_OF_RANGE since the other observation.

        It then truncates its log, and fetches without progress.
        """
        return self.is_truncating or self.truncation_count != before.truncation_count


class WatermarkRules:
    """Checks all followers periodically."""

    def __init__(self, broke: Broke, nodes: Mapping[int, SimulatedBroker]) -> None:
        """Create the rules; `broke` reports a violation by its rule, text and partition."""
        self._broke = broke
        self._nodes = nodes
        self._lags: dict[tuple[int, TopicPartition], Lag] = {}

    def check(self) -> None:
        """Check rule HW-10: a follower's high watermark follows its leader's within two fetches.

        Compares the followers that lagged at the last check, and records those that lag now.
        """
        lags = {}
        for broker_id, node in self._nodes.items():
            if node.broker is None:
                continue
            followed = node.broker.storage.replica_manager.partitions
            for fetcher in node.broker.storage.fetchers.fetchers.values():
                for key, lag in self._lagging_followers(fetcher, followed):
                    lags[broker_id, key] = self._check_follower(broker_id, followed[key], lag)
        self._lags = lags

    def _lagging_followers(
        self, fetcher: ReplicaFetcher, followed: Mapping[TopicPartition, Partition]
    ) -> Iterable[tuple[TopicPartition, Lag]]:
        """Yield the followers of a fetcher whose high watermark is lower than it could be.

        The limit is the lower of their log end offset and the leader's high watermark. Partitions
        in a back-off, which are left out of the next fetch, are skipped.
        """
        leader = self._nodes[fetcher.leader_id].broker
        if leader is None:
            return
        led = leader.storage.replica_manager.partitions
        for key, state in fetcher.followed.states.items():
            own, theirs = followed.get(key), led.get(key)
            if own is None or theirs is None or not theirs.is_leader:
                continue
            if not fetcher.is_in_session(key):
                # After a back-off, a partition joins the session with the next full fetch.
                continue
            if theirs.leader_epoch == state.leader_epoch and own.high_watermark < min(
                own.log.log_end_offset, theirs.high_watermark
            ):
                yield (
                    key,
                    Lag(
                        fetcher,
                        theirs,
                        state.leader_epoch,
                        *fetcher.session_place,
                        theirs.high_watermark,
                        state.phase is FetchPhase.TRUNCATING,
                        own.log.truncation_count,
                    ),
                )

    def _check_follower(self, broker_id: int, own: Partition, lag: Lag) -> Lag:
        """Check rule HW-10: two fetches since the last observation must have caught a follower up.

        Returns the observation to compare with at the next check.
        """
        before = self._lags.get((broker_id, own.topic_partition))
        if before is None or not lag.is_later_than(before):
            return lag
        if own.high_watermark >= min(own.log.log_end_offset, before.leader_watermark):
            return lag
        if not lag.is_answered(before):
            return before
        if lag.is_out_of_range(before):
            return lag
        self._broke(
            "HW-10",
            f"{own.topic_partition}: {broker_id} has {own.high_watermark} committed, its "
            f"leader {before.leader_watermark} since two fetches, and its log ends at "
            f"{own.log.log_end_offset}",
            own.topic_partition,
        )
        return before
