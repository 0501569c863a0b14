"""The gate before a connection's requests: it authenticates the client, and again later.

A listener with SASL:

```
frame ─ not known yet ─────────────> SaslAuthenticator ─ response
      │                                  └─ failed ─ delay: nothing is read ─ response ─ end
      ├─ known, and sessions end ─ SaslHandshake ─> SaslAuthenticator
      │                          └─ expired ─> end
      └─ known ───────────────────────────────────> ClientConnection.take
```

Where sessions do not end the gate steps aside once the client is known: the connection's frames go
to `ClientConnection.take` directly, as those of a listener in plain text do all the while.

A listener with TLS alone has a gate that is passed once: the first frame comes behind the
handshake, and the certificate says who the client is.

An authentication has a deadline: a client that goes on asking for versions would never be idle.

Source: KafkaChannel, Selector.DelayedAuthenticationFailureClose, SocketServer's
processCompletedReceives of 3.9.1. Differs: the deadline; Kafka's only bound is that of idle
connections, which is as long.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from engine.api.admission import Session
from engine.api.sasl_authenticator import (
    HANDSHAKE_KEY,
    AuthenticationStep,
    SaslAuthenticator,
    SaslListener,
)
from engine.errors import EngineError
from engine.host.ports import Clock, Connection, FrameBound, PauseReason, Timers

_KEY: Final = struct.Struct(">h")


class Authentication(NamedTuple):
    """Authentication by a listener."""

    listener: SaslListener
    timers: Timers
    clock: Clock
    #: How long a client that failed waits for the response.
    failure_delay_ms: int
    #: The largest frame of a client that is not known.
    receive_bytes_max: int
    #: How long an authentication may take, 0 for any time.
    deadline_ms: int = 0


class AuthenticatedClient(Protocol):
    """The connection behind the gate."""

    def take(self, frame: memoryview) -> None:
        """Serve one request frame of a client that is known."""
        ...

    def respond(self, content: bytes) -> None:
        """Send a response behind those that are still owed."""
        ...

    def end_unauthenticated(self, reason: str) -> None:
        """End the connection, behind the responses that are still owed."""
        ...


class CertificateGate:
    """Takes the first frame of a connection; the client's principal comes from its certificate."""

    def __init__(
        self,
        connection: Connection,
        client: AuthenticatedClient,
        session: Session,
        principal_of: Callable[[bytes | None], str],
    ) -> None:
        """Take the connection's frames until then; `principal_of` raises EngineErrors."""
        self._connection = connection
        self._client = client
        self._session = session
        self._principal_of = principal_of
        #: Whether the client's principal has been set, by the first frame.
        self._is_known = False
        connection.on_frame = self._on_frame

    def _on_frame(self, frame: memoryview) -> None:
        """Authenticate the client by its certificate, then serve this frame and all later ones.

        Closes the connection if the certificate's name cannot be mapped to a principal.
        """
        if not self._is_known:
            try:
                principal = self._principal_of(self._connection.peer_certificate())
            except EngineError as error:
                self._client.end_unauthenticated(f"Failed authentication ({error})")
                return
            self._is_known = True
            self._session.authenticate(principal)
            self._connection.on_frame = self._client.take
        # Frames of the same read still come here.
        self._client.take(frame)


class AuthenticationGate:
    """Takes the frames of one connection to a listener with SASL."""

    def __init__(
        self,
        connection: Connection,
        client: AuthenticatedClient,
        authenticator: SaslAuthenticator,
        authentication: Authentication,
    ) -> None:
        """Take the connection's frames from now on."""
        self._connection = connection
        self._client = client
        self._authenticator = authenticator
        self._authentication = authentication
        #: Cancels the timer of the deadline, or of the delayed close after a failure.
        self._cancel: Callable[[], None] = _nothing
        connection.on_frame = self._on_frame
        self._begin()

    def close(self) -> None:
        """Do nothing more: the connection has ended."""
        self._cancel()

    def _on_frame(self, frame: memoryview) -> None:
        """Pass a frame to the authenticator until the client is known, then to the server."""
        authenticator = self._authenticator
        if authenticator.is_complete:
            self._on_authenticated_frame(frame)
            return
        self._follow(authenticator.take(frame))

    def _on_authenticated_frame(self, frame: memoryview) -> None:
        """Serve a frame, begin a re-authentication, or end an expired connection."""
        authenticator = self._authenticator
        if frame[: _KEY.size] == _KEY.pack(HANDSHAKE_KEY) and authenticator.begins_again():
            self._begin()
            self._follow(authenticator.again(frame))
        elif authenticator.is_expired:
            self._client.end_unauthenticated("its authentication has expired")
        else:
            self._client.take(frame)

    def _follow(self, step: AuthenticationStep) -> None:
        """Send an authentication step's response, or fail; serve frames once it is complete."""
        if step.end_reason is not None:
            self._fail(step)
            return
        if step.response is not None:
            self._client.respond(step.response)
        if self._authenticator.is_complete:
            self._cancel()
            self._connection.bound_frames(None)
            if self._authenticator.expires_ms is None:
                # Frames of the same read still come here.
                self._connection.on_frame = self._client.take

    def _begin(self) -> None:
        """Bound the size and the time of an authentication.

        An unauthenticated client must not hold memory or a connection for long.
        """
        authentication = self._authentication
        bound = FrameBound(authentication.receive_bytes_max, self._too_large)
        self._connection.bound_frames(bound)
        if authentication.deadline_ms > 0:
            self._later(authentication.deadline_ms, self._expire)

    def _later(self, delay_ms: int, run: Callable[[], None]) -> None:
        self._cancel()
        due_ms = self._authentication.clock.monotonic_ms() + delay_ms
        self._cancel = self._authentication.timers.call_at(due_ms, run)

    def _expire(self) -> None:
        self._client.end_unauthenticated("Failed authentication (it took too long)")

    def _too_large(self, size_bytes: int) -> None:
        self._follow(self._authenticator.too_large(size_bytes))

    def _fail(self, step: AuthenticationStep) -> None:
        """End the connection, behind the delay that keeps a client from trying fast."""
        delay_ms = self._authentication.failure_delay_ms
        self._cancel()
        self._connection.pause(PauseReason.AUTHENTICATION)

        def end() -> None:
            if step.response is not None:
                self._client.respond(step.response)
            self._client.end_unauthenticated(f"Failed authentication ({step.end_reason})")

        if step.is_delayed and delay_ms > 0:
            self._later(delay_ms, end)
        else:
            end()


def _nothing() -> None:
    """Stand for what cancels something, where nothing is to happen."""
