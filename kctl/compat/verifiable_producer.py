"""`kafka-verifiable-producer`: sends numbers, and prints a JSON line for each.

Source: VerifiableProducer of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.producing import OutgoingRecord
from engine.errors import EngineError
from engine.wire.json_form import JsonNode, json_text
from kctl import exits
from kctl.compat.java_commands import Command, CommandOption, NumberType, refuse
from kctl.compat.java_failures import ToolFailure, as_java
from kctl.compat.java_options import GivenOptions
from kctl.compat.java_producer import JavaProducer, java_producer_options, producer_times
from kctl.compat.perf_numbers import Throttle
from kctl.compat.releases import Release
from kctl.compat.tool_call import ToolCall
from kctl.exits import Terminated

SUMMARY = "Produces numbers, and reports each in JSON."
_OPTIONS: Final = (
    CommandOption("topic", "", "Where the records go.", is_required=True),
    CommandOption("max-messages", "", "How many; -1 for no end.", number=NumberType.Integer),
    CommandOption(
        "throughput", "", "Records a second; -1 for as many as can be.", number=NumberType.Integer
    ),
    CommandOption("acks", "", "acks; -1.", number=NumberType.Integer, choices=("0", "1", "-1")),
    CommandOption("producer.config", "", "A file of properties of the producer."),
    CommandOption(
        "message-create-time", "", "The time of the first record.", number=NumberType.Long
    ),
    CommandOption("value-prefix", "", "A number before each value.", number=NumberType.Integer),
    CommandOption(
        "repeating-keys", "", "Keys 0 to N - 1, again and again.", number=NumberType.Integer
    ),
    CommandOption("bootstrap-server", "", "Brokers to ask first."),
)
_THREE: Final = (CommandOption("broker-list", "", "As --bootstrap-server."),)
_FOUR: Final = (CommandOption("command-config", "", "As --producer.config."),)
_SERVERS: Final = ("bootstrap-server", "broker-list")
_PAUSE_MS: Final = 50


def arguments(release: Release) -> Command:
    """Return the options that kafka-verifiable-producer has in a release."""
    if release.is_four:
        return Command("verifiable-producer", SUMMARY, _OPTIONS + _FOUR, _SERVERS[:1])
    return Command("verifiable-producer", SUMMARY, _OPTIONS + _THREE, _SERVERS)


def run_arguments(call: ToolCall, given: GivenOptions) -> int:
    """Run kafka-verifiable-producer: send numbers, and print events as JSON.

    Returns the exit code.
    """
    if call.is_four and given.has("producer.config"):
        call.out.write(
            "Option --producer.config has been deprecated and will be removed in a future "
            "version. Use --command-config instead.\n"
        )
    servers = given.text("bootstrap-server") or given.needed("broker-list")
    path = given.text("command-config") or given.text("producer.config")
    properties = {
        **properties_of_file(arguments(call.release), call, path),
        "acks": str(given.number("acks", -1)),
    }
    properties.setdefault("client.id", "verifiable-producer")
    options = java_producer_options(properties)
    times = producer_times(properties)
    call.admit(given.names(), servers)
    with call.client(servers, properties, timeout_s=times.delivery_ms / 1000) as client:
        sending = _Sending(call, client, given)
        producer = JavaProducer(
            client,
            options,
            times.max_block_ms,
            on_failure=sending.on_failure,
            on_stored=sending.on_stored,
        )
        return sending.send_all(producer)


class _Sending:
    """Sends records and prints events."""

    def __init__(self, call: ToolCall, client: KafkaClient, given: GivenOptions) -> None:
        """Create a sender with the options of the call; the rate counts from now."""
        self._call = call
        self._client = client
        self._topic = given.needed("topic")
        #: Number of records to send; negative for no end.
        self._max = given.number("max-messages", -1)
        self._rate = given.number("throughput", -1)
        self._prefix = given.text("value-prefix")
        self._key_count = given.number("repeating-keys", 0)
        #: Timestamp of the first record; negative for the current time.
        self._create_time_ms = given.number("message-create-time", -1)
        self._began_ms = client.clock.wall_ms()
        #: Number of sent, and of acknowledged records.
        self._sent = self._stored = 0

    def send_all(self, producer: JavaProducer) -> int:
        """Send until --max-messages or a signal, print totals; returns the exit code."""
        self._print("startup_complete", {})
        code = exits.OK
        try:
            self._send_records(producer)
        except KeyboardInterrupt as interrupt:
            code = exits.TERMINATED if isinstance(interrupt, Terminated) else exits.INTERRUPTED
        producer.flush()
        self._print("shutdown_complete", {})
        elapsed_ms = max(self._client.clock.wall_ms() - self._began_ms, 1)
        self._print(
            "tool_data",
            {
                "sent": self._sent,
                "acked": self._stored,
                "target_throughput": self._rate,
                "avg_throughput": 1000 * self._stored / elapsed_ms,
            },
        )
        return code

    def _send_records(self, producer: JavaProducer) -> None:
        """Send records at the requested rate; without an end if --max-messages is negative."""
        clock = self._client.clock
        throttle = Throttle(self._rate, clock.wall_ms())
        polled_ms = clock.monotonic_ms()
        while self._max < 0 or self._sent < self._max:
            producer.send(self._next_record())
            self._sent += 1
            if clock.monotonic_ms() != polled_ms:
                producer.poll(0)
                polled_ms = clock.monotonic_ms()
            while (pause_ms := throttle.pause_ms(self._sent - 1, clock.wall_ms())) > 0:
                producer.poll(0)
                self._client.connections.pause(min(pause_ms, _PAUSE_MS))
                producer.poll(0)

    def _next_record(self) -> OutgoingRecord:
        """Return the next record: its value is its number, after the prefix if one is given."""
        value = str(self._sent)
        if self._prefix is not None:
            value = f"{int(self._prefix)}.{value}"
        key = None
        if self._key_count > 0:
            key = str(self._sent % self._key_count).encode()
        timestamp_ms = None
        if self._create_time_ms >= 0:
            timestamp_ms = self._create_time_ms + self._client.clock.wall_ms() - self._began_ms
        return OutgoingRecord(self._topic, key, value.encode(), (), timestamp_ms)

    def on_stored(self, record: OutgoingRecord, partition: int, offset: int) -> None:
        """Count a stored record, and print the event producer_send_success."""
        self._stored += 1
        event = {**_shown(record), "offset": offset, "partition": partition, "topic": record.topic}
        self._print("producer_send_success", event)

    def on_failure(self, record: OutgoingRecord, error: EngineError) -> None:
        """Print the event producer_send_error for a record that is not stored."""
        failure = as_java(error)
        self._print(
            "producer_send_error",
            {
                "topic": record.topic,
                **_shown(record),
                "exception": f"class {failure.java_class}",
                "message": str(failure),
            },
        )

    def _print(self, name: str, event: dict[str, JsonNode]) -> None:
        """Print an event as a JSON line."""
        print_event(self._call, self._client, name, event)


def _shown(record: OutgoingRecord) -> dict[str, JsonNode]:
    """Return key and value of a record as text for an event."""
    key = None if record.key is None else record.key.decode()
    return {"key": key, "value": (record.value or b"").decode()}


def properties_of_file(command: Command, call: ToolCall, path: str | None) -> dict[str, str]:
    """Return the properties of a file, empty for None.

    Errors: CommandRefused with the usage if it cannot be read.
    """
    try:
        return call.properties(path)
    except ToolFailure as failure:
        refuse(command, str(failure))


def print_event(call: ToolCall, client: KafkaClient, name: str, event: dict[str, JsonNode]) -> None:
    """Print an event as a JSON line with the current time."""
    document = {"timestamp": client.clock.wall_ms(), "name": name, **event}
    call.out.write(f"{json_text(document)}\n")
    call.out.flush()
