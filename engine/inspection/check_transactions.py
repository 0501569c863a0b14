"""Check a segment's transaction index against the transactions that its ABORT markers end.

```
marker seen, data seen       an entry with the same producer, first and last offset
marker seen, data not seen   an entry or none: the data is before the log's start, or was
                             compacted away
entry without a marker       wrong, but for a segment with damage, which may have taken it
```

First and last stable offset of an entry are compared only while every offset from 0 on was there.
Without an entry readers of committed data get aborted records, so that is an error.

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
    """The rules above, over the batches of a whole partition in order."""

    def __init__(self, findings: Findings) -> None:
        """Begin before the first segment; problems go to `findings`."""
        self._findings = findings
        #: Transactions that are open at the present batch.
        self._seen = TransactionsSeen()
        #: Paths of the present segment's .log and .txnindex.
        self._log_path = ""
        self._path = ""
        #: Entries of the transaction index that no marker was read for yet, by last offset.
        self._entries: dict[int, AbortedTransaction] = {}
        self._has_file = False
        #: Whether part of the segment could not be read: entries without a marker are then no
        #: finding.
        self._is_damaged = False

    def enter(self, log_path: str, path: str, index: TransactionIndex | None) -> None:
        """Begin with the next segment; `index` None means it has no transaction index."""
        self._log_path = log_path
        self._path = path
        self._has_file = index is not None
        self._is_damaged = False
        self._entries = (
            {transaction.last_offset: transaction for transaction in index.entries} if index else {}
        )

    def see(self, position: int, batch: RecordBatch, *, is_complete: bool) -> None:
        """Check the next good batch; `is_complete` means that no offset before it was missing.

        Otherwise a transaction may have begun earlier than the check has seen.
        """
        if batch.producer_id < 0:
            return
        try:
            ended = self._seen.see(batch)
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
        """Note bytes of the segment that are no good batch: a marker may be among them."""
        self._is_damaged = True

    def leave(self) -> None:
        """End the segment: entries that no marker was seen for are wrong, unless one was lost."""
        for indexed in () if self._is_damaged else self._entries.values():
            self._wrong(indexed.last_offset, "no ABORT marker is at that offset", None, indexed)

    def _compare(
        self, batch: RecordBatch, aborted: AbortedTransaction | None, *, is_complete: bool
    ) -> None:
        """Compare the index entry at a marker's offset with the transaction that it ended.

        `is_complete` is False if records of the transaction may be missing from the log; then the
        entry may begin earlier than the log shows.
        """
        indexed = self._entries.pop(batch.base_offset, None)
        if indexed is None:
            if aborted is not None:
                self._missing(aborted, is_complete=is_complete)
        elif indexed.producer_id != batch.producer_id:
            self._wrong(indexed.last_offset, "another producer's marker is there", aborted, indexed)
        elif aborted is not None and indexed.first_offset > aborted.first_offset:
            self._wrong(indexed.last_offset, "the transaction began earlier", aborted, indexed)
        elif is_complete and indexed != aborted:
            self._wrong(indexed.last_offset, "differs from the log", aborted, indexed)

    def _missing(self, aborted: AbortedTransaction, *, is_complete: bool) -> None:
        """Report an aborted transaction without entry: a warning if its records may be lost."""
        self._findings.add(
            Severity.ERROR if is_complete else Severity.WARNING,
            "txnindex-entry" if self._has_file else "txnindex-absent",
            self._path,
            f"no entry for the transaction of producer {aborted.producer_id} "
            f"that the marker at offset {aborted.last_offset} aborted",
            offset=aborted.last_offset,
            expected=tuple(aborted),
        )

    def _wrong(
        self,
        offset: int,
        reason: str,
        expected: AbortedTransaction | None,
        indexed: AbortedTransaction,
    ) -> None:
        """Report a wrong entry of the transaction index as a warning."""
        self._findings.add(
            Severity.WARNING,
            "txnindex-entry",
            self._path,
            f"the entry for the marker at offset {offset}: {reason}",
            offset=offset,
            expected=tuple(expected) if expected else None,
            got=tuple(indexed),
        )
