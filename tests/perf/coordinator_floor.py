"""What transactions and commits cost where nobody decides anything: the floor of CPython.

    python -m tests.perf.coordinator_floor [--folder DIR] [--keeps-commits | --decides-commits]

It prints what to give to `tests.perf.coordinators` as one more `--peer`, and runs until it is
interrupted. Commits of offsets and the requests of a transaction are answered at once, from a
template, on the broker's own event loop and network; each of the appends of a broker is one write
of as many bytes to a file:

| request | appends |
|---|---|
| AddPartitionsToTxn | the state of the transaction |
| Produce | the records |
| EndTxn | the decision, the marker, the completion |
| OffsetCommit | the record of the offset |

No record is there to be read, so that it stands for a broker in these alone. With `--keeps-commits`
a commit is what it is: its group and offset are looked up in the request, a batch is made of them
with its checksum, written, and the offset is known. That is the least that a broker can do in
Python, in straight lines without a rule: no member, epoch, authorization, quota, metric or replica.
With `--decides-commits` it also does once, in straight lines, what Kafka does for each commit of a
consumer that assigns its partitions itself: its group is looked up, coordinated here and without
members, the metadata short; the partition of `__consumer_offsets` is led here with enough in-sync
replicas; the segment has room, gets an index entry each 4,096 bytes, and the high watermark rises;
the offset is newer than the one before; no quota throttles the client; size and time are counted.
Everything else a client needs is forwarded to an embedded broker. No broker on this loop is
quicker: what a client does between two requests, its wake-ups and the kernel's part are all in it.
"""

from __future__ import annotations

import argparse
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from engine.host.event_loop import EventLoop
from engine.host.ports import Connection, ListenOptions
from engine.host.real import RealClock
from engine.host.real_network import RealNetwork
from engine.host.unlimited_connections import UnlimitedConnections
from engine.records.crc import crc32c
from engine.wire import messages
from engine.wire.codec import message_codec
from engine.wire.headers import api, read_request_header, response_header_bytes

_HOST: Final = "127.0.0.1"
_PRODUCE, _ADD, _END, _COMMIT = (
    api(name).key for name in ("Produce", "AddPartitionsToTxn", "EndTxn", "OffsetCommit")
)
#: Bytes of a record of `__transaction_state` in its batch, of a marker, of a committed offset.
_STATE_BYTES, _MARKER_BYTES, _OFFSET_BYTES = 170, 78, 160
_NO_OFFSET: Final = -1
#: `offsets.topic.segment.bytes`, and `log.index.interval.bytes`.
_SEGMENT_BYTES: Final = 100 << 20
_INDEX_INTERVAL_BYTES: Final = 4096
_offset = struct.Struct(">q").unpack_from
_pack_long = struct.Struct(">q").pack_into
_pack_times = _pack_value = struct.Struct(">qq").pack_into
_pack_crc = struct.Struct(">I").pack_into


def _add_response(request: Any) -> messages.AddPartitionsToTxnResponse:
    response = messages.AddPartitionsToTxnResponse
    row = response.AddPartitionsToTxnPartitionResult
    return response(
        results_by_topic_v3_and_below=[
            response.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[row(partition_index=index) for index in topic.partitions],
            )
            for topic in request.v3_and_below_topics
        ]
    )


