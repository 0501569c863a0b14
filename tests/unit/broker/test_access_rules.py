"""A broker with an authorizer: it goes by the rules in its znodes, as they change."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from engine.admin.acl_admin import AclAdmin
from engine.api.admission import Session
from engine.api.dispatch import FastHandler
from engine.host.coroutine import drive
from engine.security.acl_cache import AclCache
from engine.security.acls import (
    AccessEntry,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    EntryFilter,
    PatternFilter,
    PatternType,
)
from engine.wire.structs import message_class
from engine.znode.embedded import EmbeddedZnodeClient
from tests.unit.api.authorizers import FakeQuotas
from tests.unit.broker.memory_broker import MemoryBroker, MemoryClient
from tests.unit.broker.test_broker import create_topic, produce

AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
DENIED = 29
EVERY_ENTRY = EntryFilter(None, None, AclOperation.ANY, AclPermission.ANY)


def broker_of(stages: list[MemoryBroker], **settings: str) -> MemoryBroker:
    stage = MemoryBroker(authorizer_class_name=AUTHORIZER, **settings).start()
    stages.append(stage)
    return stage


@pytest.fixture
def stages() -> Iterator[list[MemoryBroker]]:
    stages: list[MemoryBroker] = []
    yield stages
    for stage in stages:
        stage.stop()
        assert not stage.faults


class Rival:
    """Another broker that changes rules."""

    def __init__(self, stage: MemoryBroker) -> None:
        self._stage = stage
        client = EmbeddedZnodeClient(stage.store, 1 << 30)
        drive(client.connect()).result()
        self.admin = AclAdmin(client, AclCache())

    def add(self, pattern: AclPattern, operation: AclOperation, permission: int = 3) -> None:
        entry = AccessEntry("User:ANONYMOUS", "*", operation, AclPermission(permission))
        drive(self.admin.create([AclBinding(pattern, entry)])).result()
        self._stage.timers.run_until_idle()

    def remove(self, pattern: AclPattern) -> None:
        wanted = AclFilter(PatternFilter(*pattern), EVERY_ENTRY)
        drive(self.admin.delete([wanted])).result()
        self._stage.timers.run_until_idle()


def topic(name: str, pattern_type: PatternType = PatternType.LITERAL) -> AclPattern:
    return AclPattern(AclResource.TOPIC, name, pattern_type)


def rule(**fields: Any) -> Any:
    creation = message_class("CreateAclsRequest").AclCreation
    plain = {
        "resource_type": 2,
        "resource_name": "t",
        "principal": "User:ANONYMOUS",
        "host": "*",
        "operation": 3,
        "permission_type": 3,
    }
    return creation(**(plain | fields))


def code_of(client: MemoryClient, name: str = "t") -> int:
    """Return what a client is told that asks for a topic's metadata."""
    requested = message_class("MetadataRequest").MetadataRequestTopic(name=name)
    code: int = client.ask("Metadata", 9, topics=[requested]).topics[0].error_code
    return code


def test_a_broker_follows_the_rules_that_others_make(stages: list[MemoryBroker]) -> None:
    stage = broker_of(stages, allow_everyone_if_no_acl_found="true")
    client, rival = stage.connect(), Rival(stage)
    create_topic(client, "t")
    rival.add(topic("t"), AclOperation.DESCRIBE, permission=2)
    assert DENIED == code_of(client)
    rival.remove(topic("t"))
    assert 0 == code_of(client)
    rival.add(topic("", PatternType.PREFIXED)._replace(name="t"), AclOperation.ALL, permission=2)
    assert DENIED == code_of(client)


def test_fast_paths_are_open_while_there_are_no_rules(stages: list[MemoryBroker]) -> None:
    stage = broker_of(stages, allow_everyone_if_no_acl_found="true")
    rival = Rival(stage)
    client = stage.connect()
    assert DENIED != code_of(client)
    (session,) = stage.broker.table.admission.sessions
    assert session.may_take_fast_path
    rival.add(topic("u"), AclOperation.READ)
    assert not session.may_take_fast_path
    rival.remove(topic("u"))
    assert session.may_take_fast_path


