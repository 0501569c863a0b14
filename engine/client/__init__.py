"""A Kafka client: a core without I/O, and a blocking driver for commands.

| module | what it does |
|---|---|
| `connection` | one connection as a state machine: bytes in, replies out |
| `sasl` | PLAIN and SCRAM conversations |
| `metadata` | who is alive, who leads, who controls |
| `blocking` | the driver: connects, routes, waits, asks again |
| `settings` | Kafka's client properties → settings |
| `errors` | what keeps brokers from answering; their codes are in `engine.kafka_errors` |
| `cluster_admin`, `topic_admin`, `config_admin`, `log_dirs` | administration, by plain values |
| `offsets`, `producing`, `fetching` | offsets by time, records in, records out |

Sockets are reached through `engine.host.streams` alone, time through its `Clock`.
"""
