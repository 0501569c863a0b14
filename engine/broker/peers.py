"""The way to another broker: a direct call in this process, a connection to any other (D12).

Who asks cannot tell the two apart: a request goes in, a promise of the response comes out. It
fails with an ApiError if the broker failed to serve it, which is of that request alone, and with
another EngineError if the broker was not reached or was lost.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

from engine.client.connection import BrokerConnection, Call
from engine.client.errors import Unreachable
from engine.client.loop_connection import LoopConnection, message_of
from engine.client.settings import Address
from engine.host.ports import Clock, Network, Timers
from engine.host.promise import Promise
from engine.replication.metadata_cache import BrokerNode
from engine.wire.headers import api

_log = logging.getLogger("kafka.server.BrokerLinks")
# Kafka's number of the protocol.
_PLAINTEXT = 0

#: Serves a request of a broker by the API's name, a version and the message, or what stands for it.
Serve: TypeAlias = Callable[[str, int, object], Promise[Any]]


class LinkSettings(NamedTuple):
    """How long answers are waited for, with Kafka's defaults, and the buffer for records.

    The buffer is the kernel's own where `replica.socket.receive.buffer.bytes` is not set.
    """

    controller_timeout_ms: int = 30_000
    replica_timeout_ms: int = 30_000
    replica_receive_buffer_bytes: int = -1


class BrokerLink(Protocol):
    """One broker, for one of those who ask."""

    def ask(self, call: Call) -> Promise[Any]:
        """Promise the response to a request; requests are served in the order they were asked."""
        ...

    def close(self) -> None:
        """Let go of it; what is owed fails."""
        ...


class NearLink:
    """A broker of this process; it may be gone, or not be there yet."""

    def __init__(self, broker_id: int, brokers: Mapping[int, Serve]) -> None:
        self._broker_id = broker_id
        self._brokers = brokers
        self._asked: Serve | None = None
        # The response to what was asked last.
        self._response: Promise[Any] | None = None

    def ask(self, call: Call) -> Promise[Any]:
        """Serve a request at once, in the highest version that it allows."""
        self._asked = serve = self._brokers.get(self._broker_id)
        if serve is None:
            return Promise.failed(Unreachable("broker", self._broker_id, "it is not running"))
        version, request = 0, call.near
        if request is None:
            stable = api(call.api_name).stable
            version = stable.highest if call.highest is None else min(call.highest, stable.highest)
            request = call.message(version) if callable(call.message) else call.message
        response = self._response = serve(call.api_name, version, request)
        return response

    @property
    def is_same(self) -> bool:
        """Tell whether the broker runs, in the same life, that was asked last."""
        return self._asked is not None and self._asked == self._brokers.get(self._broker_id)

    def close(self) -> None:
        """Give up what the last request waits for, as the end of a connection does."""
        response, self._response = self._response, None
        if response is not None:
            response.abandon()


class FarLink:
    """A broker of another process."""

    def __init__(self, connection: LoopConnection) -> None:
        self._connection = connection

    def ask(self, call: Call) -> Promise[Any]:
        """Send a request."""
        return self._connection.ask(call).then(message_of)

    def close(self) -> None:
        """End the connection."""
        self._connection.close("it is not needed any more")


class Peers:
    """Makes links to brokers by the listener that brokers reach each other by."""

    def __init__(
        self,
        network: Network,
        timers: Timers,
        clock: Clock,
        *,
        near: Mapping[int, Serve],
        broker_id: int,
        listener: str,
        settings: LinkSettings | None = None,
    ) -> None:
        """`near` are the brokers of this process, filled by whoever starts and stops them."""
        self._network = network
        self._timers = timers
        self._clock = clock
        self._near = near
        self._broker_id = broker_id
        self.listener = listener
        self._settings = settings or LinkSettings()

    def link(self, broker: BrokerNode) -> BrokerLink | None:
        """Return a controller's link to a broker, or a broker's to its controller.

        None (and an error in the log) if the broker cannot be reached. Requests name this broker's
        id as their client.
        """
        return self._link(broker, str(self._broker_id), self._settings.controller_timeout_ms)

    def replica_link(self, broker: BrokerNode, client_id: str) -> BrokerLink | None:
        """Return a follower's link to its leader, None as for `link`."""
        settings = self._settings
        return self._link(
            broker, client_id, settings.replica_timeout_ms, settings.replica_receive_buffer_bytes
        )

    def _link(
        self, broker: BrokerNode, client_id: str, timeout_ms: int, receive_buffer_bytes: int = -1
    ) -> BrokerLink | None:
        if broker.broker_id in self._near:
            return NearLink(broker.broker_id, self._near)
        endpoint = broker.endpoint(self.listener)
        if endpoint is None or endpoint.security_protocol != _PLAINTEXT:
            _log.error(
                "broker %d is not reached: it has no plain listener %s",
                broker.broker_id,
                self.listener,
            )
            return None
        connection = LoopConnection(
            self._network,
            self._timers,
            self._clock,
            Address(endpoint.host, endpoint.port),
            lambda: BrokerConnection(client_id),
            timeout_ms=timeout_ms,
            receive_buffer_bytes=receive_buffer_bytes,
        )
        return FarLink(connection)
