"""The channels to other brokers: calls in the same process, connections to other processes (D12).

Both kinds have the same interface: `send` takes a request and returns a promise of the response.
The promise fails with ApiError if the broker failed to serve this request, and with another
EngineError if the connection failed or was lost.

Brokers in one process with a fault on their link (`engine.host.network_links`) use a connection
too, so that faults need to be implemented for connections only. When the fault begins or ends,
channels of the other kind are broken off, and the next request opens new ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, Protocol, TypeAlias

from engine.broker.local_messages import serve_encoded
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
#: Kafka's numbers of the security protocols.
_PROTOCOLS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}

#: Serves a local request: the API's name, a version, and the message or its values.
Serve: TypeAlias = Callable[[str, int, object], Promise[Message]]


class ChannelSettings(NamedTuple):
    """The timeouts of responses, with Kafka's defaults, and the receive buffer of replica fetches.

    A buffer size of −1 is the kernel's (`replica.socket.receive.buffer.bytes` is not set).
    """

    controller_timeout_ms: int = 30_000
    replica_timeout_ms: int = 30_000
    replica_receive_buffer_bytes: int = -1
    #: Whether requests to brokers in this process are encoded and decoded.
    encodes_local_messages: bool = False


class PeerSecurity(NamedTuple):
    """Listener, protocol, SASL and TLS of connections to brokers in other processes."""

    listener: str
    protocol: str = "PLAINTEXT"
    #: Begins a SASL authentication; None if the listener has no SASL.
    new_conversation: Callable[[], SaslConversation] | None = None
    #: Returns the TLS layer for a host; None if the listener has no TLS.
    layer_to: LayerTo | None = None


class PeerChannel(Protocol):
    """A channel to one broker, with a single user."""

    @property
    def is_same(self) -> bool:
        """True if the broker is in this process and was not restarted since the last request.

        A follower's fetch session is then still valid. Never True for a remote broker.
        """
        ...

    def send(self, call: Call) -> Promise[Message]:
        """Send a request; promise the response. Requests are served in the order of the calls."""
        ...

    def close(self) -> None:
        """Close the channel; requests without a response fail or are abandoned."""
        ...


def _ignore_close(channel: object) -> None:
    """Do nothing: what a channel calls at its close if its creator needs no call."""


class LocalChannel:
    """A channel to a broker in this process, which may have stopped or not have started."""

    def __init__(
        self,
        broker_id: int,
        brokers: Mapping[int, Serve],
        on_close: Callable[[LocalChannel], None] = _ignore_close,
        *,
        encodes: bool = False,
    ) -> None:
        """Create a channel to a broker of this process, whose handler is called directly.

        `on_close` is called when the channel is closed. With `encodes`, requests and responses are
        encoded and decoded, and values are not used as requests.
        """
        self._encodes = encodes
        self._broker_id = broker_id
        self._brokers = brokers
        self._on_close = on_close
        #: Set by `break_off`: all later requests fail.
        self._is_broken = False
        #: The broker's handler at the last request: a restarted broker has another one. None before
        #: the first request.
        self._requested: Serve | None = None
        #: The response to the last request, None before the first.
        self._response: Promise[Message] | None = None

    def send(self, call: Call) -> Promise[Message]:
        """Serve a request at once, in the highest version that it allows; promise the response."""
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
            response = serve_encoded(serve, call.api_name, version, request)
        else:
            response = serve(call.api_name, version, request)
        self._response = response
        return response

    @property
    def is_same(self) -> bool:
        """True if the broker runs and was not restarted since the last request."""
        return self._requested is not None and self._requested == self._brokers.get(self._broker_id)

    def close(self) -> None:
        """Close the channel; the handler's response to the last request is abandoned."""
        self._on_close(self)
        response, self._response = self._response, None
        if response is not None:
            response.abandon()

    def break_off(self) -> None:
        """Close the channel as a broken connection would: the last request and all later ones fail.

        Called when the network between the brokers gets a fault.
        """
        self._is_broken, self._requested = True, None
        response = self._response
        self.close()
        if response is not None and not response.is_kept:
            response.fail(self._lost())

    def _lost(self) -> ConnectionLost:
        """Return the error for requests on a channel that was broken off."""
        return ConnectionLost("broker", self._broker_id, "the network between the brokers changed")


