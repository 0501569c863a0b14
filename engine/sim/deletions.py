"""Rule L6: each increase of a replica's log start offset has a permitted reason.

| reason | a committed batch may be deleted if |
|---|---|
| another replica | some replica's log already started after it, for one of these reasons |
| DeleteRecords | an operator requested deletion up to a later offset, or of all committed records |
| time | it is older than `retention.ms` by the clock of the broker |
| size | the part of the log after it has at least `retention.bytes` |

A log of an epoch before a loss may delete offsets after that loss: no other replica had those
records, and other records are committed there since. A log whose start did not change has deleted
nothing, even if other logs start earlier again after a loss; records that were appended after its
start do not include those committed before.

`retention.ms` and `retention.bytes` are taken from the log's settings, which must have been set for
its topic at some time, since brokers learn of changes late. Segments end between batches, so a
check by batches allows no more than one by segments, except for compacted logs: of these, only
batches are checked that have the last record of a key, and no tombstone whose time is over.

Source: RET-4, HW-18; Kafka's UnifiedLog.deleteOldSegments, deleteRecordsOffset.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import NamedTuple

from engine.log.local_log import LocalLog
from engine.model import TopicPartition
from engine.sim.histories import History

Broke = Callable[[str, str, TopicPartition], None]
_KEYS = ("retention.ms", "retention.bytes")


class Moment(NamedTuple):
    """A time, in ms of the simulation and by a broker's wall clock."""

    now_ms: int
    wall_ms: int


class DeletionRules:
    """Records reasons for deletions, and checks each replica's log start offset by them."""

    def __init__(self, broke: Broke, retention: tuple[int, int]) -> None:
        """Create the rules; `retention` has the defaults of `retention.ms` and `retention.bytes`.

        `broke` reports a violation by its rule, text and partition.
        """
        self._broke = broke
        #: All values that each retention setting ever had: as a default, and by topic.
        self._given = {name: {value} for name, value in zip(_KEYS, retention, strict=True)}
        self._given_to: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        #: Highest offset of a DeleteRecords request, by partition. Kept when a topic is deleted: a
        #: request may reach a new topic of the same name.
        self._requested: dict[TopicPartition, int] = {}
        #: Log start offset of each replica at the last check, by broker, partition and topic id.
        self._starts: dict[tuple[str, TopicPartition, str | None], int] = {}

    def record_configs(self, topic: str, config: Mapping[str, str]) -> None:
        """Record a topic's retention settings, which give reasons to delete records from now on."""
        for key in _KEYS:
            if key in config:
                self._given_to[topic, key].add(int(config[key]))

    def record_request(self, partition: TopicPartition, end_offset: int) -> None:
        """Record that an operator will send DeleteRecords up to an offset."""
        self._requested[partition] = max(end_offset, self._requested.get(partition, 0))

    def check_start(
        self,
        history: History,
        key: TopicPartition,
        log: LocalLog,
        broker: str,
        moment: Moment,
        *,
        is_leader: bool = False,
    ) -> None:
        """Check rule L6: a replica's log start offset rises only if there is a reason.

        Called if the log starts later than any replica's did before. The start then becomes the
        smallest offset that replicas must have. `is_leader`: the replica is the leader in the
        stored epoch.
        """
        replica = broker, key, log.topic_id
        before = self._starts.get(replica, 0)
        start = self._starts[replica] = log.log_start_offset
        if start <= history.start:
            return
        start = min([start, *_uncommitted_starts(history, log, is_leader=is_leader)])
        if log.log_start_offset > before:
            fault = self._fault_of(history, key, log, start, moment)
            if fault:
                self._broke("L6", f"{key}: {broker} begins at {log.log_start_offset}, {fault}", key)
        elif log.epochs.latest_epoch < 0:
            # It is empty, and its leader has set the offset at which it starts.
            return
        history.start = max(history.start, min(start, history.committed_end))

    def _fault_of(
        self, history: History, key: TopicPartition, log: LocalLog, start: int, moment: Moment
    ) -> str:
        """Return as text why a record below `start` must not be deleted; empty if all may be.

        Reasons are retention by time and by size, a DeleteRecords request, and a loss.
        """
        config = log.config
        # A replica that has not learned of a loss keeps its former start.
        if log.log_start_offset > history.known_end:
            return f"committed is {history.committed_end}"
        given = [self._given[name] | self._given_to[key.topic, name] for name in _KEYS]
        if config.retention_ms not in given[0] or config.retention_bytes not in given[1]:
            return f"its log goes by {config}, given were {given}"
        following_bytes = log.size_bytes
        first = max(history.start, self._requested.get(key, 0))
        for batch in history.batches_in(first, start, moment.now_ms):
            is_old = 0 <= config.retention_ms < moment.wall_ms - batch.timestamp_ms
            is_too_much = 0 <= config.retention_bytes <= following_bytes
            if not config.is_deleting or not (is_old or is_too_much):
                return (
                    f"{batch} may not be gone by {config.retention_ms} ms of {moment.wall_ms}, "
                    f"{config.retention_bytes} of {following_bytes} bytes"
                )
            following_bytes += batch.size_bytes
        return ""


def _uncommitted_starts(history: History, log: LocalLog, *, is_leader: bool) -> list[int]:
    """Return the offsets from which a log has records that were never committed.

    A log from before a loss has such records, and one that ends in a fork. The leader's records are
    the committed ones.
    """
    if is_leader:
        return []
    own_end = history.own_end(log.epochs.latest_epoch)
    ends_in = [fork.first for fork in history.forks if log.log_end_offset <= fork.end]
    return ends_in if own_end is None else [own_end, *ends_in]
