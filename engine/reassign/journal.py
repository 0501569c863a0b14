"""The journal of an execution: each step is recorded before it is done, so that it can be resumed.

The journal is a file of JSON lines. Each line is synced before its step is done, and is never
changed: a second execution of the same plan is appended after the first. One process writes it and
has the file locked (`engine.host.held_file`); other processes may append requests to it.

| step | written | content |
|---|---|---|
| begin | first | the plan's changes, the cluster id, the settings |
| writer | when a process opens the journal | the process |
| before | before any throttle is set | the former throttles |
| throttle | before they are set | the throttles of the execution |
| submit | before reassignments are requested | the partitions |
| ended | when a change was observed to have ended | the partition, the result |
| cancel | by a process that requests a cancel | the process |
| cancelling | when the writer begins to cancel | |
| change | by a process that requests another throttle, number of moves, or a pause | the change |
| changed | when the writer has applied it | the number, the reason of a refusal |
| returned | after the throttles are restored | |
| over | last | the result |

A line that cannot be parsed is skipped and reported (`JournalState.damage`), except the begin: all
other steps can be observed on the cluster or are requested again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from engine.errors import EngineError
from engine.host.held_file import HeldFile, HeldFiles
from engine.host.lock_file import LockHeld
from engine.host.process_identity import ProcessIdentity
from engine.model import TopicPartition
from engine.reassign.journal_state import (
    STEP_START,
    VERSIONS,
    Begun,
    ChangeRequest,
    JournalRequests,
    JournalState,
    SettingsChange,
    UnreadableJournal,
    read_journal,
)
from engine.reassign.throttles import ThrottleSetting


class JournalExists(EngineError):
    """The journal's file has an unfinished execution, which would be overwritten."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.hint = (
            f"`kctl reassign resume {path}` continues it, `cancel` cancels its ongoing moves,"
            " `rollback` brings back what is done, too"
        )
        super().__init__(f"{path} is the journal of an execution that is not over")


class JournalHeld(EngineError):
    """Another process has the journal locked."""

    def __init__(self, path: str, writer: ProcessIdentity | None) -> None:
        """Create the error of a journal that another process uses.

        `writer` is the process that has the journal locked, None if unknown.
        """
        self.path = path
        self.writer = writer
        self.hint = (
            f"`kctl reassign status {path} --watch` follows it,"
            f" `kctl reassign cancel {path}` has it cancel its moves"
        )
        super().__init__(f"{writer or 'another process'} is executing {path}")


class ChangeTooLate(EngineError):
    """The execution ended when a change was requested, and a new one began in its journal."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.hint = f"ask again if it is meant for the new one: `kctl reassign status {path}`"
        super().__init__(f"the execution of {path} is over, and another one has begun")


class MoveJournal:
    """The journal of one execution, locked by this process."""

    def __init__(self, files: HeldFiles, held: HeldFile) -> None:
        """Create the journal's writer; `held` is its locked file."""
        self._files = files
        self._held = held
        self.path = held.path
        #: Size of the file at the last read of requests: an unchanged file is not read again.
        self._read_bytes = -1

    @classmethod
    def create(
        cls, files: HeldFiles, path: str, begun: Begun, writer: ProcessIdentity
    ) -> MoveJournal:
        """Start a journal; an earlier execution in the file must be over or have changed nothing.

        Raises JournalHeld if another process has it locked, JournalExists for an unfinished
        execution, UnreadableJournal for another kind of file.
        """
        held = _lock_journal(files, path, create=True)
        try:
            _check_over(files, path)
            journal = cls(files, held)
            journal._write_begin(begun)
            journal._write("writer", **writer._asdict())
        except BaseException:
            held.close()
            raise
        return journal

    @classmethod
    def reopen(
        cls, files: HeldFiles, path: str, writer: ProcessIdentity
    ) -> tuple[MoveJournal, JournalState]:
        """Open a journal to resume its execution, for instance after a crash; return its state too.

        Raises JournalHeld if another process has it locked, UnreadableJournal, FileMissing.
        """
        held = _lock_journal(files, path)
        try:
            state = read_journal(files, path)
            journal = cls(files, held)
            journal._write("writer", **writer._asdict())
        except BaseException:
            held.close()
            raise
        return journal, state

    def close(self) -> None:
        """Unlock and close the journal's file."""
        self._held.close()

    def read_requests(self) -> JournalRequests:
        """Return the requests of other processes that are not answered.

        None if the file has not grown.
        """
        size_bytes = self._files.size_bytes(self.path)
        if size_bytes == self._read_bytes:
            return JournalRequests()
        self._read_bytes = size_bytes
        state = read_journal(self._files, self.path)
        return JournalRequests(
            state.cancelled_by if state.is_cancelled and not state.is_cancelling else None,
            tuple(c for c in state.changes if c.number not in state.answers),
        )

    def change(self, change: SettingsChange, by: ProcessIdentity) -> None:
        """Record a change of settings that the process `by` makes, and that applies from now on."""
        self._write("change", change=change._asdict(), **by._asdict())

    def changed(self, request: ChangeRequest, refusal: str | None) -> None:
        """Record that a requested change was applied, or the reason of its refusal."""
        self._write("changed", number=request.number, refusal=refusal)

    def before(self, values: Mapping[ThrottleSetting, str | None]) -> None:
        """Record the former values of throttles, which are restored at the end."""
        self._write("before", throttles=_throttle_rows(values))

    def throttle(self, values: Mapping[ThrottleSetting, str]) -> None:
        """Record the values of throttles that are about to be set."""
        self._write("throttle", throttles=_throttle_rows(values))

    def submit(self, keys: Iterable[TopicPartition]) -> None:
        """Record the partitions whose reassignment is about to be requested."""
        self._write("submit", partitions=[list(key) for key in keys])

    def ended(self, key: TopicPartition, how: str) -> None:
        """Record how the change of a partition has ended."""
        self._write("ended", partition=list(key), how=how)

    def cancelling(self) -> None:
        """Record that the running changes are about to be cancelled."""
        self._write("cancelling")

    def returned(self) -> None:
        """Record that all throttles have their former values again."""
        self._write("returned")

    def over(self, how: str) -> None:
        """Record how the execution has ended: nothing is left to resume."""
        self._write("over", how=how)

    def _write_begin(self, begun: Begun) -> None:
        """Write the first line: the cluster id, changes and settings of the execution."""
        self._write(
            "begin",
            version=VERSIONS[-1],
            cluster_id=begun.cluster_id,
            changes=[change._asdict() for change in begun.changes],
            settings={
                **begun.settings._asdict(),
                "rates": begun.settings.rates._asdict(),
            },
        )

    def _write(self, step: str, **fields: object) -> None:
        """Append a step as one line of JSON, and sync the file."""
        self._held.append(_encode_line(self._files, self.path, step, **fields))


