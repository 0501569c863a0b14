"""Settings: one table row per key of Kafka 3.9.1, and the functions that use these tables.

| module | content |
|---|---|
| `key`, `tables` | the rows |
| `value` | conversion of text to values and back, by type and rule |
| `settings` | the sources of a broker's settings, and their precedence |
| `broker_config`, `topic_config`, `listeners` | typed values for the rest of the engine |
| `change` | which changes at run time are allowed |
| `java_properties` | `server.properties` and similar files |
| `describe` | the content of DescribeConfigs' responses |
"""
