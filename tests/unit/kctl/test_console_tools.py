"""The rules of the drop-in console, access-rule and performance tools, one by one.

Whole calls are in test_compat_console.py.
"""

from __future__ import annotations

from io import StringIO

import pytest

from engine.errors import EngineError
from engine.records.record import Record, TimestampType
from engine.security.acls import AclOperation
from kctl.compat.acl_rules import rules_of_resources, rules_to_add
from kctl.compat.acls_tool import options as acl_options
from kctl.compat.console_producer import java_lines
from kctl.compat.consumer_perf import DateFormat
from kctl.compat.feature_levels import (
    dependency_lines,
    mapping_lines,
    metadata_version_level,
    parse_feature_level,
)
from kctl.compat.formatter_classes import create_formatter
from kctl.compat.java_commands import (
    Arity,
    Command,
    CommandOption,
    CommandRefused,
    read_arguments,
)
from kctl.compat.java_consumer import consumer_settings
from kctl.compat.java_deserializers import deserializer_named
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_options import parse_options
from kctl.compat.java_pairs import parse_pairs
from kctl.compat.java_producer import java_producer_options
from kctl.compat.line_reader import LineReader, parse_line_format
from kctl.compat.perf_numbers import LatencyStats, Throttle, percentiles_of
from kctl.compat.record_formatters import PrintedRecord
from kctl.compat.releases import Release, split_release

V3, V4 = Release.V3_9, Release.V4_3


# -- lines become records


def _record(line: str, **properties: str) -> tuple[object, ...]:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    record = LineReader("t", parse_line_format(named)).parse_line(line.encode())
    return record.key, record.value, record.headers


@pytest.mark.parametrize(
    ("line", "properties", "expected"),
    [
        ("v", {}, (None, b"v", ())),
        ("k\tv\tw", {"parse_key": "true"}, (b"k", b"v\tw", ())),
        ("a:1,b:\tv", {"parse_headers": "TRUE"}, (None, b"v", (("a", b"1"), ("b", b"")))),
        ("N\tk", {"parse_key": "true", "null_marker": "N"}, (None, b"k", ())),
        (
            "a:N\tN\tv",
            {"parse_headers": "true", "parse_key": "true", "null_marker": "N"},
            (None, b"v", (("a", None),)),
        ),
        ("N\tv", {"parse_headers": "true", "null_marker": "N"}, (None, b"v", ())),
        ("plain", {"parse_key": "true", "ignore_error": "true"}, (None, b"plain", ())),
        ("a\tv", {"parse_headers": "true", "ignore_error": "true"}, (None, b"v", (("a", None),))),
    ],
)
def test_a_line_is_taken_apart_by_its_properties(
    line: str, properties: dict[str, str], expected: tuple[object, ...]
) -> None:
    assert expected == _record(line, **properties)


@pytest.mark.parametrize(
    ("line", "properties", "message"),
    [
        ("v", {"parse_key": "true"}, "No key separator found on line number 1: 'v'"),
        ("v", {"parse_headers": "true"}, "No headers delimiter found on line number 1: 'v'"),
        ("a\tv", {"parse_headers": "true"}, "No header key separator found in pair 'a'"),
        (
            "N:1\tv",
            {"parse_headers": "true", "null_marker": "N"},
            "Header keys should not be equal to the null marker 'N'",
        ),
        ("v", {"headers_delimiter": ","}, "headers.delimiter and headers.separator may not be"),
        ("v", {"null_marker": "\t"}, "null.marker and key.separator may not be equal"),
    ],
)
def test_a_line_that_does_not_fit_is_refused(
    line: str, properties: dict[str, str], message: str
) -> None:
    with pytest.raises(EngineError) as caught:
        _record(line, **properties)
    assert message in str(caught.value)


def test_a_carriage_return_ends_a_line_as_well() -> None:
    assert [b"a"] == java_lines(b"a\r")
    assert [b"a", b"", b"b"] == java_lines(b"a\r\rb")


def test_a_pair_without_a_value_is_empty() -> None:
    assert {"a": "1=2", "b": ""} == parse_pairs(["a=0", "a=1=2", "b"])


# -- records are printed


