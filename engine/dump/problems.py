"""Findings that a dump reports on stderr after all files."""

from __future__ import annotations


class Problems:
    """Collects findings per file and says them in Kafka's order.

    Files appear in the order of their first finding.
    Differs: Kafka prints the files of one kind in the order of a hash map.
    """

    def __init__(self, kafka_version: str) -> None:
        """The order of offsets differs between Kafka's releases."""
        self._is_four = kafka_version == "4.3.0"
        #: Pairs of numbers by path: offset in the index and in the log; timestamps likewise;
        #: timestamp and that before it.
        self._index_mismatches: dict[str, list[tuple[int, int]]] = {}
        self._time_mismatches: dict[str, list[tuple[int, int]]] = {}
        self._out_of_order: dict[str, list[tuple[int, int]]] = {}
        #: Index offset and log offset by path, for entries of time indexes whose offset ends no
        #: batch.
        self._not_found: dict[str, list[tuple[int, int]]] = {}
        #: Offsets before and after each gap, by path.
        self._gaps: dict[str, list[tuple[int, int]]] = {}
        #: How many findings there are, over all kinds and files.
        self.count = 0

    def index_mismatch(self, path: str, index_offset: int, log_offset: int) -> None:
        """Note an offset index entry that does not end a batch at its position."""
        self._note(self._index_mismatches, path, index_offset, log_offset)

    def time_mismatch(self, path: str, index_ms: int, log_ms: int) -> None:
        """Note a time index entry whose timestamp is not its batch's largest."""
        self._note(self._time_mismatches, path, index_ms, log_ms)

    def time_out_of_order(self, path: str, index_ms: int, previous_ms: int) -> None:
        """Note a time index entry that is not later than the one before."""
        self._note(self._out_of_order, path, index_ms, previous_ms)

    def offset_not_found(self, path: str, index_offset: int, log_offset: int) -> None:
        """Note a time index entry whose offset ends no batch; -1 where there is none at all."""
        self._note(self._not_found, path, index_offset, log_offset)

    def gap(self, path: str, last_offset: int, next_offset: int) -> None:
        """Note two neighbouring records whose offsets do not follow each other."""
        self._note(self._gaps, path, last_offset, next_offset)

    def _note(
        self, kind: dict[str, list[tuple[int, int]]], path: str, first: int, second: int
    ) -> None:
        """Add a pair to the problems of one kind and file."""
        kind.setdefault(path, []).append((first, second))
        self.count += 1

    def lines(self) -> list[str]:
        """Return the report, one line an item, without line ends."""
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
