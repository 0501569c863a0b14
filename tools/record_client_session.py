"""Records tests/golden/client: what kctl and a real broker say to each other.

python -m tools.record_client_session VERSION HOST:PORT     against a fresh broker of that version
"""

from __future__ import annotations

import base64
import gzip
import json
import sys
from collections.abc import Sequence
from typing import Any

from engine.client.blocking import KafkaClient
from engine.client.settings import parse_addresses
from engine.host.ports import Buffer
from engine.host.real import RealClock, RealEntropy
from engine.host.real_streams import RealStreams
from engine.host.streams import Stream, StreamEvent, TlsSettings
from kctl.connect import Host
from tests.client_session import (
    STEPS,
    WALL_MS,
    FixedEntropy,
    Step,
    recording_path,
    run_with,
    split_frames,
)


class FixedWallClock(RealClock):
    """The machine's clock, but always the same day."""

    def wall_ms(self) -> int:
        """Return the recording's own time."""
        return WALL_MS


class RecordingStream:
    """A stream that keeps what goes over it."""

    def __init__(self, owner: RecordingStreams) -> None:
        self.inner: Stream
        self._owner = owner
        self._sent = bytearray()
        self._received = bytearray()
        self._waiting: dict[bytes, bytes] = {}

    def send(self, buffers: Sequence[Buffer]) -> None:
        """Send, and keep whole requests by their correlation ids."""
        for part in buffers:
            self._sent += part
        for frame in split_frames(self._sent):
            self._waiting[frame[4:8]] = frame
        self.inner.send(buffers)

    def close(self) -> None:
        """Close the stream behind it."""
        self.inner.close()

    def take(self, data: bytes) -> None:
        """Keep whole responses with their requests."""
        self._received += data
        for frame in split_frames(self._received):
            self._owner.exchanges.append((self._waiting.pop(frame[:4]), frame))


class RecordingStreams:
    """The machine's streams, recorded."""

    def __init__(self) -> None:
        self.exchanges: list[tuple[bytes, bytes]] = []
        self._inner = RealStreams()
        self._streams: dict[int, RecordingStream] = {}

    def connect(self, host: str, port: int, tls: TlsSettings | None = None) -> Stream:
        """Connect."""
        stream = RecordingStream(self)
        stream.inner = self._inner.connect(host, port, tls)
        self._streams[id(stream.inner)] = stream
        return stream

    def wait(self, timeout_ms: int) -> list[StreamEvent]:
        """Wait, and keep what comes."""
        events = []
        for event in self._inner.wait(timeout_ms):
            stream = self._streams[id(event.stream)]
            stream.take(event.data)
            events.append(event._replace(stream=stream))
        return events


def record(step: Step, address: str, broker: str) -> dict[str, Any]:
    """Run one step against the broker; returns what is kept of it."""
    # A response holds another correlation id in its first four bytes than in a replay: the
    # player puts the right one there, so four bytes stand in front of it in the file as well.
    streams = RecordingStreams()
    host = Host(streams, FixedWallClock(), FixedEntropy())
    args = step.args.replace("{BROKER}", broker).split(" ")
    args = [*args, "-b", address]
    outcome = run_with(host, args, step.stdin)
    print(f"$ kctl {' '.join(args)}\n{outcome.stdout}{outcome.stderr}-> {outcome.exit}\n")
    encode = base64.b64encode
    return {
        "name": step.name,
        "args": args,
        "stdin": None if step.stdin is None else encode(step.stdin).decode(),
        "exit": outcome.exit,
        "stdout": outcome.stdout,
        "stderr": outcome.stderr,
        "exchanges": [
            [encode(request).decode(), encode(b"\0\0\0\0" + answer[4:]).decode()]
            for request, answer in streams.exchanges
        ],
    }


def main() -> int:
    """Record all steps."""
    version, address = sys.argv[1:]
    client = KafkaClient(
        parse_addresses(address), streams=RealStreams(), clock=RealClock(), entropy=RealEntropy()
    )
    broker = str(min(client.view([]).brokers))
    steps = [record(step, address, broker) for step in STEPS]
    path = recording_path(version)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(steps).encode(), mtime=0))
    print(f"{path}: {path.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
