"""Reports over coordinators' records.

Groups, committed offsets, transactional ids, transactions.
"""

from __future__ import annotations

from engine.analysis.reports.report import HEADERS, VALUES, Report

COORDINATOR_REPORTS = (
    Report(
        "commits",
        "Offsets that each group committed, and how often they went back",
        VALUES,
        "an offset that went back was reset, or a member committed what it had read before a"
        " rebalance: its records were processed twice; those of transactions count once they are"
        " committed",
        """select groupId, topic, partition, count(*) commits, count_if(committedOffset < before)
                  went_back, max_by(committedOffset, logOffset) last_committed,
                  min(commitTimestamp) first_commit, max(commitTimestamp) last_commit
           from (select groupId, topic, partition, committedOffset, logOffset, commitTimestamp,
                        lag(committedOffset) over (partition by groupId, topic, partition
                                                   order by logOffset) before
                 from (select groupId, topic, partition, committedOffset, logOffset,
                              commitTimestamp, isTransactional, state,
                              min(case when state = 'COMMIT' then logOffset end)
                                over (partition by logPartition, producerId order by logOffset
                                      rows between current row and unbounded following)
                                next_commit,
                              min(case when state = 'ABORT' then logOffset end)
                                over (partition by logPartition, producerId order by logOffset
                                      rows between current row and unbounded following)
                                next_abort
                       from (select groupId, topic, partition, committedOffset, logOffset,
                                    commitTimestamp, isTransactional, logPartition, producerId,
                                    null state
                             from offsets where problem is null and not isTombstone
                             union all
                             select null, null, null, null, logOffset, null, true, logPartition,
                                    producerId, state
                             from transactions
                             where kind = 'marker' and logTopic = '__consumer_offsets'))
                 where state is null and (not isTransactional
                                          or next_commit < coalesce(next_abort, next_commit + 1)))
           group by groupId, topic, partition
           order by went_back desc, groupId, topic, partition""",
    ),
    Report(
        "groups",
        "The last state of each group, as its coordinator wrote it",
        VALUES,
        "a high generation for its age is a group that rebalances all the time; deleted ones are"
        " gone for their coordinator, though not yet cleaned",
        """select groupId, max_by(isTombstone, logOffset) deleted,
                  max_by(generation, logOffset) generation,
                  max_by(protocolType, logOffset) protocolType,
                  max_by(protocol, logOffset) protocol, max_by(memberCount, logOffset) memberCount,
                  count(distinct generation) generations, max_by(timestamp, logOffset) last_written
           from groups where problem is null and type = 'GroupMetadata'
           group by groupId order by groupId""",
    ),
    Report(
        "transactional-ids",
        "The last state of each transactional id, as its coordinator wrote it",
        VALUES,
        "Ongoing longer than its time-out, PrepareCommit and PrepareAbort hold back readers of"
        " committed records; `kctl transactions` of the cluster shows whether they hang",
        """select transactionalId, isTombstone deleted, state, producerId, producerEpoch, timeoutMs,
                  partitions, coordinatorEpoch, timestamp last_written
           from (select transactionalId, isTombstone, state, producerId, producerEpoch, timeoutMs,
                        partitions, coordinatorEpoch, timestamp,
                        row_number() over (partition by transactionalId order by logOffset desc)
                          newest
                 from transactions where problem is null and kind = 'state')
           where newest = 1 order by state, transactionalId""",
    ),
    Report(
        "transactions",
        "Ended transactions of each partition: how many were aborted, of how many bytes, how long",
        HEADERS,
        "long ones delay readers of committed records; aborted bytes were written, copied and read"
        " for nothing",
        """select topic, partition, count(*) transactions, count_if(state = 'ABORT') aborted,
                  sum(bytes) bytes, sum(case when state = 'ABORT' then bytes else 0 end)
                  aborted_bytes, percentile(took_ms, 0.5) p50_ms, max(took_ms) longest_ms
           from (select data.topic, data.partition, markers.state, sum(data.size) bytes,
                        min(markers.timestampMs) - min(data.maxTimestampMs) took_ms
                 from (select topic, partition, producerId, size, maxTimestampMs, isControl,
                              min(case when isControl then baseOffset end)
                                over (partition by topic, partition, producerId order by baseOffset
                                      rows between current row and unbounded following) ended_by
                       from batches where isTransactional) data
                 join (select logTopic, logPartition, logOffset, state, timestampMs
                       from transactions where kind = 'marker') markers
                   on data.topic = markers.logTopic and data.partition = markers.logPartition
                      and data.ended_by = markers.logOffset
                 where not data.isControl
                 group by data.topic, data.partition, markers.logOffset, markers.state)
           group by topic, partition order by aborted_bytes desc, topic, partition""",
    ),
)
