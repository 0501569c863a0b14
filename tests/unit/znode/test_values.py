"""Kafka's texts: what three 3.9.1 brokers wrote is read, and written again to the byte."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from engine.model import TopicPartition
from engine.znode import acl_values, values
from engine.znode.json_text import InvalidZnodeValue
from engine.znode.values import (
    BrokerRegistration,
    ControllerRegistration,
    PartitionAssignment,
    PartitionStateNode,
    ProducerIdBlockNode,
    TopicAssignment,
)

V = values
GOLDEN: list[tuple[Callable[[Any], bytes], Callable[[bytes, str], Any], str]] = [
    (
        V.encode_cluster_id,
        V.decode_cluster_id,
        '{"version":"1","id":"RYC9_C_HRvKjGdYlUfTeoA"}',
    ),
    (
        V.encode_broker,
        V.decode_broker,
        '{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
        '"endpoints":["PLAINTEXT://127.0.0.1:19392"],"jmx_port":-1,"port":19392,'
        '"host":"127.0.0.1","version":5,"timestamp":"1795278933398"}',
    ),
    (
        V.encode_broker,
        V.decode_broker,
        '{"features":{},"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"},'
        '"endpoints":["PLAINTEXT://127.0.0.1:19393"],"rack":"r1","jmx_port":-1,"port":19393,'
        '"host":"127.0.0.1","version":5,"timestamp":"1795279428607"}',
    ),
    (
        V.encode_topic,
        V.decode_topic,
        '{"partitions":{"0":[2,1,3]},"topic_id":"QDMoCCpDRN2EJJKhArERQw",'
        '"adding_replicas":{},"removing_replicas":{},"version":3}',
    ),
    (
        V.encode_topic,
        V.decode_topic,
        '{"partitions":{'
        + ",".join(f'"{p}":[392]' for p in (*range(22, 30), *range(10, 20), *range(10), 20, 21))
        + '},"topic_id":"HHGcJ0oLTXOrEEMFjG-_2g",'
        '"adding_replicas":{},"removing_replicas":{},"version":3}',
    ),
    (
        V.encode_partition_state,
        V.decode_partition_state,
        '{"controller_epoch":1,"leader":393,"version":1,"leader_epoch":0,"isr":[393,392]}',
    ),
    (
        V.encode_partition_state,
        V.decode_partition_state,
        '{"controller_epoch":1,"leader":-1,"version":1,"leader_recovery_state":1,'
        '"leader_epoch":4,"isr":[3]}',
    ),
    (
        V.encode_controller,
        V.decode_controller,
        '{"version":2,"brokerid":392,"timestamp":"1795278934219","kraftControllerEpoch":-1}',
    ),
    (V.encode_controller_epoch, V.decode_controller_epoch, "17"),
    (V.encode_features, V.decode_features, '{"features":{},"version":2,"status":1}'),
    (
        V.encode_features,
        V.decode_features,
        '{"features":{"f":{"max_version_level":3}},"version":2,"status":1}',
    ),
    (
        V.encode_producer_id_block,
        V.decode_producer_id_block,
        '{"version":1,"broker":1,"block_start":"0","block_end":"999"}',
    ),
    (V.encode_config, V.decode_config, '{"version":1,"config":{}}'),
    (
        V.encode_config,
        V.decode_config,
        '{"version":1,"config":{"log.segment.bytes":"1048576","log.retention.ms":"99",'
        '"min.insync.replicas":"1"}}',
    ),
    (
        V.encode_config,
        V.decode_config,
        '{"version":1,"config":{"compression.type":"zstd","file.delete.delay.ms":"6",'
        '"max.message.bytes":"5","min.insync.replicas":"1","preallocate":"true",'
        '"index.interval.bytes":"5","unclean.leader.election.enable":"true",'
        '"retention.bytes":"6","delete.retention.ms":"6","cleanup.policy":"compact",'
        '"flush.ms":"7","segment.ms":"4","segment.bytes":"1000","retention.ms":"1"}}',
    ),
    (
        V.encode_config_change,
        V.decode_config_change,
        '{"version":2,"entity_path":"users/b%20ob%2Fx"}',
    ),
    (
        V.encode_reassignment,
        V.decode_reassignment,
        '{"version":1,"partitions":[{"topic":"t1","partition":0,"replicas":[3,2,1]}]}',
    ),
    (
        V.encode_partitions,
        V.decode_partitions,
        '{"version":1,"partitions":[{"topic":"t1","partition":0}]}',
    ),
    (V.encode_log_dir_event, V.decode_log_dir_event, '{"version":1,"broker":1,"event":1}'),
    (
        acl_values.encode_acls,
        acl_values.decode_acls,
        '{"acls":[{"principal":"User:bob","permissionType":"Allow","host":"*",'
        '"operation":"Write"},{"principal":"User:bob","permissionType":"Allow","host":"*",'
        '"operation":"Read"}],"version":1}',
    ),
    (acl_values.encode_acl_change, acl_values.decode_literal_acl_change, "TOPIC:t1:x"),
    (
        acl_values.encode_acl_change,
        acl_values.decode_extended_acl_change,
        '{"version":1,"resourceType":"TOPIC","name":"pre","patternType":"PREFIXED"}',
    ),
]


@pytest.mark.parametrize(
    ("encode", "decode", "text"),
    GOLDEN,
    ids=lambda value: getattr(value, "__name__", str(value)[:40]),
)
def test_a_text_of_kafkas_comes_back_to_the_byte(
    encode: Callable[[Any], bytes], decode: Callable[[bytes, str], Any], text: str
) -> None:
    assert text == encode(decode(text.encode(), "/path")).decode()


def test_values_are_read_as_meant() -> None:
    broker = V.decode_broker(GOLDEN[2][2].encode(), "/brokers/ids/393")
    expected = BrokerRegistration(
        endpoints=("PLAINTEXT://127.0.0.1:19393",),
        security_protocols={"PLAINTEXT": "PLAINTEXT"},
        host="127.0.0.1",
        port=19393,
        timestamp_ms=1795279428607,
        rack="r1",
    )
    assert expected == broker
    moving = TopicAssignment("id", {3: PartitionAssignment((3, 2, 1), (3,), (1,))})
    text = (
        b'{"partitions":{"3":[3,2,1]},"topic_id":"id","adding_replicas":{"3":[3]},'
        b'"removing_replicas":{"3":[1]},"version":3}'
    )
    assert moving == V.decode_topic(text, "/t")
    assert text == V.encode_topic(moving)
    state = V.decode_partition_state(GOLDEN[5][2].encode(), "/s")
    assert PartitionStateNode(393, 0, (393, 392), 1) == state
    block = V.decode_producer_id_block(GOLDEN[11][2].encode(), "/b")
    assert ProducerIdBlockNode(1, 0, 999) == block
    reassigned = V.decode_reassignment(GOLDEN[16][2].encode(), "/r")
    assert {TopicPartition("t1", 0): (3, 2, 1)} == reassigned


def test_older_versions_are_read() -> None:
    first = b'{"version":1,"host":"localhost","port":9092,"jmx_port":9999,"timestamp":"2233345666"}'
    broker = V.decode_broker(first, "/b")
    assert (("PLAINTEXT://localhost:9092",), {"PLAINTEXT": "PLAINTEXT"}, 1) == (
        broker.endpoints,
        broker.security_protocols,
        broker.version,
    )
    second = (
        b'{"version":2,"host":null,"port":-1,"jmx_port":-1,"timestamp":"1",'
        b'"endpoints":["SSL://h:9093"]}'
    )
    broker = V.decode_broker(second, "/b")
    assert (None, {"SSL": "SSL"}) == (broker.host, broker.security_protocols)
    topic = V.decode_topic(b'{"version":1,"partitions":{"1":[2],"0":[1]}}', "/t")
    assert TopicAssignment(None, {0: PartitionAssignment((1,)), 1: PartitionAssignment((2,))}) == (
        topic
    )
    assert [0, 1] == list(topic.partitions)
    controller = V.decode_controller(b'{"version":1,"brokerid":0,"timestamp":"15292"}', "/c")
    assert ControllerRegistration(0, 15292) == controller
    change = b'{"version":1,"entity_type":"topics","entity_name":"t1"}'
    assert "topics/t1" == V.decode_config_change(change, "/c")
    features = b'{"version":1,"status":0,"features":{"f":{"max_version_level":1}}}'
    assert {} == V.decode_features(features, "/f")


def test_nodes_without_data_have_their_meaning() -> None:
    assert {} == V.decode_config(None, "/c")
    assert {} == V.decode_config(b'{"version":1}', "/c")
    assert V.decode_producer_id_block(None, "/p") is None
    assert [] == acl_values.decode_acls(None, "/a")


def test_letters_are_escaped_as_kafka_does() -> None:
    entry = acl_values.AclEntry('User:a"\\é\n\x1f\\u001f/', "Allow", "*", "Read")
    text = acl_values.encode_acls([entry])
    assert r'"User:a\"\\é\n\u001F\\u001f/"'.encode() in text
    assert [entry] == acl_values.decode_acls(text, "/a")


DECODERS = sorted({decode for _, decode, _ in GOLDEN}, key=lambda decode: decode.__name__)
GARBAGE = [
    b"",
    b"\xff",
    b"[]",
    b"null",
    b"1.5",
    b'{"version":true}',
    b"{}",
    b"[" * 100_000,
    b'{"version":1,"partitions":{"-1":[1]}}',
    b'{"version":1,"partitions":{"0":["1"]}}',
    b'{"version":1,"partitions":{"0":1}}',
    b'{"version":1,"partitions":[1]}',
    b'{"version":1,"config":{"a":1}}',
    b'{"version":1,"config":[]}',
    b'{"version":0,"features":{}}',
    b'{"version":9,"features":{}}',
    b'{"version":2,"endpoints":[1],"port":1,"host":"a"}',
    b"1" * 5000,
    b'{"version":1,"acls":[{"principal":1}]}',
    b'{"version":2,"acls":[]}',
    b'{"version":9,"resourceType":"TOPIC","name":"pre","patternType":"PREFIXED"}',
    b'{"version":1,"broker":1,"block_start":"x","block_end":"999"}',
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=lambda garbage: repr(garbage[:40]))
def test_garbage_is_a_typed_error_that_names_the_path(garbage: bytes) -> None:
    for decode in DECODERS:
        try:
            decode(garbage, "/some/path")
        except InvalidZnodeValue as error:
            assert "/some/path" == error.path
            assert len(str(error)) < 300


BIG = 1 << 31


@pytest.mark.parametrize(
    ("decode", "text"),
    [
        (V.decode_topic, f'{{"partitions":{{"{BIG}":[1]}},"version":1}}'),
        (V.decode_topic, f'{{"partitions":{{"0":[{BIG}]}},"version":1}}'),
        (V.decode_topic, f'{{"partitions":{{"0":[{-BIG - 1}]}},"version":1}}'),
        (
            V.decode_partition_state,
            f'{{"controller_epoch":1,"leader":{BIG},"version":1,"leader_epoch":0,"isr":[1]}}',
        ),
        (
            V.decode_partition_state,
            f'{{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[{BIG}]}}',
        ),
        (V.decode_controller, f'{{"version":1,"brokerid":"{BIG}","timestamp":"1"}}'),
        (V.decode_controller_epoch, f"{BIG}"),
    ],
)
def test_what_fits_into_no_request_is_refused_by_its_node(
    decode: Callable[[bytes, str], object], text: str
) -> None:
    assert decode(text.replace(str(BIG), str(BIG - 1)).replace(str(-BIG - 1), "1").encode(), "/n")
    with pytest.raises(InvalidZnodeValue, match="/n"):
        decode(text.encode(), "/n")
