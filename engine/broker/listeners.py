"""Open a broker's listeners, and apply changed limits and authentication settings to them.

Source: kafka.network.SocketServer.reconfigure, Processor.closeExcessConnections.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import NamedTuple

from engine.authentication_gate import Authentication
from engine.broker.connection_limits import (
    bounds_of,
    in_flight_bytes_max,
    limits_of,
    overrides_of,
)
from engine.broker.connection_quotas import ConnectionBounds, ConnectionQuotas
from engine.broker.dynamic_config import LiveConfig
from engine.broker.host import BrokerHost
from engine.broker.jwks import JwksCache
from engine.broker.listener_oauth import token_reader
from engine.broker.listener_sasl import ListenerSasl, TokenLogins
from engine.broker.listener_tls import principal_of_certificates
from engine.broker.live_tls import LiveTls
from engine.broker.quota_settings import QuotaSettings
from engine.broker.refusals import Refusals
from engine.config.listener_settings import ListenerSettings
from engine.config.listeners import ListenerAddress
from engine.errors import ConfigError
from engine.host.ports import Listener, ListenOptions
from engine.host.receive_buffers import ReceiveBuffers
from engine.security.jaas import JaasEntry
from engine.security.oauth_sasl import OAuthBearerServer
from engine.security.sasl import SaslServer
from engine.server import ClientConnection, RequestServer

_log = logging.getLogger("kafka.network.SocketServer")


class TokenAuthentication(NamedTuple):
    """What authenticates clients by access tokens and by delegation tokens."""

    jwks: JwksCache
    by_delegation_token: TokenLogins | None = None


class BrokerListeners:
    """Opens all listeners of a broker; the request server closes them."""

    def __init__(
        self,
        host: BrokerHost,
        server: RequestServer,
        live: LiveConfig,
        refusals: Refusals,
        quotas: QuotaSettings,
        tls: LiveTls,
        logins: TokenAuthentication,
    ) -> None:
        """Create the listeners' common limits from the settings; raises ConfigError.

        None is opened yet. `quotas` has the connection rates of addresses and the SCRAM
        credentials.
        """
        self._host = host
        self._network = network = host.network
        self._server = server
        self._live = live
        self._refusals = refusals
        config = live.config
        self.quotas = ConnectionQuotas(
            bounds_of(live, overrides_of(config, network.address_of)),
            config.inter_broker_endpoint.name,
            window_count=config.quota_window_num,
            window_ms=config.quota_window_size_seconds * 1000,
            rates=quotas.rates,
        )
        self._credentials = quotas.credentials
        self._tls = tls
        self._logins = logins
        self.quotas.on_exceeded = self._close_excess
        #: Text of max.connections.per.ip.overrides when its hosts were last resolved: they are
        #: resolved again only after a change.
        self._overrides = config.max_connections_per_ip_overrides
        #: Receive buffers of all listeners, bounded by queued.max.request.bytes.
        self._room = ReceiveBuffers(in_flight_bytes_max(config))
        #: Open listeners, and the authentication of each, by name.
        self._opened: dict[str, Listener] = {}
        self._authentications: dict[str, Authentication] = {}

    def open(self) -> dict[str, int]:
        """Open all listeners; return their ports by listener name.

        Raises ConfigError and the errors of the network; the server closes the listeners that were
        opened before the error.
        """
        config = self._live.config
        self._read_authentications()
        gates = {bound.name: self.quotas.gate(bound.name) for bound in config.bound_listeners}
        for listener in config.bound_listeners:
            options = ListenOptions(
                gates[listener.name],
                self._refusals.note,
                self._refusals.note_rejection,
                limits_of(self._live),
                config.socket_listen_backlog_size,
                self._room,
                self._tls.layer(listener) if listener.has_tls else None,
            )
            self._opened[listener.name] = self._server.listen(
                listener.host or "0.0.0.0",
                listener.port,
                listener.name,
                options,
                self._on_client(listener),
            )
        return {name: listener.port for name, listener in self._opened.items()}

    def _on_client(self, listener: ListenerAddress) -> Callable[[ClientConnection], None] | None:
        """Return the function that authenticates a new client of a listener.

        None if the listener has neither SASL nor TLS: its clients are ANONYMOUS.
        """
        if listener.has_sasl:
            name = listener.name
            return lambda client: client.authenticate(self._authentications[name])
        if listener.has_tls:
            principal_of = principal_of_certificates(self._live.settings)
            return lambda client: client.identify(principal_of)
        return None

    def _read_authentications(self) -> None:
        """Create the authentication of each SASL listener from the settings; raises ConfigError."""
        config, settings, host = self._live.config, self._live.settings, self._host
        self._authentications |= {
            listener.name: Authentication(
                ListenerSasl(
                    settings,
                    listener.name,
                    self._credentials,
                    host.entropy,
                    self._logins.by_delegation_token,
                    self._token_server,
                ),
                host.timers,
                host.clock,
                config.connection_failed_authentication_delay_ms,
                config.sasl_server_max_receive_size,
                config.connections_max_idle_ms,
            )
            for listener in config.bound_listeners
            if listener.has_sasl
        }

    def _token_server(
        self, of_listener: ListenerSettings, entry: JaasEntry
    ) -> Callable[[], SaslServer]:
        """Return a function that creates the server's side of one OAUTHBEARER authentication.

        Raises ConfigError.
        """
        clock = self._host.clock
        read = token_reader(of_listener, entry, self._logins.jwks, clock)
        return lambda: OAuthBearerServer(read, clock.wall_ms)

    def reconfigure(self) -> None:
        """Apply changed settings to all listeners; log invalid ones and keep their old values."""
        try:
            self._read_authentications()
        except ConfigError as error:
            _log.error("The authentication of clients stays as it is: %s", error)
        limits = limits_of(self._live)
        for listener in self._opened.values():
            listener.limits = limits
        self._room.in_flight_bytes_max = in_flight_bytes_max(self._live.config)
        try:
            bounds = bounds_of(self._live, self._resolve_address_limits())
        except ConfigError as error:
            _log.error("The bounds on connections stay as they are: %s", error)
            return
        _log_change(self.quotas.bounds, bounds)
        self.quotas.change(bounds)

    def _resolve_address_limits(self) -> Mapping[str, int]:
        """Return the limits of addresses; host names are resolved only after a change."""
        config = self._live.config
        if config.max_connections_per_ip_overrides == self._overrides:
            return self.quotas.bounds.per_address
        per_address = overrides_of(config, self._network.address_of)
        self._overrides = config.max_connections_per_ip_overrides
        return per_address

    def _close_excess(self) -> None:
        """Close connections while the broker has more than max.connections, longest idle first.

        Those of the inter-broker listener stay open, if there are other listeners.
        """
        reason = "it was silent for longest, and the broker has more than max.connections"
        names = [name for name in self._opened if not self.quotas.is_protected(name)]
        while self.quotas.is_exceeded and any(
            self._opened[name].close_least_recently_used(reason) for name in names
        ):
            continue


def _log_change(old: ConnectionBounds, new: ConnectionBounds) -> None:
    """Log each changed connection limit in Kafka's words."""
    for name, before, after in (
        ("maxConnectionsPerIp", old.per_address_max, new.per_address_max),
        ("maxConnectionsPerIpOverrides", old.per_address, new.per_address),
        ("broker-wide maxConnections", old.connections_max, new.connections_max),
        ("broker-wide maxConnectionCreationRate", old.creation_rate, new.creation_rate),
    ):
        if before != after:
            _log.info("Updating %s: %s", name, after)
