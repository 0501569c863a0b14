"""The groups in a partition of `__consumer_offsets`: of each key the last record counts.

Source: GroupMetadataManager.doLoadGroupsAndOffsets of 3.9.1; `formats.md` §7.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from engine.groups.group import Group
from engine.groups.group_offsets import CommittedOffset, GroupOffsets
from engine.groups.ports import LoadedRecord
from engine.groups.records import (
    UnknownGroupRecord,
    committed_of,
    decode_group_record,
    group_of,
    is_group,
    is_offset,
)
from engine.model import TopicPartition, new_tuple
from engine.wire import messages
from engine.wire.fast_commit_bytes import read_offset_record_fast

_log = logging.getLogger("kafka.coordinator.group.GroupMetadataManager")


class LoadedGroups:
    """What the records of a log say that were read so far."""

    def __init__(self) -> None:
        self._groups: dict[str, Group] = {}
        self._offsets: dict[str, GroupOffsets] = {}
        #: The commits of open transactions, in order: producer, group, partition, where they are.
        self.pending: list[tuple[int, str, TopicPartition, CommittedOffset, int]] = []

    def apply(self, entry: LoadedRecord) -> None:
        """Apply the next record; one that cannot be understood is passed over, with a warning."""
        if self._apply_fast(entry):
            return
        try:
            self._apply(entry)
        except UnknownGroupRecord as error:
            _log.warning(
                "offset %d of __consumer_offsets is passed over: %s", entry.log_offset, error.reason
            )

    def _apply_fast(self, entry: LoadedRecord) -> bool:
        """Apply a committed offset of no transaction, as most are; False with nothing done."""
        log_offset, (key, value), open_producer_id = entry
        if value is None or open_producer_id >= 0:
            return False
        read = read_offset_record_fast(key, value)
        if read is None:
            return False
        group_id, partition, offset, leader_epoch, metadata, commit_ms = read
        offsets = self._offsets.get(group_id)
        if offsets is None:
            offsets = self._offsets[group_id] = GroupOffsets()
        committed = (offset, leader_epoch, metadata, commit_ms, None)
        offsets.put(partition, new_tuple(CommittedOffset, committed), log_offset)
        return True

    def _apply(self, entry: LoadedRecord) -> None:
        decoded, log_offset = decode_group_record(entry.record), entry.log_offset
        key, value = decoded.key, decoded.value
        if is_offset(decoded):
            partition = TopicPartition(key.topic, key.partition)
            offsets = self._offsets.setdefault(key.group, GroupOffsets())
            if entry.open_producer_id >= 0:
                if value is not None:
                    committed = committed_of(decoded)
                    pending = (entry.open_producer_id, key.group, partition, committed, log_offset)
                    self.pending.append(pending)
            elif value is None:
                offsets.remove((partition,))
            else:
                # A transaction that is committed late does not undo later commits.
                offsets.put(partition, committed_of(decoded), log_offset)
        elif is_group(decoded):
            if value is None:
                self._groups.pop(key.group, None)
            else:
                assert isinstance(value, messages.GroupMetadataValue), value.message_name
                self._groups[key.group] = group_of(key.group, value)

    def groups(self) -> Iterator[Group]:
        """Yield the groups that have a record, and those that have only committed offsets."""
        pending = {group_id for _, group_id, _, _, _ in self.pending}
        for group_id, offsets in self._offsets.items():
            if (not offsets.is_empty or group_id in pending) and group_id not in self._groups:
                self._groups[group_id] = Group(group_id, None)
        for group_id, group in self._groups.items():
            group.offsets = self._offsets.get(group_id, group.offsets)
            yield group
