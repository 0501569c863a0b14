"""One group while it runs: its members' processes, and what was acknowledged and committed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from tests.compat.groups.cells import Cell
from tests.compat.observer import NO_OFFSET

_ROW_WORDS: Final = 4


class RunningGroup:
    """A group, which reads the topic of its own name."""

    def __init__(self, cell: Cell, name: str, folder: Path) -> None:
        self.cell = cell
        self.name = name
        self.members: dict[int, subprocess.Popen[bytes]] = {}
        #: Values that a broker has acknowledged.
        self.acknowledged: set[str] = set()
        #: The highest committed offset of each partition.
        self.committed: dict[int, int] = {}
        self.offsets_back: list[str] = []
        #: How long after each event the group was as expected, None if it was not.
        self.settled_s: dict[str, float | None] = {}
        self._output = folder / f"{name}.txt"
        self._errors = folder / f"{name}.err"

    def start(self, number: int, command: list[str]) -> None:
        """Start a member."""
        with self._output.open("ab") as output, self._errors.open("ab") as errors:
            self.members[number] = subprocess.Popen(command, stdout=output, stderr=errors)

    def end(self) -> None:
        """Kill the members that are left."""
        for member in self.members.values():
            member.kill()
            member.wait()

    def note_committed(self, offsets: dict[int, int]) -> None:
        """Take note of committed offsets, and of those that went back."""
        for partition, before in self.committed.items():
            now = offsets.get(partition, NO_OFFSET)
            if now < before:
                self.offsets_back.append(f"partition {partition}: {before} -> {now}")
        self.committed |= {p: offset for p, offset in offsets.items() if offset != NO_OFFSET}

    def missing(self) -> set[str]:
        """Return the acknowledged values that no member has printed."""
        lines = self._output.read_text(errors="replace").splitlines()
        rows = (line.split() for line in lines)
        return self.acknowledged - {row[-1] for row in rows if len(row) == _ROW_WORDS}

    def ended_early(self, but: set[int]) -> list[str]:
        """Return the members that ended by themselves, with their exit codes."""
        return [
            f"m{number}: {member.poll()}"
            for number, member in self.members.items()
            if number not in but and member.poll() is not None
        ]
