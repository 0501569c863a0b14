"""The port for HTTP: one request, one complete response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from engine.errors import EngineError


class HttpUnreachable(EngineError):
    """A server gave no response."""

    exit_code = 3
    #: A retry may succeed.
    may_pass = True

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url}: {reason}")
        self.url = url
        self.reason = reason


class HttpResponse(NamedTuple):
    """A server's response: status and body."""

    status: int
    body: bytes


class Http(Protocol):
    """Sends requests to servers."""

    def get(self, url: str, headers: Mapping[str, str], timeout_s: float) -> HttpResponse:
        """Return the response of any status; raises HttpUnreachable if there is none."""
        ...
