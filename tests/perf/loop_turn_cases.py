"""What `loop_turns` asks a broker: each API, for all partitions where one request takes them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from engine.wire.structs import message_class
from tests.cluster.raw_client import RawClient
from tests.unit.log.writing import sent

_CHANGED = 1_000
_GROWN = 300
TIMEOUT_MS = 300_000


class Stage(NamedTuple):
    """A broker with its topics, and a client of it."""

    client: RawClient
    topics: list[str]
    topic_ids: dict[str, bytes]
    controller_epoch: int


#: Returns the fields of a request; the number is that of the round.
Fields = Callable[[Stage, int], dict[str, Any]]


class Case(NamedTuple):
    """One request of an API."""

    label: str
    name: str
    version: int
    fields: Fields
    #: Whether later rounds are answered from what the first one made.
    is_first_alone: bool = False


def _by_topic(
    name: str, topic_class: str, partition_class: str, topic_field: str, topics_field: str
) -> Callable[..., Fields]:
    """Return what makes requests of one partition of each topic, which most APIs have alike."""

    def of(partitions_field: str = "partitions", /, *, more: Any = None, **values: Any) -> Fields:
        def fields(stage: Stage, _number: int) -> dict[str, Any]:
            made = message_class(f"{name}Request")
            topic, row = getattr(made, topic_class), getattr(made, partition_class)
            rows = [
                topic(**{topic_field: each, partitions_field: [row(**values)]})
                for each in stage.topics
            ]
            return {topics_field: rows, **(more or {})}

        return fields

    return of


def _produce(acks: int) -> Fields:
    def fields(stage: Stage, _number: int) -> dict[str, Any]:
        # Of now: what is old is rolled and deleted by the next retention check, during this.
        made, records = message_class("ProduceRequest"), sent(at_ms=time.time_ns() // 1_000_000)
        data = [made.PartitionProduceData(index=0, records=records)]
        rows = [made.TopicProduceData(name=each, partition_data=data) for each in stage.topics]
        return {"acks": acks, "timeout_ms": 30_000, "topic_data": rows}

    return fields


_FETCH = _by_topic("Fetch", "FetchTopic", "FetchPartition", "topic", "topics")
_LIST_OFFSETS = _by_topic(
    "ListOffsets", "ListOffsetsTopic", "ListOffsetsPartition", "name", "topics"
)
_DELETE_RECORDS = _by_topic(
    "DeleteRecords", "DeleteRecordsTopic", "DeleteRecordsPartition", "name", "topics"
)
_EPOCH_ENDS = _by_topic(
    "OffsetForLeaderEpoch", "OffsetForLeaderTopic", "OffsetForLeaderPartition", "topic", "topics"
)
_FETCHED = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 50 << 20, "session_epoch": -1}


def _indexes(name: str, topic_class: str, field: str, topics_field: str = "topics") -> Fields:
    """Return a maker of requests that name partition 0 of each topic by its number."""

    def fields(stage: Stage, _number: int) -> dict[str, Any]:
        topic = getattr(message_class(f"{name}Request"), topic_class)
        rows = [topic(**{field: each, "partition_indexes": [0]}) for each in stage.topics]
        return {topics_field: rows}

    return fields


def _configs(stage: Stage, _number: int) -> dict[str, Any]:
    made = message_class("DescribeConfigsRequest").DescribeConfigsResource
    rows = [
        made(resource_type=2, resource_name=each, configuration_keys=None) for each in stage.topics
    ]
    return {"resources": rows}


def _log_dirs(stage: Stage, _number: int) -> dict[str, Any]:
    made = message_class("DescribeLogDirsRequest").DescribableLogDirTopic
    return {"topics": [made(topic=each, partitions=[0]) for each in stage.topics]}


def _create(stage: Stage, number: int) -> dict[str, Any]:
    made = message_class("CreateTopicsRequest").CreatableTopic
    rows = [
        made(name=f"made-{number}-{each}", num_partitions=1, replication_factor=1)
        for each in range(_CHANGED)
    ]
    return {"topics": rows, "timeout_ms": TIMEOUT_MS}


def _create_large(_stage: Stage, number: int) -> dict[str, Any]:
    made = message_class("CreateTopicsRequest").CreatableTopic
    row = made(name=f"large-{number}", num_partitions=_CHANGED, replication_factor=1)
    return {"topics": [row], "timeout_ms": TIMEOUT_MS}


def _grow(stage: Stage, number: int) -> dict[str, Any]:
    made = message_class("CreatePartitionsRequest").CreatePartitionsTopic
    rows = [made(name=f"made-{number}-{each}", count=2, assignments=None) for each in range(_GROWN)]
    return {"topics": rows, "timeout_ms": TIMEOUT_MS}


def _delete(_stage: Stage, number: int) -> dict[str, Any]:
    made = message_class("DeleteTopicsRequest").DeleteTopicState
    names = [f"made-{number}-{each}" for each in range(_CHANGED)] + [f"large-{number}"]
    return {"topics": [made(name=name) for name in names], "timeout_ms": TIMEOUT_MS}


def _alter(stage: Stage, _number: int) -> dict[str, Any]:
    made = message_class("AlterConfigsRequest")
    config = made.AlterableConfig(name="retention.ms", value="86400000")
    rows = [
        made.AlterConfigsResource(resource_type=2, resource_name=each, configs=[config])
        for each in stage.topics[:_CHANGED]
    ]
    return {"resources": rows}


def _alter_incrementally(stage: Stage, number: int) -> dict[str, Any]:
    made = message_class("IncrementalAlterConfigsRequest")
    config = made.AlterableConfig(
        name="retention.ms", config_operation=0, value=str(86_400_000 + number)
    )
    rows = [
        made.AlterConfigsResource(resource_type=2, resource_name=each, configs=[config])
        for each in stage.topics[:_CHANGED]
    ]
    return {"resources": rows}


def _cancel_moves(stage: Stage, _number: int) -> dict[str, Any]:
    made = message_class("AlterPartitionReassignmentsRequest")
    row = made.ReassignablePartition(partition_index=0, replicas=None)
    rows = [made.ReassignableTopic(name=each, partitions=[row]) for each in stage.topics]
    return {"topics": rows, "timeout_ms": TIMEOUT_MS}


def _list_moves(stage: Stage, _number: int) -> dict[str, Any]:
    return {"topics": None, "timeout_ms": TIMEOUT_MS}


def _elect(_stage: Stage, _number: int) -> dict[str, Any]:
    return {"election_type": 0, "topic_partitions": None, "timeout_ms": TIMEOUT_MS}


def _leader_and_isr(stage: Stage, number: int) -> dict[str, Any]:
    made = message_class("LeaderAndIsrRequest")
    rows = [
        made.LeaderAndIsrTopicState(
            topic_name=each,
            topic_id=stage.topic_ids[each],
            partition_states=[
                made.LeaderAndIsrPartitionState(
                    partition_index=0,
                    controller_epoch=stage.controller_epoch,
                    leader=1,
                    leader_epoch=1 + number,
                    isr=[1],
                    partition_epoch=1 + number,
                    replicas=[1],
                )
            ],
        )
        for each in stage.topics
    ]
    return {
        "controller_id": 1,
        "controller_epoch": stage.controller_epoch,
        "broker_epoch": -1,
        "topic_states": rows,
        "live_leaders": [
            made.LeaderAndIsrLiveLeader(broker_id=1, host_name="127.0.0.1", port=9092)
        ],
    }


def _update_metadata(stage: Stage, number: int) -> dict[str, Any]:
    made = message_class("UpdateMetadataRequest")
    host, port = stage.client.socket.getpeername()
    endpoint = made.UpdateMetadataEndpoint(
        port=port, host=host, listener="PLAINTEXT", security_protocol=0
    )
    rows = [
        made.UpdateMetadataTopicState(
            topic_name=each,
            topic_id=stage.topic_ids[each],
            partition_states=[
                made.UpdateMetadataPartitionState(
                    partition_index=0,
                    controller_epoch=stage.controller_epoch,
                    leader=1,
                    leader_epoch=1 + number,
                    isr=[1],
                    zk_version=1 + number,
                    replicas=[1],
                )
            ],
        )
        for each in stage.topics
    ]
    return {
        "controller_id": 1,
        "controller_epoch": stage.controller_epoch,
        "broker_epoch": -1,
        "topic_states": rows,
        "live_brokers": [made.UpdateMetadataBroker(id=1, endpoints=[endpoint])],
    }


def _stop_replica(stage: Stage, _number: int) -> dict[str, Any]:
    made = message_class("StopReplicaRequest")
    # Of the epoch that all have: each is stopped, and its log stays. LeaderAndIsr takes them up
    # again.
    row = made.StopReplicaPartitionState(partition_index=0, leader_epoch=0, delete_partition=False)
    rows = [
        made.StopReplicaTopicState(topic_name=each, partition_states=[row]) for each in stage.topics
    ]
    return {
        "controller_id": 1,
        "controller_epoch": stage.controller_epoch,
        "broker_epoch": -1,
        "topic_states": rows,
    }


def _alter_partition(stage: Stage, _number: int) -> dict[str, Any]:
    made = message_class("AlterPartitionRequest")
    # Of an epoch that is over: each is looked at, and refused.
    rows = [
        made.TopicData(
            topic_id=stage.topic_ids[each],
            partitions=[
                made.PartitionData(
                    partition_index=0, leader_epoch=0, new_isr=[1], partition_epoch=9
                )
            ],
        )
        for each in stage.topics
    ]
    return {"broker_id": 1, "broker_epoch": -1, "topics": rows}


def _move_directories(stage: Stage, _number: int) -> dict[str, Any]:
    made = message_class("AlterReplicaLogDirsRequest")
    rows = [made.AlterReplicaLogDirTopic(name=each, partitions=[0]) for each in stage.topics]
    return {"dirs": [made.AlterReplicaLogDir(path="/nowhere", topics=rows)]}


def _nothing(**fields: Any) -> Fields:
    return lambda _stage, _number: fields


CASES = (
    Case("ApiVersions", "ApiVersions", 3, _nothing()),
    # Of each version the answer is kept: the stage has asked for 12.
    Case("Metadata, all topics", "Metadata", 9, _nothing(topics=None), is_first_alone=True),
    Case("Metadata, all topics again", "Metadata", 9, _nothing(topics=None)),
    Case("DescribeCluster", "DescribeCluster", 0, _nothing()),
    Case("DescribeTopicPartitions", "DescribeTopicPartitions", 0, _nothing()),
    Case("FindCoordinator", "FindCoordinator", 2, _nothing(key="group")),
    Case("InitProducerId", "InitProducerId", 4, _nothing(transaction_timeout_ms=1000)),
    Case("Produce, a batch to each", "Produce", 9, _produce(acks=1)),
    Case("Produce, acks=all", "Produce", 9, _produce(acks=-1)),
    Case(
        "Fetch, all without a session",
        "Fetch",
        12,
        _FETCH(more=_FETCHED, partition=0, fetch_offset=0, partition_max_bytes=1 << 20),
    ),
    Case(
        "Fetch, all in a new session",
        "Fetch",
        12,
        _FETCH(
            more={**_FETCHED, "session_epoch": 0},
            partition=0,
            fetch_offset=0,
            partition_max_bytes=1 << 20,
        ),
    ),
    Case(
        "Fetch, all, parked",
        "Fetch",
        12,
        _FETCH(
            more={**_FETCHED, "max_wait_ms": 200, "min_bytes": 1 << 30, "max_bytes": (1 << 31) - 1},
            partition=0,
            fetch_offset=0,
            partition_max_bytes=1 << 20,
        ),
    ),
    Case("ListOffsets, latest", "ListOffsets", 7, _LIST_OFFSETS(partition_index=0, timestamp=-1)),
    Case("ListOffsets, by time", "ListOffsets", 7, _LIST_OFFSETS(partition_index=0, timestamp=1)),
    Case(
        "OffsetForLeaderEpoch",
        "OffsetForLeaderEpoch",
        4,
        _EPOCH_ENDS(partition=0, current_leader_epoch=-1, leader_epoch=0),
    ),
    Case(
        "DescribeProducers",
        "DescribeProducers",
        0,
        _indexes("DescribeProducers", "TopicRequest", "name"),
    ),
    Case(
        "DeleteRecords",
        "DeleteRecords",
        2,
        _DELETE_RECORDS(more={"timeout_ms": 30_000}, partition_index=0, offset=0),
    ),
    Case("DescribeConfigs, all topics", "DescribeConfigs", 4, _configs),
    Case("DescribeLogDirs", "DescribeLogDirs", 4, _nothing(topics=None)),
    Case("DescribeLogDirs, by name", "DescribeLogDirs", 4, _log_dirs),
    Case("AlterReplicaLogDirs", "AlterReplicaLogDirs", 2, _move_directories),
    Case("ListPartitionReassignments", "ListPartitionReassignments", 0, _list_moves),
    Case("AlterPartitionReassignments", "AlterPartitionReassignments", 0, _cancel_moves),
    Case("ElectLeaders, all", "ElectLeaders", 2, _elect),
    Case(
        "DescribeAcls",
        "DescribeAcls",
        2,
        _nothing(resource_type_filter=1, pattern_type_filter=1, operation=1, permission_type=1),
    ),
    Case(f"AlterConfigs, {_CHANGED} topics", "AlterConfigs", 2, _alter),
    Case(
        f"IncrementalAlterConfigs, {_CHANGED} topics",
        "IncrementalAlterConfigs",
        1,
        _alter_incrementally,
    ),
    Case(f"CreateTopics, {_CHANGED} topics", "CreateTopics", 7, _create),
    Case(f"CreateTopics, one of {_CHANGED} partitions", "CreateTopics", 7, _create_large),
    Case(f"CreatePartitions, {_GROWN} topics", "CreatePartitions", 3, _grow),
    Case(f"DeleteTopics, {_CHANGED} and a large one", "DeleteTopics", 6, _delete),
    Case("AllocateProducerIds", "AllocateProducerIds", 0, _nothing(broker_id=1, broker_epoch=-1)),
    Case("AlterPartition", "AlterPartition", 2, _alter_partition),
    Case("StopReplica", "StopReplica", 4, _stop_replica),
    Case("LeaderAndIsr", "LeaderAndIsr", 7, _leader_and_isr),
    Case("UpdateMetadata", "UpdateMetadata", 8, _update_metadata),
    # The last: from then on the controller takes the broker for one that is about to stop.
    Case(
        "ControlledShutdown, nobody else to lead",
        "ControlledShutdown",
        3,
        _nothing(broker_id=1, broker_epoch=-1),
    ),
)
