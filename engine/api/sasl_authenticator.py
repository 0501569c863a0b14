"""Authentication of one connection by SASL: its frames until the client is known.

```
FIRST ─ ApiVersions ─> VERSIONS_KNOWN ─ SaslHandshake ─> TOKENS ─ the last token ─> COMPLETE
  └──── SaslHandshake ─────────────────────────────────────^│
COMPLETE ─ SaslHandshake, where sessions end ─> TOKENS (KIP-368)
```

SaslHandshake 0: tokens are raw frames. 1: they come in SaslAuthenticate.

| frame | response | the connection ends |
|---|---|---|
| another API than those two, before the handshake | none | after the delay |
| no request at all: as the first frame | none | after the delay |
| the same after it; a version that is not served; wrong bytes | none | at once |
| ApiVersions a second time | none | at once |
| a mechanism that is not enabled | UNSUPPORTED_SASL_MECHANISM with all, after the delay | then |
| ApiVersions or SaslHandshake in place of a token | ILLEGAL_SASL_STATE, after the delay | then |
| a token that fails | SASL_AUTHENTICATION_FAILED, after the delay; none to a raw one | then |
| a raw token of SCRAM that fails | none | at once |
| again: another mechanism | as ever; none to the token after it | after the delay, after that |
| again: any failure in the first frame | none | at once |

The delay is `connection.failed.authentication.delay.ms`.

Source: SaslServerAuthenticator of 3.9.1, a real broker's responses; KIP-43, KIP-152, KIP-368.
Differs: the body of another API is never read; where Kafka reads it in place of a token and
responds with ILLEGAL_SASL_STATE in that API's form, there is no response here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Final, NamedTuple, Protocol

from engine.api.admission import Session
from engine.api.api_versions import ApiVersions
from engine.api.exchange import Exchange
from engine.errors import EngineError, WireError
from engine.kafka_errors import (
    ILLEGAL_SASL_STATE,
    NONE,
    SASL_AUTHENTICATION_FAILED,
    UNSUPPORTED_SASL_MECHANISM,
)
from engine.security.principals import user_principal
from engine.security.sasl import CredentialsWrong, SaslFailed, SaslServer, TokenBroken
from engine.wire import messages
from engine.wire.codec import message_codec
from engine.wire.headers import (
    API_VERSIONS_KEY,
    api,
    read_request_header,
    response_header_bytes,
)
from engine.wire.structs import Struct

HANDSHAKE_KEY: Final = api("SaslHandshake").key
_AUTHENTICATE_KEY: Final = api("SaslAuthenticate").key
_FIRST_IN_REQUESTS: Final = 1
_FIRST_WITH_LIFETIME: Final = 1
_REAUTHENTICATION_INTERVAL_MS: Final = 1000


class AuthenticationStep(NamedTuple):
    """The result of a frame: a response without its length, or the end of the connection.

    A delayed end sends its response after the delay.
    """

    response: bytes | None = None
    end_reason: str | None = None
    is_delayed: bool = False


class SaslListener(Protocol):
    """The authentication settings of a listener."""

    @property
    def mechanisms(self) -> Sequence[str]:
        """Return the SASL mechanisms of the listener, in the order in which responses list them."""
        ...

    def new_server(self, mechanism: str) -> SaslServer:
        """Return the server's side of a new authentication by a SASL mechanism."""
        ...

    def session_lifetime_ms(self, mechanism: str) -> int:
        """Return for how long an authentication by a mechanism is valid; 0 means without end."""
        ...


class _State(Enum):
    FIRST = 1
    VERSIONS_OR_HANDSHAKE = 2
    VERSIONS_KNOWN = 3
    TOKENS = 4
    WRONG_MECHANISM = 5
    COMPLETE = 6


class _Refused(EngineError):
    """The authentication failed: the connection ends, after a response if there is one."""

    def __init__(self, reason: str, response: bytes | None = None, *, is_delayed: bool) -> None:
        super().__init__(reason)
        self.response = response
        self.is_delayed = is_delayed


