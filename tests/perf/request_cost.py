"""CPU time of one broker per request, by a client that costs next to nothing itself.

    python -m tests.perf.request_cost [--tree NAME=DIRECTORY …] [--peer NAME=HOST:PORT=PID …]
                                      [--least] [--brokers N] [--rounds 5] [--only TEXT]

Frames are encoded once and sent over a raw socket, a window of them at a time, so that nearly all
that is measured is the broker. Trees are checkouts to be compared; each has a broker of its own.
Peers are brokers that run already. All are asked in turn, round after round. What counts is the CPU
time of the broker's process, which other load on the machine changes little; the lowest of the
rounds is shown, then the median. `--least` has `least.c` beside them, which does nothing that could
be left out: no broker costs less, in any language. It is compiled by gcc with liblz4,
libzstd and libisal. With `--brokers N` each tree runs N brokers in one process, partitions have a
replica on each, and produces wait for all of them (acks=all).
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, NewTopic

from engine.records.builder import BatchSettings, build_batch
from engine.records.codec import Codec
from engine.records.record import Record, TimestampType
from engine.wire.codec import message_codec
from engine.wire.headers import encode_request_header
from engine.wire.structs import message_class
from tests.perf.ratios import machine_line

_PRODUCE, _PRODUCE_VERSION = 0, 9
_FETCH, _FETCH_VERSION, _SESSION_FETCH_VERSION = 1, 11, 17
_LENGTH = struct.Struct(">i")
_RECEIVED_BYTES = 4 << 20


class Tree(NamedTuple):
    """A running broker: the checkout it comes from, its address and its process."""

    name: str
    host: str
    port: int
    pid: int
    has_topics: bool = True
    broker_count: int = 1

    @property
    def acks(self) -> int:
        """Return what produces ask for: all replicas where there are several."""
        return 1 if self.broker_count == 1 else -1


class Cost(NamedTuple):
    """What one request took: CPU of the broker in µs, its system part, and by the clock."""

    cpu_us: float
    system_us: float
    wall_us: float


@contextmanager
def tree_broker(name: str, directory: str, folder: str, broker_count: int = 1) -> Iterator[Tree]:
    """Run the embedded brokers of a checkout on a folder, which is removed at the end."""
    kctl = [sys.executable, "-m", "kctl", "cluster"]
    run: Callable[..., subprocess.CompletedProcess[bytes]] = partial(
        subprocess.run,
        check=True,
        capture_output=True,
        cwd=directory,
        env={**os.environ, "PYTHONPATH": directory},
    )
    data = ["--data", folder]
    brokers = ["--brokers", str(broker_count)] if broker_count > 1 else []
    start = [*kctl, "start", *data, "--port", "0", "-o", "json", *brokers]
    status = json.loads(run(start).stdout)
    # The first broker leads all partitions that are measured.
    host, port = status["bootstrap_servers"].split(",")[0].rsplit(":", 1)
    try:
        yield Tree(name, host, int(port), status["pids"][0], broker_count=broker_count)
    finally:
        run([*kctl, "stop", *data])
        run([*kctl, "destroy", *data, "-y"])


def _peer(text: str) -> Tree:
    name, address, pid = text.split("=")
    host, port = address.rsplit(":", 1)
    return Tree(name, host, int(port), int(pid))


@contextmanager
def _least(folder: str) -> Iterator[Tree]:
    """Compile and run what does the least."""
    program = f"{folder}/least"
    source = str(Path(__file__).with_name("least.c"))
    libraries = ["-llz4", "-lzstd", "-lisal"]
    subprocess.run(["gcc", "-O2", "-o", program, source, *libraries], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([program, str(port), f"{folder}/least.log"])
    try:
        _await_listener(port)
        yield Tree("least", "127.0.0.1", port, process.pid, has_topics=False)
    finally:
        process.kill()
        process.wait()


def _await_listener(port: int) -> None:
    end = time.monotonic() + 10
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            if time.monotonic() > end:
                raise
        else:
            return


def _used_s(pid: int) -> tuple[float, float]:
    """Return the CPU seconds of a process, all and those in the kernel."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    user, system = (int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in fields[11:13])
    return user + system, system


