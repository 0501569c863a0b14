"""The open sessions and their deadlines. Pure: the time is an argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from engine.znode.errors import SessionExpired

#: Called once when a session expires; it only notes the expiry and never raises.
OnExpired: TypeAlias = Callable[[], None]


class _Session:
    __slots__ = ("deadline_ms", "on_expired", "timeout_ms")

    def __init__(self, timeout_ms: int, deadline_ms: int, on_expired: OnExpired | None) -> None:
        self.timeout_ms = timeout_ms
        self.deadline_ms = deadline_ms
        self.on_expired = on_expired


class SessionTable:
    """Sessions by id; times are of the monotonic clock."""

    def __init__(self) -> None:
        self._sessions: dict[int, _Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def ids(self) -> list[int]:
        """Return the ids of the open sessions, oldest first."""
        return sorted(self._sessions)

    def add(
        self, session_id: int, timeout_ms: int, now_ms: int, on_expired: OnExpired | None
    ) -> None:
        """Add a session that begins now; `on_expired` is called if its timeout ends it."""
        self._sessions[session_id] = _Session(timeout_ms, now_ms + timeout_ms, on_expired)

    def touch(self, session_id: int, now_ms: int) -> None:
        """Restart a session's timeout after a request; raise SessionExpired if it ended."""
        session = self._sessions.get(session_id)
        if session is None:
            raise SessionExpired(session_id)
        session.deadline_ms = now_ms + session.timeout_ms

    def take_over(self, session_id: int, now_ms: int, on_expired: OnExpired | None) -> int:
        """Continue a session for a client that reconnected; return its timeout in ms.

        `on_expired` replaces the callback of the earlier connection. Raises SessionExpired.
        """
        self.touch(session_id, now_ms)
        session = self._sessions[session_id]
        session.on_expired = on_expired
        return session.timeout_ms

    def remove(self, session_id: int) -> OnExpired | None:
        """End a session and return its `on_expired`; raises SessionExpired if it has ended."""
        session = self._sessions.pop(session_id, None)
        if session is None:
            raise SessionExpired(session_id)
        return session.on_expired

    def overdue(self, now_ms: int) -> list[int]:
        """Return the ids of the sessions whose deadline has passed, the earliest deadline first."""
        by_deadline = [
            (session.deadline_ms, session_id)
            for session_id, session in self._sessions.items()
            if session.deadline_ms <= now_ms
        ]
        return [session_id for _, session_id in sorted(by_deadline)]

    def next_deadline_ms(self) -> int | None:
        """Return when the next session would expire (monotonic ms), None without sessions."""
        return min((session.deadline_ms for session in self._sessions.values()), default=None)
