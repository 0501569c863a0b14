"""Validation of OAUTHBEARER access tokens.

| validator | signature | required claims |
|---|---|---|
| unsecured (Kafka's default) | none: `alg` is `none` | the principal claim (`sub`), `exp` |
| signed | by a key of the JWKS | `exp`, `iat`, the subject claim (`sub`); audience and issuer if configured |

Times may differ by the clock skew. A token with an audience is rejected if none is configured.

Source: OAuthBearerUnsecuredValidatorCallbackHandler, OAuthBearerUnsecuredJws,
ValidatorAccessTokenValidator of 3.9.1; RFC 7519, KIP-255, KIP-768.
Differs: only RSA, EC and Ed25519 keys, no shared secrets.
"""  # noqa: E501 - a table

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from engine.errors import EngineError
from engine.json_text import read_json

if TYPE_CHECKING:
    from jwt.types import Options

_INVALID: Final = "invalid_token"
_INSUFFICIENT: Final = "insufficient_scope"
_MS_MAX: Final = (1 << 63) - 1
#: The signature algorithms by key type.
_ALGORITHMS: Final = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC": ("ES256", "ES384", "ES512"),
    "OKP": ("EdDSA",),
}


class TokenRefused(EngineError):
    """Raised for a rejected token; the message is for the log, the fields for the client."""

    def __init__(self, reason: str, *, status: str = _INVALID, scope: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.scope = scope


class AccessToken(NamedTuple):
    """A verified token."""

    principal: str
    expires_ms: int


class UnsecuredRules(NamedTuple):
    """The claims that an unsecured token must have."""

    principal_claim: str = "sub"
    scope_claim: str = "scope"
    required_scope: tuple[str, ...] = ()
    skew_ms: int = 0


class SignedRules(NamedTuple):
    """The claims that a signed token must have."""

    audiences: tuple[str, ...] = ()
    issuer: str | None = None
    skew_ms: int = 30_000
    scope_claim: str = "scope"
    subject_claim: str = "sub"


#: A key of a JWKS as a JSON object.
JsonKey = Mapping[str, object]


def validate_unsecured_token(text: str, rules: UnsecuredRules, now_ms: int) -> AccessToken:
    """Check an unsecured token, and return its principal and expiry time; raises TokenRefused.

    Such a token has no signature: only tests use it.
    """
    parts = text.split(".")
    if len(parts) != 3 or not parts[0] or not parts[1]:
        raise TokenRefused("Malformed compact serialization")
    if _decode_object(parts[0]).get("alg") != "none" or parts[2]:
        raise TokenRefused("an unsecured token has alg none and no signature")
    claims = _decode_object(parts[1])
    principal = claims.get(rules.principal_claim)
    if not isinstance(principal, str) or not principal.strip():
        raise TokenRefused(f"no claim {rules.principal_claim}")
    expires_ms = _check_times(claims, rules.skew_ms, now_ms, needs_issue=False)
    if claims.get("iat") is not None:
        issued_ms = _claim_ms(claims["iat"], "iat")
        if issued_ms > now_ms + rules.skew_ms:
            raise TokenRefused("it was issued in the future")
        if expires_ms == issued_ms:
            raise TokenRefused("it expires when it was issued")
    missing = set(rules.required_scope) - _scopes_in(claims.get(rules.scope_claim))
    if missing:
        required = f"[{', '.join(rules.required_scope)}]"
        reason = f"the scope lacks {' '.join(sorted(missing))}"
        raise TokenRefused(reason, status=_INSUFFICIENT, scope=required)
    return AccessToken(principal, expires_ms)


def validate_signed_token(
    text: str, keys: Sequence[JsonKey], rules: SignedRules, now_ms: int
) -> AccessToken:
    """Check a signed token, and return its principal and expiry time.

    Raises TokenRefused unless one of the keys has signed it, and its audience, issuer and times
    are valid.
    """
    claims = _verify_signature(text, keys)
    audience = claims.get("aud")
    audiences = {audience} if isinstance(audience, str) else set(_strings_in(audience))
    if audiences and not audiences & set(rules.audiences):
        raise TokenRefused("the audience is another")
    if rules.audiences and not audiences:
        raise TokenRefused("no claim aud")
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise TokenRefused("the issuer is another")
    subject = claims.get(rules.subject_claim)
    if not isinstance(subject, str) or not subject.strip():
        raise TokenRefused(f"no claim {rules.subject_claim}")
    expires_ms = _check_times(claims, rules.skew_ms, now_ms, needs_issue=True)
    not_before = claims.get("nbf")
    if not_before is not None and _claim_ms(not_before, "nbf") > now_ms + rules.skew_ms:
        raise TokenRefused("it is not valid yet")
    return AccessToken(subject.strip(), expires_ms)


def key_id(text: str) -> str | None:
    """Return the id of the key with which a token is signed, None if its header has none.

    Raises TokenRefused.
    """
    found = _decode_header(text).get("kid")
    return found if isinstance(found, str) else None


def parse_jwks_keys(document: bytes) -> list[JsonKey]:
    """Return the keys in a JWKS document; raises TokenRefused for an invalid one."""
    try:
        found = read_json(document)
    except ValueError as error:
        raise TokenRefused("it is no JWKS document") from error
    keys = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(keys, list) or not all(isinstance(key, dict) for key in keys):
        raise TokenRefused("it is no JWKS document")
    return keys


def _verify_signature(text: str, keys: Sequence[JsonKey]) -> Mapping[str, object]:
    """Return the claims of a token that one of the keys has signed; raises TokenRefused."""
    import jwt

    wanted = key_id(text)
    if "crit" in _decode_header(text):
        # Unknown critical parameters must be rejected, and none is known here (RFC 7515 §4.1.11).
        raise TokenRefused("its header names critical parameters")
    unchecked = cast(
        "Options",
        {f"verify_{name}": False for name in ("exp", "iat", "nbf", "aud", "iss", "sub", "jti")},
    )
    for key in keys:
        algorithms = _ALGORITHMS.get(str(key.get("kty")), ())
        if not algorithms or (wanted is not None and key.get("kid") != wanted):
            continue
        if key.get("use", "sig") != "sig":
            continue
        try:
            # Kafka's library accepts any algorithm of the key's type too, whichever the key names.
            public = jwt.PyJWK({**key, "alg": None}, algorithm=_default_algorithm(key)).key
            jwt.decode(
                text,
                key=public,
                algorithms=list(algorithms),
                options=unchecked,
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
            # A key that cannot be read does not affect the others.
            continue
        return _decode_object(text.split(".")[1])
    raise TokenRefused("no key of the JWKS has signed it")


def _default_algorithm(key: JsonKey) -> str:
    """Return an algorithm for the key's type, with which PyJWT can load the key."""
    if key.get("kty") == "EC":
        return {"P-384": "ES384", "P-521": "ES512"}.get(str(key.get("crv")), "ES256")
    return "EdDSA" if key.get("kty") == "OKP" else "RS256"


def _check_times(
    claims: Mapping[str, object], skew_ms: int, now_ms: int, *, needs_issue: bool
) -> int:
    """Check the claims `exp` and `iat`, and return the expiry time in ms; raises TokenRefused.

    With `needs_issue`, `iat` must not be missing.
    """
    if claims.get("exp") is None:
        raise TokenRefused("no claim exp")
    expires_ms = _claim_ms(claims["exp"], "exp")
    if now_ms - skew_ms >= expires_ms:
        raise TokenRefused("it has expired")
    if claims.get("iat") is None:
        if needs_issue:
            raise TokenRefused("no claim iat")
        return expires_ms
    if expires_ms < _claim_ms(claims["iat"], "iat"):
        raise TokenRefused("it expires before it was issued")
    return expires_ms


def _decode_header(text: str) -> Mapping[str, object]:
    """Return a token's header, which is not verified yet; raises TokenRefused."""
    return _decode_object(text.partition(".")[0])


def _decode_object(part: str) -> Mapping[str, object]:
    """Return the JSON object in a part of a token (base64url); raises TokenRefused."""
    try:
        found = read_json(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except ValueError as error:
        raise TokenRefused("a part of it is no JSON in base64") from error
    if not isinstance(found, dict):
        raise TokenRefused("a part of it is no object")
    return found


def _claim_ms(value: object, claim: str) -> int:
    """Return the time of a claim, which is in seconds, in ms; raises TokenRefused if it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenRefused(f"the claim {claim} is no number")
    try:
        time_ms = round(value * 1000)
    except (OverflowError, ValueError) as error:
        raise TokenRefused(f"the claim {claim} is no time") from error
    # Limited as in Java, because a response contains the session lifetime as a long.
    return max(-_MS_MAX, min(time_ms, _MS_MAX))


def _scopes_in(value: object) -> set[str]:
    """Return the scopes in a claim; a string is one scope, even with blanks, as in Kafka."""
    return {value.strip()} if isinstance(value, str) else set(_strings_in(value))


def _strings_in(value: object) -> list[str]:
    """Return the strings in a JSON list, empty for any other value."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
