"""The port for outgoing connections as byte streams, for clients that block instead of looping.

Life of a stream: `connect` → one `opened` or `closed` event → any `received` → one `closed`.
Events are returned by `wait` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from engine.host.ports import Buffer


class TlsSettings(NamedTuple):
    """TLS settings of a stream; None means the system's default.

    `ca_pem` is the text of trusted certificates, `key_pem` and `chain_pem` those of a private key
    and its certificates; the paths name PEM files, or Java key stores with their passwords. `repr`
    shows neither passwords nor keys.
    """

    ca_path: str | None = None
    ca_pem: str | None = None
    certificate_path: str | None = None
    key_path: str | None = None
    key_password: str | None = None
    verifies_host: bool = True
    ca_password: str | None = None
    store_password: str | None = None
    key_pem: str | None = None
    chain_pem: str | None = None

    @property
    def has_certificate(self) -> bool:
        """Return True if there is a client certificate to present."""
        return self.certificate_path is not None or self.key_pem is not None

    def __repr__(self) -> str:
        return f"TlsSettings({self.ca_path}, {self.certificate_path})"


class Failure(NamedTuple):
    """The reason for a failed connection, and its remedy, None if unknown."""

    reason: str
    hint: str | None = None


class Stream(Protocol):
    """One outgoing connection."""

    def send(self, buffers: Sequence[Buffer]) -> None:
        """Queue bytes; they are sent once the stream is open, at the latest during `wait`."""
        ...

    def close(self) -> None:
        """Close now, without an event."""
        ...


class StreamEvent(NamedTuple):
    """An event of a stream: `data` if it was received, `reason` if it was closed.

    `hint` is the remedy, if the reason alone determines it.
    """

    stream: Stream
    kind: Literal["opened", "received", "closed"]
    data: bytes = b""
    reason: str = ""
    hint: str | None = None


class Streams(Protocol):
    """Opens streams and waits for their events."""

    def connect(self, host: str, port: int, tls: TlsSettings | None = None) -> Stream:
        """Start connecting; failures arrive as a `closed` event.

        Raises BadTlsFile for a file of the settings that cannot be used.
        """
        ...

    def wait(self, timeout_ms: int) -> list[StreamEvent]:
        """Return the events since the last call; without any, wait up to `timeout_ms`."""
        ...


@runtime_checkable
class WakeableStreams(Streams, Protocol):
    """Streams whose `wait` another thread can end."""

    def wake(self) -> None:
        """End the current wait, or the next one; for any thread."""
        ...

    def close(self) -> None:
        """Close all streams, and the descriptors that wake a wait."""
        ...
