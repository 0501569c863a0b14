"""Two brokers that are asked the same, and the differences between their answers.

A case of the tables beside this module is a function that takes a `Pair` and asks. Bodies are plain
dicts by Kafka's field names in snake_case; what a version lacks is left out, so that one body does
for all versions. A body that must differ (ids, sessions) is a function of the `Side`.
"""

from __future__ import annotations

import contextlib
import re
import socket
import struct
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from engine.wire.codec import message_codec
from engine.wire.errors import MalformedMessage
from engine.wire.headers import (
    api,
    encode_request_header,
    read_response_header,
)
from engine.wire.layout import FieldLayout, StructLayout
from engine.wire.structs import message_class
from tests.compat.wire.masking import Masks, plain

Body = dict[str, Any]
BodyOf = Body | Callable[["Side"], Body]

CLIENT_ID = "wire-compare"
#: What stands for an answer where there is none.
CLOSED, SILENT, MALFORMED = "<closed>", "<no answer>", "<malformed>"
_FRAME_BYTES_MAX = 1 << 28


class Difference(NamedTuple):
    """Where two answers differ; kind is `value`, `order`, or `message` for an error's text."""

    label: str
    kind: str
    path: str
    real: Any
    ours: Any


class Side:
    """One of the two brokers: its sockets, and what it gave out under names common to both."""

    def __init__(self, name: str, address: str, *, timeout_s: float) -> None:
        host, _, port = address.rpartition(":")
        self.name = name
        self.host, self.port = host, int(port)
        self.timeout_s = timeout_s
        self.sockets: dict[str, socket.socket] = {}
        self.masks = Masks(self.port)
        self.topic_ids: dict[str, bytes] = {}
        self.kept: dict[str, Any] = {}

    def connection(self, key: str) -> socket.socket:
        """Return the socket of that name, connected the first time."""
        if key not in self.sockets:
            found = socket.create_connection((self.host, self.port), self.timeout_s)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.sockets[key] = found
        return self.sockets[key]

    def drop(self, key: str) -> None:
        """Close the socket of that name; the next use connects again."""
        found = self.sockets.pop(key, None)
        if found is not None:
            found.close()

    def send(self, raw: bytes, key: str) -> None:
        """Send bytes as they are; a broker that has closed is found when the answer is read."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.connection(key).sendall(raw)

    def frame(self, key: str, timeout_s: float | None = None) -> bytes | str:
        """Return the next frame, or CLOSED or SILENT; both of these end the connection."""
        found = self.connection(key)
        found.settimeout(timeout_s or self.timeout_s)
        try:
            size = struct.unpack(">i", self._exactly(found, 4))[0]
            if not 0 <= size <= _FRAME_BYTES_MAX:
                raise ConnectionResetError
            return self._exactly(found, size)
        except TimeoutError:
            self.drop(key)
            return SILENT
        except ConnectionError:
            self.drop(key)
            return CLOSED
        finally:
            if key in self.sockets:
                found.settimeout(self.timeout_s)

    @staticmethod
    def _exactly(found: socket.socket, count: int) -> bytes:
        out = bytearray()
        while len(out) < count:
            more = found.recv(min(count - len(out), 1 << 20))
            if not more:
                raise ConnectionResetError
            out += more
        return bytes(out)


_THROTTLED: Final = 89


class Pair:
    """Asks both brokers and remembers where they differ."""

    def __init__(self, real: str, ours: str, *, timeout_s: float = 5.0) -> None:
        self.real = Side("real", real, timeout_s=timeout_s)
        self.ours = Side("ours", ours, timeout_s=timeout_s)
        self.sides = (self.real, self.ours)
        self.now_ms = int(time.time() * 1000)
        self.differences: list[Difference] = []
        self.requested: dict[str, int] = {}
        self.prefix = "w"
        self.seed = 1
        self._correlation_id = 0

    def name(self, suffix: str) -> str:
        """Return a topic's name that no other case uses."""
        return f"{self.prefix}-{suffix}"

    # -- asking

    def ask(
        self, label: str, name: str, version: int, body: BodyOf, *, on: str = "main"
    ) -> list[Any]:
        """Ask both, note differences, and return both answers (or texts in their place)."""
        return self.ask_raw(
            label,
            name,
            version,
            lambda side: encode(f"{name}Request", version, _of(body, side)),
            on,
        )

    def ask_raw(
        self, label: str, name: str, version: int, body: Callable[[Side], bytes], on: str = "main"
    ) -> list[Any]:
        """Ask with a body of bytes behind a right header."""
        self._correlation_id += 1
        head = encode_request_header(api(name).key, version, self._correlation_id, CLIENT_ID)
        for side in self.sides:
            side.send(framed(head + body(side)), on)
        answers = [self.answer(side, name, version, on) for side in self.sides]
        self.compare(f"{name} v{version} {label}", name, version, answers)
        return answers

    def answer(self, side: Side, name: str, version: int, on: str = "main") -> Any:
        """Read and decode one answer; a wrong correlation id or body is a text."""
        frame = side.frame(on)
        if isinstance(frame, str):
            return frame
        try:
            correlation_id, at = read_response_header(frame, api(name).key, version)
            if correlation_id != self._correlation_id:
                side.drop(on)
                return f"<correlation id {correlation_id - self._correlation_id:+d}>"
            return message_codec(f"{name}Response", version).decode(frame[at:])
        except MalformedMessage as error:
            return f"{MALFORMED} {error} {frame[:80].hex()}"

    def tell(self, name: str, version: int, body: BodyOf, *, on: str = "main") -> None:
        """Send without reading an answer."""
        self._correlation_id += 1
        head = encode_request_header(api(name).key, version, self._correlation_id, CLIENT_ID)
        for side in self.sides:
            raw = encode(f"{name}Request", version, _of(body, side))
            side.send(framed(head + raw), on)

    def raw_frames(self, label: str, sent: bytes, *, answers: int = 1, on: str = "raw") -> None:
        """Send bytes on a new connection; compare that many frames, then whether it is open."""
        found = []
        for side in self.sides:
            side.drop(on)
            side.send(sent, on)
        for side in self.sides:
            got = [side.frame(on, 1.5) for _ in range(answers)]
            if CLOSED not in got and SILENT not in got:
                got.append(side.frame(on, 0.3))
            found.append([one if isinstance(one, str) else one.hex() for one in got])
            side.drop(on)
        self.count(label)
        if found[0] != found[1]:
            self.note(label, "value", "", found[0], found[1])

    # -- comparing

    def compare(self, label: str, name: str, version: int, answers: list[Any]) -> None:
        """Note every field in which two answers differ."""
        self.count(label)
        layout = message_codec(f"{name}Response", version).layout
        values = [
            one if isinstance(one, str) else plain(layout, one, side.masks)
            for one, side in zip(answers, self.sides, strict=True)
        ]
        if name == "ApiVersions" and not isinstance(values[0], str):
            _keep_common_keys(values)
        if name == "Metadata" and label.endswith(" all"):
            for value in values:
                value["topics"] = [one for one in value["topics"] if _is_common(one["name"])]
        self.compare_values(label, *values)

    def compare_values(self, label: str, real: Any, ours: Any) -> None:
        """Note every field in which two answers, as plain values, differ."""
        self._walk(label, "", real, ours)

    def count(self, label: str) -> None:
        """Count a comparison for the API that its label starts with."""
        key = label.split(" ", maxsplit=1)[0]
        self.requested[key] = self.requested.get(key, 0) + 1

    def note(self, label: str, kind: str, path: str, real: Any, ours: Any) -> None:
        """Remember one difference."""
        self.differences.append(Difference(label, kind, path, real, ours))

    def _walk(self, label: str, path: str, real: Any, ours: Any) -> None:
        if real == ours:
            return
        if isinstance(real, dict) and isinstance(ours, dict):
            for key in real:
                self._walk(label, f"{path}.{key}", real[key], ours.get(key))
            return
        if isinstance(real, list) and isinstance(ours, list):
            self._walk_lists(label, path, real, ours)
            return
        if self._is_same_time(path, real, ours):
            return
        kind = "message" if path.endswith("error_message") and real and ours else "value"
        self.note(label, kind, path, real, ours)

    def _is_same_time(self, path: str, real: Any, ours: Any) -> bool:
        """Return whether two times of this run differ no more than two brokers asked in turn may.

        Earlier times are those of records, which both brokers were sent.
        """
        if not (_TIMES.search(path) and isinstance(real, int) and isinstance(ours, int)):
            return False
        is_of_run = min(real, ours) >= self.now_ms - _TIME_TOLERANCE_MS
        return is_of_run and abs(real - ours) <= _TIME_TOLERANCE_MS

    def _walk_lists(self, label: str, path: str, real: list[Any], ours: list[Any]) -> None:
        if len(real) != len(ours):
            self.note(label, "value", f"{path}#", real, ours)
            return
        keys = [[_identity(one) for one in found] for found in (real, ours)]
        if keys[0] != keys[1] and sorted(keys[0]) == sorted(keys[1]):
            self.note(label, "order", path, keys[0], keys[1])
            real = [real[n] for n in sorted(range(len(real)), key=keys[0].__getitem__)]
            ours = [ours[n] for n in sorted(range(len(ours)), key=keys[1].__getitem__)]
        for at, (one, other) in enumerate(zip(real, ours, strict=True)):
            self._walk(label, f"{path}[{at}]", one, other)

    # -- setting a stage

    def topic(
        self, suffix: str, *, partitions: int = 1, configs: dict[str, str] | None = None
    ) -> str:
        """Create a topic in both and wait for its leaders; returns its name."""
        name = self.name(suffix)
        pairs = [{"name": key, "value": value} for key, value in (configs or {}).items()]
        one = {
            "name": name,
            "num_partitions": partitions,
            "replication_factor": 1,
            "configs": pairs,
        }
        for side, answer in zip(self.sides, self._quiet_create(one), strict=True):
            assert not isinstance(answer, str), (name, side.name, answer)
            assert answer.topics[0].error_code == 0, (name, side.name, answer)
            side.topic_ids[name] = answer.topics[0].topic_id
            side.masks.topic_ids[answer.topics[0].topic_id] = f"<id of {name}>"
        return name

    def _quiet_create(self, one: Body) -> list[Any]:
        counted, noted = dict(self.requested), list(self.differences)
        body = {"topics": [one], "timeout_ms": 10_000}
        answers = self.ask("stage", "CreateTopics", 7, body)
        while any(answer.topics[0].error_code == _THROTTLED for answer in answers):
            # A quota that was drawn before: who was refused asks again.
            time.sleep(max(answer.throttle_time_ms for answer in answers) / 1000)
            again = self.ask("stage", "CreateTopics", 7, body)
            answers = [
                new if old.topics[0].error_code == _THROTTLED else old
                for old, new in zip(answers, again, strict=True)
            ]
        self.requested, self.differences = counted, noted
        return answers

    def settle(self, seconds: float = 0.4) -> None:
        """Let changes arrive that brokers learn of by watches."""
        time.sleep(seconds)

    def close(self) -> None:
        """Close every socket."""
        for side in self.sides:
            for key in list(side.sockets):
                side.drop(key)


