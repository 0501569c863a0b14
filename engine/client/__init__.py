"""A Kafka client: a core without I/O, a blocking driver for commands, a driver for brokers.

| module | what it does |
|---|---|
| `connection` | one connection as a state machine: bytes or frames in, responses out |
| `sasl` | PLAIN and SCRAM conversations |
| `metadata` | live brokers, leaders, the controller |
| `blocking` | the client of commands: connects, routes, waits, retries |
| `loop_connection` | the driver of brokers: each call on the loop returns a promise |
| `settings` | Kafka's client properties → settings |
| `errors` | errors of connections; brokers' error codes are in `engine.kafka_errors` |
| `cluster_admin`, `topic_admin`, `config_admin`, `log_dirs` | administration, with plain values |
| `offsets`, `producing`, `fetching` | offsets by time, records in, records out |

Sockets are reached through `engine.host.streams` alone, or the host's network; time through its
`Clock`.
"""
