"""The authentication of a broker to other brokers, from the settings of the inter-broker listener.

| setting | meaning |
|---|---|
| `sasl.mechanism.inter.broker.protocol` | one of the listener's mechanisms |
| the listener's key store and trust store | TLS: own certificate, trusted certificates |
| `listener.name.<l>.<mechanism>.sasl.jaas.config` | the broker's `username` and `password` |
| the same for OAUTHBEARER | the source of the broker's token: `own_oauth.py` |

Source: ChannelBuilders.create, JaasContext.loadServerContext, KafkaConfig.validateValues.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.broker.dynamic_config import LiveConfig
from engine.broker.listener_sasl import broker_login
from engine.broker.live_tls import LiveTls
from engine.broker.peers import PeerSecurity
from engine.client.sasl import SaslConversation, SaslSettings, create_conversation
from engine.host.ports import Clock, Entropy


def peer_security(live: LiveConfig, entropy: Entropy, tls: LiveTls, clock: Clock) -> PeerSecurity:
    """Return listener, SASL login and TLS layer with which this broker reaches others.

    Raises ConfigError.
    """
    listener = live.config.inter_broker_endpoint
    new_conversation = _make_conversations(live, entropy, clock) if listener.has_sasl else None
    layer_to = tls.layer_to_peers(listener) if listener.has_tls else None
    return PeerSecurity(listener.name, listener.security_protocol, new_conversation, layer_to)


def _make_conversations(
    live: LiveConfig, entropy: Entropy, clock: Clock
) -> Callable[[], SaslConversation]:
    """Return a factory of SASL conversations, one for each new connection to a broker."""
    mechanism = live.config.sasl_mechanism_inter_broker_protocol
    own = broker_login(live.settings, live.config)
    login = SaslSettings(mechanism, own.username, own.password, oauth=own.oauth)
    return lambda: create_conversation(login, entropy, clock.wall_ms())
