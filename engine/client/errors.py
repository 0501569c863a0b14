"""Errors of a client that gets no response from a broker.

```
EngineError
├─ Unreachable            no connection to an address
├─ ConnectionLost         a connection ended before the response
├─ TimedOut               no response in time
│  └─ BufferExhausted     no room for a record in time
├─ RecordAboveBuffer      a record is larger than the producer's buffer
├─ ClientCloses           the client is closing, and a wait for other members was ended
├─ AuthenticationFailed   the broker rejected the credentials
│  └─ SaslNotExpected     its listener has no SASL
├─ NoCommonVersion        broker and client share no version of an API
├─ ClientSettingRefused   a client property that is invalid or not supported
└─ WireError
   ├─ NotKafka            bytes that no Kafka broker sends
   └─ TlsExpected         a TLS record in place of a frame
```
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.errors import ApiError, ConfigError, EngineError, WireError
from engine.kafka_errors import UNSUPPORTED_SASL_MECHANISM, kafka_error

#: What commands exit with when a cluster cannot be reached or does not answer in time.
_UNREACHABLE_EXIT = 3
_USAGE_EXIT = 2


class Unreachable(EngineError):
    """No connection to an address; `reason` is the host's error text.

    With `may_have_arrived`, a broker may have executed the request.
    """

    exit_code = _UNREACHABLE_EXIT
    may_have_arrived = False
    hint = "check the address, and that a broker listens there: kctl brokers list -b HOST:PORT"

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(f"cannot reach {host}:{port}: {reason}")
        self.host = host
        self.port = port
        self.reason = reason


class ConnectionLost(Unreachable):
    """A connection ended while a response was awaited."""

    may_have_arrived = True
    hint = (
        "see the broker's log; is security.protocol of the client's settings that of the listener?"
    )

    def __init__(self, host: str, port: int, reason: str) -> None:
        super().__init__(host, port, reason)
        self.args = (f"lost the connection to {host}:{port}: {reason}",)


class TimedOut(EngineError):
    """A response did not come in time."""

    exit_code = _UNREACHABLE_EXIT
    hint = "allow more time with --timeout SECONDS"

    def __init__(self, what: str, timeout_ms: int) -> None:
        super().__init__(f"{what}: no answer within {timeout_ms / 1000:g} s")
        self.what = what
        self.timeout_ms = timeout_ms


class BufferExhausted(TimedOut):
    """The producer's buffer had no room for a record in time: the record is not sent."""

    hint = "send less at once, or raise buffer.memory or max.block.ms"

    def __init__(self, wanted_bytes: int, max_block_ms: int, total: int, available: int) -> None:
        super().__init__("sending a record", max_block_ms)
        self.args = (
            f"Failed to allocate {wanted_bytes} bytes within the configured max blocking time "
            f"{max_block_ms} ms. Total memory: {total} bytes. Available memory: {available} bytes.",
        )
        self.wanted_bytes = wanted_bytes


class RecordAboveBuffer(EngineError):
    """A record is larger than the whole buffer of its producer."""

    def __init__(self, size_bytes: int, total: int) -> None:
        super().__init__(
            f"The message is {size_bytes} bytes when serialized which is larger than "
            f"buffer.memory, {total} bytes"
        )
        self.size_bytes = size_bytes


class ClientCloses(EngineError):
    """The client closes and no longer waits for a response that a broker delays (JoinGroup)."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}: not waited for, the client closes")
        self.what = what


class AuthenticationFailed(EngineError):
    """The broker does not accept our credentials, or cannot prove its own."""

    hint = "check sasl.mechanism and sasl.jaas.config of the client's settings"

    def __init__(self, mechanism: str, reason: str) -> None:
        super().__init__(f"authentication by {mechanism} failed: {reason}")
        self.mechanism = mechanism
        self.reason = reason


class SaslNotExpected(AuthenticationFailed):
    """The listener does not authenticate its clients."""

    hint = "set security.protocol to PLAINTEXT (SSL instead of SASL_SSL) for this listener"

    def __init__(self, mechanism: str) -> None:
        super().__init__(mechanism, "the listener does not use SASL")


class MechanismNotOffered(AuthenticationFailed):
    """The listener has other SASL mechanisms, which `offered` names."""

    def __init__(self, mechanism: str, offered: Sequence[str]) -> None:
        name = kafka_error(UNSUPPORTED_SASL_MECHANISM).name
        super().__init__(mechanism, f"{name}; the broker offers {', '.join(offered) or 'none'}")
        self.offered = tuple(offered)


class TokenExpired(AuthenticationFailed):
    """A delegation token is known, and has expired: the next request would end the connection.

    Source: SaslServerAuthenticator.ReauthInfo, by which a session with a token always has an end;
    a broker removes expired tokens each delegation.token.expiry.check.interval.ms.
    """

    hint = "`kctl tokens create --out FILE` makes another"

    def __init__(self, mechanism: str) -> None:
        super().__init__(mechanism, "the delegation token has expired")


class NoCommonVersion(EngineError):
    """The broker does not offer a version of an API that the client needs.

    Both ranges are inclusive.
    """

    def __init__(
        self, api: str, *, ours: tuple[int, int], theirs: tuple[int, int] | None, purpose: str = ""
    ) -> None:
        """Build the message from version ranges, lowest and highest inclusive.

        `theirs` is None if the broker does not offer the API. `purpose` completes the message.
        """
        lowest, highest = ours
        offered = "versions {} to {}".format(*theirs) if theirs else "none"
        reason = f" {purpose}" if purpose else ""
        super().__init__(
            f"the broker does not offer {api} as needed{reason}: "
            f"it has {offered}, needed is one of {lowest} to {highest}"
        )
        self.api = api
        self.ours = ours
        self.theirs = theirs


class ClientSettingRefused(ConfigError):
    """A client property has an invalid value, or is not supported."""

    exit_code = _USAGE_EXIT


class NotKafka(WireError):
    """A peer sent bytes that no Kafka broker sends."""

    exit_code = _UNREACHABLE_EXIT
    hint = "does the port belong to Kafka, and does security.protocol fit its listener?"

    def __init__(self, expected: str, got: object) -> None:
        super().__init__(f"not the answer of a Kafka broker: expected {expected}, got {got}")
        self.expected = expected
        self.got = got


class TlsExpected(WireError):
    """A peer answered an unencrypted request with TLS bytes."""

    exit_code = _UNREACHABLE_EXIT
    hint = "set security.protocol of the client's settings to SSL or SASL_SSL"

    def __init__(self) -> None:
        super().__init__("the listener speaks TLS, and it was spoken to without")


def may_pass(error: EngineError) -> bool:
    """True if a request with this error may succeed when it is sent again later.

    Source: RetriableException of 3.9.1.
    """
    if isinstance(error, ApiError):
        return kafka_error(error.code).is_retriable
    return isinstance(error, TimedOut | Unreachable)
