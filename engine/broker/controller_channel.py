"""The controller's requests to brokers, in this process or in other ones.

```
queue ── first request ──> channel ── response, or the broker failed to serve it ─> promise, next
             ^             │ connection lost, timeout, not connected
             └── after a pause, the same request again, over a new channel
```

Each broker has a queue, and a request is sent after the response to the one before: roles and
metadata are applied in the order of the decisions. A request is repeated until it has a response or
the broker's znode is removed, which closes its queue. Requests are idempotent, and their epochs
order them.

Source: D12, CTL-4; Kafka's RequestSendThread.
Differs: the versions are always those of 3.9; a broker whose inter-broker listener has TLS or SASL
cannot be reached, which is logged when the broker comes up.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from engine.broker.peers import PeerChannel, Peers
from engine.client.connection import Call
from engine.errors import ApiError, EngineError
from engine.host.ports import Clock, Timers
from engine.host.promise import Promise
from engine.limits import CONTROLLER_CHANNEL_RETRY_MS
from engine.replication.metadata_cache import BrokerNode
from engine.wire.structs import Message, Struct

_log = logging.getLogger("kafka.controller.ControllerChannelManager")

#: The versions in which the controller's requests are encoded.
CONTROL_VERSIONS = {"LeaderAndIsr": 7, "StopReplica": 4, "UpdateMetadata": 8}


class QueueClosed(EngineError):
    """The queue to a broker was closed, or does not exist: there will be no response."""

    def __init__(self, broker_id: int) -> None:
        super().__init__(f"broker {broker_id} has no queue of requests")
        self.broker_id = broker_id


class _Request(NamedTuple):
    """A queued request and the promise of its response."""

    call: Call
    promise: Promise[Message]


class _Queue:
    """The queue of requests to one registration of a broker."""

    def __init__(
        self,
        broker_id: int,
        channel: PeerChannel,
        new_channel: Callable[[], PeerChannel | None],
        timers: Timers,
        clock: Clock,
    ) -> None:
        """Create the empty queue of the controller's requests to one broker.

        `new_channel` opens another channel after one was lost.
        """
        self._broker_id = broker_id
        self._channel = channel
        self._new_channel = new_channel
        self._timers = timers
        self._clock = clock
        #: Requests in order; the first one is in flight while `_is_busy`.
        self._requests: deque[_Request] = deque()
        #: Whether a request is scheduled, in flight, or waits for a retry.
        self._is_busy = False
        self._is_closed = False
        #: Whether the failure of the first request was logged: a repeated failure is not.
        self._is_silent = False
        #: Cancels the timer of the pause; None without a pause.
        self._cancel: Callable[[], None] | None = None

    def put(self, call: Call) -> Promise[Message]:
        """Add a request to the queue; return the promise of its response."""
        request = _Request(call, Promise())
        self._requests.append(request)
        self._schedule_first()
        return request.promise

    def close(self) -> None:
        """Close the channel; all queued requests fail with QueueClosed."""
        self._is_closed = True
        if self._cancel is not None:
            self._cancel()
        self._channel.close()
        for request in self._requests:
            request.promise.fail(QueueClosed(self._broker_id))
        self._requests.clear()

    def _schedule_first(self) -> None:
        """Send the first request in a later turn of the event loop, unless one is in progress."""
        if self._requests and not self._is_busy and not self._is_closed:
            self._is_busy = True
            self._timers.call_soon(self._send_first)

    def _send_first(self) -> None:
        """Send the first request of the queue."""
        self._cancel = None
        if self._is_closed:
            return
        response = self._channel.send(self._requests[0].call)
        response.watch(lambda: self._on_response(response))

    def _on_response(self, response: Promise[Struct]) -> None:
        """Complete the first request with its response, and send the next one.

        After a connection error the same request is sent again later, without end.
        """
        if self._is_closed:
            return
        error = response.error
        if error is not None and not isinstance(error, ApiError):
            self._resend_later(error)
            return
        request = self._requests.popleft()
        self._is_busy = self._is_silent = False
        self._schedule_first()
        if error is not None:
            name = request.call.api_name
            _log.error("broker %d failed to serve %s: %s", self._broker_id, name, error)
            request.promise.fail(error)
        else:
            request.promise.keep(response.result())

    def _resend_later(self, error: EngineError) -> None:
        """Send the first request again after a pause; over a new channel if one can be opened."""
        if not self._is_silent:
            _log.warning("broker %d does not answer, trying again: %s", self._broker_id, error)
        self._is_silent = True
        following = self._new_channel()
        if following is not None:
            self._channel.close()
            self._channel = following
        due_ms = self._clock.monotonic_ms() + CONTROLLER_CHANNEL_RETRY_MS
        self._cancel = self._timers.call_at(due_ms, self._send_first)


class ControllerChannel:
    """The queues to brokers; implements `engine.controller.ports.BrokerChannel`."""

    def __init__(self, peers: Peers, timers: Timers, clock: Clock) -> None:
        """Create the controller's queues of requests to brokers, without any; `open` adds one."""
        self._peers = peers
        self._timers = timers
        self._clock = clock
        self._queues: dict[int, _Queue] = {}

    def open(self, broker: BrokerNode) -> None:
        """Create the queue of requests to a broker that came up, in place of an earlier one.

        No queue is created if the broker has no endpoint at which it can be reached.
        """
        self.close(broker.broker_id)
        channel = self._peers.channel(broker)
        if channel is not None:
            new_channel = partial(self._peers.channel, broker)
            queue = _Queue(broker.broker_id, channel, new_channel, self._timers, self._clock)
            self._queues[broker.broker_id] = queue

    def close(self, broker_id: int) -> None:
        """Close the queue to a broker that went down; its requests fail with QueueClosed."""
        queue = self._queues.pop(broker_id, None)
        if queue is not None:
            queue.close()

    def send(self, broker_id: int, name: str, request: Struct) -> Promise[Message]:
        """Queue a request to a broker; return the promise of its response.

        It fails with QueueClosed if there is no queue to the broker, and when the queue is closed.
        """
        queue = self._queues.get(broker_id)
        if queue is None:
            return Promise.failed(QueueClosed(broker_id))
        api_name = name.removesuffix("Request")
        version = CONTROL_VERSIONS[api_name]
        return queue.put(Call(api_name, request, version, version))
