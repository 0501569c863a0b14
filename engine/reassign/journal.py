"""What an execution has done, on disk before the next step: whoever comes after a death goes on.

A file of JSON lines; each is synced before what it announces is done. The last one may be cut
short by a death, and counts for nothing then.

| step | written | holds |
|---|---|---|
| begin | first | the plan's changes, the cluster's id, how to execute |
| before | before any throttle is set | the throttles that were there |
| throttle | before they are set | the throttles of ours |
| submit | before partitions begin to move | which |
| end of a change | when it is seen | which, and how it ended |
| cancel | before a cancel | |
| returned | once the throttles are as they were | |
| over | last | how it ended |
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from engine.client.config_admin import ConfigResourceType, Resource
from engine.errors import EngineError
from engine.host.ports import File, Files
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange
from engine.reassign.scheduling import PlanOrder
from engine.reassign.throttles import ThrottleRates, ThrottleSetting

_VERSION = 1


class UnreadableJournal(EngineError):
    """A file is no journal of an execution, or of a version that is not known here."""

    def __init__(self, path: str, rule: str) -> None:
        self.path = path
        self.rule = rule
        self.hint = "name the journal that `kctl reassign execute` told of"
        super().__init__(f"{path} is no journal of a reassignment: {rule}")


class JournalThere(EngineError):
    """An execution would write over the journal of another one that is not over."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.hint = f"`kctl reassign resume {path}` goes on with it, `cancel` takes it back"
        super().__init__(f"{path} is the journal of an execution that is not over")


class ExecutionSettings(NamedTuple):
    """How a plan is executed; `is_adaptive` raises and lowers the rate as the cluster bears it.

    `latency_topic` is written to then, to see what a producer waits.
    """

    rates: ThrottleRates = ThrottleRates()
    is_adaptive: bool = False
    moves_per_broker: int = 5
    is_paused_under_min_isr: bool = True
    elects_leaders: bool = True
    #: How many changes each batch of the plan has; empty for one batch of all.
    batch_sizes: tuple[int, ...] = ()
    #: Whether a batch waits for those before it.
    has_barriers: bool = False
    latency_topic: str | None = None

    def order(self, count: int) -> PlanOrder:
        """Return the order of so many changes."""
        batches, start = [], 0
        for size in self.batch_sizes or (count,):
            batches.append(range(start, start + size))
            start += size
        return PlanOrder(batches, self.has_barriers)


class Begun(NamedTuple):
    """The begin of an execution."""

    cluster_id: str | None
    changes: tuple[PartitionChange, ...]
    settings: ExecutionSettings


class JournalState(NamedTuple):
    """The content of a journal: all that a resume needs.

    `ours` are all values that each throttle was ever about to get, in order: which of them a broker
    has is not known, since it may have been out of reach, or kctl killed between two brokers.
    """

    begun: Begun
    before: dict[ThrottleSetting, str | None]
    ours: dict[ThrottleSetting, list[str]]
    submitted: set[TopicPartition]
    ended: dict[TopicPartition, str]
    is_cancelled: bool
    is_returned: bool
    is_over: bool

    @property
    def has_changed_nothing(self) -> bool:
        """Return True if the execution ended before it asked for its first change."""
        return not (self.submitted or self.ours or self.ended or self.is_cancelled)


