"""The controller's requests to brokers of other processes, by the wire.

```
queue ── head is sent ──> connection ── answer ──> on_reply, next
             ^                │ lost, silent, or no answer to the request
             └── after a pause ── a new connection, the same request again
```

A request goes out again until it is answered or the broker's znode is gone, which closes its
queue: what it asks for is the same however often it arrives, and its epochs say how old it is.

Source: CTL-4; Kafka's RequestSendThread.
Differs: the versions are those of 3.9 always; listeners with TLS or SASL are not reached, which is
logged when the broker comes up.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from engine.broker.controller_channel import InProcessChannel
from engine.errors import WireError
from engine.host.ports import Clock, Connection, Network, Timers
from engine.limits import CONTROLLER_CHANNEL_RETRY_MS, CONTROLLER_CHANNEL_TIMEOUT_MS
from engine.replication.metadata_cache import BrokerNode
from engine.wire.codec import message_codec
from engine.wire.headers import api, read_response_header, request_header_bytes

_log = logging.getLogger("kafka.controller.ControllerChannelManager")
# Kafka's number of the protocol.
_PLAINTEXT = 0

#: Versions in which the controller's requests are written and carried out.
CONTROL_VERSIONS = {
    "LeaderAndIsrRequest": 7,
    "StopReplicaRequest": 4,
    "UpdateMetadataRequest": 8,
}


class _Request(NamedTuple):
    name: str
    message: Any
    on_reply: Callable[[Any], None]


class _Link:
    """The queue to one life of a broker, and the connection that serves it."""

    def __init__(self, channel: RemoteChannel, broker_id: int, host: str, port: int) -> None:
        self._channel = channel
        self._address = host, port
        self._name = f"broker {broker_id} at {host}:{port}"
        self._requests: deque[_Request] = deque()
        self._connection: Connection | None = None
        self._correlation_id = 0
        self._is_busy = False
        self._is_closed = False
        self._is_silent = False
        self._cancel: Callable[[], None] = lambda: None

    def put(self, request: _Request) -> None:
        """Queue a request."""
        self._requests.append(request)
        self._next_soon()

    def close(self) -> None:
        """Drop everything."""
        self._is_closed = True
        self._cancel()
        self._requests.clear()
        if self._connection is not None:
            self._connection.close("the queue is closed")

    def _next_soon(self) -> None:
        if self._requests and not self._is_busy and not self._is_closed:
            self._is_busy = True
            self._channel.timers.call_soon(self._send)

    def _send(self) -> None:
        if self._is_closed:
            return
        connection = self._connection or self._connect()
        request = self._requests[0]
        version = CONTROL_VERSIONS[request.name]
        self._correlation_id += 1
        key = api(request.name.removesuffix("Request")).key
        head = request_header_bytes(
            key, version, self._correlation_id, str(self._channel.broker_id)
        )
        connection.send([head, message_codec(request.name, version).encode(request.message)])
        self._cancel = self._channel.call_in(CONTROLLER_CHANNEL_TIMEOUT_MS, self._silent)

    def _connect(self) -> Connection:
        connection = self._channel.network.connect(*self._address)
        connection.on_frame = self._answered
        connection.on_close = lambda reason: self._lost(connection, reason)
        self._connection = connection
        return connection

    def _silent(self) -> None:
        if self._connection is not None:
            self._connection.close(f"no answer within {CONTROLLER_CHANNEL_TIMEOUT_MS} ms")

    def _lost(self, connection: Connection, reason: str) -> None:
        if connection is not self._connection:
            return
        self._connection = None
        self._cancel()
        if self._is_busy and not self._is_closed:
            if not self._is_silent:
                _log.warning("%s does not answer, trying again: %s", self._name, reason)
            self._is_silent = True
            self._cancel = self._channel.call_in(CONTROLLER_CHANNEL_RETRY_MS, self._send)

    def _answered(self, frame: memoryview) -> None:
        assert self._connection is not None
        if not self._is_busy:
            self._connection.close("an answer that nobody asked for")
            return
        request = self._requests[0]
        try:
            reply = self._decoded(request.name, frame)
        except WireError as error:
            self._connection.close(str(error))
            return
        if reply is None:
            self._connection.close("an answer to another request")
            return
        self._cancel()
        self._requests.popleft()
        self._is_busy = self._is_silent = False
        self._next_soon()
        request.on_reply(reply)

    def _decoded(self, name: str, frame: memoryview) -> Any:
        """Return the reply in a frame, None if it is not to the last request."""
        version = CONTROL_VERSIONS[name]
        name = name.removesuffix("Request")
        correlation_id, position = read_response_header(frame, api(name).key, version)
        if correlation_id != self._correlation_id:
            return None
        return message_codec(f"{name}Response", version).decode(frame[position:])


class RemoteChannel:
    """Queues to brokers that are reached by their listener for brokers."""

    def __init__(
        self, network: Network, timers: Timers, clock: Clock, *, broker_id: int, listener: str
    ) -> None:
        self.network = network
        self.timers = timers
        self.broker_id = broker_id
        self._clock = clock
        self._listener = listener
        self._links: dict[int, _Link] = {}

    def open(self, broker: BrokerNode) -> None:
        """Begin a queue to a broker that came up; one that cannot be reached has none."""
        self.close(broker.broker_id)
        endpoint = broker.endpoint(self._listener)
        if endpoint is None or endpoint.security_protocol != _PLAINTEXT:
            _log.error(
                "broker %d is told nothing: it has no plain listener %s",
                broker.broker_id,
                self._listener,
            )
            return
        self._links[broker.broker_id] = _Link(self, broker.broker_id, endpoint.host, endpoint.port)

    def close(self, broker_id: int) -> None:
        """Drop the queue to a broker that is gone, with all that was not answered."""
        link = self._links.pop(broker_id, None)
        if link is not None:
            link.close()

    def send(
        self, broker_id: int, name: str, request: Any, on_reply: Callable[[Any], None]
    ) -> None:
        """Queue a request; a broker without a queue is passed over."""
        link = self._links.get(broker_id)
        if link is not None:
            link.put(_Request(name, request, on_reply))

    def call_in(self, delay_ms: int, work: Callable[[], None]) -> Callable[[], None]:
        """Run once after a delay; returns what cancels it."""
        return self.timers.call_at(self._clock.monotonic_ms() + delay_ms, work)


class BothChannels:
    """Brokers of this process by direct calls, all others by the wire."""

    def __init__(
        self, near: InProcessChannel, far: RemoteChannel, is_near: Callable[[int], bool]
    ) -> None:
        self._near = near
        self._far = far
        self._is_near = is_near
        #: The brokers with a queue in this process.
        self._opened_near: set[int] = set()

    def open(self, broker: BrokerNode) -> None:
        """Begin a queue to a broker that came up."""
        self.close(broker.broker_id)
        if self._is_near(broker.broker_id):
            self._opened_near.add(broker.broker_id)
            self._near.open(broker)
        else:
            self._far.open(broker)

    def close(self, broker_id: int) -> None:
        """Drop the queue to a broker that is gone, with all that was not answered."""
        self._opened_near.discard(broker_id)
        self._near.close(broker_id)
        self._far.close(broker_id)

    def send(
        self, broker_id: int, name: str, request: Any, on_reply: Callable[[Any], None]
    ) -> None:
        """Queue a request; a broker without a queue is passed over."""
        channel = self._near if broker_id in self._opened_near else self._far
        channel.send(broker_id, name, request, on_reply)
