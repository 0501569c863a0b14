"""Send requests of one broker to the current controller, one at a time.

```
queue ── find the controller ── unknown ─────────────────────> retry after a pause
             └─ first request ──> channel ── response ───────> promise, next request
                                   │ lost, or NOT_CONTROLLER
                                   └─────────────────────────> find it again after a pause
```

A request has no deadline: it is repeated until it has a response or the broker stops.

Source: Kafka's NodeToControllerChannelManager.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from engine.broker.peers import PeerChannel, Peers
from engine.client.connection import Call
from engine.client.errors import NoCommonVersion
from engine.errors import ApiError, EngineError
from engine.host.ports import Clock, Timers
from engine.host.promise import Promise
from engine.kafka_errors import NOT_CONTROLLER
from engine.limits import CONTROLLER_CHANNEL_RETRY_MS
from engine.replication.metadata_cache import MetadataCache
from engine.wire import messages
from engine.wire.structs import Message, Struct

_log = logging.getLogger("kafka.server.NodeToControllerChannelManager")


#: The responses to requests of brokers to the controller.
ControllerResponse: TypeAlias = (
    "messages.AlterPartitionResponse | messages.AllocateProducerIdsResponse"
)


class BrokerStopped(EngineError):
    """The request failed because the requesting broker stopped."""

    def __init__(self) -> None:
        super().__init__("this broker has stopped")


class _Request(NamedTuple):
    """A queued request and the promise of its response."""

    call: Call
    promise: Promise[Message]


class NodeToControllerChannel:
    """A queue of requests from one broker to the controller."""

    def __init__(
        self, metadata_cache: MetadataCache, peers: Peers, timers: Timers, clock: Clock
    ) -> None:
        """Create the queue of requests to the controller, without any.

        Each attempt finds the controller in the metadata cache.
        """
        self._metadata_cache = metadata_cache
        self._peers = peers
        self._timers = timers
        self._clock = clock
        #: Requests in order; the first one is in flight while `_is_busy`.
        self._requests: deque[_Request] = deque()
        #: Channel to the controller `_controller_id`. None before the first request, after a
        #: failure, and after the controller changed.
        self._channel: PeerChannel | None = None
        self._controller_id: int | None = None
        #: Whether a request is in flight, or waits for a retry.
        self._is_busy = False
        self._is_stopped = False
        #: Cancels the timer of the pause; None without one.
        self._cancel: Callable[[], None] | None = None

    def send(
        self, api_name: str, message: Callable[[int], Struct], *, highest: int | None = None
    ) -> Promise[Message]:
        """Queue a request to the controller; promise its response.

        `message` builds the request for the version that both sides know. The promise fails with
        NoCommonVersion, with ApiError if the controller fails to serve the request, and with
        BrokerStopped when this broker stops.
        """
        if self._is_stopped:
            return Promise.failed(BrokerStopped())
        request = _Request(Call(api_name, message, highest=highest), Promise())
        self._requests.append(request)
        self._send_if_idle()
        return request.promise

    def stop(self) -> None:
        """Close the channel; queued requests fail with BrokerStopped."""
        self._is_stopped = True
        if self._cancel is not None:
            self._cancel()
        requests, self._requests = self._requests, deque()
        self._forget_controller()
        for request in requests:
            request.promise.fail(BrokerStopped())

    def _send_if_idle(self) -> None:
        """Send the next request, unless one is in flight or waits for a retry."""
        if self._requests and not self._is_busy and not self._is_stopped:
            self._is_busy = True
            self._send_first()

    def _send_first(self) -> None:
        """Send the first request to the controller; retry later if none is known."""
        self._cancel = None
        channel = self._open_channel_to_controller()
        if channel is None:
            self._retry_later()
            return
        response = channel.send(self._requests[0].call)
        response.watch(lambda: self._on_response(response))

    def _open_channel_to_controller(self) -> PeerChannel | None:
        """Return a channel to the current controller, None if it is unknown or unreachable."""
        controller_id = self._metadata_cache.controller_id
        if controller_id != self._controller_id:
            self._forget_controller()
        if self._channel is None and controller_id is not None:
            broker = self._metadata_cache.brokers.get(controller_id)
            self._channel = None if broker is None else self._peers.channel(broker)
            self._controller_id = controller_id
        return self._channel

    def _forget_controller(self) -> None:
        """Close the channel; the next attempt finds the controller in the metadata cache."""
        channel, self._channel, self._controller_id = self._channel, None, None
        if channel is not None:
            channel.close()

    def _on_response(self, response: Promise[ControllerResponse]) -> None:
        """Complete the first request with its response, and send the next one.

        If the controller has moved, or the connection fails, the same request is sent again.
        """
        if self._is_stopped:
            return
        error = response.error
        if error is None and _is_from_another(response.result()):
            self._forget_controller()
            self._retry_later()
        elif error is None or isinstance(error, ApiError | NoCommonVersion):
            promise = self._requests.popleft().promise
            self._is_busy = False
            if error is None:
                promise.keep(response.result())
            else:
                promise.fail(error)
            self._send_if_idle()
        else:
            _log.info("controller %s: %s, trying again", self._controller_id, error)
            self._forget_controller()
            self._retry_later()

    def _retry_later(self) -> None:
        """Send the first request again after CONTROLLER_CHANNEL_RETRY_MS."""
        due_ms = self._clock.monotonic_ms() + CONTROLLER_CHANNEL_RETRY_MS
        self._cancel = self._timers.call_at(due_ms, self._send_first)


def _is_from_another(response: ControllerResponse) -> bool:
    """True if a response has NOT_CONTROLLER for the request or a partition: send it again."""
    if response.error_code == NOT_CONTROLLER:
        return True
    return isinstance(response, messages.AlterPartitionResponse) and any(
        partition.error_code == NOT_CONTROLLER
        for topic in response.topics
        for partition in topic.partitions
    )
