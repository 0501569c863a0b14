"""Set, change and restore the throttles of one execution.

1. The present values are read, and recorded in the journal before any is set.
2. Each value is recorded, then set.
3. At the end every setting with one of our values gets its former value.

Source: KIP-73, REPL-17; `throttles.py` computes the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from engine.errors import ApiError, EngineError
from engine.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange
from engine.reassign.adaptive_rate import AdaptiveRate, RateObservation
from engine.reassign.change_status import ExecutionStatus
from engine.reassign.journal import MoveJournal
from engine.reassign.journal_state import JournalState
from engine.reassign.live_cluster import MovedCluster, ObservedCluster
from engine.reassign.phases import AT_WORK
from engine.reassign.throttles import (
    FOLLOWER_RATE,
    LEADER_RATE,
    LISTS,
    RATES,
    ThrottleRates,
    ThrottleSetting,
    settings_to_read,
    throttles_to_restore,
    throttles_to_set,
)


class ThrottleNotSet(EngineError):
    """A throttle could not be set before the first change; nothing was moved."""

    def __init__(self, setting: ThrottleSetting, error: EngineError) -> None:
        self.setting = setting
        self.error = error
        self.hint = "nothing moves yet: mend that, and execute again; or leave the throttle out"
        super().__init__(f"{setting} cannot be set: {error}")


class ThrottleOfAnotherMove(EngineError):
    """A throttle would replace the one of another execution; nothing was moved.

    Each of two executions would take the rates of the other for former values: the one that ends
    last would restore a rate that is never removed.
    """

    def __init__(
        self, settings: Sequence[ThrottleSetting], partitions: Sequence[TopicPartition]
    ) -> None:
        """Create the error; `settings` are the throttles that are set already.

        `partitions` are those of the other execution.
        """
        self.settings = tuple(settings)
        self.partitions = tuple(partitions)
        self.hint = (
            "wait until that move is over (`kctl reassign status`), or execute without a throttle:"
            " the rates that are there hold for these moves too where topics list their replicas"
        )
        more = f" and {len(settings) - 1} more" if len(settings) > 1 else ""
        moving = f" and {len(partitions) - 1} more" if len(partitions) > 1 else ""
        super().__init__(
            f"another move ({partitions[0]}{moving}) is throttled by {settings[0]}{more}"
        )


class Throttling:
    """The throttles of an execution; `state` has those that an earlier process set."""

    def __init__(self, cluster: MovedCluster, journal: MoveJournal, state: JournalState) -> None:
        """Create the throttling of one execution from the journal's state; no throttle is set."""
        self._cluster = cluster
        self._journal = journal
        self._changes = state.begun.changes
        #: Former values, which are restored at the end.
        self._before = dict(state.before)
        #: All values that this execution may have set: any other value is another client's.
        self._ours = _values_set_by(state)
        #: Whether the throttles have been restored; a later change sets them again.
        self._is_returned = state.is_returned
        #: The adaptive rate. None without one, and before the first observation.
        self._adaptive: AdaptiveRate | None = None
        #: Old replicas outside the ISR now, and how many have left it in total, which lowers the
        #: adaptive rate.
        self._out: set[tuple[TopicPartition, int]] = set()
        self._left_count = 0
        #: Throttles that another client changed meanwhile, and that are kept. Known after the
        #: restore.
        self.foreign: Sequence[ThrottleSetting] = ()

    @property
    def has_begun(self) -> bool:
        """True if any throttle was ever about to be set by this execution."""
        return bool(self._ours)

    def set(
        self, now: ObservedCluster, rates: ThrottleRates, moving: Iterable[PartitionChange]
    ) -> None:
        """Replace the throttles of this execution by those for the partitions in `moving`.

        1. Throttles of ours that `moving` does not need any more are restored.
        2. The present values of the others are read and recorded, to be restored later.
        3. Values that differ from the present ones, and ours, are recorded in the journal and set.
           A setting whose present value could not be read is left out.

        Raises ThrottleOfAnotherMove, with nothing set, and ThrottleNotSet, with some set.
        """
        settings = dict.fromkeys(settings_to_read(self._changes, rates))
        if not self._is_returned:
            unwanted = [setting for setting in self._ours if setting not in settings]
            for setting, error in self._restore_settings(unwanted).items():
                raise ThrottleNotSet(setting, error)
        if not settings:
            return
        self._read_before(settings, now)
        ours = () if self._is_returned else self._ours
        values = {
            setting: value
            for setting, value in throttles_to_set(moving, rates, self._before, ours).items()
            if setting in self._before
        }
        if not values:
            return
        self._record_values(values)
        self._is_returned = False
        for setting, error in self._cluster.set_throttles(values).items():
            raise ThrottleNotSet(setting, error)

    def _read_before(self, settings: Iterable[ThrottleSetting], now: ObservedCluster) -> None:
        """Record the present values of settings that are unknown, or that were restored since.

        Raises ThrottleOfAnotherMove.
        """
        unknown = [s for s in settings if self._is_returned or s not in self._before]
        there = self._cluster.throttles(unknown)
        known = {s: value for s, value in there.items() if not isinstance(value, EngineError)}
        if not self._is_returned:
            # One of our values, whose journal line is damaged, is not a former value.
            known = {s: None if v in self._ours.get(s, ()) else v for s, v in known.items()}
        self._check_own(known, now)
        if known:
            self._journal.before(known)
            self._before |= known

    def _record_values(self, values: Mapping[ThrottleSetting, str]) -> None:
        """Record values in the journal that are about to be set."""
        self._journal.throttle(values)
        for setting, value in values.items():
            self._ours.setdefault(setting, []).append(value)

    def _check_own(self, there: Mapping[ThrottleSetting, str | None], now: ObservedCluster) -> None:
        """Raise ThrottleOfAnotherMove if rates are set for the reassignments of another plan.

        `there` are the values in the cluster.
        """
        plan = {change.name for change in self._changes}
        rates = [s for s, value in there.items() if s.name in RATES and value is not None]
        throttled = {int(setting.resource.name) for setting in rates}
        others = [
            key
            for key, move in now.ongoing.items()
            if key not in plan and throttled.intersection(move.replicas)
        ]
        if others:
            raise ThrottleOfAnotherMove(rates, sorted(others))

    def adapt_rate(self, now: ExecutionStatus, rates: ThrottleRates) -> ThrottleRates:
        """Adjust the rate of `--throttle auto` if that is due; return the rates from now on.

        A new rate is recorded in the journal before it is set. Raises ThrottleNotSet and the errors
        of requests.
        """
        assert rates.replication is not None
        out = {
            (c.change.name, id_)
            for c in now.changes
            for id_ in c.change.old_replicas
            if c.phase in AT_WORK and id_ not in c.isr and id_ in c.change.new_replicas
        }
        self._left_count += len(out - self._out)
        self._out = out
        adaptive = self._adaptive
        if adaptive is not None and not adaptive.is_due(now.now_ms):
            return rates
        copied = sum(change.copied_bytes for change in now.changes)
        try:
            answer_ms = self._cluster.measure_response_ms()
        except EngineError:
            # A broker died, or the topic used for measuring is deleted: keep the rate until that is
            # known.
            return rates
        seen = RateObservation(now.now_ms, copied, answer_ms, self._left_count)
        if adaptive is None:
            self._adaptive = AdaptiveRate.start(rates.replication, seen)
            return rates
        self._adaptive = adaptive.after(seen)
        if self._adaptive.rate == adaptive.rate:
            return rates
        self._set_rate(self._adaptive.rate)
        return rates._replace(replication=self._adaptive.rate)

    def stop_adapting(self) -> None:
        """Discard the adaptive rate, so that a later `adapt_rate` begins with its given rate."""
        self._adaptive = None

    def _set_rate(self, rate: int) -> None:
        """Set the rate (bytes/s) on all brokers, after recording it in the journal."""
        # Also brokers whose former value was the first rate, so that it was not set.
        settings = [s for s in self._before if s.name in (LEADER_RATE, FOLLOWER_RATE)]
        values = dict.fromkeys(settings, str(rate))
        self._record_values(values)
        # An unreachable broker keeps its present rate, and gets the next one.
        self._cluster.set_throttles(values)

    def restore(self) -> dict[ThrottleSetting, EngineError]:
        """Restore the former throttles; return those that could not be restored, with their errors.

        If there are any, the journal does not record the restore as done.
        """
        if self._is_returned or not self._ours:
            return {}
        left = self._restore_settings(self._ours)
        if not left:
            self._journal.returned()
            self._is_returned = True
        return left

    def _restore_settings(
        self, settings: Iterable[ThrottleSetting]
    ) -> dict[ThrottleSetting, EngineError]:
        """Restore some of our throttles; return those that could not be restored, with errors."""
        ours = {setting: self._ours[setting] for setting in settings}
        if not ours:
            return {}
        there = self._cluster.throttles(ours)
        left: dict[ThrottleSetting, EngineError] = {}
        now: dict[ThrottleSetting, str | None] = {}
        for setting, value in there.items():
            if not isinstance(value, EngineError):
                now[setting] = value
            else:
                left[setting] = value
        back = throttles_to_restore(self._before, ours, now)
        self.foreign = back.foreign
        left |= self._cluster.set_throttles(back.values)
        return {s: error for s, error in left.items() if not _is_deleted(s, error)}


def _values_set_by(state: JournalState) -> dict[ThrottleSetting, list[str]]:
    """Return all values that an execution may have set, by setting.

    A damaged journal may lack some of them: values that follow from its settings count too.
    """
    ours = {setting: list(values) for setting, values in state.ours.items()}
    if not state.damage:
        return ours
    settings = [state.begun.settings]
    for request in state.changes:
        settings.append(request.change.apply_to(settings[-1]))
    for one in settings:
        for setting, value in throttles_to_set(
            state.begun.changes, one.rates, state.before
        ).items():
            ours.setdefault(setting, []).append(value)
    return ours


def _is_deleted(setting: ThrottleSetting, error: EngineError) -> bool:
    """Return True if a throttle was deleted together with its topic."""
    is_unknown = isinstance(error, ApiError) and error.code == UNKNOWN_TOPIC_OR_PARTITION
    return is_unknown and setting.name in LISTS
