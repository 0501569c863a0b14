"""Parse a journal: the plan, its progress, and requests of other processes. Pure.

A line that cannot be parsed is skipped and reported, except the begin: all other steps can be
observed on the cluster or are requested again. The steps are those of `journal.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple, Protocol

from engine.client.config_admin import ConfigResourceType, Resource
from engine.errors import EngineError
from engine.host.process_identity import ProcessIdentity
from engine.json_text import JsonObject
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange
from engine.reassign.scheduling import PlanOrder
from engine.reassign.throttles import ThrottleRates, ThrottleSetting

VERSIONS = (1,)
STEP_START = b'{"step":'


class ReadFiles(Protocol):
    """The file system that journals are read from."""

    def read_bytes(self, path: str) -> bytes:
        """Return the content of a file; raises FileMissing."""
        ...


class JournalDamage(NamedTuple):
    """A line of a journal that cannot be parsed; line numbers start at 1."""

    line_number: int
    reason: str


class UnreadableJournal(EngineError):
    """A file is not a journal, or has an unknown version."""

    def __init__(self, path: str, rule: str) -> None:
        self.path = path
        self.rule = rule
        self.hint = "name the journal that `kctl reassign execute` printed"
        super().__init__(f"{path} is no journal of a reassignment: {rule}")


class ExecutionSettings(NamedTuple):
    """The settings of an execution; `is_adaptive` adjusts the throttle to the cluster's load.

    `latency_topic` is the topic to which records are written to measure the produce latency.
    """

    rates: ThrottleRates = ThrottleRates()
    is_adaptive: bool = False
    moves_per_broker: int = 5
    is_paused_under_min_isr: bool = True
    elects_leaders: bool = True
    #: Number of changes in each batch; empty for a single batch.
    batch_sizes: tuple[int, ...] = ()
    #: Whether a batch starts only after the end of the batches before it.
    has_barriers: bool = False
    latency_topic: str | None = None

    def order(self, count: int) -> PlanOrder:
        """Return the order in which `count` changes start, in batches."""
        batches, start = [], 0
        for size in self.batch_sizes or (count,):
            batches.append(range(start, start + size))
            start += size
        return PlanOrder(batches, self.has_barriers)


class SettingsChange(NamedTuple):
    """A requested change of a running execution; None leaves a setting unchanged.

    A rate of 0 removes the throttle.
    """

    replication_rate: int | None = None
    is_adaptive: bool | None = None
    moves_per_broker: int | None = None
    is_paused: bool | None = None

    def apply_to(self, settings: ExecutionSettings) -> ExecutionSettings:
        """Return the settings after this change; a pause is not among them."""
        rates = settings.rates
        if self.replication_rate is not None:
            rates = rates._replace(replication=self.replication_rate or None)
        return settings._replace(
            rates=rates,
            is_adaptive=settings.is_adaptive if self.is_adaptive is None else self.is_adaptive,
            moves_per_broker=self.moves_per_broker or settings.moves_per_broker,
        )


class ChangeRequest(NamedTuple):
    """A change that a process requested; `number` counts the requests of an execution from 1."""

    number: int
    change: SettingsChange
    by: ProcessIdentity


class JournalRequests(NamedTuple):
    """The requests of other processes that have no answer in the journal."""

    cancelled_by: ProcessIdentity | None = None
    changes: tuple[ChangeRequest, ...] = ()


class Begun(NamedTuple):
    """The first step of an execution: cluster id, changes and settings."""

    cluster_id: str | None
    changes: tuple[PartitionChange, ...]
    settings: ExecutionSettings


class JournalState(NamedTuple):
    """The content of a journal, all that a resume needs; `writer` is the process that wrote last.

    `ours` has all values that each throttle was ever about to get, in order: the present one is
    unknown, since a broker may have been unreachable, or the process killed between two brokers.
    `cancelled_by` is the process that requested a cancel; `is_cancelling` is True once the writer
    has read the request. `how_over` is the result of the execution, None if it has not ended.
    """

    begun: Begun
    before: dict[ThrottleSetting, str | None]
    ours: dict[ThrottleSetting, list[str]]
    submitted: set[TopicPartition]
    ended: dict[TopicPartition, str]
    is_cancelled: bool = False
    cancelled_by: ProcessIdentity | None = None
    is_cancelling: bool = False
    is_returned: bool = False
    how_over: str | None = None
    writer: ProcessIdentity | None = None
    #: All requested changes, and the answers by number: None for an applied change, else its
    #: refusal.
    changes: tuple[ChangeRequest, ...] = ()
    answers: Mapping[int, str | None] = MappingProxyType({})
    damage: tuple[JournalDamage, ...] = ()

    @property
    def is_over(self) -> bool:
        """True if the execution has ended completely."""
        return self.how_over is not None

    @property
    def settings(self) -> ExecutionSettings:
        """The present settings: the first ones with all changes that were not refused."""
        settings = self.begun.settings
        for request in self._accepted_changes():
            settings = request.change.apply_to(settings)
        return settings

    @property
    def paused_by(self) -> ProcessIdentity | None:
        """The process that paused the execution, None if it is not paused."""
        paused_by = None
        for request in self._accepted_changes():
            if request.change.is_paused is not None:
                paused_by = request.by if request.change.is_paused else None
        return paused_by

    def _accepted_changes(self) -> list[ChangeRequest]:
        """Return the requested changes that were not refused: applied, or not processed yet."""
        return [request for request in self.changes if self.answers.get(request.number) is None]

    @property
    def has_changed_nothing(self) -> bool:
        """True if the execution changed nothing, or only throttles that are restored."""
        is_throttled = self.ours and not self.is_returned
        return not (
            self.submitted or is_throttled or self.ended or self.is_cancelled or self.damage
        )


def read_journal(files: ReadFiles, path: str) -> JournalState:
    """Return the state of the last execution in a journal.

    Raises UnreadableJournal, FileMissing.
    """
    rows: list[tuple[int, JsonObject]] = []
    damage: list[JournalDamage] = []
    lines = files.read_bytes(path).split(b"\n")
    for line_number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row, is_whole = _parse_line(line)
        if row is not None and row["step"] == "begin":
            rows, damage = [], []
        if row is not None:
            rows.append((line_number, row))
        # The last line of a writer that died may be truncated: its step was not done.
        if not is_whole and line_number < len(lines):
            damage.append(JournalDamage(line_number, "it is no step of an execution"))
    return _apply_steps(path, rows, damage)


def _parse_line(line: bytes) -> tuple[JsonObject | None, bool]:
    """Return the step in a line, None without one, and whether the line has no other bytes.

    If another step begins inside the line, as after two concurrent writers, the last one is
    returned.
    """
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        start = line.rfind(STEP_START)
        return (_parse_line(line[start:])[0] if start > 0 else None), False
    is_step = isinstance(row, dict) and isinstance(row.get("step"), str)
    return (row if is_step else None), is_step


def _apply_steps(
    path: str, rows: list[tuple[int, JsonObject]], damage: list[JournalDamage]
) -> JournalState:
    """Return the state after the steps in order; an invalid step after the first counts as damage.

    `rows` are the steps with their line numbers. Raises UnreadableJournal if the first step is
    not a begin of a known version.
    """
    if not rows or rows[0][1]["step"] != "begin":
        raise UnreadableJournal(path, "it has no begin")
    _, begin = rows[0]
    if begin.get("version") not in VERSIONS:
        raise UnreadableJournal(path, f"its version {begin.get('version')} is not known")
    try:
        state = JournalState(_parse_begun(begin), {}, {}, set(), {})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableJournal(path, f"its begin holds something else ({error})") from error
    for line_number, row in rows[1:]:
        try:
            state = _after(state, row)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"its step {row['step']!r} holds something else ({error})"
            damage.append(JournalDamage(line_number, reason))
    return state._replace(damage=tuple(sorted(damage)))


def _after(state: JournalState, row: JsonObject) -> JournalState:
    """Return the state after a step; an unknown step changes nothing.

    Collections are changed in place, since a journal has a line for each partition.
    """
    read = _STEPS.get(row["step"])
    return state if read is None else state._replace(**read(state, row))


def _after_throttle(state: JournalState, row: JsonObject) -> JsonObject:
    """Add the throttle values of a step to those that brokers may have."""
    for setting, value in _parse_throttles(row).items():
        state.ours.setdefault(setting, []).append(value or "")
    return {"is_returned": False}


def _after_submit(state: JournalState, row: JsonObject) -> JsonObject:
    """Add the partitions of a step to those that may be moving."""
    state.submitted.update([TopicPartition(*key) for key in row["partitions"]])
    return {}


def _after_ended(state: JournalState, row: JsonObject) -> JsonObject:
    """Store how the change of a step's partition has ended."""
    state.ended[TopicPartition(*row["partition"])] = str(row["how"])
    return {}