class MoveJournal:
    """The journal of one execution, open for more."""

    def __init__(self, file: File, path: str) -> None:
        self._file = file
        self.path = path

    @classmethod
    def create(cls, files: Files, path: str, begun: Begun) -> MoveJournal:
        """Begin a journal in place of one that is over or has changed nothing.

        Raises JournalThere in place of another.
        """
        if files.exists(path) and files.size_bytes(path):
            earlier = read_journal(files, path)
            if not earlier.is_over and not earlier.has_changed_nothing:
                raise JournalThere(path)
            files.remove(path)
        journal = cls(files.open(path, write=True, create=True), path)
        journal._write(
            "begin",
            version=_VERSION,
            cluster_id=begun.cluster_id,
            changes=[change._asdict() for change in begun.changes],
            settings={
                **begun.settings._asdict(),
                "rates": begun.settings.rates._asdict(),
            },
        )
        return journal

    @classmethod
    def reopen(cls, files: Files, path: str) -> tuple[MoveJournal, JournalState]:
        """Open a journal to go on with it; what a death cut short is taken away."""
        state = read_journal(files, path)
        file = files.open(path, write=True)
        whole = files.read_bytes(path)
        file.truncate(whole.rfind(b"\n") + 1)
        return cls(file, path), state

    def close(self) -> None:
        """Let the file go."""
        self._file.close()

    def before(self, values: Mapping[ThrottleSetting, str | None]) -> None:
        """Note the throttles that were there."""
        self._write("before", throttles=_rows(values))

    def throttle(self, values: Mapping[ThrottleSetting, str]) -> None:
        """Note the throttles that are about to be set."""
        self._write("throttle", throttles=_rows(values))

    def submit(self, keys: Iterable[TopicPartition]) -> None:
        """Note the partitions that are about to begin to move."""
        self._write("submit", partitions=[list(key) for key in keys])

    def ended(self, key: TopicPartition, how: str) -> None:
        """Note how a change ended."""
        self._write("ended", partition=list(key), how=how)

    def cancel(self) -> None:
        """Note that the rest is about to be taken back."""
        self._write("cancel")

    def returned(self) -> None:
        """Note that the throttles are as they were."""
        self._write("returned")

    def over(self, how: str) -> None:
        """Note the end."""
        self._write("over", how=how)

    def _write(self, step: str, **fields: Any) -> None:
        line = json.dumps({"step": step, **fields}, separators=(",", ":"))
        self._file.append((line.encode() + b"\n",))
        self._file.sync()


def read_journal(files: Files, path: str) -> JournalState:
    """Return what a journal tells; raises UnreadableJournal, FileMissing."""
    lines = files.read_bytes(path).split(b"\n")[:-1]
    try:
        rows = [json.loads(line) for line in lines]
        if not rows or rows[0].get("step") != "begin":
            raise UnreadableJournal(path, "it has no begin")
        if rows[0].get("version") != _VERSION:
            raise UnreadableJournal(path, f"its version {rows[0].get('version')} is not known")
        return _state(rows)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableJournal(path, f"it holds something else ({error})") from error


def _state(rows: list[dict[str, Any]]) -> JournalState:
    state = JournalState(_begun(rows[0]), {}, {}, set(), {}, False, False, False)
    for row in rows[1:]:
        match row["step"]:
            case "before":
                state.before.update(_throttles(row))
            case "throttle":
                for setting, value in _throttles(row).items():
                    state.ours.setdefault(setting, []).append(value or "")
                state = state._replace(is_returned=False)
            case "submit":
                state.submitted.update(TopicPartition(*key) for key in row["partitions"])
            case "ended":
                state.ended[TopicPartition(*row["partition"])] = row["how"]
            case "cancel":
                state = state._replace(is_cancelled=True)
            case "returned":
                state = state._replace(is_returned=True)
            case "over":
                state = state._replace(is_over=True)
    return state


def _begun(row: dict[str, Any]) -> Begun:
    settings = _tuples(row["settings"])
    rates = ThrottleRates(**settings.pop("rates"))
    changes = tuple(PartitionChange(**_tuples(change)) for change in row["changes"])
    return Begun(row["cluster_id"], changes, ExecutionSettings(rates, **settings))


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}


def _rows(values: Mapping[ThrottleSetting, str | None]) -> list[list[Any]]:
    return [
        [int(setting.resource.kind), setting.resource.name, setting.name, value]
        for setting, value in values.items()
    ]


def _throttles(row: dict[str, Any]) -> dict[ThrottleSetting, str | None]:
    return {
        ThrottleSetting(Resource(ConfigResourceType(kind), name), setting): value
        for kind, name, setting, value in row["throttles"]
    }
