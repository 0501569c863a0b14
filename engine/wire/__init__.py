"""Kafka's messages as bytes: schema tables, codecs compiled on demand, headers, JSON texts.

Pure: bytes in, values out, and back. No module here uses files, sockets or clocks.

| module | what it does |
|---|---|
| `schema` | parses one message of the packed tables (`tables/`) |
| `layout` | resolves a message for one version: its fields, and how each is written |
| `structs` | creates the classes whose instances are the decoded messages |
| `codec` | the entry point: `message_codec(name, version)` → `decode`, `encode` |
| `reader`, `writer` | interpret a layout field by field: for few bytes, and to name a wrong field |
| `read_source`, `read_parts`, `write_source` | generate the code of frequently used codecs |
| `headers` | request and response headers, API keys ↔ names |
| `json_form` | a message as Kafka's own tools print it |
| `coordinator_records`, `framed_records` | keys and values of Kafka's internal topics |
| `record_decoders` | the same as texts, as Kafka's dump tool prints them; with |
| | `coordinator_text`, `transaction_text`, `framed_text`, `remote_log_text`, `scala_set` |
| `tool_reader` | reads damaged bytes as Kafka's Java classes do |
"""
