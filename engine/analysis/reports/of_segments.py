"""Reports over segments: files, indexes, retention."""

from __future__ import annotations

from engine.analysis.reports.report import HEADERS, Report

SEGMENT_REPORTS = (
    Report(
        "segments",
        "Segments of each partition",
        HEADERS,
        "many small segments cost descriptors and start-up time; see segment.bytes and segment.ms",
        """select topic, partition, count(*) segments, sum(bytes) bytes, max(bytes) largest_bytes,
                  min(baseOffset) first_offset, max(nextOffset) log_end_offset,
                  min(firstTimestamp) first_timestamp, max(lastTimestamp) last_timestamp
           from segments group by topic, partition order by bytes desc, topic, partition""",
    ),
    Report(
        "imbalance",
        "How unevenly a topic's bytes lie on its partitions",
        HEADERS,
        "a ratio far above 1 is a hot partition: look at `key-skew`",
        """select topic, count(*) partitions, sum(bytes) bytes, min(bytes) least_bytes,
                  max(bytes) most_bytes, max(bytes) * count(*) / sum(bytes) most_to_mean
           from (select topic, partition, sum(bytes) bytes from segments group by topic, partition)
           group by topic having sum(bytes) > 0 order by most_to_mean desc, topic""",
    ),
    Report(
        "directories",
        "What each log directory holds",
        HEADERS,
        "directories of one broker should hold alike; `kctl reassign plan` moves between them",
        """select dir, count(distinct topic) topics, count(*) partitions, sum(bytes) bytes
           from (select dir, topic, partition, sum(bytes) bytes
                 from (select dir, topic, partition, bytes from segments
                       union all
                       select dir, topic, partition, size from replicas where not isRead)
                 group by dir, topic, partition)
           group by dir order by bytes desc, dir""",
    ),
    Report(
        "index-density",
        "Bytes of log for each entry of an index",
        HEADERS,
        "far above index.interval.bytes (4096) an index is damaged or was lost; far below is waste",
        """select topic, partition, baseOffset, bytes, indexEntries, timeIndexEntries,
                  bytes / nullif(indexEntries, 0) bytes_per_entry
           from segments where bytes > 0
           order by bytes_per_entry desc nulls first, topic, partition, baseOffset""",
    ),
    Report(
        "retention-by-size",
        "What retention.bytes would keep: a partition's bytes from each segment on",
        HEADERS,
        "retention.bytes deletes the segments whose bytes_after reach the limit; `kctl retention"
        " plan` tries a limit",
        """select topic, partition, baseOffset, bytes, bytes_from_here,
                  bytes_from_here - bytes bytes_after
           from (select topic, partition, baseOffset, bytes,
                        sum(bytes) over (partition by topic, partition order by baseOffset desc
                                         rows between unbounded preceding and current row)
                          bytes_from_here
                 from segments)
           order by topic, partition, baseOffset""",
    ),
    Report(
        "retention-by-time",
        "What retention.ms would delete: bytes by the day of the last record up to a segment's end",
        HEADERS,
        "a segment goes once no record in it or before it is younger than retention.ms; null is a"
        " time after the year 9999, which keeps all from there on, or none; `kctl retention plan`"
        " tries one",
        """select topic, last_day, count(*) segments, sum(bytes) bytes
           from (select topic, bytes, case when newest_ms between 0 and 253402300799999
                                           then date_trunc('day', newest) end last_day
                 from (select topic, bytes,
                              max(lastTimestamp)
                                over (partition by topic, partition order by baseOffset
                                      rows between unbounded preceding and current row) newest,
                              max(lastTimestampMs)
                                over (partition by topic, partition order by baseOffset
                                      rows between unbounded preceding and current row) newest_ms
                       from segments))
           group by topic, last_day order by topic, last_day""",
    ),
    Report(
        "rolls",
        "Why segments were closed",
        HEADERS,
        "many small ones by segment.ms cost descriptors and start-up time; by segment.index.bytes"
        " batches are very small",
        """select topic, rolledBy, count(*) segments, min(bytes) least_bytes, avg(bytes) mean_bytes,
                  max(bytes) most_bytes,
                  max(case when firstTimestampMs >= 0 then lastTimestampMs - firstTimestampMs end)
                    longest_ms
           from segments where rolledBy is not null group by topic, rolledBy
           order by topic, segments desc, rolledBy""",
    ),
    Report(
        "checkpoints",
        "How far checkpoints are behind the end of each log",
        HEADERS,
        "records above the high watermark are not committed; those from the recovery point on are"
        " read again after a crash; of several brokers one replica of each partition is read",
        """select ends.dir, ends.topic, ends.partition, log_end_offset, high_watermark,
                  log_end_offset - high_watermark behind_high_watermark, recovery_point,
                  log_end_offset - recovery_point behind_recovery_point, log_start_offset
           from (select dir, topic, partition, max(nextOffset) log_end_offset
                 from segments group by dir, topic, partition) ends
           left join (select dir, topic, partition,
                             max(case when kind = 'highWatermark' then checkpointOffset end)
                               high_watermark,
                             max(case when kind = 'recoveryPoint' then checkpointOffset end)
                               recovery_point,
                             max(case when kind = 'logStartOffset' then checkpointOffset end)
                               log_start_offset
                      from checkpoints where problem is null group by dir, topic, partition) known
             on ends.dir = known.dir and ends.topic = known.topic
                and ends.partition = known.partition
           order by behind_high_watermark desc nulls first, dir, topic, partition""",
    ),
    Report(
        "dirty-ratio",
        "What the cleaner has not cleaned yet of each compacted log",
        HEADERS,
        "the cleaner takes a log once the ratio is above min.cleanable.dirty.ratio (0.5); the"
        " segment that is written to is not counted; see `kctl compact plan`",
        """select dir, topic, partition, first_dirty_offset, clean_bytes, dirty_bytes,
                  dirty_bytes / nullif(clean_bytes + dirty_bytes, 0) dirty_ratio
           from (select closed.dir, closed.topic, closed.partition,
                        max(checkpointOffset) first_dirty_offset,
                        sum(case when baseOffset < checkpointOffset then bytes else 0 end)
                          clean_bytes,
                        sum(case when baseOffset < checkpointOffset then 0 else bytes end)
                          dirty_bytes
                 from (select dir, topic, partition, baseOffset, bytes,
                              max(baseOffset) over (partition by dir, topic, partition) active
                       from segments) closed
                 join (select dir, topic, partition, checkpointOffset from checkpoints
                       where problem is null and kind = 'cleanerOffset') cleaned
                   on closed.dir = cleaned.dir and closed.topic = cleaned.topic
                      and closed.partition = cleaned.partition
                 where baseOffset < active
                 group by closed.dir, closed.topic, closed.partition)
           order by dirty_ratio desc, dir, topic, partition""",
    ),
)
