"""An authorizer logs who tried what, in Kafka's words and levels."""

from __future__ import annotations

import logging

import pytest

from engine.api.acl_authorizer import AclAuthorizer
from engine.api.admission import Admission, Audit, NoQuotas, Session
from engine.security.acl_cache import AclCache
from engine.security.acls import (
    AccessEntry,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    PatternType,
)
from engine.wire.headers import api

LOGGER = "kafka.authorizer.logger"
TOPIC = AclResource.TOPIC
READ, DESCRIBE = AclOperation.READ, AclOperation.DESCRIBE
INFO, DEBUG, TRACE = logging.INFO, logging.DEBUG, 5


def session() -> Session:
    cache = AclCache()
    entry = AccessEntry("User:bob", "*", READ, AclPermission.ALLOW)
    cache.set(AclPattern(TOPIC, "b", PatternType.PREFIXED), [entry])
    admission = Admission(AclAuthorizer(cache, frozenset(), allows_without_rules=False), NoQuotas())
    made = Session("10.0.0.9:5", admission)
    made.authenticate("User:bob")
    made.api_key = api("Fetch").key
    return made


def logged(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    found = [(record.levelno, record.getMessage()) for record in caplog.records]
    caplog.clear()
    return found


def test_denials_are_at_info_and_grants_with_their_rule_at_debug(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(DEBUG, LOGGER)
    client = session()
    assert not client.may(READ, TOPIC, "t", Audit(3))
    assert client.may(DESCRIBE, TOPIC, "b1")
    pattern = "ResourcePattern(resourceType=TOPIC, name={}, patternType=LITERAL)"
    who = "Principal = User:bob is {} Operation = {} from host = 10.0.0.9 on resource = Topic"
    expected = [
        (DEBUG, f"No acl found for resource {pattern.format('t')}, authorized = false"),
        (
            INFO,
            f"{who.format('Denied', 'Read')}:LITERAL:t for request = Fetch with "
            "resourceRefCount = 3",
        ),
        (
            DEBUG,
            f"operation = READ on resource = {pattern.format('b1')} from host = 10.0.0.9 is ALLOW "
            "based on acl = User:bob has ALLOW permission for operations: READ from hosts: *",
        ),
        (
            DEBUG,
            f"{who.format('Allowed', 'Describe')}:LITERAL:b1 for request = Fetch with "
            "resourceRefCount = 1",
        ),
    ]
    assert expected == logged(caplog)


def test_denials_alone_are_logged_by_default(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(INFO, LOGGER)
    client = session()
    client.may(DESCRIBE, TOPIC, "b1")
    client.may(READ, TOPIC, "t")
    assert [INFO] == [level for level, _ in logged(caplog)]


def test_operations_that_are_only_listed_are_logged_at_trace(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(TRACE, LOGGER)
    client = session()
    client.operations_on(TOPIC, "t", 1 << READ)
    assert ["x"] == client.topics_not_creatable(["x"])
    found = [(level, text) for level, text in logged(caplog) if text.startswith("Principal")]
    assert [TRACE, TRACE, INFO] == [level for level, _ in found]


def test_a_controller_that_is_denied_is_known_by_its_principal() -> None:
    client = session()
    authorizer = client.admission.authorizer
    assert isinstance(authorizer, AclAuthorizer)
    client.may(AclOperation.CLUSTER_ACTION, AclResource.CLUSTER, "kafka-cluster")
    assert authorizer.refused_controller is None
    client.api_key = api("UpdateMetadata").key
    client.may(AclOperation.CLUSTER_ACTION, AclResource.CLUSTER, "kafka-cluster")
    assert "User:bob" == authorizer.refused_controller


def test_any_resource_of_a_kind_has_no_name(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(INFO, LOGGER)
    client = session()
    assert not client.admission.authorizer.may_to_some(client, AclOperation.WRITE, TOPIC)
    ((level, text),) = logged(caplog)
    assert INFO == level
    assert "on resource = Topic:UNKNOWN:NONE for request = Fetch with resourceRefCount = 0" in text
