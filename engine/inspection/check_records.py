"""Check the records in a batch against its header.

```
count            as in the header (magic 2)
offsets          rising, from base offset to last offset
magic 0 and 1    each inner message's own checksum
```
"""

from __future__ import annotations

from engine.errors import StorageError
from engine.records.view import RecordBatch


def record_problem(batch: RecordBatch) -> str | None:
    """Return what is wrong with the records of a batch, None if nothing.

    The batch's checksum must be valid already; records that do not decode are a problem as well.
    """
    try:
        return _problem(batch)
    except StorageError as error:
        return f"the records do not decode: {error}"


def _problem(batch: RecordBatch) -> str | None:
    """Return the first contradiction in the records of a batch, None if there is none."""
    count = 0
    previous = batch.base_offset - 1
    for record in batch.records():
        count += 1
        if record.is_crc_valid is False:
            return f"the message at offset {record.offset} has a wrong checksum of its own"
        if record.offset <= previous:
            return f"offset {record.offset} follows {previous}"
        previous = record.offset
    if previous > batch.last_offset:
        return f"offset {previous} lies above the batch's last, {batch.last_offset}"
    if batch.record_count not in (None, count):
        return f"{count} records where the header counts {batch.record_count}"
    return None
