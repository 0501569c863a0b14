"""What drawn command lines of Kafka's tools found: odd values, spellings, order of checks.

Expected texts are those of the tools of 3.9.1, run by tests/compat/tools_random.py.
"""

from __future__ import annotations

import errno
from io import StringIO

import pytest

from engine.client.errors import ClientSettingRefused
from engine.host import name_lookup
from engine.host.memory import MemoryFiles
from engine.host.ports import FileMissing, FileRefused
from engine.model import TopicPartition
from engine.records.record import Record, TimestampType
from kctl.compat import tools
from kctl.compat.acl_rules import parse_principals, resource_filters, rules_of_resources
from kctl.compat.acls_tool import options as acl_options
from kctl.compat.groups_plan import parse_plan
from kctl.compat.groups_tool import options as groups_options
from kctl.compat.java_client import (
    check_bootstrap,
    connect_resolved,
    refused_setting_failure,
    unreadable_properties_failure,
)
from kctl.compat.java_failures import ToolFailure, set_message_release
from kctl.compat.java_numbers import is_java_number, java_number
from kctl.compat.java_options import OptionsRefused, ToolOption, parse_options
from kctl.compat.java_order import in_java_map_order
from kctl.compat.java_patterns import compile_java_pattern, is_java_pattern
from kctl.compat.json_values import first_document
from kctl.compat.record_formatters import CutShort, DefaultFormatter, PrintedRecord
from kctl.compat.releases import Release
from kctl.compat.tools import run_tool
from kctl.compat.topics_views import compile_topic_pattern
from kctl.connect import ClusterOptions
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.reassign.memory_streams import MemoryStreams, client_of

_OPTIONS = (ToolOption("list", "A flag."), ToolOption("file", "A text.", "FILE"))
_TWICE = "Found multiple arguments for option bootstrap-server, but you asked for only one"
_SERVERS = ("--bootstrap-server", "a:1", "--bootstrap-server", "a:1")


def test_a_value_that_is_joined_may_be_empty() -> None:
    given = parse_options(_OPTIONS, ["--file=", "--list"])
    assert given.text("file") == ""
    assert given.has("list")


def test_an_unknown_word_with_one_dash_is_named_by_its_first_letter() -> None:
    with pytest.raises(OptionsRefused, match=r"\Af is not a recognized option\Z"):
        parse_options(_OPTIONS, ["-fil", "x"])


@pytest.mark.parametrize("word", ["--state", "--offsets", "--members", "--verbose", "--type"])
def test_options_that_go_with_an_action_are_unavailable_without_it(word: str) -> None:
    with pytest.raises(OptionsRefused) as caught:
        parse_options(groups_options(Release.V3_9), ["--delete", word])
    name = word.removeprefix("--")
    assert str(caught.value) == (
        f"Option(s) [{name}] are unavailable given other options on the command line"
    )
    assert parse_options(groups_options(Release.V3_9), ["--help", word]).has(name)


def test_numbers_may_have_digits_of_any_script() -> None:
    assert java_number("-١٢") == -12
    assert not is_java_number("²")


@pytest.mark.parametrize(
    ("text", "is_pattern"),
    [("a{2", False), ("{", False), ("a{x}", False), ("a{2,}", True), (r"\{", True), ("[{]", True)],
)
def test_a_brace_has_to_begin_a_repetition(text: str, is_pattern: bool) -> None:
    assert is_pattern == is_java_pattern(text)


def test_a_stray_brace_is_reported() -> None:
    with pytest.raises(ToolFailure, match=r"\Aa\{2 is an invalid regex\.\Z"):
        compile_topic_pattern("a{2")
    with pytest.raises(ToolFailure, match="Illegal repetition near index 1"):
        compile_java_pattern("a{2")


def test_replicas_of_one_bucket_come_in_the_order_of_the_response() -> None:
    # As a broker listed them, and as the tool printed them.
    of_response = [TopicPartition("events_a", 1), TopicPartition("__consumer_offsets", 2)]
    of_response += [TopicPartition("solo", 0), TopicPartition("orders", 0)]
    assert [str(key) for key in in_java_map_order(of_response)] == [
        "solo-0",
        "orders-0",
        "events_a-1",
        "__consumer_offsets-2",
    ]


def test_a_principal_needs_a_colon_alone() -> None:
    words = ["--principal", "User:", "--principal", ":x"]
    given = parse_options(acl_options(Release.V3_9), words)
    assert parse_principals(given, "principal") == ["User:", ":x"]


def test_the_cluster_comes_after_topics_and_before_all_other_resources() -> None:
    words = [
        "--user-principal",
        "User:a",
        "--group",
        "g",
        "--cluster",
        "--topic",
        "t",
        "--allow-principal",
        "User:a",
    ]
    given = parse_options(acl_options(Release.V3_9), words)
    kinds = [pattern.kind.name for pattern in rules_of_resources(given, Release.V3_9)]
    assert kinds == ["TOPIC", "CLUSTER", "GROUP", "USER"]


