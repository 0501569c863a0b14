"""Reports over records: keys, sizes, tombstones, duplicates, compaction."""

from __future__ import annotations

from engine.analysis.reports.report import KEYS, VALUES, Report
from engine.analysis.reports.totals import (
    EMPTY_VALUES,
    HOUR,
    KEY,
    RECORD_BYTES,
    RECORD_COUNT,
    TOMBSTONES,
    TOPIC,
    VALUE_SIZE,
    WITHOUT_KEY,
    Totals,
)

_OF_KEYS = Totals((TOPIC, KEY), (RECORD_COUNT, RECORD_BYTES), has_key=True)
_OF_HOURS = Totals((TOPIC, HOUR), (RECORD_COUNT, RECORD_BYTES))
_OF_SIZES = Totals((TOPIC, VALUE_SIZE), (RECORD_COUNT,))
_OF_TOPICS = Totals((TOPIC,), (RECORD_COUNT, TOMBSTONES, WITHOUT_KEY, EMPTY_VALUES))


def _percentile(percent: int) -> str:
    """Return SQL for a percentile of value sizes, from a table of counts by size.

    In the table, `reached` is the number of records up to each size. The result is interpolated
    between two records, as by Spark's function; that function keeps every value in memory, which is
    too much for the embedded engine at 90 million records.
    """
    place = f"cast({percent} * (records - 1) as double) / 100"
    low, high = (
        f"min(case when reached > {side}({place}) then value_size end)"
        for side in ("floor", "ceil")
    )
    share = f"max({place} - floor({place}))"
    return f"{low} + ({high} - {low}) * {share}"


RECORD_REPORTS = (
    Report(
        "sizes",
        "Sizes of values of each topic",
        KEYS,
        "bytes without compression; the greatest must fit max.message.bytes with its batch",
        f"""select topic, max(records) records, {_percentile(50)} p50, {_percentile(95)} p95,
                   {_percentile(99)} p99, max(value_size) greatest
            from (select topic, value_size,
                         sum(records) over (partition by topic) records,
                         sum(records) over (partition by topic order by value_size) reached
                  from (select topic, value_size, sum(records) records from record_totals
                        where value_size >= 0 group by topic, value_size))
            group by topic order by p99 desc, topic""",
        _OF_SIZES,
    ),
    Report(
        "keys",
        "The keys with the most bytes",
        KEYS,
        "one key that dominates makes one partition hot, however many there are",
        """select topic, key, sum(records) records, sum(bytes) bytes
           from record_totals group by topic, key order by bytes desc, topic, key limit 20""",
        _OF_KEYS,
    ),
    Report(
        "key-skew",
        "Share of the largest key of each topic",
        KEYS,
        "a share far above 1/keys is skew",
        """select topic, count(*) keys, sum(records) records, max(records) most_records,
                  max(records) / sum(records) largest_share
           from (select topic, key, sum(records) records from record_totals group by topic, key)
           group by topic order by largest_share desc, topic""",
        _OF_KEYS,
    ),
    Report(
        "tombstones",
        "Tombstones and records without a key",
        KEYS,
        "records without a key in a compacted topic are refused; many tombstones wait for"
        " delete.retention.ms",
        """select topic, sum(records) records, sum(tombstones) tombstones,
                  sum(without_key) without_key, sum(empty_values) empty_values
           from record_totals group by topic order by tombstones desc, topic""",
        _OF_TOPICS,
    ),
    Report(
        "compaction-savings",
        "What compaction would keep of closed segments: the last record of each key",
        KEYS,
        "a small share is a topic that compaction, or cleaning sooner, would shrink; `kctl compact"
        " plan --exact` counts expired tombstones and markers too",
        """select topic, sum(records) records, count(*) keys, sum(records) - count(*) freed_records,
                  sum(bytes) bytes, sum(last_bytes) kept_bytes,
                  sum(last_bytes) / sum(bytes) kept_share
           from (select records.topic, records.partition, key, count(*) records,
                        sum(key_size + greatest(value_size, 0)) bytes,
                        max_by(key_size + greatest(value_size, 0), offset) last_bytes
                 from records
                 join (select topic, partition, max(baseOffset) active from segments
                       group by topic, partition) closed
                   on records.topic = closed.topic and records.partition = closed.partition
                 where key is not null and offset < active
                 group by records.topic, records.partition, key)
           group by topic having sum(bytes) > 0 order by kept_share, topic""",
    ),
    Report(
        "duplicates",
        "Keys whose value was written again unchanged",
        VALUES,
        "many copies are a producer without idempotence that tries again, or a replay",
        """select topic, partition, count(*) repeated_records, count(distinct key) keys,
                  min(offset) first_offset, max(offset) last_offset
           from (select topic, partition, key, offset, value_hash,
                        lag(value_hash) over (partition by topic, partition, key order by offset)
                          hash_before
                 from records where key is not null and value is not null)
           where value_hash = hash_before group by topic, partition
           order by repeated_records desc, topic, partition""",
    ),
    Report(
        "schemas",
        "Schema ids of values",
        VALUES,
        "of topics most of whose values begin as with an id: a zero byte and a number above 0;"
        " several ids at once are producers of several versions",
        """select topic, schema_id, records, first_offset, last_offset, last_timestamp
           from (select topic, schema_id, records, first_offset, last_offset, last_timestamp,
                        sum(case when schema_id > 0 then records else 0 end)
                          over (partition by topic) with_id,
                        sum(records) over (partition by topic) of_all
                 from (select topic, schema_id, count(*) records, min(offset) first_offset,
                              max(offset) last_offset, max(timestamp) last_timestamp
                       from records where value_size >= 0 group by topic, schema_id))
           where schema_id > 0 and 2 * with_id > of_all order by topic, schema_id""",
    ),
    Report(
        "headers",
        "Headers of records by name",
        VALUES,
        "headers are stored with every record and are not seen by compaction",
        """select topic, header.key header, count(*) records
           from records lateral view explode(headers) h as header
           group by topic, header.key order by topic, records desc, header""",
    ),
    Report(
        "hours",
        "Records of each topic and hour, by the time of each record",
        KEYS,
        "the rate that a consumer has to keep up with",
        """select topic, hour, sum(records) records, sum(bytes) bytes
           from record_totals group by topic, hour order by topic, hour""",
        _OF_HOURS,
    ),
)
