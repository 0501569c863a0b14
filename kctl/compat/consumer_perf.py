"""`kafka-consumer-perf-test`: consumes at full speed, and prints rates.

Source: ConsumerPerformance of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.errors import TimedOut, Unreachable
from engine.client.fetching import ConsumedRecords
from engine.host.real import RealEntropy
from engine.model import TopicPartition
from kctl import exits
from kctl.compat.java_admin import ILLEGAL_ARGUMENT
from kctl.compat.java_consumer import GroupSource, consumer_settings
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_options import (
    HELP,
    VERSION,
    GivenOptions,
    ToolOption,
    refused,
    require,
)
from kctl.compat.java_pairs import parse_pairs
from kctl.compat.java_patterns import compile_java_pattern
from kctl.compat.releases import Release
from kctl.compat.tool_call import ToolCall

SUMMARY = "Measures how fast records are consumed."
_BOTH: Final = (
    ToolOption("bootstrap-server", "Brokers to ask first.", "HOST:PORT,..."),
    ToolOption("topic", "What to consume.", "TOPIC"),
    ToolOption("messages", "How many records.", "COUNT"),
    ToolOption("group", "The group; a new one without it.", "GROUP"),
    ToolOption("from-latest", "Where nothing is committed: from the end."),
    ToolOption("timeout", "Milliseconds without a record; 10000.", "MS", True, True),
    ToolOption("fetch-size", "Bytes of a partition in a response; 1048576.", "BYTES"),
    ToolOption("consumer.config", "A file of properties of the consumer.", "FILE"),
    ToolOption("date-format", "How times are printed.", "PATTERN"),
    ToolOption("hide-header", "Print no header."),
    ToolOption("show-detailed-stats", "A line for each interval."),
    ToolOption("reporting-interval", "Milliseconds between lines; 5000.", "MS"),
    ToolOption("socket-buffer-size", "Changes nothing here.", "BYTES"),
    ToolOption("print-metrics", "Not served."),
    HELP,
    VERSION,
)
_THREE: Final = (
    ToolOption("broker-list", "As --bootstrap-server.", "HOST:PORT,..."),
    ToolOption("threads", "Changes nothing, as in 3.9.1.", "COUNT"),
    ToolOption("num-fetch-threads", "Changes nothing, as in 3.9.1.", "COUNT"),
)
_FOUR: Final = (
    ToolOption("num-records", "How many records.", "COUNT"),
    ToolOption("include", "Topics whose whole names fit.", "REGEX"),
    ToolOption("command-config", "A file of properties of the consumer.", "FILE"),
    ToolOption("command-property", "A property of the consumer.", "KEY=VALUE"),
)
_HEADER: Final = (
    "data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
    "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
)
_MEBIBYTE: Final = 1024 * 1024
_POLL_MS: Final = 100
_DATE_FORMAT: Final = "yyyy-MM-dd HH:mm:ss:SSS"
_DATE_PARTS: Final = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "hh": "%I",
    "mm": "%M",
    "ss": "%S",
}
_GROUP_NUMBERS: Final = 100_000


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options that kafka-consumer-perf-test has in a release."""
    return _BOTH + (_FOUR if release.is_four else _THREE)


def run(call: ToolCall, given: GivenOptions) -> int:
    """Run kafka-consumer-perf-test: consume records and print the rates; returns the exit code."""
    servers = _check_options(call, given)
    dates = DateFormat(given.text("date-format") or _DATE_FORMAT)
    properties = _consumer_properties(call, given)
    settings = consumer_settings(properties["group.id"], properties)
    include = given.text("include")
    pattern = None if include is None else compile_java_pattern(include)
    call.admit(given.names(), servers)
    with call.client(servers, properties) as client:
        _print_header(call, given)
        measured = _Measured(call, client, given, dates)
        source = GroupSource(client, settings, topic=given.text("topic"), pattern=pattern)
        source.consumer.on_assigned = measured.on_assigned
        try:
            measured.consume(source)
        finally:
            source.close()
        measured.print_result()
    return exits.OK


