"""What an execution has done, on disk before the next step: a resume after a death goes on there.

A file of JSON lines; each is synced before what it announces is done, and none is ever changed: a
second execution of the same plan begins again behind the first. One process writes it, which holds
the file (`engine.host.held_file`); others may add one line, by which they ask it to cancel.

| step | written | holds |
|---|---|---|
| begin | first | the plan's changes, the cluster's id, how to execute |
| writer | whenever a process takes the journal | the process |
| before | before any throttle is set | the throttles that were there |
| throttle | before they are set | the throttles of ours |
| submit | before partitions begin to move | which |
| end of a change | when it is seen | which, and how it ended |
| cancel | by a process that wants the writer to cancel, or before a cancel | the process |
| cancelling | once the writer has read of a cancel, or begins one | |
| returned | once the throttles are as they were | |
| over | last | how it ended |

A line that cannot be read is passed over and reported (`JournalState.damage`), but for the begin:
all others say again what the cluster shows, or what is asked for again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from engine.client.config_admin import ConfigResourceType, Resource
from engine.errors import EngineError
from engine.host.held_file import HeldFile, HeldFiles
from engine.host.lock_file import LockHeld
from engine.host.process_identity import ProcessIdentity
from engine.model import TopicPartition
from engine.planner.plan import PartitionChange
from engine.reassign.scheduling import PlanOrder
from engine.reassign.throttles import ThrottleRates, ThrottleSetting

_VERSIONS = (1,)
_STEP_START = b'{"step":'


class JournalDamage(NamedTuple):
    """A line of a journal that cannot be read; the first line is 1."""

    line_number: int
    reason: str


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
        self.hint = (
            f"`kctl reassign resume {path}` goes on with it, `cancel` takes back what moves,"
            " `rollback` brings back what is done, too"
        )
        super().__init__(f"{path} is the journal of an execution that is not over")


class JournalHeld(EngineError):
    """Another process is at work by a journal."""

    def __init__(self, path: str, writer: ProcessIdentity | None) -> None:
        self.path = path
        self.writer = writer
        self.hint = (
            f"`kctl reassign status {path} --watch` follows it,"
            f" `kctl reassign cancel {path}` has it take its moves back"
        )
        super().__init__(f"{writer or 'another process'} is at work by {path}")


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
    """The content of a journal: all that a resume needs; `writer` is the process that wrote last.

    `ours` are all values that each throttle was ever about to get, in order: which of them a broker
    has is not known, since it may have been out of reach, or kctl killed between two brokers.
    `cancelled_by` is the process that asked for a cancel, `is_cancelling` whether the writer has
    read of it; `how_over` tells how the execution ended, None while it has not.
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
    damage: tuple[JournalDamage, ...] = ()

    @property
    def is_over(self) -> bool:
        """Tell whether the execution has ended, and left nothing to be done."""
        return self.how_over is not None

    @property
    def has_changed_nothing(self) -> bool:
        """Return True if the execution ended before it asked for its first change."""
        return not (self.submitted or self.ours or self.ended or self.is_cancelled or self.damage)


class MoveJournal:
    """The journal of one execution, held by this process."""

    def __init__(self, files: HeldFiles, held: HeldFile) -> None:
        self._files = files
        self._held = held
        self.path = held.path
        self._read_bytes = -1

    @classmethod
    def create(
        cls, files: HeldFiles, path: str, begun: Begun, writer: ProcessIdentity
    ) -> MoveJournal:
        """Begin a journal, behind an execution that is over or has changed nothing.

        Raises JournalHeld if another process is at work by it, JournalThere for an execution that
        is not over, UnreadableJournal for another file.
        """
        held = _hold(files, path, create=True)
        try:
            _require_over(files, path)
            journal = cls(files, held)
            journal._begin(begun)
            journal._write("writer", **writer._asdict())
        except BaseException:
            held.close()
            raise
        return journal

    @classmethod
    def reopen(
        cls, files: HeldFiles, path: str, writer: ProcessIdentity
    ) -> tuple[MoveJournal, JournalState]:
        """Take a journal to go on with it; that of a dead process is taken over.

        Raises JournalHeld if its process is at work, UnreadableJournal, FileMissing.
        """
        held = _hold(files, path)
        try:
            state = read_journal(files, path)
            journal = cls(files, held)
            journal._write("writer", **writer._asdict())
        except BaseException:
            held.close()
            raise
        return journal, state

    def close(self) -> None:
        """Let the file go."""
        self._held.close()

    def cancel_requested(self) -> ProcessIdentity | None:
        """Return the process that has asked for a cancel since the execution began, if any."""
        size_bytes = self._files.size_bytes(self.path)
        if size_bytes == self._read_bytes:
            return None
        self._read_bytes = size_bytes
        state = read_journal(self._files, self.path)
        return state.cancelled_by if state.is_cancelled and not state.is_cancelling else None

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

    def cancelling(self) -> None:
        """Note that the rest is about to be taken back."""
        self._write("cancelling")

    def returned(self) -> None:
        """Note that the throttles are as they were."""
        self._write("returned")

    def over(self, how: str) -> None:
        """Note the end."""
        self._write("over", how=how)

    def _begin(self, begun: Begun) -> None:
        self._write(
            "begin",
            version=_VERSIONS[-1],
            cluster_id=begun.cluster_id,
            changes=[change._asdict() for change in begun.changes],
            settings={
                **begun.settings._asdict(),
                "rates": begun.settings.rates._asdict(),
            },
        )

    def _write(self, step: str, **fields: Any) -> None:
        self._held.append(_line(self._files, self.path, step, **fields))


