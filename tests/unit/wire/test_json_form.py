"""Messages as Kafka's JSON."""

from __future__ import annotations

import pytest

from engine.wire.errors import FieldNotInVersion, UnsupportedVersion
from engine.wire.json_form import format_double, json_node, json_text, quoted
from engine.wire.structs import message_class


def test_fields_come_in_schema_order_without_blanks() -> None:
    response = message_class("HeartbeatResponse")(throttle_time_ms=1, error_code=-2)
    assert json_text(json_node(response, 4)) == '{"throttleTimeMs":1,"errorCode":-2}'
    assert json_text(json_node(response, 0)) == '{"errorCode":-2}'


def test_null_is_written_and_untouched_tags_are_not() -> None:
    record = message_class("RegisterBrokerRecord")(rack=None)
    node = json_node(record, 3)
    assert node["rack"] is None
    assert "logDirs" not in node
    record.log_dirs = [bytes(15) + b"\x01"]
    assert json_node(record, 3)["logDirs"] == ["AAAAAAAAAAAAAAAAAAAAAQ"]


def test_bytes_are_base64_with_padding() -> None:
    value = message_class("SyncGroupResponse")(assignment=b"\xff\xfe\xfd\xfc")
    assert json_text(json_node(value, 0)) == '{"errorCode":0,"assignment":"//79/A=="}'


def test_records_are_empty_or_a_size() -> None:
    cls = message_class("ProduceRequest")
    part = cls.PartitionProduceData(index=1, records=b"12345")
    message = cls(topic_data=[cls.TopicProduceData(name="t", partition_data=[part])])
    empty = json_node(message, 3)["topicData"][0]["partitionData"][0]
    sized = json_node(message, 3, with_records=False)["topicData"][0]["partitionData"][0]
    assert {"index": 1, "records": b""} == empty
    assert {"index": 1, "recordsSizeInBytes": 5} == sized
    assert '"records":""' in json_text(json_node(message, 3))


def test_null_records_are_null() -> None:
    cls = message_class("ProduceRequest")
    topics = [cls.TopicProduceData(partition_data=[cls.PartitionProduceData()])]
    node = json_node(cls(topic_data=topics), 3, with_records=False)
    assert node["topicData"][0]["partitionData"][0]["records"] is None


def test_field_that_the_version_lacks_is_refused() -> None:
    request = message_class("MetadataRequest")(allow_auto_topic_creation=False)
    with pytest.raises(FieldNotInVersion):
        json_node(request, 0)
    with pytest.raises(UnsupportedVersion):
        json_node(request, 99)


def test_escapes_are_jacksons() -> None:
    assert quoted('"\\/\b\t\n\f\r\x00\x1f\x7fé😀') == (
        '"\\"\\\\/\\b\\t\\n\\f\\r\\u0000\\u001F\x7fé😀"'
    )


def test_plain_values() -> None:
    node = {"a": [True, False, None, 1, -2.5, "x", b"y"], "b": {}}
    assert json_text(node) == '{"a":[true,false,null,1,-2.5,"x","eQ=="],"b":{}}'


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (1024.0, "1024.0"),
        (0.001, "0.001"),
        (9.999e-4, "9.999E-4"),
        (1e-5, "1.0E-5"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-12345678.5, "-1.23456785E7"),
        (1e16, "1.0E16"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (float("nan"), "NaN"),
    ],
)
def test_doubles_print_as_java_prints_them(value: float, text: str) -> None:
    assert text == format_double(value)


def test_doubles_without_value_are_quoted() -> None:
    assert json_text([float("nan"), float("-inf")]) == '["NaN","-Infinity"]'
