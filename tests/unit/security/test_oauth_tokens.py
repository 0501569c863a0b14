"""Access tokens are believed and refused as a broker of 3.9.1 did."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from functools import cache
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from engine.security.oauth_sasl import OAuthBearerServer
from engine.security.oauth_tokens import (
    SignedRules,
    TokenRefused,
    UnsecuredRules,
    key_id,
    parse_jwks_keys,
    validate_signed_token,
    validate_unsecured_token,
)
from engine.security.sasl import CredentialsWrong, SaslFailed, TokenBroken

NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS // 1000
CLAIMS = {
    "sub": "alice",
    "iat": NOW_S,
    "exp": NOW_S + 3600,
    "aud": "kafka",
    "iss": "https://me",
    "scope": "a b",
}
RULES = SignedRules(("kafka", "other"), "https://me")


@cache
def key(number: int) -> ec.EllipticCurvePrivateKey:
    del number
    return ec.generate_private_key(ec.SECP256R1())


@cache
def keys() -> tuple[dict[str, Any], ...]:
    public = json.loads(
        jwt.algorithms.ECAlgorithm(jwt.algorithms.ECAlgorithm.SHA256).to_jwk(key(0).public_key())
    )  # type: ignore[arg-type]
    return ({"kty": "oct", "k": "AAAA", "kid": "e1"}, {**public, "kid": "e1", "use": "sig"})


def signed(*, kid: str | None = "e1", by: int = 0, without: str = "", **claims: Any) -> str:
    content = {name: value for name, value in (CLAIMS | claims).items() if name != without}
    headers = {} if kid is None else {"kid": kid}
    return jwt.encode(content, key(by), algorithm="ES256", headers=headers)


def unsecured(alg: str = "none", signature: str = "", without: str = "", **claims: Any) -> str:
    content = {name: value for name, value in (CLAIMS | claims).items() if name != without}
    parts = (
        urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": alg}, content)
    )
    return f"{'.'.join(parts)}.{signature}"


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"kid": None},
        {"aud": ["x", "kafka"]},
        {"iat": NOW_S + 1000, "exp": NOW_S + 5000},
        {"without": "scope"},
        {"scope": ["a"]},
        {"iat": NOW_S - 100, "exp": NOW_S - 29},
    ],
)
def test_a_signed_token_is_its_subject(changed: dict[str, Any]) -> None:
    token = validate_signed_token(signed(**changed), keys(), RULES, NOW_MS)
    expires_s = changed.get("exp", CLAIMS["exp"])
    assert ("alice", expires_s * 1000) == token


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"kid": "zz"}, "no key"),
        ({"by": 1}, "no key"),
        ({"iat": NOW_S - 100, "exp": NOW_S - 30}, "expired"),
        ({"exp": NOW_S - 1}, "before it was issued"),
        ({"without": "exp"}, "no claim exp"),
        ({"without": "iat"}, "no claim iat"),
        ({"without": "sub"}, "no claim sub"),
        ({"sub": " "}, "no claim sub"),
        ({"without": "aud"}, "no claim aud"),
        ({"aud": "x"}, "audience is another"),
        ({"iss": "x"}, "issuer is another"),
        ({"without": "iss"}, "issuer is another"),
        ({"nbf": NOW_S + 1000}, "not valid yet"),
    ],
)
def test_a_signed_token_is_refused(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(TokenRefused, match=reason) as refused:
        validate_signed_token(signed(**changed), keys(), RULES, NOW_MS)
    assert ("invalid_token", None) == (refused.value.status, refused.value.scope)


def test_an_audience_is_refused_where_none_is_expected() -> None:
    with pytest.raises(TokenRefused, match="audience"):
        validate_signed_token(signed(), keys(), SignedRules(), NOW_MS)
    assert (
        "alice"
        == validate_signed_token(signed(without="aud"), keys(), SignedRules(), NOW_MS).principal
    )


@pytest.mark.parametrize("text", ["", "abc", "..", unsecured(), unsecured(alg="HS256")])
def test_what_nobody_signed_is_no_signed_token(text: str) -> None:
    with pytest.raises(TokenRefused):
        validate_signed_token(text, keys(), RULES, NOW_MS)


def test_what_is_nested_without_end_is_no_token() -> None:
    deep = urlsafe_b64encode(b"[" * 100_000).decode().rstrip("=")
    for text in (f"{deep}.e30.", f"{unsecured().partition('.')[0]}.{deep}."):
        with pytest.raises(TokenRefused):
            validate_unsecured_token(text, UnsecuredRules(), NOW_MS)
    with pytest.raises(TokenRefused):
        validate_signed_token(f"{deep}.e30.", keys(), RULES, NOW_MS)
    with pytest.raises(TokenRefused):
        parse_jwks_keys(b'{"keys":' + b"[" * 100_000)


def test_a_critical_parameter_of_the_header_is_not_passed_over() -> None:
    headers = {"kid": "e1", "crit": ["bound"], "bound": "to another"}
    text = jwt.encode(CLAIMS, key(0), algorithm="ES256", headers=headers)
    with pytest.raises(TokenRefused, match="critical"):
        validate_signed_token(text, keys(), RULES, NOW_MS)


@pytest.mark.parametrize(
    "odd",
    [
        {"kty": "RSA", "n": "AQ", "e": "AQ"},
        {"kty": "RSA", "n": 5, "e": "AQAB"},
        {"kty": "EC", "crv": "P-256", "x": "MTEx" * 8, "y": "MTEx" * 8},
        {"kty": "EC", "crv": "P-256", "x": None, "y": None},
        {"kty": "EC", "crv": "of none"},
    ],
)
def test_a_key_that_cannot_be_read_keeps_nobody_from_the_others(odd: dict[str, Any]) -> None:
    assert (
        "alice" == validate_signed_token(signed(kid=None), (odd, *keys()), RULES, NOW_MS).principal
    )


def test_a_key_whose_reader_fails_keeps_nobody_from_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PyJWT before 2.10 passes on what the package of keys raises."""
    read = jwt.PyJWK

    def of(content: dict[str, Any], algorithm: str) -> jwt.PyJWK:
        if content["kty"] == "RSA":
            raise ValueError("n must be >= 3")
        return read(content, algorithm=algorithm)

    monkeypatch.setattr(jwt, "PyJWK", of)
    odd = {"kty": "RSA", "n": "AQ", "e": "AQ"}
    assert (
        "alice" == validate_signed_token(signed(kid=None), (odd, *keys()), RULES, NOW_MS).principal
    )


