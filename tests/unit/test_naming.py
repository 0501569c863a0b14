"""Names on disk, taken apart and put together again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.model import TopicPartition
from engine.naming import (
    DirectoryKind,
    FileKind,
    FileState,
    InvalidTopicName,
    PartitionDirectory,
    SegmentFileName,
    UnknownDirectoryName,
    UnknownFileName,
    fits_coordinator_key,
    parse_partition_directory,
    parse_segment_file,
    parse_topic_partition,
    topics_collide,
    validate_topic,
)

HEX = "0123456789abcdef0123456789abcdef"
TOPICS = st.text("abcXYZ019._-", min_size=1, max_size=249).filter(lambda t: t not in (".", ".."))


@given(TOPICS, st.integers(0, 2**31 - 1))
def test_every_partition_directory_name_reads_back(topic: str, partition: int) -> None:
    named = PartitionDirectory(topic, partition)
    if len(topic) < 200:
        for kind in (DirectoryKind.DELETE, DirectoryKind.FUTURE, DirectoryKind.STRAY):
            other = named._replace(kind=kind, unique_id=HEX)
            assert parse_partition_directory(other.name) == other
    assert parse_partition_directory(named.name) == named
    assert named.topic_partition == TopicPartition(topic, partition)


@given(st.text(max_size=300))
def test_any_text_is_a_name_or_a_typed_error(text: str) -> None:
    for parse, error in (
        (parse_partition_directory, UnknownDirectoryName),
        (parse_segment_file, UnknownFileName),
        (validate_topic, InvalidTopicName),
    ):
        try:
            parse(text)
        except error as refused:
            assert refused.reason


def test_the_partition_is_behind_the_last_dash() -> None:
    assert parse_topic_partition("a-b-7") == ("a-b", 7)
    assert parse_partition_directory("orders-delete-0") == (
        "orders-delete",
        0,
        DirectoryKind.LIVE,
        "",
    )


def test_a_deleted_directory_has_a_unique_id() -> None:
    assert parse_partition_directory(f"my.topic-3.{HEX}-delete") == (
        "my.topic",
        3,
        DirectoryKind.DELETE,
        HEX,
    )


@pytest.mark.parametrize(
    "name",
    [
        "",
        "nodash",
        "-0",
        "t-",
        "t--",
        "t-x",
        "t-+1",
        "t-00",
        "t-2147483648",
        "t-" + "9" * 5000,
        "t-٣",
        "a b-0",
        "..-0",
        "t-0-delete",
        "t-0.-delete",
        f"t-0.{HEX[1:]}-delete",
        f"t-0.{HEX.upper()}-delete",
        f"t.{HEX}-future",
        f"t-0.{HEX}",
    ],
)
def test_a_foreign_directory_is_refused(name: str) -> None:
    with pytest.raises(UnknownDirectoryName):
        parse_partition_directory(name)


def test_a_long_topic_is_cut_where_kafka_cuts_it() -> None:
    topic = "t" * 249
    deleted = PartitionDirectory(topic, 12, DirectoryKind.DELETE, HEX)
    stray = deleted._replace(kind=DirectoryKind.STRAY)
    assert (len(deleted.name), len(stray.name)) == (255, 255)
    assert parse_partition_directory(deleted.name).partition == 12
    assert deleted._replace(kind=DirectoryKind.FUTURE).name.startswith(topic)


@given(
    st.integers(0, 2**63 - 1),
    st.sampled_from(FileKind),
    st.sampled_from(FileState),
    st.integers(0, 99),
)
def test_every_segment_file_name_reads_back(
    base_offset: int, kind: FileKind, state: FileState, epoch: int
) -> None:
    named = SegmentFileName(
        base_offset, kind, state, epoch if kind is FileKind.CHECKPOINT else None
    )
    assert parse_segment_file(named.name) == named


def test_segment_files_are_named_as_kafka_names_them() -> None:
    assert SegmentFileName(42, FileKind.TIMEINDEX).name == "00000000000000000042.timeindex"
    assert parse_segment_file("00000000000000000042-0000000007.checkpoint") == (
        42,
        FileKind.CHECKPOINT,
        FileState.LIVE,
        7,
    )


@pytest.mark.parametrize(
    "name",
    [
        "",
        "leader-epoch-checkpoint",
        "partition.metadata",
        "0.log",
        "00000000000000000000",
        "00000000000000000000.",
        "00000000000000000000.txt",
        "00000000000000000000.log.bak",
        "00000000000000000000.deleted",
        "0000000000000000000x.log",
        "-0000000000000000001.log",
        "99999999999999999999.log",
        "00000000000000000000.checkpoint",
        "00000000000000000000-7.checkpoint",
        "00000000000000000000-9999999999.checkpoint",
    ],
)
def test_a_foreign_file_is_refused(name: str) -> None:
    with pytest.raises(UnknownFileName):
        parse_segment_file(name)


def test_topic_names_are_bounded_at_249_characters() -> None:
    assert validate_topic("t" * 249)
    with pytest.raises(InvalidTopicName) as raised:
        validate_topic("t" * 250)
    assert raised.value.code == 17


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a b", "ä", "a\0"])
def test_bad_topic_names_are_refused(topic: str) -> None:
    with pytest.raises(InvalidTopicName):
        validate_topic(topic)


def test_dot_and_underscore_collide() -> None:
    assert topics_collide("a.b", "a_b")
    assert not topics_collide("a.b", "a-b")


def test_a_topics_name_has_249_characters_at_most() -> None:
    assert validate_topic("t" * 249)
    with pytest.raises(InvalidTopicName, match="249"):
        validate_topic("t" * 250)


@pytest.mark.parametrize(
    ("key", "fits"),
    [
        ("", True),
        ("g" * 32_767, True),
        ("g" * 32_768, False),
        ("\N{GRINNING FACE}" * 8_191, True),
        ("\N{GRINNING FACE}" * 8_192, False),
    ],
)
def test_a_coordinators_key_has_a_length_of_16_bits_in_bytes(key: str, fits: bool) -> None:
    assert fits is fits_coordinator_key(key)
