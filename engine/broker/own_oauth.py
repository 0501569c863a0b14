"""The source of the access tokens with which a broker logs in to other brokers.

| `sasl.login.callback.handler.class` of the inter-broker listener | token |
|---|---|
| none, or OAuthBearerUnsecuredLoginCallbackHandler | unsigned, for `unsecuredLoginStringClaim_sub` in the JAAS entry |
| OAuthBearerLoginCallbackHandler | content of the file `sasl.oauthbearer.token.endpoint.url` |

The token is read again for each authentication and re-authentication (KIP-368).

Source: OAuthBearerUnsecuredLoginCallbackHandler, OAuthBearerLoginCallbackHandler of 3.9.1.
Differs: tokens are not requested over the network, which would block the broker; an unsigned token
has no other claims.
"""  # noqa: E501 - a table

from __future__ import annotations

from typing import Final

from engine.client.oauth_login import OAUTHBEARER, OAuthLogin
from engine.config.listener_settings import ListenerSettings
from engine.config.value import HIDDEN
from engine.errors import ConfigError
from engine.security.jaas import JaasEntry

LOGIN_HANDLER: Final = "sasl.login.callback.handler.class"
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
_SIGNED_HANDLERS: Final = (
    f"{_PACKAGE}.OAuthBearerLoginCallbackHandler",
    f"{_PACKAGE}.secured.OAuthBearerLoginCallbackHandler",
)
_UNSECURED_HANDLER: Final = (
    f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
)
LOGIN_HANDLERS: Final = (*_SIGNED_HANDLERS, _UNSECURED_HANDLER)
_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_SUBJECT: Final = "unsecuredLoginStringClaim_sub"
_UNSECURED: Final = "unsecuredLogin"


def own_oauth_login(of_listener: ListenerSettings, entry: JaasEntry) -> OAuthLogin:
    """Return how this broker gets its OAuth tokens for other brokers; raises ConfigError.

    Signed tokens come from a file; unsigned ones are made for a principal in the JAAS entry.
    """
    handler = of_listener.own_text(LOGIN_HANDLER, OAUTHBEARER) or of_listener.text(LOGIN_HANDLER)
    if handler in _SIGNED_HANDLERS:
        url = of_listener.text(_URL)
        if not url or not url.startswith("file:"):
            rule = "must name a file: brokers get tokens of each other from no other place here"
            raise ConfigError(_URL, url, rule)
        return OAuthLogin(url)
    name = of_listener.name_of("sasl.jaas.config", OAUTHBEARER)
    others = [key for key in entry.options if key.startswith(_UNSECURED) and key != _SUBJECT]
    if others:
        raise ConfigError(name, HIDDEN, f"must not have {others[0]}: it is not served")
    subject = entry.options.get(_SUBJECT)
    if not subject:
        rule = f"must have {_SUBJECT}: brokers reach each other by this listener"
        raise ConfigError(name, HIDDEN, rule)
    return OAuthLogin(unsecured_principal=subject)
