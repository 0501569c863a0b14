"""`kafka-get-offsets`: prints offsets of partitions at a time, as lines TOPIC:PARTITION:OFFSET.

Source: GetOffsetShell of 3.9.1.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TextIO

from engine.client.blocking import KafkaClient
from engine.client.offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    list_offsets,
)
from engine.errors import EngineError
from engine.host.ports import Files
from engine.model import TopicPartition
from kctl import exits
from kctl.compat.java_admin import admin_call, admin_failure
from kctl.compat.java_failures import TerseFailure, ToolFailure
from kctl.compat.java_numbers import LONG_BITS, is_java_number, java_number
from kctl.compat.java_options import (
    HELP,
    VERSION,
    GivenOptions,
    OptionsRefused,
    ToolOption,
    refused,
)
from kctl.compat.java_split import java_split
from kctl.compat.releases import Release
from kctl.compat.topics_views import compile_topic_pattern

SUMMARY = "Shows the offsets of partitions at a time."
_OPTIONS = (
    ToolOption("bootstrap-server", "Brokers to ask first. Required.", "HOST:PORT,..."),
    ToolOption("topic-partitions", "TOPIC:PARTITION, :FROM-TO and so on.", "PATTERN,..."),
    ToolOption("topic", "A regular expression of topics.", "NAME"),
    ToolOption("partitions", "Only these partitions.", "NUMBER,..."),
    ToolOption("time", "Milliseconds, earliest, latest (default), max-timestamp.", "TIME"),
    ToolOption("command-config", "Client properties.", "FILE"),
    ToolOption("exclude-internal-topics", "Leave out the topics of the brokers."),
    HELP,
    VERSION,
)
_OLD_SERVERS = ToolOption("broker-list", "The old name of --bootstrap-server.", "HOST:PORT,...")
#: Prefix of error messages on stderr.
ERROR_PREFIX = "Error occurred: "

_TIMES: Final = {
    "earliest": EARLIEST,
    "latest": LATEST,
    "max-timestamp": MAX_TIMESTAMP,
    "earliest-local": EARLIEST_LOCAL,
    "latest-tiered": LATEST_TIERED,
}
_RULE: Final = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")
_PORT: Final = re.compile(r".*?\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")
_INT_MAX: Final = 0x7FFF_FFFF
_UNKNOWN_OFFSET: Final = -1

Filter = Callable[[TopicPartition], bool]


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options that kafka-get-offsets has in a release."""
    return _OPTIONS if release.is_four else (*_OPTIONS, _OLD_SERVERS)


def check_options(given: GivenOptions) -> None:
    """Raise OptionsRefused if kafka-get-offsets has no valid bootstrap servers."""
    if not given.has("bootstrap-server") and not given.has("broker-list"):
        if given.is_four:
            raise refused('Missing required argument "[bootstrap-server]"')
        raise OptionsRefused("Missing required option(s) [bootstrap-server]")
    name = "bootstrap-server" if given.has("bootstrap-server") else "broker-list"
    servers = given.needed(name)
    if not servers.strip():
        raise refused("Error while validating the bootstrap address\n")
    if not all(_PORT.fullmatch(server) for server in java_split(servers, ",")):
        raise refused("Please provide valid host:port like host1:9091,host2:9092\n")


def perform(
    given: GivenOptions,
    wanted: None,
    connect: Callable[[], KafkaClient],
    files: Files,
    out: TextIO,
    err: TextIO,
) -> int:
    """Run kafka-get-offsets: print the offset of each selected partition; returns the exit code."""
    del wanted, files
    try:
        time_ms = parse_time(given.needed("time") if given.has("time") else "latest")
        is_wanted = parse_filter(given)
        with connect() as client:
            _print_offsets(client, time_ms, is_wanted, given, out, err)
    except TerseFailure as failure:
        err.write(f"{ERROR_PREFIX}{failure}\n")
        return exits.FAILED
    except ToolFailure as failure:
        err.write(f"{ERROR_PREFIX}{failure}\n{failure.trace()}\n")
        return exits.FAILED
    return exits.OK


def parse_time(text: str) -> int:
    """Parse --time of kafka-get-offsets into a timestamp of ListOffsets; raises TerseFailure.

    It is a word such as `latest`, its number, or ms since 1970.
    """
    if text in _TIMES:
        return _TIMES[text]
    if not is_java_number(text, LONG_BITS):
        raise TerseFailure(
            f"Malformed time argument {text}. Please use -1 or latest / -2 or earliest / -3 or "
            "max-timestamp / -4 or earliest-local / -5 or latest-tiered, or a specified long "
            "format timestamp"
        )
    return int(text)


def parse_filter(given: GivenOptions) -> Filter:
    """Return a function that returns True for the partitions that options select.

    Errors: TerseFailure, ToolFailure.
    """
    if given.has("topic-partitions"):
        if given.has("topic") or given.has("partitions"):
            raise TerseFailure("--topic-partitions cannot be used with --topic or --partitions")
        rules = [_parse_rule(text) for text in java_split(given.needed("topic-partitions"), ",")]
        return lambda key: any(rule(key) for rule in rules)
    pattern = compile_topic_pattern(given.needed("topic") if given.has("topic") else ".*")
    text = given.text("partitions") if given.has("partitions") else None
    numbers = java_split(text, ",") if text else []
    if not all(map(is_java_number, numbers)):
        raise TerseFailure(
            "--partitions expects a comma separated list of numeric partition ids, but received: "
            f"{text}"
        )
    chosen = set(map(int, numbers))
    return lambda key: (
        bool(pattern.fullmatch(key.topic)) and (not chosen or key.partition in chosen)
    )


def _parse_rule(text: str) -> Filter:
    """Parse a rule TOPIC[:N[-M]] (M exclusive) into a predicate; raises ToolFailure."""
    match = _RULE.fullmatch(text)
    if match is None:
        message = f"org.apache.kafka.tools.TerseException: Invalid rule specification: {text}"
        raise ToolFailure("java.lang.RuntimeException", message)
    topic, single, lowest, end = match.groups()
    pattern = compile_topic_pattern(topic or ".*")
    first = java_number(single or lowest or "0")
    last = first if single else java_number(end) - 1 if end else _INT_MAX
    return lambda key: bool(pattern.fullmatch(key.topic)) and first <= key.partition <= last


def _print_offsets(
    client: KafkaClient,
    time_ms: int,
    is_wanted: Filter,
    given: GivenOptions,
    out: TextIO,
    err: TextIO,
) -> None:
    """Print the offset of each selected partition at `time_ms`; print errors to `err`."""
    with admin_call("listTopics"):
        view = client.view(None)
    keys = [
        key
        for name, topic in view.topics.items()
        if not (topic.is_internal and given.has("exclude-internal-topics"))
        for key in (TopicPartition(name, row.partition) for row in topic.partitions)
        if is_wanted(key)
    ]
    if not keys:
        raise TerseFailure("Could not match any topic-partitions with the specified filters")
    with admin_call("listOffsets"):
        found = list_offsets(client, dict.fromkeys(keys, time_ms))
    for key in sorted(keys, key=str):
        result = found[key]
        if isinstance(result, EngineError):
            failure = admin_failure(result, "listOffsets")
            shown = f"{failure.java_class}: " if isinstance(failure, ToolFailure) else ""
            err.write(
                f"Skip getting offsets for topic-partition {key} due to error: {shown}{failure}\n"
            )
        elif result.offset != _UNKNOWN_OFFSET:
            out.write(f"{key.topic}:{key.partition}:{result.offset}\n")
