from __future__ import annotations

import struct
from typing import Any

import pytest

from engine.client.connection import (
    AUTHENTICATING,
    NEGOTIATING,
    READY,
    BrokerConnection,
    Response,
    reauthentication_ms,
)
from engine.client.errors import (
    AuthenticationFailed,
    NoCommonVersion,
    NotKafka,
    SaslNotExpected,
    TlsExpected,
    TokenExpired,
)
from engine.client.sasl import PlainConversation
from engine.wire.codec import message_codec
from engine.wire.errors import MalformedMessage
from engine.wire.headers import api, read_request_header, response_header_bytes
from engine.wire.structs import message_class


class KnownToken(PlainConversation):
    """A login by a delegation token that the broker knows, in one message."""

    is_token = True

    def __init__(self) -> None:
        super().__init__("id", "hmac")


class Peer:
    """The broker's end, by hand."""

    def __init__(self, connection: BrokerConnection) -> None:
        self.connection = connection

    def requested(self) -> list[tuple[str, int, int, Any]]:
        found = []
        for frame in self.connection.take_output():
            (length,) = struct.unpack_from(">i", frame)
            body = bytes(frame[4:])
            assert length == len(body)
            header = read_request_header(body)
            name = api(header.api_key).name
            codec = message_codec(f"{name}Request", header.api_version)
            message = codec.decode(body[header.body_position :])
            found.append((name, header.api_version, header.correlation_id, message))
        return found

    def frame(self, name: str, version: int, correlation_id: int, **fields: Any) -> bytes:
        message = message_class(f"{name}Response")(**fields)
        body = response_header_bytes(api(name).key, version, correlation_id)
        body += message_codec(f"{name}Response", version).encode(message)
        return struct.pack(">i", len(body)) + body

    def say(self, *args: Any, **fields: Any) -> list[Response]:
        return self.connection.receive(self.frame(*args, **fields))

    def say_versions(self, version: int = 4, **ranges: tuple[int, int]) -> None:
        ((_, requested, correlation_id, _),) = self.requested()
        assert requested == version
        self.say("ApiVersions", version, correlation_id, api_keys=rows(**ranges))


def rows(**ranges: tuple[int, int]) -> list[Any]:
    row = message_class("ApiVersionsResponse").ApiVersion
    return [
        row(api_key=api(name).key, min_version=low, max_version=high)
        for name, (low, high) in ranges.items()
    ]


def opened(**ranges: tuple[int, int]) -> tuple[BrokerConnection, Peer]:
    connection = BrokerConnection("me")
    connection.on_opened()
    peer = Peer(connection)
    peer.say_versions(**({"Metadata": (0, 9), "ApiVersions": (0, 4)} | ranges))
    return connection, peer


def test_the_first_request_names_our_software() -> None:
    connection = BrokerConnection("me")
    connection.on_opened()
    ((name, version, _, message),) = Peer(connection).requested()
    assert ("ApiVersions", 4, "kctl") == (name, version, message.client_software_name)
    assert NEGOTIATING == connection.state


def test_versions_known_is_ready() -> None:
    connection, _ = opened()
    assert READY == connection.state


def test_a_broker_that_names_its_versions_is_asked_in_them() -> None:
    connection = BrokerConnection("me")
    connection.on_opened()
    peer = Peer(connection)
    ((_, _, correlation_id, _),) = peer.requested()
    peer.say("ApiVersions", 0, correlation_id, error_code=35, api_keys=rows(ApiVersions=(0, 3)))
    peer.say_versions(version=3, Metadata=(0, 5))
    assert READY == connection.state


def test_a_broker_that_names_nothing_is_asked_in_version_0() -> None:
    connection = BrokerConnection("me")
    connection.on_opened()
    peer = Peer(connection)
    ((_, _, correlation_id, _),) = peer.requested()
    peer.say("ApiVersions", 0, correlation_id, error_code=35)
    peer.say_versions(version=0, Metadata=(0, 1))
    assert 1 == connection.version_of("Metadata")


def test_the_highest_common_version_is_chosen() -> None:
    connection, _ = opened(Metadata=(2, 9), Fetch=(4, 99))
    assert 9 == connection.version_of("Metadata")
    assert 17 == connection.version_of("Fetch")
    assert 12 == connection.version_of("Fetch", 4, 12)


