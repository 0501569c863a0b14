"""One connection to a broker as a state machine: frames in, responses out, no I/O and no clock.

```
CONNECTING ──opened──▶ NEGOTIATING ──versions known──▶ READY            (no SASL)
                                   └─▶ AUTHENTICATING ──both verified──▶ READY
READY ──the session expires soon──▶ AUTHENTICATING      (KIP-368; requests in flight continue)
any ──error──▶ CLOSED: the driver closes the stream
```

Two drivers: `blocking` (with `broker_connections`) reads and writes bytes of a stream,
`loop_connection` whole frames of a network.

Requests are pipelined: they are sent in order without waiting, and a broker answers them in that
order, so that the next frame answers the oldest request in flight.

Negotiation: ApiVersions is sent in our highest version, with our software name and version. A
broker that does not support that version answers in version 0 with error 35 and, from 2.4 on, its
own range: the request is then repeated in a supported version. Source: D15, KIP-511, KIP-35,
KIP-368.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeAlias

from engine import __version__
from engine.client.errors import (
    AuthenticationFailed,
    MechanismNotOffered,
    NoCommonVersion,
    NotKafka,
    SaslNotExpected,
    TlsExpected,
    TokenExpired,
)
from engine.errors import api_error
from engine.kafka_errors import (
    ILLEGAL_SASL_STATE,
    NONE,
    UNSUPPORTED_SASL_MECHANISM,
    UNSUPPORTED_VERSION,
    kafka_error,
)
from engine.limits import CLIENT_FRAME_BYTES_MAX
from engine.model import new_tuple
from engine.wire import messages
from engine.wire.codec import message_codec
from engine.wire.headers import (
    API_VERSIONS_KEY,
    api,
    encode_request_header,
    read_response_header,
)
from engine.wire.schema import ENGINE_RELEASE
from engine.wire.structs import Message, Struct

if TYPE_CHECKING:
    from engine.client.sasl import SaslConversation
    from engine.host.ports import Buffer

CONNECTING: Final = "connecting"
NEGOTIATING: Final = "negotiating"
AUTHENTICATING: Final = "authenticating"
READY: Final = "ready"
CLOSED: Final = "closed"

#: What a broker's metrics show as the client's software.
SOFTWARE_NAME: Final = "kctl"

_LENGTH: Final = struct.Struct(">i")
_INT16: Final = struct.Struct(">h")
_CORRELATION_ID_MAX: Final = 0x7FFFFFFF
#: A broker that supports this API belongs to a KRaft cluster.
_QUORUM_KEY: Final = api("DescribeQuorum").key
#: Source: KIP-368.
_FIRST_VERSION_OF_LIFETIME: Final = 1
#: How much of a session passes before the client authenticates again.
_LIFETIME_PERCENT: Final = 85
#: The first bytes of a TLS alert or handshake: a TLS listener's response to plain text.
_TLS_RECORDS: Final = (b"\x15\x03", b"\x16\x03")

#: A request: the message, or a function that makes it for the negotiated version.
RequestMessage: TypeAlias = "Struct | Callable[[int], Struct]"


class FastExchange(Protocol):
    """The fast path of a repeated request: decodes its responses and encodes each next request.

    It ends when `take` returns False, or with the first response that `read` cannot decode: the
    caller then receives that response, decoded as any other.
    """

    def read(self, frame: memoryview, version: int) -> Message:
        """Decode a response frame by the fast path.

        None if the frame does not have the expected form. With None nothing has changed, and the
        caller decodes the frame in general.
        """
        ...

    def take(self, read: Message, /) -> bool:
        """Process the decoded response; return True if `request` is to be sent as the next one."""
        ...

    def request(self, correlation_id: int) -> bytes:
        """Return the frame of the next request, with its header."""
        ...


class Call(NamedTuple):
    """A request: `message` may be a function of the negotiated version.

    `lowest` and `highest` bound the version in addition to both sides' ranges. `local` is the same
    request as its handler's values, for a broker in this process. `fast` decodes responses where it
    can. `release` is the Kafka release whose schema `message` has: a later release has APIs and
    versions that the engine does not serve.
    """

    api_name: str
    message: RequestMessage
    lowest: int = 0
    highest: int | None = None
    has_response: bool = True
    local: object | None = None
    fast: FastExchange | None = None
    release: str = ENGINE_RELEASE


class VersionRange(NamedTuple):
    """Versions of an API, both ends inclusive."""

    lowest: int
    highest: int


class Sent(NamedTuple):
    """A request without a response yet.

    `token` belongs to the sender, None inside the handshake.
    """

    api_name: str
    key: int
    version: int
    correlation_id: int
    token: object
    release: str = ENGINE_RELEASE


class Response(NamedTuple):
    """The response to a request, decoded; the message is None where the broker sends none."""

    token: object
    version: int
    message: Message
    #: Whether the broker is one of a KRaft cluster: it offers what only those do.
    is_of_kraft: bool = False


class BrokerConnection:
    """The client's end of one connection.

    The driver calls `opened` once, passes received bytes to `receive` or `take_frame`, and sends
    what `take_output` or `take_frames` returns. After an exception the connection must be closed.
    """

    def __init__(
        self, client_id: str, new_conversation: Callable[[], SaslConversation] | None = None
    ) -> None:
        """Create a connection that is not open.

        `new_conversation` starts a SASL authentication; None: the listener has no SASL.
        """
        self.state = CONNECTING
        #: How long the last authentication is valid, 0 without an end.
        self.session_lifetime_ms = 0
        #: The broker's versions by API key; empty until ApiVersions was answered.
        self.broker_versions: dict[int, VersionRange] = {}
        self._client_id = client_id
        self._new_conversation = new_conversation
        #: The authentication in progress. None without one.
        self._sasl: SaslConversation | None = None
        self._next_correlation_id = 0
        #: Requests without a response, in order: the broker answers in that order.
        self._sent: deque[Sent] = deque()
        #: Frames for `take_output`; `_received` are the bytes of an incomplete frame.
        self._output: list[Buffer] = []
        self._received = bytearray()

    @property
    def in_flight_count(self) -> int:
        """Return the number of requests that were sent and have no response yet."""
        return len(self._sent)

    def on_opened(self) -> None:
        """Start the handshake by ApiVersions: the stream to the broker is open."""
        self.state = NEGOTIATING
        self._request_versions(api(API_VERSIONS_KEY).stable.highest)

    def take_output(self) -> list[Buffer]:
        """Return the queued frames, each with its length prefix, and empty the queue."""
        output, self._output = self._output, []
        return output

    def take_frames(self) -> list[Buffer]:
        """Return the queued frames without their length prefixes, and empty the queue."""
        return [memoryview(frame)[_LENGTH.size :] for frame in self.take_output()]

    # -- requests

    def version_of(
        self,
        api_name: str,
        lowest: int = 0,
        highest: int | None = None,
        release: str = ENGINE_RELEASE,
    ) -> int:
        """Return the highest version of an API that client and broker support, within the bounds.

        `lowest` and `highest` are inclusive. Raises NoCommonVersion.
        """
        key, own = api(api_name, release).key, api(api_name, release).stable
        lowest = max(lowest, own.lowest)
        highest = own.highest if highest is None else min(highest, own.highest)
        theirs = self.broker_versions.get(key)
        if theirs is not None:
            version = min(highest, theirs.highest)
            if version >= max(lowest, theirs.lowest):
                return version
        raise NoCommonVersion(api_name, ours=(lowest, highest), theirs=theirs)

    def send(
        self,
        api_name: str,
        message: RequestMessage,
        *,
        version: int,
        token: object,
        has_response: bool = True,
        release: str = ENGINE_RELEASE,
    ) -> None:
        """Queue a request; its response comes out of `receive` with the token.

        Produce with acks=0 has no response. Raises UnencodableValue.
        """
        key = api(api_name, release).key
        correlation_id = self._next_correlation_id
        body = message(version) if callable(message) else message
        frame = bytearray(_LENGTH.size)
        frame += encode_request_header(key, version, correlation_id, self._client_id)
        message_codec(f"{api_name}Request", version, release).append(body, frame)
        _LENGTH.pack_into(frame, 0, len(frame) - _LENGTH.size)
        self._next_correlation_id = _next_id_after(correlation_id)
        self._output.append(frame)
        if has_response:
            self._sent.append(Sent(api_name, key, version, correlation_id, token, release))

    def answered(self, frame: memoryview) -> Sent | None:
        """Return the request that a frame responds to, None for a response of the handshake.

        The request stays in flight: `take_frame` or `drop_answered` removes it.
        """
        if not self._sent or len(frame) < _LENGTH.size:
            return None
        sent = self._sent[0]
        (correlation_id,) = _LENGTH.unpack_from(frame)
        return None if sent.token is None or correlation_id != sent.correlation_id else sent

    def drop_answered(self) -> None:
        """Remove the oldest request in flight: the caller has decoded its response.

        For the fast path of LoopConnection, which decodes a frame by the call's `fast`, where
        `take_frame` and `receive` decode a whole message.
        """
        self._sent.popleft()

    def send_again(self, sent: Sent, encode: Callable[[int], bytes]) -> bytes:
        """Encode a request like the earlier one `sent`, with a new correlation id.

        Returns its frame. `encode` builds the frame for that id. The request counts as in flight;
        the caller sends the frame. Used by the fast path, which repeats the same request.
        """
        api_name, key, version, _, token, release = sent
        correlation_id = self._next_correlation_id
        frame = encode(correlation_id)
        self._next_correlation_id = _next_id_after(correlation_id)
        again = (api_name, key, version, correlation_id, token, release)
        self._sent.append(new_tuple(Sent, again))
        return frame

    # -- responses

    def receive(self, data: bytes) -> list[Response]:
        """Decode bytes that came from the broker; return the responses that they complete.

        Raises NotKafka, MalformedMessage, AuthenticationFailed, ApiError in the handshake.
        """
        self._received += data
        responses = []
        while (frame := self._take_next_frame()) is not None:
            response = self.take_frame(frame)
            if response is not None:
                responses.append(response)
        return responses

    def _take_next_frame(self) -> bytes | None:
        """Remove and return the first complete frame, without its length; None if incomplete.

        Raises TlsExpected if the bytes start like a TLS record, NotKafka if the length is not one
        of a response.
        """
        if len(self._received) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._received)
        if self._received.startswith(_TLS_RECORDS):
            raise TlsExpected
        if not _LENGTH.size <= length <= CLIENT_FRAME_BYTES_MAX:
            raise NotKafka("the length of an answer", bytes(self._received[:16]))
        stop = _LENGTH.size + length
        if len(self._received) < stop:
            return None
        frame = bytes(memoryview(self._received)[_LENGTH.size : stop])
        del self._received[:stop]
        return frame

    def take_frame(self, frame: bytes) -> Response | None:
        """Process a frame from the broker; return its response, None during the handshake.

        The frame must live as long as the response. Raises the errors of `receive`.
        """
        if not self._sent:
            raise NotKafka("nothing, as nothing was asked", f"{len(frame)} bytes")
        sent = self._sent.popleft()
        correlation_id, position = read_response_header(frame, sent.key, sent.version)
        if correlation_id != sent.correlation_id:
            raise NotKafka(f"correlation id {sent.correlation_id}", correlation_id)
        version = sent.version
        body = memoryview(frame)[position:]
        if sent.key == API_VERSIONS_KEY and _begins_with_unsupported(body):
            version = 0
        message = message_codec(f"{sent.api_name}Response", version, sent.release).decode(body)
        if sent.token is not None:
            return Response(sent.token, version, message, _QUORUM_KEY in self.broker_versions)
        self._continue_handshake(sent, message)
        return None

    # -- handshake

    def _continue_handshake(self, sent: Sent, message: Message) -> None:
        """Process a response of the handshake: ApiVersions, SaslHandshake or SaslAuthenticate."""
        if sent.api_name == "ApiVersions":
            self._on_versions(sent, message)
        elif sent.api_name == "SaslHandshake":
            self._on_mechanisms(message)
        else:
            self._on_challenge(message, sent.version)

    def _request_versions(self, version: int) -> None:
        """Queue ApiVersions in this version: the first request of the handshake."""
        request = messages.ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=__version__
        )
        self.send("ApiVersions", request, version=version, token=None)

    def _on_versions(self, sent: Sent, message: messages.ApiVersionsResponse) -> None:
        """Keep the broker's version ranges, then authenticate or become READY.

        UNSUPPORTED_VERSION repeats ApiVersions with the highest version that the broker offers.
        """
        ranges = {
            row.api_key: VersionRange(row.min_version, row.max_version) for row in message.api_keys
        }
        if message.error_code == UNSUPPORTED_VERSION and sent.version > 0:
            offered = ranges.get(API_VERSIONS_KEY, VersionRange(0, 0))
            self._request_versions(min(offered.highest, sent.version - 1))
            return
        if message.error_code != NONE:
            raise api_error(message.error_code)
        self.broker_versions = ranges
        if self._new_conversation is None:
            self.state = READY
        else:
            self.authenticate()

    def authenticate(self) -> None:
        """Start a SASL authentication: in the handshake, and again before the session ends.

        Requests in flight still get their responses.
        """
        assert self._new_conversation is not None
        self._sasl = self._new_conversation()
        self.state = AUTHENTICATING
        request = messages.SaslHandshakeRequest(mechanism=self._sasl.mechanism)
        # From version 1 on the tokens are sent in SaslAuthenticate requests.
        version = self.version_of("SaslHandshake", lowest=1)
        self.send("SaslHandshake", request, version=version, token=None)

    def _on_mechanisms(self, message: messages.SaslHandshakeResponse) -> None:
        """Process a SaslHandshake response: send the client's first SASL token.

        Raises SaslNotExpected, MechanismNotOffered or AuthenticationFailed if the broker refuses.
        """
        assert self._sasl is not None
        if message.error_code == ILLEGAL_SASL_STATE:
            raise SaslNotExpected(self._sasl.mechanism)
        if message.error_code == UNSUPPORTED_SASL_MECHANISM:
            raise MechanismNotOffered(self._sasl.mechanism, message.mechanisms)
        if message.error_code != NONE:
            raise AuthenticationFailed(self._sasl.mechanism, kafka_error(message.error_code).name)
        self._send_token(self._sasl.first())

    def _on_challenge(self, message: messages.SaslAuthenticateResponse, version: int) -> None:
        """Process a SaslAuthenticate response: send the next token, or end the authentication.

        At its end the state is READY and the session's lifetime is known. Raises
        AuthenticationFailed on an error code, TokenExpired if a delegation token authenticated but
        has no time left.
        """
        assert self._sasl is not None
        if message.error_code != NONE:
            reason = message.error_message or kafka_error(message.error_code).meaning
            raise AuthenticationFailed(self._sasl.mechanism, reason)
        response = self._sasl.response_to(message.auth_bytes)
        if response is None:
            is_over = version >= _FIRST_VERSION_OF_LIFETIME and not message.session_lifetime_ms
            if self._sasl.is_token and is_over:
                raise TokenExpired(self._sasl.mechanism)
            self.session_lifetime_ms = message.session_lifetime_ms
            self.state = READY
        else:
            self._send_token(response)

    def _send_token(self, token: bytes) -> None:
        """Queue the client's next SASL token; no caller waits for its response."""
        request = messages.SaslAuthenticateRequest(auth_bytes=token)
        version = self.version_of("SaslAuthenticate")
        self.send("SaslAuthenticate", request, version=version, token=None)


def reauthentication_ms(now_ms: int, lifetime_ms: int) -> int:
    """Return the time at which to authenticate again in a session that began at `now_ms`.

    Source: KIP-368. Differs: Kafka's client chooses a share of 85 to 95 % by chance.
    """
    return now_ms + lifetime_ms * _LIFETIME_PERCENT // 100


def _next_id_after(correlation_id: int) -> int:
    """Return the next correlation id; 0 follows the largest int32."""
    return 0 if correlation_id == _CORRELATION_ID_MAX else correlation_id + 1


def _begins_with_unsupported(body: memoryview) -> bool:
    """Return True for an ApiVersions response of version 0 with UNSUPPORTED_VERSION (35).

    A broker responds in version 0 when it does not know the requested version.
    """
    if len(body) < 2:
        return False
    (code,) = _INT16.unpack_from(body)
    return bool(code == UNSUPPORTED_VERSION)
