"""Reports over batch headers: sizes, producers, order, integrity."""

from __future__ import annotations

from engine.analysis.reports.report import HEADERS, VALUES, Report

BATCH_REPORTS = (
    Report(
        "topics",
        "Size and count of each topic",
        HEADERS,
        "bytes as they are stored, compressed; batches of magic 0 and 1 do not say how many records"
        " they have, which `sizes` counts",
        """select topic, count(distinct partition) partitions, sum(count) records,
                  count(*) batches, sum(size) bytes,
                  sum(case when count > 0 then size end) / nullif(sum(count), 0) bytes_per_record,
                  min(case when maxTimestampMs >= 0 then maxTimestamp end) first_timestamp,
                  max(case when maxTimestampMs >= 0 then maxTimestamp end) last_timestamp
           from batches group by topic order by bytes desc, topic""",
    ),
    Report(
        "days",
        "Records and bytes of each topic and day",
        HEADERS,
        "a day that is far above the others is a burst, a replay or a wrong clock",
        """select topic, date_trunc('day', maxTimestamp) day, sum(count) records, sum(size) bytes
           from batches group by topic, date_trunc('day', maxTimestamp) order by topic, day""",
    ),
    Report(
        "codecs",
        "Compression of each topic",
        HEADERS,
        "`none` next to another codec is a producer without compression.type",
        """select topic, codec, magic, count(*) batches, sum(count) records, sum(size) bytes
           from batches group by topic, codec, magic order by topic, bytes desc, codec, magic""",
    ),
    Report(
        "batch-health",
        "How well producers fill their batches",
        HEADERS,
        "few records a batch cost headers and requests: raise linger.ms and batch.size",
        """select topic, count(*) batches, avg(count) records_per_batch, avg(size) bytes_per_batch,
                  count_if(count = 1) single_record_batches,
                  count_if(producerId < 0) not_idempotent_batches
           from batches where not isControl group by topic
           order by records_per_batch, topic""",
    ),
    Report(
        "producers",
        "What each producer wrote, and when",
        HEADERS,
        "-1 is all producers without idempotence together",
        """select topic, partition, producerId, producerEpoch, count(*) batches, sum(count) records,
                  min(baseOffset) first_offset, max(lastOffset) last_offset,
                  min(maxTimestamp) first_timestamp, max(maxTimestamp) last_timestamp
           from batches group by topic, partition, producerId, producerEpoch
           order by topic, partition, producerId, producerEpoch""",
    ),
    Report(
        "sequence-gaps",
        "Sequence numbers of a producer that do not follow each other",
        HEADERS,
        "rows in a topic that is not compacted are lost or doubled batches",
        """select topic, partition, producerId, producerEpoch, baseOffset, baseSequence, expected
           from (select topic, partition, producerId, producerEpoch, baseOffset, baseSequence,
                        lag((lastOffset - baseOffset + baseSequence + 1) % 2147483648)
                          over (partition by topic, partition, producerId, producerEpoch
                                order by baseOffset) expected
                 from batches where producerId >= 0 and baseSequence >= 0 and crcValid)
           where baseSequence <> expected and baseSequence <> 0
           order by topic, partition, baseOffset""",
    ),
    Report(
        "zombies",
        "Batches of a producer epoch after a later epoch of the same producer",
        HEADERS,
        "rows are writes of a fenced producer that a broker should have refused",
        """select topic, partition, producerId, producerEpoch, latest_epoch, baseOffset
           from (select topic, partition, producerId, producerEpoch, baseOffset,
                        max(producerEpoch)
                          over (partition by topic, partition, producerId order by baseOffset
                                rows between unbounded preceding and 1 preceding) latest_epoch
                 from batches where producerId >= 0 and crcValid)
           where producerEpoch < latest_epoch order by topic, partition, baseOffset""",
    ),
    Report(
        "open-transactions",
        "Transactions whose last batch is data and not a marker",
        HEADERS,
        "read_committed consumers stop at first_open_offset; `kctl transactions` of the cluster"
        " tells whether it hangs",
        """select topic, partition, producerId, max(producerEpoch) producerEpoch,
                  min(case when baseOffset > last_marker then baseOffset end) first_open_offset,
                  max(last_data) last_offset, max(maxTimestamp) last_timestamp
           from (select topic, partition, producerId, producerEpoch, baseOffset, maxTimestamp,
                        max(case when isControl then -1 else lastOffset end)
                          over (partition by topic, partition, producerId) last_data,
                        max(case when isControl then lastOffset else -1 end)
                          over (partition by topic, partition, producerId) last_marker
                 from batches where isTransactional)
           where last_data > last_marker
           group by topic, partition, producerId order by topic, partition, first_open_offset""",
    ),
    Report(
        "gaps",
        "Offsets that no batch has, between two batches of a partition",
        HEADERS,
        "normal where compaction or transactions removed records; loss elsewhere; compressed"
        " batches of magic 0 and 1 do not say where they begin",
        """select topic, partition, expected first_missing, baseOffset - 1 last_missing,
                  baseOffset - expected missing
           from (select topic, partition, baseOffset, magic, codec,
                        max(lastOffset + 1)
                          over (partition by topic, partition order by baseOffset, lastOffset
                                rows between unbounded preceding and 1 preceding) expected
                 from batches where crcValid)
           where baseOffset > expected and (magic > 1 or codec = 'none')
           order by topic, partition, first_missing""",
    ),
    Report(
        "overlaps",
        "Offsets that two batches of a partition have",
        HEADERS,
        "rows mean that a log was copied together wrongly, or damaged",
        """select topic, partition, baseOffset, expected - 1 last_offset_before
           from (select topic, partition, baseOffset,
                        max(lastOffset + 1)
                          over (partition by topic, partition order by baseOffset, lastOffset
                                rows between unbounded preceding and 1 preceding) expected
                 from batches where crcValid)
           where baseOffset < expected order by topic, partition, baseOffset""",
    ),
    Report(
        "epochs",
        "Leader epochs of each partition, and the offsets written in each",
        HEADERS,
        "compare with leader-epoch-checkpoint and with the other replicas to find a divergence",
        """select topic, partition, leaderEpoch, min(baseOffset) first_offset,
                  max(lastOffset) last_offset, count(*) batches, max(maxTimestamp) last_timestamp
           from batches group by topic, partition, leaderEpoch
           order by topic, partition, leaderEpoch""",
    ),
    Report(
        "divergence",
        "Batches that replicas have not alike, or not all where the logs of all have offsets",
        HEADERS,
        "with directories of several brokers; in a compacted topic brokers clean at other times",
        """select topic, partition, baseOffset, count(*) copies, max(replicas) replicas,
                  count(distinct crc) contents, count(distinct leaderEpoch) epochs
           from (select topic, partition, baseOffset, lastOffset, crc, leaderEpoch,
                        max(start) over (partition by topic, partition) latest_start,
                        min(last) over (partition by topic, partition) shortest,
                        max(rank) over (partition by topic, partition) replicas
                 from (select topic, partition, baseOffset, lastOffset, crc, leaderEpoch,
                              min(baseOffset) over (partition by topic, partition, dir) start,
                              max(lastOffset) over (partition by topic, partition, dir) last,
                              dense_rank() over (partition by topic, partition order by dir) rank
                       from replicas where crcValid))
           group by topic, partition, baseOffset
           having count(distinct crc) > 1 or count(distinct leaderEpoch) > 1
                  or (count(*) < max(replicas) and baseOffset >= max(latest_start)
                      and max(lastOffset) <= min(shortest))
           order by topic, partition, baseOffset""",
    ),
    Report(
        "late-batches",
        "Batches older than one before them, and by how much",
        HEADERS,
        "late records keep segments from retention.ms, and stay out of windows",
        """select topic, partition, count(*) batches, count_if(late_ms > 0) late_batches,
                  max(late_ms) most_late_ms
           from (select topic, partition,
                        max(maxTimestampMs) over (partition by topic, partition order by baseOffset
                          rows between unbounded preceding and current row) - maxTimestampMs late_ms
                 from batches where maxTimestampMs >= 0 and crcValid)
           group by topic, partition order by most_late_ms desc, topic, partition""",
    ),
    Report(
        "integrity",
        "Batches whose checksum is wrong",
        HEADERS,
        "`kctl logs verify` shows what is lost, `kctl logs repair` what recovery would keep",
        """select topic, partition, segment, position, baseOffset, lastOffset, size, crc
           from batches where not crcValid order by topic, partition, segment, position""",
    ),
    Report(
        "compression",
        "What other codecs would make of each topic, from a sample of its batches",
        VALUES,
        "bytes of the sample as they are stored, without compression, and by each codec at Kafka's"
        " level; see compression.type",
        """select topic, codec, count(*) batches, sum(size) bytes, sum(rawSize) raw_bytes,
                  sum(gzipSize) gzip_bytes, sum(snappySize) snappy_bytes, sum(lz4Size) lz4_bytes,
                  sum(zstdSize) zstd_bytes
           from batches where rawSize is not null and not isControl
           group by topic, codec order by raw_bytes desc, topic, codec""",
    ),
)
