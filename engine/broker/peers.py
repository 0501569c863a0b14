"""The channels to other brokers: a direct call in this process, a connection to any other (D12).

A caller sees no difference between the two: a request goes in, a promise of the response out. It
fails with an ApiError if the broker failed to serve it, which is of that request alone, and with
another EngineError if the broker was not reached or was lost.

Brokers of one process between which a fault is set (`engine.host.network_links`) have a connection,
too: the faults of connections need no twin for calls then. When the fault comes or goes, the
channels of the other kind end, as connections that break do, and the next request makes new ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol, TypeAlias

from engine.broker.local_messages import encoded_serve
from engine.client.connection import BrokerConnection, Call
from engine.client.errors import ConnectionLost, Unreachable
from engine.client.loop_connection import LoopConnection, message_of
from engine.client.sasl import SaslConversation
from engine.client.settings import Address
from engine.host.each import do_each
from engine.host.linked_network import LinkedNetwork
from engine.host.network_links import PlaceLinks
from engine.host.ports import Clock, Network, Timers
from engine.host.promise import Promise
from engine.host.stream_layer import LayerTo
from engine.replication.metadata_cache import BrokerNode
from engine.wire.headers import api
from engine.wire.structs import Message, Struct

_log = logging.getLogger("kafka.server.BrokerLinks")
#: Kafka's numbers of the protocols.
_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

#: Serves a request of a broker by the API's name, a version and the message, or its values.
Serve: TypeAlias = Callable[[str, int, object], Promise[Message]]


class ChannelSettings(NamedTuple):
    """The time-outs of responses, with Kafka's defaults, and the buffer for records.

    The buffer is the kernel's where `replica.socket.receive.buffer.bytes` is not set.
    """

    controller_timeout_ms: int = 30_000
    replica_timeout_ms: int = 30_000
    replica_receive_buffer_bytes: int = -1
    #: Whether brokers of this process exchange bytes in place of messages.
    encodes_local_messages: bool = False


class PeerSecurity(NamedTuple):
    """Listener, protocol, SASL and TLS of connections to brokers of other processes."""

    listener: str
    protocol: str = "PLAINTEXT"
    #: Begins an authentication; None: the listener has no SASL.
    new_conversation: Callable[[], SaslConversation] | None = None
    #: Encrypts a connection to a host; None: the listener has no TLS.
    layer_to: LayerTo | None = None


class PeerChannel(Protocol):
    """The channel to one broker, for one of its clients."""

    @property
    def is_same(self) -> bool:
        """Return whether it runs in this process, in the life of the last request."""
        ...

    def send(self, call: Call) -> Promise[Message]:
        """Promise the response to a request; requests are served in the order of the calls."""
        ...

    def close(self) -> None:
        """Close it; open requests fail."""
        ...


def _ignore(channel: object) -> None:
    """Stand for a listener that is not set."""


class LocalChannel:
    """A channel to a broker of this process; it may have stopped, or not be there yet."""

    def __init__(
        self,
        broker_id: int,
        brokers: Mapping[int, Serve],
        on_close: Callable[[LocalChannel], None] = _ignore,
        *,
        encodes: bool = False,
    ) -> None:
        """Begin; `on_close` is called when the channel is closed.

        Where it `encodes`, requests and responses go through their bytes, and values are not
        allowed as requests.
        """
        self._encodes = encodes
        self._broker_id = broker_id
        self._brokers = brokers
        self._on_close = on_close
        #: Set by a fault between the brokers: all later requests fail.
        self._is_broken = False
        #: The handler of the broker when the last request was sent: after a restart it is another.
        #: None before the first request.
        self._requested: Serve | None = None
        #: The response to the last request, None before the first.
        self._response: Promise[Message] | None = None

    def send(self, call: Call) -> Promise[Message]:
        """Serve a request at once, in the highest version that it allows."""
        if self._is_broken:
            return Promise.failed(self._lost())
        self._requested = serve = self._brokers.get(self._broker_id)
        if serve is None:
            return Promise.failed(Unreachable("broker", self._broker_id, "it is not running"))
        version, request = 0, None if self._encodes else call.local
        if request is None:
            stable = api(call.api_name).stable
            version = stable.highest if call.highest is None else min(call.highest, stable.highest)
            request = call.message(version) if callable(call.message) else call.message
        if self._encodes:
            assert isinstance(request, Struct)
            response = encoded_serve(serve, call.api_name, version, request)
        else:
            response = serve(call.api_name, version, request)
        self._response = response
        return response

    @property
    def is_same(self) -> bool:
        """Return whether the broker runs, in the life of the last request."""
        return self._requested is not None and self._requested == self._brokers.get(self._broker_id)

    def close(self) -> None:
        """Abandon the last request's response, as the end of a connection does."""
        self._on_close(self)
        response, self._response = self._response, None
        if response is not None:
            response.abandon()

    def break_off(self) -> None:
        """End it as a connection that breaks: the last request fails, and all later ones."""
        self._is_broken, self._requested = True, None
        response = self._response
        self.close()
        if response is not None and not response.is_kept:
            response.fail(self._lost())

    def _lost(self) -> ConnectionLost:
        """Return the error of a channel that is broken off as the network's faults change."""
        return ConnectionLost("broker", self._broker_id, "the network between the brokers changed")


