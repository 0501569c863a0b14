"""The rules of our twins of Kafka's tools, one by one; whole calls are in test_compat_golden.py."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.client.errors import NoCommonVersion
from engine.client.leader_admin import Election
from engine.client.reassignments import OngoingReassignment
from engine.errors import ApiError, EngineError, api_error
from engine.kafka_errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    GROUP_ID_NOT_FOUND,
    INVALID_GROUP_ID,
    INVALID_TOPIC_EXCEPTION,
    NOT_LEADER_OR_FOLLOWER,
    REQUEST_TIMED_OUT,
)
from engine.model import TopicPartition
from kctl.commands.compat.app import run
from kctl.compat.generated_plan import UsableBroker, generate_plan, usable_brokers
from kctl.compat.installing import CannotInstall, ForeignScript, install_scripts
from kctl.compat.java_failures import ToolFailure, java_text, message_of, set_message_release
from kctl.compat.java_options import OptionsRefused, ToolOption, parse_options
from kctl.compat.java_order import in_java_order
from kctl.compat.json_mistakes import mistake_of
from kctl.compat.move_states import LogDirMove, log_dir_move_line
from kctl.compat.plan_json import (
    Replica,
    parse_proposal,
    parse_proposal_to_execute,
    parse_topics,
    read_broker_list,
)
from kctl.compat.releases import Release
from kctl.compat.tool_throttles import MovedPartition, proposed_moves, throttled_replicas_by_topic
from kctl.compat.tools import (
    CLUSTER,
    CONSUMER_GROUPS,
    E2E_LATENCY,
    FEATURES,
    GROUPS,
    METADATA_QUORUM,
    PRODUCER_PERF,
    SHARE_GROUPS,
    STORAGE,
    STREAMS_GROUPS,
    TOOLS,
    TRANSACTIONS,
    VERIFIABLE_CONSUMER,
    VERIFIABLE_PRODUCER,
    ZOOKEEPER_SHELL,
)
from tests.client_session import FixedEntropy

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)

_OPTIONS = (
    ToolOption("list", "A flag."),
    ToolOption("file", "A text.", "FILE"),
    ToolOption("rate", "A number.", "NUMBER"),
)


@pytest.mark.parametrize(
    ("words", "given"),
    [
        (["--list"], {"list": None}),
        (["--file", "--list"], {"file": "--list"}),
        (["--file=a=b"], {"file": "a=b"}),
        (["stray", "--rate", "-1", "-"], {"rate": "-1"}),
        (["--list", "-list=x"], {"list": None}),
        (["-file", "a"], {"file": "a"}),
        (["--list", "--", "--file"], {"list": None}),
    ],
)
def test_options_are_read_as_java_reads_them(words: list[str], given: dict[str, Any]) -> None:
    found = parse_options(_OPTIONS, words)
    assert given == {name: found.text(name) for name in found.names()}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--lis"], "lis is not a recognized option"),
        (["--file"], "Option file requires an argument"),
        (["---list"], "-list is not a recognized option"),
    ],
)
def test_words_that_fit_no_option_are_refused(words: list[str], told: str) -> None:
    with pytest.raises(OptionsRefused) as caught:
        parse_options(_OPTIONS, words)
    assert told == str(caught.value)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--rate", "--5"], "Cannot parse argument '--5' of option rate"),
        (
            ["--rate=1", "--rate=1"],
            "Found multiple arguments for option rate, but you asked for only one",
        ),
    ],
)
def test_a_value_that_cannot_be_is_reported_when_it_is_wanted(words: list[str], told: str) -> None:
    given = parse_options(_OPTIONS, words)
    with pytest.raises(ToolFailure) as caught:
        given.number("rate", 0)
    assert told == str(caught.value)


def test_partitions_are_printed_in_the_order_of_a_hash_set_of_java() -> None:
    # As the real tool told them.
    told = ["xx", "down-d", "votes", "down-a"]
    keys = [TopicPartition(topic, 0) for topic in told]
    assert keys == in_java_order(sorted(keys))


def _row(**fields: Any) -> str:
    import json

    row = {"topic": "t", "partition": 0, "replicas": [1, 2], **fields}
    return json.dumps({"version": 1, "partitions": [row]})


@pytest.mark.parametrize(
    ("read", "text", "told"),
    [
        (parse_proposal_to_execute, "{}", "Partition reassignment list cannot be empty"),
        (
            parse_proposal,
            " ",
            "The input string shouldn't be empty\n at [Source: UNKNOWN; byte offset: #UNKNOWN]",
        ),
        (parse_proposal, "[]", "Expected JSON object, received []"),
        (parse_proposal, '{"version": "1"}', 'Expected `Integer` value, received "1"'),
        (parse_proposal, '{"version": 1, "partitions": 3}', "Expected JSON array, received 3"),
        (parse_proposal, '{"version": 1, "partitions": [{}]}', "No such field exists: `topic`"),
        (parse_proposal, _row(replicas=[True]), "Expected `Integer` value, received true"),
        (parse_proposal, _row(topic=7), "Expected `String` value, received 7"),
        (
            parse_proposal,
            _row(log_dirs=["any"]),
            "Size of replicas list [1, 2] is different from size of log dirs list [any] for "
            "partition t-0",
        ),
        (
            parse_proposal_to_execute,
            _row(replicas=[2, 1, 2, 1]),
            "Partition replica lists may not contain duplicate entries: t-0 contains multiple "
            "entries for 1,2",
        ),
        (parse_topics, '{"version": 2}', "Not supported version field value 2"),
        (
            parse_topics,
            '{"topics": [{"topic": "a"}, {"topic": "a"}]}',
            "List of topics to reassign contains duplicate entries: [a]",
        ),
        (read_broker_list, "1,x", 'For input string: "x"'),
        (read_broker_list, "1, 1", 'For input string: " 1"'),
        (read_broker_list, "1_0", 'For input string: "1_0"'),
        (read_broker_list, "2,1,2,1", "Broker list contains duplicate entries: [1, 2]"),
    ],
)
def test_a_malformed_file_is_reported_as_kafkas_tool_does(
    read: Callable[[str], object], text: str, told: str
) -> None:
    with pytest.raises(ToolFailure) as caught:
        read(text)
    assert told == str(caught.value)


@pytest.mark.parametrize(("text", "broker_ids"), [("1,+2,", [1, 2]), (",", [])])
def test_a_list_of_brokers_may_end_with_a_comma(text: str, broker_ids: list[int]) -> None:
    assert broker_ids == read_broker_list(text)


def test_log_directories_of_a_file_are_those_that_are_named() -> None:
    proposal = parse_proposal(_row(log_dirs=["any", "/d"]))
    assert {Replica(T0, 2): "/d"} == proposal.log_dirs


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"a": ["]"', "Array (start marker at [S; line: 1, column: 7])\n at [S; line: 1, col"),
        ('{\n "a": 1', "Object (start marker at [S; line: 1, column: 1])\n at [S; line: 2, col"),
    ],
)
def test_json_that_ends_too_early_is_reported_with_the_open_brackets(text: str, place: str) -> None:
    source = "[Source: REDACTED (`StreamReadFeature.INCLUDE_SOURCE_IN_LOCATION` disabled)"
    told = mistake_of(text).replace(source, "[S")
    assert told.startswith(f"Unexpected end-of-input: expected close marker for {place}")


def test_an_empty_file_is_reported_as_such() -> None:
    assert mistake_of(" \n").startswith(
        "The input string shouldn't be empty\n at [Source: UNKNOWN;"
    )


def test_sources_of_a_move_under_way_go_before_the_replicas_of_now() -> None:
    ongoing = {
        T0: OngoingReassignment((3, 1, 2), (3,), (1,)),
        TopicPartition("u", 0): OngoingReassignment((5, 4), (5,), (4,)),
    }
    moves = proposed_moves(ongoing, {T0: (4, 2), T1: (2, 3)}, {T0: (3, 1, 2), T1: (1, 2)})
    assert MovedPartition(frozenset({1, 2}), frozenset({4})) == moves[T0]
    assert {
        "t": ("0:1,0:2,1:1,1:2", "0:4,1:3"),
        "u": ("0:4", "0:5"),
    } == throttled_replicas_by_topic(moves)


def test_a_move_that_adds_nothing_has_an_empty_follower_list() -> None:
    moves = proposed_moves({}, {T0: (2, 1)}, {T0: (1, 2)})
    assert {"t": ("0:1,0:2", "")} == throttled_replicas_by_topic(moves)


@pytest.mark.parametrize(
    ("move", "told", "is_over"),
    [
        (LogDirMove("/b"), "Partition t-0 is not found in any live log dir on broker 1.", False),
        (LogDirMove("/b", "/a", "/b"), "replica t-0-1 is still in progress.", False),
        (LogDirMove("/b", "/a", "/c"), "is being moved to log dir /c instead of /b.", False),
        (LogDirMove("/b", "/b"), "replica t-0-1 completed successfully.", True),
        (LogDirMove("/b", "/a"), "is not being moved from log dir /a to /b.", True),
    ],
)
def test_moves_between_directories_are_reported_by_what_is_left(
    move: LogDirMove, told: str, is_over: bool
) -> None:
    assert told in log_dir_move_line(Replica(T0, 1), move)
    assert move.is_over == is_over


def test_racks_of_some_brokers_alone_are_refused_unless_they_do_not_count() -> None:
    brokers = [UsableBroker(2, None), UsableBroker(1, "a")]
    with pytest.raises(ToolFailure, match="--disable-rack-aware"):
        usable_brokers(brokers, is_rack_aware=True)
    assert [UsableBroker(1, None), UsableBroker(2, None)] == usable_brokers(
        brokers, is_rack_aware=False
    )


def test_a_generated_plan_spreads_replicas_over_racks() -> None:
    brokers = [UsableBroker(id_, "a" if id_ < 3 else "b") for id_ in (1, 2, 3, 4)]
    current = {TopicPartition("t", number): (1, 2) for number in range(8)}
    plan = generate_plan(current, brokers, FixedEntropy())
    assert set(current) == set(plan)
    assert all((first < 3) != (second < 3) for first, second in plan.values())


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (INVALID_TOPIC_EXCEPTION, "InvalidTopicException"),
        (REQUEST_TIMED_OUT, "TimeoutException"),
        (NOT_LEADER_OR_FOLLOWER, "NotLeaderOrFollowerException"),
        (CLUSTER_AUTHORIZATION_FAILED, "ClusterAuthorizationException"),
    ],
)
def test_errors_have_the_names_of_javas_exceptions(code: int, name: str) -> None:
    assert f"org.apache.kafka.common.errors.{name}: why" == java_text(api_error(code, "why"))


def test_an_api_that_a_broker_does_not_have_is_an_unsupported_version() -> None:
    absent = NoCommonVersion("ShareGroupDescribe", ours=(1, 1), theirs=None)
    unsupported = "org.apache.kafka.common.errors.UnsupportedVersionException"
    assert f"{unsupported}: The node does not support SHARE_GROUP_DESCRIBE" == java_text(absent)


@pytest.mark.parametrize(
    ("release", "package"),
    [(Release.V3_9, "org.apache.kafka.server.common"), (Release.V4_3, "org.apache.kafka.tools")],
)
def test_the_class_of_a_refusal_is_in_the_package_of_its_release(
    release: Release, package: str
) -> None:
    set_message_release(release)
    try:
        for name in ("AdminCommandFailedException", "AdminOperationException"):
            failure = ToolFailure(f"org.apache.kafka.server.common.{name}", "no")
            assert f"{package}.{name}: no\n" == failure.trace()
    finally:
        set_message_release(Release.V3_9)


def test_the_message_of_an_error_is_that_of_the_tools_release() -> None:
    refused, regular = api_error(INVALID_GROUP_ID), api_error(GROUP_ID_NOT_FOUND)
    for release, message in (
        (Release.V4_3, "The group id is invalid."),
        (Release.V3_9, "The configured groupId is invalid."),
    ):
        set_message_release(release)
        assert message == message_of(refused)
        assert "The group id does not exist." == message_of(regular)


# -- calls without a cluster


#: Tools whose first word is a command, or that read their words as argparse4j does.
_OTHERS = (
    CLUSTER,
    TRANSACTIONS,
    FEATURES,
    METADATA_QUORUM,
    STORAGE,
    PRODUCER_PERF,
    VERIFIABLE_PRODUCER,
    VERIFIABLE_CONSUMER,
    E2E_LATENCY,
    ZOOKEEPER_SHELL,
)


def test_a_file_that_is_missing_is_found_before_addresses_that_make_no_client(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--list", "--bootstrap-server", "nowhere", "--command-config", "/no/such/file"]
    assert 0 == run([CONSUMER_GROUPS, *words])
    assert "NoSuchFileException: /no/such/file\n" in capsys.readouterr().out


_OF_FOUR = (GROUPS, SHARE_GROUPS, STREAMS_GROUPS)


@pytest.mark.parametrize("tool", _OF_FOUR)
def test_a_tool_of_4_3_alone_is_unknown_to_an_older_release(
    tool: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == run([tool, "--kafka-version", "3.9", "--list"])
    assert ("", f"Kafka 3.9.1 has no {tool}: it is a tool of 4.3.0\n") == capsys.readouterr()
    assert 0 == run([tool, "--kafka-version=4.3", "--version"])
    assert "4.3.0\n" == capsys.readouterr().out


@pytest.mark.parametrize("tool", [tool for tool in TOOLS if tool not in _OTHERS])
def test_help_goes_to_stderr_and_the_version_to_stdout(
    tool: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in ([], ["--help"]):
        assert run([tool, *words]) == 1
        out, err = capsys.readouterr()
        assert (out, f"Usage: {tool} " in err) == ("", True)
    assert run([tool, "--version"]) == 0
    release = "4.3.0" if tool in _OF_FOUR else "3.9.1"
    assert f"{release}\n" == capsys.readouterr().out


def test_a_tool_with_commands_prints_requested_help_on_stdout(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run([CLUSTER, "--help"]) == 1
    assert capsys.readouterr().out.startswith("usage: kafka-cluster ")
    assert run([CLUSTER]) == 1
    assert capsys.readouterr().err.startswith("usage: kafka-cluster ")


@pytest.mark.parametrize(
    ("tool", "code", "bare_code"),
    [
        (TRANSACTIONS, 1, 1),
        (FEATURES, 1, 1),
        (METADATA_QUORUM, 0, 1),
        (STORAGE, 0, 1),
        (PRODUCER_PERF, 1, 0),
        (VERIFIABLE_PRODUCER, 1, 0),
        (VERIFIABLE_CONSUMER, 1, 0),
    ],
)
def test_help_of_argparse4j_goes_to_stdout(
    tool: str, code: int, bare_code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code == run([tool, "--help"])
    assert capsys.readouterr().out.startswith("usage: ")
    assert bare_code == run([tool])
    out, err = capsys.readouterr()
    assert (out if bare_code == 0 else err).startswith("usage: ")


def test_tools_of_commands_print_their_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert 1 == run([E2E_LATENCY])
    assert capsys.readouterr().err.startswith("USAGE: ")
    # As the shell script does before it starts Java.
    assert 1 == run([ZOOKEEPER_SHELL])
    assert capsys.readouterr().out.startswith("USAGE: ")


def test_a_tool_follows_the_release_that_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run(["kafka-acls", "--kafka-version", "4.3", "--version"])
    assert "4.3.0\n" == capsys.readouterr().out
    assert 1 == run(["kafka-acls", "--kafka-version=2.0", "--version"])
    assert "expected one of" in capsys.readouterr().err
    for release in ("3.9.1", "4.3.0"):
        assert 0 == run(["kafka-topics", "--kafka-version", release, "--version"])
        assert f"{release}\n" == capsys.readouterr().out


def test_a_cluster_that_cannot_be_reached_is_an_error_of_the_tool(
    capsys: pytest.CaptureFixture[str],
) -> None:
    nobody = ["--bootstrap-server", "localhost:1"]
    assert run(["kafka-reassign-partitions", *nobody, "--list"]) == 1
    lines = capsys.readouterr().out.split("\n")
    assert lines[0].startswith("Error: org.apache.kafka.common.errors.TimeoutException: ")
    assert run(["kafka-leader-election", *nobody, "--election-type", "unclean", *_ALL]) == 1
    out, err = capsys.readouterr()
    assert ("", True) == (out, "TimeoutException" in err)


_ALL = ["--all-topic-partitions"]


class _Refusing:
    """A client whose elections all end by one error."""

    def __init__(self, error: EngineError) -> None:
        self._error = error
        self.timeout_ms = 1000

    def __enter__(self) -> _Refusing:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def send(self, *_: object, **__: object) -> object:
        raise self._error


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (api_error(REQUEST_TIMED_OUT), "Timeout waiting for election results\n"),
        (api_error(CLUSTER_AUTHORIZATION_FAILED), "Not authorized to perform leader election\n"),
        (api_error(NOT_LEADER_OR_FOLLOWER), ""),
    ],
)
def test_an_election_that_fails_as_a_whole_says_so_on_stdout(
    error: ApiError, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from kctl.compat.tools import run_tool

    words = ["--bootstrap-server", "a:1", "--election-type", Election.UNCLEAN.name, *_ALL]
    client: Any = _Refusing(error)
    assert run_tool("kafka-leader-election", words, connecting=lambda _: client) == 1
    assert told == capsys.readouterr().out


# -- scripts


def test_installed_scripts_run_the_tools(tmp_path: Path) -> None:
    paths = install_scripts(str(tmp_path / "bin"), Release.V3_9, is_forced=False)
    assert [f"{tool}.sh" for tool in TOOLS] == [os.path.basename(path) for path in paths]
    assert all(os.stat(path).st_mode & stat.S_IXUSR for path in paths)
    done = subprocess.run([paths[0], "--version"], capture_output=True, text=True, check=True)
    assert "3.9.1\n" == done.stdout


def test_a_script_of_somebody_else_is_not_written_over(tmp_path: Path) -> None:
    install_scripts(str(tmp_path), Release.V3_9, is_forced=False)
    theirs = tmp_path / f"{TOOLS[1]}.sh"
    theirs.write_text("#!/bin/sh\n")
    with pytest.raises(ForeignScript):
        install_scripts(str(tmp_path), Release.V3_9, is_forced=False)
    assert "#!/bin/sh\n" == theirs.read_text()
    install_scripts(str(tmp_path), Release.V3_9, is_forced=True)
    assert "kctl compat" in theirs.read_text()


def test_a_directory_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotInstall):
        install_scripts(str(tmp_path / "file" / "bin"), Release.V3_9, is_forced=False)
