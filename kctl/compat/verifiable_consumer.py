"""`kafka-verifiable-consumer`: consumes in a group, and prints a JSON line for each event.

Source: VerifiableConsumer of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.errors import TimedOut, Unreachable
from engine.client.fetching import ConsumedRecords
from engine.client.group_protocol import CLASSIC, CONSUMER
from engine.errors import EngineError
from engine.java_text import decode_java_utf8
from engine.model import TopicPartition
from engine.wire.json_form import JsonNode
from kctl import exits
from kctl.compat.java_admin import ILLEGAL_ARGUMENT
from kctl.compat.java_commands import Arity, Command, CommandOption, NumberType
from kctl.compat.java_consumer import GroupSource, consumer_settings
from kctl.compat.java_failures import ToolFailure, as_java
from kctl.compat.java_log import log_line
from kctl.compat.java_options import GivenOptions
from kctl.compat.releases import Release
from kctl.compat.tool_call import ToolCall
from kctl.compat.verifiable_producer import print_event, properties_of_file
from kctl.exits import Terminated

SUMMARY = "Consumes in a group, and reports each event in JSON."
_OPTIONS: Final = (
    CommandOption("topic", "", "What to consume.", is_required=True),
    CommandOption("group-protocol", "", "classic or consumer; classic."),
    CommandOption("group-remote-assignor", "", "The broker's assignor; of consumer."),
    CommandOption("group-id", "", "The group.", is_required=True),
    CommandOption("group-instance-id", "", "The id of a static member."),
    CommandOption("max-messages", "", "How many; -1 for no end.", number=NumberType.Integer),
    CommandOption(
        "session-timeout",
        "",
        "Of classic; 30000.",
        number=NumberType.Integer,
    ),
    CommandOption("verbose", "", "Tell of each record.", takes=Arity.NOTHING),
    CommandOption("enable-autocommit", "", "Commit from time to time.", takes=Arity.NOTHING),
    CommandOption("reset-policy", "", "earliest, latest or none; earliest."),
    CommandOption("assignment-strategy", "", "Of classic, a class; range."),
    CommandOption("consumer.config", "", "A file of properties of the consumer."),
    CommandOption("bootstrap-server", "", "Brokers to ask first."),
)
_THREE: Final = (CommandOption("broker-list", "", "As --bootstrap-server."),)
_FOUR: Final = (CommandOption("command-config", "", "As --consumer.config."),)
_SERVERS: Final = ("bootstrap-server", "broker-list")
_RANGE: Final = "org.apache.kafka.clients.consumer.RangeAssignor"
_WAIT_MS: Final = 1_000
_LOGGER: Final = "org.apache.kafka.tools.VerifiableConsumer"
_FAILED: Final = "Error during processing, terminating consumer process: "


def arguments(release: Release) -> Command:
    """Return the options that kafka-verifiable-consumer has in a release."""
    if release.is_four:
        return Command("verifiable-consumer", SUMMARY, _OPTIONS + _FOUR, _SERVERS[:1])
    return Command("verifiable-consumer", SUMMARY, _OPTIONS + _THREE, _SERVERS)


def run_arguments(call: ToolCall, given: GivenOptions) -> int:
    """Run kafka-verifiable-consumer: consume, and print events as JSON; returns the exit code."""
    if call.is_four and given.has("consumer.config"):
        call.out.write(
            "Option --consumer.config has been deprecated and will be removed in a future "
            "version. Use --command-config instead.\n"
        )
    servers = given.text("bootstrap-server") or given.needed("broker-list")
    properties = _consumer_properties(call, given)
    settings = consumer_settings(given.needed("group-id"), properties)
    call.admit(given.names(), servers)
    with call.client(servers, properties) as client:
        # Commit here after each poll, unless auto-commit is enabled.
        events = _Events(call, client, given)
        source = GroupSource(client, settings, topic=given.needed("topic"))
        source.consumer.on_assigned = events.on_assigned
        source.consumer.on_joined = events.on_joined
        return events.consume_all(source, commits=not settings.commits)


def _consumer_properties(call: ToolCall, given: GivenOptions) -> dict[str, str]:
    """Return the properties of the tool's consumer: options override a file."""
    path = given.text("command-config") or given.text("consumer.config")
    found = properties_of_file(arguments(call.release), call, path)
    protocol = _group_protocol(call, given)
    if protocol == CLASSIC:
        found |= {
            "session.timeout.ms": str(given.number("session-timeout", 30_000)),
            "partition.assignment.strategy": given.text("assignment-strategy") or _RANGE,
        }
    elif given.has("group-remote-assignor"):
        found["group.remote.assignor"] = given.needed("group-remote-assignor")
    found |= {
        "group.protocol": protocol,
        "auto.offset.reset": given.text("reset-policy") or "earliest",
        "enable.auto.commit": "true" if given.has("enable-autocommit") else "false",
    }
    if given.has("group-instance-id"):
        found["group.instance.id"] = given.needed("group-instance-id")
    found.setdefault("client.id", f"consumer-{given.needed('group-id')}-1")
    return found


def _group_protocol(call: ToolCall, given: GivenOptions) -> str:
    """Return the group protocol; in 3.9.1 every value but `consumer` means classic."""
    text = given.text("group-protocol") or CLASSIC
    protocol = text.lower()
    if protocol in (CLASSIC, CONSUMER):
        return protocol
    if call.is_four:
        raise ToolFailure(
            ILLEGAL_ARGUMENT,
            f"No enum constant org.apache.kafka.clients.consumer.GroupProtocol.{text.upper()}",
        )
    return CLASSIC