def _printed(release: Release = V3, name: str = "DefaultMessageFormatter", **given: str) -> bytes:
    properties = {key.replace("_", "."): value for key, value in given.items()}
    formatter = create_formatter(f"org.apache.kafka.tools.consumer.{name}", properties, release)
    record = Record(7, 5, TimestampType.CREATE_TIME, b"k", None, (("h", b"1"), ("i", None)))
    return formatter(PrintedRecord("t", 3, record))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, b"null\n"),
        ({"print_key": "true", "null_literal": "-"}, b"k\t-\n"),
        ({"print_timestamp": "true", "print_value": "false"}, b"CreateTime:5\n"),
        (
            {"print_partition": "true", "print_offset": "true", "key_separator": "|"},
            b"Partition:3|Offset:7|null\n",
        ),
        ({"print_headers": "true", "print_value": "false", "line_separator": ";"}, b"h:1,i:null;"),
        ({"print_value": "false"}, b""),
        ({"print_epoch": "true"}, b"null\n"),
    ],
)
def test_a_record_is_printed_by_properties(given: dict[str, str], expected: bytes) -> None:
    assert expected == _printed(**given)


def test_only_the_newer_release_prints_epochs() -> None:
    assert b"Epoch:NOT_PRESENT\tnull\n" == _printed(V4, print_epoch="true")


def test_some_formatters_print_nothing_and_others_are_not_known() -> None:
    assert b"" == _printed(name="NoOpMessageFormatter")
    with pytest.raises(EngineError, match=r"org.apache.kafka.tools.consumer.Mine"):
        _printed(name="Mine")


@pytest.mark.parametrize(
    ("name", "raw", "text"),
    [
        ("String", b"\xff", "\ufffd".encode()),
        ("Integer", b"\x00\x00\x01\x00", b"256"),
        ("Long", b"\xff" * 8, b"-1"),
        ("Short", b"\x00\x05", b"5"),
        ("Double", b"\x3f\xf0" + bytes(6), b"1.0"),
        ("Float", b"\x3d\xcc\xcc\xcd", b"0.1"),
        ("Boolean", b"\x01", b"true"),
        ("Bytes", b"a\x00\\", b"a\\x00\\x5C"),
        ("ByteBuffer", b"abc", b"java.nio.HeapByteBuffer[pos=0 lim=3 cap=3]"),
        ("UUID", b"6BA7B810-9dad-11d1-80b4-00c04fd430c8", b"6ba7b810-9dad-11d1-80b4-00c04fd430c8"),
        # As Java 17 prints them.
        ("UUID", b"1-+1-1-1-1", b"00000001-0001-0001-0001-000000000001"),
        ("UUID", b"123456789-1-1-1-1", b"23456789-0001-0001-0001-000000000001"),
        ("UUID", b"7fffffffffffffff-1-1-1-1", b"ffffffff-0001-0001-0001-000000000001"),
        ("UUID", "0-0-0-0-0\u0661".encode(), b"00000000-0000-0000-0000-000000000001"),
        ("UUID", "\uff21-0-0-0-\uff46".encode(), b"0000000a-0000-0000-0000-00000000000f"),
    ],
)
def test_bytes_are_printed_as_javas_objects(name: str, raw: bytes, text: bytes) -> None:
    deserializer = deserializer_named(f"org.apache.kafka.common.serialization.{name}Deserializer")
    assert text == deserializer(raw)


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("Integer", b"1", "Size of data received by IntegerDeserializer is not 4"),
        ("Boolean", b"", "Size of data received by BooleanDeserializer is not 1"),
        ("Boolean", b"\x01\x01", "Size of data received by BooleanDeserializer is not 1"),
        ("Boolean", b"\x02", "Unexpected byte received by BooleanDeserializer: 2"),
        ("Boolean", b"\xff", "Unexpected byte received by BooleanDeserializer: -1"),
        *(
            ("UUID", raw, "Error parsing data into UUID")
            for raw in (
                b"x",
                b"00000000000000000000000000000001",
                b"urn:uuid:00000000-0000-0000-0000-000000000001",
                b"00000000-0000-0000-0000-0000000000001",
                b"8000000000000000-1-1-1-1",
                b"-1-1-1-1-1",
                b"1--1-1-1",
                b"1-1-1-1-",
                b"1-1-1-1",
                b" 1-1-1-1-1",
                b"1_1-1-1-1-1",
                b"g-1-1-1-1",
                "\U0001d7d8-1-1-1-1".encode(),
            )
        ),
    ],
)
def test_bytes_that_are_no_such_object_are_refused(name: str, raw: bytes, message: str) -> None:
    deserializer = deserializer_named(f"org.apache.kafka.common.serialization.{name}Deserializer")
    with pytest.raises(ToolFailure) as caught:
        deserializer(raw)
    assert message in str(caught.value)


