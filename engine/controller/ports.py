"""The interfaces between the controller, its broker and the broker's handlers.

```
handlers ── ControllerView, request methods ──> Controller ── BrokerChannel ──> every live broker
                                                    │                              │
                                     ZnodeClient <──┴──<── promises (queued) ─────┘
```

Requests and responses are decoded messages of `engine.wire.messages` (D12): LeaderAndIsrRequest
(encoded in version 7), UpdateMetadataRequest (8) and StopReplicaRequest (4); each has the epoch of
its receiver.
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
    """A queue of requests to each broker (CTL-4): sent in order, retried until the queue is closed.

    A promise is kept after `send` has returned. It fails if its queue is closed or does not exist,
    and with ApiError if the broker failed to serve the request.
    """

    def open(self, broker: BrokerNode) -> None:
        """Create the queue of requests to a broker; an older queue to it is dropped."""
        ...

    def close(self, broker_id: int) -> None:
        """Drop the queue to a broker, if it exists, with all its requests."""
        ...

    def send(self, broker_id: int, name: str, request: Struct) -> Promise[Message]:
        """Queue a request to a broker, of the message type `name`; promise the response."""
        ...


class ControllerReporter(Protocol):
    """Logs the controller's actions for the operator."""

    def on_controller_change(self, epoch: int | None) -> None:
        """Log that this broker became the controller in `epoch`, or resigned (None)."""
        ...

    def event_failed(self, event: str, error: EngineError) -> None:
        """Log that an event ended with an error; the next event follows."""
        ...

    def change_refused(self, subject: str, target: str, reason: str) -> None:
        """Log that a partition or replica does not change to the phase `target`."""
        ...


class ControllerPorts(NamedTuple):
    """The interfaces that a controller uses; its events run on `timers`."""

    znodes: ZnodeClient
    channel: BrokerChannel
    clock: Clock
    timers: Timers
    entropy: Entropy
    reporter: ControllerReporter
    #: Returns True if work in several turns of the loop has to yield before its share of time is
    #: over.
    ends_early: Callable[[], bool] = never
    #: Returns a monotonic time in ns, to measure events.
    work_ns: Callable[[], int] = no_time


class ControllerView(Protocol):
    """The controller's state for request handlers on the same broker."""

    @property
    def is_active(self) -> bool:
        """True if this broker is the controller."""
        ...

    @property
    def controller_id(self) -> int:
        """Return the broker id of the controller as last read, −1 for none."""
        ...

    def topic_name(self, topic_id: bytes) -> str | None:
        """Return the name of the topic with this id (16 bytes), None for an unknown id."""
        ...

    def is_queued_for_deletion(self, topic: str) -> bool:
        """True if a topic's deletion is requested and not complete."""
        ...
