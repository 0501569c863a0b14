"""Journal of an execution: each step on disk before it is done, so that it can be resumed.

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
| change | by a process that wants another throttle, more or fewer moves at once, a pause | what |
| changed | once the writer has followed it | which, and why it was refused |
| returned | once the throttles are as they were | |
| over | last | how it ended |

A line that cannot be read is passed over and reported (`JournalState.damage`), but for the begin:
all others say again what the cluster shows, or what is asked for again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

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
    """The journal's file has an execution that is not over, and would be overwritten."""

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
        """`writer` is None if the journal does not name its process."""
        self.path = path
        self.writer = writer
        self.hint = (
            f"`kctl reassign status {path} --watch` follows it,"
            f" `kctl reassign cancel {path}` has it take its moves back"
        )
        super().__init__(f"{writer or 'another process'} is at work by {path}")


class ChangeTooLate(EngineError):
    """A change was requested as the execution ended, and another one has begun in its journal."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.hint = f"ask again if it is meant for the one at work: `kctl reassign status {path}`"
        super().__init__(f"the execution of {path} is over, and another one has begun")


class MoveJournal:
    """The journal of one execution, held by this process."""

    def __init__(self, files: HeldFiles, held: HeldFile) -> None:
        """`held` is the journal's file, locked by this process."""
        self._files = files
        self._held = held
        self.path = held.path
        #: Size of the file when requests were last read: an unchanged file is not read again.
        self._read_bytes = -1

    @classmethod
    def create(
        cls, files: HeldFiles, path: str, begun: Begun, writer: ProcessIdentity
    ) -> MoveJournal:
        """Start a journal, after an execution that is finished or has changed nothing.

        Raises JournalHeld if another process works by it, JournalExists for an unfinished
        execution, UnreadableJournal for another file.
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
        """Open a journal to resume its execution, also after its process has died.

        Raises JournalHeld if that process still runs, UnreadableJournal, FileMissing.
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

    def requests(self) -> JournalRequests:
        """Return the requests of other processes, if anything was written since the last call."""
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
        """Note changed settings, which hold from the next execution of the journal on."""
        self._write("change", change=change._asdict(), **by._asdict())

    def changed(self, request: ChangeRequest, refusal: str | None) -> None:
        """Note that a change was followed, or why it was not."""
        self._write("changed", number=request.number, refusal=refusal)

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
        """Write the first line: cluster, changes and settings of the execution."""
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

    def _write(self, step: str, **fields: Any) -> None:
        """Append a step to the journal, durably, as one line of JSON."""
        self._held.append(_line(self._files, self.path, step, **fields))


def request_cancel(files: HeldFiles, path: str, by: ProcessIdentity) -> None:
    """Request a cancel from the process that holds a journal; raises FileMissing, StorageError."""
    files.append(path, _line(files, path, "cancel", **by._asdict()))


def request_change(files: HeldFiles, path: str, change: SettingsChange, by: ProcessIdentity) -> int:
    """Request changed settings from the process that holds a journal, or the next one.

    Returns the number of the change, by which `JournalState.answers` has the answer. Raises
    ChangeTooLate.
    """
    files.append(path, _line(files, path, "change", change=change._asdict(), **by._asdict()))
    numbers = [c.number for c in read_journal(files, path).changes if c.by == by]
    if not numbers:
        raise ChangeTooLate(path)
    return max(numbers)


def _line(files: HeldFiles, path: str, step: str, **fields: Any) -> bytes:
    """Return a line to append; it starts with a line break after a truncated line."""
    content = files.read_bytes(path)
    start = b"\n" if content and not content.endswith(b"\n") else b""
    return start + json.dumps({"step": step, **fields}, separators=(",", ":")).encode() + b"\n"


def _hold(files: HeldFiles, path: str, *, create: bool = False) -> HeldFile:
    """Lock a journal; raises JournalHeld, naming the writer, if another process has it."""
    try:
        return files.hold(path, create=create)
    except LockHeld as error:
        raise JournalHeld(path, _writer_of(files, path)) from error


def _writer_of(files: HeldFiles, path: str) -> ProcessIdentity | None:
    """Return the process that last opened a journal, None if the journal lacks it."""
    try:
        return read_journal(files, path).writer
    except UnreadableJournal:
        return None


def require_free(files: HeldFiles, path: str) -> None:
    """Raise the errors that `MoveJournal.create` would, before anything is done.

    These are JournalHeld, JournalExists and UnreadableJournal.
    """
    if files.exists(path):
        _hold(files, path).close()
        _require_over(files, path)


def _require_over(files: HeldFiles, path: str) -> None:
    """Raise JournalExists for an execution that is not over and has changed something."""
    if _has_begun(files.read_bytes(path)):
        earlier = read_journal(files, path)
        if not earlier.is_over and not earlier.has_changed_nothing:
            raise JournalExists(path)


def _has_begun(content: bytes) -> bool:
    """Return False if a death came before the end of the first line: nothing was done."""
    start = content[: len(STEP_START)]
    return b"\n" in content or not STEP_START.startswith(start)


def is_open(files: HeldFiles, path: str) -> bool:
    """Return whether an execution is to be gone on with: begun, not over, or at work now.

    Raises UnreadableJournal for another file.
    """
    if not files.exists(path) or not _has_begun(files.read_bytes(path)):
        return False
    state = read_journal(files, path)
    return not state.is_over and not (state.has_changed_nothing and not is_held(files, path))


def is_held(files: HeldFiles, path: str) -> bool:
    """Return whether a process is at work by a journal; raises FileMissing."""
    try:
        files.hold(path).close()
    except LockHeld:
        return True
    return False


def _rows(values: Mapping[ThrottleSetting, str | None]) -> list[list[object]]:
    """Return throttle settings as rows of JSON, with null for one that was not set."""
    return [
        [int(setting.resource.kind), setting.resource.name, setting.name, value]
        for setting, value in values.items()
    ]
