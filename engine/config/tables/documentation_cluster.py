"""Documentation of a broker's keys about the cluster; `documentation.py` describes the form."""

from typing import Final

#: Identity, topics, controller, replication, ZooKeeper, policies.
CLUSTER_TEXTS: Final = """\
alter.config.policy.class.name
    A class that may refuse changes of settings; it implements
    org.apache.kafka.server.policy.AlterConfigPolicy.
auto.create.topics.enable
    Whether a topic comes into being when a client asks for it. Mistyped names then become topics
    with num.partitions and default.replication.factor; production clusters mostly say false.
auto.leader.rebalance.enable
    Whether the controller gives leadership back to preferred replicas by itself, every
    leader.imbalance.check.interval.seconds.
broker.id
    The broker's number in the cluster, kept in meta.properties of each directory: a broker with
    another one does not start on it. -1 lets ZooKeeper give one above reserved.broker.max.id. The
    same as node.id.
broker.id.generation.enable
    Whether a broker without broker.id is given one by ZooKeeper.
broker.rack
    The rack or zone of the broker, any word. New topics are spread over racks, and consumers can
    read from a replica near them when replica.selector.class allows it.
controlled.shutdown.enable
    Whether a broker that stops first lets the controller move its leaders away. Without it clients
    see the partitions without a leader for a moment.
controlled.shutdown.max.retries
    How often a broker that stops asks again when the controller could not move all leaders.
controlled.shutdown.retry.backoff.ms
    Milliseconds between those tries, in which lagging replicas can catch up.
controller.socket.timeout.ms
    Milliseconds for which the controller waits for a broker's answer on an open connection, and a
    broker for the controller's.
create.topic.policy.class.name
    A class that may refuse new topics; it implements
    org.apache.kafka.server.policy.CreateTopicPolicy.
default.replication.factor
    Copies of topics that come into being by themselves, or are created with -1. At least 3 in
    production, together with a min.insync.replicas of 2.
delete.topic.enable
    Whether topics can be deleted at all. With false every deletion is refused.
delete.records.purgatory.purge.interval.requests
    Finished deletions of records that may lie around before the list of waiting ones is swept.
fetch.purgatory.purge.interval.requests
    Finished fetches that may lie around before the list of waiting ones is swept. Less saves
    memory and costs time.
inter.broker.protocol.version
    The release whose messages brokers use among each other. In a rolling upgrade it stays at the
    old release until all brokers run the new one, and is raised in a second round.
leader.imbalance.check.interval.seconds
    Seconds between two looks whether too many leaders are away from their preferred broker.
leader.imbalance.per.broker.percentage
    From which share of a broker's partitions, in percent, the controller moves leaders back.
node.id
    The number of a KRaft node; with ZooKeeper the same as broker.id, and enough instead of it.
num.partitions
    Partitions of topics that come into being by themselves, or are created with -1. A topic can
    have more later, never fewer.
num.replica.fetchers
    Fetching threads for each broker that this one follows. Raise it where followers lag though
    disks and network have room; a change while the broker runs may at most double or halve it.
producer.purgatory.purge.interval.requests
    Finished writes with acks=all that may lie around before the list of waiting ones is swept.
replica.fetch.backoff.ms
    Milliseconds for which a follower leaves a partition alone after an error.
replica.fetch.max.bytes
    Bytes of each partition that a follower asks for at once. A larger batch is still sent whole,
    so that it never stops replication.
replica.fetch.min.bytes
    Bytes for which a leader lets a follower's fetch wait, at most replica.fetch.wait.max.ms.
replica.fetch.response.max.bytes
    Bytes that a follower asks for at once over all partitions. A first batch that is larger is
    still sent whole.
replica.fetch.wait.max.ms
    Milliseconds for which a leader may hold a follower's fetch when there is nothing new. Must be
    well below replica.lag.time.max.ms, or quiet partitions leave the ISR.
replica.high.watermark.checkpoint.interval.ms
    Milliseconds between two writings of the file with the high watermarks, from which a broker
    starts again.
replica.lag.time.max.ms
    Milliseconds after which a follower that has not reached the leader's end leaves the ISR. Less
    makes acks=all wait less for a slow one and the ISR flap more.
replica.selector.class
    A class that picks which replica a consumer reads from, such as
    org.apache.kafka.common.replica.RackAwareReplicaSelector for one in its rack (KIP-392). Unset,
    it is the leader.
replica.socket.receive.buffer.bytes
    Size of the receive buffer of a follower's connection to its leader, in bytes; -1 takes the
    system's.
replica.socket.timeout.ms
    Milliseconds for which a follower waits for its leader's answer. Must be at least
    replica.fetch.wait.max.ms.
reserved.broker.max.id
    The highest number that may be given as broker.id; generated ones lie above.
security.inter.broker.protocol
    The protocol between brokers, by which their listener is found where
    inter.broker.listener.name is not set.
unclean.leader.election.interval.ms
    Milliseconds between two looks of a KRaft controller for partitions without a leader that may
    have one that is behind.
zookeeper.clientCnxnSocket
    The class of ZooKeeper's client that has the connection. With TLS it must be
    org.apache.zookeeper.ClientCnxnSocketNetty.
zookeeper.connect
    Where ZooKeeper is: host:port with commas between them, and behind the last one a path under
    which all of the cluster's data lies. Name every server, so that one that is down is no matter.
zookeeper.connection.timeout.ms
    Milliseconds that a start waits for ZooKeeper; zookeeper.session.timeout.ms where it is not set.
zookeeper.max.in.flight.requests
    Requests that are sent to ZooKeeper before answers have come.
zookeeper.metadata.migration.enable
    Whether the broker takes part in the move of the cluster's metadata from ZooKeeper to KRaft.
zookeeper.metadata.migration.min.batch.size
    About how many changes the move to KRaft writes at once.
zookeeper.session.timeout.ms
    Milliseconds of silence after which ZooKeeper takes the broker for dead and the controller
    elects other leaders. Long pauses of the process must stay below; less finds a failure sooner.
zookeeper.set.acl
    Whether znodes are made so that only brokers can change them. Needs brokers that log in to
    ZooKeeper.
zookeeper.ssl.cipher.suites
    Cipher suites for ZooKeeper's TLS, with commas between them; unset, those of Java.
zookeeper.ssl.client.enable
    Whether brokers speak TLS to ZooKeeper. Needs zookeeper.clientCnxnSocket, and mostly a
    truststore and a keystore.
zookeeper.ssl.crl.enable
    Whether ZooKeeper's certificate is looked for in lists of revoked ones.
zookeeper.ssl.enabled.protocols
    Versions of TLS that may be spoken with ZooKeeper; unset, the one of zookeeper.ssl.protocol.
zookeeper.ssl.endpoint.identification.algorithm
    HTTPS compares ZooKeeper's host name with its certificate; an empty value does not, and lets
    anyone with a trusted certificate pose as ZooKeeper.
zookeeper.ssl.keystore.location
    File with the certificate that brokers show to ZooKeeper.
zookeeper.ssl.keystore.password
    Password of the file in zookeeper.ssl.keystore.location; it is also that of the key in it.
zookeeper.ssl.keystore.type
    Format of the file in zookeeper.ssl.keystore.location, JKS, PKCS12 or PEM; unset, told by its
    ending.
zookeeper.ssl.ocsp.enable
    Whether an OCSP server is asked if ZooKeeper's certificate has been revoked.
zookeeper.ssl.protocol
    The version of TLS with which a connection to ZooKeeper begins.
zookeeper.ssl.truststore.location
    File with the certificates by which brokers believe ZooKeeper.
zookeeper.ssl.truststore.password
    Password of the file in zookeeper.ssl.truststore.location.
zookeeper.ssl.truststore.type
    Format of the file in zookeeper.ssl.truststore.location, JKS, PKCS12 or PEM; unset, told by its
    ending.
"""