# Clients


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "Invalid value x for configuration request.timeout.ms: Not a number of type INT"),
        ("-5", "Invalid value -5 for configuration request.timeout.ms: Value must be at least 0"),
    ],
)
def test_a_number_among_client_properties_is_read_before_a_client_is_made(
    text: str, message: str
) -> None:
    error = ClientSettingRefused("request.timeout.ms", text, "must be a number of milliseconds")
    assert message == str(refused_setting_failure(error))


def test_an_address_without_a_host_is_this_machine() -> None:
    set_message_release(Release.V3_9)
    assert check_bootstrap(" :9092, b:1,") == "localhost:9092,b:1"


def test_no_client_is_made_where_no_address_resolves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(name_lookup, "look_up", lambda _host: name_lookup.LookupFailed("unknown"))
    with pytest.raises(ToolFailure, match="Failed to create new KafkaAdminClient") as caught:
        connect_resolved(ClusterOptions("nowhere:9092"))
    assert "No resolvable bootstrap urls given in bootstrap.servers" in caught.value.causes[0]


def test_a_directory_is_no_file_of_properties() -> None:
    refused = FileRefused("/d", "open", "Is a directory", errno.EISDIR)
    assert str(unreadable_properties_failure("/d", refused)) == "Is a directory"
    assert str(unreadable_properties_failure("", FileMissing(""))) == "Is a directory"
    assert (
        unreadable_properties_failure("x", FileMissing("x")).java_class
        == "java.nio.file.NoSuchFileException"
    )


# Whole calls, none of which reaches a broker


