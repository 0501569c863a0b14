"""Documentation of a broker's keys about the remote tier; `documentation.py` describes the form."""

from typing import Final

#: Closed segments in a store elsewhere (KIP-405).
REMOTE_TEXTS: Final = """\
remote.fetch.max.wait.ms
    Milliseconds for which a fetch may wait for the remote tier before it is answered without.
remote.log.index.file.cache.total.size.bytes
    Bytes of disk for indexes that were fetched from the remote tier.
remote.log.manager.copier.thread.pool.size
    Threads that upload segments; -1 takes remote.log.manager.thread.pool.size.
remote.log.manager.copy.max.bytes.per.second
    Bytes that a broker uploads in a second at most.
remote.log.manager.copy.quota.window.num
    Windows over which the rate of uploads is measured.
remote.log.manager.copy.quota.window.size.seconds
    Seconds of one window of the rate of uploads.
remote.log.manager.expiration.thread.pool.size
    Threads that delete what has expired in the remote tier; -1 takes
    remote.log.manager.thread.pool.size.
remote.log.manager.fetch.max.bytes.per.second
    Bytes that a broker reads from the remote tier in a second at most.
remote.log.manager.fetch.quota.window.num
    Windows over which the rate of remote reads is measured.
remote.log.manager.fetch.quota.window.size.seconds
    Seconds of one window of the rate of remote reads.
remote.log.manager.task.interval.ms
    Milliseconds between two looks for what is to be uploaded or deleted.
remote.log.manager.task.retry.backoff.max.ms
    The longest pause of a task of the remote tier after failures, in milliseconds.
remote.log.manager.task.retry.backoff.ms
    The first pause of a task of the remote tier after a failure, in milliseconds; it doubles.
remote.log.manager.task.retry.jitter
    How much chance, 0 to 0.5, is put into those pauses, so that brokers do not come at once.
remote.log.manager.thread.pool.size
    Threads for uploads and deletions where their own numbers are not set, and for followers that
    build their state from the remote tier.
remote.log.metadata.custom.metadata.max.bytes
    Bytes that a storage plug-in may keep with each segment; a segment with more is not uploaded.
remote.log.metadata.manager.class.name
    The class that keeps track of remote segments; the one that comes with Kafka does it in a topic.
remote.log.metadata.manager.class.path
    Where that class is, if not with Kafka's own.
remote.log.metadata.manager.impl.prefix
    How the keys begin that are handed to that class.
remote.log.metadata.manager.listener.name
    The listener over which that class talks to the brokers.
remote.log.reader.max.pending.tasks
    Remote reads that may wait; with more a fetch fails and the consumer asks again.
remote.log.reader.threads
    Threads that read from the remote tier for consumers.
remote.log.storage.manager.class.name
    The class that stores and fetches segments; Kafka brings none for production.
remote.log.storage.manager.class.path
    Where that class is, if not with Kafka's own.
remote.log.storage.manager.impl.prefix
    How the keys begin that are handed to that class.
remote.log.storage.system.enable
    Whether the broker has a remote tier at all; topics then choose it by remote.storage.enable.
"""
