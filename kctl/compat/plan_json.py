"""Parse and print the JSON files of kafka-reassign-partitions.

Source: ReassignPartitionsCommand.parsePartitionReassignmentData, parseTopicsData,
formatAsReassignmentJson of 3.9.1.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, NoReturn, TypeVar

from engine.errors import StorageError
from engine.host.ports import Files
from engine.model import TopicPartition
from kctl.compat.java_failures import ADMIN_COMMAND_FAILED, ADMIN_OPERATION, ToolFailure
from kctl.compat.java_numbers import java_number
from kctl.compat.java_split import java_split
from kctl.compat.json_mistakes import mistake_of
from kctl.compat.json_values import array_of, field_of, first_document, object_of, text_of, whole_of

#: Placeholder for a log directory that the broker chooses.
ANY_LOG_DIR = "any"
_VERSION = 1

_Value = TypeVar("_Value", int, str, TopicPartition)


class Replica(NamedTuple):
    """A replica of a partition; its text is `topic-partition-broker`."""

    partition: TopicPartition
    broker_id: int

    def __str__(self) -> str:
        """Return the replica as Kafka's tool prints it: `topic-partition-broker`."""
        return f"{self.partition}-{self.broker_id}"


class Proposal(NamedTuple):
    """The content of a file: target replicas in file order, and the log directories it names."""

    targets: tuple[tuple[TopicPartition, tuple[int, ...]], ...]
    log_dirs: Mapping[Replica, str]


def read_text(files: Files, path: str) -> str:
    """Read a file of UTF-8; raises ToolFailure if it is missing or malformed."""
    try:
        return bytes(files.read_bytes(path)).decode()
    except (StorageError, UnicodeDecodeError) as error:
        cause = f"java.nio.file.NoSuchFileException: {path}"
        raise ToolFailure("java.io.IOException", f"Unable to read file {path}", cause) from error


def parse_proposal(text: str) -> Proposal:
    """Parse the JSON of kafka-reassign-partitions --reassignment-json-file.

    Returns target replicas in the order of the file, and target log directories other than `any`.
    Errors: ToolFailure.
    """
    try:
        document = first_document(text)
    except ValueError:
        mistake = mistake_of(text)
        cause = f"com.fasterxml.jackson.core.JsonParseException: {mistake}"
        raise ToolFailure(ADMIN_OPERATION, mistake, cause) from None
    fields = object_of(document)
    _check_version(fields.get("version", _VERSION))
    targets = []
    log_dirs: dict[Replica, str] = {}
    for row in map(object_of, array_of(fields.get("partitions", []))):
        key = TopicPartition(text_of(field_of(row, "topic")), whole_of(field_of(row, "partition")))
        replicas = tuple(map(whole_of, array_of(field_of(row, "replicas"))))
        wanted = [ANY_LOG_DIR] * len(replicas)
        if "log_dirs" in row:
            wanted = [text_of(path) for path in array_of(row["log_dirs"])]
        if len(wanted) != len(replicas):
            raise ToolFailure(
                ADMIN_COMMAND_FAILED,
                f"Size of replicas list {_listed(replicas)} is different from size of log dirs "
                f"list {_listed(wanted)} for partition {key}",
            )
        targets.append((key, replicas))
        log_dirs |= {
            Replica(key, id_): path
            for id_, path in zip(replicas, wanted, strict=True)
            if path != ANY_LOG_DIR
        }
    return Proposal(tuple(targets), log_dirs)


def parse_proposal_to_execute(text: str) -> Proposal:
    """Parse a reassignment file, and apply the checks of --execute: nothing empty or twice.

    Errors: ToolFailure.
    """
    proposal = parse_proposal(text)
    if not proposal.targets:
        _refuse("Partition reassignment list cannot be empty")
    if any(not replicas for _, replicas in proposal.targets):
        _refuse("Partition replica list cannot be empty")
    twice = _repeated(key for key, _ in proposal.targets)
    if twice:
        named = ",".join(map(str, twice))
        _refuse(f"Partition reassignment contains duplicate topic partitions: {named}")
    several = [(key, ids) for key, replicas in proposal.targets if (ids := _repeated(replicas))]
    if several:
        named = ". ".join(
            f"{key} contains multiple entries for {','.join(map(str, ids))}" for key, ids in several
        )
        _refuse(f"Partition replica lists may not contain duplicate entries: {named}")
    return proposal


def parse_topics(text: str) -> list[str]:
    """Return the topics in the file of --topics-to-move-json-file; raises ToolFailure."""
    try:
        document = first_document(text)
    except ValueError:
        raise ToolFailure(ADMIN_OPERATION, "The input string is not a valid JSON") from None
    fields = object_of(document)
    _check_version(fields.get("version", _VERSION))
    topics = [text_of(field_of(row, "topic")) for row in array_of(fields.get("topics", []))]
    twice = _repeated(topics)
    if twice:
        _refuse(f"List of topics to reassign contains duplicate entries: {_listed(twice)}")
    return topics


def read_broker_list(text: str) -> list[int]:
    """Return the broker ids of --broker-list; raises ToolFailure, also for one given twice."""
    broker_ids = [java_number(word) for word in java_split(text, ",")]
    twice = _repeated(broker_ids)
    if twice:
        _refuse(f"Broker list contains duplicate entries: {_listed(twice)}")
    return broker_ids


def assignment_json(
    assignment: Mapping[TopicPartition, Sequence[int]],
    log_dirs: Mapping[Replica, str] | None = None,
) -> str:
    """Return an assignment as JSON for --execute; a log directory not in `log_dirs` is `any`."""
    known = log_dirs or {}
    partitions = [
        {
            "topic": key.topic,
            "partition": key.partition,
            "replicas": list(replicas),
            "log_dirs": [known.get(Replica(key, broker), ANY_LOG_DIR) for broker in replicas],
        }
        for key, replicas in sorted(assignment.items())
    ]
    document = {"version": _VERSION, "partitions": partitions}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _check_version(version: object) -> None:
    """Raise ToolFailure unless the version of the file is 1."""
    if whole_of(version) != _VERSION:
        raise ToolFailure(ADMIN_OPERATION, f"Not supported version field value {version}")


def _refuse(message: str) -> NoReturn:
    """Raise the AdminCommandFailedException with which the tool ends."""
    raise ToolFailure(ADMIN_COMMAND_FAILED, message)


def _repeated(values: Iterable[_Value]) -> list[_Value]:
    """Return the distinct values that occur more than once, sorted."""
    return sorted(value for value, count in Counter(values).items() if count > 1)


def _listed(values: Iterable[object]) -> str:
    """Return values in the format of a Java list: `[a, b]`."""
    return f"[{', '.join(map(str, values))}]"
