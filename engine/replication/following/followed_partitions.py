"""The partitions that one fetcher follows from one leader; does no I/O except to local logs.

```
add ─> requested ─ one request for all due partitions ─> taken ── by each response ──> local logs
        ^                                                  │ out of range      a new epoch │
        ├── next cycle <── ends_taken <── leader's ends <──┴─ truncating        after a gap│
        └── next cycle <── epochs_taken <── end of the leader's epoch before <─────────────┘
```

The fetcher runs one cycle at a time: it sends the result of `start_cycle` to the leader, and passes
the responses to `apply_responses`. A response is applied only if the partition still has the
requested position. A failure of one partition never delays the other partitions.

Source: PART-9, REPL-17, D27; Kafka's AbstractFetcherThread. The rules are those of `fetch_state`.
Differs: a `replica.fetch.backoff.ms` of 0 is 1.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from engine.errors import ApiError, StorageError
from engine.host.ports import Clock
from engine.ids import uuid_bytes
from engine.kafka_errors import NONE, kafka_error
from engine.log.epoch_cache import EpochGap
from engine.model import TopicPartition, new_tuple
from engine.replication.following.fetch_state import (
    AppendFetched,
    BackOff,
    CloseGap,
    Drop,
    FetchFromEnd,
    FetchLeaderOffsets,
    FetchPhase,
    FetchState,
    FetchStep,
    LocalLogEnds,
    LogStep,
    PartitionResponse,
    after_error,
    step_after_response,
    step_out_of_range,
)
from engine.replication.following.follower_logs import FollowerLogs
from engine.replication.partition_types import EpochEnd, FetchSpec
from engine.replication.replication_quota import ReplicationQuota

_log = logging.getLogger("kafka.server.ReplicaFetcherThread")


class ReplicaFetcherConfig(NamedTuple):
    """Sizes, wait and back-off of replica fetches, with the defaults of Kafka 3.9 (FET-1)."""

    backoff_ms: int = 1000
    partition_max_bytes: int = 1 << 20
    max_bytes: int = 10 << 20
    min_bytes: int = 1
    max_wait_ms: int = 500


class LeaderEnds(NamedTuple):
    """The start and end offsets of a leader's log, or the error code of its response."""

    error_code: int
    start_offset: int = -1
    end_offset: int = -1


class EpochRequest(NamedTuple):
    """A request for the end of the leader's epoch before `gap`, with the present leader epoch."""

    leader_epoch: int
    gap: EpochGap


class EpochAnswer(NamedTuple):
    """The leader's largest epoch up to the requested one and its end offset, or an error code.

    Epoch and offset are −1 if the leader knows no such epoch.
    """

    error_code: int
    leader_epoch: int = -1
    end_offset: int = -1


