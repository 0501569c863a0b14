"""Look-ups of host names, each on a thread of its own: a name server may take seconds.

A look-up in progress serves all callers that ask for the same name, so there are never more threads
than names. The threads belong to no pool: one that hangs must not delay other look-ups or the exit
of the process.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from engine.host.event_loop import EventLoop


class HostAddress(NamedTuple):
    """A numeric address and the socket family that reaches it."""

    family: socket.AddressFamily
    address: str


class LookupFailed(NamedTuple):
    """The reason why a name has no address."""

    reason: str


Found: TypeAlias = "list[HostAddress] | LookupFailed"

#: Calls the system's resolver, and blocks: `socket.getaddrinfo`, except in tests.
Resolve: TypeAlias = Callable[[str], list[HostAddress]]


def parse_address(host: str) -> HostAddress | None:
    """Return a host that is written as a numeric address, None for a name."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with suppress(OSError, ValueError):
            socket.inet_pton(family, host)
            return HostAddress(family, host)
    return None


def resolve(host: str) -> list[HostAddress]:
    """Return the addresses of a host, in the system's order of preference; blocks.

    Raises OSError, or ValueError for an invalid name (an empty or too long label).
    """
    rows = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [HostAddress(family, str(address[0])) for family, _, _, _, address in rows]


def look_up(host: str, resolver: Resolve = resolve) -> Found:
    """Return the addresses of a host, or the reason why there are none; blocks.

    A numeric address is returned as it is.
    """
    numeric = parse_address(host)
    if numeric is not None:
        return [numeric]
    try:
        return resolver(host)
    except (OSError, ValueError) as error:
        return LookupFailed(reason_of(error))


def reason_of(error: OSError | ValueError) -> str:
    """Return the message for a failed look-up; a ValueError means an invalid name."""
    if isinstance(error, OSError):
        return f"unknown host: {error.strerror or error}"
    return f"not the name of a host: {getattr(error, 'reason', None) or error}"


class NameLookups:
    """The look-ups in progress of one process."""

    def __init__(self, loop: EventLoop, resolver: Resolve = resolve) -> None:
        self._loop = loop
        self._resolver = resolver
        self._waiting: dict[str, list[Callable[[Found], None]]] = {}

    def start_lookup(self, host: str, on_found: Callable[[Found], None]) -> None:
        """Resolve a name; `on_found` is called on a later turn of the loop."""
        waiting = self._waiting.get(host)
        if waiting is not None:
            waiting.append(on_found)
            return
        self._waiting[host] = [on_found]
        name = f"kafka-lookup-{host}"
        thread = threading.Thread(target=self._look_up, args=(host,), name=name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            # The machine has no thread left; the next caller tries again.
            failed = LookupFailed(f"unknown host: {error}")
            self._loop.call_soon(lambda: self._end(host, failed))

    def _look_up(self, host: str) -> None:
        """Look a host up on this thread, and hand the result to the loop."""
        found = look_up(host, self._resolver)
        # A loop that has ended meanwhile accepts no more calls.
        with suppress(RuntimeError):
            self._loop.call_from_thread(lambda: self._end(host, found))

    def _end(self, host: str, found: Found) -> None:
        """Hand a look-up's result, on the loop's thread, to all callers that wait for the host."""
        for on_found in self._waiting.pop(host):
            on_found(found)
