"""Authentication of a connection's client before its first request, and re-authentication later.

A listener with SASL:

```
frame ─ unauthenticated ───────────> SaslAuthenticator ─ response
      │                                  └─ failed ─ delay without reading ─ response ─ close
      ├─ authenticated, sessions expire ─ SaslHandshake ─> SaslAuthenticator
      │                                 └─ expired ─> close
      └─ authenticated ───────────────────────────> ClientConnection.serve_frame
```

If sessions do not expire, the gate is removed after the authentication: the connection's frames go
directly to `ClientConnection.serve_frame`, as on a plaintext listener.

On a listener with TLS alone, the first frame arrives after the TLS handshake, and the client's
principal is taken from its certificate once.

An authentication has a deadline: a client that keeps sending ApiVersions would never be idle.

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
    """The settings by which a listener authenticates its clients."""

    listener: SaslListener
    timers: Timers
    clock: Clock
    #: Delay of the response to a failed authentication.
    failure_delay_ms: int
    #: The largest frame of an unauthenticated client.
    receive_bytes_max: int
    #: Time limit of an authentication; 0 for no limit.
    deadline_ms: int = 0


class AuthenticatedClient(Protocol):
    """The connection that the gate protects."""

    def serve_frame(self, frame: memoryview) -> None:
        """Serve one request frame of a client that is authenticated."""
        ...

    def respond(self, content: bytes) -> None:
        """Send a response to an authentication request, after the pending responses."""
        ...

    def end_unauthenticated(self, reason: str) -> None:
        """Close the connection of a client that failed to authenticate.

        The responses that are still pending are sent first.
        """
        ...


class CertificateGate:
    """Sets the client's principal from its TLS certificate when the first frame arrives."""

    def __init__(
        self,
        connection: Connection,
        client: AuthenticatedClient,
        session: Session,
        principal_of: Callable[[bytes | None], str],
    ) -> None:
        """Handle the connection's first frame; `principal_of` may raise EngineErrors."""
        self._connection = connection
        self._client = client
        self._session = session
        self._principal_of = principal_of
        #: Whether the client's principal has been set, by the first frame.
        self._is_known = False
        connection.on_frame = self._on_frame

    def _on_frame(self, frame: memoryview) -> None:
        """Authenticate the client by its TLS certificate at its first frame, and serve all frames.

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
            self._connection.on_frame = self._client.serve_frame
        # Frames of the same read are still passed to the gate.
        self._client.serve_frame(frame)


class AuthenticationGate:
    """Handles the frames of one connection to a SASL listener until the client is authenticated."""

    def __init__(
        self,
        connection: Connection,
        client: AuthenticatedClient,
        authenticator: SaslAuthenticator,
        authentication: Authentication,
    ) -> None:
        """Handle the connection's frames from now on."""
        self._connection = connection
        self._client = client
        self._authenticator = authenticator
        self._authentication = authentication
        #: Cancels the timer of the deadline, or of the delayed close after a failure.
        self._cancel: Callable[[], None] = _nothing
        connection.on_frame = self._on_frame
        self._start_authentication()

    def close(self) -> None:
        """Cancel the timer of the authentication, because the connection has ended."""
        self._cancel()

    def _on_frame(self, frame: memoryview) -> None:
        """Pass a frame to the authenticator, or to the server once the client is authenticated."""
        authenticator = self._authenticator
        if authenticator.is_complete:
            self._on_authenticated_frame(frame)
            return
        self._apply_step(authenticator.take(frame))

    def _on_authenticated_frame(self, frame: memoryview) -> None:
        """Serve a frame of a client that has authenticated.

        A SaslHandshake may begin a re-authentication (KIP-368); any other frame after the session's
        expiry closes the connection.
        """
        authenticator = self._authenticator
        if (
            frame[: _KEY.size] == _KEY.pack(HANDSHAKE_KEY)
            and authenticator.begin_reauthentication()
        ):
            self._start_authentication()
            self._apply_step(authenticator.reauthenticate(frame))
        elif authenticator.is_expired:
            self._client.end_unauthenticated("its authentication has expired")
        else:
            self._client.serve_frame(frame)

    def _apply_step(self, step: AuthenticationStep) -> None:
        """Send the response of an authentication step; close the connection if the step failed.

        Once authentication is complete, its limits are removed and frames are served.
        """
        if step.end_reason is not None:
            self._close_after_failure(step)
            return
        if step.response is not None:
            self._client.respond(step.response)
        if self._authenticator.is_complete:
            self._cancel()
            self._connection.bound_frames(None)
            if self._authenticator.expires_ms is None:
                # Frames of the same read are still passed to the gate.
                self._connection.on_frame = self._client.serve_frame

    def _start_authentication(self) -> None:
        """Limit the frame size and the duration of an authentication.

        An unauthenticated client must not use much memory, or hold a connection for long.
        """
        authentication = self._authentication
        bound = FrameBound(authentication.receive_bytes_max, self._too_large)
        self._connection.bound_frames(bound)
        if authentication.deadline_ms > 0:
            self._schedule(authentication.deadline_ms, self._expire)

    def _schedule(self, delay_ms: int, run: Callable[[], None]) -> None:
        """Call `run` after `delay_ms`, instead of what was scheduled before.

        It is not called if the connection closes before.
        """
        self._cancel()
        due_ms = self._authentication.clock.monotonic_ms() + delay_ms
        self._cancel = self._authentication.timers.call_at(due_ms, run)

    def _expire(self) -> None:
        """Close a connection whose authentication has not completed before its deadline."""
        self._client.end_unauthenticated("Failed authentication (it took too long)")

    def _too_large(self, size_bytes: int) -> None:
        """Fail the authentication, because the client sent a frame above the size limit."""
        self._apply_step(self._authenticator.refuse_large_frame(size_bytes))

    def _close_after_failure(self, step: AuthenticationStep) -> None:
        """Send the last response and close the connection of a client that failed to authenticate.

        Both happen after `connection.failed.authentication.delay.ms`, which prevents fast retries;
        nothing is read meanwhile.
        """
        delay_ms = self._authentication.failure_delay_ms
        self._cancel()
        self._connection.pause(PauseReason.AUTHENTICATION)

        def end() -> None:
            if step.response is not None:
                self._client.respond(step.response)
            self._client.end_unauthenticated(f"Failed authentication ({step.end_reason})")

        if step.is_delayed and delay_ms > 0:
            self._schedule(delay_ms, end)
        else:
            end()


def _nothing() -> None:
    """Do nothing: cancels no timer while none is scheduled."""
