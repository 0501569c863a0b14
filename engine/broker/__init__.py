"""One broker, wired together: its start, its tasks and its stop.

| module | content |
|---|---|
| `broker` | start and stop, in Kafka's order |
| `api_table` | every API that is served, with the parts that its handler needs |
| `tasks` | periodic work, delays, work on a worker thread |
| `deadlines` | the one timer of all purgatories |
| `registration` | the znodes of a broker |
| `session` | its life across sessions with the metadata store |
| `peers` | the channels to other brokers, of this process or elsewhere |
| `controller_channel` | the controller's requests to brokers |
| `node_to_controller_channel` | a broker's requests to the current controller |
| `isr_writes` | in-sync sets that a leader writes itself, below release 2.7 |
| `isr_proposals` | proposals of in-sync sets in flight to the controller |
| `unserved` | settings that require what this broker does not have |
| `access_rules` | the access rules, as its authorizer applies them |
| `change_watch` | directories of notes about changes |
| `dynamic_config` | settings that change while it runs |
| `loggers` | its loggers, by their levels |
"""