def _check_options(call: ToolCall, given: GivenOptions) -> str:
    """Validate the options of kafka-consumer-perf-test, and return the bootstrap servers.

    Errors: OptionsRefused, ToolFailure.
    """
    if call.is_four:
        require(given, "bootstrap-server")
        if [given.has("topic"), given.has("include")].count(True) != 1:
            raise refused("Exactly one of the following arguments is required: [topic], [include]")
        if [given.has("num-records"), given.has("messages")].count(True) != 1:
            raise refused(
                "Exactly one of the following arguments is required: [num-records], [messages]"
            )
        for old, new in (("messages", "num-records"), ("consumer.config", "command-config")):
            if given.has(old):
                call.out.write(f"Warning: --{old} is deprecated. Use --{new} instead.\n")
    else:
        if given.has("threads") or given.has("num-fetch-threads"):
            call.out.write(
                "WARNING: option [threads] and [num-fetch-threads] have been deprecated and will "
                "be ignored by the test\n"
            )
        require(given, "topic", "messages")
    if given.has("print-metrics"):
        raise refused("--print-metrics is not served here")
    servers = given.text("bootstrap-server") or given.text("broker-list")
    if servers is None:
        raise refused('Missing required argument "[bootstrap-server]"')
    if given.number("reporting-interval", 1) <= 0:
        raise ToolFailure(ILLEGAL_ARGUMENT, "Reporting interval must be greater than 0.")
    return servers


def _consumer_properties(call: ToolCall, given: GivenOptions) -> dict[str, str]:
    """Return the consumer's properties; without --group the group has a random name."""
    found = call.properties(given.text("command-config") or given.text("consumer.config"))
    found |= parse_pairs(given.texts("command-property"))
    number = RealEntropy().random_below(_GROUP_NUMBERS)
    found["group.id"] = given.text("group") or f"perf-consumer-{number}"
    found["auto.offset.reset"] = "latest" if given.has("from-latest") else "earliest"
    found["max.partition.fetch.bytes"] = str(given.number("fetch-size", _MEBIBYTE))
    found.setdefault("client.id", "perf-consumer-client")
    return found


def _print_header(call: ToolCall, given: GivenOptions) -> None:
    """Print the column names, unless --hide-header is given."""
    if given.has("hide-header"):
        return
    first = "time, threadId" if given.has("show-detailed-stats") else "start.time, end.time"
    call.out.write(f"{first}, {_HEADER}\n")
    call.flush()


class DateFormat:
    """A date pattern of Java with the letters y M d H h m s S and quoted text."""

    def __init__(self, pattern: str) -> None:
        self._parts = [
            m.group(0) for m in re.finditer(r"'[^']*'|([A-Za-z])\1*|[^A-Za-z']+", pattern)
        ]
        for part in self._parts:
            if part[0].isalpha() and part not in _DATE_PARTS and part.strip("S"):
                raise ToolFailure(ILLEGAL_ARGUMENT, f"Illegal pattern, or not served here: {part}")

    def text(self, time_ms: int) -> str:
        """Return a time in ms since 1970 as text in the local time zone, by the Java pattern."""
        at = time.localtime(time_ms / 1000)
        return "".join(self._format_part(part, at, time_ms % 1000) for part in self._parts)

    def _format_part(self, part: str, at: time.struct_time, milliseconds: int) -> str:
        """Return one part of the pattern as text: a field, milliseconds, or quoted text."""
        if part in _DATE_PARTS:
            return time.strftime(_DATE_PARTS[part], at)
        if part[0] == "S":
            return f"{milliseconds:0{len(part)}d}"
        return part.strip("'") if part[0] == "'" else part


