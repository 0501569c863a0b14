"""The rules of kafka-consumer-groups, one by one; whole calls are in test_compat_golden.py.

The expectations were printed by the tool of 3.9.1.
"""

from __future__ import annotations

from io import StringIO

import pytest

import kctl.connect
from engine.model import TopicPartition
from kctl.compat.groups_changes import parse_partitions
from kctl.compat.groups_plan import parse_plan, plan_text
from kctl.compat.groups_tool import check_options, options
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_options import OptionsRefused, parse_options
from kctl.compat.java_order import names_in_copied_java_order, names_in_java_order
from kctl.compat.java_split import java_split, java_split_pattern
from kctl.compat.java_times import duration_ms_of, time_ms_of
from kctl.compat.offset_scenarios import refuse_repeated
from kctl.compat.releases import Release
from tests.client_session import FakeClock, FixedEntropy, Outcome, Player, run_with

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
_READER = "com.fasterxml.jackson"
_SCENARIO = (
    "Option '[reset-offsets]' requires one of the following scenarios: [[to-offset], [to-current], "
)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--list", 'Missing required argument "[bootstrap-server]"'),
        ("B --describe --group g --members --offsets", "takes at most one of these options"),
        ("B --describe --group g --state Stable", "does not take a value for [state]"),
        ("B --describe --all-groups --group g", '"[group]" can\'t be used with option "[all-'),
        ("B --describe --group g --topic t", '"[topic]" can\'t be used with option "[describe]'),
        ("B --list --topic t", '"[topic]" can\'t be used with option "[list]'),
        ("B --list --group g", '"[group]" can\'t be used with option "[list]'),
        (
            "B --delete --topic t",
            "Option [delete] takes one of these options: [all-groups], [group]",
        ),
        ("B --delete --group g --topic t", "does not support topic-specific offset deletion"),
        ("B --delete-offsets --topic t", "takes the following options: [all-groups], [group]"),
        ("B --reset-offsets --dry-run", "takes one of these options: [all-groups], [group]"),
        (
            "B --reset-offsets --dry-run --group g --shift-by 1 --from-file x",
            '"[shift-by]" can\'t be used with option "[from-file]"',
        ),
        (
            "B --reset-offsets --dry-run --group g --to-offset 1 --to-datetime x --by-duration y",
            '"[to-offset]" can\'t be used with option "[to-datetime]"',
        ),
        ("B --reset-offsets --group g --execute --dry-run", "only accepts one of [execute]"),
        ("B --group g", "Command must include exactly one action: --list, --describe, --delete,"),
        ("B --reset-offsets --delete --group g --to-latest", "exactly one action"),
    ],
)
def test_options_that_do_not_fit_are_refused(words: str, message: str) -> None:
    given = parse_options(
        options(Release.V3_9), words.replace("B", "--bootstrap-server b:1").split()
    )
    with pytest.raises(OptionsRefused) as caught:
        check_options(given)
    assert message in str(caught.value)
    assert caught.value.shows_usage


def test_the_tool_of_4_3_names_the_options_that_a_deletion_of_offsets_takes() -> None:
    words = ["--bootstrap-server", "b:1", "--delete-offsets", "--topic", "t"]
    given = parse_options(options(Release.V4_3), words, Release.V4_3)
    with pytest.raises(OptionsRefused, match=r"options: \[group\], \[topic\]$"):
        check_options(given)