def request_cancel(files: HeldFiles, path: str, by: ProcessIdentity) -> None:
    """Append a request to cancel, which the executing process reads at its next poll.

    Raises FileMissing, StorageError.
    """
    files.append(path, _encode_line(files, path, "cancel", **by._asdict()))


def request_change(files: HeldFiles, path: str, change: SettingsChange, by: ProcessIdentity) -> int:
    """Append a request for changed settings, for the process that executes now or next.

    Returns the number of the request, the key in `JournalState.answers`. Raises ChangeTooLate.
    """
    files.append(path, _encode_line(files, path, "change", change=change._asdict(), **by._asdict()))
    numbers = [c.number for c in read_journal(files, path).changes if c.by == by]
    if not numbers:
        raise ChangeTooLate(path)
    return max(numbers)


def _encode_line(files: HeldFiles, path: str, step: str, **fields: object) -> bytes:
    """Return the line of a step.

    It starts with a line break if the file's last line is truncated.
    """
    content = files.read_bytes(path)
    start = b"\n" if content and not content.endswith(b"\n") else b""
    return start + json.dumps({"step": step, **fields}, separators=(",", ":")).encode() + b"\n"


def _lock_journal(files: HeldFiles, path: str, *, create: bool = False) -> HeldFile:
    """Lock a journal and return its file.

    Raises JournalHeld, with the writer, if another process has it locked.
    """
    try:
        return files.hold(path, create=create)
    except LockHeld as error:
        raise JournalHeld(path, _writer_of(files, path)) from error


def _writer_of(files: HeldFiles, path: str) -> ProcessIdentity | None:
    """Return the process that last opened a journal, None if it is unknown."""
    try:
        return read_journal(files, path).writer
    except UnreadableJournal:
        return None


def require_free(files: HeldFiles, path: str) -> None:
    """Raise the errors that `MoveJournal.create` would raise, without changing the file.

    These are JournalHeld, JournalExists and UnreadableJournal.
    """
    if files.exists(path):
        _lock_journal(files, path).close()
        _check_over(files, path)


def _check_over(files: HeldFiles, path: str) -> None:
    """Raise JournalExists if the file has an unfinished execution that has changed something."""
    if _has_begun(files.read_bytes(path)):
        earlier = read_journal(files, path)
        if not earlier.is_over and not earlier.has_changed_nothing:
            raise JournalExists(path)


def _has_begun(content: bytes) -> bool:
    """Return True unless the writer died within the first line, before anything was changed."""
    start = content[: len(STEP_START)]
    return b"\n" in content or not STEP_START.startswith(start)


def is_open(files: HeldFiles, path: str) -> bool:
    """Return True if a journal has an unfinished execution that changed something or is running.

    Raises UnreadableJournal for another kind of file.
    """
    if not files.exists(path) or not _has_begun(files.read_bytes(path)):
        return False
    state = read_journal(files, path)
    return not state.is_over and not (state.has_changed_nothing and not is_held(files, path))


def is_held(files: HeldFiles, path: str) -> bool:
    """Return True if a process has the journal locked; raises FileMissing."""
    try:
        files.hold(path).close()
    except LockHeld:
        return True
    return False


def _throttle_rows(values: Mapping[ThrottleSetting, str | None]) -> list[list[object]]:
    """Return throttle settings as rows for JSON; a value of None means that one was not set."""
    return [
        [int(setting.resource.kind), setting.resource.name, setting.name, value]
        for setting, value in values.items()
    ]
