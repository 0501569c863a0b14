"""Settings: one table row per key of Kafka 3.9.1, and everything that follows from it.

| module | what it does |
|---|---|
| `key`, `tables` | the rows |
| `value` | texts to values and back, by type and rule |
| `settings` | where a broker's settings come from, and which of them counts |
| `broker_config`, `topic_config`, `listeners` | typed values for the rest of the engine |
| `change` | which changes at run time are allowed |
| `java_properties` | `server.properties` and its kin |
| `describe` | what DescribeConfigs answers |
"""
