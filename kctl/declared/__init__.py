"""Files of declared state: read, checked, written.

| module | purpose |
|---|---|
| `variables` | `${NAME}` in texts |
| `yaml_nodes` | YAML as nodes that know their file and line |
| `state_schema` | the keys that files have, as JSON Schema |
| `state_files` | which files, and which documents of them, count for a cluster |
| `state_sections` | from documents to the declared state |
| `pending_steps` | the steps between files and a cluster, as rows |
| `open_moves` | moves of an earlier run that are not over |
| `state_writing` | from the state of a cluster to files |
"""
