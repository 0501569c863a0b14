"""`kafka-console-consumer`: prints records of a topic, a partition, or topics by pattern.

1. Options are checked; the properties of consumer and formatter are assembled.
2. Records are printed until --max-messages, --timeout-ms without a record, or a signal.
3. A time-out is logged as an error, and the exit code is 0.
4. The consumer is closed: it commits offsets of printed records, not of fetched ones.

Source: ConsoleConsumer, ConsoleConsumerOptions of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.errors import TimedOut, Unreachable
from engine.client.fetching import ConsumedRecords
from engine.client.offsets import EARLIEST, LATEST
from engine.errors import EngineError
from engine.model import TopicPartition
from kctl import exits
from kctl.compat.console_consumer_options import (
    OPTIONS_OF,
    check_arguments,
    consumer_properties,
    formatter_properties,
    parse_start_offset,
    warn_of_old_names,
)
from kctl.compat.formatter_classes import create_formatter
from kctl.compat.java_admin import ILLEGAL_ARGUMENT, TIMEOUT
from kctl.compat.java_consumer import (
    ConsumerSettings,
    GroupSource,
    PartitionSource,
    Source,
    consumer_settings,
)
from kctl.compat.java_failures import ToolFailure, as_java
from kctl.compat.java_log import log_line
from kctl.compat.java_options import GivenOptions, ToolOption, refused
from kctl.compat.java_patterns import compile_java_pattern
from kctl.compat.record_formatters import CutShort, Formatter, PrintedRecord
from kctl.compat.releases import Release
from kctl.compat.tool_call import ToolCall
from kctl.exits import Terminated
from kctl.interrupts import HeldInterrupts, deferred_interrupts

SUMMARY = "Prints the records of topics."
_LOGGER: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
_FORMATTER: Final = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
#: Old names of formatters that 3.9.1 still accepts, with a warning.
_OLD_PACKAGE: Final = "kafka.tools."
_OLD_NAMES: Final = ("DefaultMessageFormatter", "LoggingMessageFormatter", "NoOpMessageFormatter")
_POINTS: Final = {"earliest": EARLIEST, "latest": LATEST}
_WAIT_MS: Final = 1_000


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options that kafka-console-consumer has in a release."""
    return OPTIONS_OF[release]


def run(call: ToolCall, given: GivenOptions) -> int:
    """Run kafka-console-consumer: print records until --max-messages, a time-out or Ctrl-C.

    Returns the exit code.
    """
    check_arguments(call, given)
    properties = consumer_properties(call, given)
    offset = parse_start_offset(given)
    max_messages = given.number("max-messages", -1, 32)
    timeout_ms = given.number("timeout-ms", -1)
    formatter = _create_formatter(call, given)
    if call.is_four:
        warn_of_old_names(call, given)
    servers = given.needed("bootstrap-server")
    try:
        settings = consumer_settings(properties["group.id"], properties)
        pattern = _pattern(given)
        if pattern is None and not given.has("partition"):
            _check_topic(given.needed("topic"))
    except ToolFailure as failure:
        return _log_unknown_error(call, failure)
    call.admit(given.names(), servers)
    limits = _Limits(max_messages, timeout_ms)
    with call.client(servers, properties) as client, deferred_interrupts() as interrupts:
        printing = _Printing(call, formatter, limits, skips=given.has("skip-message-on-error"))
        printing.start(client.clock.monotonic_ms())
        with interrupts.allowed():
            if given.has("partition"):
                partition = TopicPartition(given.needed("topic"), given.number("partition", 0, 32))
                start = _POINTS[offset] if isinstance(offset, str) else offset
                source: Source = PartitionSource(client, {partition: start}, settings)
            else:
                source = _group_source(client, settings, given, pattern)
        code = _print_all(printing, source, client, interrupts)
        if given.has("enable-systest-events"):
            call.out.write("shutdown_complete\n")
        return code


