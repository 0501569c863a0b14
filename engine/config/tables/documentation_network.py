"""Documentation of a broker's keys about connections and requests; see `documentation.py`."""

from typing import Final

#: Listeners, sockets, threads, limits of requests and connections, metrics.
NETWORK_TEXTS: Final = """\
advertised.listeners
    Addresses that clients are told to connect to, NAME://host:port with commas between them;
    listeners where it is not set. Set it where clients see other names or ports (NAT, containers,
    proxies): 0.0.0.0 is no address that can be told.
auto.include.jmx.reporter
    Whether metrics go to JMX though metric.reporters does not name that reporter.
background.threads
    Threads for work beside requests: flushes, retention, deletion of files. A change while the
    broker runs may at most double or halve it.
connections.max.idle.ms
    Milliseconds without a request after which the broker closes a connection. Clients connect again
    when they need to; keep it below what firewalls between allow.
control.plane.listener.name
    A listener that only the controller uses, so that its requests do not wait behind those of
    clients. Must be one of listeners and not that of other brokers; with ZooKeeper only.
early.start.listeners
    Listeners that open before the authorizer is ready, for controllers that need each other for
    that.
fetch.max.bytes
    The most bytes in one answer to a fetch, even if the consumer asks for more. The first batch is
    always sent whole, so that a large one cannot stop a reader.
inter.broker.listener.name
    The listener over which brokers speak to each other. Give either this or
    security.inter.broker.protocol, not both; it must be among advertised.listeners.
kafka.metrics.polling.interval.secs
    Seconds between two readings for kafka.metrics.reporters.
kafka.metrics.reporters
    Classes that take the older (Yammer) metrics somewhere; each must implement
    kafka.metrics.KafkaMetricsReporter.
listener.security.protocol.map
    Which protocol each listener's name stands for, NAME:PROTOCOL with commas between them. Needed
    as soon as names are more than PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL.
listeners
    Addresses on which the broker listens, NAME://host:port with commas between them. An empty host
    is the default interface, 0.0.0.0 all; no two may share a name or, on one host, a port.
max.connection.creation.rate
    New connections per second that the broker takes; more are throttled. Can be set for one
    listener behind listener.name.NAME., which is how reconnecting clients are kept off the others.
max.connections
    Connections that the broker has at a time. At the limit new ones wait; the listener between
    brokers goes first and makes room by closing the longest idle one. Can be set for one listener
    behind listener.name.NAME.
max.connections.per.ip
    Connections that one address may have at a time; more are closed at once. 0 is allowed where
    max.connections.per.ip.overrides names somebody.
max.connections.per.ip.overrides
    Other limits for some hosts, host:count with commas between them.
max.incremental.fetch.session.cache.slots
    Fetch sessions that are remembered. A session lets a client name only what changed; where many
    consumers share a broker and sessions are thrown out, raise it.
max.request.partition.size.limit
    The most partitions that one DescribeTopicPartitions answer has; the client goes on with the
    next page.
metric.reporters
    Classes that are given all metrics of the newer kind. They can be exchanged while the broker
    runs, and a class that cannot be loaded refuses the change.
metrics.num.samples
    Windows that are kept for a rate or mean; together with metrics.sample.window.ms they are the
    time it is taken over.
metrics.recording.level
    Which sensors count: INFO the common ones, DEBUG and TRACE also costly ones.
metrics.sample.window.ms
    Milliseconds of one window of a metric.
num.io.threads
    Threads that work on requests, disks included. Raise it when request handlers are seldom idle;
    a change while the broker runs may at most double or halve it.
num.network.threads
    Threads of each listener that read and write sockets. Raise it when network processors are
    seldom idle, early with TLS; a change while the broker runs may at most double or halve it.
queued.max.request.bytes
    Bytes of requests that may wait before no more are read from sockets; -1 is no limit. It must
    not be below socket.request.max.bytes.
queued.max.requests
    Requests that may wait for a worker before no more are read from sockets.
request.timeout.ms
    Milliseconds for which this broker waits for an answer when it asks another one.
server.max.startup.time.ms
    Milliseconds that a KRaft start may take before it is given up. For tests.
socket.connection.setup.timeout.max.ms
    The longest wait for a connection to another broker, in milliseconds: each failure doubles
    socket.connection.setup.timeout.ms up to here.
socket.connection.setup.timeout.ms
    Milliseconds that the first try to connect to another broker may take.
socket.listen.backlog.size
    Connections that the system keeps for the broker before they are accepted. The system's own
    limit (net.core.somaxconn) cuts it; raise both where many clients connect at once.
socket.receive.buffer.bytes
    Size of the receive buffer of each socket in bytes; -1 takes the system's. Wide links with a
    long delay need more.
socket.request.max.bytes
    The largest request that is read, in bytes; the connection of a larger one is closed. Keeps one
    client from taking all memory; it must hold the largest batch.
socket.send.buffer.bytes
    Size of the send buffer of each socket in bytes; -1 takes the system's. Wide links with a long
    delay need more.
telemetry.max.bytes
    The most bytes of metrics, unpacked, that a client may push in one request.
unstable.api.versions.enable
    Whether versions of APIs are offered that may still change. For Kafka's developers: what is
    written with them may not be readable later.
unstable.feature.versions.enable
    Whether features may be raised to levels that may still change. For Kafka's developers: there
    is no way back.
"""