def _produce_response(request: Any) -> messages.ProduceResponse:
    response = messages.ProduceResponse
    row = response.PartitionProduceResponse
    return response(
        responses=[
            response.TopicProduceResponse(
                name=topic.name,
                partition_responses=[
                    row(index=data.index, base_offset=0, log_append_time_ms=_NO_OFFSET)
                    for data in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )


def _commit_response(request: Any) -> messages.OffsetCommitResponse:
    response = messages.OffsetCommitResponse
    row = response.OffsetCommitResponsePartition
    return response(
        topics=[
            response.OffsetCommitResponseTopic(
                name=topic.name,
                partitions=[row(partition_index=data.partition_index) for data in topic.partitions],
            )
            for topic in request.topics
        ]
    )


_RESPONSES: Final = {
    _COMMIT: _commit_response,
    _PRODUCE: _produce_response,
    _ADD: _add_response,
    _END: lambda _request: messages.EndTxnResponse(),
}


class CommitRules:
    """What Kafka checks and counts at a commit without a member, in one place of straight lines."""

    def __init__(self) -> None:
        #: The partition of `__consumer_offsets`, the state and the last log offset of each group.
        self._groups: dict[bytes, tuple[int, str, int]] = {}
        self._coordinated: Final = frozenset(range(50))
        self._leader_id = self._broker_id = 1
        self._isr: Final = (1,)
        self._size_bytes = self._entry_bytes = self._largest_ms = 0
        self._end_offset = self._high_watermark = 0
        self._index: list[tuple[int, int]] = []
        self._roll_at_ms: Final = time.time_ns() // 1_000_000 + 604_800_000
        self._quotas: dict[bytes, int] = {}
        self._sizes: list[int] = []
        self._longest_ns = 0

    def apply(self, group: bytes, size_bytes: int, batch_bytes: int, now_ms: int) -> None:
        """Check and count one commit; all of a run are accepted, so that any other one is a bug."""
        began_ns = time.perf_counter_ns()
        partition, state, last_offset = self._groups.get(group) or (zlib.crc32(group) % 50, "", -1)
        offset = self._end_offset
        if (
            partition not in self._coordinated
            or state
            or group in self._quotas
            or self._leader_id != self._broker_id
            or len(self._isr) < 1
            or now_ms > self._roll_at_ms
            or last_offset >= offset
        ):
            raise AssertionError("a commit that is not accepted")
        if self._size_bytes + batch_bytes > _SEGMENT_BYTES:
            self._size_bytes = 0
            self._index.clear()
        self._groups[group] = partition, state, offset
        self._largest_ms = max(self._largest_ms, now_ms)
        if self._entry_bytes > _INDEX_INTERVAL_BYTES:
            self._index.append((offset, self._size_bytes))
            self._entry_bytes = 0
        self._entry_bytes += batch_bytes
        self._size_bytes += batch_bytes
        self._end_offset = self._high_watermark = offset + 1
        self._sizes.append(size_bytes)
        self._longest_ns = max(self._longest_ns, time.perf_counter_ns() - began_ns)


class KeptCommits:
    """Offsets as requests commit them, each in a batch with its checksum."""

    def __init__(self, file: int, rules: CommitRules | None = None) -> None:
        self._file = file
        self._rules = rules
        self._end_bytes = self._end_offset = 0
        # By the bytes of a request up to the offset: a batch, and the response's body.
        self._known: dict[bytes, tuple[bytearray, bytes]] = {}
        self._offset_at = 0
        self.offsets: dict[bytes, tuple[int, int]] = {}

    def answer(self, frame: memoryview) -> tuple[bytes]:
        """Keep the offset of a request of one partition, and return the response."""
        head = bytes(frame[8 : self._offset_at])
        known = self._known.get(head)
        if known is None:
            offset_at, batch, body = _learned(frame)
            self._offset_at = offset_at
            head = bytes(frame[8:offset_at])
            known = self._known[head] = batch, body
        batch, body = known
        (offset,) = _offset(frame, self._offset_at)
        now_ms = time.time_ns() // 1_000_000
        if self._rules is not None:
            self._rules.apply(head, len(frame), len(batch), now_ms)
        _pack_long(batch, 0, self._end_offset)
        _pack_times(batch, 27, now_ms, now_ms)
        _pack_value(batch, len(batch) - 16, offset, now_ms)
        _pack_crc(batch, 17, crc32c(memoryview(batch)[21:]))
        self._end_bytes += os.pwrite(self._file, batch, self._end_bytes)
        self._end_offset += 1
        self.offsets[head] = offset, now_ms
        return (bytes(frame[4:8]) + body,)


def _learned(frame: memoryview) -> tuple[int, bytearray, bytes]:
    """Return where a request's offset is, a batch as large as its record's, the response's body."""
    header = read_request_header(frame)
    codec = message_codec("OffsetCommitRequest", header.api_version)
    request = codec.decode_at(frame[header.body_position :], 0)[0]
    (topic,) = request.topics
    (partition,) = topic.partitions
    offset_at = bytes(frame).rindex(struct.pack(">q", partition.committed_offset))
    return offset_at, bytearray(_OFFSET_BYTES), _body(frame)


class _Client:
    """A connection whose transactions are answered here; all else goes on to the broker."""

    def __init__(
        self,
        network: RealNetwork,
        port: int,
        files: Sequence[int],
        kept: KeptCommits | None,
        client: Connection,
    ) -> None:
        self._client = client
        self._kept = kept
        self._broker = network.connect(_HOST, port)
        self._log, self._state = files
        self._ends = dict.fromkeys(files, 0)
        self._bodies: dict[int, bytes] = {}
        client.on_frame = self._take
        client.on_close = self._broker.close
        self._broker.on_frame = lambda frame: client.send((bytes(frame),))
        self._broker.on_close = client.close

    def _take(self, frame: memoryview) -> None:
        key = int.from_bytes(frame[:2])
        if key not in _RESPONSES:
            self._broker.send((bytes(frame),))
            return
        if key == _COMMIT and self._kept is not None:
            self._client.send(self._kept.answer(frame))
            return
        if key == _PRODUCE:
            self._append(self._log, frame)
        elif key == _COMMIT:
            self._append(self._state, bytes(_OFFSET_BYTES))
        elif key == _ADD:
            self._append(self._state, bytes(_STATE_BYTES))
        else:
            self._append(self._state, bytes(_STATE_BYTES))
            self._append(self._log, bytes(_MARKER_BYTES))
            self._append(self._state, bytes(_STATE_BYTES))
        body = self._bodies.get(key)
        if body is None:
            body = self._bodies[key] = _body(frame)
        self._client.send((bytes(frame[4:8]) + body,))

    def _append(self, file: int, content: bytes | memoryview) -> None:
        self._ends[file] += os.pwrite(file, content, self._ends[file])


def _body(frame: memoryview) -> bytes:
    """Return the response to a request, without its correlation id."""
    header = read_request_header(frame)
    key, version = header.api_key, header.api_version
    name = api(key).name
    request = message_codec(f"{name}Request", version).decode_at(frame[header.body_position :], 0)
    response = message_codec(f"{name}Response", version).encode(_RESPONSES[key](request[0]))
    return response_header_bytes(key, version, 0)[4:] + response


def _broker(folder: Path, port: int, advertised_port: int) -> subprocess.Popen[bytes]:
    """Start an embedded broker whose clients come by another port."""
    config = folder / "server.properties"
    config.write_text(
        f"broker.id=1\nlisteners=PLAINTEXT://{_HOST}:{port}\nlog.dirs={folder}/logs\n"
        f"advertised.listeners=PLAINTEXT://{_HOST}:{advertised_port}\n"
        "transaction.state.log.replication.factor=1\ntransaction.state.log.min.isr=1\n"
        "offsets.topic.replication.factor=1\n"
    )
    command = [sys.executable, "-m", "kctl", "broker", "run", "--config", str(config)]
    out = folder / "out"
    with out.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT)
    while b"ready" not in out.read_bytes():
        if process.poll() is not None:
            raise SystemExit(out.read_text())
        time.sleep(0.1)
    return process


def _nothing(_peer: str, _reason: str) -> None:
    """Report nothing."""


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", help="where the files are")
    parser.add_argument("--port", type=int, default=19092, help="the next one is the broker's")
    parser.add_argument("--keeps-commits", action="store_true")
    parser.add_argument("--decides-commits", action="store_true")
    given = parser.parse_args()
    port: int = given.port
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        names = [f"{folder}/{name}" for name in ("log", "state")]
        files = [os.open(name, os.O_RDWR | os.O_CREAT) for name in names]
        loop = EventLoop()
        network = RealNetwork(loop, RealClock())
        options = ListenOptions(UnlimitedConnections(), _nothing, _nothing)
        kept = None
        if given.keeps_commits or given.decides_commits:
            kept = KeptCommits(files[1], CommitRules() if given.decides_commits else None)
        network.listen(
            _HOST, port, lambda client: _serve(network, port + 1, files, kept, client), options
        )
        process = _broker(Path(folder), port + 1, port)
        print(f'--peer "floor={_HOST}:{port}={os.getpid()}"', flush=True)
        loop.handle_signals(loop.stop)
        loop.run()
        process.send_signal(signal.SIGTERM)
        process.wait()


def _serve(
    network: RealNetwork,
    port: int,
    files: Sequence[int],
    kept: KeptCommits | None,
    client: Connection,
) -> None:
    _Client(network, port, files, kept, client)


if __name__ == "__main__":
    main()
