"""What a handler is given and what it gives back.

A handler returns the reply, or a `Deferred` that somebody completes later, or None for a request
that is owed no answer (a produce with acks=0). It never waits. A reply is a message; or where the
handler has written its body itself, the bytes, or an `EncodedReply` of several parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from engine.api.admission import Session
from engine.host.ports import SendPart


class Exchange(NamedTuple):
    """One request on its way through a handler: all but its body.

    `throttle_ms` is how long its connection rests then, as the answer says.
    """

    session: Session
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    received_ms: int
    throttle_ms: int = 0


class EncodedReply(NamedTuple):
    """A reply's body as it goes out, in parts, behind the header that the server writes.

    `on_sent` is run once, when all of it has left or the connection is gone: only then may the
    files of its regions be closed.
    """

    parts: list[SendPart]
    on_sent: Callable[[], None] | None = None


class Deferred:
    """A reply that is not there yet; completed exactly once, before or after it is watched."""

    # On the class: most are complete at once, and few attributes are ever set.
    is_complete = False
    #: What it was completed with.
    reply: Any = None
    _watcher: Callable[[Any], None] | None = None

    def complete(self, reply: Any) -> None:
        """Give the reply."""
        assert not self.is_complete, "a reply is given once"
        self.is_complete = True
        self.reply = reply
        if self._watcher is not None:
            self._watcher(reply)

    def watch(self, watcher: Callable[[Any], None]) -> None:
        """Run with the reply, at once if it is there."""
        assert self._watcher is None
        self._watcher = watcher
        if self.is_complete:
            watcher(self.reply)

    def then(self, step: Callable[[Any], Any]) -> Deferred:
        """Return the reply that a step makes of this one."""
        following = Deferred()
        self.watch(lambda reply: following.complete(step(reply)))
        return following


class CloseConnection(Exception):
    """Raised by a handler to end the connection without an answer.

    A produce with acks=0 that fails has no other way to say so.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


Handler: TypeAlias = Callable[[Any, Exchange], Any]
