"""The controller of a cluster with its metadata in znodes (`CTL-1` ...), and topic administration.

| module | content |
|---|---|
| `ports` | the interfaces between the controller and its broker |
| `controller` | the events, one at a time; election, failover, resignation |
| `event_queue` | the order of events |
| `context` | the controller's state: brokers, topics, assignments, leaders, states |
| `states`, `elections` | the tables of states and the rules of leader elections: pure |
| `partition_machine`, `replica_machine` | changes of state: znodes, then memory, then requests |
| `request_batch` | LeaderAndIsr, UpdateMetadata and StopReplica of one change |
| `topic_deletion` | the deletions of topics: started, postponed, continued, completed |
| `guarded_znodes` | writes that are fenced by the controller epoch |
| `topic_admin`, `topic_rules` | creating and deleting topics, adding partitions |
| `replica_assignment` | the placement of new replicas: pure |
"""
