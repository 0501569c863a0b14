# ruff: noqa: E501 -- a row is a line
"""Keys of Apache Kafka 3.9.1, one row each; `key.py` describes the columns."""

from typing import Final

#: Keys of a topic.
#: name, type, default, valid values, importance, keys of the broker that set the default
TOPIC_ROWS: Final = """\
cleanup.policy | list | delete | [compact, delete] | medium | log.cleanup.policy
compression.gzip.level | int | -1 | [1,...,9] or -1 | medium | compression.gzip.level
compression.lz4.level | int | 9 | [1,...,17] | medium | compression.lz4.level
compression.type | string | producer | [uncompressed, zstd, lz4, snappy, gzip, producer] | medium | compression.type
compression.zstd.level | int | 3 | [-131072,...,22] | medium | compression.zstd.level
delete.retention.ms | long | 86400000 | [0,...] | medium | log.cleaner.delete.retention.ms
file.delete.delay.ms | long | 60000 | [0,...] | medium | log.segment.delete.delay.ms
flush.messages | long | 9223372036854775807 | [1,...] | medium | log.flush.interval.messages
flush.ms | long | 9223372036854775807 | [0,...] | medium | log.flush.interval.ms, log.flush.scheduler.interval.ms
follower.replication.throttled.replicas | list |  | replicas | medium | -
index.interval.bytes | int | 4096 | [0,...] | medium | log.index.interval.bytes
leader.replication.throttled.replicas | list |  | replicas | medium | -
local.retention.bytes | long | -2 | [-2,...] | medium | log.local.retention.bytes
local.retention.ms | long | -2 | [-2,...] | medium | log.local.retention.ms
max.compaction.lag.ms | long | 9223372036854775807 | [1,...] | medium | log.cleaner.max.compaction.lag.ms
max.message.bytes | int | 1048588 | [0,...] | medium | message.max.bytes
message.downconversion.enable | boolean | true | - | low | log.message.downconversion.enable
message.format.version | string | 3.0-IV1 | release | medium | log.message.format.version
message.timestamp.after.max.ms | long | 9223372036854775807 | [0,...] | medium | log.message.timestamp.after.max.ms
message.timestamp.before.max.ms | long | 9223372036854775807 | [0,...] | medium | log.message.timestamp.before.max.ms
message.timestamp.difference.max.ms | long | 9223372036854775807 | [0,...] | medium | log.message.timestamp.difference.max.ms
message.timestamp.type | string | CreateTime | [CreateTime, LogAppendTime] | medium | log.message.timestamp.type
min.cleanable.dirty.ratio | double | 0.5 | [0,...,1] | medium | log.cleaner.min.cleanable.ratio
min.compaction.lag.ms | long | 0 | [0,...] | medium | log.cleaner.min.compaction.lag.ms
min.insync.replicas | int | 1 | [1,...] | medium | min.insync.replicas
preallocate | boolean | false | - | medium | log.preallocate
remote.log.copy.disable | boolean | false | - | medium | -
remote.log.delete.on.disable | boolean | false | - | medium | -
remote.storage.enable | boolean | false | - | medium | -
retention.bytes | long | -1 | - | medium | log.retention.bytes
retention.ms | long | 604800000 | [-1,...] | medium | log.retention.ms, log.retention.minutes, log.retention.hours
segment.bytes | int | 1073741824 | [14,...] | medium | log.segment.bytes
segment.index.bytes | int | 10485760 | [4,...] | medium | log.index.size.max.bytes
segment.jitter.ms | long | 0 | [0,...] | medium | log.roll.jitter.ms, log.roll.jitter.hours
segment.ms | long | 604800000 | [1,...] | medium | log.roll.ms, log.roll.hours
unclean.leader.election.enable | boolean | false | - | medium | unclean.leader.election.enable
"""

#: Quotas of users and clients.
#: name, type, default, valid values, importance
QUOTA_ROWS: Final = """\
consumer_byte_rate | long | 9223372036854775807 | - | medium
controller_mutation_rate | double | 2.147483647E9 | - | medium
producer_byte_rate | long | 9223372036854775807 | - | medium
request_percentage | double | 2.147483647E9 | - | medium
"""

#: Credentials of users.
#: as above
SCRAM_ROWS: Final = """\
SCRAM-SHA-256 | string | null | - | medium
SCRAM-SHA-512 | string | null | - | medium
"""

#: Quotas of addresses.
#: as above
IP_ROWS: Final = """\
connection_creation_rate | int | 2147483647 | [0,...] | medium
"""

#: Subscriptions to metrics of clients.
#: as above
CLIENT_METRICS_ROWS: Final = """\
interval.ms | int | 300000 | - | medium
match | list |  | - | medium
metrics | list |  | - | medium
"""
