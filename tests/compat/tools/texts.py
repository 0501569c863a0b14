"""Values of options by their kinds: first such as fit a stage, then odd ones."""

from __future__ import annotations

from typing import Final

_TOPICS: Final = ("orders", "pay.ments", "events_a", "events-b", "solo")
_NEW_TOPICS: Final = ("fresh", "fresh.b", "fresh_c", "fresh-d")
_GHOSTS: Final = ("ghost", "no.such_topic", "Orders")
_ODD_TOPICS: Final = (
    "",
    " ",
    ".",
    "..",
    "a b",
    "ünï",
    "x" * 250,
    "or,ders",
    "orders:0",
    "a/b",
    "*",
)
_REGEXES: Final = ("orders", "events.*", "event|orders", "o.*,solo", ".*", "events_[ab]", "[a-p].*")
_ODD_REGEXES: Final = (
    "",
    "[",
    "*",
    "(",
    "a{2",
    "ghost.*",
    "'orders'",
    '"solo"',
    "orders,,solo",
    " solo ",
)
_GROUPS: Final = ("readers", "other-readers", "billing")
_USERS: Final = ("alice", "bob", "CN=carol,O=Acme")
_NUMBERS: Final = ("0", "1", "2", "3", "5", "10")
_ODD_NUMBERS: Final = (
    "-1",
    "",
    " ",
    "x",
    "1.5",
    "+2",
    "007",
    "2147483647",
    "2147483648",
    "99999999999999999999",
    "1_0",
    "0x1",
    "-2147483649",
    "١",
    " 1",
    "1e3",
    "-",
)
_TOPIC_SETTINGS: Final = (
    "retention.ms=3600000",
    "cleanup.policy=compact",
    "cleanup.policy=compact,delete",
    "max.message.bytes=2000",
    "compression.type=lz4",
    "segment.ms=7200000",
    "min.insync.replicas=1",
    "retention.ms = 1000",
    "message.timestamp.type=LogAppendTime",
    "retention.bytes=-1",
    "unclean.leader.election.enable=TRUE",
    "min.cleanable.dirty.ratio=0.25",
)
_ODD_SETTINGS: Final = (
    "retention.ms",
    "retention.ms=",
    "=5",
    "",
    "retention.ms=x",
    "no.such=1",
    "retention.ms=1=2",
    "cleanup.policy=shred",
    "min.insync.replicas=0",
    "max.message.bytes=-5",
    "segment.bytes=1",
    "retention.ms=99999999999999999999",
    "compression.type=",
    "preallocate=maybe",
    "cleanup.policy=",
    "message.format.version=2.8",
    "a=b,c=d",
    "retention.ms=1,retention.ms=2",
    "min.cleanable.dirty.ratio=2",
    "compression.gzip.level=99",
    "leader.replication.throttled.replicas=0:1",
    "segment.index.bytes=3",
    "leader.replication.throttled.replicas=x",
    "message.timestamp.type=Never",
)
_LISTED: Final = (
    "retention.ms=3600000",
    "cleanup.policy=compact",
    "cleanup.policy=[compact,delete]",
    "retention.ms=1000,segment.ms=5000",
    "compression.type=zstd",
    " retention.ms = 7 ",
    "max.message.bytes=4000,compression.type=gzip,retention.bytes=100",
)
_KEYS: Final = (
    "retention.ms",
    "cleanup.policy",
    "segment.ms",
    "retention.ms,segment.ms",
    "retention.bytes",
)
_ODD_KEYS: Final = (
    "",
    ",",
    "no.such",
    "retention.ms,",
    "retention.ms,no.such,other",
    "retention.ms,retention.ms",
    " ",
)
_BROKER_LISTED: Final = (
    "log.cleaner.threads=2",
    "log.retention.ms=1000",
    "max.connections=100",
    "num.io.threads=5",
    "message.max.bytes=2000000",
    "leader.replication.throttled.rate=1000",
)
_ODD_BROKER_LISTED: Final = (
    "broker.id=4",
    "num.io.threads=0",
    "num.io.threads=x",
    "no.such=1",
    "log.dirs=/x",
    "",
    "num.io.threads=1000",
    "zookeeper.connect=x",
    "log.cleaner.threads=-1",
    "listeners=x",
    "ssl.keystore.password=x",
    "max.connections=",
)
_LOGGER_LISTED: Final = (
    "kafka.log=DEBUG",
    "kafka.controller=ERROR,kafka.log=WARN",
    "kafka.server.KafkaApis=INFO",
)
_ODD_LOGGER_LISTED: Final = (
    "kafka.log=LOUD",
    "no.such=DEBUG",
    "kafka.log=",
    "kafka.log=debug",
    "root=INFO",
    "ROOT=INFO",
)
_QUOTAS: Final = (
    "producer_byte_rate=1024",
    "consumer_byte_rate=2048",
    "request_percentage=50.5",
    "producer_byte_rate=1024,consumer_byte_rate=2048",
    "controller_mutation_rate=10",
    "producer_byte_rate=1e6",
)
_ODD_QUOTAS: Final = (
    "producer_byte_rate=x",
    "producer_byte_rate=-1",
    "producer_byte_rate=0",
    "no_such=1",
    "producer_byte_rate=",
    "producer_byte_rate",
    "SCRAM-SHA-256=[password=a],producer_byte_rate=5",
    "connection_creation_rate=5",
    "producer_byte_rate=NaN",
    "producer_byte_rate=1.5",
    "request_percentage=1e400",
    "producer_byte_rate=1d",
)
_SCRAMS: Final = (
    "SCRAM-SHA-256=[password=secret]",
    "SCRAM-SHA-512=[iterations=4096,password=secret]",
    "SCRAM-SHA-256=[iterations=8192,password=a=b]",
)
_ODD_SCRAMS: Final = (
    "SCRAM-SHA-256=[iterations=5,password=x]",
    "SCRAM-SHA-256=x",
    "SCRAM-SHA-256=[password=]",
    "SCRAM-SHA-1=[password=x]",
    "SCRAM-SHA-256=[iterations=x,password=y]",
    "SCRAM-SHA-256=[iterations=99999,password=y]",
)
_PRINCIPALS: Final = ("User:alice", "User:bob", "User:*", "User:CN=carol,O=Acme")
_ODD_PRINCIPALS: Final = ("alice", "", "User:", ":x", "user:alice", "Group:ops", "User:a:b", "User")
_OPERATIONS: Final = (
    "Read",
    "Write",
    "Describe",
    "All",
    "Create",
    "Alter",
    "DescribeConfigs",
    "Delete",
)
_ODD_OPERATIONS: Final = (
    "read",
    "WRITE",
    "Any",
    "Unknown",
    "Fly",
    "",
    "describe_configs",
    "IdempotentWrite",
    "ClusterAction",
    "CreateTokens",
    "DescribeTokens",
    "AlterConfigs",
)
_HOSTS: Final = ("*", "127.0.0.1", "10.0.0.1", "host.example")
_PATTERNS: Final = ("literal", "prefixed", "LITERAL", "any", "match", "Prefixed")
_ODD_PATTERNS: Final = ("unknown", "", "regex", "ANY ")
_TIMES: Final = ("-1", "-2", "latest", "earliest", "max-timestamp", "0", "1700000000000")
_ODD_TIMES: Final = (
    "-3",
    "-4",
    "-5",
    "LATEST",
    "",
    "x",
    "-6",
    "99999999999999",
    "earliest-local",
    "latest-tiered",
)
_PARTITION_LISTS: Final = ("0", "0,1", "1", "2,0", "0,1,2")
_ODD_PARTITION_LISTS: Final = ("", ",", "x", "9", "0,,1", " 0", "-1", "0,0", "0,x", "99999999999")
_TOPIC_PARTITIONS: Final = (
    "orders:0",
    "orders",
    "events.*:0-2",
    "orders:1-",
    "orders:-2",
    ":0",
    "solo,orders:1",
)
_ODD_TOPIC_PARTITIONS: Final = (
    "orders:",
    "",
    ",",
    "orders:x",
    "orders:2-1",
    "orders:0-0",
    "ghost:0",
    "orders:9",
    ":",
    "[:0",
)
_BROKER_LISTS: Final = ("1", "1,1", "0", "1,2", "0,1")
_ODD_BROKER_LISTS: Final = ("", ",", "x", "1,", "-1", " 1", "1,,2", "99999999999", "1, 2", "7")
_DATETIMES: Final = (
    "2026-01-31T12:00:00.000",
    "2020-01-01T00:00:00.000Z",
    "2020-01-01T00:00:00.000+05:00",
    "2099-01-01T00:00:00.000",
)
_ODD_DATETIMES: Final = (
    "",
    "2026",
    "2026-01-31",
    "yesterday",
    "2026-01-31T12:00:00",
    "2026-13-01T00:00:00.000",
    "2020-01-01T00:00:00.000+0500",
    "1700000000000",
)
_DURATIONS: Final = ("PT1H", "P1D", "PT0S", "P1DT2H3M4S", "P9999D")
_ODD_DURATIONS: Final = ("", "1h", "P", "PT", "-PT1H", "P1Y", "PT1.5S", "p1d", "PT-1H", "P1W")
_GROUP_TOPICS: Final = ("orders", "orders:0", "events-b:0,1", "solo", "orders:1,0")
_ODD_GROUP_TOPICS: Final = (
    "ghost",
    "orders:",
    "orders:x",
    "orders:9",
    "",
    ":0",
    "a:b:c",
    "orders:0,,1",
    "ghost:0",
    "orders:0,0",
    "a b",
)
_STATES: Final = ("Empty", "Stable", "empty", "Empty,Stable", "Dead", "PreparingRebalance")
_ODD_STATES: Final = ("", "Sleeping", ",", "Empty,,Dead", "Unknown", " Empty ", "Empty,Sleeping")
_TYPES: Final = ("classic", "consumer", "Classic", "classic,consumer")
_ODD_TYPES: Final = ("", "share", "x", "unknown", ",")
_ASSIGNMENTS: Final = ("1", "1,1", "1,1,1")
_ODD_ASSIGNMENTS: Final = (
    "",
    ",",
    "1:1",
    "1:2",
    "x",
    "7",
    "1,,1",
    "1:",
    ":1",
    "-1",
    "1, 1",
    "1,1:2",
    "1;1",
)
_ELECTION_TYPES: Final = ("preferred", "unclean")
_ODD_ELECTION_TYPES: Final = ("PREFERRED", "Unclean", "", "x", "pref")
_PROPERTIES: Final = (
    "print.key=true",
    "print.timestamp=false",
    "print.offset=true",
    "print.partition=true",
    "key.separator=|",
    "print.value=false",
    "print.headers=true",
    "null.literal=NULL",
    "headers.separator=;",
    "line.separator=#",
    "print.offset=TRUE",
)
_ODD_PROPERTIES: Final = (
    "print.key",
    "=x",
    "print.key=maybe",
    "",
    "no.such=1",
    "key.separator=",
    "print.key=true=false",
    "print.epoch=true",
)
_READER_PROPERTIES: Final = (
    "parse.key=true",
    "key.separator=:",
    "parse.headers=true",
    "ignore.error=true",
    "null.marker=NULL",
    "parse.key=TRUE",
)
_ODD_READER_PROPERTIES: Final = (
    "parse.key",
    "key.separator=",
    "=",
    "no.such=1",
    "headers.separator=,",
    "headers.delimiter=",
    "parse.key=maybe",
)
_CLIENT_PROPERTIES: Final = ("client.id=me", "fetch.max.wait.ms=100", "max.poll.records=2")
_ODD_CLIENT_PROPERTIES: Final = (
    "client.id",
    "fetch.max.wait.ms=x",
    "=1",
    "",
    "no.such=1",
    "auto.offset.reset=never",
    "auto.offset.reset=latest",
    "auto.offset.reset=none",
    "group.id=g2",
)
_PRODUCER_PROPERTIES: Final = (
    "client.id=me",
    "linger.ms=5",
    "batch.size=100",
    "acks=all",
    "enable.idempotence=false",
)
_ODD_PRODUCER_PROPERTIES: Final = (
    "client.id",
    "linger.ms=x",
    "=1",
    "",
    "no.such=1",
    "acks=5",
    "batch.size=-1",
    "max.block.ms=200",
    "compression.type=rar",
)
LINES: Final = (
    "a\nb\n",
    "k:v\nk2:v2\n",
    "last",
    "",
    "\n\n",
    "h1:x,h2:y\tk:v\n",
    "k:NULL\n",
    "ünï:cödé\n",
    "one:two:three\n",
    "no separator\nk:v\n",
)
_TEXTS: Final = {
    "formatter": (
        (
            "org.apache.kafka.tools.consumer.DefaultMessageFormatter",
            "org.apache.kafka.tools.consumer.NoOpMessageFormatter",
            "org.apache.kafka.tools.consumer.LoggingMessageFormatter",
            "kafka.tools.DefaultMessageFormatter",
        ),
        ("no.such.Formatter", "", "kafka.tools.NoOpMessageFormatter", "java.lang.String"),
    ),
    "deserializer": (
        (
            "org.apache.kafka.common.serialization.StringDeserializer",
            "org.apache.kafka.common.serialization.LongDeserializer",
            "org.apache.kafka.common.serialization.IntegerDeserializer",
        ),
        ("no.such.Deserializer", "java.lang.String", ""),
    ),
    "isolation": (("read_committed", "read_uncommitted"), ("READ_COMMITTED", "", "x")),
    "console_offset": (
        ("earliest", "latest", "0", "1", "2"),
        ("-1", "-5", "x", "", "EARLIEST", "99", "99999999999999999999"),
    ),
    "wait_ms": (("1500", "2000"), ("1200",)),
    "max_messages": (("1", "2", "3", "0", "100"), ("-1", "x", "", "99999999999")),
    "codec": (("gzip", "lz4", "zstd", "none", "snappy"), ("GZIP", "x", "", "5")),
    "acks": (("1", "0", "-1", "all"), ("2", "x", "", "ALL")),
    "block_ms": (("3000", "4000"), ("3000", "x", "-1")),
    "entity_type": (
        ("topics", "brokers", "users", "clients", "ips", "broker-loggers"),
        ("", "topic", "Topics", "groups", "client-metrics", "x"),
    ),
    "address": (
        ("127.0.0.1", "10.1.2.3", "localhost"),
        ("", "999.1.1.1", "no.such.host.invalid", "::1", "1.2"),
    ),
    "broker": (("1",), ("0", "7", "x", "", "-1", "01", "1 ")),
    "client": (("app", "app-2"), ("", " ", "ünï", "<default>")),
    "transactional": (("tx-1", "tx-2"), ("", "*", "t x")),
    "producer_id": (("0", "1000", "5"), ("-1", "x", "", "99999999999999999999")),
    "hmac": (("bm9wZQ==", "YWJj"), ("", "!!!", "x")),
    "long": (("1000", "-1", "86400000"), ("x", "", "1.5", "99999999999999999999", "0")),
    "metric": (("org.apache.kafka.consumer.",), ("", "*", ",")),
    "match": (("client_id=a",), ("", "x", "client_id", "no=such", "client_id=[")),
    "interval": (("30000",), ("1", "x", "", "-1", "0")),
    "feature": (
        ("metadata.version=10", "group.version=1"),
        ("x", "", "=1", "x=", "x=y", "metadata.version=-1", "a=1=2"),
    ),
    "release": (("3.9-IV0", "3.5"), ("", "x", "3.9", "99.9")),
    "path": (
        ("/", "/brokers", "/brokers/ids", "/config", "/brokers/topics/orders"),
        ("", "/ghost", "brokers", "//", "/x/"),
    ),
    "znode": (("/drawn", "/drawn/a", "/drawn/b"), ("", "/", "drawn", "/drawn/")),
    "log_files": (
        (
            "{DATA}/d1/events_a-0/00000000000000000000.log",
            "{DATA}/d1/orders-0/00000000000000000000.log",
            "{DATA}/d1/events_a-0/00000000000000000000.index",
            "{DATA}/d1/events_a-0/00000000000000000000.timeindex",
        ),
        ("", "/no/such.log", "{DATA}/d1", ",", "{DATA}/d1/meta.properties"),
    ),
    "fetch_size": (("1048576", "1000"), ("x", "-1", "0")),
    "throughput": (("-1", "1000"), ("x", "", "0", "1.5")),
    "record_size": (("10", "100"), ("0", "-1", "x", "")),
    "records": (("1", "5", "10"), ("0", "-1", "x", "")),
}

