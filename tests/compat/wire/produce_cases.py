"""Produce: every version, acks, magic and codec, rules of topics, and sequences of producers."""

from __future__ import annotations

from engine.records.codec import Codec
from engine.records.record import Record, TimestampType
from tests.compat.wire.batches import batch, data, messages, patched, produce_body, records
from tests.compat.wire.fetch_cases import read_back
from tests.compat.wire.pair import Pair, versions

_LEGACY_CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)


def every_format(pair: Pair) -> None:
    """All versions with all acks, magics and codecs."""
    topic = pair.topic("formats")
    for version in versions("Produce"):
        for magic in (0, 1, 2):
            for codec in Codec if magic == 2 else _LEGACY_CODECS:
                raw = data(magic, codec, records(3, pair.now_ms))
                for acks in (-1, 1):
                    label = f"magic {magic} {codec.name} acks {acks}"
                    pair.ask(label, "Produce", version, produce_body(topic, raw, acks=acks))
        raw = data(2 if version > 2 else 1, Codec.NONE, records(1, pair.now_ms))
        for acks in (2, -2, 100):
            pair.ask(f"acks {acks}", "Produce", version, produce_body(topic, raw, acks=acks))
    read_back(pair, topic)


def without_answer(pair: Pair) -> None:
    """acks=0: no answer, and the connection ends on an error."""
    topic = pair.topic("acks0")
    for version in versions("Produce"):
        good = data(2 if version > 2 else 1, Codec.NONE, records(2, pair.now_ms))
        wrong = bytearray(good)
        wrong[-1] ^= 1
        for what, name, raw in (
            ("good", topic, good),
            ("bad crc", topic, bytes(wrong)),
            ("unknown topic", pair.name("nowhere"), good),
            ("bad name", "a/b", good),
            ("no batch", topic, b""),
        ):
            pair.tell("Produce", version, produce_body(name, raw, acks=0), on="zero")
            pair.ask(f"after acks 0 {what}", "DescribeCluster", 0, {}, on="zero")
            for side in pair.sides:
                side.drop("zero")
        pair.tell("Produce", version, {"acks": 0, "timeout_ms": 1000, "topic_data": []}, on="zero")
        pair.ask("after acks 0 nothing", "DescribeCluster", 0, {}, on="zero")
    read_back(pair, topic)


def without_records(pair: Pair) -> None:
    """Null in place of records, which Kafka never answers."""
    topic = pair.topic("null")
    for version in (2, 9):
        pair.ask("null", "Produce", version, produce_body(topic, None))


def topic_rules(pair: Pair) -> None:
    """Codecs, times, sizes and keys that topics ask for."""
    now = pair.now_ms
    for suffix, configs in {
        **{
            f"type-{kind}": {"compression.type": kind}
            for kind in ("gzip", "snappy", "lz4", "zstd", "uncompressed", "producer")
        },
        "gzip9": {"compression.type": "gzip", "compression.gzip.level": "9"},
        "zstd19": {"compression.type": "zstd", "compression.zstd.level": "19"},
        "lz4-12": {"compression.type": "lz4", "compression.lz4.level": "12"},
        "append": {"message.timestamp.type": "LogAppendTime"},
        "append-gzip": {"message.timestamp.type": "LogAppendTime", "compression.type": "gzip"},
        "format0": {"message.format.version": "0.9.0"},
        "format1": {"message.format.version": "0.10.2"},
        "down": {"message.downconversion.enable": "false"},
        "before": {"message.timestamp.before.max.ms": "1000"},
        "after": {"message.timestamp.after.max.ms": "1000"},
        "difference": {"message.timestamp.difference.max.ms": "1000"},
    }.items():
        topic = pair.topic(f"rules-{suffix}", configs=configs)
        for magic in (0, 1, 2):
            for codec in Codec if magic == 2 else _LEGACY_CODECS:
                version = 7 if magic == 2 else 2
                for when in (now, now - 10_000, now + 10_000, -1):
                    raw = data(magic, codec, records(3, when))
                    label = f"{suffix} magic {magic} {codec.name} at {when - now:+d}"
                    pair.ask(label, "Produce", version, produce_body(topic, raw))
        mixed = [Record(n, now + 5000 * n, TimestampType.CREATE_TIME, b"k", b"v") for n in range(3)]
        pair.ask(f"{suffix} mixed times", "Produce", 8, produce_body(topic, batch(mixed)))
        read_back(pair, topic)


