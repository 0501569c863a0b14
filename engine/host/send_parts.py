"""Parts of what is sent, as bytes: for those who do not send them."""

from __future__ import annotations

import os

from engine.errors import StorageError
from engine.host.ports import FileRegion, SendPart


class RegionUnreadable(StorageError):
    """A region of a file is not there any more, or the disk does not give it."""

    def __init__(self, region: FileRegion, reason: str) -> None:
        super().__init__(f"{region.length} bytes at {region.position} cannot be read: {reason}")
        self.region = region
        self.reason = reason


def part_bytes(part: SendPart) -> bytes:
    """Return a part as bytes; a region of a file is read. Raises RegionUnreadable."""
    if not isinstance(part, FileRegion):
        return bytes(part)
    try:
        content = os.pread(part.descriptor, part.length, part.position)
    except OSError as error:
        raise RegionUnreadable(part, str(error)) from error
    if len(content) < part.length:
        raise RegionUnreadable(part, f"there are {len(content)}")
    return content
