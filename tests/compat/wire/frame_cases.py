"""Frames: headers, unknown APIs and versions, pipelines, trailing bytes; and broker's own APIs."""

from __future__ import annotations

import random
import struct
from typing import Any

from engine.wire.headers import api, apis
from tests.compat.wire.batches import batch, records
from tests.compat.wire.pair import Pair, encode, framed, versions

Body = dict[str, Any]
#: Asked behind a frame to see whether the connection still works.
_PROBE_NAME, _PROBE_VERSION = "DescribeCluster", 0


def _header(
    key: int, version: int, correlation: int, client: bytes | None, tags: bytes = b""
) -> bytes:
    size = -1 if client is None else len(client)
    return struct.pack(">hhih", key, version, correlation, size) + (client or b"") + tags


def headers(pair: Pair) -> None:
    """Client ids, correlation ids, tagged fields, and bytes behind a request."""
    offsets = encode("ListOffsetsRequest", 1, {"replica_id": -1, "topics": []})
    flexible = encode("ListOffsetsRequest", 7, {"replica_id": -1, "topics": []})
    for correlation in (0, 1, -1, 2**31 - 1, -(2**31)):
        sent = framed(_header(2, 1, correlation, b"c") + offsets)
        pair.raw_frames(f"Frames correlation {correlation}", sent)
    for what, client in {
        "null": None,
        "empty": b"",
        "long": b"x" * 30000,
        "not utf-8": b"\xff\xfe",
        "nul": b"a\x00b",
        "odd": b"a b/c:d",
    }.items():
        pair.raw_frames(f"Frames client id {what}", framed(_header(2, 1, 3, client) + offsets))
        sent = framed(_header(2, 7, 3, client, b"\x00") + flexible)
        pair.raw_frames(f"Frames client id {what} flexible", sent)
    for what, tags in {
        "one": b"\x01\x05\x02ab",
        "two": b"\x02\x05\x01a\x09\x01b",
        "out of order": b"\x02\x09\x01a\x05\x01b",
        "twice": b"\x02\x05\x01a\x05\x01b",
        "cut": b"\x01\x05\x7f",
        "many": b"\xff\xff\xff\xff\x0f",
        "negative size": b"\x01\x05\xff\xff\xff\xff\x0f",
    }.items():
        sent = framed(_header(2, 7, 3, b"c", tags) + flexible)
        pair.raw_frames(f"Frames tags {what}", sent)
        inside = flexible[:-1] + tags
        sent = framed(_header(2, 7, 3, b"c", b"\x00") + inside)
        pair.raw_frames(f"Frames tags in the body {what}", sent)
    for more in (b"\x00", b"abc", bytes(100)):
        pair.raw_frames(
            f"Frames {len(more)} bytes more", framed(_header(2, 1, 3, b"c") + offsets + more)
        )
        sent = framed(_header(2, 7, 3, b"c", b"\x00") + flexible + more)
        pair.raw_frames(f"Frames {len(more)} bytes more flexible", sent)
    for size in range(14):
        cut = (_header(2, 1, 3, b"c") + offsets)[:size]
        pair.raw_frames(f"Frames cut at {size}", framed(cut))
    pair.raw_frames("Frames size -1", struct.pack(">i", -1))
    pair.raw_frames("Frames size huge", struct.pack(">i", 2**31 - 1))
    pair.raw_frames("Frames size above the limit", struct.pack(">i", 104857601))
    pair.raw_frames("Frames client id size -2", framed(struct.pack(">hhih", 2, 1, 3, -2) + offsets))
    pair.raw_frames(
        "Frames client id size 999", framed(struct.pack(">hhih", 2, 1, 3, 999) + offsets)
    )


