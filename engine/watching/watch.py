"""A watched cluster: the last samples, and the rows computed from them. Pure.

| figure | computed from |
|---|---|
| rates | the last sample and the first one within WATCH_RATE_WINDOW_MS |
| verdict and trend of a group | the last WATCH_SAMPLES_KEPT samples |
| lag in seconds | the end offsets of all samples (`lag_times`) |
| copied bytes per second | the last two samples |

Brokers that were in any sample are kept: one that is no longer registered is shown as gone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping

from engine.client.metadata import BrokerView, PartitionView
from engine.client.move_progress import move_figures
from engine.client.rates import PartitionRate
from engine.exporter.lag_times import EndHistory
from engine.limits import WATCH_RATE_WINDOW_MS, WATCH_SAMPLES_KEPT
from engine.model import TopicPartition
from engine.watching.broker_shares import broker_shares
from engine.watching.group_lags import GroupLag, PartitionLag, group_lags
from engine.watching.partition_trouble import partition_trouble
from engine.watching.timed_sample import (
    TimedSample,
    leader_sizes,
    move_rates,
    rate_sum,
    sample_rates,
)
from engine.watching.watch_rows import (
    Frame,
    WatchedBroker,
    WatchedGroup,
    WatchedLag,
    WatchedMove,
    WatchedPartition,
    WatchedReplica,
    WatchedTopic,
)

UP, SILENT, GONE = "up", "silent", "gone"
SILENT_LEADER = "silent-leader"


class Watch:
    """The state of a watched cluster; `take` must be called before rows are requested."""

    def __init__(self) -> None:
        """Create the watch without samples; its other methods need at least one."""
        #: The last samples, from which rates are computed.
        self._samples: deque[TimedSample] = deque(maxlen=WATCH_SAMPLES_KEPT)
        #: Log end offsets of the past, from which lags in seconds are computed.
        self._history = EndHistory()
        #: All brokers in any sample: one that is down keeps its row.
        self._brokers: dict[int, BrokerView] = {}
        #: min.insync.replicas by topic, from the last sample with settings.
        self._min_isr: Mapping[str, int] = {}
        self._lags: dict[str, GroupLag] = {}
        self._rates: Mapping[TopicPartition, PartitionRate] = {}

    def add_sample(self, timed: TimedSample) -> Frame:
        """Add a sample, and return the rows of all views, with rates since earlier samples."""
        sample = timed.sample
        self._samples.append(timed)
        self._brokers |= sample.view.brokers
        self._min_isr = sample.min_isr or self._min_isr
        known = {
            TopicPartition(name, row.partition)
            for name, topic in sample.view.topics.items()
            for row in topic.partitions
        }
        self._history.add_ends(dict(sample.high_watermarks), timed.wall_ms, known)
        self._rates = self._current_rates()
        self._lags = {lag.group: lag for lag in group_lags(list(self._samples))}
        partitions = tuple(self._partition_rows())
        return Frame(
            timed.wall_ms,
            sample.view.cluster_id,
            sample.view.known_controller_id,
            tuple(self._broker_rows()),
            partitions,
            tuple(self._topic_rows(partitions)),
            tuple(map(self._group_row, self._lags.values())),
            tuple(self._move_rows()),
            tuple(f"broker {f.broker_id} {f.api_name}: {f.error}" for f in sample.failures),
        )

    # -- what one row leads to

    def replicas_of(self, key: TopicPartition) -> list[WatchedReplica]:
        """Return the replicas of a partition, the leader first; empty for a deleted partition."""
        sample = self._samples[-1].sample
        row = sample.view.partition(key)
        if row is None:
            return []
        ids = sorted(row.replicas, key=lambda broker_id: broker_id != row.leader)
        return [self._replica_row(key, row, broker_id) for broker_id in ids]

    def lags_of(self, group: str) -> list[WatchedLag]:
        """Return the partitions of a group with their lag; empty for a deleted group."""
        lag = self._lags.get(group)
        return [] if lag is None else [self._lag_row(one) for one in lag.partitions]

    def readers_of(self, key: TopicPartition) -> list[tuple[str, int | None]]:
        """Return each group that reads a partition, with its lag there."""
        return [
            (name, one.lag)
            for name, group in sorted(self._lags.items())
            for one in group.partitions
            if (one.topic, one.partition) == key
        ]

    # -- rows

    def _current_rates(self) -> dict[TopicPartition, PartitionRate]:
        """Return the write rates between the last sample and the first one within the window."""
        last = self._samples[-1]
        earlier = [
            timed
            for timed in self._samples
            if timed is not last and last.at_ms - timed.at_ms <= WATCH_RATE_WINDOW_MS
        ]
        if not earlier and len(self._samples) > 1:
            # No sample succeeded within the window.
            earlier = [self._samples[-2]]
        return sample_rates(earlier[0], last) if earlier else {}

    def _broker_state(self, broker_id: int) -> str:
        """Return a broker's state: UP, SILENT without a response, GONE if the metadata lacks it."""
        sample = self._samples[-1].sample
        if broker_id not in sample.view.brokers:
            return GONE
        return SILENT if broker_id in sample.silent else UP

    def _broker_rows(self) -> Iterator[WatchedBroker]:
        """Yield a row for each broker of any sample, also for brokers that are gone."""
        shares = {s.broker_id: s for s in broker_shares(self._samples[-1].sample, self._rates)}
        for broker_id, broker in sorted(self._brokers.items()):
            state, share = self._broker_state(broker_id), shares.get(broker_id)
            if share is None:
                nothing = None, None, None, None
                place = broker.address.host, broker.rack
                yield WatchedBroker(broker_id, state, False, *place, 0, 0, 0, *nothing)
                continue
            fields = share._asdict()
            yield WatchedBroker(state=state, **fields)

    def _partition_rows(self) -> Iterator[WatchedPartition]:
        """Yield a row for each partition of the last sample."""
        sample = self._samples[-1].sample
        sizes = leader_sizes(sample)
        for name, topic in sorted(sample.view.topics.items()):
            for row in topic.partitions:
                key = TopicPartition(name, row.partition)
                rate = self._rates.get(key)
                yield WatchedPartition(
                    name,
                    row.partition,
                    self._partition_trouble(key, row),
                    row.leader,
                    row.replicas,
                    row.isr,
                    sizes.get(key),
                    sample.low_watermarks.get(key),
                    sample.high_watermarks.get(key),
                    None if rate is None else rate.bytes_per_s,
                    None if rate is None else round(rate.records_per_s, 1),
                )

    def _partition_trouble(self, key: TopicPartition, row: PartitionView) -> str | None:
        """Return the trouble of a partition's replicas or leader, None if there is none."""
        sample = self._samples[-1].sample
        move = (sample.moves or {}).get(key)
        adding = () if move is None else move.adding
        trouble = partition_trouble(row, self._min_isr.get(key.topic), adding)
        if row.leader in sample.silent:
            return SILENT_LEADER
        return trouble

    def _topic_rows(self, partitions: tuple[WatchedPartition, ...]) -> Iterator[WatchedTopic]:
        """Yield a row for each topic, summed over its partitions."""
        by_topic: dict[str, list[WatchedPartition]] = {}
        for row in partitions:
            by_topic.setdefault(row.topic, []).append(row)
        for name, rows in by_topic.items():
            keys = [TopicPartition(name, row.partition) for row in rows]
            yield WatchedTopic(
                name,
                len(rows),
                len(rows[0].replicas),
                sum(row.trouble is not None for row in rows),
                sum(row.size_bytes or 0 for row in rows),
                *rate_sum(self._rates, keys),
            )

    def _group_row(self, lag: GroupLag) -> WatchedGroup:
        """Return the row of a group; its lag in seconds is that of the slowest partition."""
        waits = [self._lag_row(one).lag_s for one in lag.partitions]
        return WatchedGroup(
            lag.group,
            lag.state,
            lag.member_count,
            lag.lag,
            lag.lag_per_s,
            max((wait for wait in waits if wait is not None), default=None),
            lag.verdict,
            lag.reason,
        )

    def _lag_row(self, one: PartitionLag) -> WatchedLag:
        """Return the row of one partition of a group."""
        key, now_ms = TopicPartition(one.topic, one.partition), self._samples[-1].wall_ms
        committed = one.committed_offset
        lag_s = None if committed is None else self._history.lag_s(key, committed, now_ms)
        return WatchedLag(
            *key,
            committed,
            one.end_offset,
            one.lag,
            None if lag_s is None else round(lag_s, 1),
            one.verdict,
            one.client_id,
            one.client_host,
            one.reason,
        )

    def _move_rows(self) -> Iterator[WatchedMove]:
        """Yield a row for each running reassignment, with its rate if there are two samples."""
        last = self._samples[-1]
        rates = move_rates(self._samples[-2], last) if len(self._samples) > 1 else {}
        for key, move in sorted((last.sample.moves or {}).items()):
            row = last.sample.view.partition(key)
            if row is not None:
                figures = move_figures(key, row, move, last.sample.log_dirs, rates.get(key))
                ids = tuple(figures.original), tuple(figures.target)
                amounts = figures.copied_bytes, figures.total_bytes
                yield WatchedMove(*key, *ids, *amounts, figures.bytes_per_s, figures.left_s)

    def _replica_row(
        self, key: TopicPartition, row: PartitionView, broker_id: int
    ) -> WatchedReplica:
        """Return the row of one replica.

        Size and lag are None if its broker did not return them.
        """
        role = "leader" if broker_id == row.leader else "follower"
        found = next(
            (
                (log_dir.path, replica)
                for log_dir in self._samples[-1].sample.log_dirs.get(broker_id, ())
                for replica in log_dir.replicas
                if replica.partition == key and not replica.is_future
            ),
            None,
        )
        state, is_in_sync = self._broker_state(broker_id), broker_id in row.isr
        if found is None:
            return WatchedReplica(broker_id, state, role, is_in_sync, None, None, None)
        path, replica = found
        figures = replica.size_bytes, replica.offset_lag
        return WatchedReplica(broker_id, state, role, is_in_sync, path, *figures)
