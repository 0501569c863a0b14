"""Credentials of users, as their settings change."""

from __future__ import annotations

from engine.security.credentials import ScramCredentials
from engine.security.scram import SaltedPassword, ScramMechanism, credential_text

_SHA_256, _SHA_512 = ScramMechanism
_TEXT = credential_text(_SHA_256, SaltedPassword(b"salt", b"p" * 32, 4096))


def test_a_credential_holds_until_it_is_not_set_any_more() -> None:
    credentials = ScramCredentials()
    assert [] == credentials.update("carol", {"SCRAM-SHA-256": _TEXT, "producer_byte_rate": "1"})
    found = credentials.of("carol", _SHA_256)
    assert found is not None
    assert (b"salt", 4096) == (found.salt, found.iterations)
    assert credentials.of("carol", _SHA_512) is None
    credentials.update("carol", {})
    assert credentials.of("carol", _SHA_256) is None


def test_users_that_are_gone_are_forgotten() -> None:
    credentials = ScramCredentials()
    for user in ("a", "b"):
        credentials.update(user, {"SCRAM-SHA-256": _TEXT})
    credentials.keep(["b", "c"])
    assert credentials.of("a", _SHA_256) is None
    assert credentials.of("b", _SHA_256) is not None


def test_a_text_that_is_no_credential_lets_nobody_in() -> None:
    credentials = ScramCredentials()
    credentials.update("carol", {"SCRAM-SHA-256": _TEXT})
    for text in ("x", _TEXT.replace("salt=", "salt=?")):
        assert [_SHA_256] == credentials.update("carol", {"SCRAM-SHA-256": text})
        assert credentials.of("carol", _SHA_256) is None


def test_no_key_shows_in_a_repr() -> None:
    credentials = ScramCredentials()
    credentials.update("carol", {"SCRAM-SHA-256": _TEXT})
    assert "ScramCredential(4096 iterations)" == repr(credentials.of("carol", _SHA_256))
