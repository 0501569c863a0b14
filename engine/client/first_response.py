"""Send one request to several brokers, any of which can respond: the first response counts.

A broker that accepts connections and does not respond, for instance a process stopped by SIGSTOP,
would otherwise use up the time of a command although the next address responds at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from engine.client.broker_connections import BrokerConnections, CallResult
from engine.client.connection import Call, Response
from engine.client.errors import TimedOut, Unreachable
from engine.client.settings import Address
from engine.errors import EngineError
from engine.limits import NEXT_BROKER_MS

if TYPE_CHECKING:
    from engine.host.ports import Clock


class FirstResponse:
    """A request in progress: sent to one more address when the last one is silent or fails."""

    def __init__(
        self,
        connections: BrokerConnections,
        clock: Clock,
        call: Call,
        deadline_ms: int,
        timeout_ms: int,
    ) -> None:
        """Create the request, which ends at `deadline_ms`.

        One address gets `timeout_ms` at most.
        """
        self._connections = connections
        self._clock = clock
        self._call = call
        self._deadline_ms = deadline_ms
        self._timeout_ms = timeout_ms
        #: Tokens of the requests without a result.
        self._requested: set[object] = set()
        #: Errors of the addresses that failed; merged if all fail.
        self._failures: list[EngineError] = []
        #: Results of other calls that arrived meanwhile; the client returns them later.
        self.of_others: list[tuple[object, CallResult]] = []

    def request_from(self, addresses: Iterable[Address]) -> Response:
        """Return the first response of any address; abandon the calls to the other addresses.

        An error that every address would return (credentials, a protocol) is raised at once. If
        none responds: Unreachable with all addresses, or TimedOut.
        """
        left = deque(dict.fromkeys(addresses))
        try:
            while left or self._requested:
                next_ms = self._deadline_ms
                if left:
                    self._submit(left.popleft())
                    next_ms = min(next_ms, self._clock.monotonic_ms() + NEXT_BROKER_MS)
                response = self._wait(next_ms, is_last=not left)
                if response is not None:
                    return response
        finally:
            self._connections.abandon(self._requested)
        raise _merged_error(self._failures)

    def _submit(self, address: Address) -> None:
        """Send the request to one more address, within the remaining time."""
        left_ms = max(self._deadline_ms - self._clock.monotonic_ms(), 1)
        token = object()
        self._requested.add(token)
        self._connections.submit(address, self._call, token, min(left_ms, self._timeout_ms))

    def _wait(self, until_ms: int, *, is_last: bool) -> Response | None:
        """Wait until `until_ms` (monotonic) for a response, and return it.

        None: request from the next address now, or all requests have failed. With `is_last` there
        is no next address, so it waits until each request has a result.
        """
        while self._requested:
            pause_ms = max(until_ms - self._clock.monotonic_ms(), 0)
            response, final = None, None
            for token, result in self._connections.wait(pause_ms):
                if token not in self._requested:
                    self.of_others.append((token, result))
                    continue
                self._requested.discard(token)
                if isinstance(result, Response):
                    response = response or result
                elif isinstance(result, Unreachable | TimedOut):
                    self._failures.append(result)
                else:
                    final = final or result
            if response is not None:
                return response
            if final is not None:
                raise final
            if not is_last and self._clock.monotonic_ms() >= until_ms:
                return None
        return None


def _merged_error(failures: list[EngineError]) -> EngineError:
    """Return one error that names each address with its reason, in order of the failures."""
    if len(failures) == 1:
        return failures[0]
    unreachable = [failure for failure in failures if isinstance(failure, Unreachable)]
    if not unreachable:
        return failures[0]
    first = unreachable[0]
    late = [str(failure) for failure in failures if not isinstance(failure, Unreachable)]
    rest = [f"{f.host}:{f.port}: {f.reason}" for f in unreachable[1:]] + late
    return Unreachable(first.host, first.port, "; ".join([first.reason, *rest]))
