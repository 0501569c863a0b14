# ruff: noqa: E501 -- a row is a line
"""Keys of Apache Kafka 3.9.1, one row each; `key.py` describes the columns."""

from typing import Final

#: Keys of a producer in Java.
#: name, type, default, valid values, importance, whether internal
PRODUCER_ROWS: Final = """\
acks | string | all | [all, -1, 0, 1] | low
auto.include.jmx.reporter | boolean | true | - | low
batch.size | int | 16384 | [0,...] | medium
bootstrap.servers | list |  | - | high
buffer.memory | long | 33554432 | [0,...] | high
client.dns.lookup | string | use_all_dns_ips | [use_all_dns_ips, resolve_canonical_bootstrap_servers_only] | medium
client.id | string |  | - | medium
compression.gzip.level | int | -1 | [1,...,9] or -1 | medium
compression.lz4.level | int | 9 | [1,...,17] | medium
compression.type | string | none | [none, gzip, snappy, lz4, zstd] | high
compression.zstd.level | int | 3 | [-131072,...,22] | medium
connections.max.idle.ms | long | 540000 | - | medium
delivery.timeout.ms | int | 120000 | [0,...] | medium
enable.idempotence | boolean | true | - | low
enable.metrics.push | boolean | true | - | low
interceptor.classes | list |  | - | low
key.serializer | class | ! | - | high
linger.ms | long | 0 | [0,...] | medium
max.block.ms | long | 60000 | [0,...] | medium
max.in.flight.requests.per.connection | int | 5 | [1,...] | low
max.request.size | int | 1048576 | [0,...] | medium
metadata.max.age.ms | long | 300000 | [0,...] | low
metadata.max.idle.ms | long | 300000 | [5000,...] | low
metadata.recovery.strategy | string | none | any case [REBOOTSTRAP, NONE] | low
metric.reporters | list |  | - | low
metrics.num.samples | int | 2 | [1,...] | low
metrics.recording.level | string | INFO | [INFO, DEBUG, TRACE] | low
metrics.sample.window.ms | long | 30000 | [0,...] | low
partitioner.adaptive.partitioning.enable | boolean | true | - | low
partitioner.availability.timeout.ms | long | 0 | [0,...] | low
partitioner.class | class | null | - | medium
partitioner.ignore.keys | boolean | false | - | medium
receive.buffer.bytes | int | 32768 | [-1,...] | medium
reconnect.backoff.max.ms | long | 1000 | [0,...] | low
reconnect.backoff.ms | long | 50 | [0,...] | low
request.timeout.ms | int | 30000 | [0,...] | medium
retries | int | 2147483647 | [0,...,2147483647] | high
retry.backoff.max.ms | long | 1000 | [0,...] | low
retry.backoff.ms | long | 100 | [0,...] | low
sasl.client.callback.handler.class | class | null | - | medium
sasl.jaas.config | password | null | - | medium
sasl.kerberos.kinit.cmd | string | /usr/bin/kinit | - | low
sasl.kerberos.min.time.before.relogin | long | 60000 | - | low
sasl.kerberos.service.name | string | null | - | medium
sasl.kerberos.ticket.renew.jitter | double | 0.05 | - | low
sasl.kerberos.ticket.renew.window.factor | double | 0.8 | - | low
sasl.login.callback.handler.class | class | null | - | medium
sasl.login.class | class | null | - | medium
sasl.login.connect.timeout.ms | int | null | - | low
sasl.login.read.timeout.ms | int | null | - | low
sasl.login.refresh.buffer.seconds | short | 300 | [0,...,3600] | low
sasl.login.refresh.min.period.seconds | short | 60 | [0,...,900] | low
sasl.login.refresh.window.factor | double | 0.8 | [0.5,...,1.0] | low
sasl.login.refresh.window.jitter | double | 0.05 | [0.0,...,0.25] | low
sasl.login.retry.backoff.max.ms | long | 10000 | - | low
sasl.login.retry.backoff.ms | long | 100 | - | low
sasl.mechanism | string | GSSAPI | - | medium
sasl.oauthbearer.clock.skew.seconds | int | 30 | - | low
sasl.oauthbearer.expected.audience | list | null | - | low
sasl.oauthbearer.expected.issuer | string | null | - | low
sasl.oauthbearer.header.urlencode | boolean | false | - | low
sasl.oauthbearer.jwks.endpoint.refresh.ms | long | 3600000 | - | low
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms | long | 10000 | - | low
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms | long | 100 | - | low
sasl.oauthbearer.jwks.endpoint.url | string | null | - | medium
sasl.oauthbearer.scope.claim.name | string | scope | - | low
sasl.oauthbearer.sub.claim.name | string | sub | - | low
sasl.oauthbearer.token.endpoint.url | string | null | - | medium
security.protocol | string | PLAINTEXT | any case [SASL_SSL, PLAINTEXT, SSL, SASL_PLAINTEXT] | medium
security.providers | string | null | - | low
send.buffer.bytes | int | 131072 | [-1,...] | medium
socket.connection.setup.timeout.max.ms | long | 30000 | - | medium
socket.connection.setup.timeout.ms | long | 10000 | - | medium
ssl.cipher.suites | list | null | - | low
ssl.enabled.protocols | list | TLSv1.2,TLSv1.3 | - | medium
ssl.endpoint.identification.algorithm | string | https | - | low
ssl.engine.factory.class | class | null | - | low
ssl.key.password | password | null | - | high
ssl.keymanager.algorithm | string | SunX509 | - | low
ssl.keystore.certificate.chain | password | null | - | high
ssl.keystore.key | password | null | - | high
ssl.keystore.location | string | null | - | high
ssl.keystore.password | password | null | - | high
ssl.keystore.type | string | JKS | - | medium
ssl.protocol | string | TLSv1.3 | - | medium
ssl.provider | string | null | - | medium
ssl.secure.random.implementation | string | null | - | low
ssl.trustmanager.algorithm | string | PKIX | - | low
ssl.truststore.certificates | password | null | - | high
ssl.truststore.location | string | null | - | high
ssl.truststore.password | password | null | - | high
ssl.truststore.type | string | JKS | - | medium
transaction.timeout.ms | int | 60000 | - | low
transactional.id | string | null | non-empty string | low
value.serializer | class | ! | - | high
"""