@pytest.mark.parametrize(
    ("words", "states"),
    [
        ("--state", []),
        ("--state Empty", ["Empty"]),
        ("--state=Empty", ["Empty"]),
        ("--state= Empty", [""]),
        ("--state --list", []),
        ("--state - --list", ["-"]),
    ],
)
def test_an_optional_value_is_the_next_word_unless_it_is_an_option(
    words: str, states: list[str]
) -> None:
    given = parse_options(options(Release.V3_9), ["--list", *words.split()])
    assert given.has("state")
    assert states == list(given.texts("state"))


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("1970-01-02T00:00:00.000", 86_400_000),
        ("1970-01-02T00:00:00.000Z", 86_400_000),
        ("1970-01-02T00:00:00.000-05:00", 86_400_000),
        ("1970-1-2T0:0:0.5Z", 86_400_005),
        ("1970-01-02T00:00:00.999", 86_400_999),
    ],
)
def test_a_time_is_read_as_java_reads_it(
    text: str, time_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    assert time_ms == time_ms_of(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("yesterday", "It does not contain a 'T' according to ISO8601 format"),
        ("2020-01-01T", "It does not contain a 'T' according to ISO8601 format"),
        ("T", "It does not contain a 'T' according to ISO8601 format"),
        ("2020-01-01T00:00:00", 'Unparseable date: "2020-01-01T00:00:00Z"'),
        ("2020-13-01T00:00:00.000", 'Unparseable date: "2020-13-01T00:00:00.000Z"'),
        ("2020-01-01T00:00:00.1234", 'Unparseable date: "2020-01-01T00:00:00.1234Z"'),
        ("2020-01-01T00:00:61.000+01:00", 'Unparseable date: "2020-01-01T00:00:61.000+01:00"'),
    ],
)
def test_a_time_that_java_does_not_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        time_ms_of(text)
    assert str(caught.value).startswith("java.text.ParseException: ")
    assert str(caught.value).endswith(message)


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        ("P1DT2H3M4.5S", 93_784_500),
        ("pt0s", 0),
        ("PT-1H", -3_600_000),
        ("-P1D", -86_400_000),
        ("PT-0.5S", -500),
        ("-PT1.000000001S", -1001),
        ("P2D", 172_800_000),
    ],
)
def test_a_duration_is_read_as_java_reads_it(text: str, duration_ms: int) -> None:
    assert duration_ms == duration_ms_of(text)


@pytest.mark.parametrize("text", ["3days", "P", "PT", "P1W", "P1DT", "1D", ""])
def test_a_duration_that_java_does_not_read_is_refused(text: str) -> None:
    with pytest.raises(ToolFailure, match="Text cannot be parsed to a Duration"):
        duration_ms_of(text)


@pytest.mark.parametrize(
    ("text", "groups", "plan"),
    [
        ("t,0,1\nt,1,2\n", ["g"], {"g": {T0: 1, T1: 2}}),
        ("g,t,0,5\nh,t,1,2", ["g"], {"g": {T0: 5}, "h": {T1: 2}}),
        ("g,t,0,5\nh,t,1,2", ["g", "h"], {"g": {T0: 5}, "h": {T1: 2}}),
        ("t,0,1\n", ["g", "h"], {"t": {TopicPartition("0", 1): 0}}),
        ("t,zero,1\n", ["g"], {"t": {TopicPartition("zero", 1): 0}}),
        ("t,zero\n", ["g"], {"t": {TopicPartition("zero", 0): 0}}),
        ("t,99999999999,1\n", ["g"], {"t": {TopicPartition("99999999999", 1): 0}}),
        ('"t",0,1\nt,"1", 2 \r\n', ["g"], {"g": {T0: 1, T1: 2}}),
        ("t,0,1\nt,0,2\n", ["g"], {"g": {T0: 2}}),
        ("t,,1\n", ["g"], {"g": {T0: 1}}),
        ("t,0,18446744073709551617\n", ["g"], {"g": {T0: 1}}),
        pytest.param(f"t,0,{'0' * 999}7\n", ["g"], {"g": {T0: 7}}, id="as many as are read"),
        ("\n", ["g"], {}),
    ],
)
def test_a_plan_is_read_as_kafka_reads_it(
    text: str, groups: list[str], plan: dict[str, dict[TopicPartition, int]]
) -> None:
    assert plan == parse_plan(text, groups, StringIO())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "t,0,1\nt,1,y\n",
            f"{_READER}.databind.exc.InvalidFormatException: Cannot deserialize value of type "
            '`long` from String "y": not a valid `long` value\n'
            " at [Source: (StringReader); line: 1, column: 5] (through reference chain: "
            'org.apache.kafka.tools.consumer.group.CsvUtils$CsvRecordNoGroup["offset"])',
        ),
        (
            "g,t,0,1\ng,t,1,2,3,4\n",
            f"{_READER}.dataformat.csv.CsvReadException: Too many entries: expected at most 4 "
            '(value #4 (1 chars) "3")\n at [Source: (StringReader); line: 1, column: 9]',
        ),
        (
            "t,0,1\n\nt,1,2",
            f"{_READER}.databind.exc.MismatchedInputException: No content to map due to "
            "end-of-input\n at [Source: (StringReader); line: UNKNOWN, column: UNKNOWN]",
        ),
        (
            "",
            f"{_READER}.databind.exc.MismatchedInputException: No content to map due to "
            "end-of-input\n at [Source: (StringReader); line: UNKNOWN, column: UNKNOWN]",
        ),
    ],
)
def test_a_line_that_cannot_be_read_ends_the_reading(text: str, message: str) -> None:
    with pytest.raises(ToolFailure) as caught:
        parse_plan(text, ["g"], StringIO())
    assert message == str(caught.value)


