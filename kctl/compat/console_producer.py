"""`kafka-console-producer`: sends the lines of standard input as records.

A record that cannot be stored is logged; the tool continues, and exits with 0. A malformed line
ends it with exit code 1 after the earlier records are sent.

Source: ConsoleProducer of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from engine.client.producing import OutgoingRecord
from engine.errors import EngineError
from kctl import exits
from kctl.compat.java_failures import ToolFailure, as_java
from kctl.compat.java_log import log_line
from kctl.compat.java_options import (
    HELP,
    VERSION,
    GivenOptions,
    OptionsRefused,
    ToolOption,
    refused,
    require,
)
from kctl.compat.java_pairs import merge_options, parse_pairs
from kctl.compat.java_producer import JavaProducer, java_producer_options, producer_times
from kctl.compat.line_reader import LineReader, parse_line_format
from kctl.compat.releases import Release
from kctl.compat.tool_call import ToolCall
from kctl.input_lines import input_lines
from kctl.interrupts import HeldInterrupts, deferred_interrupts

SUMMARY = "Produces each line of standard input as a record."
_BOTH: Final = (
    ToolOption("topic", "Where the records go. Required.", "TOPIC"),
    ToolOption("bootstrap-server", "Brokers to ask first.", "HOST:PORT,..."),
    ToolOption("producer-property", "A property of the producer.", "KEY=VALUE"),
    ToolOption("producer.config", "A file of properties of the producer.", "FILE"),
    ToolOption("property", "A property of the reader, as parse.key=true.", "KEY=VALUE"),
    ToolOption("reader-config", "A file of properties of the reader.", "FILE"),
    ToolOption("line-reader", "The class that reads lines; the default one alone.", "CLASS"),
    ToolOption("compression-codec", "none, gzip (without a value), ...", "CODEC", True),
    ToolOption("batch-size", "batch.size; 16384.", "BYTES"),
    ToolOption("max-partition-memory-bytes", "batch.size, before --batch-size.", "BYTES"),
    ToolOption("timeout", "linger.ms; 1000.", "MS"),
    ToolOption("request-required-acks", "acks; -1.", "ACKS"),
    ToolOption("request-timeout-ms", "request.timeout.ms; 1500.", "MS"),
    ToolOption("retry-backoff-ms", "retry.backoff.ms; 100.", "MS"),
    ToolOption("max-block-ms", "How long a topic is waited for; 60000.", "MS"),
    ToolOption("sync", "Wait for each record to be stored."),
    ToolOption("message-send-max-retries", "Changes nothing here.", "COUNT"),
    ToolOption("metadata-expiry-ms", "Changes nothing here.", "MS"),
    ToolOption("max-memory-bytes", "Changes nothing here.", "BYTES"),
    ToolOption("socket-buffer-size", "Changes nothing here.", "BYTES"),
    HELP,
    VERSION,
)
_THREE: Final = (ToolOption("broker-list", "As --bootstrap-server.", "HOST:PORT,..."),)
_FOUR: Final = (
    ToolOption("command-property", "As --producer-property.", "KEY=VALUE"),
    ToolOption("command-config", "As --producer.config.", "FILE"),
    ToolOption("reader-property", "As --property.", "KEY=VALUE"),
)
#: Property and default of each option.
_MERGED: Final = {
    "timeout": ("linger.ms", "1000"),
    "request-required-acks": ("acks", "-1"),
    "request-timeout-ms": ("request.timeout.ms", "1500"),
    "retry-backoff-ms": ("retry.backoff.ms", "100"),
    "max-block-ms": ("max.block.ms", "60000"),
}
_NUMBERS: Final = (
    "batch-size",
    "max-partition-memory-bytes",
    "timeout",
    "request-timeout-ms",
    "retry-backoff-ms",
    "max-block-ms",
    "message-send-max-retries",
    "metadata-expiry-ms",
    "max-memory-bytes",
    "socket-buffer-size",
)
_READERS: Final = {
    Release.V3_9: "kafka.tools.ConsoleProducer$LineMessageReader",
    Release.V4_3: "org.apache.kafka.tools.LineMessageReader",
}
_CALLBACK: Final = "org.apache.kafka.clients.producer.internals.ErrorLoggingCallback"


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options that kafka-console-producer has in a release."""
    return _BOTH + (_FOUR if release.is_four else _THREE)


def run(call: ToolCall, given: GivenOptions) -> int:
    """Run kafka-console-producer: produce the records of stdin; returns the exit code."""
    if not given.has("bootstrap-server") and not given.has("broker-list") and not call.is_four:
        raise OptionsRefused("Missing required option(s) [bootstrap-server]")
    require(given, "topic")
    if call.is_four:
        require(given, "bootstrap-server")
        _check_renamed_options(given)
    servers = given.text("bootstrap-server") or given.text("broker-list") or ""
    topic = given.needed("topic")
    for name in _NUMBERS:
        given.number(name, 0)
    if call.is_four:
        _warn_of_old_names(call, given)
    try:
        properties = _producer_properties(call, given)
        reader = LineReader(topic, parse_line_format(_reader_properties(call, given)))
        sending = java_producer_options(properties)
        times = producer_times(properties)
    except ToolFailure as failure:
        call.err.write(failure.trace())
        return exits.FAILED
    call.admit(given.names(), servers)
    with call.client(servers, properties, timeout_s=times.delivery_ms / 1000) as client:
        failed = _Failures(call, is_synchronous=given.has("sync"))
        producer = JavaProducer(client, sending, times.max_block_ms, on_failure=failed.log_failure)
        with deferred_interrupts() as interrupts:
            return _produce_lines(call, producer, reader, interrupts, failed)


