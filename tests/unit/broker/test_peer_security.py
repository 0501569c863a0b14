"""Brokers reach each other by a listener with SASL."""

from __future__ import annotations

import pytest

from engine.errors import ConfigError
from tests.unit.broker.memory_broker import MemoryBroker
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.broker.sasl_listeners import PLAIN_MODULE

_JAAS = "listener.name.between.plain.sasl.jaas.config"


def between(options: str, **more: str) -> dict[str, str]:
    return {
        "listeners": "PLAINTEXT://here:0,BETWEEN://here:0",
        "listener_security_protocol_map": "PLAINTEXT:PLAINTEXT,BETWEEN:SASL_PLAINTEXT",
        "inter_broker_listener_name": "BETWEEN",
        "sasl_enabled_mechanisms": "PLAIN",
        "sasl_mechanism_inter_broker_protocol": "PLAIN",
        "authorizer_class_name": "kafka.security.authorizer.AclAuthorizer",
        # Clients are nobody here.
        "super_users": "User:admin;User:ANONYMOUS",
        _JAAS: f"{PLAIN_MODULE} required {options};",
        **more,
    }


def test_brokers_replicate_as_the_user_that_they_are() -> None:
    cluster = MemoryCluster(
        is_one_process=False,
        **between('username="admin" password="secret" user_admin="secret"'),
    )
    cluster.create_topic(min_insync_replicas="2")
    assert 0 == cluster.produce(1, 5).code()
    cluster.pass_time(1000)
    assert {1: (5, 5), 2: (5, 5), 3: (5, 5)} == cluster.ends()
    principals = {session.principal for session in cluster.brokers[1].table.admission.sessions}
    assert "User:admin" in principals


def test_brokers_authenticate_again_while_they_replicate() -> None:
    options = 'username="admin" password="secret" user_admin="secret"'
    reauthenticates = {"connections_max_reauth_ms": "2000"}
    cluster = MemoryCluster(is_one_process=False, **between(options, **reauthenticates))
    cluster.create_topic(min_insync_replicas="3")
    refused: list[str] = []
    for broker in cluster.brokers.values():
        events = broker.server.events
        broker.server.events = events._replace(
            on_bad_request=lambda _peer, reason: refused.append(reason)
        )
    for _ in range(5):
        assert 0 == cluster.produce(1, 1).code()
        cluster.pass_time(1500)
    assert {1: (5, 5), 2: (5, 5), 3: (5, 5)} == cluster.ends()
    assert [] == refused


def test_a_broker_of_another_password_reaches_nobody() -> None:
    cluster = MemoryCluster(
        is_one_process=False,
        **between('username="admin" password="own{id}" user_admin="own1"'),
    )
    cluster.create_topic()
    cluster.produce(1, 5)
    cluster.pass_time(1000)
    assert {1: (5, 0), 2: (0, 0), 3: (0, 0)} == cluster.ends()


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        (between('user_admin="x"'), "must have username and password"),
        (
            between("a=b", sasl_mechanism_inter_broker_protocol="SCRAM-SHA-256"),
            "must be included in sasl.enabled.mechanisms",
        ),
    ],
)
def test_a_broker_that_could_reach_nobody_does_not_start(
    settings: dict[str, str], rule: str
) -> None:
    with pytest.raises(ConfigError, match=rule):
        MemoryBroker(**settings).start()
