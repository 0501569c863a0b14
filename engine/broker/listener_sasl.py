"""The SASL settings of a listener: its mechanisms, users and lifetimes.

| setting | scope |
|---|---|
| `sasl.enabled.mechanisms` | listener, default: broker |
| `sasl.jaas.config` | only mechanism of a listener; users of PLAIN: `user_<name>="<password>"` |
| `connections.max.reauth.ms` | mechanism of a listener, default: listener, broker |
| `sasl.server.max.receive.size`, `connection.failed.authentication.delay.ms` | broker |

SCRAM credentials and delegation tokens are in znodes (`ScramCredentials`), and may change at any
time.

Source: SaslChannelBuilder, JaasContext.loadServerContext, PlainServerCallbackHandler,
ScramServerCallbackHandler of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias

from engine.broker.listener_oauth import HANDLER, check_oauth
from engine.broker.own_oauth import LOGIN_HANDLER, LOGIN_HANDLERS, own_oauth_login
from engine.client.oauth_login import OAuthLogin
from engine.config.broker_config import BrokerConfig
from engine.config.listener_settings import ListenerSettings
from engine.config.settings import BrokerSettings
from engine.config.value import HIDDEN
from engine.errors import ConfigError
from engine.hash_order import in_java_hash_order
from engine.host.ports import Entropy
from engine.security.credentials import ScramCredentials
from engine.security.jaas import JaasEntry, JaasRefused, parse_jaas_entry
from engine.security.sasl import (
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    PlainServer,
    SaslServer,
    ScramServer,
    TokenLogin,
    nonce_of,
)
from engine.security.scram import ScramMechanism

_LOGIN_MODULES: Final = {
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
    **dict.fromkeys(
        (mechanism.key for mechanism in ScramMechanism),
        "org.apache.kafka.common.security.scram.ScramLoginModule",
    ),
}
#: Returns the login of a delegation token by token id and mechanism, None for an unknown token.
TokenLogins: TypeAlias = Callable[[str, ScramMechanism], TokenLogin | None]
#: Returns the factory of OAUTHBEARER authentications; raises ConfigError.
TokenReaders: TypeAlias = Callable[[ListenerSettings, JaasEntry], Callable[[], SaslServer]]
_SCRAM: Final = {mechanism.key: mechanism for mechanism in ScramMechanism}
_USER_PREFIX: Final = "user_"
_NONCE_BYTES: Final = 17
#: Settings with Java classes that would change which clients are accepted.
_CLASSES: Final = (
    "sasl.server.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.client.callback.handler.class",
)


class ListenerSasl:
    """The SASL mechanisms of one listener.

    Implements `engine.api.sasl_authenticator.SaslListener`.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        listener: str,
        credentials: ScramCredentials,
        entropy: Entropy,
        token_login: TokenLogins | None = None,
        token_readers: TokenReaders | None = None,
    ) -> None:
        """Read and check the SASL settings of a listener; raises ConfigError.

        `token_login` returns the login of a delegation token, None if tokens are disabled.
        `token_readers` returns the verifier of OAUTHBEARER's access tokens.
        """
        of_listener = ListenerSettings(settings, listener)
        enabled = enabled_mechanisms(of_listener)
        #: Names of the enabled mechanisms, in the order in which Kafka sends them.
        self._mechanisms = in_java_hash_order(enabled)
        self._credentials = credentials
        self._entropy = entropy
        self._token_login = token_login
        #: The JAAS login entry of each enabled mechanism.
        self._entries = {name: login_entry(of_listener, name) for name in enabled}
        #: Creates the server side of an OAUTHBEARER login. None if that mechanism is disabled.
        self._oauth: Callable[[], SaslServer] | None = None
        if OAUTHBEARER in enabled:
            assert token_readers is not None
            self._oauth = token_readers(of_listener, self._entries[OAUTHBEARER])
        #: connections.max.reauth.ms of each mechanism.
        self._lifetimes_ms = {name: _lifetime_ms(of_listener, name) for name in enabled}

    @property
    def mechanisms(self) -> Sequence[str]:
        """Return the enabled SASL mechanisms in Kafka's order, that of Java's set."""
        return self._mechanisms

    def new_server(self, mechanism: str) -> SaslServer:
        """Return the server's side of a new authentication by a SASL mechanism."""
        if mechanism == PLAIN:
            return PlainServer(partial(_password_of, self._entries[PLAIN].options))
        if mechanism == OAUTHBEARER:
            assert self._oauth is not None
            return self._oauth()
        scram = _SCRAM[mechanism]
        return ScramServer(
            scram,
            lambda user: self._credentials.of(user, scram),
            nonce_of(self._entropy.random_bytes(_NONCE_BYTES)),
            lambda token_id: self._by_token(token_id, scram),
        )

    def _by_token(self, token_id: str, mechanism: ScramMechanism) -> TokenLogin | None:
        """Return the login of a delegation token, None for an unknown token or without tokens."""
        return None if self._token_login is None else self._token_login(token_id, mechanism)

    def session_lifetime_ms(self, mechanism: str) -> int:
        """Return for how long an authentication by a mechanism is valid; 0 means without end."""
        return self._lifetimes_ms[mechanism]


