"""Frames of metadata records."""

from __future__ import annotations

import pytest

from engine.wire.errors import (
    FrameTruncated,
    MalformedMessage,
    TrailingBytes,
    UnknownMessage,
    UnsupportedVersion,
)
from engine.wire.framed_records import (
    FramedRecord,
    decode_framed_record,
    encode_framed_record,
    framed_types,
)
from engine.wire.structs import message_class

RAW = bytes.fromhex("01 0c 00 02 66 0007 00")


def test_record_goes_there_and_back() -> None:
    record = message_class("FeatureLevelRecord")(name="f", feature_level=7)
    assert RAW == encode_framed_record(record, 0)
    assert FramedRecord(12, 0, record) == decode_framed_record("cluster_metadata", RAW)


def test_types_of_the_two_topics_are_kept_apart() -> None:
    assert framed_types("cluster_metadata")[2] == "TopicRecord"
    assert framed_types("remote_log_metadata")[2] == "RemotePartitionDeleteMetadataRecord"
    assert 28 not in framed_types("cluster_metadata")
    assert framed_types("cluster_metadata", "4.3.0")[28] == "ClearElrRecord"


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"", FrameTruncated),
        (b"\x02" + RAW[1:], MalformedMessage),
        (b"\x01\x06\x00", UnknownMessage),
        (b"\x01\x0c\x09", UnsupportedVersion),
        (RAW + b"!", TrailingBytes),
        (RAW[:-1], FrameTruncated),
    ],
)
def test_wrong_frames_are_refused(raw: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        decode_framed_record("cluster_metadata", raw)