class RemoteChannel:
    """A broker of another process."""

    is_same = False

    def __init__(
        self, connection: LoopConnection, on_close: Callable[[RemoteChannel], None] = _ignore
    ) -> None:
        """`on_close` is called when the channel is closed."""
        self._connection = connection
        self._on_close = on_close

    def send(self, call: Call) -> Promise[Message]:
        """Send a request."""
        return self._connection.send(call).then(message_of)

    def close(self) -> None:
        """End the connection."""
        self._on_close(self)
        self._connection.close("it is not needed any more")

    def break_off(self) -> None:
        """End the connection as one that breaks."""
        self._on_close(self)
        self._connection.close("the network between the brokers changed")


class Peers:
    """Opens channels to brokers by the inter-broker listener."""

    def __init__(
        self,
        network: Network,
        timers: Timers,
        clock: Clock,
        *,
        local: Mapping[int, Serve],
        broker_id: int,
        security: PeerSecurity,
        settings: ChannelSettings | None = None,
        links: PlaceLinks | None = None,
    ) -> None:
        """`local` are the brokers of this process, filled by the code that starts and stops them.

        `links` has the faults between brokers; None: there are never any.
        """
        self._network = network
        self._links = links
        #: Open channels to brokers of this process, each with the broker's id: changed faults of a
        #: link break them off.
        self._local: dict[LocalChannel | RemoteChannel, int] = {}
        #: Ends the calls of `_faults_changed`.
        self._end_of_changes: Callable[[], None] = _nothing
        if links is not None:
            self._end_of_changes = links.on_change(self._faults_changed)
        self._timers = timers
        self._clock = clock
        #: Handlers of the brokers in this process, by id; shared, and changed by starts and stops.
        self._local_handlers = local
        self._broker_id = broker_id
        #: Name of the listener that brokers use among each other.
        self.listener = security.listener
        self._security = security
        self._settings = settings or ChannelSettings()

    def channel(self, broker: BrokerNode) -> PeerChannel | None:
        """Return a controller's channel to a broker, or a broker's to its controller.

        None (and an error in the log) if the broker cannot be reached. Requests name this broker's
        id as their client.
        """
        return self._channel(broker, str(self._broker_id), self._settings.controller_timeout_ms)

    def replica_channel(self, broker: BrokerNode, client_id: str) -> PeerChannel | None:
        """Return a follower's channel to its leader, None as for `channel`."""
        settings = self._settings
        return self._channel(
            broker, client_id, settings.replica_timeout_ms, settings.replica_receive_buffer_bytes
        )

    def _channel(
        self, broker: BrokerNode, client_id: str, timeout_ms: int, receive_buffer_bytes: int = -1
    ) -> PeerChannel | None:
        """Return a channel to a broker, local if in this process; None without an endpoint."""
        broker_id = broker.broker_id
        is_local = broker_id in self._local_handlers
        if is_local and not self._is_faulty(broker_id):
            local = LocalChannel(
                broker_id,
                self._local_handlers,
                self._forget,
                encodes=self._settings.encodes_local_messages,
            )
            self._local[local] = broker_id
            return local
        endpoint, security = broker.endpoint(self.listener), self._security
        if endpoint is None or endpoint.security_protocol != _PROTOCOLS[security.protocol]:
            _log.error(
                "broker %d is not reached: it has no listener %s of %s",
                broker_id,
                self.listener,
                security.protocol,
            )
            return None
        connection = LoopConnection(
            self._network_to(broker_id),
            self._timers,
            self._clock,
            Address(endpoint.host, endpoint.port),
            lambda: BrokerConnection(client_id, security.new_conversation),
            timeout_ms=timeout_ms,
            receive_buffer_bytes=receive_buffer_bytes,
            layer=None if security.layer_to is None else security.layer_to(endpoint.host),
        )
        if not is_local:
            return RemoteChannel(connection)
        channel = RemoteChannel(connection, self._forget)
        self._local[channel] = broker_id
        return channel

    def _network_to(self, broker_id: int) -> Network:
        """Return the network for connections to a broker, subject to the faults of its link."""
        if self._links is None:
            return self._network
        return LinkedNetwork(self._network, self._links, str(self._broker_id), str(broker_id))

    def _is_faulty(self, broker_id: int) -> bool:
        """Return whether the link to a broker has faults: a direct call would escape these."""
        links = self._links
        return links is not None and links.faults.is_faulty(str(self._broker_id), str(broker_id))

    def _forget(self, channel: LocalChannel | RemoteChannel) -> None:
        """Remove a channel that was closed: changed faults no longer break it off."""
        self._local.pop(channel, None)

    def _faults_changed(self) -> None:
        """Break the channels to brokers of this process that are of the wrong kind now."""
        wrong = [
            channel
            for channel, broker_id in self._local.items()
            if isinstance(channel, LocalChannel) is self._is_faulty(broker_id)
        ]
        do_each(wrong, _break_off)

    def close(self) -> None:
        """Ignore all later faults: the broker stops."""
        self._end_of_changes()


def _break_off(channel: LocalChannel | RemoteChannel) -> None:
    channel.break_off()


def _nothing() -> None:
    """Stand for the function that ends something, where nothing has begun."""
