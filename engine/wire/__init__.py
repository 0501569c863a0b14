"""Kafka's messages as bytes: schema tables, codecs compiled on first use, headers, JSON texts.

Pure: bytes in, values out, and back. Nothing here reads a file, a socket or a clock.

| module | what it does |
|---|---|
| `schema` | parses one message of the packed tables (`tables/`) |
| `layout` | resolves a message for one version: fields present, how each is written |
| `structs` | makes the classes whose instances are the decoded messages |
| `codec` | the way in: `message_codec(name, version)` → `decode`, `encode` |
| `reader`, `writer` | walk a layout field by field: for a few bytes, and to name a field at fault |
| `read_source`, `read_parts`, `write_source` | what busy codecs compile instead |
| `headers` | request and response headers, API keys ↔ names |
| `json_form` | a message as Kafka's own tools print it |
| `coordinator_records`, `framed_records` | keys and values of Kafka's internal topics |
| `record_decoders` | the same as texts, as Kafka's dump tool prints them; with |
| | `coordinator_text`, `transaction_text`, `framed_text`, `remote_log_text`, `scala_set` |
| `tool_reader` | reads damaged bytes as Kafka's Java classes do |
"""
