"""Ask a broker of Kafka and one of ours the same requests of random content, and print differences.

    python -m tests.compat.wire_random --real HOST:PORT --ours HOST:PORT [--seed N] [--count N]

Fields are drawn from values at which brokers decide: names that are there, missing, illegal or
named twice, numbers at the ends of their types, nulls, empty lists. Both brokers are fresh, as for
`wire_compare`, and go through the same states as long as they answer alike; the first difference
may bring others, so `--seed` and `--only` show one alone.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from engine.kafka_errors import TRANSACTIONAL_ID_NOT_FOUND
from engine.wire.codec import message_codec
from engine.wire.layout import FieldLayout, StructLayout
from tests.compat.wire.accepted import accepted
from tests.compat.wire.batches import batch, messages, patched, records
from tests.compat.wire.group_cases import found
from tests.compat.wire.pair import Body, Pair, Side, versions
from tests.compat.wire_compare import print_differences

#: How often an API is drawn. Left out is what only brokers send, what ends a broker or a login,
#: what deletes topics that other requests are about, and what brokers with znodes do not have.
WEIGHTS: Final = {
    **dict.fromkeys(("Metadata", "CreateTopics", "CreatePartitions"), 3),
    **dict.fromkeys(("DescribeConfigs", "IncrementalAlterConfigs", "AlterConfigs"), 4),
    **dict.fromkeys(("Produce", "ListOffsets", "Fetch", "OffsetForLeaderEpoch"), 5),
    **dict.fromkeys(("DeleteRecords", "FindCoordinator", "OffsetCommit", "OffsetFetch"), 4),
    **dict.fromkeys(("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"), 3),
    **dict.fromkeys(("OffsetDelete", "DeleteGroups", "DescribeGroups", "ListGroups"), 3),
    **dict.fromkeys(("InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "EndTxn"), 3),
    **dict.fromkeys(("TxnOffsetCommit", "DescribeTransactions", "ListTransactions"), 3),
    **dict.fromkeys(("DescribeProducers", "DescribeLogDirs", "AlterReplicaLogDirs"), 2),
    **dict.fromkeys(("ElectLeaders", "AlterPartitionReassignments"), 2),
    **dict.fromkeys(("ListPartitionReassignments", "DescribeClientQuotas"), 2),
    **dict.fromkeys(("AlterClientQuotas", "DescribeAcls", "CreateAcls", "DeleteAcls"), 2),
    **dict.fromkeys(("DescribeCluster", "UpdateFeatures"), 2),
    **dict.fromkeys(("DescribeUserScramCredentials", "AlterUserScramCredentials"), 2),
}
#: Versions that are not compared: offsets in znodes, which ours has not; verifications, which
#: brokers send.
_VERSIONS: Final = {
    "OffsetCommit": range(1, 100),
    "OffsetFetch": range(1, 100),
    "AddPartitionsToTxn": range(4),
}
GROUPS: Final = ("g1", "g2", "g3")
TRANSACTIONAL_IDS: Final = ("tx1", "tx2")
_INT_MAX: Final = {"int8": 127, "int16": 32_767, "int32": 2**31 - 1, "int64": 2**63 - 1}
_CONFIGS: Final = (
    *("retention.ms", "segment.bytes", "cleanup.policy", "min.insync.replicas", "no.such.key", ""),
    *("max.message.bytes", "log.retention.ms", "compression.type"),
    "follower.replication.throttled.rate",
)
_VALUES: Final = (
    *("", "-1", "0", "1", "1000000", "compact", "delete", "abc", "compact,delete", "gzip"),
)
_ENTITIES: Final = ("user", "client-id", "ip", "", "group")
_QUOTAS: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "no_such_quota")


class RandomRequests:
    """Draws bodies of requests; the same random numbers give the same body for both sides."""

    def __init__(self, pair: Pair, topics: Sequence[str], now_ms: int) -> None:
        self._topics = topics
        self._now_ms = now_ms
        self._names = (*topics, *topics, pair.name("missing"), "", "a b", ".", "x" * 250)
        self._groups = (*GROUPS, "g1", "")
        self._batches = _batches(now_ms)
        self._by_name: dict[str, Callable[[random.Random], object]] = {
            "timeout_ms": lambda rng: rng.choice((1000, 1000, 0, -1)),
            "max_wait_ms": lambda rng: rng.choice((0, 1, 50)),
            "min_bytes": lambda rng: rng.choice((0, 1, 1)),
            "acks": lambda rng: rng.choice((-1, -1, 1, 2, -2)),
            "session_timeout_ms": lambda rng: rng.choice((6000, 10_000, 0, -1, 10**8)),
            "rebalance_timeout_ms": lambda rng: rng.choice((500, 1000)),
            "transaction_timeout_ms": lambda rng: rng.choice((1000, 60_000, 0, -1, 10**9)),
            "replica_id": lambda rng: rng.choice((-1, -1, -1, -2)),
            "num_partitions": lambda rng: rng.choice((1, 2, -1, 0, -2)),
            "replication_factor": lambda rng: rng.choice((1, 1, -1, 0, 2, -2)),
            "count": lambda rng: rng.choice((1, 2, 3, 4, 0, -1)),
            "resource_type": lambda rng: rng.choice((2, 2, 4, 8, 3, 16, 32, 0, 1)),
            "config_operation": lambda rng: rng.choice((0, 0, 1, 2, 3, 4)),
            "key_type": lambda rng: rng.choice((0, 0, 1, 2, 3)),
            "timestamp": lambda rng: rng.choice((-1, -2, -3, -4, -5, -6, 0, now_ms, now_ms + 1)),
            "isolation_level": lambda rng: rng.choice((0, 1, 1, 2)),
            "records": lambda rng: rng.choice(self._batches),
            "protocol_type": lambda rng: rng.choice(("consumer", "consumer", "connect", "")),
            "transactional_id": lambda rng: rng.choice((*TRANSACTIONAL_IDS, "")),
            "entity_type": lambda rng: rng.choice(_ENTITIES),
            "key": lambda rng: rng.choice(_QUOTAS),
            "mechanism": lambda rng: rng.choice((1, 2, 0, 3)),
            "iterations": lambda rng: rng.choice((4096, 0, 8192, 20_000)),
            "producer_id": lambda rng: rng.choice((-1, 0, 5, 7_000)),
            # Kafka fails at the highest ids of sessions: it looks for them behind its last shard.
            "session_id": lambda rng: rng.choice((0, 0, 1, 2, -1)),
            "producer_epoch": lambda rng: rng.choice((-1, 0, 1)),
        }

    def body(self, api_name: str, version: int, seed: str, side: Side) -> Body:
        """Return the body of a request for one side."""
        layout = message_codec(f"{api_name}Request", version).layout
        return self._struct(layout, random.Random(seed), side, api_name)

    def _struct(self, layout: StructLayout, rng: random.Random, side: Side, owner: str) -> Body:
        body = {}
        for field in layout.fields:
            if field.place == "positional" or (field.place == "tagged" and rng.random() < 0.2):
                body[field.attribute] = self._field(field, rng, side, owner)
        return body

    def _field(self, field: FieldLayout, rng: random.Random, side: Side, owner: str) -> Any:
        if field.nullable and rng.random() < 0.15:
            return None
        if not field.is_array:
            return self._value(field, rng, side, owner)
        values = [self._value(field, rng, side, owner) for _ in range(rng.choice((0, 1, 1, 2, 3)))]
        if values and rng.random() < 0.1:
            values.append(values[0])
        return values

    def _value(self, field: FieldLayout, rng: random.Random, side: Side, owner: str) -> Any:
        if field.struct is not None:
            return self._struct(field.struct, rng, side, field.type)
        draw = self._by_name.get(field.attribute)
        if draw is not None and not (field.type == "string" and field.attribute == "timestamp"):
            return draw(rng)
        if field.type == "string":
            return self._string(field.attribute, rng, owner)
        if field.type in _INT_MAX:
            most = _INT_MAX[field.type]
            return rng.choice((0, 0, 0, 1, 1, 2, 3, 5, -1, -2, most))
        if field.type == "uuid":
            return self._topic_id(rng, side)
        if field.type == "bool":
            return rng.random() < 0.5
        if field.type == "float64":
            return rng.choice((0.0, 1.0, 1000.0, -1.0, 0.5))
        return rng.choice((b"", b"\0\1", b"abc"))

    def _string(self, name: str, rng: random.Random, owner: str) -> str:
        if "group" in name or (name == "key" and "Coordinator" in owner) or name == "groups_names":
            return rng.choice(self._groups)
        if "Config" in owner and name in ("name", "value", "configuration_keys"):
            return rng.choice(_VALUES if name == "value" else _CONFIGS)
        if name == "resource_name":
            return rng.choice((*self._names, "1", "1", "2", ""))
        if name in ("name", "topic", "topic_name", "topic_names", "topics"):
            return rng.choice(self._names)
        if name in ("member_id", "group_instance_id", "protocol_name"):
            return rng.choice(("", "range", "m1"))
        if name in ("path", "log_dir"):
            return rng.choice(("/no/such", "", "relative"))
        return rng.choice((*self._groups, "u1", "abc", "range"))

    def _topic_id(self, rng: random.Random, side: Side) -> bytes:
        name = rng.choice((*self._topics, None, None))
        if name is None:
            return rng.choice((bytes(16), b"\7" * 16, bytes(15) + b"\1"))
        return side.topic_ids[name]


def _batches(now_ms: int) -> tuple[bytes | None, ...]:
    """Return records to produce: right ones more often than wrong ones."""
    one, three = batch(records(1, now_ms)), batch(records(3, now_ms))
    return (
        *(one, three, three, b"", b"\0" * 30, one + three),
        batch(records(2, 0)),
        batch(records(2, now_ms + 10**8)),
        batch(records(2, now_ms, key=None)),
        messages(records(2, now_ms), 1),
        messages(records(2, now_ms), 0),
        patched(one, fix_crc=False, crc=1),
        patched(three, record_count=2),
        patched(three, last_offset_delta=5),
        patched(one, attributes=0x20),
        patched(one, attributes=0x10),
        patched(one, attributes=7),
        patched(one, producer_id=5, producer_epoch=0, base_sequence=0),
        patched(one, producer_id=5, producer_epoch=0, base_sequence=9),
        patched(one, base_offset=7),
        one[:-3],
    )


def found_transactions(pair: Pair, transactional_id: str) -> None:
    """Wait until both brokers coordinate a transactional id, of which there is nothing yet."""
    before = list(pair.differences)
    for _ in range(50):
        keys = {"key_type": 1, "coordinator_keys": [transactional_id]}
        pair.ask("stage", "FindCoordinator", 4, keys)
        body = {"transactional_ids": [transactional_id]}
        answers = pair.ask("stage", "DescribeTransactions", 0, body)
        states = [one.transaction_states[0].error_code for one in answers]
        if states == [TRANSACTIONAL_ID_NOT_FOUND] * 2:
            break
        pair.settle()
    pair.differences[:] = before


def main() -> int:
    """Run; returns 1 where something differs that is not accepted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", required=True)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--only", default="", help="a regular expression of names of APIs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--each", type=int, default=2, help="how many of a kind to print")
    given = parser.parse_args()
    pair = Pair(given.real, given.ours)
    pair.prefix = f"r{given.seed}"
    topics = [pair.topic("one"), pair.topic("two", partitions=3)]
    for group in sorted(set(GROUPS)):
        found(pair, group)
    for transactional_id in TRANSACTIONAL_IDS:
        found_transactions(pair, transactional_id)
    requests = RandomRequests(pair, topics, pair.now_ms)
    rng = random.Random(given.seed)
    apis = {name: weight for name, weight in WEIGHTS.items() if re.search(given.only, name)}
    for number in range(given.count):
        name = rng.choices([*apis], [*apis.values()])[0]
        compared = _VERSIONS.get(name, range(100))
        version = rng.choice([number for number in versions(name) if number in compared])
        seed = f"{given.seed}/{number}"
        before = len(pair.differences)

        def body(side: Side, name: str = name, version: int = version, seed: str = seed) -> Body:
            return requests.body(name, version, seed, side)

        pair.ask(f"#{number}", name, version, body)
        if any(not accepted(one) for one in pair.differences[before:]):
            print(f"# {name} v{version} #{number}: {body(pair.real)}", flush=True)
    pair.close()
    left = [one for one in pair.differences if not accepted(one)]
    print_differences(left, given.each)
    print(f"asked {given.count}, accepted {len(pair.differences) - len(left)}, left {len(left)}")
    return int(any(one.kind == "value" for one in left))


if __name__ == "__main__":
    sys.exit(main())
