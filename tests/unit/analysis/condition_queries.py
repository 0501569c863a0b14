"""Queries with conditions of all forms, by chance, and logs of all kinds for them.

What is read of logs is narrowed by conditions; the rows have to be those of reading all.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

from engine.analysis.value_decoding import ValueDecoding, by_one
from engine.host.real import RealFiles
from engine.records.builder import BatchBuilder, BatchSettings
from engine.records.codec import Codec
from engine.records.crc import crc32c
from engine.records.record import TimestampType
from engine.schemas.schema import Schema, SchemaKind
from tests.unit.log.logs import put_segment

#: What batches can be of in which their times lie.
_BASES_MS = (
    1_767_225_600_000, 1_767_225_600_000, 1_767_225_659_999, 0, -1, -86_400_001,
    253_402_300_799_998, 253_402_300_800_000, -62_135_596_800_001, 1 << 60,
)  # fmt: skip
_TOPICS = ("a", "b", "a.b", "topic")
_FIELDS = {"offset": "integer", "partition": "integer", "topic": "string", "timestampMs": "integer"}
_CRC_AT, _CRC_OF, _BASE_MS_AT, _MAX_MS_AT = 17, 21, 27, 35


def decoding() -> ValueDecoding:
    """Return a decoding whose columns have fields with the names of columns."""
    fields = {name: {"type": kind} for name, kind in _FIELDS.items()}
    schema = json.dumps({"type": "object", "properties": fields})
    return by_one(Schema(SchemaKind.JSON, schema))


def write_logs(folder: Path, chance: random.Random) -> None:
    """Write some partitions of several segments, with indexes."""
    for topic in _TOPICS:
        for partition in chance.sample(range(4), 2):
            path = folder / f"{topic}-{partition}"
            path.mkdir()
            end = chance.choice([0, 0, 5])
            for _ in range(chance.randint(1, 3)):
                base, content = end, b""
                for _ in range(chance.randint(1, 6)):
                    batch, end = _batch(chance, topic, partition, end)
                    content += batch
                    end += chance.choice([0, 0, 0, 2])
                put_segment(RealFiles(), base, content, path=str(path), interval_bytes=1)


def _batch(chance: random.Random, topic: str, partition: int, base: int) -> tuple[bytes, int]:
    is_append = chance.random() < 0.2
    settings = BatchSettings(
        base_offset=base,
        codec=chance.choice([Codec.NONE, Codec.GZIP]),
        timestamp_type=TimestampType.LOG_APPEND_TIME if is_append else TimestampType.CREATE_TIME,
        append_time_ms=0 if is_append else -1,
        leader_epoch=0,
    )
    builder = BatchBuilder(settings)
    for _ in range(chance.choice([1, 1, 2, 5])):
        value: dict[str, object] = {
            "offset": chance.randint(0, 30), "partition": chance.randint(0, 5),
            "topic": chance.choice(_TOPICS), "timestampMs": chance.choice(_BASES_MS),
        }  # fmt: skip
        for name in chance.sample(sorted(value), chance.randint(0, 2)):
            del value[name]
        key = chance.choice([None, b"3", b"k", topic.encode()])
        content = chance.choice([None, *3 * [json.dumps(value).encode()]])
        builder.append(chance.randint(0, 3), key, content)
    return _at(bytes(builder.build()), chance.choice(_BASES_MS)), builder.next_offset


def _at(batch: bytes, shift_ms: int) -> bytes:
    """Return a batch whose times are later; no producer of Java's writes some of these."""
    changed = bytearray(batch)
    for place in (_BASE_MS_AT, _MAX_MS_AT):
        time_ms = int.from_bytes(changed[place : place + 8], "big", signed=True) + shift_ms
        changed[place : place + 8] = time_ms.to_bytes(8, "big", signed=True)
    changed[_CRC_AT:_CRC_OF] = crc32c(bytes(changed[_CRC_OF:])).to_bytes(4, "big")
    return bytes(changed)