#: Keys of a consumer in Java.
#: name, type, default, valid values, importance, whether internal
CONSUMER_ROWS: Final = """\
allow.auto.create.topics | boolean | true | - | medium
auto.commit.interval.ms | int | 5000 | [0,...] | low
auto.include.jmx.reporter | boolean | true | - | low
auto.offset.reset | string | latest | [latest, earliest, none] | medium
bootstrap.servers | list |  | - | high
check.crcs | boolean | true | - | low
client.dns.lookup | string | use_all_dns_ips | [use_all_dns_ips, resolve_canonical_bootstrap_servers_only] | medium
client.id | string |  | - | low
client.rack | string |  | - | low
connections.max.idle.ms | long | 540000 | - | medium
default.api.timeout.ms | int | 60000 | [0,...] | medium
enable.auto.commit | boolean | true | - | medium
enable.metrics.push | boolean | true | - | low
exclude.internal.topics | boolean | true | - | medium
fetch.max.bytes | int | 52428800 | [0,...] | medium
fetch.max.wait.ms | int | 500 | [0,...] | low
fetch.min.bytes | int | 1 | [0,...] | high
group.id | string | null | - | high
group.instance.id | string | null | non-empty string | medium
group.protocol | string | classic | any case [CONSUMER, CLASSIC] | high
group.remote.assignor | string | null | - | medium
heartbeat.interval.ms | int | 3000 | - | high
interceptor.classes | list |  | - | low
internal.leave.group.on.close | boolean | true | - | low | internal
internal.throw.on.fetch.stable.offset.unsupported | boolean | false | - | low | internal
isolation.level | string | read_uncommitted | [read_committed, read_uncommitted] | medium
key.deserializer | class | ! | - | high
max.partition.fetch.bytes | int | 1048576 | [0,...] | high
max.poll.interval.ms | int | 300000 | [1,...] | medium
max.poll.records | int | 500 | [1,...] | medium
metadata.max.age.ms | long | 300000 | [0,...] | low
metadata.recovery.strategy | string | none | any case [REBOOTSTRAP, NONE] | low
metric.reporters | list |  | - | low
metrics.num.samples | int | 2 | [1,...] | low
metrics.recording.level | string | INFO | [INFO, DEBUG, TRACE] | low
metrics.sample.window.ms | long | 30000 | [0,...] | low
partition.assignment.strategy | list | org.apache.kafka.clients.consumer.RangeAssignor,org.apache.kafka.clients.consumer.CooperativeStickyAssignor | - | medium
receive.buffer.bytes | int | 65536 | [-1,...] | medium
reconnect.backoff.max.ms | long | 1000 | [0,...] | low
reconnect.backoff.ms | long | 50 | [0,...] | low
request.timeout.ms | int | 30000 | [0,...] | medium
retry.backoff.max.ms | long | 1000 | [0,...] | low
retry.backoff.ms | long | 100 | [0,...] | low
sasl.client.callback.handler.class | class | null | - | medium
sasl.jaas.config | password | null | - | medium
sasl.kerberos.kinit.cmd | string | /usr/bin/kinit | - | low
sasl.kerberos.min.time.before.relogin | long | 60000 | - | low
sasl.kerberos.service.name | string | null | - | medium
sasl.kerberos.ticket.renew.jitter | double | 0.05 | - | low
sasl.kerberos.ticket.renew.window.factor | double | 0.8 | - | low
sasl.login.callback.handler.class | class | null | - | medium
sasl.login.class | class | null | - | medium
sasl.login.connect.timeout.ms | int | null | - | low
sasl.login.read.timeout.ms | int | null | - | low
sasl.login.refresh.buffer.seconds | short | 300 | [0,...,3600] | low
sasl.login.refresh.min.period.seconds | short | 60 | [0,...,900] | low
sasl.login.refresh.window.factor | double | 0.8 | [0.5,...,1.0] | low
sasl.login.refresh.window.jitter | double | 0.05 | [0.0,...,0.25] | low
sasl.login.retry.backoff.max.ms | long | 10000 | - | low
sasl.login.retry.backoff.ms | long | 100 | - | low
sasl.mechanism | string | GSSAPI | - | medium
sasl.oauthbearer.clock.skew.seconds | int | 30 | - | low
sasl.oauthbearer.expected.audience | list | null | - | low
sasl.oauthbearer.expected.issuer | string | null | - | low
sasl.oauthbearer.header.urlencode | boolean | false | - | low
sasl.oauthbearer.jwks.endpoint.refresh.ms | long | 3600000 | - | low
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms | long | 10000 | - | low
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms | long | 100 | - | low
sasl.oauthbearer.jwks.endpoint.url | string | null | - | medium
sasl.oauthbearer.scope.claim.name | string | scope | - | low
sasl.oauthbearer.sub.claim.name | string | sub | - | low
sasl.oauthbearer.token.endpoint.url | string | null | - | medium
security.protocol | string | PLAINTEXT | any case [SASL_SSL, PLAINTEXT, SSL, SASL_PLAINTEXT] | medium
security.providers | string | null | - | low
send.buffer.bytes | int | 131072 | [-1,...] | medium
session.timeout.ms | int | 45000 | - | high
socket.connection.setup.timeout.max.ms | long | 30000 | - | medium
socket.connection.setup.timeout.ms | long | 10000 | - | medium
ssl.cipher.suites | list | null | - | low
ssl.enabled.protocols | list | TLSv1.2,TLSv1.3 | - | medium
ssl.endpoint.identification.algorithm | string | https | - | low
ssl.engine.factory.class | class | null | - | low
ssl.key.password | password | null | - | high
ssl.keymanager.algorithm | string | SunX509 | - | low
ssl.keystore.certificate.chain | password | null | - | high
ssl.keystore.key | password | null | - | high
ssl.keystore.location | string | null | - | high
ssl.keystore.password | password | null | - | high
ssl.keystore.type | string | JKS | - | medium
ssl.protocol | string | TLSv1.3 | - | medium
ssl.provider | string | null | - | medium
ssl.secure.random.implementation | string | null | - | low
ssl.trustmanager.algorithm | string | PKIX | - | low
ssl.truststore.certificates | password | null | - | high
ssl.truststore.location | string | null | - | high
ssl.truststore.password | password | null | - | high
ssl.truststore.type | string | JKS | - | medium
value.deserializer | class | ! | - | high
"""

