"""Make the rows of the views of decoded records from splits of internal topics.

| view | records |
|---|---|
| offsets | commits of `__consumer_offsets` |
| groups | all other records of `__consumer_offsets` |
| transactions | `__transaction_state`, and the markers in any topic |
| metadata | `__cluster_metadata`, including control records |

A record that cannot be decoded, and damage that may have contained such records, is a row with a
`problem`.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct as Format

from engine.analysis.batch_reader import BAD_BATCH_CODES
from engine.analysis.damage import ReaderNote, open_noted_reader
from engine.analysis.decoding import (
    DecodedPair,
    control_row,
    decode_pair,
    metadata_row,
    readable,
)
from engine.analysis.isolation import HiddenRecords
from engine.analysis.problem import Problem
from engine.analysis.splits import Split
from engine.analysis.table_values import Row, timestamp_of
from engine.analysis.view_pieces import TRANSACTION_STATE_TOPIC
from engine.errors import CorruptRecord, EngineError
from engine.host.ports import Files
from engine.json_text import json_text
from engine.records.control import ControlType, control_type, parse_marker
from engine.records.record import Record
from engine.records.view import RecordBatch

_TYPE = Format(">h")
_COMMIT_TYPES = (0, 1)
_CLASSIC_GROUP_TYPE = 2
#: Names of the transaction states, by state number.
_STATES = (
    "Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead",
    "PrepareEpochFence",
)  # fmt: skip
#: Problem codes that a view of decoded records shows as rows: the bytes may have held records.
_SHOWN_CODES = BAD_BATCH_CODES | {"torn_tail"}
_ENDS = (ControlType.ABORT, ControlType.COMMIT)


def decoded_rows(files: Files, view: str, split: Split, note: ReaderNote) -> Iterator[Row]:
    """Yield the rows of a view of decoded records (offsets, groups, …) from a split's batches.

    Some problems of the split become rows, too. `note` gets the reader with all problems.
    """
    with open_noted_reader(files, split, note) as reader:
        hidden = HiddenRecords(split)
        for position, batch, _ in reader.batches():
            transactional = batch.is_transactional and not batch.is_control
            if (
                batch.last_offset < split.log_start_offset
                or not _has_rows(view, split, batch)
                or hidden.has(batch.producer_id, batch.last_offset, is_transactional=transactional)
            ):
                continue
            try:
                records = batch.read_records()
            except CorruptRecord as error:
                reader.note(position, batch.size_bytes, "bad_records", str(error))
                continue
            for record in records:
                if record.offset < split.log_start_offset:
                    continue
                row = _record_row(view, split, batch, record)
                if row is not None:
                    yield {
                        **_location_columns(view, split, position),
                        **_record_columns(record),
                        **row,
                    }
        for problem in reader.problems:
            if problem.code in _SHOWN_CODES:
                yield {
                    **_location_columns(view, split, problem.position),
                    **_problem_column(problem),
                }


def _has_rows(view: str, split: Split, batch: RecordBatch) -> bool:
    """Return True if a view may have rows for this batch.

    Control batches have rows in two views only.
    """
    if view == "metadata":
        return True
    if view == "transactions":
        return batch.is_control or split.topic == TRANSACTION_STATE_TOPIC
    return not batch.is_control


def _location_columns(view: str, split: Split, position: int) -> Row:
    """Return the columns that locate a record: segment, byte position, partition and topic."""
    place: Row = {"segment": split.path, "position": position}
    if view != "metadata":
        place["logPartition"] = split.partition
    if view == "transactions":
        place["logTopic"] = split.topic
    return place


def _record_columns(record: Record) -> Row:
    """Return the columns of a record's offset and timestamp."""
    return {
        "logOffset": record.offset,
        "timestamp": timestamp_of(record.timestamp_ms),
        "timestampMs": record.timestamp_ms,
    }


def _problem_column(problem: Problem) -> Row:
    """Return the column `problem` of a row, with the code and message of damage."""
    return {"problem": f"{problem.code}: {problem.message}"}