def _check_topic(topic: str) -> None:
    """Raise ToolFailure for a blank topic name, to which a consumer cannot subscribe."""
    if not topic.strip():
        message = "Topic collection to subscribe to cannot contain null or empty topic"
        raise ToolFailure(ILLEGAL_ARGUMENT, message)


def _group_source(
    client: KafkaClient,
    settings: ConsumerSettings,
    given: GivenOptions,
    pattern: re.Pattern[str] | None,
) -> GroupSource:
    """Return a group consumer of the given topic, or of the topics matching `pattern`."""
    topic = None if pattern is not None else given.needed("topic")
    return GroupSource(client, settings, topic=topic, pattern=pattern)


def _create_formatter(call: ToolCall, given: GivenOptions) -> Formatter:
    """Return the function that formats records, by --formatter; raises OptionsRefused.

    The tool of 3.9.1 prints a warning for a deprecated class name.
    """
    name = given.text("formatter") or _FORMATTER
    bare = name.removeprefix(_OLD_PACKAGE)
    if not call.is_four and name.startswith(_OLD_PACKAGE) and bare in _OLD_NAMES:
        new = f"org.apache.kafka.tools.consumer.{bare}"
        call.err.write(
            f"WARNING: {name} is deprecated and will be removed in the next major release. "
            f"Please use {new} instead\n"
        )
        name = new
    try:
        return create_formatter(name, formatter_properties(call, given), call.release)
    except ToolFailure as failure:
        raise refused(str(failure)) from failure


def _pattern(given: GivenOptions) -> re.Pattern[str] | None:
    """Return the pattern of --include or --whitelist, None without one; raises ToolFailure."""
    text = given.text("include") or given.text("whitelist")
    return None if text is None else compile_java_pattern(text)


def _log_unknown_error(call: ToolCall, failure: ToolFailure) -> int:
    """Log a failure that occurred before consuming; returns the exit code FAILED."""
    log_line(call.err, "ERROR", "Unknown error when running consumer: ", _LOGGER)
    call.err.write(failure.trace())
    return exits.FAILED


class _Limits(NamedTuple):
    """Limits that end a run; -1 means no limit."""

    max_messages: int
    timeout_ms: int


class _Printing:
    """Prints and counts records, and applies the limits of the run."""

    def __init__(
        self, call: ToolCall, formatter: Formatter, limits: _Limits, *, skips: bool
    ) -> None:
        """Create the printer of a run; nothing is printed yet.

        With `skips` a record that cannot be formatted is logged and skipped, else its error is
        raised.
        """
        self.call = call
        self._formatter = formatter
        self._limits = limits
        self._skips = skips
        #: Number of printed and skipped records, for --max-messages and the last line.
        self._count = 0
        #: Monotonic time of the last record, for --timeout-ms.
        self._last_ms = 0

    def start(self, now_ms: int) -> None:
        """Start the time-out (--timeout-ms) for the first record at `now_ms`."""
        self._last_ms = now_ms

    @property
    def is_done(self) -> bool:
        """Return True if --max-messages is reached."""
        return self._count >= self._limits.max_messages >= 0

    def time_left_ms(self, now_ms: int) -> int:
        """Return how long to wait for the next record in ms: until --timeout-ms has passed.

        Without it _WAIT_MS; 0 if it has passed. `now_ms` is of the monotonic clock.
        """
        if self._limits.timeout_ms < 0:
            return _WAIT_MS
        return max(self._last_ms + self._limits.timeout_ms - now_ms, 0)

    def print_records(self, consumed: ConsumedRecords, source: Source, now_ms: int) -> None:
        """Print records of a partition; at the limit report the first unprinted offset to `source`.

        The source commits up to this offset. `now_ms` is of the monotonic clock.
        """
        texts: list[bytes] = []
        try:
            self._format_records(consumed, source, now_ms, texts)
        finally:
            # Also print the records before one that cannot be formatted.
            self.call.print_bytes(b"".join(texts))

    def _format_records(
        self, consumed: ConsumedRecords, source: Source, now_ms: int, texts: list[bytes]
    ) -> None:
        """Append the formatted texts of records to `texts`, until --max-messages.

        At the limit the source gets the offset of the first unprinted record. Raises EngineError
        for a record that cannot be formatted, unless such records are skipped.
        """
        topic, partition = consumed.partition
        for run in consumed.runs:
            for record in run.records():
                if self.is_done:
                    source.set_processed(consumed.partition, record.offset)
                    return
                self._count += 1
                self._last_ms = now_ms
                try:
                    texts.append(self._formatter(PrintedRecord(topic, partition, record)))
                except EngineError as error:
                    if isinstance(error, CutShort):
                        texts.append(error.text)
                    if not self._skips:
                        raise
                    self._print_of_skipped(error)

    def _print_of_skipped(self, error: EngineError) -> None:
        """Log a record that cannot be formatted and is skipped (--skip-message-on-error)."""
        text = "Error processing message, skipping this message: "
        log_line(self.call.err, "ERROR", text, _LOGGER)
        self.call.err.write(as_java(error).trace())

    def report(self) -> None:
        """Print the number of processed records on stderr; the last line of the tool."""
        self.call.flush()
        self.call.err.write(f"Processed a total of {self._count} messages\n")


