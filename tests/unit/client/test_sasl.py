from __future__ import annotations

import pytest

from engine.client.errors import AuthenticationFailed
from engine.client.sasl import PlainConversation, ScramConversation

# RFC 7677, section 3.
NONCE = b"rOprNGfwEbeRWgbNEkqO"
FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def conversation(password: str = "pencil") -> ScramConversation:
    return ScramConversation("SCRAM-SHA-256", "user", password, NONCE)


def test_plain_is_one_message() -> None:
    plain = PlainConversation("bob", "pa,ss")
    assert b"\0bob\0pa,ss" == plain.first()
    assert plain.response_to(b"") is None


def test_scram_says_what_the_rfc_shows() -> None:
    scram = conversation()
    assert b"n,,n=user,r=" + NONCE == scram.first()
    assert (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    ) == scram.response_to(FIRST)
    assert scram.response_to(FINAL) is None


def test_scram_does_not_believe_a_server_without_the_password() -> None:
    scram = conversation("another")
    scram.response_to(FIRST)
    with pytest.raises(AuthenticationFailed, match="does not know the password"):
        scram.response_to(FINAL)


def test_names_with_commas_are_escaped() -> None:
    assert b"n=a=2Cb=3Dc," in ScramConversation("SCRAM-SHA-512", "a,b=c", "", NONCE).first()


@pytest.mark.parametrize(
    ("challenge", "reason"),
    [
        (b"e=invalid-proof", "invalid-proof"),
        (b"r=somebody-else,s=QQ==,i=4096", "nonce"),
        (b"r=" + NONCE + b",s=QQ==,i=4096", "nonce"),
        (b"r=" + NONCE + b"x,s=???,i=4096", "unreadable"),
        (b"r=" + NONCE + b"x,s=QQ==,i=many", "unreadable"),
        (b"r=" + NONCE + b"x,s=QQ==,i=1", "1 iterations"),
        (b"r=" + NONCE + b"x,s=QQ==,i=99999999999", "iterations"),
        (b"", "nonce"),
    ],
)
def test_a_bad_challenge_ends_the_conversation(challenge: bytes, reason: str) -> None:
    with pytest.raises(AuthenticationFailed, match=reason):
        conversation().response_to(challenge)
