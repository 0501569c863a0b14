"""The server's side of mechanisms; `test_sasl_handshakes.py` compares it with Kafka's."""

from __future__ import annotations

import hashlib
import re
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.client.errors import AuthenticationFailed
from engine.client.sasl import ScramConversation
from engine.security import sasl
from engine.security.oauth_sasl import OAuthBearerServer
from engine.security.oauth_tokens import AccessToken, TokenRefused
from engine.security.sasl import (
    CredentialsWrong,
    PlainServer,
    SaslFailed,
    ScramServer,
    nonce_of,
)
from engine.security.scram import (
    SaltedPassword,
    ScramCredential,
    ScramMechanism,
    credential_text,
    may_log_in,
    parse_credential,
)

_SALT = b"salt" * 5


def _credential(mechanism: ScramMechanism, password: str, count: int = 4096) -> ScramCredential:
    raw = hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), _SALT, count)
    credential = parse_credential(credential_text(mechanism, SaltedPassword(_SALT, raw, count)))
    assert credential is not None
    return credential


@pytest.mark.parametrize("mechanism", ScramMechanism)
@given(user=st.text(st.characters(max_codepoint=127, exclude_characters="\0"), min_size=1))
def test_our_client_and_our_server_believe_each_other(mechanism: ScramMechanism, user: str) -> None:
    credential = _CREDENTIALS[mechanism]
    server = ScramServer(mechanism, {user: credential}.get, "nonce")
    client = ScramConversation(mechanism.key, user, "secret", b"abc")
    final = client.response_to(server.response_to(client.first()))
    assert final is not None
    assert server.user is None
    assert client.response_to(server.response_to(final)) is None
    assert user == server.user


class _NonceTwice(ScramConversation):
    """The client of librdkafka before 2.6.1: its own nonce stands before both nonces."""

    def _fields(self, message: bytes) -> dict[bytes, bytes]:
        fields = super()._fields(message)
        return fields | {b"r": b"abc" + fields[b"r"]} if b"r" in fields else fields


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_a_nonce_may_end_with_that_of_both_as_kafkas_may(mechanism: ScramMechanism) -> None:
    server = ScramServer(mechanism, {"carol": _CREDENTIALS[mechanism]}.get, "nonce")
    client = _NonceTwice(mechanism.key, "carol", "secret", b"abc")
    final = client.response_to(server.response_to(client.first()))
    assert final is not None
    assert b"r=abcabcnonce," in final
    assert client.response_to(server.response_to(final)) is None
    assert server.user == "carol"


@pytest.mark.parametrize("nonce", ["abc", "nonce", "abcnonceX", "xbcnonce"])
def test_another_nonce_is_refused(nonce: str) -> None:
    mechanism = ScramMechanism.SCRAM_SHA_256
    server = ScramServer(mechanism, {"carol": _CREDENTIALS[mechanism]}.get, "nonce")
    server.response_to(b"n,,n=carol,r=abc")
    with pytest.raises(CredentialsWrong, match="Invalid client nonce"):
        server.response_to(f"c=biws,r={nonce},p=AAAA".encode())


_CREDENTIALS = {mechanism: _credential(mechanism, "secret") for mechanism in ScramMechanism}


def test_neither_believes_another_password() -> None:
    mechanism = ScramMechanism.SCRAM_SHA_256
    server = ScramServer(mechanism, lambda _user: _CREDENTIALS[mechanism], "nonce")
    client = ScramConversation(mechanism.key, "carol", "wrong", b"abc")
    final = client.response_to(server.response_to(client.first()))
    assert final is not None
    with pytest.raises(CredentialsWrong):
        server.response_to(final)
    assert server.user is None
    with pytest.raises(AuthenticationFailed):
        client.response_to(b"v=AAAA")


def test_a_credential_of_too_few_iterations_is_refused() -> None:
    mechanism = ScramMechanism.SCRAM_SHA_256
    credential = _credential(mechanism, "secret", 4095)
    server = ScramServer(mechanism, lambda _user: credential, "nonce")
    with pytest.raises(CredentialsWrong, match="4095"):
        server.response_to(b"n,,n=carol,r=abc")


def test_plain_believes_the_right_password_alone() -> None:
    server = PlainServer({"alice": "secret"}.get)
    assert b"" == server.response_to(b"\0alice\0secret")
    assert "alice" == server.user
    for token in (b"\0alice\0secret2", b"\0bob\0secret"):
        with pytest.raises(SaslFailed, match="Invalid username or password"):
            PlainServer({"alice": "secret"}.get).response_to(token)