def request_cancel(files: HeldFiles, path: str, by: ProcessIdentity) -> None:
    """Ask the process that holds a journal to cancel; raises FileMissing, StorageError."""
    files.append(path, _line(files, path, "cancel", **by._asdict()))


def _line(files: HeldFiles, path: str, step: str, **fields: Any) -> bytes:
    """Return a line as it is added: behind a line that was cut short, on one of its own."""
    content = files.read_bytes(path)
    start = b"\n" if content and not content.endswith(b"\n") else b""
    return start + json.dumps({"step": step, **fields}, separators=(",", ":")).encode() + b"\n"


def _hold(files: HeldFiles, path: str, *, create: bool = False) -> HeldFile:
    try:
        return files.hold(path, create=create)
    except LockHeld as error:
        raise JournalHeld(path, _writer_of(files, path)) from error


def _writer_of(files: HeldFiles, path: str) -> ProcessIdentity | None:
    """Return the process that took a journal last, None if it does not say yet."""
    try:
        return read_journal(files, path).writer
    except UnreadableJournal:
        return None


def require_free(files: HeldFiles, path: str) -> None:
    """Raise what `MoveJournal.create` would: JournalHeld, JournalThere, UnreadableJournal."""
    if files.exists(path):
        _hold(files, path).close()
        _require_over(files, path)


def _require_over(files: HeldFiles, path: str) -> None:
    content = files.read_bytes(path)
    # A death in the midst of the first line: nothing was done.
    is_torn = b"\n" not in content and content.startswith(_STEP_START)
    if content and not is_torn:
        earlier = read_journal(files, path)
        if not earlier.is_over and not earlier.has_changed_nothing:
            raise JournalThere(path)


def is_held(files: HeldFiles, path: str) -> bool:
    """Tell whether a process is at work by a journal; raises FileMissing."""
    try:
        files.hold(path).close()
    except LockHeld:
        return True
    return False


def read_journal(files: HeldFiles, path: str) -> JournalState:
    """Return what a journal tells of its last execution; raises UnreadableJournal, FileMissing."""
    rows: list[tuple[int, dict[str, Any]]] = []
    damage: list[JournalDamage] = []
    lines = files.read_bytes(path).split(b"\n")
    for line_number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        row, is_whole = _row(line)
        if row is not None and row["step"] == "begin":
            rows, damage = [], []
        if row is not None:
            rows.append((line_number, row))
        # The last line of a writer that died is cut short: what it announces was not done.
        if not is_whole and line_number < len(lines):
            damage.append(JournalDamage(line_number, "it is no step of an execution"))
    return _state(path, rows, damage)


def _row(line: bytes) -> tuple[dict[str, Any] | None, bool]:
    """Return the step of a line, and whether it is all of the line.

    Of a line in which another one begins, as two writers leave them, the last step is returned.
    """
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        start = line.rfind(_STEP_START)
        return (_row(line[start:])[0] if start > 0 else None), False
    is_step = isinstance(row, dict) and isinstance(row.get("step"), str)
    return (row if is_step else None), is_step


def _state(
    path: str, rows: list[tuple[int, dict[str, Any]]], damage: list[JournalDamage]
) -> JournalState:
    if not rows or rows[0][1]["step"] != "begin":
        raise UnreadableJournal(path, "it has no begin")
    _, begin = rows[0]
    if begin.get("version") not in _VERSIONS:
        raise UnreadableJournal(path, f"its version {begin.get('version')} is not known")
    try:
        state = JournalState(_begun(begin), {}, {}, set(), {})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableJournal(path, f"its begin holds something else ({error})") from error
    for line_number, row in rows[1:]:
        try:
            state = _after(state, row)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            reason = f"its step {row['step']!r} holds something else ({error})"
            damage.append(JournalDamage(line_number, reason))
    return state._replace(damage=tuple(sorted(damage)))


def _after(state: JournalState, row: dict[str, Any]) -> JournalState:
    """Return the state after one more step; a step that is not known changes nothing."""
    match row["step"]:
        case "writer":
            return state._replace(writer=_writer(row))
        case "before":
            return state._replace(before={**state.before, **_throttles(row)})
        case "throttle":
            values = {s: [*state.ours.get(s, ()), v or ""] for s, v in _throttles(row).items()}
            return state._replace(ours={**state.ours, **values}, is_returned=False)
        case "submit":
            keys = {TopicPartition(*key) for key in row["partitions"]}
            return state._replace(submitted=state.submitted | keys)
        case "ended":
            ended = {**state.ended, TopicPartition(*row["partition"]): str(row["how"])}
            return state._replace(ended=ended)
        case "cancel":
            by = _writer(row) if "pid" in row else None
            return state._replace(is_cancelled=True, cancelled_by=by)
        case "cancelling":
            return state._replace(is_cancelled=True, is_cancelling=True)
        case "returned":
            return state._replace(is_returned=True)
        case "over":
            return state._replace(how_over=str(row["how"]))
    return state


def _writer(row: dict[str, Any]) -> ProcessIdentity:
    return ProcessIdentity(int(row["pid"]), str(row["host"]), str(row["user"]))


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
