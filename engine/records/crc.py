"""CRC-32C (Castagnoli), the checksum of record batches of magic 2 and of producer snapshots.

`crc32c(buffer)` returns the unsigned checksum of a buffer; `crc32c(buffer, crc)` continues the
checksum `crc` of the bytes before. It is the library's own function: a Python wrapper would take
longer than the checksum of a small batch.
"""

from __future__ import annotations

from fastcrc.crc32 import iscsi as crc32c

__all__ = ["crc32c"]
