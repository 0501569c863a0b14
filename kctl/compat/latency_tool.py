"""`kafka-e2e-latency`: sends records one by one, and measures the time until each is consumed.

Source: EndToEndLatency of 3.9.1 and 4.3.0.

Differs: each consumed record is compared with the sent one, of headers only the number.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.offsets import LATEST
from engine.client.producing import OutgoingRecord
from engine.client.topic_admin import NewTopic, create_topics
from engine.errors import EngineError
from engine.model import TopicPartition
from engine.records.record import Header, Record
from kctl import exits
from kctl.compat.java_admin import ILLEGAL_ARGUMENT
from kctl.compat.java_consumer import PartitionSource, consumer_settings
from kctl.compat.java_failures import TerseFailure, ToolFailure, as_java
from kctl.compat.java_numbers import java_number
from kctl.compat.java_options import (
    HELP,
    VERSION,
    GivenOptions,
    OptionsRefused,
    ToolOption,
    parse_options,
    usage_text,
)
from kctl.compat.java_producer import JavaProducer, java_producer_options
from kctl.compat.perf_numbers import percentiles_of
from kctl.compat.tool_call import ToolCall

SUMMARY = "Measures the time from a producer to a consumer."
_NAMES: Final = ("bootstrap-server", "topic", "num-records", "producer-acks", "record-size")
_OPTIONS: Final = (
    ToolOption("bootstrap-server", "Brokers to ask first. Required.", "HOST:PORT,..."),
    ToolOption("topic", "The topic, made if it is not there. Required.", "TOPIC"),
    ToolOption("num-records", "How many records. Required.", "COUNT"),
    ToolOption("producer-acks", "1 or all. Required.", "ACKS"),
    ToolOption("record-size", "Bytes of a value. Required.", "BYTES"),
    ToolOption("record-key-size", "Bytes of a key; none without it.", "BYTES"),
    ToolOption("num-headers", "Headers of a record; none without it.", "COUNT"),
    ToolOption("record-header-key-size", "Bytes of a header's name.", "BYTES"),
    ToolOption("record-header-size", "Bytes of a header's value.", "BYTES"),
    ToolOption("command-config", "A file of client properties.", "FILE"),
    HELP,
    VERSION,
)
_JAVA_CLASS: Final = "org.apache.kafka.tools.EndToEndLatency"
_POLL_MS: Final = 60_000
_PLACE_MS: Final = 100
_REPORT_EVERY: Final = 1000
_NANOSECONDS: Final = 1_000_000
_LETTERS: Final = bytes(65 + byte % 26 for byte in range(256))
_PERCENTILES: Final = (0.5, 0.99, 0.999)


def run_unparsed(call: ToolCall) -> int:
    """Run kafka-e2e-latency: measure and print latencies; returns the exit code."""
    try:
        given = _parse_arguments_of_four(call) if call.is_four else _parse_arguments_of_three(call)
        if given is None:
            return exits.FAILED
        if given.has("version"):
            call.out.write(f"{call.release.value}\n")
            return exits.OK
        _measure(call, given)
    except TerseFailure as failure:
        call.err.write(f"{failure}\n")
        return exits.FAILED
    except ToolFailure as failure:
        call.flush()
        call.err.write(failure.trace())
        return exits.FAILED
    return exits.OK


def _parse_arguments_of_three(call: ToolCall) -> GivenOptions:
    """Return the positional arguments of 3.9.1 as options; raises TerseFailure."""
    if len(call.arguments) not in (len(_NAMES), len(_NAMES) + 1):
        raise TerseFailure(
            f"USAGE: java {_JAVA_CLASS} broker_list topic num_messages producer_acks "
            "message_size_bytes [optional] properties_file"
        )
    names = (*_NAMES, "command-config")
    return GivenOptions(
        {name: [argument] for name, argument in zip(names, call.arguments, strict=False)}
    )


def _parse_arguments_of_four(call: ToolCall) -> GivenOptions | None:
    """Return the options of 4.3.0, also from positional arguments; None if help was printed.

    Errors: TerseFailure.
    """
    usage = usage_text(call.tool, SUMMARY, _OPTIONS)
    if not call.arguments:
        call.err.write(usage)
        return None
    if not call.arguments[0].startswith("--"):
        if len(call.arguments) not in (len(_NAMES), len(_NAMES) + 1):
            raise TerseFailure(
                "Invalid number of arguments. Expected 5 or 6 positional arguments, but got "
                f"{len(call.arguments)}. Usage: bootstrap-server topic num-records producer-acks "
                "record-size [optional] command-config"
            )
        names = (*_NAMES, "command-config")
        return GivenOptions(
            {name: [argument] for name, argument in zip(names, call.arguments, strict=False)}
        )
    try:
        given = parse_options(_OPTIONS, call.arguments)
    except OptionsRefused as error:
        raise TerseFailure(f"{error}\n{usage}") from error
    if given.has("help"):
        call.err.write(usage)
        return None
    missing = [name for name in _NAMES if not given.has(name)]
    if missing and not given.has("version"):
        raise TerseFailure(f'Missing required argument "[{missing[0]}]"\n{usage}')
    return given


def _measure(call: ToolCall, given: GivenOptions) -> None:
    """Send records one by one, wait until each is consumed, and print the latencies.

    Errors: ToolFailure.
    """
    servers, topic = given.needed("bootstrap-server"), given.needed("topic")
    count = java_number(given.needed("num-records"))
    acks = given.needed("producer-acks")
    if acks not in ("1", "all"):
        raise ToolFailure(
            ILLEGAL_ARGUMENT,
            "Latency testing requires synchronous acknowledgement. Please use 1 or all",
        )
    java_number(given.needed("record-size"))
    properties = call.properties(given.text("command-config"))
    sending = {**properties, "acks": acks, "linger.ms": "0"}
    call.admit(given.names(), servers)
    with call.client(servers, properties) as client, call.client(servers, properties) as other:
        try:
            _create_topic(call, client, topic)
            partitions = _partitions(client, topic)
            settings = consumer_settings("", {**properties, "fetch.max.wait.ms": "500"})
            source = PartitionSource(other, dict.fromkeys(partitions, LATEST), settings)
            while not source.is_placed:
                source.poll(_PLACE_MS)
            producer = JavaProducer(
                client, java_producer_options(sending), _POLL_MS, on_failure=_raise
            )
            times = [
                _measure_one(call, _random_record(client, given), producer, source, index)
                for index in range(count)
            ]
        except ToolFailure:
            raise
        except EngineError as error:
            raise as_java(error) from error
    _print_result(call, times)


def _raise(_record: OutgoingRecord, error: EngineError) -> None:
    """Raise the error of a record that was not stored, which ends the tool."""
    raise as_java(error)


def _create_topic(call: ToolCall, client: KafkaClient, topic: str) -> None:
    """Create the topic with one partition unless it exists; raises the error of the request."""
    if topic in client.view(None).topics:
        return
    call.out.write(
        f'Topic "{topic}" does not exist. Will create topic with 1 partition(s) and replication '
        "factor = 1\n"
    )
    for error in create_topics(client, [NewTopic(topic, 1, 1)]).values():
        if isinstance(error, EngineError):
            raise error


def _partitions(client: KafkaClient, topic: str) -> list[TopicPartition]:
    """Return the partitions of an existing topic."""
    view = client.view_of_existing([topic])
    return [TopicPartition(topic, row.partition) for row in view.topics[topic].partitions]


def _random_record(client: KafkaClient, given: GivenOptions) -> OutgoingRecord:
    """Return a record of random letters with the key, value and headers of the options."""

    def letters(option: str) -> bytes | None:
        """Return as many random letters as the option requests, None for 0 or without it."""
        size = given.number(option, 0, 32)
        return client.entropy.random_bytes(size).translate(_LETTERS) if size > 0 else None

    headers: list[Header] = [
        ((letters("record-header-key-size") or b"").decode(), letters("record-header-size"))
        for _ in range(given.number("num-headers", 0, 32))
    ]
    value = letters("record-size") or b""
    return OutgoingRecord(given.needed("topic"), letters("record-key-size"), value, tuple(headers))


def _measure_one(
    call: ToolCall,
    record: OutgoingRecord,
    producer: JavaProducer,
    source: PartitionSource,
    index: int,
) -> int:
    """Produce a record and wait until it is consumed; return the time in ns.

    Prints every _REPORT_EVERY-th time. Errors: ToolFailure.
    """
    began_ns = perf_counter_ns()
    producer.send(record)
    producer.flush()
    records: list[Record] = []
    while not records:
        if perf_counter_ns() - began_ns > _POLL_MS * _NANOSECONDS:
            raise _not_consumed(
                f"poll() timed out before finding a result (timeout:[{_POLL_MS}ms])"
            )
        records = [row for found in source.poll(_POLL_MS) for row, _ in found.records]
    elapsed_ns = perf_counter_ns() - began_ns
    if len(records) != 1:
        raise _not_consumed(
            f"Only one result was expected during this test. We found [{len(records)}]"
        )
    if records[0].value != record.value or records[0].key != record.key:
        sent, read = (part or b"" for part in (record.value, records[0].value))
        raise _not_consumed(
            f"The message value read [{read!r}] did not match the message value sent [{sent!r}]"
        )
    if index % _REPORT_EVERY == 0:
        call.out.write(f"{index}\t{elapsed_ns / _NANOSECONDS}\n")
        call.flush()
    return elapsed_ns


def _not_consumed(message: str) -> ToolFailure:
    """Return the failure for a record that is not consumed, or differs from the sent one."""
    return ToolFailure("java.lang.RuntimeException", message)


def _print_result(call: ToolCall, times_ns: list[int]) -> None:
    """Print mean and percentiles in ms of latencies in ns."""
    average_ms = sum(times_ns) / max(len(times_ns), 1) / _NANOSECONDS
    median, high, highest = percentiles_of([ns // _NANOSECONDS for ns in times_ns], _PERCENTILES)
    call.out.write(
        f"Avg latency: {average_ms:.4f} ms\n"
        f"Percentiles: 50th = {median}, 99th = {high}, 99.9th = {highest}\n"
    )