class FollowedPartitions:
    """The partitions that one fetcher follows, each with its fetch state (PART-9).

    The only owner of their positions: sessions and requests read them here.
    """

    def __init__(
        self,
        logs: FollowerLogs,
        clock: Clock,
        quota: ReplicationQuota,
        config: ReplicaFetcherConfig | None = None,
    ) -> None:
        """Create the state of one fetcher's partitions, without any.

        `quota` is the follower's replication throttle.
        """
        self._logs = logs
        self._quota = quota
        #: Partitions that the last request left out because the quota was exceeded.
        self._throttled: set[TopicPartition] = set()
        self._clock = clock
        self.config = config or ReplicaFetcherConfig()
        # Never 0: a failed partition would be fetched again in the same turn, before other work.
        self._backoff_ms = max(1, self.config.backoff_ms)
        #: Position and state of each followed partition.
        self._states: dict[TopicPartition, FetchState] = {}
        #: Partitions whose position is unchanged since the request in flight, or the last one.
        self._requested: set[TopicPartition] = set()
        #: Partitions of the last request whose position had changed since the request before it.
        self.moved: set[TopicPartition] = set()
        #: Whether the next request may differ from the last one only by appended records: since the
        #: last response nothing else has changed.
        self.is_as_requested = False

    @property
    def states(self) -> Mapping[TopicPartition, FetchState]:
        """Return the followed partitions in the order of the next request."""
        return self._states

    def follow(self, topic_partition: TopicPartition, leader_epoch: int) -> None:
        """Start to follow a partition in a leader epoch, unless it is followed in that epoch."""
        state = self._states.get(topic_partition)
        if state is not None and state.leader_epoch == leader_epoch:
            return
        try:
            own = self._logs.begin_following(topic_partition, leader_epoch)
        except (ApiError, StorageError) as failure:
            self._handle_failure(topic_partition, failure)
            return
        if own is not None:
            self.is_as_requested = False
            start = FetchState.start(leader_epoch, own)
            self._set_state(topic_partition, self._enter_fetching(topic_partition, start))

    def remove(self, topic_partition: TopicPartition) -> None:
        """Stop following a partition; does nothing if it is not followed."""
        if self._states.pop(topic_partition, None) is not None:
            self._requested.discard(topic_partition)
            self.is_as_requested = False

    def _set_state(self, topic_partition: TopicPartition, state: FetchState) -> None:
        """Set the fetch state of a partition; a changed position must be in the next request."""
        before = self._states.get(topic_partition)
        if before is None or not state.has_same_position(before):
            self._requested.discard(topic_partition)
        self._states[topic_partition] = state

    def topic_ids(self, topic_partitions: Iterable[TopicPartition]) -> dict[TopicPartition, bytes]:
        """Return the topic ids in the local logs; partitions of logs without an id are left out."""
        ids = {}
        # Many logs belong to the same topic.
        bytes_of: dict[str, bytes] = {}
        for key in topic_partitions:
            text = self._logs.topic_id(key)
            if text is None:
                continue
            topic_id = bytes_of.get(text)
            if topic_id is None:
                topic_id = bytes_of[text] = uuid_bytes(text)
            ids[key] = topic_id
        return ids

    # Requests

    def start_cycle(self) -> dict[TopicPartition, FetchSpec]:
        """Return the partitions to fetch next: those in phase FETCHING without a back-off.

        Sets `moved`. A lagging partition is left out while the replication quota is exceeded
        (REPL-17).
        """
        specs = {}
        self._throttled.clear()
        self.is_as_requested = True
        for topic_partition, state in self._due_in_phase(FetchPhase.FETCHING).items():
            if self._should_throttle(topic_partition, state):
                self._throttled.add(topic_partition)
                continue
            own = self._logs.local_replica_log(topic_partition, state.leader_epoch)
            if own is None:
                del self._states[topic_partition]
                continue
            if own.log_start_offset != state.log_start_offset:
                self._set_state(topic_partition, state.starting_at(own.log_start_offset))
            specs[topic_partition] = self._fetch_spec(topic_partition)
        self.moved = specs.keys() - self._requested
        self._requested = set(specs)
        return specs

    def _should_throttle(self, topic_partition: TopicPartition, state: FetchState) -> bool:
        """True if the follower throttle leaves a lagging partition out of a fetch (REPL-17)."""
        return not state.is_caught_up and self._quota.should_throttle(topic_partition)

    def _fetch_spec(self, topic_partition: TopicPartition) -> FetchSpec:
        """Return fetch offset, size limit and epochs of a partition for a Fetch request."""
        leader_epoch, fetch_offset, last_fetched_epoch, start, _, _, _ = self._states[
            topic_partition
        ]
        max_bytes = self.config.partition_max_bytes
        found = (fetch_offset, max_bytes, leader_epoch, last_fetched_epoch, start)
        return new_tuple(FetchSpec, found)

    def request_on(self, topic_partition: TopicPartition) -> FetchSpec:
        """Mark a partition as requested again after `append_given` returned True.

        Returns its next fetch.
        """
        self._requested.add(topic_partition)
        return self._fetch_spec(topic_partition)

    def requested_ends(self) -> dict[TopicPartition, int]:
        """Return the leader epoch of each partition whose leader's log ends are to be requested.

        These are in phase TRUNCATING, without a back-off.
        """
        due = self._due_in_phase(FetchPhase.TRUNCATING)
        return {topic_partition: state.leader_epoch for topic_partition, state in due.items()}

    def requested_epoch_ends(self) -> dict[TopicPartition, EpochRequest]:
        """Return the partitions that need an epoch's end offset to close an epoch gap.

        A partition whose log was truncated below the gap needs none, and returns to phase FETCHING.
        """
        epoch_requests = {}
        for topic_partition, state in self._due_in_phase(FetchPhase.FETCHING_EPOCH).items():
            gap = self._logs.epoch_gap(topic_partition, state.leader_epoch)
            if gap is None:
                self._perform_step(topic_partition, FetchFromEnd())
            else:
                epoch_requests[topic_partition] = EpochRequest(state.leader_epoch, gap)
        return epoch_requests

    def _due_in_phase(self, phase: FetchPhase) -> dict[TopicPartition, FetchState]:
        """Return the partitions in a phase whose back-off is over, or which have none."""
        now_ms = self._clock.monotonic_ms()
        return {
            topic_partition: state
            for topic_partition, state in self._states.items()
            if state.phase is phase and state.is_due(now_ms)
        }

    def next_due_ms(self) -> int | None:
        """Return when the first back-off ends (monotonic ms), None without one.

        If all partitions are throttled, they are checked again after a back-off. A throttled
        partition's own delay does not count.
        """
        due = [
            state.delayed_until_ms
            for topic_partition, state in self._states.items()
            if state.delayed_until_ms is not None and topic_partition not in self._throttled
        ]
        if self._throttled:
            due.append(self._clock.monotonic_ms() + self._backoff_ms)
        return min(due, default=None)

    # Taking

    def apply_responses(self, answers: Iterable[tuple[TopicPartition, PartitionResponse]]) -> bool:
        """Apply the responses of a cycle; skip those of partitions that changed since the request.

        Returns False if a followed partition's response was skipped, or was a divergence: its
        values, such as the high watermark, are not known here then. A response with an error has no
        values.
        """
        is_all_known = True
        for topic_partition, answer in answers:
            if self.awaits(topic_partition):
                self._perform_step(topic_partition, step_after_response(answer), answer)
                is_all_known &= answer.diverging_epoch is None
            else:
                is_followed = topic_partition in self._states
                is_all_known &= not is_followed or answer.error_code != NONE
        return is_all_known

    def awaits(self, topic_partition: TopicPartition) -> bool:
        """True if a response for the partition is to be applied.

        That is so if it is requested at its present position.
        """
        return (
            topic_partition in self._requested
            and self._states[topic_partition].phase is FetchPhase.FETCHING
        )

    def append_given(
        self,
        topic_partition: TopicPartition,
        answer: PartitionResponse,
        spec: FetchSpec | None = None,
    ) -> bool:
        """Append records that a leader passed during a cycle, if the position is unchanged.

        `spec` is the request that the records answer, None if unknown. Returns True if the
        partition may be fetched further by `request_on`; False if the response was skipped or the
        partition has a back-off.
        """
        state = self._states.get(topic_partition)
        if (
            state is None
            or topic_partition not in self._requested
            or state.phase is not FetchPhase.FETCHING
            or (
                spec is not None
                and (
                    state.fetch_offset != spec.fetch_offset
                    or state.leader_epoch != spec.current_leader_epoch
                )
            )
        ):
            return False
        _, watermark, start, records, _ = answer
        step = new_tuple(AppendFetched, (records, watermark, start))
        if self._change_log(topic_partition, step, watermark) is None:
            return False
        following = self._states[topic_partition]
        is_fetching = following.phase is FetchPhase.FETCHING
        return is_fetching and not self._should_throttle(topic_partition, following)

    def apply_leader_ends(
        self, requested: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, LeaderEnds]
    ) -> None:
        """Apply the leader's start and end offsets to logs in phase TRUNCATING.

        They were outside of the leader's range (OFFSET_OUT_OF_RANGE). A partition without offsets
        in the response gets a back-off.
        """
        for topic_partition, leader_epoch in requested.items():
            state = self._states.get(topic_partition)
            if (
                state is None
                or state.leader_epoch != leader_epoch
                or state.phase is not FetchPhase.TRUNCATING
            ):
                continue
            found = ends.get(topic_partition)
            own = self._logs.local_replica_log(topic_partition, leader_epoch)
            if found is None:
                self._back_off(topic_partition)
            elif found.error_code != NONE or own is None:
                answer = PartitionResponse(found.error_code)
                self._perform_step(topic_partition, Drop() if own is None else after_error(answer))
            else:
                _log.warning(
                    "%s ends at %d, out of its leader's range %d to %d",
                    topic_partition,
                    own.log_end_offset,
                    found.start_offset,
                    found.end_offset,
                )
                self._perform_step(
                    topic_partition, step_out_of_range(own, found.start_offset, found.end_offset)
                )

    def apply_epoch_ends(
        self,
        requested: Mapping[TopicPartition, EpochRequest],
        answers: Mapping[TopicPartition, EpochAnswer],
    ) -> None:
        """Set the starts of epochs after gaps, by the leader's responses.

        A partition without a response gets a back-off.
        """
        for topic_partition, (leader_epoch, gap) in requested.items():
            state = self._states.get(topic_partition)
            if (
                state is None
                or state.leader_epoch != leader_epoch
                or state.phase is not FetchPhase.FETCHING_EPOCH
                or self._logs.epoch_gap(topic_partition, leader_epoch) != gap
            ):
                continue
            answer = answers.get(topic_partition)
            if answer is None:
                self._back_off(topic_partition)
            elif answer.error_code != NONE:
                self._perform_step(
                    topic_partition, after_error(PartitionResponse(answer.error_code))
                )
            else:
                end_before = EpochEnd(answer.leader_epoch, answer.end_offset)
                self._perform_step(topic_partition, CloseGap(gap, end_before))

    def unreached(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Give a back-off to partitions whose leader did not respond."""
        for topic_partition in topic_partitions:
            if topic_partition in self._states:
                self._back_off(topic_partition)

    def _perform_step(
        self,
        topic_partition: TopicPartition,
        step: FetchStep,
        answer: PartitionResponse | None = None,
    ) -> None:
        """Perform the step that a response led to: change the state of a partition, or its log.

        `answer` is the response; None if the step follows from no Fetch response.
        """
        state = self._states[topic_partition]
        self.is_as_requested = False
        match step:
            case FetchLeaderOffsets():
                self._set_state(topic_partition, state.entering(FetchPhase.TRUNCATING))
            case BackOff(error_code):
                _log.info(
                    "%s is not fetched for a while: %s",
                    topic_partition,
                    kafka_error(error_code).name,
                )
                self._back_off(topic_partition)
            case Drop():
                _log.info(
                    "%s is fetched no more in epoch %d: there is a newer one",
                    topic_partition,
                    state.leader_epoch,
                )
                self.remove(topic_partition)
            case _:
                watermark = None if answer is None else answer.high_watermark
                self._change_log(topic_partition, step, watermark)

    def _change_log(
        self, topic_partition: TopicPartition, step: LogStep, leader_watermark: int | None
    ) -> LocalLogEnds | None:
        """Perform a step on a partition's log and set its next state; return the log's offsets.

        Returns None if the step failed, or if the partition was removed or restarted by the step.
        """
        state = self._states[topic_partition]
        try:
            own = self._logs.perform_step(topic_partition, state.leader_epoch, step)
        except (ApiError, StorageError) as failure:
            self._handle_failure(topic_partition, failure)
            return None
        if self._states.get(topic_partition) is not state:
            # An effect of the change has set another state.
            return None
        if own is None:
            self.remove(topic_partition)
            return None
        lag = None
        if leader_watermark is not None:
            lag = max(0, leader_watermark - own.log_end_offset)
        if isinstance(step, AppendFetched) and step.records:
            self._quota.record(topic_partition, len(step.records))
            # After the others, so that each has its turn when a response is full.
            del self._states[topic_partition]
        following = state.fetching_from(own, lag)
        # No gap without a new epoch.
        if own.latest_epoch != state.last_fetched_epoch or state.phase is FetchPhase.FETCHING_EPOCH:
            following = self._enter_fetching(topic_partition, following)
        self._set_state(topic_partition, following)
        return own

    def _enter_fetching(self, topic_partition: TopicPartition, following: FetchState) -> FetchState:
        """Return the state `following`, in which a partition begins to fetch.

        If the log has an epoch gap, the phase is FETCHING_EPOCH first.
        """
        if self._logs.epoch_gap(topic_partition, following.leader_epoch) is None:
            return following
        self.is_as_requested = False
        return following.entering(FetchPhase.FETCHING_EPOCH)

    def _handle_failure(
        self, topic_partition: TopicPartition, failure: ApiError | StorageError
    ) -> None:
        """Back off after records that the local log refuses; stop to follow with a failed log.

        A StorageError means a failed log: the partition is removed until its next leader epoch.
        """
        error = self._logs.failed(topic_partition, failure)
        if isinstance(failure, StorageError):
            _log.error("%s is fetched no more in this epoch: %s", topic_partition, failure)
            self.remove(topic_partition)
            return
        _log.error("what was fetched of %s is refused: %s", topic_partition, error)
        if topic_partition in self._states:
            self._back_off(topic_partition)

    def _back_off(self, topic_partition: TopicPartition) -> None:
        """Leave a partition out of requests until the back-off has passed."""
        until_ms = self._clock.monotonic_ms() + self._backoff_ms
        self.is_as_requested = False
        self._set_state(topic_partition, self._states[topic_partition].delayed(until_ms))
