"""One followed partition: its state, and the effect of a leader's response on it. Pure.

| phase | comes after | meanwhile |
|---|---|---|
| FETCHING | the start, all three | it is fetched, except while it is delayed |
| TRUNCATING | FETCHING, TRUNCATING | its leader's start and end are requested |
| FETCHING_EPOCH | FETCHING | the end of an epoch is requested from its leader |

1. Following begins at the end of the local log, in the epoch of its last record (R10). A log
   without epochs cannot show where it diverges from the leader's: it is truncated to its watermark
   first.
2. A response counts for the offset and the epoch that were requested; any other is late.
3. Records are appended, and the next fetch follows them: by it the leader learns the end (HW-5).
4. Where the leader's log diverges, the local one is truncated; if it lacks the epoch that
   the leader names, one of its epochs is removed, and the leader is requested again (REPL-2).
5. Out of range: the leader's end and start decide. (B1) its end is below ours: truncate to it. (A)
   its start is above our end: restart the empty log there. (B2) else: continue from our end.
6. A fenced epoch: the partition is dropped, for the controller's next order has the new leader.
   Every other error: a back-off of replica.fetch.backoff.ms, while the others continue.
7. Records of a new epoch that do not follow the end of the log: its leader has cleaned away those
   between, and is requested for the end of the epoch before. Only then does the next fetch confirm
   the records: no replica leads, or is in sync, that has the start of an epoch wrong.

Source: PART-9, PART-10, PART-11, REPL-2, REPL-4, R9; Kafka's AbstractFetcherThread of 3.9, with
truncation by Fetch as it is since inter.broker.protocol.version 2.7.
Differs: rule 7. Kafka's takes the first batch that is left for the start of the epoch. As leaders
they have a replica that led the epoch before keep its unreplicated records below that batch.
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


#: From which phases each is reached; None is the start.
PREVIOUS_PHASES: Final = {
    FetchPhase.FETCHING: (None, *FetchPhase),
    FetchPhase.TRUNCATING: (FetchPhase.FETCHING, FetchPhase.TRUNCATING),
    FetchPhase.FETCHING_EPOCH: (FetchPhase.FETCHING,),
}


class LocalLogEnds(NamedTuple):
    """A follower's log: its ends (the second exclusive), and the epoch of its last record."""

    log_start_offset: int
    log_end_offset: int
    latest_epoch: int | None


class FetchState(NamedTuple):
    """A followed partition: its position, in the first four fields, and its phase.

    Requests and fetch sessions read the position here, and keep no copy of it. `lag` counts
    offsets below the leader's watermark, None if unknown.
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
        """Return the state at the begin of an epoch (rule 1)."""
        return cls(leader_epoch, ends.log_end_offset, ends.latest_epoch, ends.log_start_offset)

    def is_due(self, now_ms: int) -> bool:
        """Return whether it may be fetched: it is not delayed, or no longer."""
        return self.delayed_until_ms is None or self.delayed_until_ms <= now_ms

    @property
    def is_caught_up(self) -> bool:
        """Return whether it had all of the leader's watermark when it fetched last."""
        return self.lag == 0

    def entering(self, phase: FetchPhase) -> FetchState:
        """Return the state in a phase that may follow on this one's, without a delay."""
        assert self.phase in PREVIOUS_PHASES[phase]
        return self._replace(phase=phase, delayed_until_ms=None)

    def fetching_from(self, ends: LocalLogEnds, lag: int | None = None) -> FetchState:
        """Return the state that fetches from the end of the local log, as it is now (rule 3)."""
        assert self.phase in PREVIOUS_PHASES[FetchPhase.FETCHING]
        start, end, epoch = ends
        position = (self.leader_epoch, end, epoch, start, FetchPhase.FETCHING, None, lag)
        return new_tuple(FetchState, position)

    def starting_at(self, log_start_offset: int) -> FetchState:
        """Return the state of a log whose start has risen."""
        return self._replace(log_start_offset=log_start_offset)

    def has_position_of(self, other: FetchState) -> bool:
        """Return whether both fetch from the same position."""
        return (
            self.fetch_offset == other.fetch_offset
            and self.leader_epoch == other.leader_epoch
            and self.last_fetched_epoch == other.last_fetched_epoch
            and self.log_start_offset == other.log_start_offset
        )

    def delayed(self, until_ms: int) -> FetchState:
        """Return the state that is not fetched until a time (monotonic)."""
        return self._replace(delayed_until_ms=until_ms)


