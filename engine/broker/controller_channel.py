"""The controller's requests to brokers of the same process (D12).

The decoded message crosses as it is. Each broker has a queue, and its next request leaves when
the one before is answered: roles and metadata are applied in the order they were decided.

Source: CTL-4; Kafka's RequestSendThread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from engine.api.exchange import Deferred
from engine.host.ports import Timers
from engine.replication.metadata_cache import BrokerNode

#: Serves a request by the name of its message: the reply, or a Deferred.
Serve: TypeAlias = Callable[[str, Any], Any]


class _Request(NamedTuple):
    name: str
    message: Any
    on_reply: Callable[[Any], None]


class _Queue:
    """Requests to one life of a broker."""

    __slots__ = ("is_busy", "is_closed", "requests")

    def __init__(self) -> None:
        self.requests: deque[_Request] = deque()
        self.is_busy = False
        self.is_closed = False


class InProcessChannel:
    """Queues to brokers of this process; see `engine.controller.ports.BrokerChannel`."""

    def __init__(self, timers: Timers, brokers: dict[int, Serve]) -> None:
        self._timers = timers
        #: Filled by whoever starts and stops brokers.
        self._brokers = brokers
        self._queues: dict[int, _Queue] = {}

    def open(self, broker: BrokerNode) -> None:
        """Begin a queue to a broker that came up."""
        self.close(broker.broker_id)
        self._queues[broker.broker_id] = _Queue()

    def close(self, broker_id: int) -> None:
        """Drop the queue to a broker that is gone, with all that was not answered."""
        queue = self._queues.pop(broker_id, None)
        if queue is not None:
            queue.is_closed = True
            queue.requests.clear()

    def send(
        self, broker_id: int, name: str, request: Any, on_reply: Callable[[Any], None]
    ) -> None:
        """Queue a request; a broker without a queue is passed over."""
        queue = self._queues.get(broker_id)
        if queue is not None:
            queue.requests.append(_Request(name, request, on_reply))
            self._next_soon(broker_id, queue)

    def _next_soon(self, broker_id: int, queue: _Queue) -> None:
        if queue.requests and not queue.is_busy:
            queue.is_busy = True
            self._timers.call_soon(lambda: self._deliver(broker_id, queue))

    def _deliver(self, broker_id: int, queue: _Queue) -> None:
        serve = self._brokers.get(broker_id)
        if queue.is_closed or serve is None:
            # Its end will be seen in the znodes, and the queue closed.
            return
        request = queue.requests.popleft()
        reply = serve(request.name, request.message)
        if isinstance(reply, Deferred):
            reply.watch(lambda found: self._answered(broker_id, queue, request, found))
        else:
            self._answered(broker_id, queue, request, reply)

    def _answered(self, broker_id: int, queue: _Queue, request: _Request, reply: Any) -> None:
        if queue.is_closed:
            return
        queue.is_busy = False
        self._next_soon(broker_id, queue)
        request.on_reply(reply)
