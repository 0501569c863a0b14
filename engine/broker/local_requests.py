"""Pending requests of other brokers in this process: each gets a response, or fails at shutdown.

```
handler's promise kept or failed ──> the requester's promise gets the same result
broker has stopped ────────────────> Unreachable, the same as for a closed connection
requester abandons its promise ────> the handler's promise is abandoned
```

After the broker's timers have stopped, the event that a handler waits for may never come. Clients
see their connections close; brokers in this process have no connection.

Source: D12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

from engine.broker.local_messages import release_response
from engine.client.errors import Unreachable
from engine.errors import EngineError
from engine.host.each import do_each
from engine.host.promise import Abandonable, Promise

T = TypeVar("T")


class _Failable(Protocol):
    """A promise of any value, as it is failed when the broker stops."""

    def fail(self, error: EngineError) -> None:
        """Set an error in place of the value."""
        ...


class LocalRequests:
    """The requests of brokers in this process that this broker has not responded to."""

    def __init__(self, broker_id: Callable[[], int]) -> None:
        """Create the set of pending requests from brokers of this process, without any.

        `broker_id` is called when requests fail.
        """
        self._broker_id = broker_id
        #: Promises of requesters, in the order of their requests.
        self._pending: dict[_Failable, None] = {}

    def __len__(self) -> int:
        """Return the number of pending requests."""
        return len(self._pending)

    def add(self, response: Promise[T]) -> Promise[T]:
        """Return a promise for the requester, kept with the handler's response; `end` fails it.

        A response after `end`, or after the requester abandoned its promise, is released.
        """
        if response.is_kept:
            return response
        pending: Promise[T] = Promise()
        pending.source = _PendingRequest(self._pending, pending, response)
        self._pending[pending] = None

        def forward() -> None:
            """Keep or fail the requester's promise.

            The response is released if the requester does not wait any more.
            """
            if pending not in self._pending:
                if response.error is None:
                    release_response(response.result())
                return
            del self._pending[pending]
            if response.error is not None:
                pending.fail(response.error)
            else:
                pending.keep(response.result())

        response.watch(forward)
        return pending

    def end(self) -> None:
        """Fail all pending requests with Unreachable: this broker has stopped."""
        pending, self._pending = self._pending, {}
        do_each(pending, self._fail)

    def _fail(self, pending: _Failable) -> None:
        """Fail one pending request because this broker has stopped."""
        pending.fail(Unreachable("broker", self._broker_id(), "it has stopped"))


class _PendingRequest:
    """Abandons the handler's promise together with the requester's."""

    def __init__(
        self, pending: dict[_Failable, None], requester: _Failable, response: Abandonable
    ) -> None:
        """Connect a requester's promise (`requester`) to the handler's promise (`response`)."""
        self._pending = pending
        self._requester = requester
        self._response = response

    def abandon(self) -> None:
        """Remove the request because its requester waits no more; abandon the handler's promise."""
        self._pending.pop(self._requester, None)
        self._response.abandon()
