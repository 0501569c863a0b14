"""What a check of a log can find, each with a stable code for scripts.

| code | means | what to do |
|---|---|---|
| batch-crc | a batch's bytes are not those its checksum was computed over | repair cuts there |
| batch-size | a size that no batch has | repair cuts there |
| batch-header | a header that no batch has | repair cuts there |
| batch-magic | a magic byte above 2, which the checksum does not cover | refetch from another replica |
| batch-records | the records inside do not decode, or not as the header says | refetch |
| bytes-skipped | damage between two good batches | see the finding at its start |
| torn-tail, zero-tail | the last write did not end, or space was preallocated | repair cuts there |
| offset-overlap | a batch starts at or below an offset that was there before | refetch |
| offset-gap | offsets are missing and the log is not compacted | refetch |
| offset-below-base | a batch starts below its segment's name; no broker starts with it | refetch |
| offset-overflow | an offset more than 2^31 above its segment's name | refetch |
| epoch-order | a leader epoch below an earlier one | refetch |
| epoch-missing, epoch-start | the epoch checkpoint and the batches disagree | repair rebuilds |
| epochs-corrupt, epochs-order, epochs-absent | the epoch checkpoint itself is wrong | repair rebuilds |
| index-…, timeindex-…, txnindex-… | -absent -size -entry -order -hidden: an index is wrong | repair rebuilds |
| snapshot-corrupt, snapshot-place | a producer snapshot is wrong or at no place for one | repair removes |
| metadata-corrupt | partition.metadata is wrong | copy it from another replica |
| leftover-file, orphan-file | what an interrupted change left | repair removes or finishes |
| unknown-file | a name that is none of Kafka's | – |
| partition-duplicate | two live copies in two log directories; no broker starts with them | – |
| checkpoint-corrupt | a checkpoint of the log directory is wrong | – |
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Severity(Enum):
    """How bad a finding is.

    ERROR: data is lost or wrong. WARNING: a broker repairs it when it starts after a crash, or it
    costs look-ups. NOTE: worth knowing, nothing is wrong.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Finding(NamedTuple):
    """One thing found; `position` is in bytes, `offset` of a record, None where there is none."""

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
        """Tell whether this makes a check fail."""
        return self.severity is not Severity.NOTE
