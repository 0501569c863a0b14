"""Sizes of batches when compressed with other codecs: expensive columns of the view `batches`.

In a split above COMPRESSED_SPLIT_BYTES_MAX one batch in COMPRESSED_ONE_OF is compressed, chosen by
its checksum, so that every run chooses the same batches; other batches have null in these columns.
So do batches with a wrong checksum, of old formats and with records that cannot be decompressed.

Levels are Kafka's defaults (compression.gzip.level and so on).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from engine.analysis.splits import Split
from engine.analysis.table_values import Row
from engine.errors import CorruptRecord
from engine.limits import COMPRESSED_ONE_OF, COMPRESSED_SPLIT_BYTES_MAX
from engine.records.batch import BatchView
from engine.records.batch_header import HEADER_BYTES
from engine.records.codec import Codec
from engine.records.compression import compress
from engine.records.view import RecordBatch

_CODECS: Final = {
    "gzipSize": Codec.GZIP,
    "snappySize": Codec.SNAPPY,
    "lz4Size": Codec.LZ4,
    "zstdSize": Codec.ZSTD,
}
RAW_SIZE: Final = "rawSize"
#: Names of the size columns; each size includes the batch header.
SIZES: Final = (RAW_SIZE, *_CODECS)


def make_size_reader(split: Split, names: frozenset[str]) -> Callable[[RecordBatch, bool], Row]:
    """Return a function that returns a batch's sizes with other codecs, for columns in `names`.

    Its parameters are the batch and whether its CRC is valid. In a large split only some batches
    are sampled, as compression is slow.
    """
    wanted = names & set(SIZES)
    nothing: Row = dict.fromkeys(wanted)
    is_sampled = split.end - split.start > COMPRESSED_SPLIT_BYTES_MAX

    def sizes(batch: RecordBatch, valid: bool) -> Row:
        """Return the sizes in bytes; None if the batch is not sampled or cannot be decompressed."""
        if not (wanted and valid and isinstance(batch, BatchView)):
            return nothing
        if is_sampled and batch.crc % COMPRESSED_ONE_OF:
            return nothing
        try:
            opened = batch.decompress_records()
        except CorruptRecord:
            return nothing
        return {name: HEADER_BYTES + _size(name, opened) for name in wanted}

    return sizes


def _size(name: str, opened: bytes) -> int:
    """Return the size of decompressed records after compression by the codec of column `name`.

    RAW_SIZE is their size without compression. The batch header is not counted.
    """
    return len(opened) if name == RAW_SIZE else len(compress(_CODECS[name], opened))
