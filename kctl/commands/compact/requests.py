"""Options of `kctl compact`, and errors that several of its commands raise."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from engine.errors import EngineError
from kctl.run_location import ConflictingRunOptions
from kctl.sizes import parse_bytes

if TYPE_CHECKING:
    from engine.log.cleaner.cleaning_facts import CleaningSettings

#: Default memory for keys, equal to that of a broker's cleaner.
BUFFER = "128MiB"


class CompactPlanRequest(NamedTuple):
    """The options of `kctl compact plan`."""

    topics: list[str]
    match: str | None
    dirs: list[str]
    settings: list[str]
    exact: bool
    buffer: str | None
    chart: bool
    output: str

    def cleaning_settings(self) -> CleaningSettings:
        """Return the cleaner's settings for the trial cleaning of --exact.

        Errors: ConflictingRunOptions, UnreadableArgument.
        """
        if self.buffer is not None and not self.exact:
            raise ConflictingRunOptions("--buffer needs --exact", "keys are read with it alone")
        from engine.log.cleaner.cleaning_facts import CleaningSettings

        return CleaningSettings(map_bytes=parse_bytes(self.buffer or BUFFER))


class CompactRunRequest(NamedTuple):
    """The options of `kctl compact run`."""

    topics: list[str]
    match: str | None
    directory: str | None
    settings: list[str]
    in_place: bool
    out: str | None
    yes: bool
    buffer: str | None
    output: str


class KeysExceedMemory(EngineError):
    """The keys of a log exceed the memory: a full cleaning frees more than was counted."""

    def __init__(self, name: str, first_dirty_offset: int) -> None:
        self.hint = "give more memory with --buffer: a key takes 24 bytes, and a tenth stays free"
        super().__init__(f"{name}: keys fit up to offset {first_dirty_offset} alone")