@pytest.mark.parametrize(
    ("tool", "words", "exit_code", "told"),
    [
        (tools.REASSIGN_PARTITIONS, ["--list", *_SERVERS], 1, f"Error: {_TWICE}"),
        (tools.ACLS, ["--list", *_SERVERS], 1, f"Error while executing ACL command: {_TWICE}"),
        (
            tools.CONSUMER_GROUPS,
            ["--list", *_SERVERS],
            0,
            f"\nError: Executing consumer group command failed due to {_TWICE}",
        ),
        (
            tools.CONSUMER_GROUPS,
            ["--list", "--bootstrap-server", "--x", "--timeout", "y"],
            0,
            "\nError: Executing consumer group command failed due to "
            "Failed to create new KafkaAdminClient",
        ),
        (
            tools.CONSUMER_GROUPS,
            ["--list", "--bootstrap-server", "127.0.0.1:1", "--command-config", "/no/such"],
            0,
            "\nError: Executing consumer group command failed due to "
            "java.nio.file.NoSuchFileException: /no/such",
        ),
        (
            tools.CLIENT_METRICS,
            ["--list", "--bootstrap-server", ""],
            1,
            "Error while executing client metrics command : Failed to create new KafkaAdminClient",
        ),
        (tools.CONSOLE_CONSUMER, ["--bootstrap-server", "a:1", "--topic", " "], 1, ""),
        (tools.GET_OFFSETS, ["--bootstrap-server", "a:1", "--time", ""], 1, ""),
    ],
)
def test_a_call_that_makes_no_client_ends_as_kafkas(
    tool: str,
    words: list[str],
    exit_code: int,
    told: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_code == run_tool(tool, words)
    assert capsys.readouterr().out.split("\norg.")[0].split("\njoptsimple")[0].rstrip() == told


@pytest.mark.parametrize(
    ("tool", "words", "told"),
    [
        (
            tools.CONSOLE_PRODUCER,
            "--max-block-ms 5",
            "Missing required option(s) [bootstrap-server]",
        ),
        (
            tools.ACLS,
            "--add --bootstrap-server x --delegation-token * --operation read "
            "--allow-principal User:a",
            "ResourceType DELEGATION_TOKEN only supports operations ",
        ),
        (
            tools.ACLS,
            "--add --bootstrap-server x --topic t --operation describe_configs "
            "--allow-principal User:a",
            "ResourceType TOPIC only supports operations ",
        ),
        (
            tools.PRODUCER_PERF,
            "--topic t --num-records 1 --throughput 1 --record-size 1 --producer-props acks=",
            "java.lang.IllegalArgumentException: Invalid property: acks=",
        ),
        (
            tools.TRANSACTIONS,
            "--bootstrap-server a:1 describe-producers --topic t --partition x",
            "could not convert 'x' to Integer (For input string: \"x\")",
        ),
        (
            tools.TRANSACTIONS,
            "--bootstrap-server a abort --topic t --partition 0 --start-offset 9223372036854775808",
            "argument --start-offset: could not convert '9223372036854775808' to Long",
        ),
        (
            tools.TRANSACTIONS,
            "--bootstrap-server a:1 abort --topic t --partition 0 --producer-epoch 32768",
            "argument --producer-epoch: could not convert '32768' to Short",
        ),
    ],
)
def test_a_message_of_wrong_options_is_kafkas(
    tool: str, words: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_tool(tool, words.split()) == 1
    assert told in capsys.readouterr().err


def test_a_record_is_printed_up_to_a_field_that_is_not_deserialized() -> None:
    properties = {
        "print.offset": "true",
        "value.deserializer": "org.apache.kafka.common.serialization.IntegerDeserializer",
    }
    shown = DefaultFormatter(properties, Release.V3_9)
    with pytest.raises(CutShort) as caught:
        shown(PrintedRecord("t", 0, Record(7, 0, TimestampType.CREATE_TIME, None, b"abc")))
    assert caught.value.text == b"Offset:7\t"


def test_records_of_a_partition_that_is_not_there_are_deleted_until_the_time_is_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = MemoryCluster(is_one_process=True)
    cluster.create_topic("t", ((1,),))
    files = MemoryFiles()
    files.make_dir("/given")
    content = b'{"partitions":[{"topic":"t","partition":9,"offset":1}]}'
    files.replace_file("/given/o.json", content)
    words = ["--bootstrap-server", "here:9092", "--offset-json-file", "/given/o.json"]
    code = run_tool(
        tools.DELETE_RECORDS,
        words,
        connecting=lambda _options: client_of(cluster, MemoryStreams(cluster)),
        files=files,
    )
    last = capsys.readouterr().out.splitlines()[-1]
    assert code == 0
    assert last.startswith(
        "partition: t-9\terror: org.apache.kafka.common.errors.TimeoutException: "
        "Call(callName=deleteRecords(api=METADATA), deadlineMs="
    )
    assert last.endswith(" attempt(s)")


def test_transactions_of_a_partition_that_is_not_there_are_not_searched(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = MemoryCluster(is_one_process=True)
    cluster.create_topic("t", ((1,),))
    words = "--bootstrap-server here:9092 find-hanging --topic t --partition 9"
    code = run_tool(
        tools.TRANSACTIONS,
        words.split(),
        connecting=lambda _options: client_of(cluster, MemoryStreams(cluster)),
    )
    found = capsys.readouterr()
    assert (1, "") == (code, found.out)
    assert "Failed to describe producers for 1 partitions on broker Optional.empty: " in found.err


def test_offsets_and_ids_of_transactions_are_long(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = MemoryCluster(is_one_process=True)
    cluster.create_topic("t", ((1,),))
    words = "--bootstrap-server here:9092 abort --topic t --partition 0 --start-offset 2147483648"
    code = run_tool(
        tools.TRANSACTIONS,
        words.split(),
        connecting=lambda _options: client_of(cluster, MemoryStreams(cluster)),
    )
    assert 1 == code
    assert "could not convert" not in capsys.readouterr().err


def test_separators_alone_name_no_file_to_dump(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run_tool(tools.DUMP_LOG, ["--files", ","])
    assert "" == capsys.readouterr().out


def test_what_follows_a_document_is_not_read() -> None:
    assert first_document(' {"version":1}trailing') == {"version": 1}
    with pytest.raises(ValueError, match="Expecting value"):
        first_document("")


def test_an_empty_type_of_patterns_is_none() -> None:
    given = parse_options(acl_options(Release.V3_9), ["--resource-pattern-type", ""])
    with pytest.raises(ToolFailure, match="Cannot parse argument '' of option"):
        resource_filters(given)


# Of 4.3.0


@pytest.mark.parametrize(
    ("tool", "words", "told"),
    [
        (
            tools.REASSIGN_PARTITIONS,
            "--list",
            "Please specify either --bootstrap-server or --bootstrap-controller",
        ),
        (tools.GET_OFFSETS, "--time 1", 'Missing required argument "[bootstrap-server]"'),
        (
            tools.CONSUMER_GROUPS,
            "--bootstrap-server a:1 --describe",
            "Option [describe] takes one of these options: [group], [all-groups]",
        ),
        (
            tools.CONSUMER_GROUPS,
            "--bootstrap-server a:1",
            "Command must include exactly one action: --list, --describe, --delete, "
            "--reset-offsets, --delete-offsets, --validate-regex",
        ),
        (
            tools.TOPICS,
            "--bootstrap-server a:1 --list --delete-config x --alter",
            "Command must include exactly one action: --list, --describe, --create, --alter or "
            "--delete",
        ),
    ],
)
def test_a_message_of_wrong_options_is_that_of_4_3(
    tool: str, words: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_tool(tool, ["--kafka-version", "4.3", *words.split()]) == 1
    assert told == capsys.readouterr().err.splitlines()[0]


def test_4_3_names_the_older_option_of_elections(capsys: pytest.CaptureFixture[str]) -> None:
    words = "--kafka-version 4.3 --bootstrap-server a:x --admin.config /no/such --election-type "
    run_tool(tools.LEADER_ELECTION, [*words.split(), "preferred", "--all-topic-partitions"])
    assert capsys.readouterr().out == (
        "Option --admin.config has been deprecated and will be removed in a future version. "
        "Use --command-config instead.\n"
    )


def test_4_3_takes_an_option_without_brokers_for_none(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--kafka-version", "4.3", "--list", "--bootstrap-server"]
    assert run_tool(tools.REASSIGN_PARTITIONS, words) == 1
    assert capsys.readouterr().out.startswith("Error: null\n")


def test_a_plan_with_a_negative_offset_is_refused() -> None:
    with pytest.raises(OptionsRefused, match="Invalid negative offset"):
        parse_plan("t,0,-5\n", ["g"], StringIO())