class Queries:
    """Queries by one source of chance."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def query(self) -> str:
        """Return a query whose rows do not depend on the order of reading."""
        forms: list[Callable[[], str]] = [
            self._plain, self._plain, self._plain, self._renamed, self._cte, self._joined,
            self._outer_joined, self._union, self._grouped, self._subquery, self._window,
            self._aggregate, self._shadowed,
        ]  # fmt: skip
        return self._chance.choice(forms)()

    def _plain(self) -> str:
        alias = self._chance.choice(["", "", "r", "topic", "decoded_value"])
        columns = self._chance.choice(
            ["*", "`offset`", "topic, partition", "decoded_value", "timestampMs, key, `offset`"]
        )
        return f"select {columns} from records {alias} where {self.condition()}"

    def _renamed(self) -> str:
        columns = self._chance.choice(
            [
                "partition as `offset`, `offset` as partition, topic, timestamp, timestampMs, key,"
                " decoded_value",
                "decoded_value.`offset`, decoded_value.partition, codec as topic, timestamp,"
                " timestampMs, key, decoded_value",
                "`offset` + 1 as `offset`, partition, upper(topic) topic, timestamp,"
                " decoded_value.timestampMs, key, decoded_value",
            ]
        )
        return (
            f"select * from (select {columns} from records where {self.condition()}) x"
            f" where {self.condition()}"
        )

    def _cte(self) -> str:
        uses = self._chance.choice(
            [
                "select `offset`, topic from r where {}",
                "select `offset`, 1 n from r where {} union all select partition, 2 from r",
                "select count(*) n, (select max(`offset`) from r) m from r where {}",
            ]
        )
        return (
            f"with r as (select * from records where {self.condition()})"
            f" {uses.format(self.condition())}"
        )

    def _joined(self) -> str:
        return (
            "select a.`offset`, b.partition, b.topic from records a join records b"
            f" on a.`offset` = b.`offset` and {self.condition('a')}"
            f" where {self.condition('b')} and {self.condition('a')}"
        )

    def _outer_joined(self) -> str:
        kind = self._chance.choice(["left", "right", "full outer", "left semi", "left anti"])
        one = "records a", "segments b"
        left, right = one if self._chance.random() < 0.5 else one[::-1]
        is_half = kind in ("left semi", "left anti")
        columns = "count(*) n" if is_half else "count(*) n, sum(a.`offset`) s, sum(b.bytes) t"
        where = ""
        if not is_half or left.startswith("records"):
            where = f" where {self.condition('a')}"
        return (
            f"select {columns} from {left} {kind} join {right}"
            f" on a.topic = b.topic and a.partition = b.partition and {self.condition('a')}{where}"
        )

    def _union(self) -> str:
        word = self._chance.choice(["union all", "union", "except", "intersect"])
        other = self._chance.choice(["records", "batches"])
        if other == "batches":
            condition = f"baseOffset {self._comparison(self._integer)}"
            right = f"select topic, baseOffset from batches where {condition}"
        else:
            right = f"select topic, `offset` from records where {self.condition()}"
        return f"select topic, `offset` from records where {self.condition()} {word} {right}"

    def _grouped(self) -> str:
        having = self._chance.choice(
            [
                f"topic {self._of_topic()}",
                f"count(*) {self._comparison(self._integer)}",
                f"partition {self._comparison(self._integer)} or topic {self._of_topic()}",
            ]
        )
        return (
            "select topic, partition, count(*) n, max(`offset`) last from records"
            f" where {self.condition()} group by topic, partition having {having}"
        )

    def _subquery(self) -> str:
        condition = self._chance.choice(
            [
                "`offset` < (select max(baseOffset) from batches where {})",
                "exists (select 1 from segments s where s.topic = r.topic and {})",
                "`offset` in (select baseOffset from batches where {})",
                "`offset` not in (select baseOffset from batches where {})",
            ]
        ).format(f"partition {self._comparison(self._integer)}")
        joined = self._chance.choice(["and", "or"]) if "exists" not in condition else "and"
        where = f"{condition} {joined} {self.condition('r')}"
        return f"select `offset`, topic from records r where {where}"

    def _window(self) -> str:
        return (
            "select * from (select topic, partition, `offset`, timestampMs, timestamp, key,"
            " decoded_value, count(*) over (partition by topic) n from records) x"
            f" where {self.condition()}"
        )

    def _aggregate(self) -> str:
        condition = self.condition()
        return (
            f"select count(*) n, count(case when {self.condition()} then 1 end) m,"
            f" min(timestampMs) t from records where {condition}"
        )

    def _shadowed(self) -> str:
        return (
            "select * from (select * from (select topic, partition, `offset`, timestampMs,"
            " timestamp, key, decoded_value from records where"
            f" {self.condition()}) where {self.condition()} order by 1, 2, 3 limit 7) y"
            f" where {self.condition()}"
        )

    def condition(self, of: str = "") -> str:
        """Return a condition on the columns of a view's name."""
        of = f"{of}." if of else ""
        if self._chance.random() < 0.6:
            return " and ".join(self._atom(of) for _ in range(self._chance.randint(1, 2)))
        return f"({self._condition(of, self._chance.randint(1, 3))})"

    def _condition(self, of: str, depth: int) -> str:
        if depth == 0 or self._chance.random() < 0.2:
            return self._atom(of)
        form = self._chance.choice(
            ["({} and {})", "({} and {})", "({} or {})", "not {}", "coalesce({}, {})",
             "case when {} then {} else {} end", "if({}, {}, {})", "({} = {})", "({} is true)"]
        )  # fmt: skip
        return form.format(*(self._condition(of, depth - 1) for _ in range(form.count("{}"))))

    def _atom(self, of: str) -> str:
        chance = self._chance
        kind = chance.choice(["offset", "partition", "topic", "ms", "time", "field", "key"])
        if kind == "topic":
            return self._cased(f"({of}topic {self._of_topic()})")
        if kind == "time":
            column = chance.choice(
                [f"{of}timestamp", f"{of}timestamp", f"cast({of}timestamp as date)"]
            )
            return f"({column} {self._comparison(self._time)})"
        if kind == "ms":
            return f"({of}timestampMs {self._comparison(self._ms)})"
        if kind == "key":
            return chance.choice(
                [f"({of}key is null)", f"(cast({of}key as string) = 'a and b')",
                 f"(cast({of}key as string) {self._of_topic()})"]
            )  # fmt: skip
        if kind == "field":
            name = chance.choice(sorted(_FIELDS))
            if name == "topic":
                return f"({of}decoded_value.topic {self._of_topic()})"
            values = self._ms if name == "timestampMs" else self._integer
            return f"({of}decoded_value.`{name}` {self._comparison(values)})"
        column = f"{of}`offset`" if kind == "offset" else f"{of}partition"
        if chance.random() < 0.15:
            return f"({self._integer()} {chance.choice(['=', '<', '>', '<='])} {column})"
        column = chance.choice([*6 * [column], f"{column} + 1", f"-{column}", f"{column} % 3"])
        return self._cased(f"({column} {self._comparison(self._integer)})")

    def _cased(self, text: str) -> str:
        """Return a condition, now and then with the names of its columns in capitals."""
        if self._chance.random() > 0.1 or "'" in text:
            return text
        return text.upper()

    def _comparison(self, value: Callable[[], str]) -> str:
        form = self._chance.choice(
            ["= {}", "= {}", "<=> {}", "< {}", "<= {}", "> {}", ">= {}", "<> {}",
             "between {} and {}", "not between {} and {}", "in ({}, {}, {})", "not in ({}, {})",
             "in ({}, {}, null)", "is null", "is not null", "= null"]
        )  # fmt: skip
        if form.startswith("in") and self._chance.random() < 0.2:
            form = f"in ({', '.join(14 * ['{}'])})"
        return form.format(*(value() for _ in range(form.count("{}"))))

    def _integer(self) -> str:
        chance = self._chance
        small = str(chance.randint(-2, 25))
        return chance.choice(
            [*8 * [small], f"'{small}'", f"{small}.5", f"{small}.0", f"cast('{small}' as int)",
             f"cast({small} as bigint)", str(chance.choice([1 << 31, -(1 << 31), (1 << 63) - 1,
             -(1 << 63) + 1, 3_000_000_000, 4_294_967_299])), f"{small} + 1", f"abs({small})"]
        )  # fmt: skip

    def _ms(self) -> str:
        chance = self._chance
        exact = str(chance.choice(_BASES_MS) + chance.randint(-1, 4))
        return chance.choice(
            [*6 * [exact], self._integer(), f"{exact}.5", f"cast({exact} as double)"]
        )

    def _time(self) -> str:
        chance = self._chance
        day = chance.choice(["2026-01-01", "2026-01-01", "1970-01-01", "1969-12-31", "9999-12-31",
                             "0001-01-01", "2025-12-31"])  # fmt: skip
        hour = chance.choice(["00:00:00", "00:00:59.999", "23:59:59.9995", "00:00:00.001",
                              "05:30:00", "00:00:00.000001", "19:00:00"])  # fmt: skip
        zone = chance.choice(["", "", "Z", "+05:30", "-05:00"])
        if day in ("9999-12-31", "0001-01-01"):
            zone = ""
        return chance.choice(
            [f"'{day}'", f"'{day} {hour}{zone}'", f"timestamp'{day} {hour}{zone}'",
             f"date'{day}'", f"cast('{day} {hour}{zone}' as timestamp)"]
        )  # fmt: skip

    def _of_topic(self) -> str:
        chance = self._chance
        texts = [f"'{chance.choice([*_TOPICS, 'A', 'nosuch', ''])}'" for _ in range(3)]
        texts[0] = chance.choice([*4 * [texts[0]], r"'a\' or topic = \'b'", "'a and b'", "'it''s'"])
        form = chance.choice(
            ["= {}", "= {}", "in ({}, {}, {})", "in ({}, {})", "<> {}", "not in ({}, {})",
             "like 'a%'", "> {}", "<=> {}", "is null", "= {} or topic = {}", "in ({}, null)"]
        )  # fmt: skip
        if "or topic" in form:
            form = "= {}"
        if form == "in ({}, {}, {})" and chance.random() < 0.2:
            return f"in ({', '.join([*texts, *(repr(name) for name in 'defghijklmno')])})"
        return form.format(*texts)
