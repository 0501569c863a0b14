"""Documentation of a broker's keys about groups and transactions; see `documentation.py`."""

from typing import Final

#: Consumer groups, their offsets, share groups, transactions, producers.
GROUP_TEXTS: Final = """\
group.consumer.assignors
    Classes that spread partitions over members in the newer protocol (KIP-848); the first one is
    taken where a member names none.
group.consumer.heartbeat.interval.ms
    Milliseconds between heartbeats of members in the newer protocol; the broker tells them.
group.consumer.max.heartbeat.interval.ms
    The largest group.consumer.heartbeat.interval.ms that may be set, in milliseconds.
group.consumer.max.session.timeout.ms
    The largest group.consumer.session.timeout.ms that may be set, in milliseconds.
group.consumer.max.size
    Members that a group of the newer protocol may have; more are refused.
group.consumer.migration.policy
    Whether a group with members may change protocol: upgrade to the newer one, downgrade to the
    classic one, bidirectional or disabled. Empty groups always may.
group.consumer.min.heartbeat.interval.ms
    The smallest group.consumer.heartbeat.interval.ms that may be set, in milliseconds.
group.consumer.min.session.timeout.ms
    The smallest group.consumer.session.timeout.ms that may be set, in milliseconds.
group.consumer.session.timeout.ms
    Milliseconds of silence after which a member in the newer protocol is put out of its group.
group.coordinator.append.linger.ms
    Milliseconds for which the newer coordinator gathers writes into one batch: more throughput,
    later answers.
group.coordinator.new.enable
    Whether the newer coordinator of groups is used, before group.coordinator.rebalance.protocols
    decided that. Internal.
group.coordinator.rebalance.protocols
    The protocols that are offered: classic, consumer (KIP-848), share. consumer needs KRaft; share
    is not for production in 3.9.
group.coordinator.threads
    Threads of the newer coordinator; __consumer_offsets' partitions are spread over them.
group.initial.rebalance.delay.ms
    Milliseconds for which an empty group waits for more members after the first one. More spares
    rebalances when many start together, less starts a single consumer sooner.
group.max.session.timeout.ms
    The largest session.timeout.ms, in milliseconds, that a consumer may ask for. More lets it be
    busy longer and its death be noticed later.
group.max.size
    Members that a group may have; more are refused with GROUP_MAX_SIZE_REACHED.
group.min.session.timeout.ms
    The smallest session.timeout.ms, in milliseconds, that a consumer may ask for. Keeps impatient
    ones from heartbeats that load the broker.
group.share.delivery.count.limit
    How often a record may be handed out in a share group before it is given up.
group.share.enable
    Whether share groups are there, before group.coordinator.rebalance.protocols decided that.
    Internal.
group.share.heartbeat.interval.ms
    Milliseconds between heartbeats of members of share groups; the broker tells them.
group.share.max.groups
    Share groups that a broker has at most.
group.share.max.heartbeat.interval.ms
    The largest group.share.heartbeat.interval.ms that may be set, in milliseconds.
group.share.max.record.lock.duration.ms
    The largest group.share.record.lock.duration.ms that may be set, in milliseconds.
group.share.max.session.timeout.ms
    The largest group.share.session.timeout.ms that may be set, in milliseconds.
group.share.max.size
    Members that a share group may have.
group.share.min.heartbeat.interval.ms
    The smallest group.share.heartbeat.interval.ms that may be set, in milliseconds.
group.share.min.record.lock.duration.ms
    The smallest group.share.record.lock.duration.ms that may be set, in milliseconds.
group.share.min.session.timeout.ms
    The smallest group.share.session.timeout.ms that may be set, in milliseconds.
group.share.partition.max.record.locks
    Records of a partition that may be handed out and not yet acknowledged in a share group.
group.share.record.lock.duration.ms
    Milliseconds that a member of a share group has for a record; then another one may have it.
group.share.session.timeout.ms
    Milliseconds of silence after which a member is put out of a share group.
offset.metadata.max.bytes
    Bytes of text that a consumer may commit beside an offset.
offsets.load.buffer.size
    Bytes read at once when a coordinator loads committed offsets; a larger batch is still read.
offsets.retention.check.interval.ms
    Milliseconds between two looks for offsets that are to be forgotten.
offsets.retention.minutes
    Minutes for which offsets are kept once their group is empty or has left the topic. A consumer
    that is away for longer begins again by its auto.offset.reset.
offsets.topic.compression.codec
    The codec of __consumer_offsets by its number: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
offsets.topic.num.partitions
    Partitions of __consumer_offsets. Decide before the first group: groups find their coordinator
    by it.
offsets.topic.replication.factor
    Copies of __consumer_offsets. It is not made before there are as many brokers, so one broker
    alone needs 1.
offsets.topic.segment.bytes
    Bytes of a segment of __consumer_offsets. Small ones are compacted sooner, and a coordinator
    loads faster.
producer.id.expiration.check.interval.ms
    Milliseconds between two looks for producer ids that are to be forgotten. For tests.
producer.id.expiration.ms
    Milliseconds after its last write for which a partition remembers an idempotent producer. Less
    saves memory where producers come and go; it should exceed the producers' delivery.timeout.ms.
transaction.abort.timed.out.transaction.cleanup.interval.ms
    Milliseconds between two looks for transactions that are open longer than their timeout, which
    are then aborted.
transaction.max.timeout.ms
    The longest transaction.timeout.ms that a producer may ask for, in milliseconds. An open
    transaction holds up all readers of read_committed.
transaction.partition.verification.enable
    Whether a leader asks the coordinator if a transaction that it does not know is really open.
    Keeps transactions that nobody would end (hanging ones) from coming into being.
transaction.remove.expired.transaction.cleanup.interval.ms
    Milliseconds between two looks for transactional ids that are to be forgotten.
transaction.state.log.load.buffer.size
    Bytes read at once when a coordinator loads transactions; a larger batch is still read.
transaction.state.log.min.isr
    The min.insync.replicas of __transaction_state.
transaction.state.log.num.partitions
    Partitions of __transaction_state. Decide before the first transaction: producers find their
    coordinator by it.
transaction.state.log.replication.factor
    Copies of __transaction_state. It is not made before there are as many brokers, so one broker
    alone needs 1.
transaction.state.log.segment.bytes
    Bytes of a segment of __transaction_state. Small ones are compacted sooner, and a coordinator
    loads faster.
transactional.id.expiration.ms
    Milliseconds without a transaction after which a transactional id is forgotten; its producer
    must be initialized again then.
"""
