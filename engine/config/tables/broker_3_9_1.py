# ruff: noqa: E501 -- a row is a line
"""Keys of Apache Kafka 3.9.1, one row each; `key.py` describes the columns."""

from typing import Final

#: Keys of a broker.
#: name, type, default, valid values, importance, update mode, whether internal
BROKER_ROWS: Final = """\
advertised.listeners | string | null | - | high | per-broker
alter.config.policy.class.name | class | null | - | low | read-only
alter.log.dirs.replication.quota.window.num | int | 11 | [1,...] | low | read-only
alter.log.dirs.replication.quota.window.size.seconds | int | 1 | [1,...] | low | read-only
authorizer.class.name | string |  | - | low | read-only
auto.create.topics.enable | boolean | true | - | high | read-only
auto.include.jmx.reporter | boolean | true | - | low | read-only
auto.leader.rebalance.enable | boolean | true | - | high | read-only
background.threads | int | 10 | [1,...] | high | cluster-wide
broker.heartbeat.interval.ms | int | 2000 | - | medium | read-only
broker.id | int | -1 | - | high | read-only
broker.id.generation.enable | boolean | true | - | medium | read-only
broker.rack | string | null | - | medium | read-only
broker.session.timeout.ms | int | 9000 | - | medium | read-only
client.quota.callback.class | class | null | - | low | read-only
compression.gzip.level | int | -1 | [1,...,9] or -1 | medium | cluster-wide
compression.lz4.level | int | 9 | [1,...,17] | medium | cluster-wide
compression.type | string | producer | [uncompressed, zstd, lz4, snappy, gzip, producer] | high | cluster-wide
compression.zstd.level | int | 3 | [-131072,...,22] | medium | cluster-wide
connection.failed.authentication.delay.ms | int | 100 | [0,...] | low | read-only
connections.max.idle.ms | long | 600000 | - | medium | read-only
connections.max.reauth.ms | long | 0 | - | medium | read-only
control.plane.listener.name | string | null | - | high | read-only
controlled.shutdown.enable | boolean | true | - | medium | read-only
controlled.shutdown.max.retries | int | 3 | - | medium | read-only
controlled.shutdown.retry.backoff.ms | long | 5000 | - | medium | read-only
controller.listener.names | string | null | - | high | read-only
controller.quorum.append.linger.ms | int | 25 | - | medium | read-only
controller.quorum.bootstrap.servers | list |  | - | high | read-only
controller.quorum.election.backoff.max.ms | int | 1000 | - | high | read-only
controller.quorum.election.timeout.ms | int | 1000 | - | high | read-only
controller.quorum.fetch.timeout.ms | int | 2000 | - | high | read-only
controller.quorum.request.timeout.ms | int | 2000 | - | medium | read-only
controller.quorum.retry.backoff.ms | int | 20 | - | low | read-only
controller.quorum.voters | list |  | - | high | read-only
controller.quota.window.num | int | 11 | [1,...] | low | read-only
controller.quota.window.size.seconds | int | 1 | [1,...] | low | read-only
controller.socket.timeout.ms | int | 30000 | - | medium | read-only
create.topic.policy.class.name | class | null | - | low | read-only
default.replication.factor | int | 1 | - | medium | read-only
delegation.token.expiry.check.interval.ms | long | 3600000 | [1,...] | low | read-only
delegation.token.expiry.time.ms | long | 86400000 | [1,...] | medium | read-only
delegation.token.master.key | password | null | - | medium | read-only
delegation.token.max.lifetime.ms | long | 604800000 | [1,...] | medium | read-only
delegation.token.secret.key | password | null | - | medium | read-only
delete.records.purgatory.purge.interval.requests | int | 1 | - | medium | read-only
delete.topic.enable | boolean | true | - | high | read-only
early.start.listeners | string | null | - | high | read-only
eligible.leader.replicas.enable | boolean | false | - | high | read-only
fetch.max.bytes | int | 57671680 | [1024,...] | medium | read-only
fetch.purgatory.purge.interval.requests | int | 1000 | - | medium | read-only
follower.replication.throttled.rate | long | 9223372036854775807 | [0,...] | medium | dynamic-only
group.consumer.assignors | list | org.apache.kafka.coordinator.group.assignor.UniformAssignor,org.apache.kafka.coordinator.group.assignor.RangeAssignor | - | medium | read-only
group.consumer.heartbeat.interval.ms | int | 5000 | [1,...] | medium | read-only
group.consumer.max.heartbeat.interval.ms | int | 15000 | [1,...] | medium | read-only
group.consumer.max.session.timeout.ms | int | 60000 | [1,...] | medium | read-only
group.consumer.max.size | int | 2147483647 | [1,...] | medium | read-only
group.consumer.migration.policy | string | disabled | any case [DISABLED, DOWNGRADE, UPGRADE, BIDIRECTIONAL] | medium | read-only | internal
group.consumer.min.heartbeat.interval.ms | int | 5000 | [1,...] | medium | read-only
group.consumer.min.session.timeout.ms | int | 45000 | [1,...] | medium | read-only
group.consumer.session.timeout.ms | int | 45000 | [1,...] | medium | read-only
group.coordinator.append.linger.ms | int | 10 | [0,...] | medium | read-only
group.coordinator.new.enable | boolean | false | - | medium | read-only | internal
group.coordinator.rebalance.protocols | list | classic | [consumer, classic, share, unknown] | medium | read-only
group.coordinator.threads | int | 1 | [1,...] | medium | read-only
group.initial.rebalance.delay.ms | int | 3000 | - | medium | read-only
group.max.session.timeout.ms | int | 1800000 | - | medium | read-only
group.max.size | int | 2147483647 | [1,...] | medium | read-only
group.min.session.timeout.ms | int | 6000 | - | medium | read-only
group.share.delivery.count.limit | int | 5 | [2,...,10] | medium | read-only
group.share.enable | boolean | false | - | medium | read-only | internal
group.share.heartbeat.interval.ms | int | 5000 | [1,...] | medium | read-only
group.share.max.groups | short | 10 | [1,...,100] | medium | read-only
group.share.max.heartbeat.interval.ms | int | 15000 | [1,...] | medium | read-only
group.share.max.record.lock.duration.ms | int | 60000 | [30000,...,3600000] | medium | read-only
group.share.max.session.timeout.ms | int | 60000 | [1,...] | medium | read-only
group.share.max.size | short | 200 | [10,...,1000] | medium | read-only
group.share.min.heartbeat.interval.ms | int | 5000 | [1,...] | medium | read-only
group.share.min.record.lock.duration.ms | int | 15000 | [1000,...,30000] | medium | read-only
group.share.min.session.timeout.ms | int | 45000 | [1,...] | medium | read-only
group.share.partition.max.record.locks | int | 200 | [100,...,10000] | medium | read-only
group.share.record.lock.duration.ms | int | 30000 | [1000,...,60000] | medium | read-only
group.share.session.timeout.ms | int | 45000 | [1,...] | medium | read-only
initial.broker.registration.timeout.ms | int | 60000 | - | medium | read-only
inter.broker.listener.name | string | null | - | medium | read-only
inter.broker.protocol.version | string | 3.9-IV0 | release | medium | read-only
kafka.metrics.polling.interval.secs | int | 10 | [1,...] | low | read-only
kafka.metrics.reporters | list |  | - | low | read-only
leader.imbalance.check.interval.seconds | long | 300 | [1,...] | high | read-only
leader.imbalance.per.broker.percentage | int | 10 | - | high | read-only
leader.replication.throttled.rate | long | 9223372036854775807 | [0,...] | medium | dynamic-only
listener.security.protocol.map | string | SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT | - | low | per-broker
listeners | string | PLAINTEXT://:9092 | - | high | per-broker
log.cleaner.backoff.ms | long | 15000 | [0,...] | medium | cluster-wide
log.cleaner.dedupe.buffer.size | long | 134217728 | - | medium | cluster-wide
log.cleaner.delete.retention.ms | long | 86400000 | [0,...] | medium | cluster-wide
log.cleaner.enable | boolean | true | - | medium | read-only
log.cleaner.io.buffer.load.factor | double | 0.9 | - | medium | cluster-wide
log.cleaner.io.buffer.size | int | 524288 | [0,...] | medium | cluster-wide
log.cleaner.io.max.bytes.per.second | double | 1.7976931348623157E308 | - | medium | cluster-wide
log.cleaner.max.compaction.lag.ms | long | 9223372036854775807 | [1,...] | medium | cluster-wide
log.cleaner.min.cleanable.ratio | double | 0.5 | [0,...,1] | medium | cluster-wide
log.cleaner.min.compaction.lag.ms | long | 0 | [0,...] | medium | cluster-wide
log.cleaner.threads | int | 1 | [0,...] | medium | cluster-wide
log.cleanup.policy | list | delete | [compact, delete] | medium | cluster-wide
log.dir | string | /tmp/kafka-logs | - | high | read-only
log.dir.failure.timeout.ms | long | 30000 | [1,...] | low | read-only
log.dirs | string | null | - | high | read-only
log.flush.interval.messages | long | 9223372036854775807 | [1,...] | high | cluster-wide
log.flush.interval.ms | long | null | - | high | cluster-wide
log.flush.offset.checkpoint.interval.ms | int | 60000 | [0,...] | high | read-only
log.flush.scheduler.interval.ms | long | 9223372036854775807 | - | high | read-only
log.flush.start.offset.checkpoint.interval.ms | int | 60000 | [0,...] | high | read-only
log.index.interval.bytes | int | 4096 | [0,...] | medium | cluster-wide
log.index.size.max.bytes | int | 10485760 | [4,...] | medium | cluster-wide
log.initial.task.delay.ms | long | 30000 | [0,...] | low | read-only | internal
log.local.retention.bytes | long | -2 | [-2,...] | medium | cluster-wide
log.local.retention.ms | long | -2 | [-2,...] | medium | cluster-wide
log.message.downconversion.enable | boolean | true | - | low | cluster-wide
log.message.format.version | string | 3.0-IV1 | release | medium | read-only
log.message.timestamp.after.max.ms | long | 9223372036854775807 | [0,...] | medium | cluster-wide
log.message.timestamp.before.max.ms | long | 9223372036854775807 | [0,...] | medium | cluster-wide
log.message.timestamp.difference.max.ms | long | 9223372036854775807 | [0,...] | medium | cluster-wide
log.message.timestamp.type | string | CreateTime | [CreateTime, LogAppendTime] | medium | cluster-wide
log.preallocate | boolean | false | - | medium | cluster-wide
log.retention.bytes | long | -1 | - | high | cluster-wide
log.retention.check.interval.ms | long | 300000 | [1,...] | medium | read-only
log.retention.hours | int | 168 | - | high | read-only
log.retention.minutes | int | null | - | high | read-only
log.retention.ms | long | null | - | high | cluster-wide
log.roll.hours | int | 168 | [1,...] | high | read-only
log.roll.jitter.hours | int | 0 | [0,...] | high | read-only
log.roll.jitter.ms | long | null | - | high | cluster-wide
log.roll.ms | long | null | - | high | cluster-wide
log.segment.bytes | int | 1073741824 | [14,...] | high | cluster-wide
log.segment.delete.delay.ms | long | 60000 | [0,...] | high | cluster-wide
max.connection.creation.rate | int | 2147483647 | [0,...] | medium | cluster-wide
max.connections | int | 2147483647 | [0,...] | medium | cluster-wide
max.connections.per.ip | int | 2147483647 | [0,...] | medium | cluster-wide
max.connections.per.ip.overrides | string |  | - | medium | cluster-wide
max.incremental.fetch.session.cache.slots | int | 1000 | [0,...] | medium | read-only
max.request.partition.size.limit | int | 2000 | [1,...] | medium | read-only
message.max.bytes | int | 1048588 | [0,...] | high | cluster-wide
metadata.log.dir | string | null | - | high | read-only
metadata.log.max.record.bytes.between.snapshots | long | 20971520 | [1,...] | high | read-only
metadata.log.max.snapshot.interval.ms | long | 3600000 | [0,...] | high | read-only
metadata.log.segment.bytes | int | 1073741824 | [12,...] | high | read-only
metadata.log.segment.min.bytes | int | 8388608 | [12,...] | high | read-only | internal
metadata.log.segment.ms | long | 604800000 | - | high | read-only
metadata.max.idle.interval.ms | int | 500 | [0,...] | low | read-only
metadata.max.retention.bytes | long | 104857600 | - | high | read-only
metadata.max.retention.ms | long | 604800000 | - | high | read-only
metric.reporters | list |  | - | low | cluster-wide
metrics.num.samples | int | 2 | [1,...] | low | read-only
metrics.recording.level | string | INFO | - | low | read-only
metrics.sample.window.ms | long | 30000 | [1,...] | low | read-only
min.insync.replicas | int | 1 | [1,...] | high | cluster-wide
node.id | int | -1 | - | high | read-only
num.io.threads | int | 8 | [1,...] | high | cluster-wide
num.network.threads | int | 3 | [1,...] | high | cluster-wide
num.partitions | int | 1 | [1,...] | medium | read-only
num.recovery.threads.per.data.dir | int | 1 | [1,...] | high | cluster-wide
num.replica.alter.log.dirs.threads | int | null | - | high | read-only
num.replica.fetchers | int | 1 | - | high | cluster-wide
offset.metadata.max.bytes | int | 4096 | - | high | read-only
offsets.commit.required.acks | short | -1 | - | high | read-only
offsets.commit.timeout.ms | int | 5000 | [1,...] | high | read-only
offsets.load.buffer.size | int | 5242880 | [1,...] | high | read-only
offsets.retention.check.interval.ms | long | 600000 | [1,...] | high | read-only
offsets.retention.minutes | int | 10080 | [1,...] | high | read-only
offsets.topic.compression.codec | int | 0 | - | high | read-only
offsets.topic.num.partitions | int | 50 | [1,...] | high | read-only
offsets.topic.replication.factor | short | 3 | [1,...] | high | read-only
offsets.topic.segment.bytes | int | 104857600 | [1,...] | high | read-only
password.encoder.cipher.algorithm | string | AES/CBC/PKCS5Padding | - | low | read-only
password.encoder.iterations | int | 4096 | [1024,...] | low | read-only
password.encoder.key.length | int | 128 | [8,...] | low | read-only
password.encoder.keyfactory.algorithm | string | null | - | low | read-only
password.encoder.old.secret | password | null | - | medium | read-only
password.encoder.secret | password | null | - | medium | read-only
principal.builder.class | class | org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder | - | medium | per-broker
process.roles | list |  | [broker, controller] | high | read-only
producer.id.expiration.check.interval.ms | int | 600000 | [1,...] | low | read-only | internal
producer.id.expiration.ms | int | 86400000 | [1,...] | low | cluster-wide
producer.purgatory.purge.interval.requests | int | 1000 | - | medium | read-only
queued.max.request.bytes | long | -1 | - | medium | read-only
queued.max.requests | int | 500 | [1,...] | high | read-only
quota.window.num | int | 11 | [1,...] | low | read-only
quota.window.size.seconds | int | 1 | [1,...] | low | read-only
remote.fetch.max.wait.ms | int | 500 | [1,...] | medium | cluster-wide
remote.log.index.file.cache.total.size.bytes | long | 1073741824 | [1,...] | low | cluster-wide
remote.log.manager.copier.thread.pool.size | int | -1 | - | medium | read-only
remote.log.manager.copy.max.bytes.per.second | long | 9223372036854775807 | [1,...] | medium | cluster-wide
remote.log.manager.copy.quota.window.num | int | 11 | [1,...] | medium | read-only
remote.log.manager.copy.quota.window.size.seconds | int | 1 | [1,...] | medium | read-only
remote.log.manager.expiration.thread.pool.size | int | -1 | - | medium | read-only
remote.log.manager.fetch.max.bytes.per.second | long | 9223372036854775807 | [1,...] | medium | cluster-wide
remote.log.manager.fetch.quota.window.num | int | 11 | [1,...] | medium | read-only
remote.log.manager.fetch.quota.window.size.seconds | int | 1 | [1,...] | medium | read-only
remote.log.manager.task.interval.ms | long | 30000 | [1,...] | low | read-only
remote.log.manager.task.retry.backoff.max.ms | long | 30000 | [1,...] | low | read-only | internal
remote.log.manager.task.retry.backoff.ms | long | 500 | [1,...] | low | read-only | internal
remote.log.manager.task.retry.jitter | double | 0.2 | [0,...,0.5] | low | read-only | internal
remote.log.manager.thread.pool.size | int | 10 | [1,...] | medium | read-only
remote.log.metadata.custom.metadata.max.bytes | int | 128 | [0,...] | low | read-only
remote.log.metadata.manager.class.name | string | org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager | non-empty string | medium | read-only
remote.log.metadata.manager.class.path | string | null | - | medium | read-only
remote.log.metadata.manager.impl.prefix | string | rlmm.config. | non-empty string | medium | read-only
remote.log.metadata.manager.listener.name | string | null | non-empty string | medium | read-only
remote.log.reader.max.pending.tasks | int | 100 | [1,...] | medium | read-only
remote.log.reader.threads | int | 10 | [1,...] | medium | read-only
remote.log.storage.manager.class.name | string | null | non-empty string | medium | read-only
remote.log.storage.manager.class.path | string | null | - | medium | read-only
remote.log.storage.manager.impl.prefix | string | rsm.config. | non-empty string | medium | read-only
remote.log.storage.system.enable | boolean | false | - | medium | read-only
replica.alter.log.dirs.io.max.bytes.per.second | long | 9223372036854775807 | [0,...] | medium | dynamic-only
replica.fetch.backoff.ms | int | 1000 | [0,...] | medium | read-only
replica.fetch.max.bytes | int | 1048576 | [0,...] | medium | read-only
replica.fetch.min.bytes | int | 1 | - | high | read-only
replica.fetch.response.max.bytes | int | 10485760 | [0,...] | medium | read-only
replica.fetch.wait.max.ms | int | 500 | - | high | read-only
replica.high.watermark.checkpoint.interval.ms | long | 5000 | - | high | read-only
replica.lag.time.max.ms | long | 30000 | - | high | read-only
replica.selector.class | string | null | - | medium | read-only
replica.socket.receive.buffer.bytes | int | 65536 | - | high | read-only
replica.socket.timeout.ms | int | 30000 | - | high | read-only
replication.quota.window.num | int | 11 | [1,...] | low | read-only
replication.quota.window.size.seconds | int | 1 | [1,...] | low | read-only
request.timeout.ms | int | 30000 | - | high | read-only
reserved.broker.max.id | int | 1000 | [0,...] | medium | read-only
sasl.client.callback.handler.class | class | null | - | medium | read-only
sasl.enabled.mechanisms | list | GSSAPI | - | medium | per-broker
sasl.jaas.config | password | null | - | medium | per-broker
sasl.kerberos.kinit.cmd | string | /usr/bin/kinit | - | medium | per-broker
sasl.kerberos.min.time.before.relogin | long | 60000 | - | medium | per-broker
sasl.kerberos.principal.to.local.rules | list | DEFAULT | - | medium | per-broker
sasl.kerberos.service.name | string | null | - | medium | per-broker
sasl.kerberos.ticket.renew.jitter | double | 0.05 | - | medium | per-broker
sasl.kerberos.ticket.renew.window.factor | double | 0.8 | - | medium | per-broker
sasl.login.callback.handler.class | class | null | - | medium | read-only
sasl.login.class | class | null | - | medium | read-only
sasl.login.connect.timeout.ms | int | null | - | low | read-only
sasl.login.read.timeout.ms | int | null | - | low | read-only
sasl.login.refresh.buffer.seconds | short | 300 | - | medium | per-broker
sasl.login.refresh.min.period.seconds | short | 60 | - | medium | per-broker
sasl.login.refresh.window.factor | double | 0.8 | - | medium | per-broker
sasl.login.refresh.window.jitter | double | 0.05 | - | medium | per-broker
sasl.login.retry.backoff.max.ms | long | 10000 | - | low | read-only
sasl.login.retry.backoff.ms | long | 100 | - | low | read-only
sasl.mechanism.controller.protocol | string | GSSAPI | - | high | read-only
sasl.mechanism.inter.broker.protocol | string | GSSAPI | - | medium | per-broker
sasl.oauthbearer.clock.skew.seconds | int | 30 | - | low | read-only
sasl.oauthbearer.expected.audience | list | null | - | low | read-only
sasl.oauthbearer.expected.issuer | string | null | - | low | read-only
sasl.oauthbearer.jwks.endpoint.refresh.ms | long | 3600000 | - | low | read-only
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms | long | 10000 | - | low | read-only
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms | long | 100 | - | low | read-only
sasl.oauthbearer.jwks.endpoint.url | string | null | - | medium | read-only
sasl.oauthbearer.scope.claim.name | string | scope | - | low | read-only
sasl.oauthbearer.sub.claim.name | string | sub | - | low | read-only
sasl.oauthbearer.token.endpoint.url | string | null | - | medium | read-only
sasl.server.callback.handler.class | class | null | - | medium | read-only
sasl.server.max.receive.size | int | 524288 | - | medium | read-only
security.inter.broker.protocol | string | PLAINTEXT | [PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL] | medium | read-only
security.providers | string | null | - | low | read-only
server.max.startup.time.ms | long | 9223372036854775807 | [0,...] | medium | read-only | internal
socket.connection.setup.timeout.max.ms | long | 30000 | - | medium | read-only
socket.connection.setup.timeout.ms | long | 10000 | - | medium | read-only
socket.listen.backlog.size | int | 50 | [1,...] | medium | read-only
socket.receive.buffer.bytes | int | 102400 | - | high | read-only
socket.request.max.bytes | int | 104857600 | [1,...] | high | read-only
socket.send.buffer.bytes | int | 102400 | - | high | read-only
ssl.allow.dn.changes | boolean | false | - | low | read-only
ssl.allow.san.changes | boolean | false | - | low | read-only
ssl.cipher.suites | list |  | - | medium | per-broker
ssl.client.auth | string | none | [required, requested, none] | medium | per-broker
ssl.enabled.protocols | list | TLSv1.2,TLSv1.3 | - | medium | per-broker
ssl.endpoint.identification.algorithm | string | https | - | low | per-broker
ssl.engine.factory.class | class | null | - | low | per-broker
ssl.key.password | password | null | - | medium | per-broker
ssl.keymanager.algorithm | string | SunX509 | - | medium | per-broker
ssl.keystore.certificate.chain | password | null | - | medium | per-broker
ssl.keystore.key | password | null | - | medium | per-broker
ssl.keystore.location | string | null | - | medium | per-broker
ssl.keystore.password | password | null | - | medium | per-broker
ssl.keystore.type | string | JKS | - | medium | per-broker
ssl.principal.mapping.rules | string | DEFAULT | - | low | read-only
ssl.protocol | string | TLSv1.3 | - | medium | per-broker
ssl.provider | string | null | - | medium | per-broker
ssl.secure.random.implementation | string | null | - | low | per-broker
ssl.trustmanager.algorithm | string | PKIX | - | medium | per-broker
ssl.truststore.certificates | password | null | - | medium | per-broker
ssl.truststore.location | string | null | - | medium | per-broker
ssl.truststore.password | password | null | - | medium | per-broker
ssl.truststore.type | string | JKS | - | medium | per-broker
telemetry.max.bytes | int | 1048576 | [1,...] | low | read-only
transaction.abort.timed.out.transaction.cleanup.interval.ms | int | 10000 | [1,...] | low | read-only
transaction.max.timeout.ms | int | 900000 | [1,...] | high | read-only
transaction.partition.verification.enable | boolean | true | - | low | cluster-wide
transaction.remove.expired.transaction.cleanup.interval.ms | int | 3600000 | [1,...] | low | read-only
transaction.state.log.load.buffer.size | int | 5242880 | [1,...] | high | read-only
transaction.state.log.min.isr | int | 2 | [1,...] | high | read-only
transaction.state.log.num.partitions | int | 50 | [1,...] | high | read-only
transaction.state.log.replication.factor | short | 3 | [1,...] | high | read-only
transaction.state.log.segment.bytes | int | 104857600 | [1,...] | high | read-only
transactional.id.expiration.ms | int | 604800000 | [1,...] | high | read-only
unclean.leader.election.enable | boolean | false | - | high | cluster-wide
unclean.leader.election.interval.ms | long | 300000 | [1,...] | medium | read-only | internal
unstable.api.versions.enable | boolean | false | - | high | read-only | internal
unstable.feature.versions.enable | boolean | false | - | high | read-only | internal
zookeeper.clientCnxnSocket | string | null | - | medium | read-only
zookeeper.connect | string | null | - | high | read-only
zookeeper.connection.timeout.ms | int | null | - | high | read-only
zookeeper.max.in.flight.requests | int | 10 | [1,...] | high | read-only
zookeeper.metadata.migration.enable | boolean | false | - | high | read-only
zookeeper.metadata.migration.min.batch.size | int | 200 | [1,...] | medium | read-only | internal
zookeeper.session.timeout.ms | int | 18000 | - | high | read-only
zookeeper.set.acl | boolean | false | - | high | read-only
zookeeper.ssl.cipher.suites | list | null | - | low | read-only
zookeeper.ssl.client.enable | boolean | false | - | medium | read-only
zookeeper.ssl.crl.enable | boolean | false | - | low | read-only
zookeeper.ssl.enabled.protocols | list | null | - | low | read-only
zookeeper.ssl.endpoint.identification.algorithm | string | HTTPS | - | low | read-only
zookeeper.ssl.keystore.location | string | null | - | medium | read-only
zookeeper.ssl.keystore.password | password | null | - | medium | read-only
zookeeper.ssl.keystore.type | string | null | - | medium | read-only
zookeeper.ssl.ocsp.enable | boolean | false | - | low | read-only
zookeeper.ssl.protocol | string | TLSv1.2 | - | low | read-only
zookeeper.ssl.truststore.location | string | null | - | medium | read-only
zookeeper.ssl.truststore.password | password | null | - | medium | read-only
zookeeper.ssl.truststore.type | string | null | - | medium | read-only
"""
