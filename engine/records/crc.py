"""CRC-32C (Castagnoli), the checksum of record batches of magic 2 and of producer snapshots."""

from __future__ import annotations

from fastcrc.crc32 import iscsi

from engine.host.ports import Buffer


def crc32c(buffer: Buffer, crc: int = 0) -> int:
    """Return the CRC-32C of `buffer`, unsigned; `crc` is that of the bytes before it."""
    return iscsi(buffer, crc)