@pytest.mark.parametrize(("lowest", "highest"), [(10, None), (0, 1)])
def test_no_common_version_is_an_error_with_both_ranges(lowest: int, highest: int | None) -> None:
    connection, _ = opened(Metadata=(2, 9))
    with pytest.raises(NoCommonVersion, match="versions 2 to 9"):
        connection.version_of("Metadata", lowest, highest)


def test_an_api_that_is_not_offered_has_no_version() -> None:
    connection, _ = opened()
    with pytest.raises(NoCommonVersion, match="has none"):
        connection.version_of("DescribeCluster")


def test_requests_are_pipelined_and_answers_matched_in_order() -> None:
    connection, peer = opened()
    request = message_class("MetadataRequest")
    connection.send("Metadata", request(topics=[]), version=9, token="a")
    connection.send("Metadata", lambda version: request(topics=[]), version=5, token="b")
    (_, _, first, _), (_, _, second, _) = peer.requested()
    assert 2 == connection.in_flight_count
    replies = connection.receive(
        peer.frame("Metadata", 9, first, cluster_id="one")
        + peer.frame("Metadata", 5, second, cluster_id="two")
    )
    assert [("a", 9, "one"), ("b", 5, "two")] == [
        (r.token, r.version, r.message.cluster_id) for r in replies
    ]


def test_answers_may_come_byte_by_byte() -> None:
    connection, peer = opened()
    connection.send("Metadata", message_class("MetadataRequest")(), version=9, token="a")
    ((_, _, correlation_id, _),) = peer.requested()
    frame = peer.frame("Metadata", 9, correlation_id)
    replies = [connection.receive(frame[i : i + 1]) for i in range(len(frame))]
    assert [0] * (len(frame) - 1) + [1] == [len(found) for found in replies]


def test_each_request_has_a_correlation_id_of_its_own() -> None:
    connection, peer = opened()
    for token in ("a", "b", "c"):
        connection.send("Metadata", message_class("MetadataRequest")(), version=9, token=token)
    ids = [correlation_id for _, _, correlation_id, _ in peer.requested()]
    assert [ids[0], ids[0] + 1, ids[0] + 2] == ids


def test_another_correlation_id_ends_the_connection() -> None:
    connection, peer = opened()
    connection.send("Metadata", message_class("MetadataRequest")(), version=9, token="a")
    with pytest.raises(NotKafka, match="correlation id"):
        peer.say("Metadata", 9, 77)


def test_an_answer_that_nobody_requested_ends_the_connection() -> None:
    _, peer = opened()
    with pytest.raises(NotKafka, match="nothing was asked"):
        peer.say("Metadata", 9, 1)


@pytest.mark.parametrize(
    "data",
    [b"HTTP/1.1 400 Bad Request", b"\xff\xff\xff\xff", bytes(4)],
)
def test_another_protocol_is_recognised_by_its_first_bytes(data: bytes) -> None:
    connection = BrokerConnection("me")
    connection.on_opened()
    with pytest.raises(NotKafka, match="length of an answer") as refused:
        connection.receive(data)
    assert data[:16] == refused.value.got


@pytest.mark.parametrize("data", [b"\x15\x03\x03\x00\x02\x02\x46", b"\x16\x03\x01\x00\x02"])
def test_an_answer_in_tls_is_called_that(data: bytes) -> None:
    connection = BrokerConnection("me")
    connection.on_opened()
    with pytest.raises(TlsExpected, match="the listener speaks TLS"):
        connection.receive(data)


def test_a_broken_answer_is_malformed() -> None:
    connection = BrokerConnection("me")
    connection.on_opened()
    with pytest.raises(MalformedMessage):
        connection.receive(struct.pack(">iihi", 10, 0, 0, 1 << 30))


def test_a_request_without_a_reply_is_not_waited_for() -> None:
    connection, peer = opened(Produce=(3, 9))
    request = message_class("ProduceRequest")(transactional_id=None, acks=0)
    connection.send("Produce", request, version=9, token="a", has_response=False)
    assert 0 == connection.in_flight_count
    assert "Produce" == peer.requested()[0][0]