class _Events:
    """Consumes records and prints events."""

    def __init__(self, call: ToolCall, client: KafkaClient, given: GivenOptions) -> None:
        """Create the consumer's loop with the options of the call; nothing is polled yet."""
        self._call = call
        self._client = client
        #: Number of records after which the tool ends; negative for no end.
        self._max = given.number("max-messages", -1)
        strategies = given.text("assignment-strategy") or _RANGE
        #: Whether the assignor is cooperative.
        self._is_cooperative = "Cooperative" in strategies
        self._is_verbose = given.has("verbose")
        self._count = 0
        #: Partitions of the last assignment.
        self._assigned: Sequence[TopicPartition] = ()
        #: Whether an eager member got no partition at the last join; then a revocation of none is
        #: printed as well.
        self._is_idle = False

    def _print(self, name: str, event: dict[str, JsonNode]) -> None:
        """Print an event as a JSON line."""
        print_event(self._call, self._client, name, event)

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Print assigned partitions, or revoked ones if `partitions` is empty.

        The new assignment is stored before it is printed, in case of a signal in between.
        """
        before, was_idle = self._assigned, self._is_idle
        self._assigned, self._is_idle = partitions, False
        if partitions:
            self._print("partitions_assigned", {"partitions": _named(partitions)})
        elif before or was_idle:
            self._print("partitions_revoked", {"partitions": _named(before)})

    def on_joined(self, partitions: Sequence[TopicPartition]) -> None:
        """Print an assignment without partitions; called once the member has joined.

        When it rejoins, an eager member also prints the revocation of none.
        """
        if not partitions:
            self._is_idle = not self._is_cooperative
            self._print("partitions_assigned", {"partitions": []})

    def consume_all(self, source: GroupSource, *, commits: bool) -> int:
        """Consume until the requested number of records or a signal; returns the exit code."""
        self._print("startup_complete", {})
        code = exits.OK
        try:
            while not self._is_done:
                self._consume_once(source, commits=commits)
        except KeyboardInterrupt as interrupt:
            code = exits.TERMINATED if isinstance(interrupt, Terminated) else exits.INTERRUPTED
            self._print_of_request()
        except EngineError as error:
            # As in Java's tool, the consumer ends as if it had been closed.
            head = f"{_FAILED}\n{as_java(error).trace()}"
            log_line(self._call.err, "ERROR", head.rstrip(), _LOGGER)
        self._is_idle = False
        self.on_assigned(())
        source.close()
        self._print("shutdown_complete", {})
        if code == exits.OK:
            self._print_of_request()
        return code

    def _print_of_request(self) -> None:
        """Print the event of a requested end; 3.9.1 prints nothing."""
        if self._call.is_four:
            self._print("shutdown_requested", {})

    @property
    def _is_done(self) -> bool:
        """Return True if --max-messages is reached; a negative value means no limit."""
        return 0 <= self._max <= self._count

    def _consume_once(self, source: GroupSource, *, commits: bool) -> None:
        """Poll once and print the records; with `commits` commit their offsets."""
        try:
            consumed = [records for records in source.poll(_WAIT_MS) if records.runs]
        except (Unreachable, TimedOut):
            self._client.connections.pause(_WAIT_MS)
            return
        if not consumed:
            return
        offsets = self._print_consumed(source, consumed)
        if commits:
            self._commit(source, offsets)

    def _print_consumed(
        self, source: GroupSource, consumed: Iterable[ConsumedRecords]
    ) -> dict[TopicPartition, int]:
        """Print the records of a poll, up to the limit; return the offsets to commit."""
        offsets: dict[TopicPartition, int] = {}
        summaries: list[JsonNode] = []
        total = 0
        for records in consumed:
            rows = [row for row, _ in records.records]
            total += len(rows)
            if self._max >= 0:
                rows = rows[: self._max - self._count]
            if not rows:
                continue
            topic, partition = records.partition
            offsets[records.partition] = rows[-1].offset + 1
            source.set_processed(records.partition, rows[-1].offset + 1)
            summaries.append(
                {
                    **_name_of(records.partition),
                    "count": len(rows),
                    "minOffset": rows[0].offset,
                    "maxOffset": rows[-1].offset,
                }
            )
            if self._is_verbose:
                for row in rows:
                    self._print_record(topic, partition, row.key, row.value, row.offset)
            self._count += len(rows)
        self._print("records_consumed", {"count": total, "partitions": summaries})
        return offsets

    def _print_record(
        self, topic: str, partition: int, key: bytes | None, value: bytes | None, offset: int
    ) -> None:
        """Print a record as an event, with its key and value as text."""
        self._print(
            "record_data",
            {
                "key": None if key is None else decode_java_utf8(key),
                "value": None if value is None else decode_java_utf8(value),
                "topic": topic,
                "partition": partition,
                "offset": offset,
            },
        )

    def _commit(self, source: GroupSource, offsets: dict[TopicPartition, int]) -> None:
        """Commit the offsets, and print the result as an event; errors are not raised."""
        rows: list[JsonNode] = [
            {**_name_of(key), "offset": offset} for key, offset in offsets.items()
        ]
        event: dict[str, JsonNode] = {"offsets": rows, "success": True}
        try:
            source.consumer.session.commit(offsets)
        except EngineError as error:
            event = {"offsets": rows, "error": str(as_java(error)), "success": False}
        self._print("offsets_committed", event)


def _name_of(partition: TopicPartition) -> dict[str, JsonNode]:
    """Return a partition as JSON: topic and number."""
    return {"topic": partition.topic, "partition": partition.partition}


def _named(partitions: Iterable[TopicPartition]) -> list[JsonNode]:
    """Return partitions as a JSON list."""
    return [_name_of(partition) for partition in partitions]
