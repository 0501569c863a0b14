"""The journal of a copy: its plan and progress on disk, so that the copy can be resumed.

It is a file of JSON lines. Each line is synced before the action it announces, and never changed.
Only one process writes it, which holds the file (`engine.host.held_file`).

| step | written | content |
|---|---|---|
| begin | first | the plan: topics, offsets, groups, the id of the copy |
| writer | whenever a process takes the journal | the process |
| stored | after records are stored; with exactly once, at first and at the end | the next offsets |
| over | last | how it ended |

With exactly once, the authoritative next offsets are at the destination, in the transactions of the
records, since a file and a cluster cannot be written atomically. Those in the journal only reveal
that the destination has lost its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, NamedTuple

from engine.copying.copy_plan import CopiedTopic, CopyRange, GroupOffset, TopicCopy
from engine.errors import EngineError
from engine.host.held_file import HeldFile, HeldFiles
from engine.host.lock_file import LockHeld
from engine.host.process_identity import ProcessIdentity
from engine.json_text import JsonObject
from engine.model import TopicPartition

VERSION: Final = 1
_BEGIN: Final = b'{"step":"begin"'


class NoCopyJournal(EngineError):
    """A file is not the journal of a copy, or has a later version."""

    hint = "name another file with --journal"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} is no journal of a copy: {reason}")
        self.path = path
        self.reason = reason


class CopyJournalHeld(EngineError):
    """Another process holds the journal."""

    def __init__(self, path: str) -> None:
        super().__init__(f"another process copies by {path}")
        self.path = path


class CopyState(NamedTuple):
    """The content of a journal: the plan, the noted next offsets, and whether the copy is over."""

    plan: TopicCopy
    stored: Mapping[TopicPartition, int]
    is_over: bool


class CopyJournal:
    """The journal of a copy, held by this process."""

    def __init__(self, files: HeldFiles, held: HeldFile) -> None:
        """`held` is the journal's file, which this process holds."""
        self._held = held
        self.path = held.path
        content = files.read_bytes(self.path)
        #: Newline to write before the next step if the last line is truncated, else empty.
        self._start = b"\n" if content and not content.endswith(b"\n") else b""

    @classmethod
    def lock(
        cls, files: HeldFiles, path: str, writer: ProcessIdentity
    ) -> tuple[CopyJournal, CopyState | None]:
        """Lock a journal file, created if missing; return the journal and the last copy in it.

        The copy is None in an empty journal. If it is unfinished, `writer` is recorded as the
        process that continues it. Errors: CopyJournalHeld if another process has the lock,
        NoCopyJournal, StorageError.
        """
        try:
            held = files.hold(path, create=True)
        except LockHeld as error:
            raise CopyJournalHeld(path) from error
        try:
            state = read_copy(files, path)
            journal = cls(files, held)
            if state is not None and not state.is_over:
                journal._write("writer", **writer._asdict())
        except BaseException:
            held.close()
            raise
        return journal, state

    def close(self) -> None:
        """Close the journal file, which releases its lock."""
        self._held.close()

    def begin(self, plan: TopicCopy, writer: ProcessIdentity) -> None:
        """Write the plan of a new copy, and the process that executes it, to the journal."""
        self._write(
            "begin",
            version=VERSION,
            **plan._replace(
                ranges={},
                topics=(),
                group_offsets=(),
                continued=frozenset(),
            )._asdict()
            | {
                "topics": [list(topic) for topic in plan.topics],
                "ranges": [[*key, *found] for key, found in plan.ranges.items()],
                "group_offsets": [[g, *key, offset] for g, key, offset in plan.group_offsets],
                "continued": [list(key) for key in sorted(plan.continued)],
            },
        )
        self._write("writer", **writer._asdict())

    def stored(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write the next offsets to copy of source partitions to the journal.

        The destination has stored the records before them.
        """
        self._write("stored", offsets=[[*key, offset] for key, offset in offsets.items()])

    def over(self, how: str) -> None:
        """Write that the copy is over; `how` is how it ended.

        After it the journal's plan is no longer resumed.
        """
        self._write("over", how=how)

    def _write(self, step: str, **fields: object) -> None:
        """Append a step as a line of JSON, and sync the file.

        The first line after the file was opened begins with a newline if the last line is
        truncated.
        """
        line = json.dumps({"step": step, **fields}, separators=(",", ":")).encode()
        self._held.append(self._start + line + b"\n")
        self._start = b""


def read_copy(files: HeldFiles, path: str) -> CopyState | None:
    """Return the last copy in a journal, None if it is empty; raises NoCopyJournal, FileMissing.

    A truncated or damaged line is skipped: exactly once needs only the begin line, and at least
    once copies again what a lost line would have excluded. After a truncated begin nothing was
    copied.
    """
    state: CopyState | None = None
    for number, line in enumerate(files.read_bytes(path).splitlines()):
        try:
            fields = json.loads(line)
            step = fields["step"]
            if step == "begin":
                state = CopyState(_parse_plan(path, fields), {}, False)
            elif state is None:
                raise NoCopyJournal(path, "it does not begin with what is copied")
            elif step == "stored":
                offsets = {TopicPartition(topic, n): at for topic, n, at in fields["offsets"]}
                state = state._replace(stored={**state.stored, **offsets})
            elif step == "over":
                state = state._replace(is_over=True)
        except (ValueError, KeyError, TypeError) as error:
            if state is None and not (line.startswith(_BEGIN) or _BEGIN.startswith(line)):
                raise NoCopyJournal(path, f"line {number + 1}: {error}") from error
    return state


def _parse_plan(path: str, fields: JsonObject) -> TopicCopy:
    """Return the plan in a "begin" line of a journal; raises NoCopyJournal for another version."""
    if fields["version"] != VERSION:
        raise NoCopyJournal(path, f"its version is {fields['version']}, known is {VERSION}")
    return TopicCopy(
        fields["copy_id"],
        fields["request"],
        fields["source_cluster_id"],
        fields["destination_cluster_id"],
        tuple(CopiedTopic(*topic) for topic in fields["topics"]),
        {
            TopicPartition(topic, number): CopyRange(start, end)
            for topic, number, start, end in fields["ranges"]
        },
        tuple(
            GroupOffset(group, TopicPartition(topic, number), offset)
            for group, topic, number, offset in fields["group_offsets"]
        ),
        fields["delivery"],
        frozenset(TopicPartition(*key) for key in fields.get("continued", ())),
    )
