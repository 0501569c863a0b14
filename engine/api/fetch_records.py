"""Read records as a version of Fetch sends them: bytes, a region of a file, or converted.

| version | magic | |
|---|---|---|
| 0, 1 | 0 | converted down |
| 2, 3 | 1 | converted down |
| 4 to 9 | as it is | but nothing of a topic that is compressed with zstd |
| 10 on | as it is | |

Where conversion is switched off the response is UNSUPPORTED_VERSION 35, and zstd, which the old
formats lack, is UNSUPPORTED_COMPRESSION_TYPE 76.
A first batch longer than an old consumer's limit is truncated, and yields no records.
Source: KafkaApis.maybeConvertFetchedData, LazyDownConversionRecords; KIP-110, KIP-283.
"""

from __future__ import annotations

from engine.errors import CorruptRecord, StorageError
from engine.host.ports import FileRegion, SendPart
from engine.kafka_errors import (
    CORRUPT_MESSAGE,
    NOT_LEADER_OR_FOLLOWER,
    UNSUPPORTED_COMPRESSION_TYPE,
    UNSUPPORTED_VERSION,
)
from engine.log.conversion import UnsupportedCompressionType, down_convert_to_size
from engine.log.local_log import LocalLog
from engine.log.log_types import FetchSlice
from engine.records.builder import BatchRefused
from engine.records.codec import Codec

_LAST_OF_MAGIC_0 = 1
_LAST_OF_MAGIC_1 = 3
_FIRST_WITH_ZSTD = 10


class FetchedRecords:
    """The records of one response; regions stay open until `release`."""

    __slots__ = ("_regions", "api_version", "converted_count")

    def __init__(self, api_version: int) -> None:
        """Create without records; those of old versions are converted."""
        self.api_version = api_version
        #: Slices whose file is kept open until the response is sent.
        self._regions: list[FetchSlice] = []
        #: Counts records that were converted to an older format.
        self.converted_count = 0

    @property
    def has_regions(self) -> bool:
        """True if the response has regions of files, which must be released after it is sent."""
        return bool(self._regions)

    def release(self) -> None:
        """Release the files of the response's regions: the response is sent, or is dropped."""
        regions, self._regions = self._regions, []
        for region in regions:
            region.release()

    def take_part(self, records: FetchSlice, log: LocalLog | None) -> tuple[int, SendPart]:
        """Return error code 0 and the part of the response with the records.

        After a failure, returns an error code and b"". The records are converted to an older format
        for an old version of Fetch. Takes ownership of the slice. `log` is the log that the slice
        was read from, None if it was deleted meanwhile.
        """
        version = self.api_version
        if version >= _FIRST_WITH_ZSTD:
            return 0, self._unconverted_part(records)
        if log is not None and log.config.compression_type is Codec.ZSTD:
            records.release()
            return UNSUPPORTED_COMPRESSION_TYPE, b""
        if version > _LAST_OF_MAGIC_1:
            return 0, self._unconverted_part(records)
        try:
            return self._convert(records, log, 0 if version <= _LAST_OF_MAGIC_0 else 1)
        finally:
            records.release()

    def _unconverted_part(self, records: FetchSlice) -> SendPart:
        """Return the stored records unconverted.

        They are a region of the file if it has a descriptor, else bytes.
        """
        file = records.file
        if file is None:
            return records.data
        descriptor = file.fileno()
        if descriptor is None:
            data = records.read()
            records.release()
            return data
        self._regions.append(records)
        return FileRegion(descriptor, records.position, records.size_bytes)

    def _convert(
        self, records: FetchSlice, log: LocalLog | None, magic: int
    ) -> tuple[int, SendPart]:
        """Return error code 0 and the records converted to an older magic.

        After a failure, returns an error code and b"".
        """
        if log is None:
            return 0, b""
        if not log.config.is_down_conversion_enabled:
            return UNSUPPORTED_VERSION, b""
        limit_bytes = log.config.opened_batch_bytes_max
        try:
            data = records.read()
            first_offset = records.start.offset
            return 0, down_convert_to_size(
                memoryview(data),
                magic,
                first_offset=first_offset,
                limit_bytes=limit_bytes,
                on_converted=self._note_converted,
            )
        except UnsupportedCompressionType:
            return UNSUPPORTED_COMPRESSION_TYPE, b""
        except (CorruptRecord, BatchRefused):
            return CORRUPT_MESSAGE, b""
        except StorageError:
            # As for every disk failure below version 6.
            return NOT_LEADER_OR_FOLLOWER, b""

    def _note_converted(self, record_count: int) -> None:
        """Count records that were converted to an older format, for the topic metrics."""
        self.converted_count += record_count
