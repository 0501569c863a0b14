"""The fetch state of one followed partition, and the effect of a leader's response on it. Pure.

| phase | previous phases | action |
|---|---|---|
| FETCHING | the start, all three | Fetch, except during a back-off |
| TRUNCATING | FETCHING, TRUNCATING | request the leader's log start and end offsets |
| FETCHING_EPOCH | FETCHING | request the end offset of an epoch from the leader |

1. Following begins at the end of the local log, in the epoch of its last record (R10). A log
   without epochs cannot detect a divergence from the leader's: it is first truncated to its
   high watermark.
2. A response is applied only if the partition still has the requested offset and epoch.
3. Records are appended, and the next fetch is from their end: it reports the log end offset to the
   leader (HW-5).
4. If the leader's log diverges, the local log is truncated; if it lacks the epoch that the
   leader returned, its latest epoch is removed, and the next fetch checks again (REPL-2).
5. OFFSET_OUT_OF_RANGE: the leader's end and start decide. (B1) its end is below ours: truncate to
   it. (A) its start is above our end: restart the empty log there. (B2) else: continue at our end.
6. FENCED_LEADER_EPOCH: the partition is removed; the controller's next LeaderAndIsr has the new
   leader. Any other error: a back-off of replica.fetch.backoff.ms for this partition only.
7. Records of a new epoch that do not continue the log, or do not begin it: the leader has
   compacted away the records between, and is requested for the end of the epoch before. Only
   after that the next fetch confirms the records: no replica with a wrong epoch start becomes
   leader or joins the ISR. (A broker that restarts before the response keeps the start at the log
   end offset: the epoch before it then ends too early for consumers that validate their position.)

Source: PART-9, PART-10, PART-11, REPL-2, REPL-4, R9; Kafka's AbstractFetcherThread of 3.9, with
truncation by Fetch as it is since inter.broker.protocol.version 2.7.
Differs: rule 7. A follower of Kafka takes the first remaining batch for the start of the epoch. As
the leader it then lets a replica that led the epoch before keep its unreplicated records below that
batch.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from engine.host.ports import Buffer
from engine.kafka_errors import FENCED_LEADER_EPOCH, NONE, OFFSET_OUT_OF_RANGE
from engine.log.epoch_cache import EpochGap
from engine.model import new_tuple
from engine.replication.partition_types import EpochEnd


class FetchPhase(Enum):
    """The phase of a followed partition."""

    FETCHING = "fetching"
    TRUNCATING = "truncating"
    FETCHING_EPOCH = "fetching epoch"


#: The phases that may precede each phase; None is the start.
PREVIOUS_PHASES: Final = {
    FetchPhase.FETCHING: (None, *FetchPhase),
    FetchPhase.TRUNCATING: (FetchPhase.FETCHING, FetchPhase.TRUNCATING),
    FetchPhase.FETCHING_EPOCH: (FetchPhase.FETCHING,),
}


class LocalLogEnds(NamedTuple):
    """The log start offset, log end offset (exclusive) and latest epoch of a follower's log."""

    log_start_offset: int
    log_end_offset: int
    latest_epoch: int | None


class FetchState(NamedTuple):
    """A followed partition: its position (the first four fields) and its phase.

    Requests and fetch sessions read the position here, and keep no copy of it. `delayed_until_ms`
    is monotonic. `lag` is the distance to the leader's high watermark, None if unknown.
    """

    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int | None
    log_start_offset: int
    phase: FetchPhase = FetchPhase.FETCHING
    delayed_until_ms: int | None = None
    lag: int | None = None

    @classmethod
    def start(cls, leader_epoch: int, ends: LocalLogEnds) -> FetchState:
        """Return the state in which a follower begins to fetch in a leader epoch.

        It fetches from its log's end.
        """
        return cls(leader_epoch, ends.log_end_offset, ends.latest_epoch, ends.log_start_offset)

    def is_due(self, now_ms: int) -> bool:
        """True if the partition has no back-off, or one that has ended at `now_ms` (monotonic)."""
        return self.delayed_until_ms is None or self.delayed_until_ms <= now_ms

    @property
    def is_caught_up(self) -> bool:
        """True if the last fetch reached the leader's high watermark."""
        return self.lag == 0

    def entering(self, phase: FetchPhase) -> FetchState:
        """Return the state in another phase, without a back-off.

        Asserts that the phase may follow the present one.
        """
        assert self.phase in PREVIOUS_PHASES[phase]
        return self._replace(phase=phase, delayed_until_ms=None)

    def fetching_from(self, ends: LocalLogEnds, lag: int | None = None) -> FetchState:
        """Return the state in phase FETCHING from the end of the local log (`ends`)."""
        assert self.phase in PREVIOUS_PHASES[FetchPhase.FETCHING]
        start, end, epoch = ends
        position = (self.leader_epoch, end, epoch, start, FetchPhase.FETCHING, None, lag)
        return new_tuple(FetchState, position)

    def starting_at(self, log_start_offset: int) -> FetchState:
        """Return the state with a new log start offset, for the next request."""
        return self._replace(log_start_offset=log_start_offset)

    def has_same_position(self, other: FetchState) -> bool:
        """Return True if both states have the same fetch offset, epochs and log start offset."""
        return (
            self.fetch_offset == other.fetch_offset
            and self.leader_epoch == other.leader_epoch
            and self.last_fetched_epoch == other.last_fetched_epoch
            and self.log_start_offset == other.log_start_offset
        )

    def delayed(self, until_ms: int) -> FetchState:
        """Return the state with a back-off until `until_ms` (monotonic)."""
        return self._replace(delayed_until_ms=until_ms)