# -- properties of clients


def test_a_producer_is_that_of_its_properties() -> None:
    options = java_producer_options({"acks": "1", "compression.type": "zstd", "linger.ms": "7"})
    assert (1, "zstd", 7) == (options.acks, options.codec.label, options.linger_ms)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"compression.type": "zip"}, "one of: none, gzip, snappy, lz4, zstd"),
        ({"acks": "2"}, "Invalid value 2 for configuration acks"),
        ({"batch.size": "many"}, "Invalid value many for configuration batch.size"),
        ({"enable.idempotence": "true", "acks": "1"}, "Must set acks to all"),
    ],
)
def test_a_producer_of_wrong_properties_is_refused(
    properties: dict[str, str], message: str
) -> None:
    with pytest.raises(EngineError) as caught:
        java_producer_options(properties)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("auto.offset.reset", "middle"),
        ("isolation.level", "dirty"),
        ("group.protocol", "new"),
        ("group.remote.assignor", "range"),
        ("session.timeout.ms", "long"),
    ],
)
def test_a_consumer_of_wrong_properties_is_refused(key: str, value: str) -> None:
    with pytest.raises(EngineError) as caught:
        consumer_settings("g", {key: value})
    assert "ConfigException" in getattr(caught.value, "java_class", "")


# -- access rules


def _rules(words: str, release: Release = V3) -> dict[str, str]:
    given = parse_options(acl_options(release), words.split())
    rules = rules_to_add(given, release)
    return {
        f"{pattern.kind.name} {pattern.name}": ",".join(
            f"{entry.principal}@{entry.host}:{entry.operation.name}" for entry in entries
        )
        for pattern, entries in rules.items()
    }


def test_a_producer_and_a_consumer_get_what_they_need() -> None:
    words = "--allow-principal User:a --topic t --group g"
    assert {
        "TOPIC t": "User:a@*:WRITE,User:a@*:DESCRIBE,User:a@*:CREATE",
        "CLUSTER kafka-cluster": "User:a@*:IDEMPOTENT_WRITE",
    } == _rules(f"{words} --producer --idempotent")
    assert {
        "TOPIC t": "User:a@*:READ,User:a@*:DESCRIBE",
        "GROUP g": "User:a@*:READ",
    } == _rules(f"{words} --consumer")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--allow-principal a --topic t", "principalType:principalName but got a"),
        ("--allow-principal User:a", "You must provide at least one resource"),
        ("--topic t", "You must specify one of: --allow-principal"),
        ("--allow-principal User:a --group g --operation Write", "GROUP only supports operations"),
        ("--topic t --resource-pattern-type odd", "Cannot parse argument 'odd'"),
    ],
)
def test_rules_that_cannot_be_are_refused(words: str, message: str) -> None:
    with pytest.raises(EngineError) as caught:
        _rules(words)
    assert message in str(caught.value)


def test_two_phase_commit_is_an_operation_of_transactional_ids_since_four() -> None:
    words = "--allow-principal User:a --transactional-id x --operation TwoPhaseCommit"
    assert {"TRANSACTIONAL_ID x": "User:a@*:TWO_PHASE_COMMIT"} == _rules(words, V4)
    with pytest.raises(EngineError):
        _rules(words)


def test_a_removal_without_principals_means_all_entries() -> None:
    given = parse_options(acl_options(V3), ["--topic", "t"])
    ((pattern, entries),) = rules_of_resources(given, V3).items()
    assert ("t", []) == (pattern.name, entries)
    assert AclOperation.ALL


# -- features


