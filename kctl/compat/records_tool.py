"""`kafka-delete-records`: deletes the records before the offsets in a file.

Source: DeleteRecordsCommand of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from engine.client.blocking import KafkaClient
from engine.client.metadata import topic_failure
from engine.client.topic_admin import delete_records
from engine.errors import ApiError, EngineError
from engine.host.ports import Files
from engine.kafka_errors import UNKNOWN_TOPIC_OR_PARTITION
from engine.model import TopicPartition
from kctl import exits
from kctl.compat.group_answers import cause_text
from kctl.compat.java_admin import TIMEOUT, timed_out_text
from kctl.compat.java_failures import ADMIN_COMMAND_FAILED, ADMIN_OPERATION, ToolFailure
from kctl.compat.java_options import HELP, VERSION, GivenOptions, ToolOption, require
from kctl.compat.java_order import in_java_order
from kctl.compat.json_values import (
    array_of,
    field_of,
    first_document,
    long_of,
    object_of,
    text_of,
    whole_of,
)
from kctl.compat.plan_json import read_text
from kctl.compat.releases import Release

SUMMARY = "Deletes the records of partitions before an offset."
_OPTIONS = (
    ToolOption("bootstrap-server", "Brokers to ask first. Required.", "HOST:PORT,..."),
    ToolOption(
        "offset-json-file",
        '{"partitions":[{"topic":"a","partition":0,"offset":9}],"version":1}. Required.',
        "FILE",
    ),
    ToolOption("command-config", "Client properties.", "FILE"),
    HELP,
    VERSION,
)


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options of kafka-delete-records, the same in each release."""
    del release
    return _OPTIONS


def check_options(given: GivenOptions) -> None:
    """Raise OptionsRefused if kafka-delete-records lacks a required option."""
    require(given, "bootstrap-server", "offset-json-file")


def perform(
    given: GivenOptions,
    wanted: None,
    connect: Callable[[], KafkaClient],
    files: Files,
    out: TextIO,
    err: TextIO,
) -> int:
    """Run kafka-delete-records: delete records, and print the new log start offsets.

    Returns the exit code.
    """
    del wanted
    try:
        with connect() as client:
            before = parse_offsets(read_text(files, given.needed("offset-json-file")))
            out.write("Executing records delete operation\n")
            results = _delete_until_timeout(client, before) if before else {}
    except ToolFailure as failure:
        err.write(f"{failure}\n{failure.trace()}\n")
        return exits.FAILED
    except EngineError as error:
        results = dict.fromkeys(before, error)
    out.write("Records delete operation completed:\n")
    for key in in_java_order(results):
        result = results[key]
        if isinstance(result, EngineError):
            out.write(f"partition: {key}\terror: {cause_text(result, 'deleteRecords')}\n")
        else:
            out.write(f"partition: {key}\tlow_watermark: {result}\n")
    return exits.OK


def _delete_until_timeout(
    client: KafkaClient, before: dict[TopicPartition, int]
) -> dict[TopicPartition, int | EngineError]:
    """Delete records; return each partition's new log start offset, or its error.

    A partition that its topic lacks is retried until the time-out, as by Java's client.
    """
    deadline_ms = client.clock.monotonic_ms() + client.timeout_ms
    results = delete_records(client, before)
    attempts = 1
    while absent := [key for key, result in results.items() if _is_absent(client, key, result)]:
        if client.clock.monotonic_ms() >= deadline_ms:
            text = timed_out_text("deleteRecords(api=METADATA)", client.clock.wall_ms(), attempts)
            return results | dict.fromkeys(absent, ToolFailure(TIMEOUT, text))
        client.back_off(0)
        results = results | delete_records(client, {key: before[key] for key in absent})
        attempts += 1
    return results


def _is_absent(client: KafkaClient, key: TopicPartition, result: int | EngineError) -> bool:
    """Return True if the topic exists without this partition: Java's client retries then."""
    if not isinstance(result, ApiError) or result.code != UNKNOWN_TOPIC_OR_PARTITION:
        return False
    view = client.view([key.topic])
    return topic_failure(view, key.topic) is None and view.partition(key) is None


def parse_offsets(text: str) -> dict[TopicPartition, int]:
    """Return the offsets, by partition, in the file of --offset-json-file; raises ToolFailure.

    Records below the offset are deleted; -1 is the high watermark.
    """
    try:
        document = object_of(first_document(text))
    except ValueError:
        raise ToolFailure(ADMIN_OPERATION, "The input string is not a valid JSON") from None
    version = whole_of(document.get("version", 1))
    if version != 1:
        raise ToolFailure(ADMIN_OPERATION, f"Not supported version field value {version}")
    if "partitions" not in document:
        raise ToolFailure(ADMIN_OPERATION, "Missing partitions field")
    offsets: dict[TopicPartition, list[int]] = {}
    for row in array_of(document["partitions"]):
        topic, partition = text_of(field_of(row, "topic")), whole_of(field_of(row, "partition"))
        offset = long_of(field_of(row, "offset"))
        offsets.setdefault(TopicPartition(topic, partition), []).append(offset)
    twice = in_java_order(key for key, values in offsets.items() if len(values) > 1)
    if twice:
        named = ",".join(map(str, twice))
        message = f"Offset json file contains duplicate topic partitions: {named}"
        raise ToolFailure(ADMIN_COMMAND_FAILED, message)
    return {key: values[0] for key, values in offsets.items()}