class OwnLogin(NamedTuple):
    """The broker's own login at other brokers; its repr does not show the password."""

    username: str
    password: str
    #: The source of access tokens with OAUTHBEARER; None with other mechanisms.
    oauth: OAuthLogin | None = None

    def __repr__(self) -> str:
        """Return the login without its password."""
        return f"OwnLogin({self.username})"


def check_sasl(settings: BrokerSettings, listener: str) -> None:
    """Raise ConfigError if a listener's SASL settings are invalid."""
    of_listener = ListenerSettings(settings, listener)
    for mechanism in enabled_mechanisms(of_listener):
        entry = login_entry(of_listener, mechanism)
        if mechanism == OAUTHBEARER:
            check_oauth(of_listener, entry)
        _lifetime_ms(of_listener, mechanism)


def broker_login(settings: BrokerSettings, config: BrokerConfig) -> OwnLogin:
    """Return the credentials of this broker at other brokers' listeners; raises ConfigError.

    They are in the settings of the inter-broker listener.
    """
    of_listener = ListenerSettings(settings, config.inter_broker_endpoint.name)
    mechanism = config.sasl_mechanism_inter_broker_protocol
    if mechanism not in enabled_mechanisms(of_listener):
        raise ConfigError(
            "sasl.mechanism.inter.broker.protocol",
            mechanism,
            "must be included in sasl.enabled.mechanisms when SASL is used for inter-broker "
            "communication",
        )
    if mechanism == OAUTHBEARER:
        return OwnLogin("", "", own_oauth_login(of_listener, login_entry(of_listener, mechanism)))
    options = login_entry(of_listener, mechanism).options
    username, password = options.get("username"), options.get("password")
    if username is None or password is None:
        raise ConfigError(
            of_listener.name_of("sasl.jaas.config", mechanism),
            HIDDEN,
            "must have username and password: brokers reach each other by this listener",
        )
    return OwnLogin(username, password)


def login_entry(of_listener: ListenerSettings, mechanism: str) -> JaasEntry:
    """Return the parsed JAAS entry of a mechanism: the users, and the broker's own credentials.

    Raises ConfigError if it is missing, malformed, or of another login module.
    """
    key = "sasl.jaas.config"
    name = of_listener.name_of(key, mechanism)
    text = of_listener.own_text(key, mechanism)
    if text is None:
        raise ConfigError(
            name, None, f"must be given: {mechanism} is one of sasl.enabled.mechanisms"
        )
    try:
        entry = parse_jaas_entry(text)
    except JaasRefused as error:
        raise ConfigError(name, HIDDEN, str(error)) from None
    module = _LOGIN_MODULES[mechanism]
    if entry.login_module != module:
        raise ConfigError(name, HIDDEN, f"must be of the login module {module}")
    return entry


def enabled_mechanisms(of_listener: ListenerSettings) -> list[str]:
    """Return the listener's enabled SASL mechanisms in the order of the setting.

    Raises ConfigError for an unknown mechanism, and for callback classes of Java.
    """
    key = "sasl.enabled.mechanisms"
    enabled = of_listener.value(key)
    assert isinstance(enabled, tuple)
    if not enabled:
        raise ConfigError(key, "", "must name a mechanism where a listener has SASL")
    for mechanism in enabled:
        if mechanism not in MECHANISMS:
            rule = f"{mechanism} is not served: must be of {', '.join(MECHANISMS)}"
            raise ConfigError(key, ",".join(enabled), rule)
        for name in _CLASSES:
            if mechanism == OAUTHBEARER and name == HANDLER:
                continue
            text = of_listener.own_text(name, mechanism) or of_listener.text(name)
            if mechanism == OAUTHBEARER and name == LOGIN_HANDLER and text in LOGIN_HANDLERS:
                continue
            if text:
                raise ConfigError(name, text, "classes of Java cannot be run here")
    return list(dict.fromkeys(enabled))


def _lifetime_ms(of_listener: ListenerSettings, mechanism: str) -> int:
    """Return a mechanism's `connections.max.reauth.ms`; 0 means that sessions do not expire."""
    value = of_listener.value("connections.max.reauth.ms", mechanism)
    assert isinstance(value, int)
    return max(value, 0)


def _password_of(options: Mapping[str, str], user: str) -> str | None:
    """Return a user's password in the options of a JAAS entry, None for an unknown user."""
    return options.get(_USER_PREFIX + user)