def test_levels_of_metadata_have_names() -> None:
    assert [7, 21, 20, 25] == [
        metadata_version_level("3.3-IV3", V3),
        metadata_version_level("3.9", V3),
        metadata_version_level("3.8", V4),
        metadata_version_level("4.0", V4),
    ]
    for text, release in (("4.0", V3), ("3.3-IV0", V4), ("4.4", V4), ("x", V3)):
        with pytest.raises(EngineError, match="Supported metadata"):
            metadata_version_level(text, release)


def test_a_release_has_its_features() -> None:
    expected = ["metadata.version=25 (4.0)", "kraft.version=1", "transaction.version=2"]
    assert expected == mapping_lines("4.0")[:3]
    assert "metadata.version=30 (4.3-IV0)" == mapping_lines(None)[0]
    assert ["group.version=1 has no dependencies."] == dependency_lines("group.version", 1)
    required = "    metadata.version=23 (4.0-IV1)"
    assert required == dependency_lines("eligible.leader.replicas.version", 1)[1]


@pytest.mark.parametrize("text", ["a", "a=b", "a=70000"])
def test_a_level_is_a_number_behind_an_equals_sign(text: str) -> None:
    with pytest.raises(EngineError, match="Can't parse feature=level string"):
        parse_feature_level(text)


# -- words of argparse4j

_COMMAND = Command(
    "tool",
    "Does it.",
    (
        CommandOption("props", "", "Several.", takes=Arity.SEVERAL),
        CommandOption("feature", "f", "Again and again.", takes=Arity.APPENDED),
        CommandOption("quiet", "q", "A flag.", takes=Arity.NOTHING),
        CommandOption("acks", "", "A choice.", choices=("0", "-1")),
    ),
)


def test_options_take_no_one_or_several_words() -> None:
    given = read_arguments(
        _COMMAND, ["--props", "a", "b", "-f", "x", "--feature=y", "-q", "--acks", "-1"]
    )
    assert ["a", "b"] == given.texts("props")
    assert ["x", "y"] == given.texts("feature")
    assert given.has("quiet")
    assert "-1" == given.text("acks")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--props", "expected at least one argument"),
        ("--acks 7", "invalid choice: '7' (choose from {0,-1})"),
        ("--quiet x", "unrecognized arguments: 'x'"),
    ],
)
def test_words_that_do_not_fit_are_refused(words: str, message: str) -> None:
    with pytest.raises(CommandRefused) as caught:
        read_arguments(_COMMAND, words.split())
    assert message in str(caught.value)
    assert caught.value.help.startswith("usage: tool [-h]")


def test_a_release_is_named_anywhere_among_the_words() -> None:
    assert (V4, ["--list"]) == split_release(["--list", "--kafka-version", "4.3"])
    assert (V3, ["--list"]) == split_release(["--kafka-version=3.9.1", "--list"])


# -- rates


def test_latencies_are_printed_by_interval_and_in_all() -> None:
    out = StringIO()
    stats = LatencyStats(out, 4, 1000, 0)
    for latency_ms, now_ms in ((10, 100), (30, 1000), (20, 1500)):
        stats.record(latency_ms, 1 << 20, now_ms)
    stats.print_total(2000)
    window, total = out.getvalue().splitlines()
    assert window == (
        "2 records sent, 2.0 records/sec (2.00 MB/sec), 20.0 ms avg latency, 30.0 ms max latency."
    )
    assert total == (
        "3 records sent, 1.500000 records/sec (1.50 MB/sec), 20.00 ms avg latency, "
        "30.00 ms max latency, 20 ms 50th, 30 ms 95th, 30 ms 99th, 30 ms 99.9th."
    )
    assert [0, 0] == percentiles_of([], (0.5, 0.99))


def test_a_throttle_waits_until_a_record_is_due() -> None:
    throttle = Throttle(10, 0)
    assert [100, 50, 0] == [throttle.pause_ms(0, now_ms) for now_ms in (0, 50, 100)]
    assert 0 == Throttle(-1, 0).pause_ms(9, 0)


def test_a_date_has_javas_pattern() -> None:
    text = DateFormat("yyyy'T'SSS HH:mm").text(1_000_007)
    assert "1970T007 " == text[:9]
    with pytest.raises(EngineError, match="EEE"):
        DateFormat("EEE")
