"""A change of a cluster, tried first on an embedded copy of it.

| module | what it does |
|---|---|
| `copied_cluster` | what a copy has of a cluster: brokers, racks, topics, settings: pure |
| `record_loss` | which acknowledged records are gone: pure |
| `rehearsal` | makes the copy, executes a plan there, tells what was seen |
"""