@pytest.mark.parametrize(
    "token",
    [
        b"n,,n=" + b"a" * 500_000,
        b"n,a=" + b"a" * 500_000 + b",",
        b"n,,n=" + b"=2C" * 150_000 + b"!",
        b"n,,n=alice,r=nonce" + b",x=y" * 120_000 + b",",
    ],
    ids=["name", "authorization id", "escapes", "extensions"],
)
def test_long_names_take_little_more_memory_than_their_bytes(token: bytes) -> None:
    server = ScramServer(ScramMechanism.SCRAM_SHA_256, lambda _user: None, "nonce")
    assert _peak_bytes(lambda: server.response_to(token)) < 4 * len(token)


@pytest.mark.parametrize(
    "rest",
    [b",x=y" * 100_000 + b",p=AAA", b",p=" + b"A" * 400_000 + b"!", b",p=AAAA" * 60_000 + b","],
    ids=["extensions", "proof", "proofs"],
)
def test_long_last_messages_take_little_more_memory_than_their_bytes(rest: bytes) -> None:
    credential = _credential(ScramMechanism.SCRAM_SHA_256, "pw")
    server = ScramServer(ScramMechanism.SCRAM_SHA_256, lambda _user: credential, "nonce")
    server.response_to(b"n,,n=alice,r=mine")
    token = b"c=biws,r=minenonce" + rest
    assert _peak_bytes(lambda: server.response_to(token)) < 4 * len(token)


#: The patterns of Kafka's ScramMessages, whose ways back cost memory.
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_OF_KAFKA = {
    "first": re.compile(
        rf"n,(a={_NAME})?,(m={_VALUE},)?n=(?P<name>{_NAME}),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
        rf"(?P<extensions>(,[A-Za-z]+={_VALUE})*)"
    ),
    "final": re.compile(
        rf"c=(?P<channel>{_BASE64}),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(,[A-Za-z]+={_VALUE})*,"
        rf"p=(?P<proof>{_BASE64})"
    ),
}
_PIECES = ["n,", "a=", ",", "m=", "n=", "r=", "c=", "p=", "x=", "=2C", "=3D", "=", "A", "AAAA", "é"]


@pytest.mark.parametrize("kind", ["first", "final"])
@given(pieces=st.lists(st.sampled_from(_PIECES), max_size=14), is_begun=st.booleans())
def test_messages_are_read_as_by_kafkas_patterns(
    kind: str, pieces: list[str], *, is_begun: bool
) -> None:
    head = {"first": "n,,n=A,r=A", "final": "c=AAAA,r=A"}[kind] if is_begun else ""
    text = head + "".join(pieces)
    ours = {"first": sasl._CLIENT_FIRST, "final": sasl._CLIENT_FINAL}[kind].fullmatch(text)
    kafkas = _OF_KAFKA[kind].fullmatch(text)
    assert (kafkas is None) is (ours is None)
    if kafkas is not None and ours is not None:
        assert kafkas.groupdict() == {name: ours[name] for name in kafkas.groupdict()}


@given(st.text(st.characters(max_codepoint=0x200), min_size=1))
def test_who_may_log_in_has_a_name_that_logins_have(name: str) -> None:
    sent = name.replace("=", "=3D").replace(",", "=2C")
    read = sasl._CLIENT_FIRST.fullmatch(f"n,,n={sent},r=A")
    assert may_log_in(name) is (read is not None)


@pytest.mark.parametrize(
    "token",
    [
        b"n,a=" + b"a" * 500_000 + b",",
        b"n,,\x01" + b"a=b\x01" * 120_000 + b"x",
        b"n,,\x01auth=" + b"a" * 500_000 + b"!\x01\x01",
    ],
    ids=["authorization id", "pairs", "token"],
)
def test_long_messages_of_oauthbearer_take_little_memory(token: bytes) -> None:
    def refuse(_text: str) -> AccessToken:
        raise TokenRefused("none is right")

    server = OAuthBearerServer(refuse, lambda: 0)
    assert _peak_bytes(lambda: server.response_to(token)) < 4 * len(token)


def _peak_bytes(run: Callable[[], object]) -> int:
    """Return the most memory that a refused message took while it was read."""
    tracemalloc.start()
    try:
        with pytest.raises(CredentialsWrong):
            run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_nonces_are_130_bits_in_letters_and_digits() -> None:
    assert "0" == nonce_of(bytes(17))
    assert "10" == nonce_of(bytes(16) + b"\x24")
    assert 26 == len(nonce_of(b"\xff" * 17))
