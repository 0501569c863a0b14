"""Peers that break every rule, against a broker that serves others meanwhile."""

from __future__ import annotations

import os
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from engine.limits import (
    FRAME_BYTES_MAX,
    REFUSAL_LINES_PER_PERIOD,
    REGION_COST_BYTES,
    UNSENT_BYTES_MAX,
)
from engine.records.batch import Codec
from engine.wire.codec import message_codec
from engine.wire.headers import api, encode_request_header
from engine.wire.structs import message_class
from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.raw_client import RawClient
from tests.unit.log.writing import sent

TOPIC = "attacked"
#: What the broker may take more than at the start, for any input: what one peer may leave unread,
#: its largest frame, and what it costs to keep those.
MEMORY_MAX_BYTES = UNSENT_BYTES_MAX + 2 * FRAME_BYTES_MAX
_HUGE = 0x7FFFFFFF
_MANY = 300


class Target:
    """A broker, what it weighed at the start, and a client that behaves."""

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self.cluster = cluster
        self.address = cluster.address
        self.create(TOPIC)
        self.friend = RawClient(self.address)
        self._weight = self.memory_bytes()

    def create(self, name: str) -> None:
        request = message_class("CreateTopicsRequest")
        topic = request.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        with RawClient(self.address) as client:
            reply = client.ask("CreateTopics", 7, topics=[topic], timeout_ms=10_000)
        assert reply.topics[0].error_code == 0

    def memory_bytes(self) -> int:
        status = Path(f"/proc/{self.cluster.pids[0]}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) << 10

    def log_lines(self) -> int:
        return (self.cluster.data / "cluster.log").read_bytes().count(b"\n")

    def produce(
        self, client: RawClient, records: Any, version: int = 9, *, topic: str = TOPIC
    ) -> int:
        """Produce a batch and return the partition's error code."""
        request = produce_request(records, topic)
        reply = client.ask("Produce", version, **request)
        code: int = reply.responses[0].partition_responses[0].error_code
        return code

    def check(self) -> None:
        """See that old and new clients are served, and what the broker weighs."""
        assert self.produce(self.friend, sent()) == 0
        with RawClient(self.address) as client:
            assert client.ask("ApiVersions", 0).error_code == 0
            assert self.produce(client, sent()) == 0
        grown = self.memory_bytes() - self._weight
        assert grown < MEMORY_MAX_BYTES, f"{grown >> 20} MiB more than at the start"
        assert b"Traceback" not in (self.cluster.data / "cluster.log").read_bytes()


def produce_request(records: Any, name: str = TOPIC) -> dict[str, Any]:
    made = message_class("ProduceRequest")
    partition = made.PartitionProduceData(index=0, records=records)
    topic = made.TopicProduceData(name=name, partition_data=[partition])
    return {"acks": 1, "timeout_ms": 1000, "topic_data": [topic]}


def fetch_request(topic: str) -> dict[str, Any]:
    made = message_class("FetchRequest")
    requested = made.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=_HUGE)
    topics = [made.FetchTopic(topic=topic, partitions=[requested])]
    return {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": _HUGE, "topics": topics}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    cluster = EmbeddedCluster(tmp_path_factory.mktemp("hostile") / "cluster")
    cluster.start()
    found = Target(cluster)
    yield found
    found.friend.socket.close()
    cluster.destroy()


def header(name: str, version: int, client_id: str | None = "raw") -> bytes:
    return encode_request_header(api(name).key, version, 77, client_id)


def framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def tls_hello() -> bytes:
    """Return what a TLS client says first."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    hello = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="here")
    with pytest.raises(ssl.SSLWantReadError):
        hello.do_handshake()
    return outgoing.read()


_COMPACT_HUGE = b"\xff\xff\xff\xff\x0f"
CLOSING = {
    "a negative length": struct.pack(">i", -1),
    "the least length": struct.pack(">i", -(1 << 31)),
    "a huge length": struct.pack(">i", _HUGE),
    "a length above the limit": struct.pack(">i", FRAME_BYTES_MAX + 1),
    "an empty frame": framed(b""),
    "half a header": framed(b"\0\x03\0"),
    "an unknown API": framed(struct.pack(">hhih", 9999, 0, 1, -1)),
    "a negative API": framed(struct.pack(">hhih", -1, 0, 1, -1)),
    "an unknown version": framed(struct.pack(">hhih", 3, 99, 1, -1)),
    "a negative version": framed(struct.pack(">hhih", 3, -1, 1, -1)),
    "a client id that is longer than the frame": framed(struct.pack(">hhih", 3, 1, 1, 9999)),
    "garbage": bytes(range(254, 0, -1)) * 8,
    "TLS": tls_hello(),
    "HTTP": b"GET / HTTP/1.1\r\nHost: here\r\n\r\n",
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
    "no body": framed(header("Produce", 9)),
    "a null name": framed(header("Metadata", 1) + struct.pack(">ih", 1, -5)),
    "an overlong varint": framed(header("Metadata", 12) + b"\x80" * 12 + b"\x01"),
    "Metadata of 2^31 topics": framed(header("Metadata", 1) + struct.pack(">i", _HUGE)),
    "Metadata of 2^32 topics": framed(header("Metadata", 12) + _COMPACT_HUGE),
    "Produce of 2^31 topics": framed(
        header("Produce", 7) + struct.pack(">hhii", -1, 1, 1000, _HUGE)
    ),
    "Produce of 2^32 topics": framed(
        header("Produce", 9) + b"\0" + struct.pack(">hi", 1, 1000) + _COMPACT_HUGE
    ),
    "Produce of records longer than all": framed(
        header("Produce", 7) + struct.pack(">hhiih1siii", -1, 1, 1000, 1, 1, b"t", 1, 0, _HUGE)
    ),
    "Fetch of 2^31 topics": framed(
        header("Fetch", 4) + struct.pack(">iiiibi", -1, 100, 1, 1 << 20, 0, _HUGE)
    ),
    "Fetch of 2^31 partitions": framed(
        header("Fetch", 4) + struct.pack(">iiiibih1si", -1, 100, 1, 99, 0, 1, 1, b"t", _HUGE)
    ),
    "CreateTopics of 2^31 topics": framed(header("CreateTopics", 4) + struct.pack(">i", _HUGE)),
    "2^32 tags": framed(header("Metadata", 12) + b"\x01\x00\x00" + _COMPACT_HUGE),
}


@pytest.mark.parametrize("name", CLOSING)
def test_what_breaks_the_protocol_ends_its_connection_alone(target: Target, name: str) -> None:
    with RawClient(target.address) as client:
        client.socket.sendall(CLOSING[name])
        assert client.frame() is None
    target.check()


def test_a_frame_cut_at_any_place_is_forgotten_with_its_connection(target: Target) -> None:
    whole = framed(
        header("Produce", 9)
        + message_codec("ProduceRequest", 9).encode(
            message_class("ProduceRequest")(**produce_request(sent(5)))
        )
    )
    for size in range(1, len(whole), 7):
        with RawClient(target.address) as client:
            client.socket.sendall(whole[:size])
    target.check()


def test_half_a_frame_and_silence_keep_nobody_waiting(target: Target) -> None:
    with ExitStack() as stack:
        for size in (2, 4, 5, 1000):
            client = stack.enter_context(RawClient(target.address))
            client.socket.sendall((struct.pack(">i", FRAME_BYTES_MAX) + bytes(1000))[:size])
        target.check()


def _patched(records: memoryview, position: int, value: bytes, *, with_crc: bool) -> memoryview:
    import fastcrc

    found = bytearray(records)
    found[position : position + len(value)] = value
    if with_crc:
        struct.pack_into(">I", found, 17, fastcrc.crc32.iscsi(bytes(found[21:])))
    return memoryview(found)


_LENGTH_AT, _MAGIC_AT, _LAST_DELTA_AT, _COUNT_AT, _RECORD_AT = 8, 16, 23, 57, 61
BATCHES: dict[str, Callable[[], memoryview]] = {
    "huge length": lambda: _patched(sent(3), _LENGTH_AT, struct.pack(">i", _HUGE), with_crc=False),
    "negative length": lambda: _patched(sent(3), _LENGTH_AT, struct.pack(">i", -9), with_crc=False),
    "unknown magic": lambda: _patched(sent(3), _MAGIC_AT, b"\x7f", with_crc=True),
    "wrong CRC": lambda: _patched(sent(3), 70, b"\xff", with_crc=False),
    "2^31 records": lambda: _patched(sent(3), _COUNT_AT, struct.pack(">i", _HUGE), with_crc=True),
    "2^31 offsets": lambda: _patched(
        sent(3), _LAST_DELTA_AT, struct.pack(">i", _HUGE), with_crc=True
    ),
    "random bytes": lambda: memoryview(os.urandom(500)),
    "too many bytes": lambda: sent(1, value=bytes(2 << 20)),
}


@pytest.mark.parametrize("name", BATCHES)
def test_records_that_are_no_good_are_refused_and_the_connection_lives(
    target: Target, name: str
) -> None:
    with RawClient(target.address) as client:
        assert target.produce(client, BATCHES[name](), 7) in (2, 10, 42, 76, 87)
        assert target.produce(client, sent(), 7) == 0
    target.check()


UNREADABLE: dict[str, Callable[[], memoryview]] = {
    "a record longer than its batch": lambda: _patched(
        sent(3), _RECORD_AT, b"\xfe\xff\xff\xff\x0f", with_crc=True
    ),
    "a bomb of zeroes": lambda: sent(1, value=bytes(40 << 20), codec=Codec.GZIP),
    "a larger bomb": lambda: sent(1, value=bytes(512 << 20), codec=Codec.ZSTD),
    "no compressed data": lambda: _patched(
        sent(3, codec=Codec.ZSTD), _RECORD_AT, b"\0\1\2\3\4\5", with_crc=True
    ),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_records_that_do_harm_once_they_are_read_are_refused(target: Target, name: str) -> None:
    topic = f"unread-{list(UNREADABLE).index(name)}"
    target.create(topic)
    with RawClient(target.address, timeout_s=30) as client:
        assert target.produce(client, UNREADABLE[name](), 7, topic=topic) in (87, -1)
        assert target.produce(client, sent(), 7, topic=topic) == 0
        partition = client.ask("Fetch", 12, **fetch_request(topic)).responses[0].partitions[0]
        assert (0, 1) == (partition.error_code, partition.high_watermark)
    target.check()


def test_a_reader_that_never_reads_is_cut(target: Target) -> None:
    with RawClient(target.address) as filler:
        for _ in range(24):
            assert target.produce(filler, sent(1, value=os.urandom(1_000_000), at_ms=1)) == 0
    request = message_class("FetchRequest")(**fetch_request(TOPIC))
    frame = framed(header("Fetch", 12) + message_codec("FetchRequest", 12).encode(request))
    # Responses in files are not in memory: each counts what its objects take.
    assert _sends_until_cut(target, frame, times=2 * UNSENT_BYTES_MAX // REGION_COST_BYTES)
    target.check()


def test_a_reader_that_never_reads_small_answers_is_cut(target: Target) -> None:
    made = message_class("MetadataRequest")
    # Long names are cheap to say again: what is tested is the pile, not how it is made.
    topics = [made.MetadataRequestTopic(name=f"{n}-{'long' * 500}") for n in range(15)]
    request = made(topics=topics, allow_auto_topic_creation=False)
    frame = framed(header("Metadata", 9) + message_codec("MetadataRequest", 9).encode(request))
    assert _sends_until_cut(target, frame, times=2 * UNSENT_BYTES_MAX // len(frame))
    target.check()


def _sends_until_cut(target: Target, frames: bytes, *, times: int) -> bool:
    """Send without reading; returns whether the broker ended that."""
    with RawClient(target.address, timeout_s=20) as client:
        try:
            for _ in range(times):
                client.socket.sendall(frames)
            # All is sent: the cut comes while the broker works it off.
            while client.socket.recv(1 << 20):
                pass
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return True


def test_hundreds_of_connections_of_one_address_keep_nobody_out(target: Target) -> None:
    with ExitStack() as stack:
        # A connection that finds the backlog full is tried again by the system, a second later.
        clients = [stack.enter_context(RawClient(target.address)) for _ in range(_MANY)]
        assert all(client.ask("ApiVersions", 0).error_code == 0 for client in clients)
        assert target.produce(target.friend, sent()) == 0
    target.check()


def test_a_scan_leaves_few_lines_in_the_log(target: Target) -> None:
    before = target.log_lines()
    for number in range(_MANY):
        with RawClient(target.address) as client:
            client.socket.sendall(framed(struct.pack(">hhih", 1000 + number, 0, 1, -1)))
            assert client.frame() is None
    # Two periods may meet, and each says once how much it left out.
    assert target.log_lines() - before <= 2 * (REFUSAL_LINES_PER_PERIOD + 1)
    target.check()
