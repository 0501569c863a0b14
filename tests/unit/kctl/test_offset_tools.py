"""The rules of tools that show offsets, settings and versions, one by one.

The expectations were printed by the tools of 3.9.1.
"""

from __future__ import annotations

import pytest

from engine.client.connection import VersionRange
from engine.errors import EngineError
from engine.model import TopicPartition
from kctl.compat.configs_changes import parse_added_configs, parse_credential
from kctl.compat.java_client import check_bootstrap
from kctl.compat.java_failures import set_message_release
from kctl.compat.java_options import parse_options
from kctl.compat.java_uuids import java_uuid
from kctl.compat.offsets_tool import options, parse_filter, parse_time
from kctl.compat.records_tool import parse_offsets
from kctl.compat.releases import Release
from kctl.compat.topics_changes import parse_replica_assignment
from kctl.compat.versions_tool import versions_text

_KEYS = [TopicPartition(topic, partition) for topic in ("a", "b") for partition in range(4)]


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ("--topic a", "a-0 a-1 a-2 a-3"),
        ("--topic a --partitions 0,2", "a-0 a-2"),
        ("--topic-partitions a:1-3,b:0", "a-1 a-2 b-0"),
        ("--topic-partitions a:-2", "a-0 a-1"),
        ("--topic-partitions :0", "a-0 b-0"),
        ("--topic-partitions a:2-", "a-2 a-3"),
        ("--topic-partitions a:3-1", ""),
    ],
)
def test_partitions_are_chosen_by_patterns(words: str, chosen: str) -> None:
    is_wanted = parse_filter(parse_options(options(Release.V3_9), words.split()))
    assert chosen == " ".join(str(key) for key in _KEYS if is_wanted(key))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--topic-partitions a:x", "Invalid rule specification: a:x"),
        ("--topic a --partitions x", "numeric partition ids, but received: x"),
        ("--topic a --topic-partitions a", "cannot be used with --topic or --partitions"),
        ("--topic (", "( is an invalid regex."),
    ],
)
def test_patterns_that_do_not_fit_are_refused(words: str, message: str) -> None:
    with pytest.raises(EngineError) as caught:
        parse_filter(parse_options(options(Release.V3_9), words.split()))
    assert message in str(caught.value)


def test_a_time_is_a_name_or_a_number() -> None:
    assert [-2, -1, -3, 77] == [
        parse_time(text) for text in ("earliest", "-1", "max-timestamp", "77")
    ]
    with pytest.raises(EngineError, match="Malformed time argument noon"):
        parse_time("noon")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The input string is not a valid JSON"),
        ("[]", "Expected JSON object, received []"),
        ("{}", "Missing partitions field"),
        ('{"version":9}', "Not supported version field value 9"),
        (
            '{"partitions":[{"topic":"t","partition":0,"offset":"1"}]}',
            'Expected `Long` value, received "1"',
        ),
    ],
)
def test_a_file_of_offsets_that_does_not_fit_is_refused(text: str, message: str) -> None:
    with pytest.raises(EngineError) as caught:
        parse_offsets(text)
    assert message == str(caught.value)


def test_brackets_keep_commas_in_a_setting() -> None:
    added = parse_added_configs("cleanup.policy=[compact,delete], retention.ms = 5", is_four=False)
    assert {"cleanup.policy": "compact,delete", "retention.ms": "5"} == added
    with pytest.raises(EngineError, match="must be in the format"):
        parse_added_configs("retention.ms", is_four=False)


def test_a_credential_has_a_password_and_enough_iterations() -> None:
    assert 4096 == parse_credential("SCRAM-SHA-512", "password=x").iterations
    with pytest.raises(EngineError, match="Iterations 100 is less than the minimum 4096"):
        parse_credential("SCRAM-SHA-256", "iterations=100,password=x")
    with pytest.raises(EngineError, match="Invalid credential property SCRAM_SHA_256="):
        parse_credential("SCRAM-SHA-256", "iterations=8192")


def test_replicas_are_given_for_each_partition() -> None:
    assert [(1, 2), (2, 3)] == parse_replica_assignment("1:2,2:3")
    assert [] == parse_replica_assignment(",")
    for text in ("1:1", "1:2,3", "1:x", ":1"):
        with pytest.raises(EngineError):
            parse_replica_assignment(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not-an-id", "Last unit does not have enough valid bits"),
        ("A", "Input byte[] should at least have 2 bytes for base64 bytes"),
        ("!!", "Illegal base64 character 21"),
        ("A" * 33, f"Input string with prefix `{'A' * 24}` is too long"),
        ("A" * 12, "decoded as 9 bytes, which is not equal to the expected 16 bytes"),
    ],
)
def test_an_id_that_java_does_not_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(EngineError) as caught:
        java_uuid(text)
    assert message in str(caught.value)


@pytest.mark.parametrize("text", ["foo", "foo:x", ""])
def test_no_client_is_made_without_a_host_and_a_port(text: str) -> None:
    with pytest.raises(EngineError, match="Failed to create new KafkaAdminClient"):
        check_bootstrap(text)


def test_tools_of_4_3_refuse_an_empty_entry_among_their_brokers() -> None:
    set_message_release(Release.V4_3)
    with pytest.raises(EngineError, match="values must not be empty"):
        check_bootstrap("a:1,")
    set_message_release(Release.V3_9)
    assert "a:1" == check_bootstrap("a:1,")


def test_versions_that_both_sides_know_are_usable() -> None:
    offered = {0: VersionRange(0, 11), 3: VersionRange(99, 99), 999: VersionRange(0, 1)}
    lines = versions_text(offered, Release.V3_9).split("\n")
    assert ["(", "\tProduce(0): 0 to 11 [usable: 11],"] == lines[:2]
    assert "\tMetadata(3): 99 [unusable: node too new]," in lines
    assert "\tDescribeQuorum(55): UNSUPPORTED," in lines
    assert ["\tUNKNOWN(999): 0 to 1", ")"] == lines[-2:]


def test_a_client_of_4_3_has_nothing_left_of_the_requests_of_controllers_with_znodes() -> None:
    offered = {1: VersionRange(0, 3), 4: VersionRange(0, 7)}
    lines = versions_text(offered, Release.V4_3).split("\n")
    assert "\tFetch(1): 0 to 3 [unusable: node too old]," in lines
    assert "\tLeaderAndIsr(4): 0 to 7 [unusable: node too new]," in lines
    assert "\tStreamsGroupDescribe(89): UNSUPPORTED," in lines
    assert not any("StopReplica" in line for line in lines)
