"""The language of scripts: blocks of commands, each with the lines that it prints.

```
# The first comment names the story and its rules.       a comment
brokers 1 2 3                                             a command
topic t 1,2,3
state t-0                                                 what it prints stands
----                                                      behind the line
stored: leader 1, epoch 0, isr 1,2,3                      until the next empty one
```

A block without `----` prints nothing. Everything that the commands of a block print, and what
happens because of them, is compared with its lines; `rewritten` puts it there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

MARK = "----"


class Block(NamedTuple):
    """Some lines of a script: comments, commands, and what these are expected to print."""

    comments: tuple[str, ...]
    commands: tuple[str, ...]
    expected: tuple[str, ...]
    line_number: int


class Difference(NamedTuple):
    """A block that did not print what it says."""

    line_number: int
    commands: tuple[str, ...]
    expected: tuple[str, ...]
    actual: tuple[str, ...]

    def __str__(self) -> str:
        lines = [f"line {self.line_number}: {'; '.join(self.commands)}"]
        lines += [f"  expected  {line}" for line in self.expected or ("nothing",)]
        lines += [f"  actual    {line}" for line in self.actual or ("nothing",)]
        return "\n".join(lines)


class BadScript(Exception):
    """A script has a line that is not of the language."""


Run = Callable[[str], list[str]]


def parse(text: str) -> list[Block]:
    """Return the blocks of a script, which empty lines part."""
    blocks: list[Block] = []
    lines: list[str] = []
    start = 1
    for number, line in enumerate([*text.splitlines(), ""], 1):
        if line.strip():
            lines.append(line.rstrip())
            continue
        if lines:
            blocks.append(_block(lines, start))
        lines, start = [], number + 1
    return blocks


def _block(lines: list[str], start: int) -> Block:
    head, expected = lines, []
    if MARK in lines:
        at = lines.index(MARK)
        head, expected = lines[:at], lines[at + 1 :]
        if not expected:
            raise BadScript(f"line {start}: nothing stands behind {MARK}")
    comments = tuple(line for line in head if line.startswith("#"))
    commands = tuple(line for line in head if not line.startswith("#"))
    if expected and not commands:
        raise BadScript(f"line {start}: something is expected of no command")
    return Block(comments, commands, tuple(expected), start)


def differences(text: str, run: Run) -> list[Difference]:
    """Run a script and return the blocks that printed something else."""
    found = []
    for block in parse(text):
        actual = _printed(block, run)
        if actual != block.expected:
            found.append(Difference(block.line_number, block.commands, block.expected, actual))
    return found


def rewritten(text: str, run: Run) -> str:
    """Return a script that expects what it prints."""
    parts = []
    for block in parse(text):
        lines = [*block.comments, *block.commands]
        actual = _printed(block, run)
        if actual:
            lines += [MARK, *actual]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _printed(block: Block, run: Run) -> tuple[str, ...]:
    return tuple(line for command in block.commands for line in run(command))
