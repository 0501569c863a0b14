"""A produced batch is looked at once, on every path and in every version.

Its checksum is computed once, its records are walked over once, and opened once if they are
compressed. Records that the walk says too little about are read one by one, once. A batch whose
header the broker changes gets the checksum of its new bytes, which is nothing found out again.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest

import engine.log.checked_batch as checked_batch_module
import engine.log.local_log as local_log_module
import engine.records.batch as batch_module
import engine.records.legacy as legacy_module
from engine.log.checked_batch import CheckedBatch
from engine.log.log_config import LogConfig
from engine.log.producer_state import AppendOrigin
from engine.model import TopicPartition
from engine.native.record_walk import WalkTier
from engine.records.batch_header import CHECKED_FROM
from engine.records.builder import BatchSettings, build_batch
from engine.records.codec import Codec
from engine.records.record import Record, TimestampType
from tests.unit.api.data_stage import DataStage, produce_request
from tests.unit.log.test_validation import old, with_field
from tests.unit.log.writing import NOW_MS, end_of_transaction, sent, sent_by

ATTRIBUTES, MAX_TIMESTAMP = 5, 8
T0 = TopicPartition("t", 0)


class Looks(NamedTuple):
    """How often each thing was found out."""

    crc: int = 1
    walk: int = 1
    opened: int = 0
    read: int = 0


class Counter:
    """Counts what is found out of one batch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.checked = b""
        self.counts = dict.fromkeys(Looks._fields, 0)
        for module in (local_log_module, checked_batch_module, batch_module):
            monkeypatch.setattr(module, "crc32c", self._crc(module.crc32c))  # type: ignore[attr-defined]
        monkeypatch.setattr(WalkTier, "walk", staticmethod(self.counted("walk", WalkTier.walk)))
        for module, name in (
            (checked_batch_module, "open_fast"),
            (local_log_module, "open_fast"),
            (checked_batch_module, "decompress_prefix"),
            (batch_module, "decompress"),
            (batch_module, "decompress_prefix"),
        ):
            monkeypatch.setattr(module, name, self.counted("opened", getattr(module, name)))
        for name in ("decode_records", "skim_records"):
            counted = self.counted("read", getattr(batch_module, name))
            monkeypatch.setattr(batch_module, name, counted)

    def _crc(self, crc32c: Callable[..., int]) -> Callable[..., int]:
        def crc(data: Any, *more: Any) -> int:
            self.counts["crc"] += bytes(data) == self.checked
            return crc32c(data, *more)

        return crc

    def counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **named: Any) -> Any:
            self.counts[name] += 1
            return function(*args, **named)

        return counted

    def watch(self, batch: bytes) -> None:
        """Forget what was counted, and count the looks at a batch from now on."""
        self.checked = batch[CHECKED_FROM:]
        self.counts = dict.fromkeys(Looks._fields, 0)

    @property
    def looks(self) -> Looks:
        return Looks(**self.counts)


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter]:
    yield Counter(monkeypatch)


def of_records(*records: Record, **settings: Any) -> memoryview:
    return memoryview(build_batch(records, BatchSettings(**settings)))


def record(offset: int = 0, key: bytes | None = b"k", at_ms: int = NOW_MS, **more: Any) -> Record:
    return Record(offset, at_ms, TimestampType.CREATE_TIME, key, b"v" * 40, **more)


def late_deltas(codec: Codec) -> memoryview:
    """Return a batch whose records have the offsets 0 and 2, and say so."""
    batch = of_records(record(0), record(2), codec=codec)
    return with_field(with_field(batch, 6, 1), 12, 2)


APPEND_TIME = LogConfig(message_timestamp_type=TimestampType.LOG_APPEND_TIME)
COMPACTED = LogConfig(is_compacted=True)
BOUNDED = LogConfig(message_timestamp_after_max_ms=1000)


class Unusual(NamedTuple):
    """A batch off the fast path: the bytes before it, the batch, and how often it is read."""

    make: Callable[[Codec], list[memoryview]]
    config: LogConfig = LogConfig()
    is_walked: bool = True
    is_read: bool = False
    is_opened: bool = True
    code: int = 0


