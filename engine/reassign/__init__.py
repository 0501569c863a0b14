"""A plan on a live cluster: reading the cluster, moving in batches, throttles, a journal.

| module | what it does |
|---|---|
| `cluster_reader` | what the planner is told of a live cluster |
| `throttles` | which throttles a plan wants, and how what was there before comes back: pure |
| `throttle_keeper` | reads and writes them on the cluster |
| `journal` | what has been done, on disk before the next step |
| `progress` | where each change stands: phase, bytes, rates: pure |
| `scheduling` | which changes may begin now: pure |
| `live_cluster` | the cluster as an execution sees and changes it |
| `execution` | begins changes, watches them, ends in order or goes on after a death |
| `explaining` | what the controller will do with a change, in words |
"""
