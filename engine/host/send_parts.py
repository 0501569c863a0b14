"""Conversion of a frame's parts to bytes, for connections without sendfile."""

from __future__ import annotations

import os

from engine.errors import StorageError
from engine.host.ports import FileRegion, SendPart


class RegionUnreadable(StorageError):
    """A file region that no longer exists, or that the disk cannot read."""

    def __init__(self, region: FileRegion, reason: str) -> None:
        super().__init__(f"{region.length} bytes at {region.position} cannot be read: {reason}")
        self.region = region
        self.reason = reason


def part_bytes(part: SendPart) -> bytes:
    """Return a part of a frame as bytes; a file region is read. Raises RegionUnreadable."""
    if not isinstance(part, FileRegion):
        return bytes(part)
    try:
        content = os.pread(part.descriptor, part.length, part.position)
    except OSError as error:
        raise RegionUnreadable(part, str(error)) from error
    if len(content) < part.length:
        raise RegionUnreadable(part, f"there are {len(content)}")
    return content
