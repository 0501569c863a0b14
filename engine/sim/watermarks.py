"""Rule HW-10: a follower's watermark lags by at most one fetch cycle.

```
look     broker 2 has less of t-0 committed than its log and its leader could tell: noted, with the
         session and its epoch
 …       two requests on: one began behind the look, and its response has been worked on
look     it still has less than its leader had then: nobody will tell it
```

A session tells a watermark once. A follower that ignores a watermark and goes on with the session
gets it again with the next record, or never. One that asks below its leader's log is told that
alone, and learns the watermark once it has begun its log again.

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
#: How many epochs of a session are between two looks, if a request began behind the first one and
#: its response was worked on before the second.
_EPOCHS = 2


class Lag(NamedTuple):
    """A follower that has less committed than it could."""

    fetcher: ReplicaFetcher
    leader: Partition
    leader_epoch: int
    session_id: int
    session_epoch: int
    leader_watermark: int
    #: It was told that its offset is out of its leader's range.
    is_truncating: bool
    truncation_count: int

    def is_behind(self, before: Lag) -> bool:
        """Return True if this is the same follower later in the same fetch session."""
        return (
            self.fetcher is before.fetcher
            and self.leader is before.leader
            and self.leader_epoch == before.leader_epoch
            and self.session_id == before.session_id
            and self.session_epoch >= before.session_epoch
        )

    def is_answered(self, before: Lag) -> bool:
        """Return whether a fetch that began behind an earlier look was answered."""
        return self.session_epoch - before.session_epoch >= _EPOCHS

    def is_out_of_range(self, before: Lag) -> bool:
        """Return whether it got an error since an earlier check, and no watermark."""
        return self.is_truncating or self.truncation_count != before.truncation_count


class WatermarkRules:
    """Checks all followers periodically."""

    def __init__(self, broke: Broke, nodes: Mapping[int, SimulatedBroker]) -> None:
        """`broke` reports a violation with its rule, text and partition."""
        self._broke = broke
        self._nodes = nodes
        self._lags: dict[tuple[int, TopicPartition], Lag] = {}

    def check(self) -> None:
        """Check HW-10 for followers that lagged at the last check, and note those that lag now."""
        lags = {}
        for broker_id, node in self._nodes.items():
            if node.broker is None:
                continue
            followed = node.broker.storage.replica_manager.partitions
            for fetcher in node.broker.storage.fetchers.fetchers.values():
                for key, lag in self._lagging(fetcher, followed):
                    lags[broker_id, key] = self._judge(broker_id, followed[key], lag)
        self._lags = lags

    def _lagging(
        self, fetcher: ReplicaFetcher, followed: Mapping[TopicPartition, Partition]
    ) -> Iterable[tuple[TopicPartition, Lag]]:
        """Yield the followers of a fetcher whose high watermark is below what they could have.

        That is the lower of their log end offset and the leader's high watermark. Partitions that
        are backed off, and so left out of the next fetch, are skipped.
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
                # After a back-off, a partition is in the session from the next full fetch on.
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

    def _judge(self, broker_id: int, own: Partition, lag: Lag) -> Lag:
        """Check HW-10 for a follower that lagged before: two fetches must have caught it up.

        Returns the observation to compare with next time.
        """
        before = self._lags.get((broker_id, own.topic_partition))
        if before is None or not lag.is_behind(before):
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
