"""Tries a change of a cluster on an embedded copy of it.

| module | purpose |
|---|---|
| `copied_cluster` | what is copied of a cluster: brokers, racks, topics, settings: pure |
| `record_loss` | which acknowledged records were lost: pure |
| `rehearsal` | starts the copy, executes a plan on it, reports the events |
"""
