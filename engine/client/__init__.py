"""A Kafka client: a core without I/O, a blocking driver for commands, one for brokers.

| module | what it does |
|---|---|
| `connection` | one connection as a state machine: bytes or frames in, responses out |
| `sasl` | PLAIN and SCRAM conversations |
| `metadata` | live brokers, leaders, the controller |
| `blocking` | the client of commands: connects, routes, waits, retries |
| `loop_connection` | the driver of brokers: calls on the loop, each a promise |
| `settings` | Kafka's client properties → settings |
| `errors` | what keeps brokers from answering; their codes are in `engine.kafka_errors` |
| `cluster_admin`, `topic_admin`, `config_admin`, `log_dirs` | administration, by plain values |
| `offsets`, `producing`, `fetching` | offsets by time, records in, records out |

Sockets are reached through `engine.host.streams` alone, or the host's network; time through its
`Clock`.
"""
