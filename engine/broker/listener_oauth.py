"""Verify the access tokens of a listener with OAUTHBEARER.

| `sasl.server.callback.handler.class` of the mechanism | tokens |
|---|---|
| none, or OAuthBearerUnsecuredValidatorCallbackHandler | unsigned: anybody can forge them; only for tests |
| OAuthBearerValidatorCallbackHandler | signed by a key of `sasl.oauthbearer.jwks.endpoint.url` |

Options of unsigned tokens are in the JAAS entry: `unsecuredValidatorPrincipalClaimName`,
`unsecuredValidatorScopeClaimName`, `unsecuredValidatorRequiredScope`,
`unsecuredValidatorAllowableClockSkewMs`.

Source: OAuthBearerUnsecuredValidatorCallbackHandler, OAuthBearerValidatorCallbackHandler of 3.9.1.
Differs: a JWKS URL without the class that uses it prevents the start; Kafka accepts unsigned tokens
then.
"""  # noqa: E501 - a table

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Final

from engine.broker.jwks import JwksCache
from engine.config.listener_settings import ListenerSettings
from engine.errors import ConfigError
from engine.host.ports import Clock
from engine.security.jaas import JaasEntry
from engine.security.oauth_tokens import (
    AccessToken,
    SignedRules,
    UnsecuredRules,
    validate_signed_token,
    validate_unsecured_token,
)
from engine.security.sasl import OAUTHBEARER

HANDLER: Final = "sasl.server.callback.handler.class"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
_SIGNED_HANDLERS: Final = (
    f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler",
    f"{_PACKAGE}.secured.OAuthBearerValidatorCallbackHandler",
)
_UNSECURED_HANDLER: Final = (
    f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)
_URL: Final = "sasl.oauthbearer.jwks.endpoint.url"


def check_oauth(of_listener: ListenerSettings, entry: JaasEntry) -> None:
    """Raise ConfigError if a listener's settings for OAUTHBEARER are invalid; no keys are read."""
    if _is_signed(of_listener):
        _signed_rules(of_listener)
    else:
        _unsecured_rules(entry)


def believes_unsecured_tokens(of_listener: ListenerSettings) -> bool:
    """Return True if a listener accepts unsigned tokens, which anybody can forge.

    Raises ConfigError.
    """
    mechanisms = of_listener.value("sasl.enabled.mechanisms")
    assert isinstance(mechanisms, tuple)
    return OAUTHBEARER in mechanisms and not _is_signed(of_listener)


def token_reader(
    of_listener: ListenerSettings, entry: JaasEntry, jwks: JwksCache, clock: Clock
) -> Callable[[str], AccessToken]:
    """Return the function that verifies a token; it raises TokenRefused.

    Raises ConfigError for invalid settings or unreadable keys.
    """
    if not _is_signed(of_listener):
        unsecured = _unsecured_rules(entry)
        return lambda text: validate_unsecured_token(text, unsecured, clock.wall_ms())
    rules = _signed_rules(of_listener)
    refresh_ms = of_listener.value("sasl.oauthbearer.jwks.endpoint.refresh.ms")
    assert isinstance(refresh_ms, int)
    keys = jwks.of(of_listener.text(_URL) or "", max(refresh_ms, 1))
    return lambda text: validate_signed_token(text, keys.for_token(text), rules, clock.wall_ms())


def _is_signed(of_listener: ListenerSettings) -> bool:
    """True if the listener verifies the signatures of tokens, False if it accepts unsigned ones.

    Raises ConfigError for invalid settings.
    """
    text = of_listener.own_text(HANDLER, OAUTHBEARER) or of_listener.text(HANDLER)
    url = of_listener.text(_URL)
    if text in _SIGNED_HANDLERS:
        if not url:
            raise ConfigError(_URL, url, f"must be given for {text}")
        if find_spec("jwt") is None or find_spec("cryptography") is None:
            rule = "needs the packages PyJWT and cryptography: pip install 'kctl-kafka[oauth]'"
            raise ConfigError(_URL, url, rule)
        return True
    if text and text != _UNSECURED_HANDLER:
        rule = f"must be {_SIGNED_HANDLERS[0]} or be left out: classes of Java cannot be run here"
        raise ConfigError(HANDLER, text, rule)
    if url:
        name = of_listener.name_of(HANDLER, OAUTHBEARER)
        raise ConfigError(_URL, url, f"counts only with {name}={_SIGNED_HANDLERS[0]}")
    return False


def _signed_rules(of_listener: ListenerSettings) -> SignedRules:
    """Return the rules for signed tokens from the listener's settings."""
    prefix = "sasl.oauthbearer"
    audiences = of_listener.value(f"{prefix}.expected.audience") or ()
    skew_s = of_listener.value(f"{prefix}.clock.skew.seconds")
    scope = of_listener.value(f"{prefix}.scope.claim.name")
    subject = of_listener.value(f"{prefix}.sub.claim.name")
    assert isinstance(audiences, tuple)
    assert isinstance(skew_s, int)
    assert isinstance(scope, str)
    assert isinstance(subject, str)
    issuer = of_listener.text(f"{prefix}.expected.issuer")
    return SignedRules(audiences, issuer, skew_s * 1000, scope, subject)


def _unsecured_rules(entry: JaasEntry) -> UnsecuredRules:
    """Return the rules for unsigned tokens from the options of the JAAS entry."""
    options, prefix = entry.options, "unsecuredValidator"
    defaults = UnsecuredRules()
    skew = options.get(f"{prefix}AllowableClockSkewMs", "0").strip()
    if not skew.isdecimal():
        raise ConfigError(f"{prefix}AllowableClockSkewMs", skew, "must be a number of ms")
    return UnsecuredRules(
        options.get(f"{prefix}PrincipalClaimName") or defaults.principal_claim,
        options.get(f"{prefix}ScopeClaimName") or defaults.scope_claim,
        tuple(options.get(f"{prefix}RequiredScope", "").split()),
        int(skew),
    )
