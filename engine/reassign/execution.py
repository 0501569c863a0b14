"""Execute a reassignment plan: set throttles, run the changes in order, restore the throttles.

1. Record the present throttles and the plan's in the journal, then set the plan's.
2. Until every change has ended: observe the cluster; record ended changes; start permitted changes,
   recorded before they are requested. No change starts while partitions have newly fallen below
   min.insync.replicas.
3. Elect preferred leaders for the partitions of the plan.
4. Restore the former values of the throttles.
5. Record the end.

Each step is idempotent: a resume after a crash repeats the steps that are not known to be done. A
cancel reverts the moves in progress, starts no other ones, and continues with 4. Another process
requests a cancel, another throttle, another number of parallel moves or a pause by a line in the
journal, which is read at each poll.

If a reassignment that the controller accepted disappears before it is complete, another client has
cancelled it. Then no further change starts: moves in progress are observed until they end, the
throttles are restored, and the journal stays open for a resume by an operator.

Source: KIP-455, KIP-73; RSN-6.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from engine.client.errors import TimedOut, Unreachable
from engine.errors import ApiError, EngineError, api_error
from engine.host.ports import Clock
from engine.host.process_identity import ProcessIdentity
from engine.kafka_errors import (
    BROKER_NOT_AVAILABLE,
    INVALID_REPLICA_ASSIGNMENT,
    NO_REASSIGNMENT_IN_PROGRESS,
    UNKNOWN_TOPIC_OR_PARTITION,
    is_retriable,
)
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange
from engine.reassign.change_status import ChangeStatus, ExecutionStatus
from engine.reassign.journal import MoveJournal
from engine.reassign.journal_state import ChangeRequest, ExecutionSettings, JournalState
from engine.reassign.live_cluster import MovedCluster, ObservedCluster
from engine.reassign.phases import (
    AT_WORK,
    ENDED,
    MovePhase,
    copied_bytes,
    phase_of,
    unseen_brokers,
)
from engine.reassign.scheduling import startable_changes
from engine.reassign.throttles import ThrottleSetting
from engine.reassign.throttling import ThrottleNotSet, Throttling

#: How long a cluster may be unreachable before the execution ends, to be resumed.
PATIENCE_MS = 300_000
#: Refusals that may be temporary (a broker died, a topic was deleted), and for how long.
_PASSING = frozenset((BROKER_NOT_AVAILABLE, INVALID_REPLICA_ASSIGNMENT, UNKNOWN_TOPIC_OR_PARTITION))
_REFUSED_MS = 60_000
#: Number of polls after which a partition counts as moved, or its move as cancelled, by another
#: client: the broker that sent the metadata may be late.
_ASTRAY_POLLS = 3
#: The result of a cancelled change, and of its execution.
CANCELLED = "cancelled"
#: Phases in which a plan cannot start.
_STALE = frozenset((MovePhase.REPLACED, MovePhase.ELSEWHERE, MovePhase.GONE))


class WrongCluster(EngineError):
    """A plan, or the journal of its execution, belongs to another cluster."""

    def __init__(self, plan_cluster_id: str, cluster_id: str | None) -> None:
        self.plan_cluster_id = plan_cluster_id
        self.cluster_id = cluster_id
        self.hint = "name the cluster of the plan by -b or --context"
        super().__init__(f"the plan is of cluster {plan_cluster_id}, this is cluster {cluster_id}")


def require_cluster(plan_cluster_id: str | None, cluster_id: str | None) -> None:
    """Raise WrongCluster if a plan was made for another cluster; a plan may have no cluster id."""
    if plan_cluster_id is not None and plan_cluster_id != cluster_id:
        raise WrongCluster(plan_cluster_id, cluster_id)


class TargetsMissing(EngineError):
    """A plan adds replicas to brokers that are not alive; no change was started."""

    def __init__(self, broker_ids: Sequence[int]) -> None:
        self.broker_ids = broker_ids
        self.hint = "start them, or make a new plan: `kctl reassign plan`"
        names = ", ".join(map(str, broker_ids))
        super().__init__(f"the plan gives replicas to broker {names}, which is not alive")


class StalePlan(EngineError):
    """Partitions do not have the replicas from which the plan starts; no change was started."""

    def __init__(self, partitions: Sequence[TopicPartition]) -> None:
        self.partitions = partitions
        self.hint = "make a new plan: `kctl reassign plan`"
        more = f" and {len(partitions) - 1} more" if len(partitions) > 1 else ""
        super().__init__(f"the plan is of another time: {partitions[0]}{more} is elsewhere by now")


class ExecutionEnd(NamedTuple):
    """The result of an execution; `left_throttles` are throttles that could not be restored.

    `taken_back` are partitions whose moves another client cancelled, after which the execution
    stopped. `cancelled_by` is the process that requested a cancel; `still_moving` are moves that
    could not be cancelled, whose throttles remain. `election_error` is the error of the preferred
    election.
    """

    how_ended: Mapping[TopicPartition, str]
    refused: Mapping[TopicPartition, ApiError]
    left_throttles: Mapping[ThrottleSetting, EngineError]
    foreign_throttles: Sequence[ThrottleSetting]
    taken_back: Sequence[TopicPartition] = ()
    cancelled_by: ProcessIdentity | None = None
    still_moving: Sequence[TopicPartition] = ()
    election_error: EngineError | None = None

    @property
    def is_clean(self) -> bool:
        """True if every change is done and all throttles are restored."""
        all_done = all(how == MovePhase.DONE.value for how in self.how_ended.values())
        return all_done and not (
            self.refused or self.left_throttles or self.taken_back or self.election_error
        )


class Execution:
    """Executes one plan with its journal; `state` has the progress of earlier processes."""

    def __init__(
        self,
        cluster: MovedCluster,
        clock: Clock,
        journal: MoveJournal,
        state: JournalState,
        *,
        poll_ms: int = 1000,
    ) -> None:
        """Create an execution that continues from the journal's `state`.

        It polls the cluster every `poll_ms`.
        """
        self._cluster = cluster
        self._poll_ms = poll_ms
        self._clock = clock
        self._journal = journal
        #: The order in which the changes start.
        self._order = state.begun.settings.order(len(state.begun.changes))
        #: The present settings: requests in the journal and the adaptive throttle replace them.
        self._settings: ExecutionSettings = state.settings
        #: The process that requested a pause; None without a pause.
        self._paused_by = state.paused_by
        self._changes = state.begun.changes
        self._cluster_id = state.begun.cluster_id
        self._throttling = Throttling(cluster, journal, state)
        #: Changes that were submitted by any process, and changes that have ended, with their
        #: result.
        self._submitted = set(state.submitted)
        self._ended = dict(state.ended)
        #: Changes that the controller has refused, with the error.
        self._refused: dict[TopicPartition, ApiError] = {}
        #: In how many polls in a row each partition had a state that the plan does not expect.
        self._astray: Counter[TopicPartition] = Counter()
        #: Changes that the controller has accepted or that were seen in progress; below, those of
        #: them that were cancelled since.
        self._accepted: set[TopicPartition] = set()
        self._taken_back: set[TopicPartition] = set()
        #: Name of the user who has requested a cancellation; None without one.
        self._cancelled_by = state.cancelled_by
        #: Why preferred leaders could not be elected at the end. None: they were, or need not be.
        self._election_error: EngineError | None = None
        #: When the cluster stopped responding (monotonic), for the patience. None while it
        #: responds.
        self._unanswered_since_ms: int | None = None
        #: When each change was first refused by an error that may pass.
        self._refused_since_ms: dict[TopicPartition, int] = {}
        #: Partitions under min.insync.replicas at the first observation: only others count as
        #: worse. None before.
        self._under_min_isr: frozenset[TopicPartition] | None = None

    def run(self, on_poll: Callable[[ExecutionStatus], None]) -> ExecutionEnd:
        """Execute the plan to its end and return the result.

        `on_poll` is called with each observed status.
        """
        now = self._observe()
        self._require_cluster(now)
        if not self._submitted and not self._throttling.has_begun:
            self._check_targets(now)
        if self._settings.rates.is_unbounded:
            # A former process with throttles may have died; throttles that cannot be restored now
            # are retried at the end.
            self._throttling.restore()
        else:
            self._set_first_throttles(now)
        while not self._poll_once(on_poll):
            self._cluster.pause(self._poll_ms)
            requests = self._journal.read_requests()
            if requests.cancelled_by is not None:
                self._cancelled_by = requests.cancelled_by
                return self.cancel(on_poll)
            for request in requests.changes:
                self._apply_request(request)
        if self._taken_back:
            return self._stop()
        if self._settings.elects_leaders:
            self._elect_preferred(on_poll)
        return self._finish("executed")

    def _set_first_throttles(self, now: ObservedCluster) -> None:
        """Set the throttles; if that fails before the first change, restore the former values."""
        try:
            self._throttling.set(now, self._settings.rates, self._open_changes())
        except ThrottleNotSet:
            if not self._submitted:
                self._throttling.restore()
            raise

    def _apply_request(self, request: ChangeRequest) -> None:
        """Apply the changed settings that another process requested.

        The result is written to the journal.

        A refused request is recorded with the reason, which that process prints.
        """
        settings = request.change.apply_to(self._settings)
        error: EngineError | None = None
        try:
            self._set_rates(settings)
        except EngineError as refusal:
            error = refusal
            # Restore the former rates on brokers that have the new ones, if they respond.
            with suppress(EngineError):
                self._apply_rates(self._settings)
        else:
            self._settings = settings
            if request.change.is_paused is not None:
                self._paused_by = request.by if request.change.is_paused else None
        self._journal.changed(request, None if error is None else str(error))

    def _set_rates(self, settings: ExecutionSettings) -> None:
        """Set the throttles of changed settings, if they differ from the present ones.

        Raises ThrottleOfAnotherMove and the errors of requests.
        """
        if settings.rates == self._settings.rates and (
            settings.is_adaptive == self._settings.is_adaptive
        ):
            return
        self._throttling.stop_adapting()
        self._apply_rates(settings)

    def _apply_rates(self, settings: ExecutionSettings) -> None:
        """Set the throttles, or remove them if rates are unbounded; raises the first error."""
        if settings.rates.is_unbounded:
            for error in self._throttling.restore().values():
                raise error
        else:
            self._throttling.set(self._cluster.read(), settings.rates, self._open_changes())

    def cancel(self, on_poll: Callable[[ExecutionStatus], None]) -> ExecutionEnd:
        """Cancel the running changes, wait until they have ended, and restore the throttles.

        If the controller refuses a cancellation, the journal stays open, and the throttles of the
        changes that continue remain.
        """
        now = self._observe()
        self._require_cluster(now)
        self._journal.cancelling()
        still_moving = self._cancel_moves(now)
        while True:
            now = self._observe()
            seen = self._status_of(now)
            on_poll(seen)
            waits = self._in_progress(now) | {
                c.change.name for c in seen.changes if c.phase in AT_WORK
            }
            if waits <= still_moving:
                break
            self._cluster.pause(self._poll_ms)
        self._restore_order()
        for change_now in seen.changes:
            key = change_now.change.name
            if key not in self._ended and key not in still_moving:
                how = CANCELLED if change_now.phase not in ENDED else change_now.phase.value
                self._ended[key] = how
                self._journal.ended(key, how)
        return (
            self._finish(CANCELLED) if not still_moving else self._result({}, sorted(still_moving))
        )

    def _in_progress(self, now: ObservedCluster) -> set[TopicPartition]:
        """Return the partitions whose running reassignment has the plan's target.

        The metadata may not show these reassignments yet.
        """
        targets = {change.name: change.new_replicas for change in self._changes}
        return {key for key, move in now.ongoing.items() if move.target == targets.get(key)}

    def _cancel_moves(self, now: ObservedCluster) -> set[TopicPartition]:
        """Request to cancel the running moves; return the partitions for which that was refused."""
        refused: dict[TopicPartition, ApiError] = {}
        in_progress = sorted(self._in_progress(now))
        answers = self._cluster.submit(dict.fromkeys(in_progress)) if in_progress else {}
        for key, error in answers.items():
            if error is not None and error.code != NO_REASSIGNMENT_IN_PROGRESS:
                refused[key] = error
        refused |= self._cancel_directory_moves(now)
        self._refused |= refused
        return set(refused)

    def _cancel_directory_moves(self, now: ObservedCluster) -> dict[TopicPartition, ApiError]:
        """Cancel moves between directories by requesting the present ones; return the refusals."""
        refused: dict[TopicPartition, ApiError] = {}
        paths: dict[int, dict[TopicPartition, str]] = {}
        for change in self._open_changes():
            replicas = now.replicas.get(change.name, {})
            for broker_id, _, path in change.log_dir_moves:
                there = replicas.get(broker_id)
                if there is not None and there.future_path == path:
                    paths.setdefault(broker_id, {})[change.name] = there.path
            unseen = unseen_brokers(change, replicas)
            if unseen and change.name in self._submitted and change.name in now.partitions:
                reason = f"broker {unseen[0]} does not return its log directories"
                refused[change.name] = api_error(BROKER_NOT_AVAILABLE, reason)
        answers = self._cluster.move_log_dirs(paths) if paths else {}
        for (key, _), error in answers.items():
            if isinstance(error, ApiError):
                refused[key] = error
            elif error is not None:
                refused[key] = api_error(BROKER_NOT_AVAILABLE, str(error))
        return refused

    def _restore_order(self) -> None:
        """Restore the order of replicas, and so the preferred leaders, after a cancellation.

        A cancelled reassignment leaves the order of its target: the controller does not keep the
        original one.
        """
        partitions = self._observe().partitions
        orders: dict[TopicPartition, tuple[int, ...] | None] = {
            change.name: change.old_replicas
            for change in self._changes
            if (partition := partitions.get(change.name)) is not None
            and change.name in self._submitted
            and partition.replicas not in (change.old_replicas, change.new_replicas)
            and set(partition.replicas) == set(change.old_replicas)
        }
        if orders:
            self._cluster.submit(orders)

    def _require_cluster(self, now: ObservedCluster) -> None:
        """Raise WrongCluster if the plan was made for another cluster than the observed one."""
        require_cluster(self._cluster_id, now.cluster_id)

    def _check_targets(self, now: ObservedCluster) -> None:
        """Raise TargetsMissing or StalePlan if the plan does not fit the cluster."""
        missed = self._dead_targets(now, self._status_of(now).changes)
        if missed:
            raise TargetsMissing(missed)
        stale = [c.change for c in self._status_of(now).changes if c.phase in _STALE]
        if stale:
            raise StalePlan([change.name for change in stale])

    def _open_changes(self) -> list[PartitionChange]:
        """Return the changes that have not ended, in the order of the plan."""
        return [change for change in self._changes if change.name not in self._ended]

    # 2. Rounds

    def _observe(self) -> ObservedCluster:
        """Return the state of the cluster.

        Retries for up to PATIENCE_MS, then raises the last error.
        """
        began_ms = self._clock.monotonic_ms()
        while True:
            try:
                return self._cluster.read()
            except EngineError:
                if self._clock.monotonic_ms() - began_ms > PATIENCE_MS:
                    raise
            self._cluster.pause(self._poll_ms)

    def _status_of(self, now: ObservedCluster) -> ExecutionStatus:
        """Return the status of all changes, from one observation of the cluster."""
        changes = []
        for change in self._changes:
            key = change.name
            partition = now.partitions.get(key)
            replicas = now.replicas.get(key, {})
            phase = phase_of(change, partition, now.ongoing.get(key), replicas)
            if partition is None:
                changes.append(ChangeStatus(change, phase, 0, 0, (), None))
                continue
            copied, total = copied_bytes(change, partition, replicas)
            leader = partition.leader if partition.has_leader else None
            changes.append(ChangeStatus(change, phase, copied, total, partition.isr, leader))
        return ExecutionStatus(
            changes,
            now.brokers,
            self._pause_reason(now),
            sorted(
                {
                    *self._dead_targets(now, changes),
                    *self._brokers_with_unknown_directories(now, changes),
                }
            ),
            self._clock.monotonic_ms(),
        )

    def _pause_reason(self, now: ObservedCluster) -> str | None:
        """Return the reason why no change may start, None if changes may start."""
        if self._paused_by is not None:
            return f"{self._paused_by} asked for a pause"
        if self._under_min_isr is None:
            self._under_min_isr = now.under_min_isr
        worse = sorted(now.under_min_isr - self._under_min_isr)
        if not worse or not self._settings.is_paused_under_min_isr:
            return None
        more = f" and {len(worse) - 1} more" if len(worse) > 1 else ""
        return f"{worse[0]}{more} fell under min.insync.replicas"

    @staticmethod
    def _brokers_with_unknown_directories(
        now: ObservedCluster, changes: Iterable[ChangeStatus]
    ) -> list[int]:
        """Return the brokers that did not describe their log directories; some may occur twice.

        Whether their replicas are in the planned directories is unknown.
        """
        unknown = [c.change for c in changes if c.phase is MovePhase.UNKNOWN]
        return [id_ for c in unknown for id_ in unseen_brokers(c, now.replicas.get(c.name, {}))]

    @staticmethod
    def _dead_targets(now: ObservedCluster, changes: Iterable[ChangeStatus]) -> list[int]:
        """Return the dead brokers to which changes that wait add replicas."""
        waiting = [c.change for c in changes if c.phase is MovePhase.WAITING]
        return sorted({id_ for change in waiting for id_ in change.added} - now.brokers)

    def _poll_once(self, on_poll: Callable[[ExecutionStatus], None]) -> bool:
        """Observe the cluster, record ended changes, adapt the throttle and start changes.

        Returns True if no change is left to wait for.
        """
        seen = self._status_of(self._observe())
        on_poll(seen)
        waiting, able, in_progress = [], [], []
        is_in_doubt = False
        for position, now in enumerate(seen.changes):
            if self._record_progress(now):
                continue
            if now.phase is not MovePhase.WAITING:
                in_progress.append(position)
            elif now.change.name in self._accepted:
                is_in_doubt = True
                in_progress.append(position)
            else:
                waiting.append(position)
                if not set(now.change.added) & set(seen.missed):
                    able.append(position)
        if not in_progress and (self._taken_back or not waiting):
            return True
        if self._settings.is_adaptive:
            rates = self._throttling.adapt_rate(seen, self._settings.rates)
            self._settings = self._settings._replace(rates=rates)
        if seen.pause is None and able and not self._taken_back and not is_in_doubt:
            bound = self._settings.moves_per_broker
            unable = set(waiting) - set(able)
            begin = startable_changes(self._changes, self._order, able, in_progress, bound, unable)
            self._submit_with_retries([self._changes[position] for position in begin])
        return False

    def _record_progress(self, now: ChangeStatus) -> bool:
        """Update the records about a change; return True if it is over: done, refused or abandoned.

        A change that has ended is written to the journal.
        """
        key, phase = now.change.name, now.phase
        if key in self._ended or key in self._refused or key in self._taken_back:
            return True
        if phase in AT_WORK:
            self._accepted.add(key)
            del self._astray[key]
        elif phase is MovePhase.UNKNOWN:
            return False
        elif phase is MovePhase.WAITING:
            if key in self._accepted and self._is_lasting(key):
                self._taken_back.add(key)
                return True
        elif phase not in _STALE or self._is_lasting(key):
            self._ended[key] = phase.value
            self._journal.ended(key, phase.value)
            return True
        return False

    def _is_lasting(self, key: TopicPartition) -> bool:
        """Count a poll with the partition in an unexpected state; return True after _ASTRAY_POLLS.

        Brokers receive a change with a delay, so that a single poll proves nothing.
        """
        self._astray[key] += 1
        return self._astray[key] >= _ASTRAY_POLLS

    def _submit_with_retries(self, changes: Sequence[PartitionChange]) -> None:
        """Submit changes; after a retriable error they are submitted again at the next poll.

        Raises the error if it is not retriable, or if all attempts fail for `PATIENCE_MS`.
        """
        try:
            self._submit_changes(changes)
        except EngineError as error:
            now_ms = self._clock.monotonic_ms()
            if self._unanswered_since_ms is None:
                self._unanswered_since_ms = now_ms
            if not _is_passing(error) or now_ms - self._unanswered_since_ms > PATIENCE_MS:
                raise
        else:
            self._unanswered_since_ms = None

    def _submit_changes(self, changes: Sequence[PartitionChange]) -> None:
        """Record changes in the journal, then submit them to the controller; keep its refusals.

        Log directories are requested first: a change whose directory was refused is not submitted.
        """
        if not changes:
            return
        keys = [change.name for change in changes]
        self._journal.submit(keys)
        self._submitted.update(keys)
        unplaced = self._request_directories(changes)
        targets: dict[TopicPartition, tuple[int, ...] | None] = {
            change.name: change.new_replicas
            for change in changes
            if change.new_replicas != change.old_replicas and change.name not in unplaced
        }
        if targets:
            for key, error in self._cluster.submit(targets).items():
                if error is None:
                    self._accepted.add(key)
                elif not self._is_refusal_temporary(key, error):
                    self._refused[key] = error

    def _is_refusal_temporary(self, key: TopicPartition, error: ApiError) -> bool:
        """Return True if a change may be submitted again: its broker is dead or its topic unknown.

        False after `_REFUSED_MS` of refusals.
        """
        now_ms = self._clock.monotonic_ms()
        since_ms = self._refused_since_ms.setdefault(key, now_ms)
        return error.code in _PASSING and now_ms - since_ms < _REFUSED_MS

    def _request_directories(self, changes: Iterable[PartitionChange]) -> set[TopicPartition]:
        """Request log directories for replicas, before these exist, as Kafka's tool does.

        A broker keeps the directory for a later replica. Returns the partitions that must not be
        submitted: a change whose directory is refused is refused, and one whose broker did not
        respond is requested again at the next poll.
        """
        paths: dict[int, dict[TopicPartition, str]] = {}
        for change in changes:
            wanted_paths = zip(change.new_replicas, change.new_log_dirs, strict=False)
            moved_in_broker = {broker_id for broker_id, _, _ in change.log_dir_moves}
            for broker_id, path in wanted_paths:
                if path != "any" and (broker_id in change.added or broker_id in moved_in_broker):
                    paths.setdefault(broker_id, {})[change.name] = path
        unplaced = set()
        answers = self._cluster.move_log_dirs(paths) if paths else {}
        for (key, _), error in answers.items():
            if error is not None:
                unplaced.add(key)
            if isinstance(error, ApiError) and not self._is_refusal_temporary(key, error):
                self._refused[key] = error
        return unplaced

    # 3. to 5. The end

    def _elect_preferred(self, on_poll: Callable[[ExecutionStatus], None]) -> None:
        """Elect the preferred leaders of finished changes whose leader is not the planned one.

        An error is kept for the result, since the moves are done.
        """
        seen = self._status_of(self._observe())
        keys = [
            status.change.name
            for status in seen.changes
            if status.phase is MovePhase.DONE
            and status.leader != status.change.new_leader
            and status.change.new_leader == status.change.new_replicas[0]
        ]
        if keys:
            try:
                self._cluster.elect_preferred(keys)
            except EngineError as error:
                # The moves are done, and their throttles must be removed even without an election.
                self._election_error = error
                return
            on_poll(self._status_of(self._observe()))

    def _finish(self, how: str) -> ExecutionEnd:
        """Restore the throttles and return the result.

        The end (`how`) is recorded in the journal if all throttles were restored.
        """
        left = self._throttling.restore()
        if not left:
            self._journal.over(how)
        return self._result(left)

    def _stop(self) -> ExecutionEnd:
        """Restore the throttles and return the result; the journal stays open for a resume."""
        return self._result(self._throttling.restore())

    def _result(
        self,
        left: Mapping[ThrottleSetting, EngineError],
        still_moving: Sequence[TopicPartition] = (),
    ) -> ExecutionEnd:
        """Return the result; `left` are throttles that could not be restored.

        `still_moving` are the partitions that could not be cancelled.
        """
        for key in self._refused:
            self._ended.pop(key, None)
        return ExecutionEnd(
            self._ended,
            self._refused,
            left,
            self._throttling.foreign,
            sorted(self._taken_back),
            self._cancelled_by,
            still_moving,
            self._election_error,
        )


def _is_passing(error: EngineError) -> bool:
    """Return True if a request may be retried: its broker died, or the controller moved."""
    if isinstance(error, ApiError):
        return is_retriable(error.code)
    return isinstance(error, Unreachable | TimedOut)