def test_super_users_take_fast_paths_under_any_rules(stages: list[MemoryBroker]) -> None:
    stage = broker_of(stages, super_users="User:admin;User:ANONYMOUS")
    client = stage.connect()
    create_topic(client, "t")
    Rival(stage).add(topic("t"), AclOperation.ALL, permission=2)
    assert 0 == code_of(client)


def test_nobody_may_do_anything_without_rules_unless_it_is_set(
    stages: list[MemoryBroker],
) -> None:
    stage = broker_of(stages)
    client = stage.connect()
    assert DENIED == code_of(client)
    answer = client.ask("CreateAcls", 3, creations=[rule()])
    assert [31] == [result.error_code for result in answer.results]
    assert 31 == client.ask("InitProducerId", 4, transactional_id=None).error_code


def test_a_broker_orders_itself_without_a_rule(stages: list[MemoryBroker]) -> None:
    stage = broker_of(stages)
    request = message_class("UpdateMetadataRequest")(
        controller_id=1, controller_epoch=1, broker_epoch=stage.broker.epoch
    )
    assert 0 == stage.broker.serve_local("UpdateMetadata", 8, request).result().error_code


def test_some_rule_to_write_is_enough_for_a_producer_id(stages: list[MemoryBroker]) -> None:
    stage = broker_of(stages)
    client = stage.connect()
    Rival(stage).add(topic("t"), AclOperation.WRITE)
    answer = client.ask("InitProducerId", 4, transactional_id=None)
    assert 31 != answer.error_code


def test_rules_are_made_described_and_removed_by_requests(stages: list[MemoryBroker]) -> None:
    stage = broker_of(stages, super_users="User:ANONYMOUS")
    client = stage.connect()
    more = rule(resource_name="pre", resource_pattern_type=4, operation=4)
    answer = client.ask("CreateAcls", 3, creations=[rule(), more, rule(operation=8)])
    assert [(0, "")] * 3 == [(one.error_code, one.error_message) for one in answer.results]
    every = {
        "resource_type_filter": 1,
        "resource_name_filter": None,
        "principal_filter": None,
        "host_filter": None,
        "pattern_type_filter": 1,
        "operation": 1,
        "permission_type": 1,
    }
    answer = client.ask("DescribeAcls", 3, **every)
    assert [("t", 3, [3, 8]), ("pre", 4, [4])] == [
        (one.resource_name, one.pattern_type, [acl.operation for acl in one.acls])
        for one in answer.resources
    ]
    filters = [message_class("DeleteAclsRequest").DeleteAclsFilter(**every)]
    answer = client.ask("DeleteAcls", 3, filters=filters)
    assert [("t", 3, 0), ("t", 8, 0), ("pre", 4, 0)] == [
        (acl.resource_name, acl.operation, acl.error_code)
        for acl in answer.filter_results[0].matching_acls
    ]
    assert [] == client.ask("DescribeAcls", 3, **every).resources


@pytest.mark.parametrize(
    ("fields", "code", "message"),
    [
        ({"resource_type": 4}, 42, "The only valid name for the CLUSTER resource is kafka-cluster"),
        ({"resource_name": ""}, 42, "Invalid empty resource name"),
        ({"resource_name": "a/b"}, 42, "Failed to create ACL"),
        ({"operation": 99}, 42, "Failed to create ACL"),
        ({"resource_name": "."}, -1, None),
        ({"principal": "bob"}, -1, None),
    ],
)
def test_a_rule_that_cannot_be_leaves_the_others(
    stages: list[MemoryBroker], fields: dict[str, Any], code: int, message: str | None
) -> None:
    stage = broker_of(stages, super_users="User:ANONYMOUS")
    client = stage.connect()
    creations = [rule(**fields), rule(resource_name="other")]
    answer = client.ask("CreateAcls", 3, creations=creations)
    assert [(code, message), (0, "")] == [
        (one.error_code, one.error_message) for one in answer.results
    ]