SLOW_PATH: dict[str, Unusual] = {
    "nothing": Unusual(lambda codec: [sent(3, codec=codec)]),
    "a wrong max timestamp": Unusual(
        lambda codec: [with_field(sent(3, codec=codec), MAX_TIMESTAMP, NOW_MS + 77)]
    ),
    "append time": Unusual(lambda codec: [sent(3, codec=codec)], APPEND_TIME),
    "a future timestamp": Unusual(
        lambda codec: [sent(3, at_ms=1 << 60, codec=codec)], BOUNDED, is_read=True, code=32
    ),
    "offset deltas with a gap": Unusual(lambda codec: [late_deltas(codec)], is_read=True),
    "a repeated sequence": Unusual(
        lambda codec: [sent_by(5, 0, 2, codec=codec), sent_by(5, 0, 2, codec=codec)]
    ),
    "a sequence out of order": Unusual(
        lambda codec: [sent_by(5, 0, 2, codec=codec), sent_by(5, 7, 2, codec=codec)], code=45
    ),
    "a null key, compacted": Unusual(
        lambda codec: [of_records(record(0), record(1, key=None), codec=codec)],
        COMPACTED,
        is_read=True,
        code=87,
    ),
    "headers": Unusual(lambda codec: [of_records(record(headers=(("h", b"v"),)), codec=codec)]),
    "a batch that is too large": Unusual(
        lambda codec: [of_records(*map(record, range(9)), codec=codec, base_offset=0)],
        LogConfig(max_message_bytes=70),
        is_walked=False,
        is_opened=False,
        code=10,
    ),
    "a count that does not fit": Unusual(
        lambda codec: [with_field(sent(3, codec=codec), 12, 4)],
        is_walked=False,
        is_opened=False,
        code=87,
    ),
    "control records": Unusual(
        lambda _codec: [with_field(sent(1), ATTRIBUTES, 0x20)],
        is_walked=False,
        is_opened=False,
        code=87,
    ),
}


#: Codecs, and versions of the request that may hold them.
BROUGHT = [
    (codec, version)
    for codec in Codec
    for version in (3, 5, 8, 9, 11)
    if codec is not Codec.ZSTD or version >= 7
]


def staged(config: LogConfig) -> DataStage:
    stage = DataStage()
    stage.manager.find(T0).log.configure(config)
    return stage


def code_of(answer: Any) -> int:
    return int(answer.responses[0].partition_responses[0].error_code)


@pytest.mark.parametrize(("codec", "version"), BROUGHT, ids=str)
@pytest.mark.parametrize("way", SLOW_PATH)
def test_a_batch_is_checked_once(counter: Counter, way: str, codec: Codec, version: int) -> None:
    unusual = SLOW_PATH[way]
    stage = staged(unusual.config)
    *before, batch = unusual.make(codec)
    for earlier in before:
        stage.ask("Produce", version, produce_request({"t": [(0, earlier)]}))
    counter.watch(bytes(batch))
    code = code_of(stage.ask("Produce", version, produce_request({"t": [(0, batch)]})))
    is_compressed = codec is not Codec.NONE and way != "control records"
    if unusual.code or not (way == "offset deltas with a gap" and is_compressed):
        assert code == unusual.code
    crc = 0 if code == 10 else 1
    opened = int(is_compressed and unusual.is_opened)
    assert counter.looks == Looks(crc, int(unusual.is_walked), opened, int(unusual.is_read))


@pytest.mark.parametrize("target", list(Codec), ids=lambda codec: codec.label)
@pytest.mark.parametrize("codec", list(Codec), ids=lambda codec: codec.label)
def test_what_is_compressed_otherwise_is_read_once(
    counter: Counter, codec: Codec, target: Codec
) -> None:
    stage = staged(LogConfig(compression_type=target))
    batch = sent(3, codec=codec)
    counter.watch(bytes(batch))
    assert code_of(stage.ask("Produce", 9, produce_request({"t": [(0, batch)]}))) == 0
    is_same, is_compressed = codec is target, int(codec is not Codec.NONE)
    assert counter.looks == Looks(1, int(is_same), is_compressed, int(not is_same))


