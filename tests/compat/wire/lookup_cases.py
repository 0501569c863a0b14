"""APIs that look something up or take one small step: offsets, epochs, producers, directories."""

from __future__ import annotations

from typing import Any

from engine.records.codec import Codec
from tests.compat.wire.batches import batch, data, records
from tests.compat.wire.pair import Pair, versions

Body = dict[str, Any]


def _filled(pair: Pair, suffix: str, *, partitions: int = 1, **configs: str) -> str:
    topic = pair.topic(suffix, partitions=partitions, configs=configs)
    for n in range(8):
        magic, codec = (n % 3, (Codec.NONE, Codec.GZIP)[n // 3 % 2])
        raw = data(magic, codec, records(3, pair.now_ms - 10_000 + 1000 * n, size=20 * n))
        requested = [{"name": topic, "partition_data": [{"index": 0, "records": raw}]}]
        sent = {"acks": -1, "timeout_ms": 1000, "topic_data": requested}
        pair.ask("stage", "Produce", 7 if magic == 2 else 2, sent)
    return topic


def list_offsets(pair: Pair) -> None:
    """Special and real times, isolation, epochs, replicas, partitions that are not there."""
    topic = _filled(pair, "offsets", partitions=2, **{"segment.bytes": "600"})
    now = pair.now_ms
    times = (*range(-7, 3), *range(now - 11_000, now + 1000, 1000), now - 9_999, 2**62)
    for version in versions("ListOffsets"):

        def ask(label: str, partition: Body, version: int = version, **more: Any) -> None:
            name = more.pop("name", topic)
            found = {"partition_index": 0, "timestamp": -1, "max_num_offsets": 10} | partition
            topics = more.pop("topics", [{"name": name, "partitions": [found]}])
            sent = {"replica_id": -1, "topics": topics} | more
            pair.ask(label, "ListOffsets", version, sent)

        for time_ms in times:
            for index in (0, 1):
                label = f"time {time_ms if time_ms < 10 else time_ms - now} of {index}"
                ask(label, {"timestamp": time_ms, "partition_index": index})
            ask(f"committed at {time_ms}", {"timestamp": time_ms}, isolation_level=1)
        for most in (-1, 0, 1, 2, 3):
            for time_ms in (-1, -2, now, now + 100_000):
                label = f"at most {most} at {time_ms - now if time_ms > 0 else time_ms}"
                ask(label, {"max_num_offsets": most, "timestamp": time_ms})
        for epoch in (-2, -1, 0, 1, 9):
            for time_ms in (-1, -2, now - 9000):
                label = f"epoch {epoch} at {time_ms if time_ms < 0 else 'time'}"
                ask(label, {"current_leader_epoch": epoch, "timestamp": time_ms})
        for replica in (-2, -3, 0, 1, 5):
            for time_ms in (-1, -2, now - 9000):
                ask(
                    f"replica {replica} {time_ms - now}", {"timestamp": time_ms}, replica_id=replica
                )
        ask("partition 2", {"partition_index": 2})
        ask("partition -1", {"partition_index": -1})
        for name in (pair.name("gone"), "", "a/b"):
            ask(f"topic {name!r}", {}, name=name)
        ask("isolation 5", {}, isolation_level=5)
        one = {"partition_index": 0, "timestamp": -1, "max_num_offsets": 1}
        ask("partition twice", {}, topics=[{"name": topic, "partitions": [one, one]}])
        ask("topic twice", {}, topics=[{"name": topic, "partitions": [one]}] * 2)
        two = [one, one | {"timestamp": -2}]
        ask("partition twice, other times", {}, topics=[{"name": topic, "partitions": two}])
        ask("no partitions", {}, topics=[{"name": topic, "partitions": []}])
        ask("nothing", {}, topics=[])


def epochs(pair: Pair) -> None:
    """End offsets of leader epochs."""
    topic = _filled(pair, "epochs")
    for version in versions("OffsetForLeaderEpoch"):
        for replica in (-1, -2, 1, 5):
            for index in (0, 1, -1):
                for current in (-2, -1, 0, 1):
                    for epoch in (-2, -1, 0, 1, 2**31 - 1):
                        found = {
                            "partition": index,
                            "current_leader_epoch": current,
                            "leader_epoch": epoch,
                        }
                        sent = {
                            "replica_id": replica,
                            "topics": [{"topic": topic, "partitions": [found]}],
                        }
                        label = f"{replica} {index} {current} {epoch}"
                        pair.ask(label, "OffsetForLeaderEpoch", version, sent)
        one = {"partition": 0, "leader_epoch": 0}
        for what, topics in {
            "unknown": [{"topic": pair.name("gone"), "partitions": [one]}],
            "empty name": [{"topic": "", "partitions": [one]}],
            "partition twice": [{"topic": topic, "partitions": [one, one]}],
            "topic twice": [{"topic": topic, "partitions": [one]}] * 2,
            "no partitions": [{"topic": topic, "partitions": []}],
            "nothing": [],
        }.items():
            sent = {"replica_id": -1, "topics": topics}
            pair.ask(what, "OffsetForLeaderEpoch", version, sent)


def delete_records(pair: Pair) -> None:
    """Low watermarks forward, back, beyond, and where none may move."""
    compact = pair.topic("compact", configs={"cleanup.policy": "compact"})
    both = pair.topic("both", configs={"cleanup.policy": "compact,delete"})
    for version in versions("DeleteRecords"):
        topic = _filled(pair, f"gone{version}", **{"segment.bytes": "600"})

        def ask(
            label: str, *found: tuple[str, int, int], version: int = version, **more: Any
        ) -> None:
            topics = [
                {"name": name, "partitions": [{"partition_index": index, "offset": offset}]}
                for name, index, offset in found
            ]
            sent = {"topics": topics, "timeout_ms": 2000} | more
            pair.ask(label, "DeleteRecords", version, sent)

        for offset in (0, 3, 4, 2, 0, -2, 25, 2**62, 7, 8):
            ask(f"before {offset}", (topic, 0, offset))
            look = {"name": topic, "partitions": [{"partition_index": 0, "timestamp": -2}]}
            pair.ask(f"after {offset}", "ListOffsets", 7, {"replica_id": -1, "topics": [look]})
        ask("partition 1", (topic, 1, 0))
        ask("partition -1", (topic, -1, 0))
        ask("unknown", (pair.name("gone"), 0, 0))
        ask("empty name", ("", 0, 0))
        ask("compacted", (compact, 0, 0))
        ask("compacted and deleted", (both, 0, 0))
        ask("internal", ("__consumer_offsets", 0, 0))
        ask("twice", (topic, 0, 9), (topic, 0, 10))
        ask("known and unknown", (topic, 0, 11), (pair.name("gone"), 0, 0))
        ask("timeout 0", (topic, 0, 12), timeout_ms=0)
        ask("timeout -1", (topic, 0, 13), timeout_ms=-1)
        ask("all", (topic, 0, -1))
        ask("nothing")
        part = [{"partition_index": 0, "timestamp": time_ms} for time_ms in (-2, -1)]
        for one in part:
            look = {"name": topic, "partitions": [one]}
            pair.ask("at the end", "ListOffsets", 7, {"replica_id": -1, "topics": [look]})


def log_dirs(pair: Pair) -> None:
    """Directories and sizes."""
    topic = _filled(pair, "dirs", partitions=2)
    for version in versions("DescribeLogDirs"):
        for what, topics in {
            "one": [{"topic": topic, "partitions": [0]}],
            "two": [{"topic": topic, "partitions": [1, 0]}],
            "twice": [{"topic": topic, "partitions": [0, 0]}],
            "topic twice": [{"topic": topic, "partitions": [0]}] * 2,
            "unknown partition": [{"topic": topic, "partitions": [0, 9]}],
            "unknown": [{"topic": pair.name("gone"), "partitions": [0]}],
            "no partitions": [{"topic": topic, "partitions": []}],
            "none": [],
        }.items():
            pair.ask(what, "DescribeLogDirs", version, {"topics": topics})


def producers(pair: Pair) -> None:
    """Producers' states, and ids for new ones."""
    topic = pair.topic("producers", partitions=2)
    for producer, epoch, sequence in ((5, 0, 0), (6, 3, 7), (5, 0, 1), (5, 1, 0)):
        raw = batch(
            records(1, pair.now_ms - 500),
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        requested = [{"name": topic, "partition_data": [{"index": 0, "records": raw}]}]
        pair.ask("stage", "Produce", 9, {"acks": -1, "timeout_ms": 1000, "topic_data": requested})
    for what, topics in {
        "one": [{"name": topic, "partition_indexes": [0]}],
        "both": [{"name": topic, "partition_indexes": [1, 0]}],
        "twice": [{"name": topic, "partition_indexes": [0, 0]}],
        "topic twice": [{"name": topic, "partition_indexes": [0]}] * 2,
        "unknown partition": [{"name": topic, "partition_indexes": [7]}],
        "unknown": [{"name": pair.name("gone"), "partition_indexes": [0]}],
        "bad name": [{"name": "a/b", "partition_indexes": [0]}],
        "empty name": [{"name": "", "partition_indexes": [0]}],
        "no partitions": [{"name": topic, "partition_indexes": []}],
        "none": [],
    }.items():
        pair.ask(what, "DescribeProducers", 0, {"topics": topics})


def producer_ids(pair: Pair) -> None:
    """InitProducerId: ids and epochs, with transactional ids that are wrong."""
    for version in versions("InitProducerId"):
        for name in (None, ""):
            for producer in (-1, 0, 5, -2):
                for epoch in (-1, 0, 3, -2):
                    sent = {
                        "transactional_id": name,
                        "transaction_timeout_ms": 60_000,
                        "producer_id": producer,
                        "producer_epoch": epoch,
                    }
                    label = f"{name!r} {producer} {epoch}"
                    pair.ask(label, "InitProducerId", version, sent)
        for timeout in (0, -1, 2**31 - 1):
            sent = {"transactional_id": None, "transaction_timeout_ms": timeout}
            pair.ask(f"timeout {timeout}", "InitProducerId", version, sent)


def cluster(pair: Pair) -> None:
    """DescribeCluster, and ApiVersions as far as the same is offered."""
    for version in versions("DescribeCluster"):
        for operations in (True, False):
            for endpoint in (1, 2, 0, 3):
                sent = {
                    "include_cluster_authorized_operations": operations,
                    "endpoint_type": endpoint,
                }
                pair.ask(f"{operations} {endpoint}", "DescribeCluster", version, sent)
    for version in versions("ApiVersions"):
        for name in ("", "a", "a b", "-a", "a-", "a.b", "ä", "a" * 300):
            for number in ("", "1.0", "-1", "1 0", "1-"):
                sent = {"client_software_name": name, "client_software_version": number}
                pair.ask(f"{name[:9]!r} {number!r}", "ApiVersions", version, sent)
    for version in versions("FindCoordinator"):
        for kind in (0, 1, 2, 3, -1):
            for key in ("g", ""):
                sent = {"key": key, "key_type": kind, "coordinator_keys": [key]}
                pair.ask(f"{kind} {key!r}", "FindCoordinator", version, sent)


def access_rules(pair: Pair) -> None:
    """Rules about access of every kind, known and not, where no authorizer is set."""
    plain = {"resource_type": 2, "pattern_type": 3, "operation": 3, "permission_type": 3}
    for version in versions("CreateAcls"):
        for api_name, field in (("CreateAcls", "creations"), ("DeleteAcls", "filters")):
            pair.ask("none", api_name, version, {field: []})
        for kind in plain:
            for number in (-1, 0, 1, 2, 3, 4, 5, 7, 8, 14, 15, 99):
                _ask_access(pair, version, f"{kind} {number}", plain | {kind: number})


def _ask_access(pair: Pair, version: int, label: str, kinds: Body) -> None:
    """Describe, make and delete rules of these kinds."""
    common = {key: kinds[key] for key in ("operation", "permission_type")}
    one = common | {
        "resource_type": kinds["resource_type"],
        "resource_pattern_type": kinds["pattern_type"],
        "resource_name": "t",
        "principal": "User:a",
        "host": "*",
    }
    found = common | {
        "resource_type_filter": kinds["resource_type"],
        "pattern_type_filter": kinds["pattern_type"],
        "resource_name_filter": "t",
    }
    pair.ask(label, "CreateAcls", version, {"creations": [one]})
    pair.ask(label, "DescribeAcls", version, found)
    pair.ask(label, "DeleteAcls", version, {"filters": [found]})


CASES = {
    "lookups.offsets": list_offsets,
    "lookups.epochs": epochs,
    "lookups.delete_records": delete_records,
    "lookups.log_dirs": log_dirs,
    "lookups.producers": producers,
    "lookups.producer_ids": producer_ids,
    "lookups.cluster": cluster,
    "lookups.access": access_rules,
}
