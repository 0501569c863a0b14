"""DIGEST-MD5: the example of its RFC, what Java computes, and what neither side takes."""

from __future__ import annotations

import pytest

from engine.security.digest_md5 import (
    DigestLogin,
    DigestRefused,
    answer_challenge,
    challenge_of,
    check_answer,
)

_URI = "zookeeper/zk-sasl-md5"
_REALM = "zk-sasl-md5"
_USERS = {"kafka": "secret", 'a"b\\c': 'p"w\\', "zoë": "pässword", "日本": "密码"}


def test_the_example_of_the_rfc() -> None:
    challenge = (
        b'realm="elwood.innosoft.com",nonce="OA6MG9tEQGm2hh",qop="auth",'
        b"algorithm=md5-sess,charset=utf-8"
    )
    login = DigestLogin("chris", "secret", "imap/elwood.innosoft.com")
    answer = answer_challenge(challenge, login, "OA6MHXh6VqTrRk")
    assert b"response=d388dad90d4bbd760a152321f2143af7" in answer.message
    assert answer.rspauth == b"rspauth=ea40f60335c427b5527b84dbabcdfffd"


@pytest.mark.parametrize("username", _USERS)
def test_a_server_knows_its_users_and_shows_it(username: str) -> None:
    login = DigestLogin(username, _USERS[username], _URI)
    answer = answer_challenge(challenge_of(_REALM, "n0nce"), login, "c")
    assert (username, answer.rspauth) == check_answer(answer.message, _USERS, _REALM, "n0nce", _URI)


@pytest.mark.parametrize(
    ("username", "password", "nonce", "uri"),
    [
        ("kafka", "wrong", "n", _URI),
        ("kafka", "", "n", _URI),
        ("nobody", "secret", "n", _URI),
        # Nobody's password is not the empty one.
        ("nobody", "", "n", _URI),
        ("kafka", "secret", "of another connection", _URI),
        ("kafka", "secret", "n", "kafka/zk-sasl-md5"),
    ],
)
def test_a_wrong_response_is_refused(username: str, password: str, nonce: str, uri: str) -> None:
    login = DigestLogin(username, password, uri)
    answer = answer_challenge(challenge_of(_REALM, nonce), login, "c")
    with pytest.raises(DigestRefused) as refused:
        check_answer(answer.message, _USERS, _REALM, "n", _URI)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"\xff",
        b"nonce",
        b'nonce="n"',
        b'nonce="",algorithm=md5-sess',
        b'nonce="n",nonce="m",algorithm=md5-sess',
        b'nonce="n",algorithm=md5-sess,qop="auth-int"',
    ],
)
def test_a_challenge_of_something_else_is_refused(challenge: bytes) -> None:
    with pytest.raises(DigestRefused):
        answer_challenge(challenge, DigestLogin("kafka", "secret", _URI), "c")


@pytest.mark.parametrize("message", [b"", b"\xff", b"x", b'username="kafka"', b"a=b,a=b"])
def test_a_response_of_something_else_is_refused(message: bytes) -> None:
    with pytest.raises(DigestRefused):
        check_answer(message, _USERS, _REALM, "n", _URI)


def test_no_password_shows_in_a_repr() -> None:
    assert "secret" not in repr(DigestLogin("kafka", "secret", _URI))
