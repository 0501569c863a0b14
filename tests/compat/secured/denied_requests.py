"""A request of each API that names what is there and what is not, by its label.

Bodies are those of all versions; what a version lacks is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tests.compat.wire.batches import batch, records
from tests.compat.wire.pair import Body, BodyOf, Side

#: Allowed to user partly, or not; there, or not.
TOPICS: Final = ("ok-there", "no-there", "no-such", "ok-such", "no-other", "ok-other")
GROUPS: Final = ("ok-group", "no-group", "no-such", "ok-such")
TRANSACTIONS: Final = ("ok-transaction", "no-transaction", "no-such", "ok-such")
#: Those that are there.
THERE: Final = ("ok-there", "no-there")
_OWNER: Final[Body] = {"producer_id": 1, "producer_epoch": 0}
_CLUSTER: Final = (4, "kafka-cluster")


def requests(now_ms: int) -> dict[str, dict[str, BodyOf]]:
    """Return the requests of each API."""
    return {
        **_of_data(now_ms),
        **_of_topics(),
        **_of_settings(),
        **_of_groups(),
        **_of_transactions(),
        **_of_cluster(),
        **_of_brokers(),
    }


def _each(names: Sequence[str], **fields: Any) -> list[Body]:
    return [{"name": name, **fields} for name in names]


def _of_data(now_ms: int) -> dict[str, dict[str, BodyOf]]:
    data = [{"index": 0, "records": batch(records(1, now_ms))}]
    produced = {"acks": 1, "timeout_ms": 1000, "topic_data": _each(TOPICS, partition_data=data)}
    listed = [{"partition_index": n, "timestamp": -1, "max_num_offsets": 1} for n in (0, 1)]
    epochs = [{"partition": 0, "leader_epoch": 0}]
    deleted = [{"partition_index": 0, "offset": 0}]
    return {
        "Produce": {"topics": produced, "a transaction": produced | {"transactional_id": "no-x"}},
        "Fetch": {
            "topics": _fetched(TOPICS),
            "those that are there": _fetched(THERE),
            "as a follower": _fetched(THERE, replica_id=2, replica_state={"replica_id": 2}),
        },
        "ListOffsets": {
            "topics": {"replica_id": -1, "topics": _each(TOPICS, partitions=listed)},
            "as a follower": {"replica_id": 2, "topics": _each(TOPICS, partitions=listed)},
        },
        "DeleteRecords": {
            "topics": {"topics": _each(TOPICS, partitions=deleted), "timeout_ms": 1000}
        },
        "OffsetForLeaderEpoch": {
            label: {
                "replica_id": replica_id,
                "topics": [{"topic": name, "partitions": epochs} for name in TOPICS],
            }
            for label, replica_id in (("topics", -1), ("as a follower", 2))
        },
        "DescribeProducers": {"topics": {"topics": _each(TOPICS, partition_indexes=[0, 1])}},
    }


def _fetched(names: Sequence[str], **more: Any) -> BodyOf:
    """Return a fetch of topics; ids of those that are not there are made up."""
    parts = [{"partition": n, "partition_max_bytes": 1000} for n in (0, 1)]

    def body(side: Side) -> Body:
        topics = [
            {
                "topic": name,
                "topic_id": side.topic_ids.get(name, name.encode().ljust(16, b".")),
                "partitions": parts,
            }
            for name in names
        ]
        return {"replica_id": -1, "max_wait_ms": 0, "topics": topics, **more}

    return body


def _of_topics() -> dict[str, dict[str, BodyOf]]:
    flags = {
        "allow_auto_topic_creation": True,
        "include_cluster_authorized_operations": True,
        "include_topic_authorized_operations": True,
    }
    created = _each(TOPICS, num_partitions=1, replication_factor=1)
    grown = _each(TOPICS, count=2, assignments=None)
    # Topics that are there are not deleted.
    deleted = [name for name in TOPICS if name != "ok-there"]
    return {
        "Metadata": {
            "topics": flags | {"topics": _each(TOPICS)},
            "not made": {"topics": _each(TOPICS)},
            "by ids": _by_ids,
            "all": {"topics": None},
            "none": flags | {"topics": []},
        },
        "DescribeTopicPartitions": {
            "topics": {"topics": _each(TOPICS), "response_partition_limit": 10},
            "all": {"topics": [], "response_partition_limit": 10},
        },
        "CreateTopics": {"topics": {"topics": created, "timeout_ms": 1000, "validate_only": True}},
        "CreatePartitions": {
            "topics": {"topics": grown, "timeout_ms": 1000, "validate_only": True}
        },
        "DeleteTopics": {
            "topics": {"topics": _each(deleted), "topic_names": deleted, "timeout_ms": 1000}
        },
        "ElectLeaders": {
            "topics": {
                "topic_partitions": [{"topic": name, "partitions": [0]} for name in TOPICS],
                "timeout_ms": 1000,
            },
            "all": {"topic_partitions": None, "timeout_ms": 1000},
        },
        "AlterPartitionReassignments": {
            "topics": {
                "timeout_ms": 1000,
                "topics": _each(TOPICS, partitions=[{"partition_index": 0, "replicas": [1]}]),
            }
        },
        "ListPartitionReassignments": {
            "topics": {"timeout_ms": 1000, "topics": _each(TOPICS, partition_indexes=[0])},
            "all": {"timeout_ms": 1000, "topics": None},
        },
    }


def _by_ids(side: Side) -> Body:
    ids = [side.topic_ids[name] for name in THERE]
    return {"topics": [{"topic_id": one, "name": None} for one in (*ids, b"no such id......")]}


def _of_settings() -> dict[str, dict[str, BodyOf]]:
    resources = [(2, name) for name in TOPICS] + [(4, "1"), (4, "")]
    named = [{"resource_type": kind, "resource_name": name} for kind, name in resources]
    logger = [{"resource_type": 8, "resource_name": "1"}]
    level = {"name": "kafka.server", "value": "INFO", "config_operation": 0}
    retention = {"name": "retention.ms", "value": "7", "config_operation": 0}

    def changed(resources: list[Body], configs: list[Body]) -> Body:
        rows = [one | {"configs": configs} for one in resources]
        return {"validate_only": True, "resources": rows}

    return {
        "DescribeConfigs": {
            "resources": {
                "resources": [
                    one | {"configuration_keys": ["retention.ms", "log.retention.ms"]}
                    for one in named + logger
                ],
                "include_synonyms": True,
            }
        },
        "AlterConfigs": {"resources": changed(named, [{"name": "retention.ms", "value": "7"}])},
        "IncrementalAlterConfigs": {
            "resources": changed(named + logger, [retention]),
            "a logger": changed(logger, [level]),
            "a logger in earnest": changed(logger, [level]) | {"validate_only": False},
        },
        "AlterReplicaLogDirs": {
            "topics": {"dirs": [{"path": "/elsewhere", "topics": _each(TOPICS, partitions=[0])}]}
        },
        "DescribeLogDirs": {
            "topics": {"topics": [{"topic": name, "partitions": [0]} for name in TOPICS]},
            "all": {"topics": None},
        },
    }


def _of_groups() -> dict[str, dict[str, BodyOf]]:
    committed = [{"partition_index": 0, "committed_offset": 0}]
    protocol = {"protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b""}]}
    fetched = _each(TOPICS, partition_indexes=[0])

    def by_group(body: Body) -> dict[str, BodyOf]:
        return {group: {"group_id": group, **body} for group in GROUPS}

    return {
        "FindCoordinator": {
            f"{kind} {number} {name}": {
                "key_type": number,
                "key": name,
                "coordinator_keys": [name, *names],
            }
            for number, kind, names in ((0, "groups", GROUPS), (1, "transactions", TRANSACTIONS))
            for name in names
        },
        "JoinGroup": by_group({"session_timeout_ms": 10_000, "member_id": "odd", **protocol}),
        "SyncGroup": by_group({"generation_id": 1, "member_id": "odd"}),
        "Heartbeat": by_group({"generation_id": 1, "member_id": "odd"}),
        "LeaveGroup": by_group({"member_id": "odd", "members": [{"member_id": "odd"}]}),
        "OffsetCommit": by_group(
            {
                "generation_id_or_member_epoch": -1,
                "topics": _each(TOPICS, partitions=committed),
            }
        ),
        "OffsetFetch": {
            **{
                group: {
                    "group_id": group,
                    "topics": fetched,
                    "groups": [{"group_id": each, "topics": fetched} for each in (group, *GROUPS)],
                }
                for group in GROUPS
            },
            "all": {
                "group_id": "ok-group",
                "topics": None,
                "groups": [{"group_id": group, "topics": None} for group in GROUPS],
            },
        },
        "OffsetDelete": by_group(
            {
                "topics": _each(
                    ("no-there", "no-such", "ok-such"), partitions=[{"partition_index": 0}]
                )
            }
        ),
        "ListGroups": {"all": {}},
        "DescribeGroups": {"groups": {"groups": GROUPS, "include_authorized_operations": True}},
        "DeleteGroups": {"groups": {"groups_names": ("no-group", "no-such", "ok-such")}},
        "ConsumerGroupDescribe": {"groups": {"group_ids": GROUPS}},
    }


def _of_transactions() -> dict[str, dict[str, BodyOf]]:
    parts = _each(TOPICS, partitions=[0])
    committed = _each(TOPICS, partitions=[{"partition_index": 0, "committed_offset": 0}])

    def by_transaction(body: Body) -> dict[str, BodyOf]:
        return {name: {"transactional_id": name, **_OWNER, **body} for name in TRANSACTIONS}

    return {
        "InitProducerId": {
            "without": {"transactional_id": None, "transaction_timeout_ms": 1000},
            "denied": {"transactional_id": "no-transaction", "transaction_timeout_ms": 1000},
            "unknown": {"transactional_id": "no-such", "transaction_timeout_ms": 1000},
        },
        "AddPartitionsToTxn": {
            name: {
                "v3_and_below_transactional_id": name,
                "v3_and_below_producer_id": 1,
                "v3_and_below_producer_epoch": 0,
                "v3_and_below_topics": parts,
                "transactions": [
                    {"transactional_id": name, "topics": parts, "verify_only": True, **_OWNER}
                ],
            }
            for name in TRANSACTIONS
        },
        "AddOffsetsToTxn": {
            f"{name} {group}": {"transactional_id": name, "group_id": group, **_OWNER}
            for name in TRANSACTIONS
            for group in GROUPS
        },
        "EndTxn": by_transaction({"committed": True}),
        "TxnOffsetCommit": {
            f"{name} {group}": {
                "transactional_id": name,
                "group_id": group,
                "topics": committed,
                **_OWNER,
            }
            for name in TRANSACTIONS
            for group in GROUPS
        },
        "DescribeTransactions": {"transactions": {"transactional_ids": TRANSACTIONS}},
        "ListTransactions": {"all": {}},
        "WriteTxnMarkers": {
            "topics": {
                "markers": [
                    {
                        "producer_id": 1,
                        "producer_epoch": 0,
                        "transaction_result": True,
                        "topics": _each(TOPICS, partition_indexes=[0]),
                    }
                ]
            }
        },
    }


def _of_cluster() -> dict[str, dict[str, BodyOf]]:
    every = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1}
    rule = {
        "resource_type": 2,
        "resource_name": "ok-there",
        "resource_pattern_type": 3,
        "principal": "User:nobody",
        "host": "*",
        "operation": 2,
        "permission_type": 3,
    }
    entity = [{"entity_type": "user", "entity_name": "nobody"}]
    upsertion = {
        "name": "nobody",
        "mechanism": 1,
        "iterations": 4096,
        "salt": b"s",
        "salted_password": b"p",
    }
    return {
        "ApiVersions": {"all": {"client_software_name": "c", "client_software_version": "1"}},
        "DescribeCluster": {"all": {"include_cluster_authorized_operations": True}},
        "DescribeAcls": {"all": every | {"permission_type": 1}},
        "CreateAcls": {"one": {"creations": [rule, rule]}},
        "DeleteAcls": {"all": {"filters": [every | {"permission_type": 1}] * 2}},
        "DescribeClientQuotas": {"all": {"components": []}},
        "AlterClientQuotas": {
            "one": {"entries": [{"entity": entity, "ops": [{"key": "producer_byte_rate"}]}]}
        },
        "DescribeUserScramCredentials": {
            "all": {"users": None},
            "some": {"users": [{"name": "alice"}, {"name": "nobody"}]},
        },
        "AlterUserScramCredentials": {
            "some": {
                "deletions": [{"name": "alice", "mechanism": 1}],
                "upsertions": [upsertion],
            }
        },
        "UpdateFeatures": {
            "one": {
                "timeout_ms": 1000,
                "feature_updates": [{"feature": "f", "max_version_level": 1}],
                "validate_only": True,
            }
        },
        "CreateDelegationToken": {"one": {"max_lifetime_ms": -1}},
        "RenewDelegationToken": {"one": {"hmac": b"h", "renew_period_ms": -1}},
        "ExpireDelegationToken": {"one": {"hmac": b"h", "expiry_time_period_ms": -1}},
        "DescribeDelegationToken": {"all": {"owners": None}},
        "SaslHandshake": {"again": {"mechanism": "PLAIN"}, "unknown": {"mechanism": "odd"}},
        "SaslAuthenticate": {"again": {"auth_bytes": b"\0nobody\0nobody-pw"}},
    }


def _of_brokers() -> dict[str, dict[str, BodyOf]]:
    head = {"controller_id": 2, "controller_epoch": 99, "broker_epoch": -1}
    return {
        "LeaderAndIsr": {"none": {**head, "ungrouped_partition_states": [], "topic_states": []}},
        "StopReplica": {"none": {**head, "ungrouped_partitions": [], "topic_states": []}},
        "UpdateMetadata": {"none": {**head, "ungrouped_partition_states": [], "topic_states": []}},
        "ControlledShutdown": {"one": {"broker_id": 2, "broker_epoch": -1}},
        "AlterPartition": {"none": {"broker_id": 2, "broker_epoch": -1, "topics": []}},
        "AllocateProducerIds": {"one": {"broker_id": 2, "broker_epoch": -1}},
    }
