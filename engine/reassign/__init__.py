"""A plan on a live cluster: reading the cluster, moving in batches, throttles, a journal.

| module | what it does |
|---|---|
| `cluster_reader` | what the planner is told of a live cluster |
| `throttles` | which throttles a plan wants, and how what was there before comes back: pure |
| `journal` | what has been done, on disk before the next step |
| `scheduling` | which changes may begin now: pure |
| `live_cluster` | the cluster as an execution sees and changes it |
| `execution` | begins changes, watches them, ends in order or goes on after a death |
| `phases` | where a change stands, as it shows from outside: pure |
| `adaptive_rate` | a throttle that goes with what the cluster bears: pure |
| `plan_reading` | changes that no planner made |
| `broker_drain` | whether a broker that was drained has deleted its replicas |
| `explaining` | what the controller will do with a change, in words |
"""
