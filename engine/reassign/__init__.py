"""Execute a reassignment plan on a live cluster: batches, throttles, a journal.

| module | content |
|---|---|
| `cluster_reader` | reads the planner's model of a live cluster |
| `throttles` | the throttles of a plan, and the restoring of former values: pure |
| `journal` | the record of each step, written before the step |
| `scheduling` | the changes that may start now: pure |
| `live_cluster` | the requests by which an execution observes and changes a cluster |
| `execution` | starts changes, observes them, ends or resumes an execution |
| `phases` | the phase of a change from observed state: pure |
| `adaptive_rate` | a throttle that follows the load of the cluster: pure |
| `plan_reading` | running changes of a cluster, and changes that undo a plan: pure |
| `broker_drain` | whether a drained broker has deleted its replicas |
| `explaining` | the controller's steps of a change, in words |
"""