def framed(frame: bytes) -> bytes:
    """Return a frame behind its length."""
    return struct.pack(">i", len(frame)) + frame


def versions(name: str) -> range:
    """Return the versions that are served of an API."""
    found = api(name).stable
    return range(found.lowest, found.highest + 1)


def encode(message: str, version: int, body: Body) -> bytes:
    """Encode a body; fields that the version lacks are left out."""
    codec = message_codec(message, version)
    return codec.encode(_made(message_class(message), message_class(message), codec.layout, body))


def _made(root: Any, kind: Any, layout: StructLayout, body: Body) -> Any:
    out = kind()
    known = {field.attribute: field for field in layout.fields}
    for key, value in body.items():
        field = known[key]
        if field.place == "absent":
            continue
        if field.struct is not None and value is not None:
            value = _nested(root, field, value)  # noqa: PLW2901
        setattr(out, key, value)
    return out


def _nested(root: Any, field: FieldLayout, value: Any) -> Any:
    assert field.struct is not None
    kind = getattr(root, field.type)
    if field.is_array:
        return [_made(root, kind, field.struct, one) for one in value]
    return _made(root, kind, field.struct, value)


def _of(body: BodyOf, side: Side) -> Body:
    return body(side) if callable(body) else body


def _is_common(topic: str) -> bool:
    """Return whether both brokers have a topic: only Kafka makes internal ones by now.

    Of two that collide in one request the first is made, by Kafka that of a hash.
    """
    return not topic.startswith("__") and "-dots" not in topic