def _check_renamed_options(given: GivenOptions) -> None:
    """Raise OptionsRefused if an option and its old name are given. Source: 4.3.0."""
    for old, new in (
        ("property", "reader-property"),
        ("producer-property", "command-property"),
        ("producer.config", "command-config"),
    ):
        if given.has(old) and given.has(new):
            raise refused(f'Option "[{new}]" can\'t be used with option "[{old}]"')


def _warn_of_old_names(call: ToolCall, given: GivenOptions) -> None:
    """Print a warning for each given option name that release 4 deprecates."""
    for old, new in (
        ("property", "reader-property"),
        ("producer-property", "command-property"),
        ("producer.config", "command-config"),
    ):
        if given.has(old):
            call.out.write(
                f"Warning: --{old} is deprecated and will be removed in a future version. "
                f"Use --{new} instead.\n"
            )
    if given.has("max-partition-memory-bytes"):
        call.out.write(
            "Warning: --max-partition-memory-bytes is deprecated and will be removed in "
            "Apache Kafka 5.0. Use --batch-size instead.\n"
        )


def _producer_properties(call: ToolCall, given: GivenOptions) -> dict[str, str]:
    """Return the properties of kafka-console-producer's producer.

    Other options override pairs, which override a file.
    """
    path = given.text("command-config") or given.text("producer.config")
    pairs = [*given.texts("producer-property"), *given.texts("command-property")]
    found = {"client.id": "console-producer", **call.properties(path), **parse_pairs(pairs)}
    if given.has("compression-codec"):
        found["compression.type"] = given.text("compression-codec") or "gzip"
    else:
        found["compression.type"] = "none"
    found = merge_options(found, given, _MERGED)
    if given.has("batch-size"):
        found["batch.size"] = given.needed("batch-size")
    if given.has("max-partition-memory-bytes"):
        found["batch.size"] = given.needed("max-partition-memory-bytes")
    return found


def _reader_properties(call: ToolCall, given: GivenOptions) -> dict[str, str]:
    """Return the line reader's properties; raises ToolFailure for an unknown reader class."""
    name = given.text("line-reader")
    if name is not None and name != _READERS[call.release]:
        raise ToolFailure("java.lang.ClassNotFoundException", name)
    found = call.properties(given.text("reader-config"))
    return found | parse_pairs([*given.texts("property"), *given.texts("reader-property")])


class _Failures:
    """Logs records that are not stored; with a synchronous producer the first one is raised."""

    def __init__(self, call: ToolCall, *, is_synchronous: bool) -> None:
        self._call = call
        self._is_synchronous = is_synchronous

    @property
    def is_synchronous(self) -> bool:
        """Return True with --sync: the producer waits for each record, and ends at a failure."""
        return self._is_synchronous

    def log_failure(self, record: OutgoingRecord, error: EngineError) -> None:
        """Log a record that is not stored; with --sync raise ToolFailure, which ends the tool."""
        failure = as_java(error)
        if self._is_synchronous:
            text = f"{failure.java_class}: {failure}"
            raise ToolFailure("java.util.concurrent.ExecutionException", text, text)
        key, value = (
            "null" if part is None else f"{len(part)} bytes" for part in (record.key, record.value)
        )
        text = (
            f"Error when sending message to topic {record.topic} with key: {key}, "
            f"value: {value} with error:"
        )
        log_line(self._call.err, "ERROR", text, _CALLBACK)
        self._call.err.write(failure.trace())


def _produce_lines(
    call: ToolCall,
    producer: JavaProducer,
    reader: LineReader,
    interrupts: HeldInterrupts,
    failures: _Failures,
) -> int:
    """Send each line of stdin until its end, prompting on a console; returns the exit code."""
    is_console = call.stdin.isatty() and call.out.isatty()
    try:
        _prompt(call, is_console=is_console)
        for line in _read_lines(call, producer, interrupts):
            producer.send(reader.parse_line(line))
            if failures.is_synchronous:
                producer.flush()
            _prompt(call, is_console=is_console)
    except ToolFailure as failure:
        call.err.write(failure.trace())
        _flush_unsent(producer)
        return exits.FAILED
    except KeyboardInterrupt:
        producer.flush()
        raise
    producer.flush()
    return exits.OK


def _flush_unsent(producer: JavaProducer) -> None:
    """Send the records read before a failure; their own errors are ignored."""
    from contextlib import suppress

    with suppress(ToolFailure):
        producer.flush()


def _prompt(call: ToolCall, *, is_console: bool) -> None:
    """Print the prompt if input and output are a terminal."""
    if is_console:
        call.out.write(">")
        call.out.flush()


def _read_lines(
    call: ToolCall, producer: JavaProducer, interrupts: HeldInterrupts
) -> Iterator[bytes]:
    """Yield the lines of stdin, split like Java's readLine; the producer sends in between."""

    def patience_ms() -> int | None:
        """Return how long to wait for input in ms: until a batch of the producer is due.

        None, without a limit, if there is nothing to send; 0 while requests are in flight.
        """
        due_ms = producer.due_in_ms()
        if due_ms is not None:
            return due_ms
        return None if producer.is_idle else 0

    for chunk in input_lines(call.stdin, interrupts, patience_ms):
        if chunk is None:
            producer.poll(_WAIT_MS)
            continue
        for line in chunk.lines:
            yield from java_lines(line)
        producer.poll(0)


def java_lines(line: bytes) -> list[bytes]:
    """Split a text without line feeds at carriage returns, which end lines in Java as well."""
    return line.removesuffix(b"\r").split(b"\r")


_WAIT_MS: Final = 100
