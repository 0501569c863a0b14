"""Who sees a delegation token, and who may change it."""

from __future__ import annotations

import pytest

from engine.security.delegation_tokens import DelegationToken, TokenCache, is_shown
from engine.security.scram import ScramMechanism

TOKEN = DelegationToken("id", "User:owner", "User:requester", ("User:renewer",), 1, 10, 20)


@pytest.mark.parametrize(
    ("principal", "may_change", "concerns"),
    [
        ("User:owner", True, True),
        ("User:renewer", True, True),
        ("User:requester", False, True),
        ("User:other", False, False),
    ],
)
def test_a_token_concerns_four_and_is_changed_by_two(
    principal: str, may_change: bool, concerns: bool
) -> None:
    assert (may_change, concerns) == (TOKEN.may_be_changed_by(principal), TOKEN.concerns(principal))


@pytest.mark.parametrize(
    ("principal", "owners", "may_describe", "expected"),
    [
        ("User:owner", None, False, True),
        ("User:owner", [], True, False),
        ("User:owner", ["User:owner"], False, True),
        ("User:owner", ["User:other"], True, False),
        ("User:owner", ["User:other", "User:renewer"], False, True),
        ("User:other", None, False, False),
        ("User:other", None, True, True),
        ("User:other", ["User:owner"], False, False),
        ("User:other", ["User:owner"], True, True),
    ],
)
def test_a_token_is_shown_to_whom_it_concerns_and_who_may_describe(
    principal: str, owners: list[str] | None, may_describe: bool, expected: bool
) -> None:
    assert expected == is_shown(TOKEN, principal, owners, lambda _token: may_describe)


@pytest.mark.parametrize(
    ("expires_ms", "max_ms", "is_expired"),
    [(10, 20, False), (9, 20, True), (20, 10, False), (20, 9, True)],
)
def test_a_token_holds_up_to_its_times_inclusive(
    expires_ms: int, max_ms: int, is_expired: bool
) -> None:
    assert is_expired == TOKEN._replace(expires_ms=expires_ms, max_ms=max_ms).is_expired(10)


def test_a_cache_knows_tokens_by_id_and_hmac_until_they_are_gone() -> None:
    cache = TokenCache("secret", lambda: b"salt")
    tokens = [TOKEN._replace(token_id=name, issued_ms=n) for n, name in enumerate("cba")]
    for token in reversed(tokens):
        cache.put(token)
    assert tokens == cache.tokens
    hmac = cache.hmac_of("b")
    assert tokens[1] == cache.by_hmac(hmac)
    assert cache.by_hmac(b"x") is None
    credential = cache.credential("b", ScramMechanism.SCRAM_SHA_256)
    assert credential is cache.credential("b", ScramMechanism.SCRAM_SHA_256)
    assert credential != cache.credential("b", ScramMechanism.SCRAM_SHA_512)
    cache.keep(["a", "c"])
    assert [None, None] == [cache.of("b"), cache.by_hmac(hmac)]
    assert ["c", "a"] == [token.token_id for token in cache.tokens]
    assert credential is not cache.credential("b", ScramMechanism.SCRAM_SHA_256)
