"""Documentation of a broker's keys about KRaft; `documentation.py` describes the form."""

from typing import Final

#: The quorum of controllers and its log, which takes the place of ZooKeeper.
KRAFT_TEXTS: Final = """\
broker.heartbeat.interval.ms
    Milliseconds between two heartbeats of a broker to the controller.
broker.session.timeout.ms
    Milliseconds without a heartbeat after which the controller takes a broker for dead.
controller.listener.names
    The listeners of controllers; brokers use the first one and have none of them among their own.
controller.quorum.append.linger.ms
    Milliseconds for which the leading controller gathers changes before they are written to disk.
controller.quorum.bootstrap.servers
    Some controllers, host:port with commas between them, from which the others are learned.
controller.quorum.election.backoff.max.ms
    The longest pause before a new election after one without a winner, in milliseconds.
controller.quorum.election.timeout.ms
    Milliseconds for which a controller waits for votes before it begins another election.
controller.quorum.fetch.timeout.ms
    Milliseconds without an answer of the leading controller after which others stand for election;
    the leader itself gives up when most of the others have not asked for as long.
controller.quorum.request.timeout.ms
    Milliseconds for which an answer in the quorum is waited for.
controller.quorum.retry.backoff.ms
    Milliseconds between two tries of a request in the quorum.
controller.quorum.voters
    All controllers that vote, id@host:port with commas between them; the same on every node. Leave
    it out where controllers are to be added and removed while the cluster runs.
eligible.leader.replicas.enable
    Whether the controller remembers replicas that may lead without loss though they are out of the
    ISR (KIP-966). Not finished in 3.9.
initial.broker.registration.timeout.ms
    Milliseconds that a broker tries to register with the controller before it stops.
metadata.log.dir
    The directory of the metadata's log; unset, the first of log.dirs.
metadata.log.max.record.bytes.between.snapshots
    Bytes of changes after which a snapshot of the metadata is written. Less starts nodes faster and
    writes more.
metadata.log.max.snapshot.interval.ms
    Milliseconds after which a snapshot is written if anything has changed; 0 goes by bytes alone.
metadata.log.segment.bytes
    Bytes of a segment of the metadata's log.
metadata.log.segment.min.bytes
    The smallest metadata.log.segment.bytes. For tests.
metadata.log.segment.ms
    Milliseconds after which a segment of the metadata's log is closed.
metadata.max.idle.interval.ms
    Milliseconds after which the leading controller writes a record without content, by which
    others see how far behind they are; 0 never.
metadata.max.retention.bytes
    Bytes of the metadata's log and snapshots together from which old ones are deleted.
metadata.max.retention.ms
    Milliseconds after which old parts of the metadata's log and snapshots are deleted.
process.roles
    What a node is in a KRaft cluster: broker, controller or both. Empty means ZooKeeper.
"""