def _print_all(
    printing: _Printing, source: Source, client: KafkaClient, interrupts: HeldInterrupts
) -> int:
    """Print records until the run ends, then close the source; returns the exit code.

    These are steps 2 to 4 of the module's docstring.
    """
    call = printing.call
    code = exits.OK
    try:
        _print_until_done(printing, source, client, interrupts)
    except KeyboardInterrupt as interrupt:
        code = exits.TERMINATED if isinstance(interrupt, Terminated) else exits.INTERRUPTED
    except _Stopped as stopped:
        log_line(
            call.err, "ERROR", "Error processing message, terminating consumer process: ", _LOGGER
        )
        call.err.write(stopped.failure.trace())
    except EngineError as error:
        code = _log_unknown_error(call, as_java(error))
    except BrokenPipeError:
        call.drop_output()
        call.err.write("Unable to write to standard out, closing consumer.\n")
    finally:
        _close(source)
    printing.report()
    return code


class _Stopped(Exception):
    """The run ends because of a time-out or a failed poll."""

    def __init__(self, failure: ToolFailure) -> None:
        super().__init__(str(failure))
        self.failure = failure


def _print_until_done(
    printing: _Printing, source: Source, client: KafkaClient, interrupts: HeldInterrupts
) -> None:
    """Poll and print records until the run is done; raises _Stopped after the timeout."""
    while not printing.is_done:
        left_ms = printing.time_left_ms(client.clock.monotonic_ms())
        if left_ms == 0:
            raise _Stopped(ToolFailure(TIMEOUT, ""))
        with interrupts.allowed():
            consumed = _poll(source, client, min(left_ms, _WAIT_MS))
        now_ms = client.clock.monotonic_ms()
        for records in consumed:
            printing.print_records(records, source, now_ms)
        printing.call.flush()


def _poll(source: Source, client: KafkaClient, wait_ms: int) -> list[ConsumedRecords]:
    """Return records that the source has fetched; none after a pause if no broker is reachable.

    Raises _Stopped for any other error.
    """
    try:
        return source.poll(wait_ms)
    except (Unreachable, TimedOut):
        client.connections.pause(min(wait_ms, client.settings.retry_backoff_ms_max))
        return []
    except EngineError as error:
        raise _Stopped(as_java(error)) from error


def _close(source: Source) -> None:
    """Close the source, which commits and leaves the group; errors of that are ignored."""
    from contextlib import suppress

    with suppress(EngineError):
        source.close()
