"""Build the groups of a `__consumer_offsets` partition from its log; a key's last record counts.

Source: GroupMetadataManager.doLoadGroupsAndOffsets of 3.9.1; `formats.md` §7.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from typing import Final, NamedTuple

from engine.groups.group import Group
from engine.groups.group_offsets import CommittedOffset, GroupOffsets, WrittenOffset
from engine.groups.ports import GroupRecord, LoadedRecords
from engine.groups.records import (
    UnknownGroupRecord,
    decode_group_record,
    is_group,
    is_offset,
    parse_committed,
    parse_group,
)
from engine.model import TopicPartition
from engine.records.record import Record
from engine.wire import messages
from engine.wire.fast_commit_bytes import INDEX_BYTES, parse_offset_key, read_offset_value_fast

_log = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")

_index: Final = Struct(">i").unpack_from


class _OffsetKeys(NamedTuple):
    """The parsed offset keys that are equal except for the partition number."""

    topic: str
    #: By partition number; shared with the other groups that commit offsets of the topic.
    partitions: dict[int, TopicPartition]
    put: Callable[[TopicPartition, WrittenOffset], None]


class LoadedGroups:
    """The groups and offsets in the records of one partition that were applied up to now."""

    def __init__(self) -> None:
        """Create the state of a load in which no record has been applied."""
        #: Groups by id, from the last record of each id; a tombstone removes a group.
        self._groups: dict[str, Group] = {}
        self._offsets: dict[str, GroupOffsets] = {}
        #: Parsed keys by their bytes without the partition: most keys repeat.
        self._keys: dict[bytes, _OffsetKeys] = {}
        #: One object for each partition, by topic and index, shared by all groups.
        self._partitions: dict[str, dict[int, TopicPartition]] = {}
        #: Commits of open transactions in order: producer id, group, partition, commit, offset in
        #: the log.
        self.pending: list[tuple[int, str, TopicPartition, CommittedOffset, int]] = []

    def apply_records(self, loaded: LoadedRecords) -> None:
        """Apply the next records of the partition in log order.

        A record of an unknown kind is skipped with a warning.
        """
        records, producer_id = loaded
        others = records if producer_id >= 0 else self._apply_fast(records)
        for record in others:
            try:
                self._apply_record(record, producer_id)
            except UnknownGroupRecord as error:
                _log.warning(
                    "offset %d of __consumer_offsets is passed over: %s",
                    record.offset,
                    error.reason,
                )

    def _apply_fast(self, records: Iterable[Record]) -> Iterator[Record]:
        """Apply the committed offsets among `records`, the most frequent kind.

        Yields all other records in order, for `_apply_record`.
        """
        keys_by_start = self._keys
        for record in records:
            key, value = record.key, record.value
            committed = None if value is None else read_offset_value_fast(value)
            if key is None or committed is None:
                yield record
                continue
            keys = keys_by_start.get(key[:-INDEX_BYTES]) or self._parse_offset_key(
                key[:-INDEX_BYTES]
            )
            if keys is None:
                yield record
                continue
            topic, partitions, put = keys
            (index,) = _index(key, len(key) - INDEX_BYTES)
            partition = partitions.get(index)
            if partition is None:
                partition = partitions[index] = TopicPartition(topic, index)
            put(partition, (*committed, None, record.offset))

    def _parse_offset_key(self, start: bytes) -> _OffsetKeys | None:
        """Return the group's and topic's entries for a key without its partition; cache them.

        None if it is no offset key.
        """
        names = parse_offset_key(start)
        if names is None:
            return None
        group_id, topic = names
        offsets = self._offsets.setdefault(group_id, GroupOffsets())
        partitions = self._partitions.setdefault(topic, {})
        keys = self._keys[start] = _OffsetKeys(topic, partitions, offsets.put_written)
        return keys

    def _apply_record(self, record: Record, open_producer_id: int) -> None:
        """Decode and apply one record.

        `open_producer_id` is the producer of the open transaction to which the record belongs, −1
        for none: the commits of an open transaction are only added to `pending`.
        """
        decoded = decode_group_record(GroupRecord(record.key or b"", record.value))
        log_offset = record.offset
        key, value = decoded.key, decoded.value
        if is_offset(decoded):
            partition = TopicPartition(key.topic, key.partition)
            offsets = self._offsets.setdefault(key.group, GroupOffsets())
            if open_producer_id >= 0:
                if value is not None:
                    committed = parse_committed(decoded)
                    pending = (open_producer_id, key.group, partition, committed, log_offset)
                    self.pending.append(pending)
            elif value is None:
                offsets.remove_offsets((partition,))
            else:
                # A transactional commit with a late marker does not replace a commit later in the
                # log.
                offsets.put(partition, parse_committed(decoded), log_offset)
        elif is_group(decoded):
            if value is None:
                self._groups.pop(key.group, None)
            else:
                assert isinstance(value, messages.GroupMetadataValue), value.message_name
                self._groups[key.group] = parse_group(key.group, value)

    def iter_groups(self) -> Iterator[Group]:
        """Yield the loaded groups with their offsets, after the last record was applied.

        An id for which the log has only offsets gets a new Empty group.
        """
        pending = {group_id for _, group_id, _, _, _ in self.pending}
        for group_id, offsets in self._offsets.items():
            if (not offsets.is_empty or group_id in pending) and group_id not in self._groups:
                self._groups[group_id] = Group(group_id, None)
        for group_id, group in self._groups.items():
            group.offsets = self._offsets.get(group_id, group.offsets)
            yield group