@pytest.mark.parametrize(
    "fields",
    [
        {"resource_type": 1},
        {"resource_pattern_type": 1},
        {"resource_pattern_type": 2},
        {"operation": 1},
        {"permission_type": 1},
    ],
)
def test_what_is_of_filters_alone_refuses_all_rules(
    stages: list[MemoryBroker], fields: dict[str, Any]
) -> None:
    stage = broker_of(stages, super_users="User:ANONYMOUS")
    creations = [rule(resource_name="other"), rule(**fields)]
    answer = stage.connect().ask("CreateAcls", 3, creations=creations)
    assert [(-1, None)] * 2 == [(one.error_code, one.error_message) for one in answer.results]
    assert stage.broker.rules is not None
    assert stage.broker.rules.admin.cache.is_empty


def test_rules_are_read_again_with_a_new_session(stages: list[MemoryBroker]) -> None:
    stage = broker_of(stages, allow_everyone_if_no_acl_found="true")
    stage.clock.advance(18_000)
    stage.store.expire_sessions()
    rival = Rival(stage)
    rival.add(topic("t"), AclOperation.READ, permission=2)
    assert stage.broker.rules is not None
    assert [topic("t")] == stage.broker.rules.admin.cache.patterns()


def test_a_note_that_cannot_be_read_is_passed_over(stages: list[MemoryBroker]) -> None:
    stage = broker_of(stages)
    rival = Rival(stage)
    client = EmbeddedZnodeClient(stage.store, 1 << 30)
    drive(client.connect()).result()
    drive(client.create("/kafka-acl-changes/acl_changes_", b"odd", sequential=True)).result()
    rival.add(topic("t"), AclOperation.READ)
    assert stage.broker.rules is not None
    assert [topic("t")] == stage.broker.rules.admin.cache.patterns()


class ServedFast:
    """How many produces and commits fast paths have served since the last look."""

    def __init__(self, stage: MemoryBroker) -> None:
        self._count = 0
        fast = stage.broker.table.serve_fast
        for key, serve in list(fast.items()):
            fast[key] = self._counting(serve)

    def _counting(self, serve: FastHandler) -> FastHandler:
        def counted(frame: memoryview, session: Session) -> Any:
            answer = serve(frame, session)
            self._count += answer is not None
            return answer

        return counted

    def taken(self) -> int:
        count, self._count = self._count, 0
        return count


def _produced(client: MemoryClient) -> int:
    code: int = produce(client, "t", acks=1).error_code
    return code


def _writable(stages: list[MemoryBroker], **settings: str) -> tuple[MemoryBroker, Rival]:
    """Return a broker with a topic that ANONYMOUS may write to and read, with a group."""
    stage = broker_of(
        stages,
        super_users="User:admin",
        offsets_topic_num_partitions="1",
        offsets_topic_replication_factor="1",
        **settings,
    )
    rival = Rival(stage)
    cluster = AclPattern(AclResource.CLUSTER, "kafka-cluster", PatternType.LITERAL)
    rival.add(cluster, AclOperation.CREATE)
    for operation in (AclOperation.WRITE, AclOperation.READ):
        rival.add(topic("t"), operation)
    rival.add(AclPattern(AclResource.GROUP, "g", PatternType.LITERAL), AclOperation.READ)
    create_topic(stage.connect(), "t")
    return stage, rival


def test_what_rules_have_granted_is_served_fast_until_one_changes(
    stages: list[MemoryBroker],
) -> None:
    stage, rival = _writable(stages)
    client, fast = stage.connect(), ServedFast(stage)
    assert [0, 0, 0] == [_produced(client) for _ in range(3)]
    # The first has asked the rules.
    assert 2 == fast.taken()
    rival.add(topic("u"), AclOperation.WRITE)
    assert [0, 0] == [_produced(client) for _ in range(2)]
    assert 1 == fast.taken()
    rival.add(topic("t"), AclOperation.WRITE, permission=2)
    assert [DENIED, DENIED] == [_produced(client) for _ in range(2)]
    rival.remove(topic("t"))
    assert DENIED == _produced(client)
    assert 0 == fast.taken()