class PartitionResponse(NamedTuple):
    """A leader's Fetch response for one partition; offsets are −1 where unknown."""

    error_code: int
    high_watermark: int = -1
    log_start_offset: int = -1
    records: Buffer = b""
    diverging_epoch: EpochEnd | None = None


class AppendFetched(NamedTuple):
    """Append records, follow the leader's watermark and its log's start."""

    records: Buffer
    leader_watermark: int
    leader_log_start_offset: int


class TruncateToDivergence(NamedTuple):
    """Truncate the log where it diverges from the leader's, or nearer to there (rule 4)."""

    diverging_epoch: EpochEnd


class TruncateTo(NamedTuple):
    """Remove all records from an offset on."""

    offset: int


class RestartAt(NamedTuple):
    """Remove all, and go on at an offset."""

    offset: int


class CloseGap(NamedTuple):
    """Set an epoch's start to the leader's end of the epoch before it, if the leader has that."""

    gap: EpochGap
    end_before: EpochEnd


class FetchFromEnd(NamedTuple):
    """Leave the log as it is, and fetch from its end."""


class FetchLeaderOffsets(NamedTuple):
    """Request the leader's log start and end (rule 5)."""


class BackOff(NamedTuple):
    """Back off from the partition for a while, because of an error."""

    error_code: int


class Drop(NamedTuple):
    """Follow no more in this epoch (rule 6)."""


#: A change of the local log.
LogStep: TypeAlias = (
    "AppendFetched | TruncateToDivergence | TruncateTo | RestartAt | CloseGap | FetchFromEnd"
)
#: The step that a response leads to.
FetchStep: TypeAlias = "LogStep | FetchLeaderOffsets | BackOff | Drop"


def step_after_response(answer: PartitionResponse) -> FetchStep:
    """Return the step that the leader's response to the latest fetch leads to."""
    if answer.error_code == NONE:
        if answer.diverging_epoch is not None:
            return TruncateToDivergence(answer.diverging_epoch)
        return AppendFetched(answer.records, answer.high_watermark, answer.log_start_offset)
    return FetchLeaderOffsets() if answer.error_code == OFFSET_OUT_OF_RANGE else after_error(answer)


def after_error(answer: PartitionResponse) -> FetchStep:
    """Return the step that an error other than an offset out of range leads to (rule 6)."""
    return Drop() if answer.error_code == FENCED_LEADER_EPOCH else BackOff(answer.error_code)


def step_out_of_range(
    ends: LocalLogEnds, leader_start_offset: int, leader_end_offset: int
) -> LogStep:
    """Return the step for a log out of its leader's range (rule 5, PART-10).

    Differs: the seeds' broker halts at B1 where unclean elections are forbidden; Kafka's have not
    since 2.0, nor does this one.
    """
    if leader_end_offset < ends.log_end_offset:
        return TruncateTo(leader_end_offset)
    if leader_start_offset > ends.log_end_offset:
        return RestartAt(leader_start_offset)
    return FetchFromEnd()


def epoch_start_after_gap(gap: EpochGap, end_before: EpochEnd) -> int:
    """Return where the epoch after a gap starts: the leader's end of the epoch before (rule 7).

    A leader that does not know the epoch before the gap gives no better bound than the local log's
    lowest possible start offset, which is then returned.
    """
    is_known = end_before.leader_epoch == gap.epoch_before
    return end_before.end_offset if is_known else gap.lowest_start_offset


def truncation_offset(
    diverging: EpochEnd, own_epoch_end: EpochEnd | None, local_log_end_offset: int
) -> int:
    """Return where to truncate a log that diverges from the leader's (rule 4, REPL-2, KIP-279).

    `own_epoch_end` is the largest epoch of the local log that is at most the diverging epoch, with
    the end offset of that epoch.
    """
    offset = diverging.end_offset
    if own_epoch_end is not None:
        epoch, end = own_epoch_end
        # Without the epoch itself only the records after the one before are known to be wrong.
        offset = min(end, offset) if epoch == diverging.leader_epoch else end
    return min(offset, local_log_end_offset)
