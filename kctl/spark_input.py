"""What the Spark commands read: directories and the selection of partitions."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.errors import EngineError

if TYPE_CHECKING:
    from engine.analysis.splits import Split


class WrongSelection(EngineError):
    """A selection of topics or partitions was not understood."""

    exit_code = 2

    def __init__(self, option: str, text: str, rule: str) -> None:
        super().__init__(f"{option} {text}: {rule}")
        self.option = option
        self.text = text


class UnknownFileFormat(EngineError):
    """A file format was asked for that is not written."""

    exit_code = 2

    def __init__(self, name: str) -> None:
        super().__init__(f"--format {name}: parquet is the only one")
        self.name = name


class Inputs:
    """The directories of a command and which of their partitions it wants."""

    def __init__(
        self, logdirs: list[str], topics: str | None, partitions: frozenset[int] | None
    ) -> None:
        self._paths = [os.path.abspath(path) for path in logdirs]
        self._topics = topics
        self._partitions = partitions

    def splits(self) -> list[Split]:
        """Return what is to be read; raises WrongSelection and the planner's errors."""
        from engine.analysis.splits import Selection, plan_splits
        from engine.host.real import RealFiles

        pattern = None
        if self._topics is not None:
            try:
                pattern = re.compile(self._topics)
            except re.error as error:
                raise WrongSelection("--topics", self._topics, str(error)) from error
        return plan_splits(RealFiles(), self._paths, Selection(pattern, self._partitions))


@contextmanager
def quiet_py4j() -> Iterator[None]:
    """Keep what py4j logs of a call that Ctrl-C ends, a stack of it, from stderr."""
    import logging

    root, before = logging.getLogger(), logging.getLogger().level
    if not os.environ.get("KCTL_DEBUG"):
        root.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        root.setLevel(before)


def partition_numbers(text: str | None) -> frozenset[int] | None:
    """Return the numbers of a list such as `0,2,5-9`; None stays None."""
    if text is None:
        return None
    numbers: set[int] = set()
    for part in text.split(","):
        ends = re.fullmatch(r"\s*(\d{1,9})(?:-(\d{1,9}))?\s*", part)
        if ends is None or int(ends[2] or ends[1]) - int(ends[1]) not in range(1_000_000):
            raise WrongSelection("--partitions", text, "expected numbers such as 0,2,5-9")
        numbers.update(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    return frozenset(numbers)


def column_names(text: str | None) -> list[str] | None:
    """Return the names of a comma-separated list; None stays None."""
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]
