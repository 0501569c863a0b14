"""Documentation of a broker's keys about logs; `documentation.py` describes the form."""

from typing import Final

#: Where logs are, when they are flushed, checked and cleaned. Keys that give topics a default have
#: the topic's text.
LOG_TEXTS: Final = """\
log.cleaner.backoff.ms
    Milliseconds for which a cleaner rests when no log is worth compacting.
log.cleaner.dedupe.buffer.size
    Bytes of memory that all cleaners share for their tables of keys, 24 bytes for each key that is
    not clean yet. Too little makes one log take several passes; each cleaner needs more than 1 MiB.
log.cleaner.enable
    Whether compaction runs at all. false also leaves __consumer_offsets to grow without end.
log.cleaner.io.buffer.load.factor
    Up to which part, 0 to 1, a cleaner's table of keys is filled. More takes more keys in one pass
    at the price of more collisions.
log.cleaner.io.buffer.size
    Bytes of memory that all cleaners share for reading and writing. A batch that is larger makes
    them take more for a while.
log.cleaner.io.max.bytes.per.second
    Bytes that all cleaners together read and write in a second. Lower it where compaction takes
    the disk from producers and consumers.
log.cleaner.threads
    How many cleaners work at a time. Raise it when the dirtiest log stays dirty; a change while the
    broker runs may at most double or halve it.
log.dir
    The one directory of logs, where log.dirs is not set.
log.dir.failure.timeout.ms
    Milliseconds after which a KRaft broker stops if it could not tell the controller that one of
    its directories has failed.
log.dirs
    Directories of logs, with commas between them; each partition lies in one. Several disks need
    no RAID: one that fails takes only its partitions offline.
log.flush.offset.checkpoint.interval.ms
    Milliseconds between two writings of the file that says up to where logs are on disk for sure.
    After a crash everything behind is read again.
log.flush.scheduler.interval.ms
    Milliseconds between two looks for logs whose flush.ms is over. Counts as log.flush.interval.ms
    where that is not set.
log.flush.start.offset.checkpoint.interval.ms
    Milliseconds between two writings of the file with the offsets at which logs begin. What was
    deleted by request after the last one can show again after a crash.
log.initial.task.delay.ms
    Milliseconds after the start before the first retention, flush and checkpoint. For tests.
log.retention.check.interval.ms
    Milliseconds between two looks for segments that are too old or too many. Records are never
    deleted more promptly than this.
log.retention.hours
    log.retention.ms in hours. Counts only where neither that nor log.retention.minutes is set, and
    cannot be changed while the broker runs.
log.retention.minutes
    log.retention.ms in minutes. Counts only where that is not set, beats log.retention.hours, and
    cannot be changed while the broker runs.
log.roll.hours
    log.roll.ms in hours. Counts only where that is not set, and cannot be changed while the broker
    runs.
log.roll.jitter.hours
    log.roll.jitter.ms in hours. Counts only where that is not set, and cannot be changed while the
    broker runs.
num.recovery.threads.per.data.dir
    Threads that load the logs of one directory at a start and flush them at a stop. Raise it where
    a start after a crash takes long; disks and not cores are the bound.
num.replica.alter.log.dirs.threads
    Threads that move replicas between directories of one broker; unset, as many as directories.
offsets.commit.required.acks
    The acks with which an offset commit is written; -1 waits for all replicas in sync. Anything
    else can lose commits and has been dropped from later releases.
offsets.commit.timeout.ms
    Milliseconds for which an offset commit waits for the replicas before the consumer gets an
    error.
"""