def sizes(pair: Pair) -> None:
    """max.message.bytes, segment.bytes, and what grows by conversion."""
    now = pair.now_ms
    for suffix, configs in {
        "max200": {"max.message.bytes": "200"},
        "max200-gzip": {"max.message.bytes": "200", "compression.type": "gzip"},
        "max200-plain": {"max.message.bytes": "200", "compression.type": "uncompressed"},
        "max0": {"max.message.bytes": "0"},
        "segment": {"segment.bytes": "300"},
        "segment14": {"segment.bytes": "14"},
    }.items():
        topic = pair.topic(f"sizes-{suffix}", configs=configs)
        for size in (1, 60, 100, 110, 115, 118, 119, 120, 121, 125, 130, 150, 200, 260, 400):
            for magic, version in ((1, 2), (2, 3), (2, 8)):
                for codec in (Codec.NONE, Codec.GZIP):
                    raw = data(magic, codec, records(1, now, size=size))
                    label = f"{suffix} size {size} magic {magic} {codec.name}"
                    pair.ask(label, "Produce", version, produce_body(topic, raw))
        several = messages(records(2, now), 1) + messages(records(1, now, size=300), 1)
        pair.ask(f"{suffix} second too large", "Produce", 2, produce_body(topic, several))
        read_back(pair, topic)
    topic = pair.topic("sizes-default")
    for size in (1_048_500, 1_048_520, 1_048_600, 2_000_000):
        for version in (2, 7, 9):
            raw = data(1 if version < 3 else 2, Codec.NONE, records(1, now, size=size))
            pair.ask(f"default size {size}", "Produce", version, produce_body(topic, raw))


def compacted(pair: Pair) -> None:
    """Records without keys where they are needed."""
    topic = pair.topic("compacted", configs={"cleanup.policy": "compact"})
    for codec in Codec:
        for keys in ((b"a", None), (None, None), (b"a", b"b"), (b"", b"x")):
            found = [
                Record(n, pair.now_ms, TimestampType.CREATE_TIME, key, b"v")
                for n, key in enumerate(keys)
            ]
            for version in (3, 8, 11):
                label = f"keys {keys} {codec.name}"
                pair.ask(label, "Produce", version, produce_body(topic, batch(found, codec=codec)))
            if codec is not Codec.ZSTD:
                for magic in (0, 1):
                    raw = messages(found, magic, codec)
                    label = f"keys {keys} {codec.name} magic {magic}"
                    pair.ask(label, "Produce", 2, produce_body(topic, raw))
    read_back(pair, topic)


def topics(pair: Pair) -> None:
    """Topics and partitions that are not there, twice, internal, or several in one request."""
    good, old = batch(records(1, pair.now_ms)), messages(records(1, pair.now_ms), 1)
    topic = pair.topic("topics", partitions=3)
    for version in versions("Produce"):
        raw = good if version > 2 else old
        for name in (topic, pair.name("gone"), "", "a/b", "x" * 300, "__consumer_offsets"):
            for index in (0, 3, -1, 2**31 - 1):
                label = f"topic {name[:20]!r} partition {index}"
                pair.ask(label, "Produce", version, produce_body(name, raw, index=index))
        one = {"index": 0, "records": raw}
        for what, requested in {
            "nothing": [],
            "no partitions": [{"name": topic, "partition_data": []}],
            "twice": [{"name": topic, "partition_data": [one, one]}],
            "topic twice": [{"name": topic, "partition_data": [one]}] * 2,
            "three partitions": [
                {
                    "name": topic,
                    "partition_data": [
                        {"index": index, "records": found}
                        for index, found in ((2, raw), (0, b""), (1, raw), (7, raw))
                    ],
                },
                {"name": pair.name("gone"), "partition_data": [one]},
            ],
        }.items():
            sent = {"acks": 1, "timeout_ms": 1000, "topic_data": requested}
            pair.ask(what, "Produce", version, sent)
        pair.ask("timeout 0", "Produce", version, produce_body(topic, raw, timeout_ms=0))
        pair.ask("timeout -1", "Produce", version, produce_body(topic, raw, timeout_ms=-1))
        pair.ask(
            "id, not transactional",
            "Produce",
            version,
            produce_body(topic, raw, transactional_id="t"),
        )
    for index in range(3):
        read_back(pair, topic, index=index)
    two = pair.topic("minisr", configs={"min.insync.replicas": "2"})
    for version in versions("Produce"):
        for acks in (-1, 1):
            raw = good if version > 2 else old
            pair.ask(f"min isr acks {acks}", "Produce", version, produce_body(two, raw, acks=acks))