class PartitionResponse(NamedTuple):
    """A leader's Fetch response for one partition; offsets are −1 where unknown."""

    error_code: int
    high_watermark: int = -1
    log_start_offset: int = -1
    records: Buffer = b""
    diverging_epoch: EpochEnd | None = None


class AppendFetched(NamedTuple):
    """Append records, and apply the leader's high watermark and log start offset."""

    records: Buffer
    leader_watermark: int
    leader_log_start_offset: int


class TruncateToDivergence(NamedTuple):
    """Truncate the log towards the point where it diverges from the leader's (rule 4)."""

    diverging_epoch: EpochEnd


class TruncateTo(NamedTuple):
    """Remove all records from an offset on."""

    offset: int


class RestartAt(NamedTuple):
    """Remove all records, and continue with an empty log at an offset."""

    offset: int


class CloseGap(NamedTuple):
    """Set the start of the epoch after a gap to the leader's end of the epoch before it."""

    gap: EpochGap
    end_before: EpochEnd


class FetchFromEnd(NamedTuple):
    """Do not change the log; fetch from its end."""


class FetchLeaderOffsets(NamedTuple):
    """Request the leader's log start and end offsets (rule 5)."""


class BackOff(NamedTuple):
    """Do not fetch the partition during the back-off, because of an error."""

    error_code: int


class Drop(NamedTuple):
    """Stop following in this leader epoch (rule 6)."""


#: A change of the local log.
LogStep: TypeAlias = (
    "AppendFetched | TruncateToDivergence | TruncateTo | RestartAt | CloseGap | FetchFromEnd"
)
#: The step after a response.
FetchStep: TypeAlias = "LogStep | FetchLeaderOffsets | BackOff | Drop"


def step_after_response(answer: PartitionResponse) -> FetchStep:
    """Return what a follower does next with its log, by the leader's response to its latest fetch.

    A divergence leads to a truncation, OFFSET_OUT_OF_RANGE to a request for the leader's offsets,
    another error to a back-off.
    """
    if answer.error_code == NONE:
        if answer.diverging_epoch is not None:
            return TruncateToDivergence(answer.diverging_epoch)
        return AppendFetched(answer.records, answer.high_watermark, answer.log_start_offset)
    return FetchLeaderOffsets() if answer.error_code == OFFSET_OUT_OF_RANGE else after_error(answer)


def after_error(answer: PartitionResponse) -> FetchStep:
    """Return the step after an error other than OFFSET_OUT_OF_RANGE.

    FENCED_LEADER_EPOCH ends the fetching, because a newer epoch follows; others give a back-off.
    """
    return Drop() if answer.error_code == FENCED_LEADER_EPOCH else BackOff(answer.error_code)


def step_out_of_range(
    ends: LocalLogEnds, leader_start_offset: int, leader_end_offset: int
) -> LogStep:
    """Return the step for a log outside of its leader's range (PART-10), by the ends of both logs.

    Differs: the seeds' broker halts at B1 where unclean elections are forbidden; Kafka has not done
    this since 2.0, nor does this broker.
    """
    if leader_end_offset < ends.log_end_offset:
        return TruncateTo(leader_end_offset)
    if leader_start_offset > ends.log_end_offset:
        return RestartAt(leader_start_offset)
    return FetchFromEnd()


def epoch_start_after_gap(gap: EpochGap, end_before: EpochEnd) -> int:
    """Return the start offset of the epoch after a gap in the local epoch cache.

    It is the leader's end of the epoch before the gap. If the leader does not know that epoch, it
    is the lowest possible start in the local log.
    Before the first epoch of the local log the end of any earlier epoch of the leader counts.
    """
    is_known = end_before.leader_epoch == gap.epoch_before
    if gap.is_first:
        is_known = end_before.leader_epoch >= 0
    return end_before.end_offset if is_known else gap.lowest_start_offset


def truncation_offset(
    diverging: EpochEnd, own_epoch_end: EpochEnd | None, local_log_end_offset: int
) -> int:
    """Return where to truncate a log that diverges from the leader's (REPL-2, KIP-279).

    `own_epoch_end` is the largest epoch of the local log that is at most the diverging epoch, with
    the end offset of that epoch.
    """
    offset = diverging.end_offset
    if own_epoch_end is not None:
        epoch, end = own_epoch_end
        # If the log lacks the epoch, only the records after the epoch before are known to be wrong.
        offset = min(end, offset) if epoch == diverging.leader_epoch else end
    return min(offset, local_log_end_offset)
