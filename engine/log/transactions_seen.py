"""Track the open transactions during a scan of a log, and make index entries of aborted ones.

```
first transactional batch of a producer      opens its transaction at that offset
its COMMIT or ABORT marker                   closes it
an ABORT that closes one                     makes an entry of the transaction index:
                                             last stable offset = first offset of the oldest other
                                             open transaction, else the marker's offset + 1
```

A marker without an open transaction (its data was below the log start offset, was compacted away,
or never existed) makes no entry.

Source: Kafka's ProducerAppendInfo.appendEndTxnMarker, ProducerStateManager.lastStableOffset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from engine.log.txn_index import AbortedTransaction
from engine.records.control import ControlType, control_type
from engine.records.view import RecordBatch


class EndedTransaction(NamedTuple):
    """A transaction marker; `aborted` is its index entry, None if it has none."""

    control_type: ControlType
    aborted: AbortedTransaction | None


class TransactionsSeen:
    """The open transactions at one point of a scan, by producer id."""

    def __init__(self) -> None:
        self._first_offsets: dict[int, int] = {}

    def process_batch(self, batch: RecordBatch) -> EndedTransaction | None:
        """Process the next batch; return the transaction that it ends if it is a marker, else None.

        Raises CorruptRecord if a control record cannot be decoded.
        """
        if batch.producer_id < 0:
            return None
        if not batch.is_control:
            if batch.is_transactional:
                self._first_offsets.setdefault(batch.producer_id, batch.base_offset)
            return None
        record = next(iter(batch.records()), None)
        kind = ControlType.UNKNOWN if record is None else control_type(record)
        if kind not in (ControlType.ABORT, ControlType.COMMIT):
            return None
        first_offset = self._first_offsets.pop(batch.producer_id, None)
        if kind is ControlType.COMMIT or first_offset is None:
            return EndedTransaction(kind, None)
        last_offset = batch.base_offset
        last_stable_offset = min(self._first_offsets.values(), default=last_offset + 1)
        aborted = AbortedTransaction(
            batch.producer_id, first_offset, last_offset, last_stable_offset
        )
        return EndedTransaction(kind, aborted)

    @property
    def open_at(self) -> Mapping[int, int]:
        """Return the first offset of each open transaction by producer id."""
        return self._first_offsets