def idempotent(pair: Pair) -> None:
    """Sequences in order, again, with gaps, from old and new epochs, and wrapping round."""
    now = pair.now_ms
    steps = (
        # producer, epoch, first sequence, records
        *((1, 0, 0, 1), (1, 0, 1, 2), (1, 0, 1, 2), (1, 0, 0, 1), (1, 0, 3, 1), (1, 0, 5, 1)),
        *((1, 0, 4, 1), (1, 0, 5, 1), (1, 0, 6, 1), (1, 0, 7, 1), (1, 0, 8, 1), (1, 0, 3, 1)),
        *((1, 0, 0, 1), (1, 0, 4, 2), (1, 0, 8, 2), (1, 1, 5, 1), (1, 1, 0, 2), (1, 0, 9, 1)),
        *((1, 1, 2, 1), (1, 3, 0, 1), (1, 2, 0, 1), (1, 3, 1, 1), (1, -1, 1, 1), (1, 32767, 0, 1)),
        *(
            (2, 0, 5, 1),
            (2, 0, 6, 1),
            (3, 5, 0, 1),
            (3, 5, 1, 1),
            (3, 5, 3, 1),
            (4, 0, 2**31 - 2, 1),
        ),
        *((4, 0, 2**31 - 1, 1), (4, 0, 0, 1), (4, 0, 1, 1), (5, 0, 2**31 - 1, 3), (5, 0, 2, 1)),
        *((0, 0, 0, 1), (2**62, 0, 0, 1), (1, 0, 0, 1)),
    )
    for version in (3, 7, 11):
        topic = pair.topic(f"idempotent{version}")
        for step in steps:
            producer, epoch, sequence, count = step
            raw = patched(
                batch(records(count, now)),
                producer_id=producer,
                producer_epoch=epoch,
                base_sequence=sequence,
            )
            pair.ask(f"producer {step}", "Produce", version, produce_body(topic, raw))
            requested = [{"name": topic, "partition_indexes": [0]}]
            pair.ask(f"after {step}", "DescribeProducers", 0, {"topics": requested})
        both = b"".join(
            patched(batch(records(1, now)), producer_id=9, producer_epoch=0, base_sequence=n)
            for n in range(2)
        )
        pair.ask("two batches of a producer", "Produce", version, produce_body(topic, both))
        read_back(pair, topic)


def transactional(pair: Pair) -> None:
    """Records of transactions, with and without the id that they need."""
    topic = pair.topic("transactional")
    settings = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    raw = batch(records(1, pair.now_ms), is_transactional=True, **settings)
    for version in range(3, 12):
        for name in (None, "", "t"):
            sent = produce_body(topic, raw, transactional_id=name)
            pair.ask(f"of transaction {name!r}", "Produce", version, sent)


CASES = {
    "produce.formats": every_format,
    "produce.acks0": without_answer,
    "produce.null": without_records,
    "produce.rules": topic_rules,
    "produce.sizes": sizes,
    "produce.compacted": compacted,
    "produce.topics": topics,
    "produce.idempotent": idempotent,
    "produce.transactional": transactional,
}
