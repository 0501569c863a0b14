"""One broker, wired together: what starts it, drives it and stops it.

| module | what |
|---|---|
| `broker` | start and stop, in Kafka's order |
| `api_table` | every API that is served, with what its handler needs |
| `tasks` | periodic work, delays, work on a worker thread |
| `deadlines` | the one timer behind all purgatories |
| `registration` | the znodes of a broker |
| `session` | its life across sessions with the metadata store |
| `peers` | the way to another broker, of this process or elsewhere |
| `controller_channel` | the controller's requests to brokers |
| `controller_link` | a broker's requests to the current controller |
| `isr_writes` | in-sync sets that a leader writes itself, below release 2.7 |
| `isr_proposals` | proposals of in-sync sets on their way to the controller |
| `unserved` | settings that ask for what is not there |
| `access_rules` | rules of who may do what, as its authorizer knows them |
| `change_watch` | directories of notes about what has changed |
| `dynamic_config` | settings that change while it runs |
| `loggers` | its loggers, by their levels |
"""
