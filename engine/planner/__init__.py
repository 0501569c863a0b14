"""Plan the placement of replicas and leaders with few moves: pure, all facts are arguments.

| module | content |
|---|---|
| `cluster_model` | input of a plan: brokers, partitions, sizes |
| `constraints` | limits of a plan: racks, budgets, excluded topics and brokers |
| `plan` | output: changes, batches, figures before and after |
| `planner` | the verbs: spread, drain, replace, repair, replication factor, balance, demote |
| `balancing` | the verb balance, in rounds until nothing changes |
| `iterated_search` | searches that begin with the result of the one before |
| `search_steps`, `repairs` | the steps of the verbs |
| `placement_state` | replicas by partition and by broker during a search |
| `rack_limits` | how many replicas of a partition a rack may have |
| `count_targets`, `level_targets` | the target count of each broker, and the fewest moves to it |
| `replica_placement` | brokers for replicas without a place |
| `count_balancing` | moves from brokers above their target count to brokers below it |
| `byte_balancing` | exchanges of replicas that level bytes and keep counts |
| `move_saving` | cancels moves that turned out to be unnecessary |
| `byte_bound` | the fewest moves that level bytes |
| `leader_balancing` | leaders, by paths of partitions whose leader may change |
| `rate_balancing`, `rate_leaders` | bytes per second, in by replicas and out by leaders |
| `sampled_rates` | samples of rates, in the format of a plan's file |
| `log_dir_balancing` | moves between the directories of a broker |
| `batch_order` | batches of changes that never exceed a broker's capacity |
| `plan_building` | builds a plan with its figures from a search |
| `plan_checks` | invariants of all plans |
| `trade_offs` | the effect of fewer moves or bytes |
| `plan_file` | plans as JSON that Kafka's own tool reads |
| `kafka_assignment` | Kafka's own placement of replicas |
"""
