"""Messages resolved for one version."""

from __future__ import annotations

import pytest

from engine.wire.errors import UnknownMessage, UnsupportedVersion
from engine.wire.layout import FieldLayout, attribute_name, message_layout


def field(name: str, version: int, attribute: str) -> FieldLayout:
    layout = message_layout(name, version)
    return next(f for f in layout.fields if f.attribute == attribute)


@pytest.mark.parametrize(
    ("name", "attribute"),
    [
        ("ThrottleTimeMs", "throttle_time_ms"),
        ("V3AndBelowTopics", "v3_and_below_topics"),
        ("isKRaftController", "is_kraft_controller"),
        ("timeoutMs", "timeout_ms"),
        ("Enable2Pc", "enable2_pc"),
    ],
)
def test_attributes_are_kafkas_names_in_snake_case(name: str, attribute: str) -> None:
    assert attribute == attribute_name(name)


def test_place_follows_the_version() -> None:
    places = [field("FetchRequest", v, "cluster_id").place for v in (11, 12)]
    assert ["absent", "tagged"] == places
    assert [field("FetchRequest", v, "replica_id").place for v in (14, 15)] == [
        "positional",
        "absent",
    ]


def test_flexible_versions_are_compact() -> None:
    assert [False, True] == [field("MetadataRequest", v, "topics").compact for v in (8, 9)]


def test_client_id_is_never_compact() -> None:
    assert not field("RequestHeader", 2, "client_id").compact


def test_fewest_bytes_count_fixed_parts_lengths_and_the_tagged_section() -> None:
    topics = field("MetadataResponse", 12, "topics")
    assert topics.struct is not None
    # error 2, name 1, id 16, internal 1, partitions 1, operations 4, tags 1
    assert topics.struct.bytes_min == 26
    assert topics.bytes_min == 1
    assert field("MetadataResponse", 1, "topics").bytes_min == 4


def test_tagged_fields_come_by_their_tag() -> None:
    layout = message_layout("TransactionLogValue", 1, "4.3.0")
    assert [0, 1, 2, 3] == [f.tag for f in layout.placed("tagged")]


def test_version_outside_the_valid_ones_is_refused_with_the_range() -> None:
    with pytest.raises(UnsupportedVersion) as caught:
        message_layout("MetadataRequest", 13)
    error = caught.value
    assert ("MetadataRequest", 13, 0, 12) == (
        error.message,
        error.version,
        error.lowest,
        error.highest,
    )


def test_unknown_message_is_refused() -> None:
    with pytest.raises(UnknownMessage, match="NoSuchThing"):
        message_layout("NoSuchThing", 0)