PLAIN: Final = {
    "new_topic": (_NEW_TOPICS, _ODD_TOPICS + _TOPICS),
    "topic": (_TOPICS, _ODD_TOPICS + _GHOSTS),
    "topic_regex": (_TOPICS + _REGEXES, _ODD_REGEXES + _GHOSTS),
    "topic_list": (
        ("orders", "orders,solo", "events-b,ghost"),
        ("", ",", "ghost", " orders", "orders,,solo", "a b", "orders,orders"),
    ),
    "group": (_GROUPS, ("", " ", "ghost", "ünï", "*", "a,b")),
    "user": (_USERS, ("", " ", "ghost", "ünï", "<default>")),
    "number": (_NUMBERS, _ODD_NUMBERS),
    "count": (("1", "2", "3", "4"), _ODD_NUMBERS),
    "factor": (("1",), ("2", "0", "3", *_ODD_NUMBERS)),
    "setting": (_TOPIC_SETTINGS, _ODD_SETTINGS),
    "listed": (_LISTED, _ODD_SETTINGS),
    "key": (_KEYS, _ODD_KEYS),
    "broker_listed": (_BROKER_LISTED, _ODD_BROKER_LISTED),
    "broker_key": (
        ("log.retention.ms", "max.connections", "log.cleaner.threads"),
        ("no.such", "", "broker.id", "num.io.threads"),
    ),
    "logger_listed": (_LOGGER_LISTED, _ODD_LOGGER_LISTED),
    "logger_key": (("kafka.log", "kafka.controller"), ("no.such", "", "root", "ROOT")),
    "quota": (_QUOTAS, _ODD_QUOTAS),
    "quota_key": (
        ("producer_byte_rate", "consumer_byte_rate", "producer_byte_rate,request_percentage"),
        ("no_such", "", "SCRAM-SHA-256"),
    ),
    "ip_quota": (("connection_creation_rate=5", "connection_creation_rate=10"), _ODD_QUOTAS),
    "scram": (_SCRAMS, _ODD_SCRAMS),
    "scram_key": (
        ("SCRAM-SHA-256", "SCRAM-SHA-512", "SCRAM-SHA-256,SCRAM-SHA-512"),
        ("SCRAM-SHA-1", "", "producer_byte_rate"),
    ),
    "principal": (_PRINCIPALS, _ODD_PRINCIPALS),
    "operation": (_OPERATIONS, _ODD_OPERATIONS),
    "host": (_HOSTS, ("", " ")),
    "pattern": (_PATTERNS, _ODD_PATTERNS),
    "acl_topic": (("orders", "*", "pre-", "solo"), ("", "ghost", " ")),
    "time": (_TIMES, _ODD_TIMES),
    "partition_list": (_PARTITION_LISTS, _ODD_PARTITION_LISTS),
    "topic_partitions": (_TOPIC_PARTITIONS, _ODD_TOPIC_PARTITIONS),
    "broker_list": (_BROKER_LISTS, _ODD_BROKER_LISTS),
    "datetime": (_DATETIMES, _ODD_DATETIMES),
    "duration": (_DURATIONS, _ODD_DURATIONS),
    "group_topic": (_GROUP_TOPICS, _ODD_GROUP_TOPICS),
    "states": (_STATES, _ODD_STATES),
    "types": (_TYPES, _ODD_TYPES),
    "assignment": (_ASSIGNMENTS, _ODD_ASSIGNMENTS),
    "election_type": (_ELECTION_TYPES, _ODD_ELECTION_TYPES),
    "property": (_PROPERTIES, _ODD_PROPERTIES),
    "reader_property": (_READER_PROPERTIES, _ODD_READER_PROPERTIES),
    "consumer_property": (_CLIENT_PROPERTIES, _ODD_CLIENT_PROPERTIES),
    "producer_property": (_PRODUCER_PROPERTIES, _ODD_PRODUCER_PROPERTIES),
    "shift": (("1", "-1", "0", "5", "-100"), _ODD_NUMBERS),
    "timeout_ms": (("5000", "8000"), ("x", "0", "", "-1", "1.5")),
    **_TEXTS,
}
