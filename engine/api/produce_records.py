"""The records that a producer may send, by the version of the request.

| records | error of the partition |
|---|---|
| v3+: no complete batch, more than one, one of magic 0 or 1 | INVALID_RECORD 87 |
| v3 to v6: zstd | UNSUPPORTED_COMPRESSION_TYPE 76 |
| v3 to v6: an unknown codec | for all partitions UNKNOWN_SERVER_ERROR -1 |
| the first batch has an impossible size or magic | for all partitions CORRUPT_MESSAGE 2 |
| invalid bytes after the first batch | CORRUPT_MESSAGE 2 |
| transactional, no transactional id | for all partitions TRANSACTIONAL_ID_AUTHORIZATION_FAILED 53 |
| transactional, the transactional id is empty | INVALID_REQUEST 42 |
| transactional, of two producers | for all partitions INVALID_PRODUCER_ID_MAPPING 49 |

The records of requests below version 3 are checked only by the log's rules.
Source: ProduceRequest.validateRecords, RequestUtils.hasTransactionalRecords,
AddPartitionsToTxnManager.
Differs: null in place of records is INVALID_RECORD, where Kafka fails and never answers.
"""

from __future__ import annotations

from engine.api.transaction_verifier import TransactionalBatch
from engine.errors import ApiError, CorruptRecord
from engine.kafka_errors import (
    INVALID_PRODUCER_ID_MAPPING,
    INVALID_REQUEST,
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
)
from engine.log.conversion import UnsupportedCompressionType
from engine.log.validation import CorruptMessage, InvalidRecord, UnreadableRecords
from engine.records.batch_header import (
    CODEC_BITS,
    HEADER_BYTES,
    LENGTH_OVERHEAD_BYTES,
    MAGIC,
    TRANSACTIONAL_FLAG,
    read_header,
    read_kind,
)
from engine.records.codec import Codec, UnknownCodec
from engine.records.legacy import MESSAGE_BYTES_MIN
from engine.records.view import batches_in

_FIRST_WITH_BATCHES = 3
_FIRST_WITH_ZSTD = 7
_FIRST_WITH_ABORTABLE = 11
_ZSTD = 4


class TransactionalIdRefused(ApiError):
    """Transactional records came without a transactional id that the client may write with."""

    def __init__(self) -> None:
        super().__init__(
            TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            "transactional records without a transactional id that may be used",
        )


class NoTransactionalId(ApiError):
    """Transactional records came with an empty transactional id."""

    def __init__(self) -> None:
        super().__init__(INVALID_REQUEST, "an empty transactional id")


class TwoProducers(ApiError):
    """The transactional records of a request come from more than one producer."""

    def __init__(self) -> None:
        super().__init__(
            INVALID_PRODUCER_ID_MAPPING,
            "Transactional records contained more than one producer ID",
        )


def is_fast_path(
    records: memoryview | None, api_version: int, transactional_id: str | None = None
) -> bool:
    """Return True if `records` are one batch that `refusal_of_records` surely accepts.

    False does not mean that they are refused. `transactional_id` is given only if the client may
    write with it: then a transactional batch may be accepted too.
    """
    if records is None:
        return False
    size = len(records)
    if size < HEADER_BYTES:
        return False
    length, magic, flags = read_kind(records)
    return (
        magic == MAGIC
        and length + LENGTH_OVERHEAD_BYTES == size
        and (not flags & TRANSACTIONAL_FLAG or bool(transactional_id))
        and (api_version >= _FIRST_WITH_ZSTD or flags & CODEC_BITS < _ZSTD)
    )


def refusal_of(records: memoryview | None, api_version: int) -> ApiError | None:
    """Return the error of a partition's records in a Produce of this version.

    None if they are valid. It must be exactly one batch, of a format and codec that the version
    allows. Raises UnreadableRecords, which refuses the whole request, for an unknown codec.
    """
    if api_version < _FIRST_WITH_BATCHES:
        return None
    batches = batches_in(records or memoryview(b""), allow_partial_tail=True)
    try:
        first = next(batches, None)
        if first is None:
            return InvalidRecord(f"no batch in a request of version {api_version}")
        if first.magic != MAGIC:
            return InvalidRecord(f"magic {first.magic} in a request of version {api_version}")
        if api_version < _FIRST_WITH_ZSTD and first.codec is Codec.ZSTD:
            return UnsupportedCompressionType(Codec.ZSTD, MAGIC)
        if next(batches, None) is not None:
            return InvalidRecord("more than one batch for a partition")
    except UnknownCodec as error:
        raise UnreadableRecords(f"expected {error.expected}, got {error.got}") from error
    except CorruptRecord as error:
        return _corrupt_message(error)
    return None


def _corrupt_message(error: CorruptRecord) -> CorruptMessage:
    """Return CORRUPT_MESSAGE with Kafka's text for the damage that was found."""
    if error.expected == f"a batch length of at least {MESSAGE_BYTES_MIN}":
        # Source: ByteBufferLogInputStream.nextBatchSize.
        return CorruptMessage(
            f"Record size {error.got} is less than the minimum record overhead "
            f"({MESSAGE_BYTES_MIN})"
        )
    if error.expected == "magic 0, 1 or 2":
        return CorruptMessage(f"Invalid magic found in record: {error.got}")
    return CorruptMessage(f"expected {error.expected}, got {error.got}")


def needs_transaction(records: memoryview | None, transactional_id: str | None) -> bool:
    """Return True if the first batch is transactional, so that its transaction is to be verified.

    Raises the errors that refuse the whole request, also for unknown topics: CorruptMessage for the
    header of the batch, TransactionalIdRefused.
    """
    is_in_transaction = is_transactional(records)
    if is_in_transaction and transactional_id is None:
        raise TransactionalIdRefused
    return is_in_transaction


def refusal_of_records(
    records: memoryview | None,
    transactional_id: str | None,
    api_version: int,
    *,
    is_in_transaction: bool,
) -> ApiError | None:
    """Return the error for which records may not be appended to a known topic, None if they may.

    A transactional batch needs a transactional id. Raises UnreadableRecords, which refuses the
    whole request.
    """
    if is_in_transaction and not transactional_id:
        return NoTransactionalId()
    return refusal_of(records, api_version)


def transactional_batch(records: memoryview) -> TransactionalBatch | None:
    """Return producer id, epoch and base sequence of a transactional batch; None for another batch.

    The batch must be on the fast path, or `needs_transaction` must have returned True for it.
    """
    _, _, _, magic, _, flags, _, _, _, producer_id, epoch, sequence, _ = read_header(records)
    if magic != MAGIC or not flags & TRANSACTIONAL_FLAG or producer_id < 0:
        return None
    return TransactionalBatch(producer_id, epoch, sequence)


def is_transactional(records: memoryview | None) -> bool:
    """Return True if the first batch is transactional; raises CorruptMessage for its header."""
    try:
        first = next(batches_in(records or memoryview(b""), allow_partial_tail=True), None)
    except CorruptRecord as error:
        raise _corrupt_message(error) from error
    return first is not None and first.is_transactional
