"""A recorded session of kctl with a real broker, and a peer that plays it back.

`tests/golden/client/session-<version>.json.gz` holds the steps below in order: arguments, stdin,
exit code, stdout, stderr, and every exchange on the wire (request bytes → response bytes).
`python -m tools.record_client_session VERSION HOST:PORT` makes it, against a fresh broker.

In a replay a request is answered if its bytes are those of a recorded one, but for the correlation
id; ApiVersions requests, which carry our version, match by their version alone. A request that was
never recorded stays without an answer, and the client times out on the spot: time passes only in
`wait`.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import struct
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import kctl.connect
from engine.host.ports import Buffer
from engine.host.streams import Stream, StreamEvent, TlsSettings
from kctl.__main__ import main

FOLDER = Path(__file__).parent / "golden" / "client"
VERSIONS = ("3.9.1", "4.3.0")
WALL_MS = 1_767_225_600_000
_API_VERSIONS = 18


class Step(NamedTuple):
    """One call of kctl; what it should do is in the recording."""

    name: str
    args: str
    stdin: bytes | None = None


PAIRS = b"a:1\nb:2\nno key\nc:NULL\n\xff\xfe:\x80bin\n"
RECORDS = (
    b'{"key": "k", "value": "v", "timestamp": 5, "partition": 1, "headers": [{"key": "h"}]}\n'
    b'{"key": null, "value": "//4=", "value_encoding": "base64", "headers": []}\n'
)

STEPS = (
    Step("empty-list", "topics list"),
    Step("create-dry", "topics create clicks -p 3 -r 1 -c retention.ms=86400000 --dry-run"),
    Step("create", "topics create clicks copy -p 3 -r 1 -c retention.ms=86400000 -o wide"),
    Step("create-assigned", "topics create one --replica-assignment {BROKER},{BROKER} -o json"),
    Step("create-again", "topics create clicks"),
    Step("create-again-fine", "topics create clicks --if-not-exists"),
    Step("create-too-many-replicas", "topics create wide -p 1 -r 5"),
    Step("create-bad-config", "topics create bad -p 1 -r 1 -c no.such.key=1"),
    Step("list", "topics list"),
    Step("list-match", "topics list --match c.* -o name"),
    Step("list-sizes", "topics list --size -o json"),
    Step("list-unknown", "topics list nope clicks -o ndjson"),
    Step("produce-pairs", "produce clicks -k : --null NULL -H t=1 -z lz4 -o ndjson", PAIRS),
    Step("produce-ndjson", "produce copy --input ndjson --keep-partitions --acks 1", RECORDS),
    Step("produce-unknown-topic", "produce nope", b"x\n"),
    Step("produce-no-partition", "produce clicks -p 9", b"x\n"),
    Step(
        "produce-not-json",
        "produce clicks --input ndjson",
        b'{"key": "k", "value": "v"}\n{"val": 5}\n',
    ),
    Step("consume-values", "consume clicks -e"),
    Step("consume-ndjson", "consume clicks -e -o ndjson"),
    Step("consume-copy", "consume copy -e -o json"),
    Step("consume-format", "consume clicks:0 -e -f %t/%p/%o:%T[%k]%K[%s]%S{%h}%e\\n"),
    Step("consume-tail", "consume clicks --from -1 -e -o csv"),
    Step("consume-two", "consume clicks -n 2 -o table"),
    Step("consume-committed", "consume clicks -e --read-committed -f %o\\n"),
    Step("consume-out-of-range", "consume clicks:0 --from 99 -n 1"),
    Step("consume-unknown", "consume nope clicks:0 -e"),
    Step("offsets", "offsets get clicks copy:0,2"),
    Step("offsets-start", "offsets get clicks --at start -o csv"),
    Step("offsets-time", "offsets get clicks --at @1767225600000 -o ndjson"),
    Step("offsets-max", "offsets get clicks --at max-timestamp -o json"),
    Step("offsets-unknown", "offsets get clicks:7 nope -o name"),
    Step("describe", "topics describe clicks --size --offsets"),
    Step("describe-json", "topics describe clicks one nope -o json"),
    Step("describe-healthy", "topics describe --match .* --under-replicated --under-min-isr"),
    Step("configs", "topics configs clicks"),
    Step("config-set-dry", "configs set --topic clicks cleanup.policy+=compact --dry-run"),
    Step("config-set", "configs set --topic clicks cleanup.policy+=compact retention.ms=5000"),
    Step("config-bad", "configs set --topic clicks --topic copy no.such.key=1"),
    Step("config-describe", "configs describe --topic clicks -o json"),
    Step("config-key", "configs describe --topic clicks min.insync.replicas -o wide"),
    Step("config-unset", "configs unset --topic clicks cleanup.policy retention.ms"),
    Step("config-broker-set", "configs set --broker {BROKER} log.cleaner.threads=2"),
    Step("config-broker", "configs describe --broker {BROKER} log.cleaner.threads -o ndjson"),
    Step("config-broker-unset", "configs unset --broker {BROKER} log.cleaner.threads"),
    Step("config-defaults", "configs set --broker-defaults log.retention.ms=7777777"),
    Step("config-defaults-shown", "configs describe --broker-defaults"),
    Step("config-logger", "configs describe --broker-logger {BROKER} root"),
    Step("config-dead-broker", "configs describe --broker 77"),
    Step("brokers", "brokers list -o json"),
    Step("brokers-describe", "brokers describe -o yaml"),
    Step("brokers-unknown", "brokers describe 77"),
    Step("log-dirs", "brokers log-dirs"),
    Step("log-dirs-replicas", "brokers log-dirs {BROKER} --topic clicks --replicas"),
    Step("api-versions", "brokers api-versions -o csv"),
    Step("alter-unasked", "topics alter clicks -p 5"),
    Step("alter-dry", "topics alter clicks -p 5 --dry-run"),
    Step("alter", "topics alter clicks -p 5 -c max.message.bytes=2000 -y"),
    Step("alter-shrink", "topics alter clicks -p 2 -y"),
    Step("records-dry", "records delete clicks --before -1 --dry-run"),
    Step("records-unasked", "records delete clicks --before end"),
    Step("records", "records delete clicks:0-2 --before -1 -y -o json"),
    Step("records-beyond", "records delete clicks:0 --before 1000 -y"),
    Step("delete-unasked", "topics delete clicks"),
    Step("delete-dry", "topics delete --match c.* --dry-run"),
    Step("delete", "topics delete clicks nope -y"),
    Step("delete-gone", "topics delete clicks --if-exists -y"),
)


def recording_path(version: str) -> Path:
    """Return the file of a recording."""
    return FOLDER / f"session-{version}.json.gz"


def load_session(version: str) -> dict[str, dict[str, Any]]:
    """Return the recorded steps by name."""
    steps = json.loads(gzip.decompress(recording_path(version).read_bytes()))
    return {step["name"]: step for step in steps}


# -- hosts


class FixedEntropy:
    """Randomness that is none."""

    def random_bytes(self, length: int) -> bytes:
        return bytes(length)

    def random_below(self, bound: int) -> int:
        return 0


class FakeClock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now_ms = 1_000

    def wall_ms(self) -> int:
        return WALL_MS

    def monotonic_ms(self) -> int:
        return self.now_ms


class FramedStream:
    """A stream of a fake peer: whole request frames go to `on_request`."""

    def __init__(self, owner: FramedStreams, host: str, port: int) -> None:
        self.address = (host, port)
        self._owner = owner
        self._unread = bytearray()
        self.is_closed = False

    def send(self, buffers: Sequence[Buffer]) -> None:
        for part in buffers:
            self._unread += part
        for frame in split_frames(self._unread):
            for answer in self._owner.answers(self, frame):
                framed = struct.pack(">i", len(answer)) + answer
                self._owner.events.append(StreamEvent(self, "received", framed))

    def close(self) -> None:
        self.is_closed = True


class FramedStreams:
    """Streams to a peer that answers in the same moment; time passes only in `wait`."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.events: deque[StreamEvent] = deque()
        self.opened: list[FramedStream] = []

    def answers(self, stream: FramedStream, request: bytes) -> Sequence[bytes]:
        """Return the response frames to a request frame, both without their length."""
        raise NotImplementedError

    def connect(self, host: str, port: int, tls: TlsSettings | None = None) -> Stream:
        stream = FramedStream(self, host, port)
        self.opened.append(stream)
        self.events.append(StreamEvent(stream, "opened"))
        return stream

    def wait(self, timeout_ms: int) -> list[StreamEvent]:
        if not self.events:
            self.clock.now_ms += max(timeout_ms, 1)
        found = [event for event in self.events if not event.stream.is_closed]  # type: ignore[attr-defined]
        self.events.clear()
        return found


