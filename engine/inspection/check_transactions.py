"""Check a segment's transaction index against the transactions that its ABORT markers end.

```
marker seen, data seen       an entry with the same producer, first and last offset
marker seen, data not seen   an entry or none: the data is before the log's start, or was
                             compacted away
entry without a marker       wrong, except in a segment with damage, where the marker may be lost
```

First and last stable offset of an entry are compared only as long as no offset from 0 on was
missing. A missing entry is an error, since readers of committed data would get aborted records.

Source: L3; `transactions_seen.py`.
"""

from __future__ import annotations

from engine.errors import CorruptRecord
from engine.inspection.findings import Findings, Severity
from engine.log.transactions_seen import TransactionsSeen
from engine.log.txn_index import AbortedTransaction, TransactionIndex
from engine.records.control import ControlType
from engine.records.view import RecordBatch


class TransactionCheck:
    """Checks the rules above for the batches of a partition, in order."""

    def __init__(self, findings: Findings) -> None:
        """Problems are added to `findings`."""
        self._findings = findings
        #: Transactions that are open at the present batch.
        self._seen = TransactionsSeen()
        #: Paths of the present segment's .log and .txnindex.
        self._log_path = ""
        self._path = ""
        #: Entries of the transaction index whose marker was not read yet, by last offset.
        self._entries: dict[int, AbortedTransaction] = {}
        self._has_file = False
        #: True after damage in the segment: entries without a marker are then not reported.
        self._is_damaged = False

    def enter(self, log_path: str, path: str, index: TransactionIndex | None) -> None:
        """Start the check of the next segment.

        `log_path` is that of its .log, `path` that of its .txnindex; `index` is None if there is
        none.
        """
        self._log_path = log_path
        self._path = path
        self._has_file = index is not None
        self._is_damaged = False
        self._entries = (
            {transaction.last_offset: transaction for transaction in index.entries} if index else {}
        )

    def see(self, position: int, batch: RecordBatch, *, is_complete: bool) -> None:
        """Check the next valid batch; `is_complete` is True if no offset before it was missing.

        Otherwise a transaction may have begun earlier than the check has seen.
        """
        if batch.producer_id < 0:
            return
        try:
            ended = self._seen.process_batch(batch)
        except CorruptRecord as error:
            self._findings.add(
                Severity.ERROR,
                "batch-records",
                self._log_path,
                f"the control record does not decode: {error}",
                position=position,
                offset=batch.base_offset,
            )
            return
        if ended and ended.control_type is ControlType.ABORT:
            self._compare(batch, ended.aborted, is_complete=is_complete)

    def see_damage(self) -> None:
        """Note damaged bytes in the segment, in which an ABORT marker may have been.

        Index entries without a marker are then not reported.
        """
        self._is_damaged = True

    def leave(self) -> None:
        """End the segment: report index entries for which no ABORT marker was found.

        None is reported after damage, in which the marker may have been.
        """
        for indexed in () if self._is_damaged else self._entries.values():
            self._report_wrong(
                indexed.last_offset, "no ABORT marker is at that offset", None, indexed
            )

    def _compare(
        self, batch: RecordBatch, aborted: AbortedTransaction | None, *, is_complete: bool
    ) -> None:
        """Compare the index entry at an ABORT marker's offset with the transaction that it aborted.

        `batch` is the marker; `aborted` is None if no record of the transaction was found. Without
        `is_complete` records may be missing from the log: the entry may then begin earlier.
        """
        indexed = self._entries.pop(batch.base_offset, None)
        if indexed is None:
            if aborted is not None:
                self._report_missing(aborted, is_complete=is_complete)
        elif indexed.producer_id != batch.producer_id:
            self._report_wrong(
                indexed.last_offset, "another producer's marker is there", aborted, indexed
            )
        elif aborted is not None and indexed.first_offset > aborted.first_offset:
            self._report_wrong(
                indexed.last_offset, "the transaction began earlier", aborted, indexed
            )
        elif is_complete and indexed != aborted:
            self._report_wrong(indexed.last_offset, "differs from the log", aborted, indexed)

    def _report_missing(self, aborted: AbortedTransaction, *, is_complete: bool) -> None:
        """Report an aborted transaction that has no entry in the transaction index.

        It is an error if the log `is_complete`, otherwise a warning: records of it may be lost.
        """
        self._findings.add(
            Severity.ERROR if is_complete else Severity.WARNING,
            "txnindex-entry" if self._has_file else "txnindex-absent",
            self._path,
            f"no entry for the transaction of producer {aborted.producer_id} "
            f"that the marker at offset {aborted.last_offset} aborted",
            offset=aborted.last_offset,
            expected=tuple(aborted),
        )

    def _report_wrong(
        self,
        offset: int,
        reason: str,
        expected: AbortedTransaction | None,
        indexed: AbortedTransaction,
    ) -> None:
        """Report a wrong entry of the transaction index, as a warning.

        `offset` is the marker's; `expected` is None if the log has no such transaction.
        """
        self._findings.add(
            Severity.WARNING,
            "txnindex-entry",
            self._path,
            f"the entry for the marker at offset {offset}: {reason}",
            offset=offset,
            expected=tuple(expected) if expected else None,
            got=tuple(indexed),
        )