@pytest.mark.parametrize("acks", [0, 1, -1])
@pytest.mark.parametrize("isr", [(1,), (1, 2)])
def test_acks_need_no_second_look(counter: Counter, acks: int, isr: tuple[int, ...]) -> None:
    stage = DataStage(isr)
    batch = with_field(sent(3, codec=Codec.LZ4), MAX_TIMESTAMP, NOW_MS + 77)
    counter.watch(bytes(batch))
    stage.ask("Produce", 9, produce_request({"t": [(0, batch)]}, acks=acks))
    assert counter.looks == Looks(opened=1)


def test_several_partitions_need_no_second_look(counter: Counter) -> None:
    stage = DataStage()
    batch, other = sent(3, codec=Codec.ZSTD), sent(5)
    counter.watch(bytes(batch))
    stage.ask("Produce", 9, produce_request({"t": [(0, batch), (1, other)]}))
    assert counter.looks == Looks(walk=2, opened=1)


def test_what_a_request_may_not_hold_is_not_looked_into(counter: Counter) -> None:
    stage = DataStage()
    two = memoryview(bytearray(bytes(sent(1)) + bytes(sent(2))))
    for topic, batch in (
        ("t", two),
        ("unknown", sent(1)),
        ("t", sent_by(5, 0, is_transactional=True)),
    ):
        counter.watch(bytes(batch))
        assert code_of(stage.ask("Produce", 9, produce_request({topic: [(0, batch)]})))
        assert counter.looks == Looks(0, 0, 0, 0)


def test_a_damaged_batch_is_refused_after_one_checksum(counter: Counter) -> None:
    stage = DataStage()
    batch = sent(3, codec=Codec.LZ4)
    batch[-1] ^= 1
    counter.watch(bytes(batch))
    assert code_of(stage.ask("Produce", 9, produce_request({"t": [(0, batch)]}))) == 2
    assert counter.looks == Looks(1, 0, 0, 0)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4], ids=lambda c: c.label)
@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_checked_once_each(
    counter: Counter, monkeypatch: pytest.MonkeyPatch, magic: int, codec: Codec
) -> None:
    """They are written as one batch, whose records nobody looks at again."""
    stage = DataStage()
    batch = old(3, magic=magic, codec=codec)
    counter.watch(bytes(batch))
    sums: list[bytes] = []

    def crc32(data: Any, *more: int) -> int:
        sums.append(bytes(data))
        return zlib.crc32(data, *more)

    is_compressed = int(codec is not Codec.NONE)
    opened = counter.counted("opened", legacy_module.decompress)
    monkeypatch.setattr(legacy_module, "decompress", opened)
    monkeypatch.setattr(legacy_module, "zlib", SimpleNamespace(crc32=crc32))
    assert code_of(stage.ask("Produce", 2, produce_request({"t": [(0, batch)]}))) == 0
    assert counter.looks == Looks(0, 0, is_compressed, 0)
    assert len(sums) == len(set(sums)) == 3 + is_compressed


@pytest.mark.parametrize("is_control", [False, True])
def test_coordinators_and_transactions_are_checked_once(
    counter: Counter, *, is_control: bool
) -> None:
    log = DataStage().manager.find(T0).log
    data = sent_by(5, 0, 2, is_transactional=True)
    if not is_control:
        counter.watch(bytes(data))
    log.append_as_leader(data, 0, NOW_MS)
    if is_control:
        marker = end_of_transaction(5)
        counter.watch(bytes(marker))
        log.append_as_leader(marker, 0, NOW_MS, AppendOrigin.COORDINATOR)
    # A marker is compared with the form that all have.
    assert counter.looks == Looks(walk=int(not is_control))


def test_a_check_that_was_not_requested_is_not_taken(counter: Counter) -> None:
    batch = sent(3)
    counter.watch(bytes(batch))
    CheckedBatch(batch)
    assert counter.looks == Looks(0, 0, 0, 0)