def test_a_session_remembers_no_names_that_are_longer_than_topics(
    stages: list[MemoryBroker],
) -> None:
    # The id of a group may have 32 KB: a client chooses how many of them it names.
    stage, rival = _writable(stages)
    rival.add(AclPattern(AclResource.GROUP, "*", PatternType.LITERAL), AclOperation.READ)
    stage.connect().ask("ApiVersions", 0)
    session = stage.broker.table.admission.sessions[-1]
    read, group = AclOperation.READ, AclResource.GROUP
    for name, is_kept in (("g" * 249, True), ("g" * 250, False)):
        assert session.may(read, group, name)
        assert session.is_granted(read, group, name) is is_kept


def test_another_session_is_not_served_fast_for_it(stages: list[MemoryBroker]) -> None:
    stage, _ = _writable(stages)
    fast = ServedFast(stage)
    assert [0, 0] == [_produced(stage.connect()) for _ in range(2)]
    assert 0 == fast.taken()


def test_another_principal_is_asked_about_again(stages: list[MemoryBroker]) -> None:
    stage, _ = _writable(stages)
    client = stage.connect()
    assert 0 == _produced(client)
    session = stage.broker.table.admission.sessions[-1]
    session.authenticate("User:mallory")
    assert DENIED == _produced(client)


def test_grants_that_are_logged_are_decided_each_time(
    stages: list[MemoryBroker], caplog: pytest.LogCaptureFixture
) -> None:
    stage, _ = _writable(stages)
    client, fast = stage.connect(), ServedFast(stage)
    assert [0, 0] == [_produced(client) for _ in range(2)]
    assert 1 == fast.taken()
    with caplog.at_level(logging.DEBUG, "kafka.authorizer.logger"):
        assert [0, 0] == [_produced(client) for _ in range(2)]
    allowed = [text for text in caplog.messages if "is Allowed Operation = Write" in text]
    assert (2, 0) == (len(allowed), fast.taken())


def test_a_client_with_a_quota_is_not_served_fast_for_its_grants(
    stages: list[MemoryBroker],
) -> None:
    stage, _ = _writable(stages)
    client, fast = stage.connect(), ServedFast(stage)
    stage.broker.table.admission.quotas = FakeQuotas({})
    stage.broker.table.admission.refresh()
    assert [0, 0] == [_produced(client) for _ in range(2)]
    assert 0 == fast.taken()


def test_commits_need_the_group_and_the_topic(stages: list[MemoryBroker]) -> None:
    stage, rival = _writable(stages)
    client = stage.connect()
    client.ask("FindCoordinator", 4, coordinator_keys=["g"])
    stage.pass_time(1_000)
    client.ask("FindCoordinator", 4, coordinator_keys=["g"])
    fast = ServedFast(stage)
    assert [0, 0, 0] == [_committed(client) for _ in range(3)]
    assert 2 == fast.taken()
    # The same bytes of another client are read fast, but its rules are asked first.
    other = stage.connect()
    assert [(0, 0), (0, 1)] == [(_committed(other), fast.taken()) for _ in range(2)]
    group = AclPattern(AclResource.GROUP, "g", PatternType.LITERAL)
    rival.remove(group)
    # One of both is granted, and remembered; the other is not.
    mine = stage.broker.table.admission.sessions[-2]
    assert mine.may(AclOperation.READ, AclResource.TOPIC, "t")
    assert 30 == _committed(client)
    rival.add(group, AclOperation.READ)
    rival.add(topic("t"), AclOperation.READ, permission=2)
    assert mine.may(AclOperation.READ, AclResource.GROUP, "g")
    assert DENIED == _committed(client)
    assert 0 == fast.taken()


def _committed(client: MemoryClient) -> int:
    of = message_class("OffsetCommitRequest")
    row = of.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    named = of.OffsetCommitRequestTopic(name="t", partitions=[row])
    response = client.ask("OffsetCommit", 8, group_id="g", topics=[named])
    code: int = response.topics[0].partitions[0].error_code
    return code
