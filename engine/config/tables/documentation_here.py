"""Differences of the embedded broker from the documentation of its keys.

A sentence, and below it the keys that it is added to; `*` matches any rest of a key. The first
sentence that names a key counts. docs/compatibility.md has the same.
"""

from typing import Final

HERE_TEXTS: Final = """\
The broker of kctl does not start with it.
    client.quota.callback.class process.roles
The broker of kctl takes a class of Python, as module:Class or /path/to/file.py:Class.
    alter.config.policy.class.name create.topic.policy.class.name
The broker of kctl does not start when it is true.
    remote.log.storage.system.enable zookeeper.metadata.migration.enable zookeeper.ssl.client.enable
The broker of kctl takes java.security.auth.login.config in this file or KAFKA_OPTS for the login.
    zookeeper.set.acl
The broker of kctl starts with kafka.security.authorizer.AclAuthorizer, and with no other.
    authorizer.class.name
The broker of kctl has PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER; others stop the start.
    sasl.enabled.mechanisms sasl.mechanism.inter.broker.protocol
The broker of kctl does not start with another.
    principal.builder.class
Where a listener has SASL the broker of kctl starts with Kafka's own of OAUTHBEARER alone.
    sasl.server.callback.handler.class sasl.login.callback.handler.class sasl.login.class
    sasl.client.callback.handler.class
The broker of kctl does its requests in one thread: there the number changes nothing.
    num.io.threads num.network.threads num.recovery.threads.per.data.dir
    num.replica.alter.log.dirs.threads
The broker of kctl has one time-out for links between brokers: there the value changes nothing.
    replica.socket.* controller.socket.timeout.ms socket.connection.setup.* request.timeout.ms
The broker of kctl goes by it for in-sync sets alone: below 2.7 leaders write them themselves.
    inter.broker.protocol.version
The broker of kctl has no groups yet: there the value is kept and shown, and changes nothing.
    group.consumer.* group.coordinator.* group.initial.* group.max.* group.min.* offset.metadata.*
    offsets.load.* offsets.retention.* offsets.commit.* offsets.topic.compression.codec
Share groups are of KRaft; with ZooKeeper, and in the broker of kctl, it changes nothing.
    group.share.*
The broker of kctl has no transactions yet: there the value is kept and shown, and changes nothing.
    transaction.abort.* transaction.max.* transaction.partition.* transaction.remove.*
    transaction.state.log.load.buffer.size transactional.id.expiration.ms
The broker of kctl does not start with it where a listener has TLS.
    ssl.engine.factory.class ssl.provider
The broker of kctl has OpenSSL's: those of TLS 1.3 all or none, and others by the names of Java.
    ssl.cipher.suites
The broker of kctl has OpenSSL in place of Java's TLS: there the value changes nothing.
    ssl.protocol ssl.keymanager.algorithm ssl.trustmanager.algorithm
    ssl.secure.random.implementation
The broker of kctl has no Kerberos, and gets no tokens for itself: there the value changes nothing.
    sasl.kerberos.* sasl.login.* sasl.oauthbearer.token.*
    sasl.oauthbearer.jwks.endpoint.retry.* sasl.mechanism.controller.protocol
    security.providers zookeeper.ssl.* zookeeper.clientCnxnSocket
The broker of kctl has AES/CBC/PKCS5Padding, and does not start with another.
    password.encoder.cipher.algorithm
It is of KRaft; with ZooKeeper, and in the broker of kctl, it changes nothing.
    broker.heartbeat.interval.ms broker.session.timeout.ms controller.listener.names
    controller.quorum.* early.start.listeners eligible.leader.replicas.enable
    initial.broker.registration.timeout.ms log.dir.failure.timeout.ms metadata.*
    server.max.startup.time.ms unclean.leader.election.interval.ms telemetry.max.bytes
    unstable.feature.versions.enable
The broker of kctl has no remote tier: there the value changes nothing.
    remote.fetch.* remote.log.manager.* remote.log.metadata.* remote.log.reader.*
    remote.log.storage.* remote.log.index.* local.retention.* log.local.retention.*
The broker of kctl has no remote tier and refuses it.
    remote.storage.enable
The broker of kctl has none of Java's metrics: there the value is kept and shown only.
    auto.include.jmx.reporter kafka.metrics.* metric.reporters metrics.*
The broker of kctl takes the system's size where it is not set.
    socket.receive.buffer.bytes socket.send.buffer.bytes
The broker of kctl also closes what is beyond the descriptors that its process may have.
    max.connections
The broker of kctl keeps and shows the value, and does not go by it.
    control.plane.listener.name max.request.partition.size.limit queued.max.requests
    unstable.api.versions.enable zookeeper.max.in.flight.requests
    zookeeper.metadata.migration.min.batch.size
"""