def _framed(key: int, version: int, name: str, message: object) -> bytes:
    body = message_codec(f"{name}Request", version).encode(message)
    frame = encode_request_header(key, version, 1, "request-cost") + body
    return _LENGTH.pack(len(frame)) + frame


def produce_frame(topic: str, batch_bytes: int, acks: int = 1, codec: Codec = Codec.NONE) -> bytes:
    """Return a produce request with one batch of about that size before it is compressed."""
    size = max(min(batch_bytes - 80, 1000), 1)
    value = os.urandom(size)
    records = [
        Record(
            n,
            round(time.time() * 1000),
            TimestampType.CREATE_TIME,
            None,
            # Text of hexadecimal digits compresses to half of its size.
            os.urandom(size // 2).hex().encode() if codec else value,
        )
        for n in range(max(batch_bytes // 1000, 1))
    ]
    batch = bytes(build_batch(records, BatchSettings(codec=codec)))
    request = message_class("ProduceRequest")
    message = request(
        acks=acks,
        timeout_ms=30_000,
        topic_data=[
            request.TopicProduceData(
                name=topic,
                partition_data=[request.PartitionProduceData(index=0, records=batch)],
            )
        ],
    )
    return _framed(_PRODUCE, _PRODUCE_VERSION, "Produce", message)


def fetch_frame(topic: str, offset: int, max_bytes: int) -> bytes:
    """Return a fetch request of a consumer without a session, as librdkafka's are."""
    request = message_class("FetchRequest")
    requested = request.FetchPartition(
        partition=0, fetch_offset=offset, partition_max_bytes=max_bytes
    )
    message = request(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 << 20,
        session_epoch=-1,
        topics=[request.FetchTopic(topic=topic, partitions=[requested])],
    )
    return _framed(_FETCH, _FETCH_VERSION, "Fetch", message)


def session_frame(
    topic_id: bytes, max_bytes: int, session_id: int = 0, session_epoch: int = 0
) -> bytes:
    """Return a fetch request of a consumer with a session, as Java's are."""
    request = message_class("FetchRequest")
    requested = request.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=max_bytes)
    message = request(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=50 << 20,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=[request.FetchTopic(topic_id=topic_id, partitions=[requested])],
    )
    return _framed(_FETCH, _SESSION_FETCH_VERSION, "Fetch", message)


class _Answers:
    """Counts the frames that come back, without keeping them."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._buffer = bytearray(_RECEIVED_BYTES)
        self._head = b""
        self._missing = 0

    def wait(self) -> int:
        """Read once; returns how many frames ended in that."""
        size = self._sock.recv_into(self._buffer)
        if not size:
            raise EOFError("the broker closed the connection")
        count, at = 0, 0
        while at < size:
            if self._missing:
                taken = min(self._missing, size - at)
                self._missing -= taken
                at += taken
                count += not self._missing
                continue
            need = 4 - len(self._head)
            self._head += self._buffer[at : min(at + need, size)]
            at = min(at + need, size)
            if len(self._head) == 4:
                (self._missing,) = _LENGTH.unpack(self._head)
                self._head = b""
        return count


def _ask(tree: Tree, frame: bytes, count: int, window: int) -> Cost:
    """Send a frame again and again with so many unanswered ones."""
    with socket.create_connection((tree.host, tree.port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        answers = _Answers(sock)
        _exchange(sock, answers, frame, max(count // 20, 1), window)
        before, start = _used_s(tree.pid), time.perf_counter()
        _exchange(sock, answers, frame, count, window)
        took_s, after = time.perf_counter() - start, _used_s(tree.pid)
    return Cost(
        (after[0] - before[0]) / count * 1e6,
        (after[1] - before[1]) / count * 1e6,
        took_s / count * 1e6,
    )


def _exchange(
    sock: socket.socket, answers: _Answers, frame: bytes, count: int, window: int
) -> None:
    sent = answered = 0
    while answered < count:
        while sent < count and sent - answered < window:
            sock.sendall(frame)
            sent += 1
        answered += answers.wait()


def exchange(sock: socket.socket, frame: bytes, count: int, window: int) -> None:
    """Send a frame so often, with at most so many unanswered ones."""
    _exchange(sock, _Answers(sock), frame, count, window)


def _produce(batch_bytes: int, window: int, tree: Tree, topic: str, count: int) -> Cost:
    return _ask(tree, produce_frame(topic, batch_bytes, tree.acks), count, window)


def _compressed(codec: Codec, batch_bytes: int, tree: Tree, topic: str, count: int) -> Cost:
    return _ask(tree, produce_frame(topic, batch_bytes, tree.acks, codec), count, 5)


def _fill(tree: Tree, topic: str, max_bytes: int) -> None:
    """Produce more than one fetch takes, in batches that are no larger than it wants."""
    batch_bytes = min(max_bytes, 100_000)
    _ask(tree, produce_frame(topic, batch_bytes), max(2 * max_bytes // batch_bytes, 1), 5)


def _fetch(max_bytes: int, tree: Tree, topic: str, count: int) -> Cost:
    _fill(tree, topic, max_bytes)
    return _ask(tree, fetch_frame(topic, 0, max_bytes), count, 1)


def _fetch_in_session(max_bytes: int, tree: Tree, topic: str, count: int) -> Cost:
    """Fetch as Java's clients do: one partition in the session, which each request names again."""
    _fill(tree, topic, max_bytes)
    with socket.create_connection((tree.host, tree.port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        topic_id = _topic_id(tree, topic)
        sock.sendall(session_frame(topic_id, max_bytes))
        # Behind correlation id, tags, throttle time and error.
        session_id = int.from_bytes(_frame_from(sock)[11:15])
        answers = _Answers(sock)
        before, start = _used_s(tree.pid), time.perf_counter()
        for epoch in range(1, count + 1):
            sock.sendall(session_frame(topic_id, max_bytes, session_id, epoch))
            while not answers.wait():
                pass
        took_s, after = time.perf_counter() - start, _used_s(tree.pid)
    return Cost(
        *((b - a) / count * 1e6 for a, b in zip(before, after, strict=True)), took_s / count * 1e6
    )


def _topic_id(tree: Tree, topic: str) -> bytes:
    admin = AdminClient({"bootstrap.servers": f"{tree.host}:{tree.port}"})
    found = admin.describe_topics(TopicCollection([topic]))[topic].result().topic_id
    halves = found.get_most_significant_bits(), found.get_least_significant_bits()
    return struct.pack(">qq", *halves)


def _frame_from(sock: socket.socket) -> bytes:
    """Read one frame; returns what is behind its length."""
    with sock.makefile("rb") as stream:
        (size,) = _LENGTH.unpack(stream.read(4))
        return stream.read(size)


def _tail(tree: Tree, topic: str, count: int) -> Cost:
    """Produce one record at a time to a consumer that waits for it."""
    unlikely = 0x1234_5678_9ABC
    fetch = bytearray(fetch_frame(topic, unlikely, 1 << 20))
    offset_at = fetch.index(unlikely.to_bytes(8))
    produce = produce_frame(topic, 180, tree.acks)
    address = (tree.host, tree.port)
    with socket.create_connection(address) as reader, socket.create_connection(address) as writer:
        read, written = _Answers(reader), _Answers(writer)
        before, start = _used_s(tree.pid), time.perf_counter()
        for offset in range(count):
            fetch[offset_at : offset_at + 8] = offset.to_bytes(8)
            reader.sendall(fetch)
            writer.sendall(produce)
            while not read.wait():
                pass
            while not written.wait():
                pass
        took_s, after = time.perf_counter() - start, _used_s(tree.pid)
    return Cost(
        *((b - a) / count * 1e6 for a, b in zip(before, after, strict=True)), took_s / count * 1e6
    )


class Case(NamedTuple):
    """What is asked, and how often; `least` can answer some of it."""

    label: str
    run: Callable[[Tree, str, int], Cost]
    count: int
    is_for_least: bool = True


CASES = (
    Case("produce 100 B, 16 in flight", partial(_produce, 180, 16), 40_000),
    Case("produce 100 B, one at a time", partial(_produce, 180, 1), 10_000),
    Case("produce 16 KB, 5 in flight", partial(_produce, 16_000, 5), 10_000),
    Case("produce 100 KB, 5 in flight", partial(_produce, 100_000, 5), 5_000),
    Case("produce 1 MB, 5 in flight", partial(_produce, 1_000_000, 5), 600),
    Case("produce 16 KB of lz4, 5 in flight", partial(_compressed, Codec.LZ4, 16_000), 10_000),
    Case("produce 100 KB of lz4, 5 in flight", partial(_compressed, Codec.LZ4, 100_000), 5_000),
    Case("produce 100 KB of zstd, 5 in flight", partial(_compressed, Codec.ZSTD, 100_000), 5_000),
    Case(
        "produce 100 KB of gzip, 5 in flight",
        partial(_compressed, Codec.GZIP, 100_000),
        2_000,
        False,
    ),
    Case(
        "produce 100 KB of snappy, 5 in flight",
        partial(_compressed, Codec.SNAPPY, 100_000),
        5_000,
        False,
    ),
    Case("fetch 16 KB", partial(_fetch, 16_000), 10_000),
    Case("fetch 16 KB in a session", partial(_fetch_in_session, 16_000), 5_000, False),
    Case("fetch 100 KB", partial(_fetch, 100_000), 5_000),
    Case("fetch 1 MB", partial(_fetch, 1 << 20), 2_000),
    Case("produce 100 B to a waiting fetch", _tail, 5_000, False),
)


@contextmanager
def _topic(tree: Tree) -> Iterator[str]:
    if not tree.has_topics:
        yield "cost-of-what-has-no-topics"
        return
    admin = AdminClient({"bootstrap.servers": f"{tree.host}:{tree.port}"})
    name = f"cost-{time.monotonic_ns()}"
    replicas = list(range(1, tree.broker_count + 1))
    topic = NewTopic(name, num_partitions=1, replica_assignment=[replicas])
    for future in admin.create_topics([topic]).values():
        future.result()
    try:
        yield name
    finally:
        for future in admin.delete_topics([name]).values():
            future.result()


def _cell(costs: list[Cost]) -> str:
    if not costs:
        return "–"
    least = min(costs)
    middle = statistics.median(cost.cpu_us for cost in costs)
    wall = statistics.median(cost.wall_us for cost in costs)
    return f"{least.cpu_us:.1f} ({middle:.1f}; system {least.system_us:.1f}; wall {wall:.0f})"


def main() -> None:
    """Print one line a case."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--tree", action="append", default=[], metavar="NAME=DIRECTORY")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=HOST:PORT=PID")
    parser.add_argument("--least", action="store_true")
    parser.add_argument("--brokers", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    requested = parser.parse_args()
    here = str(Path(__file__).parents[2])
    trees = [text.partition("=")[::2] for text in requested.tree] or [("kctl", here)]
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        brokers = [
            stack.enter_context(tree_broker(name, directory, f"{folder}/{name}", requested.brokers))
            for name, directory in trees
        ]
        brokers += [_peer(text) for text in requested.peer]
        if requested.least:
            brokers.append(stack.enter_context(_least(folder)))
        print(machine_line(), "\n\nCPU µs a request: least (median; in the kernel; by the clock)\n")
        print(f"| case | {' | '.join(tree.name for tree in brokers)} |")
        print("|---" * (1 + len(brokers)) + "|")
        for case in CASES:
            if requested.only not in case.label:
                continue
            costs: list[list[Cost]] = [[] for _ in brokers]
            for _ in range(requested.rounds):
                for tree, found in zip(brokers, costs, strict=True):
                    if not (tree.has_topics or case.is_for_least):
                        continue
                    with _topic(tree) as topic:
                        found.append(case.run(tree, topic, case.count))
            print(f"| {case.label} | {' | '.join(map(_cell, costs))} |", flush=True)


if __name__ == "__main__":
    main()