@pytest.mark.parametrize(
    ("line", "size", "name"),
    [
        pytest.param("t,0," + "9" * 5000, 5000, "offset", id="beyond what Python reads"),
        pytest.param("t,0, -" + "0" * 1000, 1001, "offset", id="a sign and a space"),
        pytest.param("t," + "9" * 5000 + ",1", 5000, "partition", id="partition"),
    ],
)
def test_a_number_of_more_digits_than_jackson_reads_is_refused(
    line: str, size: int, name: str
) -> None:
    with pytest.raises(ToolFailure) as caught:
        parse_plan(f"t,0,1\n{line}\n", ["g"], StringIO())
    assert str(caught.value) == (
        f"{_READER}.databind.JsonMappingException: Number value length ({size}) exceeds the "
        "maximum allowed (1000, from `StreamReadConstraints.getMaxNumberLength()`) (through "
        "reference chain: "
        f'org.apache.kafka.tools.consumer.group.CsvUtils$CsvRecordNoGroup["{name}"])'
    )


def test_the_first_mistake_of_a_line_is_told_of_the_kind_that_is_tried_first() -> None:
    err = StringIO()
    parse_plan("g,t,0,1\n", ["g"], err)
    assert err.getvalue().startswith(
        f"{_READER}.databind.exc.InvalidFormatException: Cannot deserialize value of type `int` "
        'from String "t": not a valid `int` value\n'
    )


@pytest.mark.parametrize(
    ("group", "written"),
    [
        ("a.b-c_d", "a.b-c_d"),
        ("a b", '"a b"'),
        ("a+b", '"a+b"'),
        ("a'b", '"a\'b"'),
        ('a"b', '"a""b"'),
        ("é", "é"),
        ("1" * 24, "1" * 24),
        ("1" * 25, '"' + "1" * 25 + '"'),
    ],
)
def test_a_plan_is_written_with_quotes_where_jackson_writes_them(group: str, written: str) -> None:
    plan = {group: {T0: 3}}
    assert f"{written},t,0,3\n" == plan_text(plan, names_groups=True)
    assert "t,0,3\n" == plan_text(plan, names_groups=False)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t:x", "Invalid partition 'x' specified in topic arg 't:x''"),
        ("t:1_0", "Invalid partition '1_0' specified in topic arg 't:1_0''"),
        ("t:0:1", "Invalid topic arg 't:0:1', expected topic name and partitions"),
        (":", "Invalid topic arg ':', expected topic name and partitions"),
        ("t:", "Invalid topic arg 't:', expected topic name and partitions"),
        ("t:\U0001d7d8", "Invalid partition '\U0001d7d8' specified in topic arg 't:\U0001d7d8''"),
        (
            "t:99999999999",
            "Invalid partition '99999999999' specified in topic arg 't:99999999999''",
        ),
    ],
)
def test_partitions_that_cannot_be_read_are_refused(text: str, message: str) -> None:
    with pytest.raises(OptionsRefused) as caught:
        parse_partitions(text)
    assert message == str(caught.value)


