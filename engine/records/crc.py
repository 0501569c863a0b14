"""CRC-32C (Castagnoli), the checksum of record batches of magic 2 and of producer snapshots.

`crc32c(buffer)` is that of a buffer, unsigned; `crc32c(buffer, crc)` goes on behind bytes whose
checksum is `crc`. It is the library's own function: one of Python around it would take longer than
the checksum of a small batch.
"""

from __future__ import annotations

from fastcrc.crc32 import iscsi as crc32c

__all__ = ["crc32c"]