def unknown(pair: Pair) -> None:
    """Keys and versions that are not there."""
    good = framed(_header(2, 1, 9, b"c") + encode("ListOffsetsRequest", 1, {"replica_id": -1}))
    for key in (-1, 88, 100, 999, 32767):
        for version in (0, 1):
            pair.raw_frames(f"Frames key {key} v{version}", framed(_header(key, version, 3, b"c")))
            pair.raw_frames(
                f"Frames key {key} v{version} then another",
                framed(_header(key, version, 3, b"c")) + good,
            )
    for key in apis():
        found = api(key)
        # What ours does not serve is no difference that is not known.
        for version in (-1, found.versions.highest + 1, 99, 32767):
            tags = b"\x00" if found.flexible.has(version) else b""
            head = _header(key, version, 3, b"c", tags)
            if key != 18:
                pair.raw_frames(f"Frames {found.name} v{version}", framed(head + bytes(40)))
    for version in (-1, 5, 6, 99, 32767):
        for more in (b"", bytes(2), b"\x00\x02a\x021\x00"):
            head = _header(18, version, 3, b"c")
            pair.raw_frames(f"Frames ApiVersions v{version} {more!r}", framed(head + more))


def pipelined(pair: Pair) -> None:
    """Several requests in one write are answered in turn."""
    topic = pair.topic("pipe")
    many = b""
    kinds = {
        "offsets": (2, 1, encode("ListOffsetsRequest", 1, {"replica_id": -1, "topics": []})),
        "epochs": (23, 3, encode("OffsetForLeaderEpochRequest", 3, {"replica_id": -1})),
        "slow": (
            1,
            4,
            encode(
                "FetchRequest",
                4,
                {
                    "replica_id": -1,
                    "max_wait_ms": 150,
                    "min_bytes": 1,
                    "max_bytes": 1000,
                    "topics": [
                        {
                            "topic": topic,
                            "partitions": [
                                {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
                            ],
                        }
                    ],
                },
            ),
        ),
    }
    order = ["offsets", "slow", "epochs", "slow", "offsets", "epochs", "epochs"]
    for at, kind in enumerate(order):
        key, version, body = kinds[kind]
        many += framed(_header(key, version, 100 + at, b"c") + body)
    pair.raw_frames("Frames pipelined", many, answers=len(order))
    good = batch(records(1, pair.now_ms))
    for what, name in (("good", topic), ("bad", pair.name("gone"))):
        sent = {
            "acks": 0,
            "timeout_ms": 1000,
            "topic_data": [{"name": name, "partition_data": [{"index": 0, "records": good}]}],
        }
        produce = framed(_header(0, 7, 1, b"c") + encode("ProduceRequest", 7, sent))
        key, version, body = kinds["epochs"]
        after = framed(_header(key, version, 2, b"c") + body)
        pair.raw_frames(f"Frames acks 0 {what} then another", produce * 3 + after)
        pair.raw_frames(
            f"Frames another, acks 0 {what}, another", after + produce + after, answers=2
        )


def damaged(pair: Pair) -> None:
    """Random damage to good requests: both answer, or both end the connection."""
    chance = random.Random(pair.seed)
    topic = pair.topic("damaged")
    setting = {"name": "flush.ms", "config_operation": 0, "value": "5"}
    known: dict[str, Body] = {
        "Metadata": {"topics": [{"name": topic}]},
        "IncrementalAlterConfigs": {
            "resources": [{"resource_type": 2, "resource_name": topic, "configs": [setting]}],
            "validate_only": True,
        },
        "Fetch": {
            "replica_id": -1,
            "max_wait_ms": 10,
            "max_bytes": 10_000,
            "session_epoch": -1,
            "topics": [
                {"topic": topic, "partitions": [{"partition": 0, "partition_max_bytes": 9000}]}
            ],
        },
        "DeleteRecords": {
            "topics": [{"name": topic, "partitions": [{"partition_index": 0, "offset": 0}]}],
            "timeout_ms": 500,
        },
        "DescribeLogDirs": {"topics": [{"topic": topic, "partitions": [0]}]},
        "DescribeCluster": {"include_cluster_authorized_operations": True},
        "InitProducerId": {"transactional_id": None, "transaction_timeout_ms": 1000},
        "ListOffsets": {
            "replica_id": -1,
            "topics": [{"name": topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}],
        },
        "OffsetForLeaderEpoch": {
            "replica_id": -1,
            "topics": [{"topic": topic, "partitions": [{"partition": 0, "leader_epoch": 0}]}],
        },
        "DescribeConfigs": {
            "resources": [
                {"resource_type": 2, "resource_name": topic, "configuration_keys": ["flush.ms"]}
            ]
        },
        "DescribeProducers": {"topics": [{"name": topic, "partition_indexes": [0]}]},
        "Produce": {
            "acks": 1,
            "timeout_ms": 100,
            "topic_data": [
                {
                    "name": topic,
                    "partition_data": [{"index": 0, "records": batch(records(2, pair.now_ms))}],
                }
            ],
        },
    }
    for name, body in known.items():
        for version in versions(name):
            good = encode(f"{name}Request", version, body)
            for _ in range(6):
                raw = bytearray(good)
                at = chance.randrange(len(raw))
                value = chance.choice((0, 1, 127, 128, 255, raw[at] ^ 1 << chance.randrange(8)))
                what = f"damaged at {at}: {raw[at]} to {value}"
                raw[at] = value
                pair.ask_raw(what, name, version, lambda _side, raw=bytes(raw): raw)
            at = chance.randrange(len(good))
            cut = good[:at]
            pair.ask_raw(f"cut at {at}", name, version, lambda _side, raw=cut: raw)


def inter_broker(pair: Pair) -> None:
    """Requests of a controller that is none any more, and of a broker with an old epoch."""
    topic = pair.topic("stale")
    for version in versions("LeaderAndIsr"):
        sent = {
            "controller_id": 1,
            "controller_epoch": 0,
            "broker_epoch": -1,
            "ungrouped_partition_states": [],
            "topic_states": [],
            "live_leaders": [],
        }
        pair.ask("old controller", "LeaderAndIsr", version, sent)
        if version > 1:
            pair.ask("old broker", "LeaderAndIsr", version, sent | {"broker_epoch": 0})
    for version in versions("UpdateMetadata"):
        sent = {"controller_id": 1, "controller_epoch": 0, "broker_epoch": -1}
        pair.ask("old controller", "UpdateMetadata", version, sent)
        if version > 4:
            pair.ask("old broker", "UpdateMetadata", version, sent | {"broker_epoch": 0})
    _to_stop(pair, topic)
    _to_controller(pair, topic)


def _to_stop(pair: Pair, topic: str) -> None:
    for version in versions("StopReplica"):
        sent = {"controller_id": 1, "controller_epoch": 0, "broker_epoch": -1}
        pair.ask("old controller", "StopReplica", version, sent)
        if version > 0:
            pair.ask("old broker", "StopReplica", version, sent | {"broker_epoch": 0})
        part = {"topic_name": topic, "partition_index": 0}
        one = {"partition_index": 0, "leader_epoch": 5, "delete_partition": False}
        sent |= {
            "ungrouped_partitions": [part],
            "topics": [{"name": topic, "partition_indexes": [0]}],
            "topic_states": [{"topic_name": topic, "partition_states": [one]}],
        }
        pair.ask("old controller, a partition", "StopReplica", version, sent)


def _to_controller(pair: Pair, topic: str) -> None:
    for version in versions("ControlledShutdown"):
        for broker in (7, -1):
            for epoch in (0, 5):
                sent = {"broker_id": broker, "broker_epoch": epoch}
                pair.ask(f"{broker} {epoch}", "ControlledShutdown", version, sent)
        if version > 1:
            pair.ask(
                "old epoch", "ControlledShutdown", version, {"broker_id": 1, "broker_epoch": 0}
            )
    for broker in (1, 7, -1):
        for epoch in (0, -1):
            sent = {"broker_id": broker, "broker_epoch": epoch}
            pair.ask(f"{broker} {epoch}", "AllocateProducerIds", 0, sent)
    for version in versions("AlterPartition"):
        for broker, epoch in ((1, 0), (7, 0), (7, 5)):
            one = {"partition_index": 0, "leader_epoch": 0, "partition_epoch": 0}
            sent = {
                "broker_id": broker,
                "broker_epoch": epoch,
                "topics": [{"topic_name": topic, "partitions": [one]}],
            }
            pair.ask(f"{broker} {epoch}", "AlterPartition", version, sent)


CASES = {
    "frames.headers": headers,
    "frames.unknown": unknown,
    "frames.pipelined": pipelined,
    "frames.damaged": damaged,
    "frames.inter_broker": inter_broker,
}
