"""The controller's requests to brokers of the same process (D12).

The decoded message crosses as it is; the order of requests to one broker is kept, and no answer
comes before the call that asked has returned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from engine.api.exchange import Deferred
from engine.host.ports import Timers
from engine.replication.metadata_cache import BrokerNode

#: Serves a request by the name of its message: the reply, or a Deferred.
Serve: TypeAlias = Callable[[str, Any], Any]


class InProcessChannel:
    """Queues to brokers of this process; see `engine.controller.ports.BrokerChannel`."""

    def __init__(self, timers: Timers, brokers: dict[int, Serve]) -> None:
        self._timers = timers
        #: Filled by whoever starts and stops brokers.
        self._brokers = brokers
        #: Lives of queues: a queue that was closed and opened again is another one.
        self._open: dict[int, object] = {}

    def open(self, broker: BrokerNode) -> None:
        """Begin a queue to a broker that came up."""
        self._open[broker.broker_id] = object()

    def close(self, broker_id: int) -> None:
        """Drop the queue to a broker that is gone, with all that was not answered."""
        self._open.pop(broker_id, None)

    def send(
        self, broker_id: int, name: str, request: Any, on_reply: Callable[[Any], None]
    ) -> None:
        """Queue a request; a broker without a queue is passed over."""
        life = self._open.get(broker_id)
        if life is None:
            return

        def answer(reply: Any) -> None:
            if self._open.get(broker_id) is life:
                on_reply(reply)

        def deliver() -> None:
            serve = self._brokers.get(broker_id)
            if serve is None or self._open.get(broker_id) is not life:
                return
            reply = serve(name, request)
            if isinstance(reply, Deferred):
                reply.watch(lambda found: self._timers.call_soon(lambda: answer(found)))
            else:
                answer(reply)

        self._timers.call_soon(deliver)