def test_other_claims_may_name_the_subject() -> None:
    rules = RULES._replace(subject_claim="client")
    assert "c" == validate_signed_token(signed(client="c"), keys(), rules, NOW_MS).principal


def test_an_unsecured_token_needs_a_principal_and_an_end() -> None:
    rules = UnsecuredRules(required_scope=("req",))
    assert ("alice", (NOW_S + 3600) * 1000) == validate_unsecured_token(
        unsecured(scope=["a", "req"]), rules, NOW_MS
    )
    assert (
        "alice" == validate_unsecured_token(unsecured(without="iat", scope="req"), rules, NOW_MS)[0]
    )
    early = unsecured(iat=NOW_S + 5)
    assert (
        "alice" == validate_unsecured_token(early, UnsecuredRules(skew_ms=5_000), NOW_MS).principal
    )
    with pytest.raises(TokenRefused, match="future"):
        validate_unsecured_token(early, UnsecuredRules(skew_ms=4_999), NOW_MS)


@pytest.mark.parametrize(
    "text",
    [
        "abc",
        unsecured(alg="RS256"),
        unsecured(signature="abc"),
        unsecured(without="sub"),
        unsecured(sub=5),
        unsecured(without="exp"),
        unsecured(exp=NOW_S),
        unsecured(iat=NOW_S + 1, exp=NOW_S + 50),
        unsecured(exp="soon"),
    ],
)
def test_an_unsecured_token_is_refused(text: str) -> None:
    with pytest.raises(TokenRefused) as refused:
        validate_unsecured_token(text, UnsecuredRules(), NOW_MS)
    assert "invalid_token" == refused.value.status


def test_a_scope_in_one_text_is_one_scope() -> None:
    with pytest.raises(TokenRefused) as refused:
        validate_unsecured_token(
            unsecured(scope="req x"), UnsecuredRules(required_scope=("req",)), NOW_MS
        )
    assert ("insufficient_scope", "[req]") == (refused.value.status, refused.value.scope)


def test_documents_of_keys_are_read() -> None:
    assert [{"kid": "a"}] == parse_jwks_keys(b'{"keys":[{"kid":"a"}]}')
    for wrong in (b"", b"[]", b'{"keys":5}', b'{"keys":[5]}'):
        with pytest.raises(TokenRefused):
            parse_jwks_keys(wrong)
    assert "e1" == key_id(signed())


# -- The conversation --------------------------------------------------------------------------


def server() -> OAuthBearerServer:
    return OAuthBearerServer(
        lambda text: validate_signed_token(text, keys(), RULES, NOW_MS), lambda: NOW_MS + 1000
    )


def first(token: str, name: str = "", more: str = "") -> bytes:
    return f"n,{name},\x01auth=Bearer {token}\x01{more}\x01".encode()


@pytest.mark.parametrize(("name", "more"), [("", ""), ("a=alice", ""), ("", "a=b\x01")])
def test_a_client_is_known_for_as_long_as_its_token_holds(name: str, more: str) -> None:
    made = server()
    assert b"" == made.response_to(first(signed(), name, more))
    assert ("alice", 3_599_000, False) == (made.user, made.lifetime_ms, made.is_token)


def test_a_token_without_an_end_in_sight_has_the_longest_lifetime() -> None:
    made = OAuthBearerServer(
        lambda text: validate_unsecured_token(text, UnsecuredRules(), NOW_MS), lambda: NOW_MS
    )
    made.response_to(first(unsecured(exp=1e300)))
    assert (1 << 63) - 1 - NOW_MS == made.lifetime_ms


def test_a_client_gets_the_reason_and_fails_with_its_next_message() -> None:
    made = server()
    text = '{"status":"invalid_token"}'
    assert text.encode() == made.response_to(first("abc"))
    assert made.user is None
    with pytest.raises(SaslFailed, match=text):
        made.response_to(b"\x01")


def test_another_authorization_id_is_refused() -> None:
    with pytest.raises(SaslFailed, match=r"\(bob\) that is different .* \(alice\)"):
        server().response_to(first(signed(), "a=bob"))


@pytest.mark.parametrize("token", [b"", b"xx", b"\x01", b"n,,\x01a=b\x01\x01"])
def test_other_first_messages_are_refused(token: bytes) -> None:
    with pytest.raises(CredentialsWrong):
        server().response_to(token)


def test_another_scheme_ends_the_connection() -> None:
    with pytest.raises(TokenBroken):
        server().response_to(b"n,,\x01auth=Basic abc\x01\x01")
