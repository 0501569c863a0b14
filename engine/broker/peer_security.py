"""How a broker makes itself known to others: by the listener between brokers.

| setting | |
|---|---|
| `sasl.mechanism.inter.broker.protocol` | one of that listener's mechanisms |
| that listener's key and trust store | with TLS: what is shown, and whom to trust |
| `listener.name.<l>.<mechanism>.sasl.jaas.config` | `username` and `password`: the broker's own |

Source: ChannelBuilders.create, JaasContext.loadServerContext, KafkaConfig.validateValues.
"""

from __future__ import annotations

from collections.abc import Callable

from engine.broker.dynamic_config import LiveConfig
from engine.broker.listener_sasl import enabled_mechanisms, login_entry
from engine.broker.listener_tls import peer_layer
from engine.broker.peers import PeerSecurity
from engine.client.sasl import SaslConversation, conversation_of
from engine.config.listener_settings import ListenerSettings
from engine.config.value import HIDDEN
from engine.errors import ConfigError
from engine.host.ports import Entropy


def peer_security(live: LiveConfig, entropy: Entropy) -> PeerSecurity:
    """Return how other brokers are reached; raises ConfigError."""
    listener = live.config.between_brokers
    new_conversation = None
    if listener.has_sasl:
        of_listener = ListenerSettings(live.settings, listener.name)
        mechanism = live.config.sasl_mechanism_inter_broker_protocol
        new_conversation = _own_conversation(of_listener, mechanism, entropy)
    layer_to = peer_layer(live.settings, listener) if listener.has_tls else None
    return PeerSecurity(listener.name, listener.security_protocol, new_conversation, layer_to)


def _own_conversation(
    of_listener: ListenerSettings, mechanism: str, entropy: Entropy
) -> Callable[[], SaslConversation]:
    if mechanism not in enabled_mechanisms(of_listener):
        raise ConfigError(
            "sasl.mechanism.inter.broker.protocol",
            mechanism,
            "must be included in sasl.enabled.mechanisms when SASL is used for inter-broker "
            "communication",
        )
    options = login_entry(of_listener, mechanism).options
    username, password = options.get("username"), options.get("password")
    if username is None or password is None:
        raise ConfigError(
            of_listener.name_of("sasl.jaas.config", mechanism),
            HIDDEN,
            "must have username and password: brokers reach each other by this listener",
        )
    return lambda: conversation_of(mechanism, username, password, entropy)
