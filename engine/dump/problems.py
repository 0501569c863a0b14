"""The problems that a dump reports on stderr after all files."""

from __future__ import annotations


class Problems:
    """Collects problems by file, and reports them in Kafka's order.

    Files are in the order of their first problem.
    Differs: Kafka prints the files of one kind in the order of a hash map.
    """

    def __init__(self, kafka_version: str) -> None:
        """The order of offsets depends on the version."""
        self._is_four = kafka_version == "4.3.0"
        #: Pairs of numbers by path: offsets in index and log; timestamps in index and log; a
        #: timestamp and the one before it.
        self._index_mismatches: dict[str, list[tuple[int, int]]] = {}
        self._time_mismatches: dict[str, list[tuple[int, int]]] = {}
        self._out_of_order: dict[str, list[tuple[int, int]]] = {}
        #: Offsets in index and log by path, for time index entries at whose offset no batch ends.
        self._not_found: dict[str, list[tuple[int, int]]] = {}
        #: Offsets before and after each gap, by path.
        self._gaps: dict[str, list[tuple[int, int]]] = {}
        #: Number of problems of all kinds in all files.
        self.count = 0

    def index_mismatch(self, path: str, index_offset: int, log_offset: int) -> None:
        """Note an offset index entry whose batch ends at another offset."""
        self._note(self._index_mismatches, path, index_offset, log_offset)

    def time_mismatch(self, path: str, index_ms: int, log_ms: int) -> None:
        """Note a time index entry whose timestamp is not its batch's largest."""
        self._note(self._time_mismatches, path, index_ms, log_ms)

    def time_out_of_order(self, path: str, index_ms: int, previous_ms: int) -> None:
        """Note a time index entry that is not later than the one before."""
        self._note(self._out_of_order, path, index_ms, previous_ms)

    def offset_not_found(self, path: str, index_offset: int, log_offset: int) -> None:
        """Note a time index entry at whose offset no batch ends; -1 if no batch is there at all."""
        self._note(self._not_found, path, index_offset, log_offset)

    def gap(self, path: str, last_offset: int, next_offset: int) -> None:
        """Note two consecutive records with missing offsets between them.

        `last_offset` is that of the record before the gap, `next_offset` that of the one after it.
        """
        self._note(self._gaps, path, last_offset, next_offset)

    def _note(
        self, kind: dict[str, list[tuple[int, int]]], path: str, first: int, second: int
    ) -> None:
        """Add a pair of numbers to one kind of problem of a file, and count it."""
        kind.setdefault(path, []).append((first, second))
        self.count += 1

    def format_lines(self) -> list[str]:
        """Return the lines of the report on all problems, as Kafka's tool prints them.

        They have no line ends.
        """
        out: list[str] = []
        for path, pairs in self._index_mismatches.items():
            out.append(f"Mismatches in :{path}")
            ordered = sorted(dict(pairs).items(), reverse=True) if self._is_four else pairs[::-1]
            out += [f"  Index offset: {a}, log offset: {b}" for a, b in ordered]
        for path, pairs in self._time_mismatches.items():
            out.append(f"Found timestamp mismatch in :{path}")
            out += [f"  Index timestamp: {a}, log timestamp: {b}" for a, b in pairs]
        for path, pairs in self._out_of_order.items():
            out.append(f"Found out of order timestamp in :{path}")
            out += [f"  Index timestamp: {a}, Previously indexed timestamp: {b}" for a, b in pairs]
        for pairs in self._not_found.values():
            out.append("The following indexed offsets are not found in the log.")
            out += [f"Indexed offset: {a}, found log offset: {b}" for a, b in pairs]
        for path, pairs in self._gaps.items():
            out.append(f"Non-consecutive offsets in {path}")
            ordered = sorted(dict(pairs).items()) if self._is_four else pairs[::-1]
            out += [f"  {a} is followed by {b}" for a, b in ordered]
        return out
