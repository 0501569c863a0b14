"""One broker and all its parts: its start, its tasks and its stop.

| module | content |
|---|---|
| `broker` | start and stop, in Kafka's order |
| `api_table` | every API that is served, with the parts that its handler needs |
| `tasks` | periodic work, delays, work on a worker thread |
| `deadlines` | the one timer of all purgatories |
| `registration` | the znodes of a broker |
| `session` | the session with the metadata store, and its renewal |
| `peers` | the channels to other brokers, in this process or in another one |
| `controller_channel` | the controller's requests to brokers |
| `node_to_controller_channel` | a broker's requests to the current controller |
| `isr_writes` | ISRs that a leader writes to the metadata store itself, below release 2.7 |
| `isr_proposals` | ISR proposals in flight to the controller |
| `unserved` | settings that need a feature which this broker does not have |
| `access_rules` | the ACLs and their authorizer |
| `change_watch` | directories of change notification nodes |
| `dynamic_config` | settings that change while the broker runs |
| `loggers` | the levels of the broker's loggers |
"""
