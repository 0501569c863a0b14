"""A recorded session between real brokers, and the play of it to one of ours.

`tests/golden/brokers/session-<version>.json.gz` holds events in order: `[ms, kind, …]`.

| kind | fields | what |
|---|---|---|
| `start`, `SIGKILL`, `SIGTERM`, `SIGSTOP`, `SIGCONT`, `gone` | broker | what happens to a process |
| `ask` | connection, broker, frame | a request to that broker |
| `answer` | connection, broker, frame | its answer |
| `closed` | connection, broker | the connection ended |
| `step` | text | where the story is |

In a play one of the brokers is ours, in memory, and the others say what they said then. What came
to that broker comes to ours, in the same order and at the same times; what the real one asked and
answered, ours has to ask and answer before the play goes on. Every field is compared, and records
byte for byte, but for what is declared here:

- the ids of requests and of fetch sessions, and what ApiVersions says;
- the order of rows that come out of a map: of partitions, and of brokers;
- ours begins a fetch session again after its log was cut, and counts from there;
- a fetch that a real leader refuses, for it is about to hear of the partition, ours may serve;
- ours proposes in one request what comes up in one turn, Kafka's the first of it alone.

`python -m tools.record_broker_sessions LIBS VERSION PORT` makes a recording.
"""

from __future__ import annotations

import base64
import gzip
import json
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from engine.wire.codec import message_codec
from engine.wire.headers import api, apis, read_request_header, response_header_version
from engine.wire.structs import Struct

FOLDER = Path(__file__).parent / "golden" / "brokers"
VERSION = "3.9.1"
BROKER_IDS = (1, 2, 3)
#: It has no replicas.
CONTROLLER_ID = 1
TOPIC = "t"
#: Of the brokers that were recorded, and of those that a session is played to.
SETTINGS = {
    "replica.lag.time.max.ms": "3000",
    "auto.leader.rebalance.enable": "false",
    "auto.create.topics.enable": "false",
    "num.network.threads": "1",
    "num.io.threads": "2",
}
TOPIC_CONFIGS = (("unclean.leader.election.enable", "true"),)


def recording_path(version: str) -> Path:
    """Return the file of a recording."""
    return FOLDER / f"session-{version}.json.gz"


class Event(NamedTuple):
    """One thing that happened; `asker` is the broker that asks, None for a client."""

    at_ms: int
    kind: str
    broker_id: int
    connection: int = 0
    frame: bytes = b""
    api_name: str = ""
    asker: int | None = None


class Frame(NamedTuple):
    """A request or an answer, read."""

    api_name: str
    version: int
    correlation_id: int
    message: Any
    client_id: str | None = None


@cache
def load_session(version: str = VERSION) -> tuple[Event, ...]:
    """Return a recording's events."""
    rows = json.loads(gzip.decompress(recording_path(version).read_bytes()))
    return tuple(_events(rows))


def _events(rows: list[list[Any]]) -> Iterator[Event]:
    askers: dict[int, int | None] = {}
    names: dict[tuple[int, bytes], str] = {}
    for at_ms, kind, *fields in rows:
        if kind == "step":
            continue
        if kind not in ("ask", "answer"):
            *connection, broker_id = fields
            asker = askers.get(*connection) if connection else None
            yield Event(at_ms, kind, broker_id, *connection, asker=asker)
            continue
        connection, broker_id, text = fields
        frame = base64.b64decode(text)
        if kind == "ask":
            header = read_request_header(frame)
            askers.setdefault(connection, _asker(header.client_id or ""))
            name = names[connection, frame[4:8]] = apis()[header.api_key].name
        else:
            name = names[connection, frame[:4]]
        yield Event(at_ms, kind, broker_id, connection, frame, name, askers[connection])


def _asker(client_id: str) -> int | None:
    """Return the broker with a client id: `2`, or of its fetchers `broker-2-fetcher-0`."""
    parts = client_id.split("-")
    number = parts[1] if parts[0] == "broker" else parts[0]
    return int(number) if number.isdigit() else None


def read_ask(frame: bytes) -> Frame:
    """Return a request's frame, read."""
    header = read_request_header(frame)
    name = apis()[header.api_key].name
    body = frame[header.body_position :]
    return Frame(
        name,
        header.api_version,
        header.correlation_id,
        message_codec(f"{name}Request", header.api_version).decode(body),
        header.client_id,
    )


def read_answer(frame: bytes, api_name: str, version: int) -> Frame:
    """Return an answer's frame, read."""
    (correlation_id,) = struct.unpack_from(">i", frame)
    start = 4 + response_header_version(api(api_name).key, version)
    message = message_codec(f"{api_name}Response", version).decode(frame[start:])
    return Frame(api_name, version, correlation_id, message)


# -- comparing


def fields_of(message: Any) -> dict[str, Any]:
    """Return every value of a message by where it is: `topics.0.partitions.1.error_code`.

    Rows of partitions and of brokers are taken in the order of their numbers, for maps have none.
    """
    return dict(_fields(message, ""))


def _fields(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Struct):
        for name in value.__slots__:
            yield from _fields(getattr(value, name), f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        yield f"{path}.length", len(value)
        for number, each in enumerate(sorted(value, key=_number_of)):
            yield from _fields(each, f"{path}.{number}")
    else:
        yield path, bytes(value) if isinstance(value, memoryview) else value


def _number_of(row: Any) -> int:
    """Return the partition or the broker of a row, 0 where the order counts."""
    for name in ("partition", "partition_index", "id", "broker_id"):
        if hasattr(row, name):
            return int(getattr(row, name))
    return 0


def differences(recorded: Frame, ours: Frame) -> list[str]:
    """Return where two frames differ; correlation ids count for nothing."""
    expected_head = recorded.api_name, recorded.version, recorded.client_id
    head = ours.api_name, ours.version, ours.client_id
    if expected_head != head:
        return [f"expected {expected_head}, not {head}"]
    theirs, here = fields_of(recorded.message), fields_of(ours.message)
    found = []
    for path in {**theirs, **here}:
        expected, actual = theirs.get(path), here.get(path)
        if expected != actual:
            found.append(f"{path}: expected {expected!r}, not {actual!r}")
    return found
