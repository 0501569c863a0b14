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
           from (select dir, topic, partition, sum(bytes) bytes from segments
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
        "retention.bytes deletes a segment while those after it still reach the limit",
        """select topic, partition, baseOffset, bytes,
                  sum(bytes) over (partition by topic, partition order by baseOffset desc
                                   rows between unbounded preceding and current row) bytes_from_here
           from segments order by topic, partition, baseOffset""",
    ),
    Report(
        "retention-by-time",
        "What retention.ms would delete: bytes by the day of a segment's last record",
        HEADERS,
        "a segment goes once its last timestamp is older than retention.ms",
        """select topic, date_trunc('day', lastTimestamp) last_day, count(*) segments,
                  sum(bytes) bytes
           from segments group by topic, date_trunc('day', lastTimestamp)
           order by topic, last_day""",
    ),
)