def _keep_common_keys(values: list[Any]) -> None:
    """Leave what only one broker serves out of two answers; docs/compatibility.md lists that."""
    keys = [{one["api_key"] for one in value["api_keys"]} for value in values if value != CLOSED]
    common = set.intersection(*keys)
    for value in values:
        if value != CLOSED:
            value["api_keys"] = [one for one in value["api_keys"] if one["api_key"] in common]


_TIMES = re.compile(r"(timestamp|time)(_ms)?$")
_TIME_TOLERANCE_MS = 10_000


#: Fields that name an element; the last ones those of an access rule.
_NAMES = frozenset(
    [
        "name",
        "topic",
        "topic_name",
        "topic_id",
        "index",
        "partition",
        "broker_id",
        "user",
        "key",
        "principal",
        "host",
        "operation",
        "producer_id",
    ]
)


def _identity(one: Any) -> str:
    """Return what names an element of an array among its siblings."""
    if not isinstance(one, dict):
        return repr(one)
    scalars = {key: value for key, value in one.items() if not isinstance(value, list)}
    if scalars.get("name"):
        scalars.pop("topic_id", None)
    names = [
        f"{key}={value!r}"
        for key, value in scalars.items()
        if key in _NAMES or key.endswith(("_name", "_index", "_type", "node_id", "log_dir"))
    ]
    if "entity" in one:
        names.append(repr(one["entity"]))
    return " ".join(names) or repr(scalars)
