"""Selects the records of a dump, by batch headers and by records. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from engine.dump.json_condition import JsonCondition, TooDeepForPath, matches_json
from engine.records.legacy import LegacyMessage
from engine.records.record import Record
from engine.records.record_run import RecordRun


class Filters(NamedTuple):
    """Bounds and patterns; None for no bound. Upper bounds are exclusive.

    `key` is the exact key; patterns match anywhere in the bytes, but not a null key or value.
    `max_records` limits the records shown from all files together. All `json_conditions` must hold
    for the value; `on_unjudged` gets the error of a record that could not be checked, and which is
    left out.
    """

    from_offset: int | None = None
    to_offset: int | None = None
    from_timestamp_ms: int | None = None
    to_timestamp_ms: int | None = None
    producer_id: int | None = None
    key: bytes | None = None
    key_pattern: re.Pattern[bytes] | None = None
    value_pattern: re.Pattern[bytes] | None = None
    header: str | None = None
    max_records: int | None = None
    json_conditions: tuple[JsonCondition, ...] = ()
    on_unjudged: Callable[[TooDeepForPath], None] | None = None

    @property
    def any_set(self) -> bool:
        """Return True if at least one filter is set."""
        return self != _NO_FILTERS

    @property
    def picks_some(self) -> bool:
        """Return True if a filter other than the number of records is set."""
        return self._replace(max_records=None).any_set

    @property
    def opens_batches(self) -> bool:
        """Return True if a batch's records must be read to decide whether one of them matches.

        Offsets alone do not need that, and neither does the number of records.
        """
        return self._replace(from_offset=None, to_offset=None, max_records=None).any_set

    @property
    def picks_records(self) -> bool:
        """Return True if single records are selected: by key, value, header, JSON or number."""
        by_content = self._replace(
            from_offset=None,
            to_offset=None,
            from_timestamp_ms=None,
            to_timestamp_ms=None,
            producer_id=None,
        )
        return by_content.any_set

    def is_past_end(self, base_offset: int) -> bool:
        """Return True if a batch at this base offset, and so each later one, is past the end."""
        return self.to_offset is not None and base_offset >= self.to_offset

    def may_match_batch(
        self, last_offset: int, max_timestamp_ms: int, producer_id: int = -1
    ) -> bool:
        """Return True if a batch with these header fields may have a record to show."""
        if self.from_offset is not None and last_offset < self.from_offset:
            return False
        if self.from_timestamp_ms is not None and max_timestamp_ms < self.from_timestamp_ms:
            return False
        return self.producer_id is None or self.producer_id == producer_id

    def matches(self, record: Record | LegacyMessage) -> bool:
        """Return True if a record is to be shown by all filters but the producer id's.

        The producer id is checked by batch, in `may_match_batch`.
        """
        return self._in_bounds(record) and self._content_matches(record)

    def _in_bounds(self, record: Record | LegacyMessage) -> bool:
        """Return True if a record is within the bounds of offsets and timestamps."""
        if self.from_offset is not None and record.offset < self.from_offset:
            return False
        if self.to_offset is not None and record.offset >= self.to_offset:
            return False
        if self.from_timestamp_ms is not None and record.timestamp_ms < self.from_timestamp_ms:
            return False
        return self.to_timestamp_ms is None or record.timestamp_ms < self.to_timestamp_ms

    def _content_matches(self, record: Record | LegacyMessage) -> bool:
        """Return True if a record meets all set filters on key, value, headers and JSON."""
        if self.key is not None and record.key != self.key:
            return False
        if self.key_pattern is not None and not _found(self.key_pattern, record.key):
            return False
        if self.value_pattern is not None and not _found(self.value_pattern, record.value):
            return False
        if self.header is not None and all(name != self.header for name, _ in record.headers):
            return False
        return not self.json_conditions or self._json_matches(record)

    def _json_matches(self, record: Record | LegacyMessage) -> bool:
        """Return True if a record's value meets all JSON conditions.

        False if it is nested too deeply to decide: `on_unjudged` is then called with the error.
        """
        try:
            return matches_json(record.value, self.json_conditions, record.offset)
        except TooDeepForPath as error:
            if self.on_unjudged is not None:
                self.on_unjudged(error)
            return False

    def places(self, run: RecordRun) -> list[int]:
        """Return the indexes, from 0, of the matching records of a run."""
        return [n for n, record in enumerate(run.records()) if self.matches(record)]


_NO_FILTERS = Filters()


def _found(pattern: re.Pattern[bytes], text: bytes | memoryview | None) -> bool:
    """Return True if a pattern matches anywhere in a key or value; False for null."""
    return text is not None and pattern.search(text) is not None