def _record_row(view: str, split: Split, batch: RecordBatch, record: Record) -> Row | None:
    """Return a record's row in the view, None for a record that belongs to another view.

    A record that cannot be decoded gets a row with `problem`.
    """
    try:
        if view == "metadata":
            return _metadata_columns(batch, record)
        if view == "transactions":
            return _marker_row(batch, record) if batch.is_control else _transaction_row(record)
        return _group_row(view, batch, record)
    except EngineError as error:
        return {"problem": readable(str(error))}


def _metadata_columns(batch: RecordBatch, record: Record) -> Row:
    """Return the columns of a metadata record; only `problem` and its batch's if undecodable."""
    columns = {"isControl": batch.is_control, "leaderEpoch": batch.leader_epoch}
    try:
        return columns | (control_row(record) if batch.is_control else metadata_row(record))
    except EngineError as error:
        return columns | {"problem": readable(str(error))}


def _marker_row(batch: RecordBatch, record: Record) -> Row | None:
    """Return the row of a COMMIT or ABORT marker, None for other control records."""
    if control_type(record) not in _ENDS:
        return None
    marker = parse_marker(record)
    return {
        "kind": "marker",
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "state": marker.control_type.name,
        "coordinatorEpoch": marker.coordinator_epoch,
        "isTombstone": False,
    }


def _transaction_row(record: Record) -> Row:
    """Return the row of a record of `__transaction_state`; an unknown state sets `problem`."""
    pair = decode_pair("transaction_log", record)
    row: Row = {
        "kind": "state",
        "transactionalId": readable(pair.key.transactional_id),
        "isTombstone": pair.value is None,
    }
    if pair.value is None:
        return row
    value = pair.value
    status = value.transaction_status
    partitions = [
        {"topic": readable(entry.topic), "partitions": list(entry.partition_ids)}
        for entry in value.transaction_partitions or ()
    ]
    is_known = 0 <= status < len(_STATES)
    return row | {
        "producerId": value.producer_id,
        "producerEpoch": value.producer_epoch,
        "state": _STATES[status] if is_known else None,
        "timeoutMs": value.transaction_timeout_ms,
        "partitions": json_text(partitions),
        "startTimestampMs": value.transaction_start_timestamp_ms,
        "updateTimestampMs": value.transaction_last_update_timestamp_ms,
        "problem": None if is_known else f"no transaction has the state {status}",
    }


def _group_row(view: str, batch: RecordBatch, record: Record) -> Row | None:
    """Return the columns of a record of __consumer_offsets in the view `offsets` or `groups`.

    None for a record of the other view.
    """
    key = record.key
    if key is not None and len(key) >= _TYPE.size:
        (type_id,) = _TYPE.unpack_from(key)
        if (type_id in _COMMIT_TYPES) != (view == "offsets"):
            return None
    pair = decode_pair("offsets", record)
    return _commit_row(batch, pair) if view == "offsets" else _group_columns(pair)


def _commit_row(batch: RecordBatch, pair: DecodedPair) -> Row:
    """Return the row of an offset commit; a tombstone has only the columns of the key."""
    key, value = pair.key, pair.value
    row: Row = {
        "groupId": readable(key.group),
        "topic": readable(key.topic),
        "partition": key.partition,
        "isTombstone": value is None,
        "isTransactional": batch.is_transactional,
        "producerId": batch.producer_id,
    }
    if value is None:
        return row
    return row | {
        "committedOffset": value.offset,
        "leaderEpoch": value.leader_epoch,
        "metadata": readable(value.metadata),
        "commitTimestamp": timestamp_of(value.commit_timestamp),
        "commitTimestampMs": value.commit_timestamp,
        "expireTimestampMs": value.expire_timestamp,
    }


def _group_columns(pair: DecodedPair) -> Row:
    """Return the row of a group's record; generation and members only for classic groups."""
    group_id = getattr(pair.key, "group", None) or getattr(pair.key, "group_id", None)
    row: Row = {
        "groupId": readable(group_id),
        "type": pair.name,
        "version": None if pair.value is None else pair.value_version,
        "isTombstone": pair.value is None,
        "keyFields": pair.key_json(),
        "fields": pair.value_json(),
    }
    if pair.value is None or pair.type != _CLASSIC_GROUP_TYPE:
        return row
    value = pair.value
    return row | {
        "generation": value.generation,
        "protocolType": readable(value.protocol_type),
        "protocol": readable(value.protocol),
        "leader": readable(value.leader),
        "memberCount": len(value.members),
    }
