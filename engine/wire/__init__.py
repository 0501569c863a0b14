"""Kafka's messages as bytes: schema tables, codecs compiled on first use, headers, JSON texts.

Pure: bytes in, values out, and back. Nothing here reads a file, a socket or a clock.

| module | what it does |
|---|---|
| `schema` | parses one message of the packed tables (`tables/`) |
| `layout` | resolves a message for one version: fields present, how each is written |
| `structs` | makes the classes whose instances are the decoded messages |
| `codec` | the way in: `codec(name, version)` → `decode`, `encode` |
| `read_source`, `write_source` | the source text that `codec` compiles |
| `reader`, `doubts` | walk the same layouts slowly, to name the field at fault |
| `headers` | request and response headers, API keys ↔ names |
| `json_form` | a message as Kafka's own tools print it |
| `record_decoders` | keys and values of Kafka's internal topics as its dump tool prints them |
"""
