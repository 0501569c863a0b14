"""What admission denies is denied by every API, every version and every fast path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.api.admission import (
    AclOperation,
    AclResource,
    AllowAll,
    Authorizer,
    NoQuotas,
    Quotas,
    Rule,
    Session,
    allow_all,
)
from engine.kafka_errors import ILLEGAL_SASL_STATE, UNSUPPORTED_VERSION
from engine.model import TopicPartition
from engine.wire.structs import message_class
from tests.unit.api.authorizers import AllowEach, DenyAll, FakeQuotas, Requested
from tests.unit.broker.memory_broker import MemoryBroker, MemoryClient
from tests.unit.broker.test_broker import create_topic
from tests.unit.log.writing import sent, sent_by

TOPIC, GROUP, CLUSTER, TRANSACTION = 29, 30, 31, 53
#: A client of a listener in plain text gets nothing of tokens.
NO_TOKENS = 64
T0 = TopicPartition("t", 0)
PRODUCE, FETCH, METADATA = 0, 1, 3

#: The codes that are in an answer to somebody who may do nothing.
CODES: dict[str, set[int]] = {
    "Produce": {TOPIC}, "Fetch": {TOPIC}, "ListOffsets": {TOPIC}, "DeleteRecords": {TOPIC},
    "OffsetForLeaderEpoch": {TOPIC}, "DescribeProducers": {TOPIC}, "InitProducerId": {CLUSTER},
    "Metadata": {TOPIC}, "CreateTopics": {TOPIC}, "CreatePartitions": {TOPIC},
    "DeleteTopics": {TOPIC}, "DescribeCluster": set(), "DescribeLogDirs": {CLUSTER},
    "FindCoordinator": {GROUP}, "DescribeTopicPartitions": {TOPIC}, "ElectLeaders": {CLUSTER},
    "AlterPartitionReassignments": {CLUSTER},
    "ListPartitionReassignments": {CLUSTER}, "DescribeConfigs": {TOPIC}, "AlterConfigs": {TOPIC},
    "IncrementalAlterConfigs": {TOPIC}, "DescribeAcls": {CLUSTER}, "CreateAcls": {CLUSTER},
    "DeleteAcls": {CLUSTER}, "LeaderAndIsr": {CLUSTER}, "StopReplica": {CLUSTER},
    "UpdateMetadata": {CLUSTER}, "ControlledShutdown": {CLUSTER}, "AlterPartition": {CLUSTER},
    "AllocateProducerIds": {CLUSTER}, "ApiVersions": set(), "AlterReplicaLogDirs": {CLUSTER},
    "JoinGroup": {GROUP}, "SyncGroup": {GROUP}, "Heartbeat": {GROUP}, "LeaveGroup": {GROUP},
    "OffsetCommit": {GROUP}, "OffsetFetch": {GROUP}, "OffsetDelete": {GROUP}, "ListGroups": set(),
    "DescribeGroups": {GROUP}, "DeleteGroups": {GROUP}, "UpdateFeatures": {CLUSTER},
    "DescribeClientQuotas": {CLUSTER}, "AlterClientQuotas": {CLUSTER},
    "DescribeUserScramCredentials": {CLUSTER}, "AlterUserScramCredentials": {CLUSTER},
    "CreateDelegationToken": {NO_TOKENS}, "RenewDelegationToken": {NO_TOKENS},
    "ExpireDelegationToken": {NO_TOKENS}, "DescribeDelegationToken": {NO_TOKENS},
    "ConsumerGroupHeartbeat": {UNSUPPORTED_VERSION}, "ConsumerGroupDescribe": set(),
    "AddPartitionsToTxn": {TRANSACTION}, "AddOffsetsToTxn": {TRANSACTION}, "EndTxn": {TRANSACTION},
    "TxnOffsetCommit": {TRANSACTION}, "DescribeTransactions": {TRANSACTION},
    "ListTransactions": set(), "WriteTxnMarkers": {CLUSTER},
    "SaslHandshake": {ILLEGAL_SASL_STATE}, "SaslAuthenticate": {ILLEGAL_SASL_STATE},
}  # fmt: skip
#: Versions whose answers have no place for the error.
WITHOUT_ERRORS = {
    ("DescribeLogDirs", 0), ("DescribeLogDirs", 1), ("DescribeLogDirs", 2), ("OffsetFetch", 1)
}  # fmt: skip
#: Versions that only brokers ask.
OF_BROKERS = {("AddPartitionsToTxn", 4), ("AddPartitionsToTxn", 5)}


def fields_of(name: str, version: int, topic_id: bytes) -> dict[str, Any]:  # noqa: C901, PLR0911, PLR0912 (one case per API)
    """Return what a small request asks for, of topic t where it is about topics."""
    of = message_class(f"{name}Request")
    match name:
        case "Produce":
            data = of.PartitionProduceData(index=0, records=sent(1))
            topic = of.TopicProduceData(name="t", partition_data=[data])
            return {"acks": 1, "timeout_ms": 1000, "topic_data": [topic]}
        case "Fetch":
            requested = of.FetchPartition(partition=0, partition_max_bytes=1000)
            by = {"topic_id": topic_id} if version >= 13 else {"topic": "t"}
            return {"max_wait_ms": 0, "topics": [of.FetchTopic(partitions=[requested], **by)]}
        case "ListOffsets":
            requested = of.ListOffsetsPartition(partition_index=0, timestamp=-1)
            if version == 0:
                requested.max_num_offsets = 1
            return {
                "replica_id": -1,
                "topics": [of.ListOffsetsTopic(name="t", partitions=[requested])],
            }
        case "DeleteRecords":
            requested = of.DeleteRecordsPartition(partition_index=0, offset=1)
            return {
                "topics": [of.DeleteRecordsTopic(name="t", partitions=[requested])],
                "timeout_ms": 1000,
            }
        case "OffsetForLeaderEpoch":
            requested = of.OffsetForLeaderPartition(partition=0, leader_epoch=0)
            topics = [of.OffsetForLeaderTopic(topic="t", partitions=[requested])]
            return {"topics": topics, "replica_id": -1} if version >= 3 else {"topics": topics}
        case "DescribeProducers":
            return {"topics": [of.TopicRequest(name="t", partition_indexes=[0])]}
        case "Metadata":
            return {"topics": [of.MetadataRequestTopic(name="t")]}
        case "CreateTopics":
            topic = of.CreatableTopic(name="new", num_partitions=1, replication_factor=1)
            return {"topics": [topic], "timeout_ms": 1000}
        case "CreatePartitions":
            return {
                "topics": [of.CreatePartitionsTopic(name="t", count=5, assignments=None)],
                "timeout_ms": 1000,
            }
        case "DeleteTopics":
            if version >= 6:
                return {"topics": [of.DeleteTopicState(name="t")], "timeout_ms": 1000}
            return {"topic_names": ["t"], "timeout_ms": 1000}
        case "AlterReplicaLogDirs":
            moved = of.AlterReplicaLogDirTopic(name="t", partitions=[0])
            return {"dirs": [of.AlterReplicaLogDir(path="/elsewhere", topics=[moved])]}
        case "InitProducerId":
            return {"transactional_id": None, "transaction_timeout_ms": 1000}
        case "FindCoordinator":
            return {"coordinator_keys": ["g"]} if version >= 4 else {"key": "g"}
        case "DescribeTopicPartitions":
            return {"topics": [of.TopicRequest(name="t")], "response_partition_limit": 10}
        case "ElectLeaders":
            return {
                "topic_partitions": [of.TopicPartitions(topic="t", partitions=[0])],
                "timeout_ms": 1000,
            }
        case "AlterPartitionReassignments":
            requested = of.ReassignablePartition(partition_index=0, replicas=[1])
            return {"topics": [of.ReassignableTopic(name="t", partitions=[requested])]}
        case "DescribeConfigs":
            resource = of.DescribeConfigsResource(
                resource_type=2, resource_name="t", configuration_keys=None
            )
            return {"resources": [resource]}
        case "AlterConfigs":
            config = of.AlterableConfig(name="retention.ms", value="7")
            resource = of.AlterConfigsResource(resource_type=2, resource_name="t", configs=[config])
            return {"resources": [resource]}
        case "IncrementalAlterConfigs":
            config = of.AlterableConfig(name="retention.ms", config_operation=0, value="7")
            resource = of.AlterConfigsResource(resource_type=2, resource_name="t", configs=[config])
            return {"resources": [resource]}
        case "DescribeAcls":
            return {"resource_type_filter": 1, "operation": 1, "permission_type": 1}
        case "CreateAcls":
            creation = of.AclCreation(
                resource_type=2,
                resource_name="t",
                principal="User:a",
                host="*",
                operation=3,
                permission_type=3,
            )
            return {"creations": [creation]}
        case "DeleteAcls":
            return {
                "filters": [
                    of.DeleteAclsFilter(resource_type_filter=1, operation=1, permission_type=1)
                ]
            }
        case "AlterClientQuotas":
            entity = of.EntityData(entity_type="user", entity_name="u")
            op = of.OpData(key="producer_byte_rate", value=1e9)
            return {"entries": [of.EntryData(entity=[entity], ops=[op])]}
        case "AlterUserScramCredentials":
            upsertion = of.ScramCredentialUpsertion(
                name="u", mechanism=1, iterations=4096, salt=b"s", salted_password=b"p"
            )
            return {"upsertions": [upsertion]}
        case "CreateDelegationToken":
            return {"max_lifetime_ms": -1}
        case "RenewDelegationToken":
            return {"hmac": b"h", "renew_period_ms": -1}
        case "ExpireDelegationToken":
            return {"hmac": b"h", "expiry_time_period_ms": -1}
        case "LeaderAndIsr":
            return leader_and_isr(of, version, topic_id)
        case "StopReplica":
            return stop_replica(of, version)
        case "ApiVersions" if version >= 3:
            return {"client_software_name": "test", "client_software_version": "1"}
    return fields_of_group(name, version) or fields_of_transaction(name, version)


def fields_of_transaction(name: str, version: int) -> dict[str, Any]:
    """Return what a small request about transactional id x asks for."""
    of = message_class(f"{name}Request")
    owner = {"transactional_id": "x", "producer_id": 1, "producer_epoch": 0}
    match name:
        case "AddPartitionsToTxn":
            topics = [of.AddPartitionsToTxnTopic(name="t", partitions=[0])]
            if version >= 4:
                return {"transactions": [of.AddPartitionsToTxnTransaction(topics=topics, **owner)]}
            return {
                "v3_and_below_transactional_id": "x",
                "v3_and_below_producer_id": 1,
                "v3_and_below_producer_epoch": 0,
                "v3_and_below_topics": topics,
            }
        case "AddOffsetsToTxn":
            return owner | {"group_id": "g"}
        case "EndTxn":
            return owner | {"committed": True}
        case "TxnOffsetCommit":
            requested = of.TxnOffsetCommitRequestPartition(partition_index=0)
            topic = of.TxnOffsetCommitRequestTopic(name="t", partitions=[requested])
            return owner | {"group_id": "g", "topics": [topic]}
        case "DescribeTransactions":
            return {"transactional_ids": ["x"]}
        case "WriteTxnMarkers":
            topic = of.WritableTxnMarkerTopic(name="t", partition_indexes=[0])
            marker = of.WritableTxnMarker(producer_id=1, topics=[topic])
            return {"markers": [marker]}
    return {}


def fields_of_group(name: str, version: int) -> dict[str, Any]:
    """Return what a small request about group g asks for."""
    of = message_class(f"{name}Request")
    match name:
        case "JoinGroup":
            return {"group_id": "g", "protocol_type": "consumer"}
        case "SyncGroup":
            named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
            return {"group_id": "g", **named}
        case "Heartbeat" | "LeaveGroup":
            return {"group_id": "g"}
        case "OffsetCommit":
            requested = of.OffsetCommitRequestPartition(partition_index=0)
            topic = of.OffsetCommitRequestTopic(name="t", partitions=[requested])
            return {"group_id": "g", "topics": [topic]}
        case "OffsetFetch":
            if version >= 8:
                return {"groups": [of.OffsetFetchRequestGroup(group_id="g", topics=[])]}
            topic = of.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
            return {"group_id": "g", "topics": [topic]}
        case "OffsetDelete":
            return {"group_id": "g"}
        case "DescribeGroups":
            return {"groups": ["g"]}
        case "DeleteGroups":
            return {"groups_names": ["g"]}
    return {}


def leader_and_isr(of: Any, version: int, topic_id: bytes) -> dict[str, Any]:
    state = of.LeaderAndIsrPartitionState(
        partition_index=0, leader=2, leader_epoch=9, isr=[2], partition_epoch=9, replicas=[1, 2]
    )
    head = {"controller_id": 2, "controller_epoch": 99}
    if version < 2:
        state.topic_name = "t"
        return {**head, "ungrouped_partition_states": [state]}
    topic = of.LeaderAndIsrTopicState(topic_name="t", partition_states=[state])
    if version >= 5:
        topic.topic_id = topic_id
    return {**head, "topic_states": [topic]}


def stop_replica(of: Any, version: int) -> dict[str, Any]:
    head = {"controller_id": 2, "controller_epoch": 99}
    if version < 1:
        named = of.StopReplicaPartitionV0(topic_name="t", partition_index=0)
        return {**head, "ungrouped_partitions": [named], "delete_partitions": True}
    if version < 3:
        topic = of.StopReplicaTopicV1(name="t", partition_indexes=[0])
        return {**head, "topics": [topic], "delete_partitions": True}
    state = of.StopReplicaPartitionState(partition_index=0, leader_epoch=-1, delete_partition=True)
    return {
        **head,
        "topic_states": [of.StopReplicaTopicState(topic_name="t", partition_states=[state])],
    }


def codes_in(answer: Any) -> Iterator[int]:
    """Yield all error codes of an answer."""
    if isinstance(answer, list):
        for entry in answer:
            yield from codes_in(entry)
    elif hasattr(answer, "__slots__"):
        for name in answer.__slots__:
            value = getattr(answer, name)
            if name.endswith("error_code"):
                yield value
            else:
                yield from codes_in(value)


@pytest.fixture
def stage() -> Iterator[MemoryBroker]:
    stage = MemoryBroker()
    stage.start()
    create_topic(stage.connect(), "t")
    yield stage
    stage.stop()
    assert not stage.faults


def change(
    stage: MemoryBroker, authorizer: Authorizer | None = None, quotas: Quotas | None = None
) -> None:
    stage.broker.table.admission.change(authorizer or AllowAll(), quotas or NoQuotas())


def state_of(stage: MemoryBroker) -> Any:
    """Return what requests could have changed."""
    partition = stage.broker.storage.replica_manager.partitions[T0]
    return (
        partition.log.log_end_offset,
        partition.log.log_start_offset,
        partition.leader_epoch,
        partition.leader_id,
        dict(stage.broker.metadata_cache.topics),
        stage.broker.storage.leadership.controller_epoch,
        stage.broker.live.topic_config("t"),
        stage.broker.metadata_cache.controller_id,
    )


def ask(stage: MemoryBroker, client: MemoryClient, name: str, version: int) -> Any:
    topic_id = stage.broker.metadata_cache.topic_ids["t"]
    return client.ask(name, version, **fields_of(name, version, topic_id))


def test_every_version_of_every_api_obeys_a_rule_that_denies_all(stage: MemoryBroker) -> None:
    rows = stage.broker.table.rows()
    assert {row.name for row in rows} == CODES.keys()
    before_client = stage.connect()
    assert ask(stage, before_client, "Produce", 9) is not None
    change(stage, DenyAll())
    before = state_of(stage)
    for row in rows:
        for version in range(row.lowest, row.highest + 1):
            for client in (before_client, stage.connect()):
                answer = ask(stage, client, row.name, version)
                wanted = set() if (row.name, version) in WITHOUT_ERRORS else CODES[row.name]
                if (row.name, version) in OF_BROKERS:
                    wanted = {CLUSTER}
                assert set(codes_in(answer)) - {0} == wanted, (row.name, version)
                assert not client.is_closed
    assert before == state_of(stage)


def test_apis_that_admission_does_not_deny_work_as_before(stage: MemoryBroker) -> None:
    """The requests of the test above are such that each would do something."""
    client = stage.connect()
    for row in sorted(stage.broker.table.rows(), key=lambda row: row.name == "DeleteTopics"):
        if row.is_inter_broker or row.name in ("DescribeAcls", "CreateAcls", "DeleteAcls"):
            continue
        answer = ask(stage, client, row.name, row.highest)
        assert not set(codes_in(answer)) & {TOPIC, GROUP, CLUSTER, TRANSACTION}, row.name


def test_all_topics_are_those_that_may_be_described(stage: MemoryBroker) -> None:
    change(stage, DenyAll())
    client = stage.connect()
    for version in range(13):
        topics: Any = [] if version == 0 else None
        assert client.ask("Metadata", version, topics=topics).topics == []
    assert client.ask("DescribeTopicPartitions", 0, response_partition_limit=9).topics == []
    by_id = message_class("MetadataRequest").MetadataRequestTopic(
        topic_id=stage.broker.metadata_cache.topic_ids["t"], name=None
    )
    (topic,) = client.ask("Metadata", 12, topics=[by_id]).topics
    assert (topic.error_code, topic.name) == (TOPIC, None)


def test_a_produce_without_acks_ends_the_connection(stage: MemoryBroker) -> None:
    change(stage, DenyAll())
    client = stage.connect()
    fields = fields_of("Produce", 9, b"") | {"acks": 0}
    assert client.ask("Produce", 9, **fields) is None
    assert client.is_closed


def test_transactional_ids_are_requested(stage: MemoryBroker) -> None:
    change(stage, AllowEach(lambda requested: requested[1] is AclResource.TRANSACTIONAL_ID))
    client = stage.connect()
    fields = fields_of("Produce", 9, b"") | {"transactional_id": "x"}
    records = sent_by(5, 0, is_transactional=True)
    assert set(codes_in(client.ask("Produce", 9, **fields))) == {0}
    fields["topic_data"][0].partition_data[0].records = records
    assert set(codes_in(client.ask("Produce", 9, **fields))) == {TRANSACTION}
    assert client.ask("InitProducerId", 4, transactional_id="x").error_code == TRANSACTION
    answer = client.ask("FindCoordinator", 4, key_type=1, coordinator_keys=["x"])
    assert set(codes_in(answer)) - {0} == {TRANSACTION}


def test_followers_fetch_only_if_they_may_act_for_the_cluster(stage: MemoryBroker) -> None:
    change(stage, AllowEach(lambda requested: requested[0] is AclOperation.CLUSTER_ACTION))
    client = stage.connect()
    fields = fields_of("Fetch", 11, b"") | {"replica_id": 2}
    assert set(codes_in(client.ask("Fetch", 11, **fields))) == {0, TOPIC}
    assert set(codes_in(ask(stage, client, "Fetch", 11))) == {0}


def test_sessions_of_fetches_notice_a_change(stage: MemoryBroker) -> None:
    client = stage.connect()
    ask(stage, client, "Produce", 9)
    fields = fields_of("Fetch", 17, stage.broker.metadata_cache.topic_ids["t"])
    opened = client.ask("Fetch", 17, session_epoch=0, **fields)
    assert opened.session_id
    more = {"session_id": opened.session_id, "max_wait_ms": 0}
    assert set(codes_in(client.ask("Fetch", 17, session_epoch=1, **more))) == {0}
    change(stage, DenyAll())
    assert TOPIC in set(codes_in(client.ask("Fetch", 17, session_epoch=2, **more)))
    change(stage)
    answer = client.ask("Fetch", 17, session_epoch=3, **more)
    assert answer.responses[0].partitions[0].records


def test_one_denied_topic_leaves_the_others(stage: MemoryBroker) -> None:
    create_topic(stage.connect(), "u")
    change(stage, AllowEach(lambda requested: requested[1:] == (AclResource.TOPIC, "u")))
    client = stage.connect()
    of = message_class("ProduceRequest")
    topics = [
        of.TopicProduceData(
            name=name, partition_data=[of.PartitionProduceData(index=0, records=sent(1))]
        )
        for name in ("t", "u")
    ]
    answer = client.ask("Produce", 9, acks=1, timeout_ms=1000, topic_data=topics)
    codes = {topic.name: topic.partition_responses[0].error_code for topic in answer.responses}
    assert codes == {"t": 0, "u": TOPIC}
    assert [topic.name for topic in client.ask("Metadata", 9, topics=None).topics] == ["t"]


def test_what_a_client_may_do_to_a_topic_is_what_the_authorizer_allows(stage: MemoryBroker) -> None:
    allowed = {AclOperation.DESCRIBE, AclOperation.READ}
    change(stage, AllowEach(lambda requested: requested[0] not in allowed))
    client = stage.connect()
    fields = fields_of("Metadata", 9, b"") | {
        "include_topic_authorized_operations": True,
        "include_cluster_authorized_operations": True,
    }
    answer = client.ask("Metadata", 9, **fields)
    assert answer.topics[0].topic_authorized_operations == 1 << 8 | 1 << 3
    assert answer.cluster_authorized_operations == 1 << 8
    change(stage, DenyAll())
    answer = client.ask("DescribeCluster", 0, include_cluster_authorized_operations=True)
    assert answer.cluster_authorized_operations == 0
    assert answer.brokers


def test_topics_are_made_by_who_may_make_any_or_this_one(stage: MemoryBroker) -> None:
    def denied(requested: Requested) -> bool:
        return requested[0] is AclOperation.CREATE and requested[2] != "mine"

    change(stage, AllowEach(denied))
    client = stage.connect()
    requested = message_class("MetadataRequest").MetadataRequestTopic
    answer = client.ask(
        "Metadata", 9, topics=[requested(name="mine"), requested(name="other")],
        allow_auto_topic_creation=True,
    )  # fmt: skip
    codes = {topic.name: topic.error_code for topic in answer.topics}
    assert codes["other"] == TOPIC
    assert codes["mine"] != TOPIC
    assert "other" not in stage.broker.metadata_cache.topics
    assert "mine" in stage.broker.metadata_cache.topics


def test_settings_of_a_new_topic_are_sent_to_clients_that_may_read_them(
    stage: MemoryBroker,
) -> None:
    change(stage, AllowEach(lambda requested: requested[0] is AclOperation.DESCRIBE_CONFIGS))
    (topic,) = ask(stage, stage.connect(), "CreateTopics", 7).topics
    assert (topic.error_code, topic.topic_config_error_code) == (0, TOPIC)
    assert (topic.num_partitions, topic.replication_factor, topic.configs) == (-1, -1, [])


def test_ids_of_topics_are_no_secret_and_their_names_are(stage: MemoryBroker) -> None:
    change(stage, AllowEach(lambda requested: requested[0] is AclOperation.DESCRIBE))
    state = message_class("DeleteTopicsRequest").DeleteTopicState
    requested = [state(name=None, topic_id=stage.broker.metadata_cache.topic_ids["t"])]
    (result,) = stage.connect().ask("DeleteTopics", 6, topics=requested, timeout_ms=1000).responses
    assert (result.error_code, result.name) == (TOPIC, None)


@pytest.mark.parametrize("operation", [AclOperation.ALTER, AclOperation.CLUSTER_ACTION])
def test_administrators_and_brokers_may_write_the_ends_of_transactions(
    stage: MemoryBroker, operation: AclOperation
) -> None:
    client = stage.connect()
    change(stage, AllowEach(lambda requested: requested[0] is not operation))
    assert CLUSTER not in set(codes_in(ask(stage, client, "WriteTxnMarkers", 1)))
    change(stage, AllowEach(lambda requested: requested[0] is not AclOperation.DESCRIBE))
    assert CLUSTER in set(codes_in(ask(stage, client, "WriteTxnMarkers", 1)))


def test_orders_of_brokers_come_by_their_listeners_if_some_are_named(stage: MemoryBroker) -> None:
    admission = stage.broker.table.admission
    client = stage.connect()
    admission.change(AllowAll(), NoQuotas(), frozenset(("BROKERS",)))
    for row in stage.broker.table.rows():
        if row.rule in (Rule.CLUSTER_ACTION, Rule.CLUSTER_ALTER_OR_ACTION):
            assert CLUSTER in set(codes_in(ask(stage, client, row.name, row.highest)))
    assert set(codes_in(ask(stage, client, "Produce", 9))) == {0}
    admission.change(AllowAll(), NoQuotas(), frozenset(("PLAINTEXT",)))
    answer = ask(stage, client, "AllocateProducerIds", 0)
    assert CLUSTER not in set(codes_in(answer))


def test_orders_in_one_process_pass_admission_too(stage: MemoryBroker) -> None:
    change(stage, DenyAll())
    request = message_class("UpdateMetadataRequest")(controller_id=1)
    answer = stage.broker.serve_local("UpdateMetadata", 8, request)
    assert answer.result().error_code == CLUSTER


def test_a_session_asks_again_only_when_something_changed() -> None:
    requested: list[Session] = []

    class Counting(AllowAll):
        def may_everything(self, session: Session) -> bool:
            requested.append(session)
            return True

    admission = allow_all()
    admission.change(Counting(), NoQuotas())
    session = Session("peer", admission)
    assert session.may_take_fast_path and session.may_take_fast_path
    assert len(requested) == 1
    admission.change(Counting(), NoQuotas())
    assert session.may_take_fast_path
    assert len(requested) == 2
    admission.change(DenyAll(), NoQuotas())
    assert not session.may_take_fast_path


def test_a_connection_over_its_quota_gets_a_throttle_time_and_is_muted(stage: MemoryBroker) -> None:
    quotas = FakeQuotas(dict.fromkeys((PRODUCE, FETCH, METADATA, 18), 250))
    change(stage, quotas=quotas)
    topic_id = stage.broker.metadata_cache.topic_ids["t"]
    for name, versions in (
        ("Produce", (1, 8, 9, 11)),
        ("Fetch", (1, 6, 12, 17)),
        ("Metadata", (9,)),
    ):
        for version in versions:
            client = stage.connect()
            answer = client.ask(name, version, **fields_of(name, version, topic_id))
            assert answer.throttle_time_ms == 250, (name, version)
            assert client.ask("ListOffsets", 1, replica_id=-1) is None
            quotas.end_rests()
            stage.timers.run_until_idle()
            assert client.answer("ListOffsets", 1) is not None


def test_only_brokers_are_free_of_quotas_when_they_ask_what_brokers_do(stage: MemoryBroker) -> None:
    """Kafka throttles who is not authorized for the cluster: RequestHandlerHelper.handleError."""
    key = 7
    allowed = stage.connect()
    change(stage, None, FakeQuotas({key: 250}))
    allowed.ask("ControlledShutdown", 3, broker_id=9)
    assert allowed.ask("ApiVersions", 0) is not None
    change(stage, DenyAll(), FakeQuotas({key: 250}))
    denied = stage.connect()
    answer = denied.ask("ControlledShutdown", 3, broker_id=9)
    assert CLUSTER == answer.error_code
    assert denied.ask("ApiVersions", 0) is None


def test_a_connection_that_ended_while_it_rested_is_left_alone(stage: MemoryBroker) -> None:
    quotas = FakeQuotas({METADATA: 250})
    change(stage, quotas=quotas)
    client = stage.connect()
    assert client.ask("Metadata", 9, topics=None).throttle_time_ms == 250
    client.connection.close("gone")
    stage.timers.run_until_idle()
    quotas.end_rests()
