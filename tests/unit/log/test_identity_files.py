"""The small files that say whose data this is: properties, metadata, markers, quorum state."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.config.java_properties import encode_properties, parse_properties
from engine.errors import CorruptFile
from engine.ids import InvalidUuid, uuid_bytes, uuid_text
from engine.log.directory.clean_shutdown import (
    CleanShutdown,
    encode_clean_shutdown,
    parse_clean_shutdown,
)
from engine.log.directory.meta_properties import (
    MetaProperties,
    encode_meta_properties,
    parse_meta_properties,
)
from engine.log.directory.partition_metadata import (
    PartitionMetadataFile,
    encode_partition_metadata,
    parse_partition_metadata,
)
from engine.log.directory.quorum_state import QuorumState, encode_quorum_state, parse_quorum_state

UUID = "8K4IcCorRNC2tJ_T-wo19A"


@given(st.dictionaries(st.text(max_size=20).filter(bool), st.text(max_size=20), max_size=20))
def test_properties_read_back(entries: dict[str, str]) -> None:
    try:
        for text in (*entries, *entries.values()):
            text.encode("utf-16-be")
    except UnicodeEncodeError:
        return
    if any(ord(c) > 0xFFFF for text in (*entries, *entries.values()) for c in text):
        return  # Java writes two halves and so do we; Python reads them as two characters
    assert parse_properties(encode_properties(entries, ("a comment",)), "x") == entries


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"a=b", {"a": "b"}),
        (b"a : b ", {"a": "b "}),
        (b"a b=c", {"a": "b=c"}),
        (b"  a", {"a": ""}),
        (b"# a=b\n! a=b\n\n", {}),
        (b"a\\ b\\=\\:=c", {"a b=:": "c"}),
        (b"a=b\\\n   c\nd=e", {"a": "bc", "d": "e"}),
        (b"a=b\\\\\nd=e", {"a": "b\\", "d": "e"}),
        (b"a=\\u00e9\\t", {"a": "é\t"}),
        (b"a=\xe9", {"a": "é"}),
        (b"a=1\r\na=2\r", {"a": "2"}),
        (b"a=b\\", {"a": "b"}),
    ],
)
def test_properties_are_read_as_java_reads_them(line: bytes, expected: dict[str, str]) -> None:
    assert parse_properties(line, "x") == expected


@pytest.mark.parametrize("line", [b"a=\\u00g0", b"a=\\u12"])
def test_a_broken_unicode_escape_is_refused(line: bytes) -> None:
    with pytest.raises(CorruptFile):
        parse_properties(line, "x")


def test_many_properties_come_in_the_order_of_javas_larger_table() -> None:
    entries = {f"key.{n}": str(n) for n in range(40)}
    content = encode_properties(entries, ())
    assert parse_properties(content, "x") == entries
    assert list(parse_properties(content, "x")) != list(entries)


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    for parse in (
        parse_properties,
        parse_meta_properties,
        parse_partition_metadata,
        parse_clean_shutdown,
        parse_quorum_state,
    ):
        with suppress(CorruptFile):
            parse(content, "x")


def test_meta_properties_of_both_modes_read_back() -> None:
    for meta in (
        MetaProperties(0, "c", 1),
        MetaProperties(0, None, None),
        MetaProperties(1, "c", 2, UUID),
    ):
        assert parse_meta_properties(encode_meta_properties(meta, 0), "x") == meta


def test_meta_properties_are_dated_as_java_dates_them() -> None:
    content = encode_meta_properties(MetaProperties(0, "c", 1), 1_795_267_415_000)
    assert content.splitlines()[:2] == [b"#", b"#Sat Nov 21 13:23:35 UTC 2026"]


@pytest.mark.parametrize(
    "content",
    [
        b"version=2\nnode.id=1\ncluster.id=c",
        b"version=1\ncluster.id=c",
        b"version=1\nnode.id=1",
        b"version=x",
        b"broker.id=one",
        b"version=1\nnode.id=1\ncluster.id=c\ndirectory.id=short",
    ],
)
def test_meta_properties_that_no_broker_takes_are_refused(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        parse_meta_properties(content, "x")


def test_partition_metadata_has_no_newline_at_its_end() -> None:
    content = encode_partition_metadata(PartitionMetadataFile(UUID))
    assert content == b"version: 0\ntopic_id: 8K4IcCorRNC2tJ_T-wo19A"
    assert parse_partition_metadata(content, "x") == PartitionMetadataFile(UUID)
    assert parse_partition_metadata(content + b"\n", "x").topic_id == UUID


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"version: 1\ntopic_id: 8K4IcCorRNC2tJ_T-wo19A",
        b"version: 0",
        b"version: 0\ntopic_id: short",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: \xff",
    ],
)
def test_wrong_partition_metadata_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        parse_partition_metadata(content, "x")


def test_ids_have_22_characters() -> None:
    raw = uuid_bytes(UUID)
    assert (len(raw), uuid_text(raw)) == (16, UUID)
    for text in ("", UUID[1:], UUID + "A", UUID[:-1] + "."):
        with pytest.raises(InvalidUuid):
            uuid_bytes(text)


def test_the_clean_shutdown_marker_may_be_empty() -> None:
    assert encode_clean_shutdown(CleanShutdown()) == b'{"version":0,"brokerEpoch":-1}'
    assert parse_clean_shutdown(b'{"version":0,"brokerEpoch":7}', "x") == CleanShutdown(7)
    assert parse_clean_shutdown(b"", "x") == CleanShutdown(-1)


@pytest.mark.parametrize(
    "content",
    [b"{", b"[]", b"{}", b'{"version":1,"brokerEpoch":1}', b'{"version":0,"brokerEpoch":true}',
     b'{"version":0}', b"[" * 100_000],
)  # fmt: skip
def test_a_marker_of_another_form_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        parse_clean_shutdown(content, "x")


def test_quorum_state_of_both_versions_reads_back() -> None:
    for state in (
        QuorumState(1, 4, -1, 0, voter_ids=(1, 2), cluster_id="c", applied_offset=3),
        QuorumState(-1, 4, 2, 1, voted_directory_id=UUID),
    ):
        assert parse_quorum_state(encode_quorum_state(state), "x") == state


@pytest.mark.parametrize(
    "content",
    [b"{", b"1", b'{"data_version":2,"leaderId":1,"leaderEpoch":1,"votedId":1}',
     b'{"data_version":1,"leaderId":"1","leaderEpoch":1,"votedId":1}',
     b'{"data_version":1,"leaderId":1,"leaderEpoch":1,"votedId":1}',
     b'{"data_version":0,"leaderId":1,"leaderEpoch":1,"votedId":1,"currentVoters":[1]}'],
)  # fmt: skip
def test_a_quorum_state_of_another_form_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptFile):
        parse_quorum_state(content, "x")
