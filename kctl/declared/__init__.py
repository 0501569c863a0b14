"""Files of declared state: reading, checking and writing them.

| module | purpose |
|---|---|
| `variables` | `${NAME}` in texts |
| `yaml_nodes` | YAML as nodes that know their file and line |
| `state_schema` | the keys of the files, as JSON Schema |
| `state_files` | which files, and which documents in them, apply to a cluster |
| `state_sections` | from documents to the declared state |
| `pending_steps` | the steps that bring a cluster to the declared state, as rows |
| `open_moves` | unfinished moves of an earlier run |
| `state_writing` | from the state of a cluster to files |
"""
