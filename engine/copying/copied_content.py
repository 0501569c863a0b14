"""Changes the records of a copy: copies a sample of them, with anonymised content.

A sample is chosen by the key, so that either all records of a key are in it or none; records
without a key by partition and offset. So a resumed or repeated copy chooses the same records.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from zlib import crc32

from engine.errors import EngineError
from engine.records.anonymising import METHODS, anonymise_content
from engine.records.record import Header

PARTS: Final = ("key", "value", "headers")
_HASHES: Final = 1 << 32


class WrongCopyRule(EngineError):
    """A value of --anonymise is malformed."""

    exit_code = 2

    def __init__(self, text: str, expected: str) -> None:
        super().__init__(f"--anonymise {text}: expected {expected}")
        self.text = text


class ContentRules(NamedTuple):
    """The share of records to copy (None: all), and the method for each changed part."""

    share: float | None = None
    methods: Mapping[str, str] = {}
    hash_key: bytes | None = None

    def picks(self, key: bytes | None, partition: int, offset: int) -> bool:
        """Return True if a record is to be copied; without a share, every record is.

        Otherwise a hash of its key decides, so that all records of a key are copied or none. A
        record without a key is picked by its partition and offset.
        """
        if self.share is None:
            return True
        chosen_by = b"%d:%d" % (partition, offset) if key is None else key
        return crc32(chosen_by) < self.share * _HASHES

    def content(
        self, key: bytes | None, value: bytes | None, headers: tuple[Header, ...]
    ) -> tuple[bytes | None, bytes | None, tuple[Header, ...]]:
        """Return key, value and headers of a record as they are written to the destination.

        Parts with a method are anonymised; a null key or value is kept.
        """
        if not self.methods:
            return key, value, headers
        method = self.methods.get("headers")
        if method is not None:
            changed = ((name, self._part(content, method)) for name, content in headers)
            headers = () if method == "drop" else tuple(changed)
        return (
            self._part(key, self.methods.get("key")),
            self._part(value, self.methods.get("value")),
            headers,
        )

    def _part(self, content: bytes | None, method: str | None) -> bytes | None:
        """Return a key, value or header value anonymised by `method`.

        It is returned unchanged if it is null or `method` is None.
        """
        if content is None or method is None:
            return content
        return anonymise_content(content, method, self.hash_key)


def parse_anonymising(texts: tuple[str, ...]) -> dict[str, str]:
    """Return the anonymising method of each part of a record, from texts such as `key=hash`.

    Raises WrongCopyRule for an unknown part or method, and for a part that is there twice.
    """
    methods: dict[str, str] = {}
    for text in texts:
        part, _, method = text.partition("=")
        if part not in PARTS or method not in METHODS:
            expected = f"one of {', '.join(PARTS)}, = and one of {', '.join(METHODS)}"
            raise WrongCopyRule(text, expected)
        if part in methods:
            raise WrongCopyRule(text, f"each part once: {part} is there twice")
        methods[part] = method
    return methods
