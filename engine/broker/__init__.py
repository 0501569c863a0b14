"""One broker, wired together: what starts it, drives it and stops it.

| module | what |
|---|---|
| `broker` | start and stop, in Kafka's order |
| `api_table` | every API that is served, with what its handler needs |
| `tasks` | periodic work, delays, work beside the loop |
| `deadlines` | the one timer behind all purgatories |
| `registration` | the znodes of a broker |
| `session` | its life across sessions with the metadata store |
| `controller_channel` | the controller's requests, to brokers of this process |
| `remote_channel` | the same, to brokers of other processes |
| `unserved` | settings that ask for what is not there |
| `dynamic_config` | settings that change while it runs |
| `loggers` | its loggers, by their levels |
"""
