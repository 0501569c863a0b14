"""Compiled code for commands that read many records, loaded only after they have read many."""

from __future__ import annotations

from collections.abc import Callable

from engine.limits import BULK_RECORDS_MIN


class BulkReading:
    """Counts the records that a command reads, and loads compiled code once they are many."""

    def __init__(self, take_up: Callable[[], object] | None = None) -> None:
        """`take_up` loads the compiled code that is needed; None loads the field reader."""
        self._take_up = take_up
        self._count = 0

    def count(self, records: int) -> None:
        """Add to the number of records read.

        Load the compiled code once it exceeds BULK_RECORDS_MIN. For fewer records the load costs
        more than it saves.
        """
        if self._count <= BULK_RECORDS_MIN < self._count + records:
            if self._take_up is None:
                from engine.native.compiled_fields import load_or_compile_fields

                load_or_compile_fields()
            else:
                self._take_up()
        self._count += records