#: Keys of an admin client in Java.
#: name, type, default, valid values, importance, whether internal
ADMIN_ROWS: Final = """\
auto.include.jmx.reporter | boolean | true | - | low
bootstrap.controllers | list |  | - | high
bootstrap.servers | list |  | - | high
client.dns.lookup | string | use_all_dns_ips | [use_all_dns_ips, resolve_canonical_bootstrap_servers_only] | medium
client.id | string |  | - | medium
connections.max.idle.ms | long | 300000 | - | medium
default.api.timeout.ms | int | 60000 | [0,...] | medium
enable.metrics.push | boolean | true | - | low
metadata.max.age.ms | long | 300000 | [0,...] | low
metadata.recovery.strategy | string | none | any case [REBOOTSTRAP, NONE] | low
metric.reporters | list |  | - | low
metrics.num.samples | int | 2 | [1,...] | low
metrics.recording.level | string | INFO | [INFO, DEBUG, TRACE] | low
metrics.sample.window.ms | long | 30000 | [0,...] | low
receive.buffer.bytes | int | 65536 | [-1,...] | medium
reconnect.backoff.max.ms | long | 1000 | [0,...] | low
reconnect.backoff.ms | long | 50 | [0,...] | low
request.timeout.ms | int | 30000 | [0,...] | medium
retries | int | 2147483647 | [0,...,2147483647] | low
retry.backoff.max.ms | long | 1000 | [0,...] | low
retry.backoff.ms | long | 100 | [0,...] | low
sasl.client.callback.handler.class | class | null | - | medium
sasl.jaas.config | password | null | - | medium
sasl.kerberos.kinit.cmd | string | /usr/bin/kinit | - | low
sasl.kerberos.min.time.before.relogin | long | 60000 | - | low
sasl.kerberos.service.name | string | null | - | medium
sasl.kerberos.ticket.renew.jitter | double | 0.05 | - | low
sasl.kerberos.ticket.renew.window.factor | double | 0.8 | - | low
sasl.login.callback.handler.class | class | null | - | medium
sasl.login.class | class | null | - | medium
sasl.login.connect.timeout.ms | int | null | - | low
sasl.login.read.timeout.ms | int | null | - | low
sasl.login.refresh.buffer.seconds | short | 300 | [0,...,3600] | low
sasl.login.refresh.min.period.seconds | short | 60 | [0,...,900] | low
sasl.login.refresh.window.factor | double | 0.8 | [0.5,...,1.0] | low
sasl.login.refresh.window.jitter | double | 0.05 | [0.0,...,0.25] | low
sasl.login.retry.backoff.max.ms | long | 10000 | - | low
sasl.login.retry.backoff.ms | long | 100 | - | low
sasl.mechanism | string | GSSAPI | - | medium
sasl.oauthbearer.clock.skew.seconds | int | 30 | - | low
sasl.oauthbearer.expected.audience | list | null | - | low
sasl.oauthbearer.expected.issuer | string | null | - | low
sasl.oauthbearer.header.urlencode | boolean | false | - | low
sasl.oauthbearer.jwks.endpoint.refresh.ms | long | 3600000 | - | low
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms | long | 10000 | - | low
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms | long | 100 | - | low
sasl.oauthbearer.jwks.endpoint.url | string | null | - | medium
sasl.oauthbearer.scope.claim.name | string | scope | - | low
sasl.oauthbearer.sub.claim.name | string | sub | - | low
sasl.oauthbearer.token.endpoint.url | string | null | - | medium
security.protocol | string | PLAINTEXT | any case [SASL_SSL, PLAINTEXT, SSL, SASL_PLAINTEXT] | medium
security.providers | string | null | - | low
send.buffer.bytes | int | 131072 | [-1,...] | medium
socket.connection.setup.timeout.max.ms | long | 30000 | - | medium
socket.connection.setup.timeout.ms | long | 10000 | - | medium
ssl.cipher.suites | list | null | - | low
ssl.enabled.protocols | list | TLSv1.2,TLSv1.3 | - | medium
ssl.endpoint.identification.algorithm | string | https | - | low
ssl.engine.factory.class | class | null | - | low
ssl.key.password | password | null | - | high
ssl.keymanager.algorithm | string | SunX509 | - | low
ssl.keystore.certificate.chain | password | null | - | high
ssl.keystore.key | password | null | - | high
ssl.keystore.location | string | null | - | high
ssl.keystore.password | password | null | - | high
ssl.keystore.type | string | JKS | - | medium
ssl.protocol | string | TLSv1.3 | - | medium
ssl.provider | string | null | - | medium
ssl.secure.random.implementation | string | null | - | low
ssl.trustmanager.algorithm | string | PKIX | - | low
ssl.truststore.certificates | password | null | - | high
ssl.truststore.location | string | null | - | high
ssl.truststore.password | password | null | - | high
ssl.truststore.type | string | JKS | - | medium
"""