class TestSasl:
    def start(self) -> tuple[BrokerConnection, Peer]:
        connection = BrokerConnection("me", lambda: PlainConversation("bob", "secret"))
        connection.on_opened()
        peer = Peer(connection)
        peer.say_versions(SaslHandshake=(0, 1), SaslAuthenticate=(0, 2))
        assert AUTHENTICATING == connection.state
        return connection, peer

    def test_handshake_then_token_then_ready(self) -> None:
        connection, peer = self.start()
        ((name, version, correlation_id, message),) = peer.requested()
        assert ("SaslHandshake", 1, "PLAIN") == (name, version, message.mechanism)
        peer.say("SaslHandshake", 1, correlation_id, mechanisms=["PLAIN"])
        ((name, version, correlation_id, message),) = peer.requested()
        assert ("SaslAuthenticate", b"\0bob\0secret") == (name, message.auth_bytes)
        peer.say("SaslAuthenticate", 2, correlation_id)
        assert READY == connection.state

    def test_a_session_that_ends_is_renewed_behind_what_is_in_flight(self) -> None:
        connection, peer = self.start()
        ((_, _, correlation_id, _),) = peer.requested()
        peer.say("SaslHandshake", 1, correlation_id, mechanisms=["PLAIN"])
        ((_, _, correlation_id, _),) = peer.requested()
        peer.say("SaslAuthenticate", 2, correlation_id, session_lifetime_ms=1000)
        assert 1000 == connection.session_lifetime_ms
        assert 850 == reauthentication_ms(0, 1000)
        connection.authenticate()
        assert AUTHENTICATING == connection.state
        ((name, version, correlation_id, _),) = peer.requested()
        assert ("SaslHandshake", 1) == (name, version)
        peer.say("SaslHandshake", 1, correlation_id, mechanisms=["PLAIN"])
        ((_, _, correlation_id, _),) = peer.requested()
        peer.say("SaslAuthenticate", 2, correlation_id, session_lifetime_ms=2000)
        assert (READY, 2000) == (connection.state, connection.session_lifetime_ms)

    def test_a_mechanism_that_is_not_offered_names_those_that_are(self) -> None:
        _, peer = self.start()
        ((_, _, correlation_id, _),) = peer.requested()
        with pytest.raises(AuthenticationFailed, match="offers GSSAPI, SCRAM-SHA-256"):
            peer.say(
                "SaslHandshake",
                1,
                correlation_id,
                error_code=33,
                mechanisms=["GSSAPI", "SCRAM-SHA-256"],
            )

    def test_a_listener_that_asks_nobody_is_called_that(self) -> None:
        _, peer = self.start()
        ((_, _, correlation_id, _),) = peer.requested()
        with pytest.raises(SaslNotExpected, match="the listener does not use SASL"):
            peer.say("SaslHandshake", 1, correlation_id, error_code=34)

    @pytest.mark.parametrize(
        ("version", "lifetime_ms", "is_expired"), [(2, 0, True), (2, 1, False), (0, 0, False)]
    )
    def test_a_delegation_token_whose_session_is_over_at_once_has_expired(
        self, version: int, lifetime_ms: int, *, is_expired: bool
    ) -> None:
        connection = BrokerConnection("me", KnownToken)
        connection.on_opened()
        peer = Peer(connection)
        peer.say_versions(SaslHandshake=(0, 1), SaslAuthenticate=(0, version))
        for name, asked in (("SaslHandshake", 1), ("SaslAuthenticate", version)):
            ((_, _, correlation_id, _),) = peer.requested()
            fields = {"session_lifetime_ms": lifetime_ms} if name == "SaslAuthenticate" else {}
            if is_expired and fields:
                with pytest.raises(TokenExpired, match="the delegation token has expired"):
                    peer.say(name, asked, correlation_id, **fields)
            else:
                peer.say(name, asked, correlation_id, **fields)
        assert is_expired == (READY != connection.state)

    def test_a_wrong_password_is_reported_in_the_brokers_words(self) -> None:
        _, peer = self.start()
        ((_, _, correlation_id, _),) = peer.requested()
        peer.say("SaslHandshake", 1, correlation_id)
        ((_, _, correlation_id, _),) = peer.requested()
        with pytest.raises(AuthenticationFailed, match="Invalid username"):
            peer.say(
                "SaslAuthenticate",
                2,
                correlation_id,
                error_code=58,
                error_message="Invalid username",
            )