class CountedPartition(TopicPartition):
    """A partition that counts how often it is compared with another."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedPartition.compared += 1
        return tuple(self) == other

    __hash__ = TopicPartition.__hash__


def test_a_partition_is_not_compared_with_all_others_to_find_it_twice() -> None:
    partitions = [CountedPartition("t", number) for number in range(300)]
    refuse_repeated(partitions, str)
    assert CountedPartition.compared < len(partitions)
    message = r"^Duplicate key t-7 \(attempted merging values t-7! and t-7!\)$"
    with pytest.raises(ToolFailure, match=message):
        refuse_repeated([*partitions, partitions[7]], "{}!".format)


def test_partitions_are_named_behind_their_topic() -> None:
    assert [T0, T1, T0] == parse_partitions("t:0,1,0,")


@pytest.mark.parametrize(
    ("text", "parts"),
    [("a:b", ["a", "b"]), (":a::", ["", "a"]), (":", []), ("", [""]), ("a", ["a"])],
)
def test_text_is_split_without_the_empty_parts_at_its_end(text: str, parts: list[str]) -> None:
    assert parts == java_split(text, ":")
    assert parts == java_split_pattern(text, "[:]")


def test_names_are_in_the_order_of_a_java_map() -> None:
    names = [f"many-{number}" for number in range(20)] + ["ga", "gb", "live", "live2"]
    names.append("wide-group-with-a-long-name")
    named = (
        "many-8 many-16 many-9 many-15 many-6 many-14 many-7 many-13 many-19 many-18 many-17 "
        "many-0 many-1 wide-group-with-a-long-name many-4 many-5 many-2 many-3 ga gb many-12 "
        "many-11 many-10 live live2"
    )
    assert named.split() == names_in_java_order(names)


@pytest.mark.parametrize(
    ("count", "copied", "grown"),
    [
        (3, "group-7 group-14 group-0", "added-x group-7 group-14 added-y group-0"),
        (
            4,
            "group-21 group-7 group-14 group-0",
            "group-21 added-x group-7 group-14 added-y group-0",
        ),
        (
            6,
            "group-21 group-7 group-28 group-14 group-35 group-0",
            "group-21 group-7 group-28 added-x group-14 group-35 added-y group-0",
        ),
    ],
)
def test_a_copy_of_a_java_map_has_an_order_of_its_own(count: int, copied: str, grown: str) -> None:
    names = names_in_java_order(f"group-{number * 7}" for number in range(count))
    assert copied.split() == names_in_copied_java_order(names)
    assert grown.split() == names_in_copied_java_order(names, ["added-x", "added-y"])


_LATE = "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment."


@pytest.mark.parametrize(
    ("release", "topic", "printed"),
    [
        (
            "4.3",
            "t:0",
            "\nError: Encountered some unknown error: REQUEST_TIMED_OUT\n\n"
            "TOPIC           PARTITION  STATUS         \n"
            f"t               0          Error: {_LATE} Call: offsetDelete(api=FIND_COORDINATOR)\n",
        ),
        (
            "4.3",
            "t",
            "\nError: Encountered some unknown error: REQUEST_TIMED_OUT\n\n"
            "TOPIC           PARTITION  STATUS         \n"
            f"t               -          Error: {_LATE} Call: listNodes\n",
        ),
        (
            "3.9",
            "t",
            "\nError: Encounter some unknown error: REQUEST_TIMED_OUT\n\n"
            "TOPIC                          PARTITION       STATUS         "
            f"t                              Not Provided    Error: :{_LATE} Call: listNodes",
        ),
    ],
)
def test_a_deletion_of_offsets_without_a_broker_is_printed_as_such(
    release: str, topic: str, printed: str
) -> None:
    words = f"--delete-offsets --group g --topic {topic} --timeout 400"
    ended = called(f"{words} --kafka-version {release}")
    assert (0, printed) == (ended.exit, ended.stdout)


@pytest.mark.parametrize("release", ["3.9", "4.3"])
@pytest.mark.parametrize(
    ("words", "wrapped"),
    [
        ("--list", "java.util.concurrent.ExecutionException: "),
        ("--list --state", ""),
        ("--list --type classic", ""),
    ],
)
def test_a_list_without_a_broker_ends_as_kafkas_does(
    release: str, words: str, wrapped: str
) -> None:
    ended = called(f"{words} --timeout 400 --kafka-version {release}")
    cause = "org.apache.kafka.common.KafkaException: Failed to find brokers to send ListGroups"
    message = f"Executing consumer group command failed due to {wrapped}{cause}"
    assert (0, f"\nError: {message}\n") == (ended.exit, ended.stdout)


def called(words: str) -> Outcome:
    """Call the tool where no broker answers."""
    clock = FakeClock()
    host = kctl.connect.Host(Player(clock, []), clock, FixedEntropy())
    server = ["--bootstrap-server", "127.0.0.1:1"]
    return run_with(host, ["compat", "kafka-consumer-groups", *server, *words.split()], None)
