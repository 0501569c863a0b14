"""Findings of log checks, each with a stable code for scripts.

| code | means | what helps |
|---|---|---|
| batch-crc | bytes that are not those the checksum was computed over | repair cuts there |
| batch-size, batch-header | a size or header that no batch has | repair cuts there |
| batch-magic | a magic byte above 2, which no checksum covers | another replica |
| batch-records | records that do not decode, or not as the header says | another replica |
| bytes-skipped | damage between two good batches | another replica |
| segment-unread | too many damaged places in one segment | another replica |
| torn-tail, zero-tail | a last write that did not end; preallocated space | repair cuts there |
| offset-overlap | a batch at or below an offset that was there before | another replica |
| offset-gap | missing offsets, lost to damage or in a log that is not compacted | another replica |
| offset-wrong | a base offset that its neighbours contradict | another replica |
| log-short | the log ends below a checkpoint of how far it was | another replica |
| offset-below-base | a batch below its segment's name: no broker starts | another replica |
| offset-overflow | an offset more than 2^31 above its segment's name | another replica |
| epoch-order | a leader epoch below an earlier one | another replica |
| epochs-absent, epochs-corrupt, epochs-wrong | the epoch checkpoint | repair rebuilds |
| index-absent, -corrupt, -entry, -order | an offset index | repair rebuilds |
| timeindex-absent, -corrupt, -entry, -order | a time index | repair rebuilds |
| index-stale, timeindex-stale | bytes behind the entries of an open index | – |
| txnindex-absent, -corrupt, -entry | a transaction index | repair rebuilds |
| snapshot-corrupt, snapshot-place | a producer snapshot | repair removes |
| metadata-corrupt | partition.metadata | another replica's copy |
| leftover-file, orphan-file | what an interrupted change left | repair finishes or removes |
| unknown-file | a name that is none of Kafka's | – |
| partition-duplicate | two live copies in two log directories: no broker starts | – |
| partition-deleted | a directory that waits for its removal, not checked | – |
| checkpoint-corrupt | a file of the log directory itself | – |
| findings-left-out | more of one code in one file than are shown | – |
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from engine.limits import FINDINGS_OF_A_KIND_MAX


class Severity(Enum):
    """The severity of a finding.

    ERROR: data is lost, wrong or served wrongly. WARNING: a broker repairs it at its start after a
    crash, or it only makes look-ups slower. NOTE: information, nothing is wrong.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Finding(NamedTuple):
    """A finding.

    `position` is in bytes, `offset` that of a record, each None if it does not apply.
    """

    severity: Severity
    code: str
    path: str
    message: str
    position: int | None = None
    offset: int | None = None
    expected: object = None
    got: object = None

    @property
    def is_problem(self) -> bool:
        """Return True if the finding makes a check fail, as warnings and errors do."""
        return self.severity is not Severity.NOTE


class Findings:
    """Collects findings; the number with the same code in the same file is limited."""

    def __init__(self) -> None:
        self._kept: list[Finding] = []
        self._counts: dict[tuple[str, str], int] = {}

    def add(  # the fields of a finding
        self,
        severity: Severity,
        code: str,
        path: str,
        message: str,
        *,
        position: int | None = None,
        offset: int | None = None,
        expected: object = None,
        got: object = None,
    ) -> None:
        """Keep a finding, or only count it if enough with that code are kept for the file."""
        count = self._counts.get((path, code), 0) + 1
        self._counts[path, code] = count
        if count <= FINDINGS_OF_A_KIND_MAX:
            self._kept.append(
                Finding(severity, code, path, message, position, offset, expected, got)
            )

    def leave_out(self, path: str, code: str, count: int) -> None:
        """Count `count` findings that were not added, so that `all` mentions them as left out.

        It must follow the findings with that code which were added for the file.
        """
        if count:
            self._counts[path, code] = self._counts.get((path, code), 0) + count

    def all(self) -> list[Finding]:
        """Return the kept findings as added, then a note for each file and code that has more."""
        left_out = [
            Finding(
                Severity.NOTE,
                "findings-left-out",
                path,
                f"{count - FINDINGS_OF_A_KIND_MAX} more of {code}",
            )
            for (path, code), count in self._counts.items()
            if count > FINDINGS_OF_A_KIND_MAX
        ]
        return self._kept + left_out

    def has(self, path: str, *code_starts: str) -> bool:
        """Return True if a file has a finding whose code begins with one of `code_starts`."""
        return any(
            finding_path == path and code.startswith(code_starts)
            for finding_path, code in self._counts
        )
