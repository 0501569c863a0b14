"""What brokers of this process wait for: no response of a broker that stops stays owed.

```
handler's promise ─ kept, failed ─> owed promise
broker has stopped ───────────────> Unreachable, as at the end of a connection
who asked gives it up ────────────> the handler's promise is abandoned
```

What a handler waits for may never come once the broker's timers have stopped, such as its next turn
of the loop. Clients see their connections end; brokers of this process have none.

Source: D12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from engine.broker.local_messages import let_go
from engine.client.errors import Unreachable
from engine.host.each import do_each
from engine.host.promise import Promise

T = TypeVar("T")


class LocalRequests:
    """The responses that one broker owes to brokers of its process."""

    def __init__(self, broker_id: Callable[[], int]) -> None:
        """`broker_id` is asked for when something is owed: the broker has one by then."""
        self._broker_id = broker_id
        self._owed: dict[Promise[Any], None] = {}

    def __len__(self) -> int:
        return len(self._owed)

    def owe(self, response: Promise[T]) -> Promise[T]:
        """Return a promise of a handler's response that is kept at the latest by `end`."""
        if response.is_kept:
            return response
        owed: Promise[T] = Promise()
        owed.source = _Owed(self._owed, owed, response)
        self._owed[owed] = None

        def came() -> None:
            if owed not in self._owed:
                if response.error is None:
                    let_go(response.result())
                return
            del self._owed[owed]
            if response.error is not None:
                owed.fail(response.error)
            else:
                owed.keep(response.result())

        response.watch(came)
        return owed

    def end(self) -> None:
        """Fail what is owed with Unreachable: this broker has stopped."""
        owed, self._owed = self._owed, {}
        do_each(owed, self._fail)

    def _fail(self, owed: Promise[Any]) -> None:
        owed.fail(Unreachable("broker", self._broker_id(), "it has stopped"))


class _Owed:
    """One response that is owed."""

    def __init__(
        self, all_owed: dict[Promise[Any], None], owed: Promise[Any], response: Promise[Any]
    ) -> None:
        self._all = all_owed
        self._owed = owed
        self._response = response

    def abandon(self) -> None:
        """Owe it no more."""
        self._all.pop(self._owed, None)
        self._response.abandon()
