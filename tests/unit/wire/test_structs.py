"""The classes of messages."""

from __future__ import annotations

import pytest

from engine.wire.errors import UnknownMessage
from engine.wire.schema import RELEASES, message_names
from engine.wire.structs import message_class, struct_classes


def test_fields_start_with_kafkas_defaults() -> None:
    request = message_class("FetchRequest")()
    assert (-1, 0x7FFFFFFF, "", None, []) == (
        request.replica_id,
        request.max_bytes,
        request.rack_id,
        request.cluster_id,
        request.topics,
    )
    assert request.replica_state == message_class("FetchRequest").ReplicaState()


def test_mutable_defaults_are_not_shared() -> None:
    cls = message_class("FetchRequest")
    one, other = cls(), cls()
    one.topics.append("x")
    one.replica_state.replica_id = 9
    assert [] == other.topics
    assert other.replica_state.replica_id == -1


def test_keywords_set_fields() -> None:
    cls = message_class("MetadataRequest")
    request = cls(topics=[cls.MetadataRequestTopic(name="a")])
    assert request.topics[0].name == "a"


def test_unknown_keyword_is_refused() -> None:
    with pytest.raises(AttributeError):
        message_class("MetadataRequest")(topix=None)


def test_equality_checks_class_and_fields() -> None:
    cls = message_class("HeartbeatRequest")
    assert cls(group_id="g") == cls(group_id="g")
    assert cls(group_id="g") != cls(group_id="h")
    assert cls() != message_class("HeartbeatRequest", "4.3.0")()
    assert cls() != 1


def test_representation_names_class_and_fields() -> None:
    text = repr(message_class("HeartbeatResponse")(error_code=7))
    assert text == "HeartbeatResponse(throttle_time_ms=0, error_code=7)"


def test_default_struct_may_itself_hold_structs() -> None:
    record = message_class("RemoteLogSegmentMetadataRecord")()
    assert record.remote_log_segment_id.topic_id_partition.partition == 0


@pytest.mark.parametrize("release", RELEASES)
def test_every_struct_of_every_message_can_be_made(release: str) -> None:
    for name in message_names(release):
        for made in struct_classes(name, release).values():
            assert made() == made()


def test_unknown_message_is_refused() -> None:
    with pytest.raises(UnknownMessage):
        message_class("NoSuchThing")