class RemoteChannel:
    """A channel to a broker in another process, or in this process over a connection."""

    is_same = False

    def __init__(
        self, connection: LoopConnection, on_close: Callable[[RemoteChannel], None] = _ignore_close
    ) -> None:
        """Create a channel to a broker over a connection.

        `on_close` is called when it is closed.
        """
        self._connection = connection
        self._on_close = on_close

    def send(self, call: Call) -> Promise[Message]:
        """Send a request; promise the response."""
        return self._connection.send(call).then(message_of)

    def close(self) -> None:
        """Close the connection to the peer."""
        self._on_close(self)
        self._connection.close("it is not needed any more")

    def break_off(self) -> None:
        """Close the connection because the faults of the link changed."""
        self._on_close(self)
        self._connection.close("the network between the brokers changed")


class Peers:
    """Opens channels to brokers over the inter-broker listener."""

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
        """Create the channels of a broker to other brokers, without any.

        `local` has the brokers in this process, and changes over time. `links` has the faults
        between brokers, None if there are never any.
        """
        self._network = network
        self._links = links
        #: Open channels to brokers in this process, each with the broker id: changed faults of a
        #: link break them off.
        self._local: dict[LocalChannel | RemoteChannel, int] = {}
        #: Unregisters `_on_fault_change`.
        self._end_of_changes: Callable[[], None] = _do_nothing
        if links is not None:
            self._end_of_changes = links.add_listener(self._on_fault_change)
        self._timers = timers
        self._clock = clock
        #: Handlers of the brokers in this process, by id; changed by their starts and stops.
        self._local_handlers = local
        self._broker_id = broker_id
        #: Name of the inter-broker listener.
        self.listener = security.listener
        self._security = security
        self._settings = settings or ChannelSettings()

    def channel(self, broker: BrokerNode) -> PeerChannel | None:
        """Return a channel between a controller and a broker, in either direction.

        Returns None, and logs an error, if the broker has no suitable endpoint. The client id of
        requests is this broker's id.
        """
        return self._open_channel(
            broker, str(self._broker_id), self._settings.controller_timeout_ms
        )

    def replica_channel(self, broker: BrokerNode, client_id: str) -> PeerChannel | None:
        """Return a follower's channel to its leader, None as in `channel`."""
        settings = self._settings
        return self._open_channel(
            broker, client_id, settings.replica_timeout_ms, settings.replica_receive_buffer_bytes
        )

    def _open_channel(
        self, broker: BrokerNode, client_id: str, timeout_ms: int, receive_buffer_bytes: int = -1
    ) -> PeerChannel | None:
        """Return a new channel to a broker: a local one if the broker is in this process.

        None if it has no endpoint at the inter-broker listener.
        """
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
        """Return the network for connections to a broker, with any faults of the link to it."""
        if self._links is None:
            return self._network
        return LinkedNetwork(self._network, self._links, str(self._broker_id), str(broker_id))

    def _is_faulty(self, broker_id: int) -> bool:
        """True if the link to a broker has faults, which a direct call would bypass."""
        links = self._links
        return links is not None and links.faults.is_faulty(str(self._broker_id), str(broker_id))

    def _forget(self, channel: LocalChannel | RemoteChannel) -> None:
        """Remove a closed channel, which changed faults no longer concern."""
        self._local.pop(channel, None)

    def _on_fault_change(self) -> None:
        """Close channels to brokers in this process that must be of the other kind now.

        A broker with network faults is reached over a connection, not by a local channel.
        """
        wrong = [
            channel
            for channel, broker_id in self._local.items()
            if isinstance(channel, LocalChannel) is self._is_faulty(broker_id)
        ]
        do_each(wrong, _break_off)

    def close(self) -> None:
        """Ignore changed faults from now on, as the broker stops."""
        self._end_of_changes()


def _break_off(channel: LocalChannel | RemoteChannel) -> None:
    """Close one channel at once, and fail its requests."""
    channel.break_off()


def _do_nothing() -> None:
    """Do nothing: what `close` calls if no listener of changed faults was added."""
