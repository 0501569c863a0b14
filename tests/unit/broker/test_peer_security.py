"""Brokers reach each other by a listener with SASL."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.broker.own_oauth import LOGIN_HANDLER, LOGIN_HANDLERS
from engine.client.oauth_login import unsecured_access_token
from engine.errors import ConfigError
from tests.unit.broker.memory_broker import MemoryBroker
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.broker.sasl_listeners import PLAIN_MODULE

#: When a cluster in memory begins.
_BEGIN_MS = 1_700_000_000_000
_OAUTH = "org.apache.kafka.common.security.oauthbearer"
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


def by_tokens(options: str, **more: str) -> dict[str, str]:
    """Return settings of brokers that log in to each other by access tokens."""
    key = "listener.name.between.oauthbearer.sasl.jaas.config"
    settings = between("a=b", sasl_enabled_mechanisms="OAUTHBEARER", **more)
    del settings[_JAAS]
    return settings | {
        "sasl_mechanism_inter_broker_protocol": "OAUTHBEARER",
        key: f"{_OAUTH}.OAuthBearerLoginModule required {options};",
    }


def test_brokers_replicate_as_the_subject_of_their_unsecured_token() -> None:
    cluster = MemoryCluster(
        is_one_process=False, **by_tokens('unsecuredLoginStringClaim_sub="admin"')
    )
    cluster.create_topic(min_insync_replicas="2")
    assert 0 == cluster.produce(1, 5).code()
    cluster.pass_time(1000)
    assert {1: (5, 5), 2: (5, 5), 3: (5, 5)} == cluster.ends()
    principals = {session.principal for session in cluster.brokers[1].table.admission.sessions}
    assert "User:admin" in principals


def test_brokers_log_in_by_the_token_of_a_file(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(unsecured_access_token("admin", _BEGIN_MS))
    handler = {"listener.name.between.oauthbearer." + LOGIN_HANDLER: LOGIN_HANDLERS[0]}
    url = {"sasl_oauthbearer_token_endpoint_url": token.as_uri()}
    cluster = MemoryCluster(is_one_process=False, **by_tokens("", **handler, **url))
    cluster.create_topic(min_insync_replicas="3")
    assert 0 == cluster.produce(1, 5).code()
    cluster.pass_time(1000)
    assert {1: (5, 5), 2: (5, 5), 3: (5, 5)} == cluster.ends()


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
        (by_tokens(""), "must have unsecuredLoginStringClaim_sub"),
        (
            by_tokens('unsecuredLoginStringClaim_sub="a" unsecuredLoginLifetimeSeconds="9"'),
            "must not have unsecuredLoginLifetimeSeconds",
        ),
        (
            by_tokens(
                "",
                sasl_login_callback_handler_class=LOGIN_HANDLERS[0],
                sasl_oauthbearer_token_endpoint_url="https://issuer/token",
            ),
            "must name a file",
        ),
    ],
)
def test_a_broker_that_could_reach_nobody_does_not_start(
    settings: dict[str, str], rule: str
) -> None:
    with pytest.raises(ConfigError, match=rule):
        MemoryBroker(**settings).start()
