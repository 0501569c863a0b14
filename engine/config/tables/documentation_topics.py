"""Documentation of the keys of a topic; `documentation.py` describes the form."""

from typing import Final

#: Keys of a topic, in units and words of an operator.
TOPIC_TEXTS: Final = """\
cleanup.policy
    What becomes of closed segments: delete drops them whole by retention.ms and retention.bytes,
    compact keeps the newest record of each key, and both may be named together. Where a topic is
    compacted, records without a key are refused.
compression.gzip.level
    How hard gzip works, 1 (fast) to 9 (small); -1 leaves it to the library. Counts only where
    compression.type is gzip and the broker has to compress a batch again.
compression.lz4.level
    How hard lz4 works, 1 (fast) to 17 (small). Counts only where compression.type is lz4 and the
    broker has to compress a batch again.
compression.type
    The codec in which batches lie on disk. With producer they stay as they came, which costs the
    broker nothing; a fixed codec makes it open and pack every batch that came in another one.
compression.zstd.level
    How hard zstd works: below 0 is very fast, 3 is common, 22 the smallest. Counts only where
    compression.type is zstd and the broker has to compress a batch again.
delete.retention.ms
    Milliseconds for which a compacted log still shows a deletion (a key with a null value) after
    the cleaner has been there. A reader that takes longer for the whole log can miss deletions.
file.delete.delay.ms
    Milliseconds between the renaming of a file to .deleted and its removal, so that a fetch that
    is under way can end. Disk space of a retention run comes back only after it.
flush.messages
    Records after which the log is forced to disk with fsync; the default leaves that to the
    system. A small number costs much throughput: copies on several brokers protect better.
flush.ms
    Milliseconds for which records may wait before fsync; the default leaves it to the system. It
    is looked at every log.flush.scheduler.interval.ms, so that a smaller value acts no sooner.
follower.replication.throttled.replicas
    Copies that fetch no faster than follower.replication.throttled.rate of their broker, as
    partition:broker pairs, or * for all. Tools that move replicas set it and take it away again.
index.interval.bytes
    Bytes of records between two entries of the offset and time indexes. Less finds a position
    with less reading and makes larger indexes; there is seldom a reason to change it.
leader.replication.throttled.replicas
    Copies whose leaders send no faster than leader.replication.throttled.rate, as partition:broker
    pairs, or * for all. Tools that move replicas set it and take it away again.
local.retention.bytes
    Bytes of a partition that stay on the broker's disk once they are in the remote tier; -2 takes
    retention.bytes. It must not exceed that, and counts only with remote.storage.enable.
local.retention.ms
    Milliseconds for which segments stay on the broker's disk once they are in the remote tier; -2
    takes retention.ms. It must not exceed that, and counts only with remote.storage.enable.
max.compaction.lag.ms
    Milliseconds after which a record is due for compaction however clean the log is. Set it where
    a deletion has to be carried out within a legal term; it may not be below min.compaction.lag.ms.
max.message.bytes
    The largest batch that is taken, in bytes as it is stored (so after compression). Producers
    need a max.request.size and replicas a replica.fetch.max.bytes that go with it.
message.downconversion.enable
    Whether batches are rewritten for consumers that know only older formats. false spares the
    memory and time of that and answers such consumers with UNSUPPORTED_VERSION.
message.format.version
    A release whose record format was to be written. It has no effect since 3.0, where every batch
    is written in the format of 0.11; take it away.
message.timestamp.after.max.ms
    How many milliseconds a record's own time may lie ahead of the broker's clock; later ones are
    refused. Protects retention and time indexes from clocks that are wrong; CreateTime only.
message.timestamp.before.max.ms
    How many milliseconds a record's own time may lie behind the broker's clock; earlier ones are
    refused. Keep it above the age of what is ever loaded again; CreateTime only.
message.timestamp.difference.max.ms
    The bound on both sides of the broker's clock, in milliseconds, before it was split in two.
    Counts where message.timestamp.before.max.ms or message.timestamp.after.max.ms is not set.
message.timestamp.type
    Whose clock a record's time is from: CreateTime the producer's, LogAppendTime the broker's.
    Retention by time and lookups by time go by it, so do not change it in a topic with data.
min.cleanable.dirty.ratio
    The part of a log that must be uncompacted, 0 to 1, before the cleaner takes it up. 0.5 lets
    about half of the space be duplicates; less cleans more often for more reading and writing.
min.compaction.lag.ms
    Milliseconds for which a record is safe from compaction, so that readers see every version for
    that long. It may not exceed max.compaction.lag.ms.
min.insync.replicas
    How many copies, the leader's among them, must be in sync for a write with acks=all to be taken;
    with fewer it fails with NOT_ENOUGH_REPLICAS. One less than the replication factor is common: 2
    of 3 survives the loss of one broker without losing what was acknowledged.
preallocate
    Whether a new segment takes its whole room on disk at once. Useful where files that grow become
    scattered; costs segment.bytes for each partition, however little is in it.
remote.log.copy.disable
    true turns the remote tier of this topic read-only: nothing more is uploaded. It is of KRaft
    clusters with remote.storage.enable and is refused with ZooKeeper.
remote.log.delete.on.disable
    Must be true when remote.storage.enable is turned off, and then removes what is in the remote
    tier. It is of KRaft clusters and is refused with ZooKeeper.
remote.storage.enable
    Whether closed segments are copied to a remote tier. Needs remote.log.storage.system.enable on
    the brokers, and a topic that is not compacted.
retention.bytes
    How many bytes of a partition are kept, oldest segments first to go; -1 is no limit. It is per
    partition, whole segments are dropped, and only where cleanup.policy has delete.
retention.ms
    For how many milliseconds records are kept; -1 is for ever. A segment goes when its newest
    record is older, so data stays up to segment.ms longer; only where cleanup.policy has delete.
segment.bytes
    Bytes at which a segment is closed and a new one begun. Retention and compaction never touch
    the one that is written, so small topics with short retention want smaller segments.
segment.index.bytes
    Bytes of room for each index of a segment. A full index closes the segment, so it should be
    lowered only together with segment.bytes; the open segment's indexes have this size on disk.
segment.jitter.ms
    Up to how many milliseconds, at random, a segment is closed before segment.ms is over, so that
    many partitions do not do it in the same moment.
segment.ms
    Milliseconds after which a segment is closed though it is not full, so that retention and
    compaction can act on quiet partitions. Very small values make very many files.
unclean.leader.election.enable
    Whether a replica that is behind may lead when none that is in sync is left. true prefers being
    available to keeping acknowledged records: what the new leader lacks is lost.
"""