class Player(FramedStreams):
    """Plays recorded exchanges."""

    def __init__(self, clock: FakeClock, exchanges: Sequence[Sequence[str]]) -> None:
        super().__init__(clock)
        self._answers: dict[bytes, deque[bytes]] = {}
        for request, response in exchanges:
            known = self._answers.setdefault(match_key(base64.b64decode(request)), deque())
            known.append(base64.b64decode(response))

    def answers(self, stream: FramedStream, request: bytes) -> Sequence[bytes]:
        known = self._answers.get(match_key(request))
        if not known:
            return ()
        answer = known.popleft() if len(known) > 1 else known[0]
        return (request[4:8] + answer[4:],)


def split_frames(unread: bytearray) -> Iterator[bytes]:
    """Take whole frames off the front of a buffer."""
    while len(unread) >= 4:
        (length,) = struct.unpack_from(">i", unread)
        if len(unread) < 4 + length:
            return
        yield bytes(unread[4 : 4 + length])
        del unread[: 4 + length]


def match_key(request: bytes) -> bytes:
    """Return what makes two requests the same."""
    (api_key,) = struct.unpack_from(">h", request)
    return request[:4] if api_key == _API_VERSIONS else request[:4] + request[8:]


# -- running


class Outcome(NamedTuple):
    """What a call of kctl did."""

    exit: int
    stdout: str
    stderr: str


class _Bytes(io.TextIOWrapper):
    def __init__(self, content: bytes = b"") -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8", newline="", write_through=True)

    def taken(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode("latin-1")  # type: ignore[attr-defined, no-any-return]


def run_with(host: kctl.connect.Host, args: Sequence[str], stdin: bytes | None) -> Outcome:
    """Run kctl in this process on a host; stdout comes back as Latin-1, byte for byte."""
    out, err = _Bytes(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kctl.connect, "real_host", lambda: host)
        patch.setattr(sys, "stdin", _Bytes(stdin or b""))
        patch.setenv("XDG_CONFIG_HOME", "/nonexistent")
        patch.setenv("XDG_DATA_HOME", "/nonexistent")
        for name in ("KCTL_CONFIG", "KCTL_CONTEXT", "KCTL_BOOTSTRAP_SERVER"):
            patch.delenv(name, raising=False)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(list(args))
    return Outcome(code, out.taken(), err.getvalue())


def replay(step: dict[str, Any]) -> Outcome:
    """Run a recorded step against the player of its exchanges."""
    clock = FakeClock()
    host = kctl.connect.Host(Player(clock, step["exchanges"]), clock, FixedEntropy())
    stdin = None if step["stdin"] is None else base64.b64decode(step["stdin"])
    return run_with(host, step["args"], stdin)
