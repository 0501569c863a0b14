"""The port for outgoing connections as byte streams, for clients that wait instead of looping.

A stream lives as: `connect` → one `opened` or `closed` event → any `received` → one `closed`.
Events come only out of `wait`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from engine.host.ports import Buffer


class TlsSettings(NamedTuple):
    """How a stream is encrypted; None leaves a choice to the system.

    `ca_pem` is the text of trusted certificates, the paths name PEM files.
    """

    ca_path: str | None = None
    ca_pem: str | None = None
    certificate_path: str | None = None
    key_path: str | None = None
    key_password: str | None = None
    verifies_host: bool = True


class Stream(Protocol):
    """One outgoing connection."""

    def send(self, buffers: Sequence[Buffer]) -> None:
        """Queue bytes; they leave when the stream is open, at the latest during `wait`."""
        ...

    def close(self) -> None:
        """Close now, without an event."""
        ...


class StreamEvent(NamedTuple):
    """What happened to a stream: `data` of what was received, `reason` of why it closed.

    `hint` is what to do about it, where the reason alone says that.
    """

    stream: Stream
    kind: Literal["opened", "received", "closed"]
    data: bytes = b""
    reason: str = ""
    hint: str | None = None


class Streams(Protocol):
    """Opens streams and waits for what happens to them."""

    def connect(self, host: str, port: int, tls: TlsSettings | None = None) -> Stream:
        """Start connecting; failures arrive as a `closed` event.

        Raises BadTlsFile for files of the settings that cannot be used.
        """
        ...

    def wait(self, timeout_ms: int) -> list[StreamEvent]:
        """Return what happened, after `timeout_ms` at the latest (then perhaps nothing)."""
        ...
