"""The interfaces between the controller, its broker and the broker's handlers.

```
handlers ── ControllerView, request methods ──> Controller ── BrokerChannel ──> every live broker
                                                    │                              │
                                     ZnodeClient <──┴──<── promises (queued) ─────┘
```

Requests and responses are messages of `engine.wire.messages`, decoded (D12): LeaderAndIsrRequest
(to be written as version 7), UpdateMetadataRequest (8) and StopReplicaRequest (4); each has the
epoch of the broker it is for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from engine.errors import EngineError
from engine.host.ports import Clock, Entropy, Timers
from engine.host.promise import Promise
from engine.host.turns import never, no_time
from engine.replication.metadata_cache import BrokerNode
from engine.wire.structs import Message, Struct
from engine.znode.client import ZnodeClient


class BrokerChannel(Protocol):
    """A queue of requests to each broker (CTL-4): in order, retried until it is closed.

    No promise is kept before the call returns; one fails when its queue is closed, or is not
    there, and with an ApiError when the broker failed to serve the request.
    """

    def open(self, broker: BrokerNode) -> None:
        """Begin a queue to a broker that came up, this one among them; drops an older one."""
        ...

    def close(self, broker_id: int) -> None:
        """Drop the queue to a broker that is down, if any, with all open requests."""
        ...

    def send(self, broker_id: int, name: str, request: Struct) -> Promise[Message]:
        """Queue a request, by the name of its message; promises the response of its API."""
        ...


class ControllerReporter(Protocol):
    """Gets the controller's actions, for the operator; decides nothing."""

    def controller_changed(self, epoch: int | None) -> None:
        """Log that this broker became the controller of an epoch, or is no longer (None)."""
        ...

    def event_failed(self, event: str, error: EngineError) -> None:
        """Log that an event was abandoned midway; the next one follows."""
        ...

    def change_refused(self, subject: str, target: str, reason: str) -> None:
        """Log that a partition or replica was not moved to a state."""
        ...


class ControllerPorts(NamedTuple):
    """The outside of a controller; its events run on `timers`."""

    znodes: ZnodeClient
    channel: BrokerChannel
    clock: Clock
    timers: Timers
    entropy: Entropy
    reporter: ControllerReporter
    #: Whether work in several turns of the loop is to let others go before its time is over.
    ends_early: Callable[[], bool] = never
    #: A clock of nanoseconds, to measure events by.
    work_ns: Callable[[], int] = no_time


class ControllerView(Protocol):
    """The controller's state for handlers on the same broker, besides its request methods."""

    @property
    def is_active(self) -> bool:
        """Return whether this broker is the controller."""
        ...

    @property
    def controller_id(self) -> int:
        """Return the controller's broker id as far as this broker knows, −1 for none."""
        ...

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the topic with an id of 16 bytes, as the controller knows it."""
        ...

    def is_queued_for_deletion(self, topic: str) -> bool:
        """Return whether a topic's deletion is requested and not complete."""
        ...