def _after_change(state: JournalState, row: JsonObject) -> JsonObject:
    """Return the requests with that of a step, whose number is its place among them, from 1."""
    change = SettingsChange(**row["change"])
    request = ChangeRequest(len(state.changes) + 1, change, _process_of(row))
    return {"changes": (*state.changes, request)}


#: For each step the function that returns the changed fields of the state.
_STEPS: dict[str, Callable[[JournalState, JsonObject], JsonObject]] = {
    "writer": lambda _, row: {"writer": _process_of(row)},
    "before": lambda state, row: {"before": {**state.before, **_parse_throttles(row)}},
    "throttle": _after_throttle,
    "submit": _after_submit,
    "ended": _after_ended,
    "cancel": lambda _, row: {
        "is_cancelled": True,
        "cancelled_by": _process_of(row) if "pid" in row else None,
    },
    "cancelling": lambda _, row: {"is_cancelled": True, "is_cancelling": True},
    "change": _after_change,
    "changed": lambda state, row: {
        "answers": {**state.answers, int(row["number"]): row["refusal"]}
    },
    "returned": lambda _, row: {"is_returned": True},
    "over": lambda _, row: {"how_over": str(row["how"])},
}


def _process_of(row: JsonObject) -> ProcessIdentity:
    """Return the process that a step names."""
    return ProcessIdentity(int(row["pid"]), str(row["host"]), str(row["user"]))


def _parse_begun(row: JsonObject) -> Begun:
    """Return the content of the first step: the cluster id, changes and settings."""
    settings = _with_tuples(row["settings"])
    rates = ThrottleRates(**settings.pop("rates"))
    changes = tuple(PartitionChange(**_with_tuples(change)) for change in row["changes"])
    return Begun(row["cluster_id"], changes, ExecutionSettings(rates, **settings))


def _with_tuples(fields: JsonObject) -> JsonObject:
    """Return fields with tuples in place of JSON's lists."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}


def _parse_throttles(row: JsonObject) -> dict[ThrottleSetting, str | None]:
    """Return the throttle settings in a step; the value is None for one that was not set."""
    return {
        ThrottleSetting(Resource(ConfigResourceType(kind), name), setting): value
        for kind, name, setting, value in row["throttles"]
    }