class _Measured:
    """Counts records and bytes, and measures the time of rebalances."""

    def __init__(
        self, call: ToolCall, client: KafkaClient, given: GivenOptions, dates: DateFormat
    ) -> None:
        """Create a measurement of consuming that starts now, with the options of the tool."""
        self._call = call
        self._client = client
        self._dates = dates
        #: Options of the tool: number of records, time-out for a record, reporting interval.
        self._wanted = given.number("num-records", given.number("messages", 0))
        self._timeout_ms = given.number("timeout", 10_000)
        self._interval_ms = given.number("reporting-interval", 5_000)
        self._is_detailed = given.has("show-detailed-stats")
        #: Records and bytes consumed.
        self._count = self._bytes = 0
        #: Start and end of the run, and start of the last rebalance (wall clock).
        self._began_ms = self._ended_ms = self._join_began_ms = self._now_ms()
        #: Time of rebalances in total, and since the last report; not part of the fetch time.
        self._join_ms = self._join_ms_of_interval = 0
        #: Count, bytes and time of the last report.
        self._reported = (0, 0, self._began_ms)

    def _now_ms(self) -> int:
        """Return the time in ms since 1970."""
        return self._client.clock.wall_ms()

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        """Add the time that a rebalance has taken; the consumer calls it at start and end.

        `partitions` is empty at the start of the rebalance.
        """
        if not partitions:
            self._join_began_ms = self._now_ms()
            return
        elapsed_ms = self._now_ms() - self._join_began_ms
        self._join_ms += elapsed_ms
        self._join_ms_of_interval += elapsed_ms

    def consume(self, source: GroupSource) -> None:
        """Consume until the requested number of records, or --timeout without any record.

        An unreachable broker is tried again within that time.
        """
        last_ms = now_ms = self._now_ms()
        while self._count < self._wanted and now_ms - last_ms <= self._timeout_ms:
            try:
                consumed = source.poll(_POLL_MS)
            except (Unreachable, TimedOut):
                self._client.connections.pause(_POLL_MS)
                consumed = []
            now_ms = self._now_ms()
            if self._count_records(consumed, now_ms):
                last_ms = now_ms
        self._ended_ms = self._now_ms()
        if self._count < self._wanted:
            word = "records" if self._call.is_four else "messages"
            self._call.out.write(
                f"WARNING: Exiting before consuming the expected number of {word}: timeout "
                f"({self._timeout_ms} ms) exceeded. You can use the --timeout option to increase "
                "the timeout.\n"
            )

    def _count_records(self, consumed: Sequence[ConsumedRecords], now_ms: int) -> bool:
        """Count consumed records and bytes; return True if there were any.

        Prints the rates of an interval if one has passed.
        """
        before = self._count
        for records in consumed:
            for run in records.runs:
                self._count += run.record_count
                self._bytes += sum(map(len, filter(None, run.keys)))
                self._bytes += sum(map(len, filter(None, run.values)))
        if self._is_detailed and now_ms - self._reported[2] >= self._interval_ms:
            self._print_interval(now_ms)
        return self._count > before

    def _print_interval(self, now_ms: int) -> None:
        """Print the rates since the last interval (--show-detailed-stats).

        The column `0` is the id of the only thread.
        """
        count, size, began_ms = self._reported
        elapsed_ms = now_ms - began_ms
        fetch_ms = elapsed_ms - self._join_ms_of_interval
        mebibytes = (self._bytes - size) / _MEBIBYTE
        records = self._count - count
        self._call.out.write(
            f"{self._dates.text(now_ms)}, 0, {self._bytes / _MEBIBYTE:.4f}, "
            f"{_per_second(mebibytes, elapsed_ms):.4f}, {self._count}, "
            f"{_per_second(records, elapsed_ms):.4f}, {self._join_ms_of_interval}, {fetch_ms}, "
            f"{_per_second(mebibytes, fetch_ms):.4f}, {_per_second(records, fetch_ms):.4f}\n"
        )
        self._call.flush()
        self._reported = (self._count, self._bytes, now_ms)
        self._join_ms_of_interval = 0

    def print_result(self) -> None:
        """Print the rates of the complete run, unless those of intervals were printed.

        Fetch time is the time without rebalances.
        """
        if self._is_detailed:
            return
        elapsed_ms = self._ended_ms - self._began_ms
        fetch_ms = elapsed_ms - self._join_ms
        mebibytes = self._bytes / _MEBIBYTE
        self._call.out.write(
            f"{self._dates.text(self._began_ms)}, {self._dates.text(self._ended_ms)}, "
            f"{mebibytes:.4f}, {_per_second(mebibytes, elapsed_ms):.4f}, {self._count}, "
            f"{_per_second(self._count, elapsed_ms):.4f}, {self._join_ms}, {fetch_ms}, "
            f"{_per_second(mebibytes, fetch_ms):.4f}, {_per_second(self._count, fetch_ms):.4f}\n"
        )


def _per_second(amount: float, elapsed_ms: int) -> float:
    """Return an amount per second; a time of 0 ms counts as 1 ms, as in Kafka's tool."""
    return amount * 1000 / max(elapsed_ms, 1)
