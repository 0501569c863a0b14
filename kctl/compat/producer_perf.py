"""`kafka-producer-perf-test`: sends records at a given rate, and prints rates and latencies.

Source: ProducerPerformance, ThroughputThrottler of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.producing import OutgoingRecord
from engine.client.transaction_session import TransactionSession
from engine.errors import EngineError
from engine.host.ports import FileMissing
from kctl import exits
from kctl.compat.java_admin import ILLEGAL_ARGUMENT
from kctl.compat.java_commands import Arity, Command, CommandOption, NumberType
from kctl.compat.java_failures import ToolFailure, as_java
from kctl.compat.java_numbers import java_number
from kctl.compat.java_options import GivenOptions
from kctl.compat.java_pairs import parse_pairs
from kctl.compat.java_producer import (
    CONFIG_EXCEPTION,
    JavaProducer,
    java_producer_options,
    producer_times,
)
from kctl.compat.java_split import java_split
from kctl.compat.perf_numbers import LatencyStats, Throttle
from kctl.compat.releases import Release
from kctl.compat.tool_call import ToolCall

SUMMARY = "Measures how fast records are produced."
_OPTIONS: Final = (
    CommandOption("topic", "", "Where the records go.", is_required=True),
    CommandOption("num-records", "", "How many records.", is_required=True, number=NumberType.Long),
    CommandOption("payload-delimiter", "", "Between records of the file; a line break."),
    CommandOption(
        "throughput", "", "Records a second; -1 for as many as can be.", is_required=True
    ),
    CommandOption("producer-props", "", "Properties of the producer.", takes=Arity.SEVERAL),
    CommandOption("producer.config", "", "A file of properties of the producer."),
    CommandOption("print-metrics", "", "Not served.", takes=Arity.NOTHING),
    CommandOption("transactional-id", "", "The id of the transactions."),
    CommandOption("transaction-duration-ms", "", "When to commit.", number=NumberType.Long),
    CommandOption("record-size", "", "Bytes of a record.", number=NumberType.Integer),
    CommandOption("payload-file", "", "A file of records, picked at random."),
    CommandOption("payload-monotonic", "", "Records 0, 1, ...", takes=Arity.NOTHING),
)
_FOUR: Final = (
    CommandOption("bootstrap-server", "", "Brokers to ask first."),
    CommandOption("command-property", "", "As --producer-props.", takes=Arity.SEVERAL),
    CommandOption("command-config", "", "As --producer.config."),
    CommandOption("warmup-records", "", "Records that are counted apart.", number=NumberType.Long),
    CommandOption(
        "reporting-interval", "", "Milliseconds between lines; 5000.", number=NumberType.Long
    ),
)
_PAYLOADS: Final = ("record-size", "payload-file", "payload-monotonic")
_NAMES: Final = {
    Release.V3_9: "producer-performance",
    Release.V4_3: "kafka-producer-perf-test",
}
_TRANSACTIONAL_ID: Final = "performance-producer-default-transactional-id"
_DURATION_MS: Final = 3_000
_INTERVAL_MS: Final = 5_000
_TIMEOUT_MS: Final = "60000"
#: Table that maps each byte to a capital letter.
_LETTERS: Final = bytes(65 + byte % 26 for byte in range(256))


def arguments(release: Release) -> Command:
    """Return the options that kafka-producer-perf-test has in a release."""
    options = _OPTIONS + _FOUR if release.is_four else _OPTIONS
    return Command(_NAMES[release], SUMMARY, options, _PAYLOADS)


def run_arguments(call: ToolCall, given: GivenOptions) -> int:
    """Run kafka-producer-perf-test: send records, and print the rates; returns the exit code.

    Errors: ToolFailure.
    """
    if given.has("print-metrics"):
        raise ToolFailure(ILLEGAL_ARGUMENT, "--print-metrics is not served here")
    count = given.number("num-records", 0)
    rate = _rate(given.needed("throughput"))
    payload = _Payloads(call, given)
    properties = _producer_properties(call, given)
    servers = given.text("bootstrap-server") or properties.get("bootstrap.servers")
    if not servers:
        raise ToolFailure(
            CONFIG_EXCEPTION,
            'Missing required configuration "bootstrap.servers" which has no default value.',
        )
    transactional_id, duration_ms = _transaction_options(call, given, properties)
    options = java_producer_options(properties)
    times = producer_times(properties)
    call.admit(given.names(), servers)
    with call.client(servers, properties, timeout_s=times.delivery_ms / 1000) as client:
        transaction = None
        if transactional_id is not None:
            timeout_ms = java_number(properties.get("transaction.timeout.ms", _TIMEOUT_MS))
            transaction = TransactionSession(client, transactional_id, timeout_ms)
        stats = _Stats(call, client, given, count)
        producer = JavaProducer(
            client,
            options,
            times.max_block_ms,
            on_failure=stats.on_failure,
            on_stored=stats.on_stored,
            transaction=transaction,
        )
        pace = _Pace(Throttle(rate, client.clock.wall_ms()), transaction, duration_ms)
        _send_all(client, producer, given, payload, pace, stats)
        stats.print_total()
    return exits.OK


def _producer_properties(call: ToolCall, given: GivenOptions) -> dict[str, str]:
    """Return the properties of the tool's producer: pairs override a file.

    Prints a warning for options that 4.3.0 has renamed. Errors: ToolFailure for a malformed pair.
    """
    if call.is_four:
        for old, new in (("producer-props", "property"), ("producer.config", "config")):
            if given.has(old):
                call.out.write(
                    f"Option --{old} has been deprecated and will be removed in a future version. "
                    f"Use --command-{new} instead.\n"
                )
    path = given.text("command-config") or given.text("producer.config")
    pairs = [*given.texts("producer-props"), *given.texts("command-property")]
    for pair in pairs:
        if len(java_split(pair, "=")) != 2:
            raise ToolFailure(ILLEGAL_ARGUMENT, f"Invalid property: {pair}")
    default = {"client.id": "perf-producer-client"}
    return default | call.properties(path) | parse_pairs(pairs)


def _transaction_options(
    call: ToolCall, given: GivenOptions, properties: dict[str, str]
) -> tuple[str | None, int]:
    """Return the transactional id, and the duration of transactions in ms.

    The id is None without transactions.
    """
    duration_ms = given.number("transaction-duration-ms", 0)
    transactional_id = given.text("transactional-id")
    if call.is_four:
        transactional_id = transactional_id or properties.get("transactional.id")
        if transactional_id is not None and not given.has("transaction-duration-ms"):
            duration_ms = _DURATION_MS
    if duration_ms <= 0:
        return None, 0
    return transactional_id or _TRANSACTIONAL_ID, duration_ms


class _Payloads:
    """Generates the values of records: random letters, random lines of a file, or numbers."""

    def __init__(self, call: ToolCall, given: GivenOptions) -> None:
        """Create the source of record values, by --record-size, --payload-file and so on.

        A payload file is read now. Errors: ToolFailure.
        """
        self._size = given.number("record-size", 0)
        self._is_monotonic = given.has("payload-monotonic")
        #: Payloads of the file, one of which is chosen per record; empty without a file.
        self._lines: Sequence[bytes] = ()
        if given.has("record-size") and self._size <= 0:
            raise ToolFailure(ILLEGAL_ARGUMENT, "--record-size should be greater than zero.")
        path = given.text("payload-file")
        if path is not None:
            self._lines = self._read(call, path, given.text("payload-delimiter"))

    def _read(self, call: ToolCall, path: str, delimiter: str | None) -> list[bytes]:
        """Read the payloads of a file; raises ToolFailure if it is missing or empty."""
        call.out.write(f"Reading payloads from: {os.path.abspath(path)}\n")
        call.flush()
        try:
            content = call.files.read_bytes(path)
        except FileMissing:
            content = b""
        if not content:
            raise ToolFailure(ILLEGAL_ARGUMENT, "File does not exist or empty file provided.")
        text = content.decode("utf-8", "replace")
        separator = "\n" if delimiter in (None, "\\n") else str(delimiter)
        lines = [line.encode() for line in java_split(text, separator)]
        pair = "records" if call.is_four else "messages"
        call.out.write(f"Number of {pair} read: {len(lines)}\n")
        return lines

    def value(self, client: KafkaClient, index: int) -> bytes:
        """Return the value of record number `index`.

        It is the number, a line of the file chosen at random, or random letters.
        """
        if self._is_monotonic:
            return b"%d" % index
        if self._lines:
            return self._lines[client.entropy.random_below(len(self._lines))]
        return client.entropy.random_bytes(self._size).translate(_LETTERS)


class _Stats:
    """Counts stored records and prints rates, separately for records after the warm-up."""

    def __init__(
        self, call: ToolCall, client: KafkaClient, given: GivenOptions, count: int
    ) -> None:
        """Create the statistics of a run with `count` records, those of the warm-up included."""
        self._call = call
        self._clock = client.clock
        self._interval_ms = given.number("reporting-interval", _INTERVAL_MS)
        self._warmup = given.number("warmup-records", 0)
        self._count = count
        #: Statistics of all records, and of records after the warm-up (None before its end).
        self._all = LatencyStats(call.out, count, self._interval_ms, self._clock.wall_ms())
        self._steady: LatencyStats | None = None

    def on_sent(self, index: int) -> None:
        """Start separate statistics once `index` records, those of the warm-up, are sent."""
        if self._steady is None and 0 < self._warmup == index:
            self._call.out.write("In steady state.\n")
            self._all.is_silent = True
            self._steady = LatencyStats(
                self._call.out,
                self._count - self._warmup,
                self._interval_ms,
                self._clock.wall_ms(),
            )

    def on_stored(self, record: OutgoingRecord, _partition: int, _offset: int) -> None:
        """Count a stored record, and its latency since it was created."""
        now_ms = self._clock.wall_ms()
        latency_ms = now_ms - (record.timestamp_ms or now_ms)
        size = len(record.value or b"")
        self._all.record(latency_ms, size, now_ms)
        if self._steady is not None:
            self._steady.record(latency_ms, size, now_ms)

    def on_failure(self, _record: OutgoingRecord, error: EngineError) -> None:
        """Print why a record is not stored."""
        self._call.err.write(as_java(error).trace())

    def print_total(self) -> None:
        """Print the totals of all records, and of those after the warm-up."""
        now_ms = self._clock.wall_ms()
        self._all.print_total(now_ms)
        if self._steady is not None:
            self._steady.print_total(now_ms, "steady state ")


class _Pace(NamedTuple):
    """The throttle of records, and the transaction (or None) with its duration."""

    throttle: Throttle
    transaction: TransactionSession | None
    duration_ms: int


def _rate(text: str) -> float:
    """Parse --throughput into records per second; raises ToolFailure."""
    try:
        return float(text)
    except ValueError:
        message = f"argument --throughput: could not convert '{text}' to Double"
        raise ToolFailure(ILLEGAL_ARGUMENT, message) from None


def _send_all(
    client: KafkaClient,
    producer: JavaProducer,
    given: GivenOptions,
    payload: _Payloads,
    pace: _Pace,
    stats: _Stats,
) -> None:
    """Send all records at the throttled rate, within transactions if there are any.

    A transaction is committed after its duration.
    """
    clock = client.clock
    throttle, transaction, duration_ms = pace
    topic = given.needed("topic")
    began_ms: int | None = None
    polled_ms = clock.monotonic_ms()
    for index in range(given.number("num-records", 0)):
        now_ms = clock.wall_ms()
        if began_ms is None:
            began_ms = now_ms
        value = payload.value(client, index)
        producer.send(OutgoingRecord(topic, None, value, (), now_ms))
        stats.on_sent(index + 1)
        if transaction is not None and duration_ms <= now_ms - began_ms:
            producer.flush()
            transaction.end(commits=True)
            began_ms = None
        # Poll at most once a millisecond: a poll for each record would slow the sender down.
        if clock.monotonic_ms() != polled_ms:
            producer.poll(0)
            polled_ms = clock.monotonic_ms()
        while (pause_ms := throttle.pause_ms(index, clock.wall_ms())) > 0:
            producer.poll(0)
            client.connections.pause(min(pause_ms, _PAUSE_MS))
            producer.poll(0)
    producer.flush()
    if transaction is not None:
        transaction.end(commits=True)


_PAUSE_MS: Final = 50
