"""Compiled code for commands that read many records: taken up once they are many."""

from __future__ import annotations

from engine.limits import BULK_RECORDS_MIN


class BulkReading:
    """Counts what a command reads."""

    def __init__(self) -> None:
        self._count = 0

    def count(self, records: int) -> None:
        """Take so many records; the first after a few thousand bring the compiled code."""
        if self._count <= BULK_RECORDS_MIN < self._count + records:
            from engine.native.compiled_fields import take_up_fields

            take_up_fields()
        self._count += records