class SaslAuthenticator:
    """The authentications of one connection: the first one and re-authentications (KIP-368)."""

    def __init__(
        self,
        session: Session,
        listener: SaslListener,
        api_versions: ApiVersions,
        monotonic_ms: Callable[[], int],
    ) -> None:
        """Create the authenticator of a new connection.

        `session` gets the client's principal at the end. `monotonic_ms` is a clock.
        """
        self._session = session
        self._listener = listener
        self._api_versions = api_versions
        self._monotonic_ms = monotonic_ms
        self._state = _State.FIRST
        #: Whether tokens come as bare frames (SaslHandshake version 0), not in SaslAuthenticate.
        self._has_raw_tokens = True
        #: The chosen mechanism, and its conversation; None between two authentications.
        self._mechanism = ""
        self._server: SaslServer | None = None
        #: Session lifetime that the client is sent; 0 means unlimited.
        self._lifetime_ms = 0
        #: When the session expires unless the client authenticates again (monotonic). None: never.
        self.expires_ms: int | None = None
        #: Principal and mechanism of the previous authentication: the next must have the same. None
        #: in the first one.
        self._known: tuple[str, str] | None = None
        #: When the last re-authentication began (monotonic), to refuse too frequent ones. None
        #: before.
        self._began_again_ms: int | None = None

    @property
    def is_complete(self) -> bool:
        """True if the client is authenticated: its next frames are ordinary requests."""
        return self._state is _State.COMPLETE

    @property
    def is_expired(self) -> bool:
        """True if the session has expired without a re-authentication.

        The connection is to be closed.
        """
        return self.expires_ms is not None and self._monotonic_ms() > self.expires_ms

    def begin_reauthentication(self) -> bool:
        """Return True if a SaslHandshake now begins a re-authentication, and record the time.

        False, if sessions do not expire or the last one was under a second ago: the frame is then
        served as an ordinary request.
        """
        if self.expires_ms is None:
            return False
        now_ms, before_ms = self._monotonic_ms(), self._began_again_ms
        if before_ms is not None and now_ms - before_ms < _REAUTHENTICATION_INTERVAL_MS:
            return False
        self._began_again_ms = now_ms
        return True

    def reauthenticate(self, frame: memoryview) -> AuthenticationStep:
        """Process the SaslHandshake with which a client begins to authenticate again.

        Returns the response, or the reason to close the connection.
        """
        self._known = self._session.principal, self._mechanism
        self._has_raw_tokens = True
        self._state = _State.VERSIONS_KNOWN
        step = self.take(frame)
        if step.end_reason is None:
            return step
        return AuthenticationStep(None, step.end_reason)

    def take(self, frame: memoryview) -> AuthenticationStep:
        """Process the next frame of an authentication: a handshake request or a token.

        Returns the response, or the reason to close the connection, with any last response.
        """
        try:
            if self._state is _State.WRONG_MECHANISM:
                raise _Refused(
                    "SASL mechanism of another authentication requested for re-authentication",
                    is_delayed=True,
                )
            if self._state is not _State.TOKENS:
                return AuthenticationStep(self._serve_request(frame))
            if self._has_raw_tokens:
                return AuthenticationStep(self._answer_raw_token(frame))
            return AuthenticationStep(self._serve_authenticate(frame))
        except _Refused as refusal:
            return AuthenticationStep(refusal.response, str(refusal), refusal.is_delayed)
        except WireError as error:
            return AuthenticationStep(None, str(error))

    def refuse_large_frame(self, size_bytes: int) -> AuthenticationStep:
        """Return the step that closes a connection with a too large frame."""
        reason = f"Failing SASL authentication due to invalid receive size {size_bytes}"
        return AuthenticationStep(None, reason, is_delayed=True)

    # Before the tokens

    def _serve_request(self, frame: memoryview) -> bytes:
        """Serve ApiVersions or SaslHandshake; raise _Refused for any other request."""
        is_first = self._state is _State.FIRST
        try:
            key, version, correlation_id, client_id, position = read_request_header(frame)
            name = api(key).name
        except WireError as error:
            raise _Refused(str(error), is_delayed=is_first) from error
        if is_first:
            self._state = _State.VERSIONS_OR_HANDSHAKE
        if key not in (API_VERSIONS_KEY, HANDSHAKE_KEY):
            raise _Refused(
                f"Unexpected Kafka request of type {name} during SASL handshake", is_delayed=True
            )
        exchange = self._exchange(key, version, correlation_id, client_id)
        if key == API_VERSIONS_KEY:
            return self._serve_api_versions(exchange, frame[position:])
        return self._serve_handshake(exchange, frame[position:])

    def _serve_api_versions(self, exchange: Exchange, body: memoryview) -> bytes:
        """Serve ApiVersions once before the handshake; an unsupported version gets version 0."""
        if self._state is not _State.VERSIONS_OR_HANDSHAKE:
            raise _Refused("ApiVersions a second time", is_delayed=False)
        if not api(API_VERSIONS_KEY).stable.has(exchange.api_version):
            refusal = self._api_versions.refusal()
            return _encode_response("ApiVersions", exchange._replace(api_version=0), refusal)
        request = _decode_request("ApiVersions", exchange, body)
        assert isinstance(request, messages.ApiVersionsRequest)
        response = self._api_versions.handle(request, exchange)
        if response.error_code == NONE:
            self._state = _State.VERSIONS_KNOWN
        return _encode_response("ApiVersions", exchange, response)

    def _serve_handshake(self, exchange: Exchange, body: memoryview) -> bytes:
        """Choose the mechanism that SaslHandshake names, and return the response.

        A re-authentication must use the mechanism of the first authentication.
        """
        request = _decode_request("SaslHandshake", exchange, body)
        assert isinstance(request, messages.SaslHandshakeRequest)
        mechanism, offered = request.mechanism, list(self._listener.mechanisms)
        response = messages.SaslHandshakeResponse(mechanisms=offered)
        if exchange.api_version >= _FIRST_IN_REQUESTS:
            self._has_raw_tokens = False
        if mechanism not in offered:
            response.error_code = UNSUPPORTED_SASL_MECHANISM
            raise _Refused(
                "Unsupported SASL mechanism",
                _encode_response("SaslHandshake", exchange, response),
                is_delayed=True,
            )
        if self._known is not None and self._known[1] != mechanism:
            self._state = _State.WRONG_MECHANISM
        else:
            self._state = _State.TOKENS
            self._mechanism = mechanism
            self._server = self._listener.new_server(mechanism)
        return _encode_response("SaslHandshake", exchange, response)

    # Tokens

    def _answer_raw_token(self, frame: memoryview) -> bytes:
        """Return the mechanism's response to a token in a bare frame, as after SaslHandshake
        version 0.

        A failure gets no response: it raises _Refused.
        """
        try:
            return self._respond(bytes(frame))
        except SaslFailed as failure:
            raise _Refused(str(failure), is_delayed=True) from failure
        except (CredentialsWrong, TokenBroken) as failure:
            raise _Refused(str(failure), is_delayed=False) from failure

    def _serve_authenticate(self, frame: memoryview) -> bytes:
        """Serve one SaslAuthenticate request; the last response has the session lifetime."""
        key, version, correlation_id, client_id, position = read_request_header(frame)
        exchange = self._exchange(key, version, correlation_id, client_id)
        if key != _AUTHENTICATE_KEY:
            raise self._unexpected_request(exchange)
        request = _decode_request("SaslAuthenticate", exchange, frame[position:])
        assert isinstance(request, messages.SaslAuthenticateRequest)
        try:
            response = self._respond(bytes(request.auth_bytes))
        except SaslFailed as failure:
            raise _authentication_failed(exchange, str(failure), str(failure)) from failure
        except CredentialsWrong as failure:
            during = "authentication" if self._known is None else "re-authentication"
            message = (
                f"Authentication failed during {during} due to invalid credentials with SASL "
                f"mechanism {self._mechanism}"
            )
            raise _authentication_failed(exchange, message, f"{message} ({failure})") from failure
        except TokenBroken as failure:
            raise _Refused(str(failure), is_delayed=False) from failure
        answer = messages.SaslAuthenticateResponse(auth_bytes=response)
        if self.is_complete and version >= _FIRST_WITH_LIFETIME:
            answer.session_lifetime_ms = self._lifetime_ms
        return _encode_response("SaslAuthenticate", exchange, answer)

    def _unexpected_request(self, exchange: Exchange) -> _Refused:
        """Return the refusal of a request that comes where SaslAuthenticate is expected."""
        name, version = api(exchange.api_key).name, exchange.api_version
        reason = f"Unexpected Kafka request of type {name} during SASL authentication."
        if not api(exchange.api_key).stable.has(version):
            return _Refused(reason, is_delayed=False)
        response: Struct
        if exchange.api_key == HANDSHAKE_KEY:
            response = messages.SaslHandshakeResponse(error_code=ILLEGAL_SASL_STATE)
        elif exchange.api_key == API_VERSIONS_KEY:
            response = messages.ApiVersionsResponse(error_code=ILLEGAL_SASL_STATE)
        else:
            return _Refused(reason, is_delayed=True)
        return _Refused(reason, _encode_response(name, exchange, response), is_delayed=True)

    def _respond(self, token: bytes) -> bytes:
        """Return the mechanism's response to a client's token.

        The last token completes the authentication.
        """
        server = self._server
        assert server is not None
        response = server.response_to(token)
        if server.user is not None:
            self._complete(user_principal(server.user), server)
        return response

    def _complete(self, principal: str, server: SaslServer) -> None:
        """Complete the authentication: set the session's principal and expiry.

        Raises SaslFailed if a re-authentication has another principal.
        """
        if self._known is not None and self._known[0] != principal:
            before, now = (text.replace(":", ".", 1) for text in (self._known[0], principal))
            raise SaslFailed(
                f"Cannot change principals during re-authentication from {before}: {now}"
            )
        lifetime_ms = self._listener.session_lifetime_ms(self._mechanism) or None
        if server.lifetime_ms is not None:
            # An expired credential ends the session at its next request.
            lifetime_ms = min(server.lifetime_ms, lifetime_ms or server.lifetime_ms)
        self._lifetime_ms = lifetime_ms or 0
        self.expires_ms = None if lifetime_ms is None else self._monotonic_ms() + lifetime_ms
        self._state = _State.COMPLETE
        self._server = None
        self._session.authenticate(principal, by_token=server.is_token)

    def _exchange(
        self, key: int, version: int, correlation_id: int, client_id: str | None
    ) -> Exchange:
        """Return the exchange of a request on this connection, received now."""
        return Exchange(
            self._session, key, version, correlation_id, client_id, self._monotonic_ms()
        )


def _authentication_failed(exchange: Exchange, message: str, reason: str) -> _Refused:
    """Return the refusal with SASL_AUTHENTICATION_FAILED.

    `message` is for the client, `reason` for the log.
    """
    response = messages.SaslAuthenticateResponse(
        error_code=SASL_AUTHENTICATION_FAILED, error_message=message
    )
    return _Refused(
        reason, _encode_response("SaslAuthenticate", exchange, response), is_delayed=True
    )


def _decode_request(name: str, exchange: Exchange, body: memoryview) -> object:
    """Decode a request of the handshake.

    Raises WireError for wrong bytes, _Refused for a version that is not served.
    """
    version = exchange.api_version
    if not api(name).stable.has(version):
        raise _Refused(f"version {version} of {name} is not served", is_delayed=False)
    request, _ = message_codec(f"{name}Request", version).decode_at(body, 0)
    return request


def _encode_response(name: str, exchange: Exchange, response: Struct) -> bytes:
    """Encode a response with its header, without the length prefix of the frame."""
    head = response_header_bytes(exchange.api_key, exchange.api_version, exchange.correlation_id)
    return head + message_codec(f"{name}Response", exchange.api_version).encode(response)
