"""A broker whose listeners have SASL: settings, users that come and go, who the client is then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.client.connection import BrokerConnection, Call
from engine.client.loop_connection import LoopConnection
from engine.client.sasl import PlainConversation
from engine.client.settings import Address
from engine.errors import ConfigError
from engine.host.promise import Promise
from engine.security.scram import ScramMechanism
from engine.wire.codec import message_codec
from engine.wire.structs import message_class
from tests.compat.sasl_conversation import (
    Conversation,
    client_first,
    first_bare,
    handshake,
    list_groups,
    proof,
    raw,
    token,
)
from tests.unit.broker.memory_broker import MemoryBroker
from tests.unit.broker.sasl_listeners import (
    PLAIN_MODULE,
    MemoryWire,
    add_user,
    salted,
    secured_broker,
)

_PRODUCE = 0
_AUTHORIZER = "kafka.security.authorizer.AclAuthorizer"
_JAAS = "listener.name.sasl.plain.sasl.jaas.config"


@pytest.fixture
def stage() -> Iterator[MemoryBroker]:
    stage = secured_broker(authorizer_class_name=_AUTHORIZER, super_users="User:alice")
    yield stage
    stage.stop()
    assert not stage.faults


def logged_in(stage: MemoryBroker, user: str, password: str) -> Conversation:
    one = Conversation(MemoryWire(stage, "SASL"))
    handshake("PLAIN")(one)
    token(f"\0{user}\0{password}".encode())(one)
    return one


def test_the_user_is_the_principal_that_rules_are_about(stage: MemoryBroker) -> None:
    for user, password, code in (("alice", "alice-pw", 0), ("bob", "bob,=pw", 31)):
        one = logged_in(stage, user, password)
        one.request("DescribeLogDirs", 3)
        one.receive("DescribeLogDirs")
        response: Any = message_codec("DescribeLogDirsResponse", 3).decode(one.last[5:])
        assert code == response.error_code
    principals = {session.principal for session in stage.broker.table.admission.sessions}
    assert {"User:alice", "User:bob"} <= principals


def test_quotas_are_those_of_the_user() -> None:
    stage = secured_broker()
    add_user(stage, "alice", {"producer_byte_rate": "1000"})
    for user, password in (("alice", "alice-pw"), ("bob", "bob,=pw")):
        logged_in(stage, user, password)
    admission, rests = stage.broker.table.admission, {}
    for session in admission.sessions:
        session.request_bytes = 1_000_000
        rests[session.principal] = admission.quotas.count_request(session, _PRODUCE, "c")
    assert rests["User:alice"] > 0
    assert rests["User:bob"] == 0
    stage.stop()


def test_a_user_can_log_in_from_when_it_is_made_until_it_is_changed(stage: MemoryBroker) -> None:
    def scram(password: str) -> str:
        one = Conversation(MemoryWire(stage, "SASL"))
        handshake("SCRAM-SHA-256")(one)
        token(client_first(b"dave"))(one)
        if not one.is_closed and " 0 " in one.lines[-1]:
            proof(password, first=first_bare(b"dave"))(one)
        return one.lines[-1]

    assert "late SaslAuthenticate 58" in scram("one")
    add_user(stage, "dave", {"SCRAM-SHA-256": salted(ScramMechanism.SCRAM_SHA_256, "one")})
    assert "soon SaslAuthenticate 0" in scram("one")
    assert "late SaslAuthenticate 58" in scram("two")


def test_passwords_show_nowhere(stage: MemoryBroker) -> None:
    one = logged_in(stage, "alice", "alice-pw")
    resource = message_class("DescribeConfigsRequest").DescribeConfigsResource
    one.request(
        "DescribeConfigs",
        4,
        resources=[resource(resource_type=4, resource_name="1", configuration_keys=None)],
    )
    one.receive("DescribeConfigs")
    assert b"plain.sasl.jaas.config" in one.last
    assert b"alice-pw" not in one.last
    assert "alice-pw" not in repr(stage.broker.listeners._authentications)


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("sasl.enabled.mechanisms", "GSSAPI", "GSSAPI is not served"),
        ("sasl.enabled.mechanisms", "", "must name a mechanism"),
        (_JAAS, "secret", "control flag not specified"),
        (_JAAS, "my.LoginModule required;", f"must be of the login module {PLAIN_MODULE}"),
        ("sasl.server.callback.handler.class", "my.Handler", "classes of Java"),
        ("listener.name.sasl.plain.sasl.login.class", "my.Login", "classes of Java"),
        ("security.inter.broker.protocol", "PLAINTEXT", "only one of"),
    ],
)
def test_what_cannot_be_gone_by_stops_the_start(name: str, text: str, rule: str) -> None:
    stage = MemoryBroker(
        listeners="PLAINTEXT://here:0,SASL://here:0",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
        inter_broker_listener_name="PLAINTEXT",
        sasl_enabled_mechanisms="PLAIN",
    )
    stage.set(_JAAS, f"{PLAIN_MODULE} required;")
    stage.set(name, text)
    with pytest.raises(ConfigError, match=rule) as refused:
        stage.start()
    assert "secret" not in str(refused.value)


def test_a_mechanism_without_users_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="must be given: SCRAM-SHA-256 is one of"):
        MemoryBroker(
            listeners="PLAINTEXT://here:0,SASL://here:0",
            listener_security_protocol_map="PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT",
            inter_broker_listener_name="PLAINTEXT",
            sasl_enabled_mechanisms="SCRAM-SHA-256",
        ).start()


def test_an_authentication_has_a_deadline_and_a_client_that_is_known_has_none() -> None:
    stage = secured_broker(connections_max_idle_ms="5000")
    slow, known = (Conversation(MemoryWire(stage, "SASL")) for _ in range(2))
    handshake("PLAIN")(known)
    token(b"\0alice\0alice-pw")(known)
    for _ in range(3):
        raw("ApiVersions", 9, b"", "ApiVersions")(slow)
        slow.wire.wait(1.5)
        list_groups(known)
    slow.wire.wait(0.6)
    slow.receive("raw")
    list_groups(known)
    assert ["soon ApiVersions 0023"] * 3 + ["soon closed"] == slow.lines
    assert "soon ListGroups 0000" == known.lines[-1]
    stage.stop()


def test_a_client_that_leaves_before_its_refusal_leaves_nothing() -> None:
    stage = secured_broker()
    refused: list[str] = []
    events = stage.broker.server.events
    stage.broker.server.events = events._replace(
        on_bad_request=lambda _peer, reason: refused.append(reason)
    )
    wire = MemoryWire(stage, "SASL")
    wire.send(b"\0\0\0\1x")
    stage.timers.run_until_idle()
    wire.close()
    stage.pass_time(1000)
    assert [] == refused
    assert 0 == stage.broker.server.client_count
    stage.stop()


def test_our_client_authenticates_again_before_its_session_ends(stage: MemoryBroker) -> None:
    loop = LoopConnection(
        stage.network,
        stage.timers,
        stage.clock,
        Address("here", stage.broker.ports["REAUTH"]),
        lambda: BrokerConnection("me", lambda: PlainConversation("alice", "alice-pw")),
        timeout_ms=30_000,
    )

    def ask() -> Promise[Any]:
        promise = loop.send(Call("ListGroups", message_class("ListGroupsRequest")()))
        stage.timers.run_until_idle()
        return promise

    for _ in range(4):
        # A session lasts three seconds.
        assert 0 == ask().result().message.error_code
        stage.pass_time(2600)
    assert 1 == sum(
        session.principal == "User:alice" for session in stage.broker.table.admission.sessions
    )
