"""Plan the placement of replicas and leaders with few moves: pure, all facts are arguments.

| module | what it does |
|---|---|
| `cluster_model` | what a plan is made of: brokers, partitions, sizes |
| `constraints` | what a plan may do: racks, budgets, what stays where it is |
| `plan` | what comes out: changes, batches, figures before and after |
| `planner` | the verbs: spread, drain, replace, repair, replication factor, balance, demote |
| `balancing` | a balance, in rounds until nothing more changes |
| `iterated_search` | searches that begin with the result of the one before |
| `search_steps`, `repairs` | what verbs are made of |
| `placement_state` | replicas by partition and by broker while a plan is searched |
| `rack_limits` | how many replicas of a partition a rack may hold |
| `count_targets`, `level_targets` | how many replicas each broker should hold, the fewest moves |
| `replica_placement` | brokers for replicas that need one |
| `count_balancing` | moves from brokers that hold too many to those that hold too few |
| `byte_balancing` | replicas that change places so that bytes are level too |
| `move_saving` | replicas that need not have moved |
| `byte_bound` | the fewest moves for that |
| `leader_balancing` | who leads, by paths of partitions whose leader may change |
| `rate_balancing`, `rate_leaders` | bytes each second, in by replicas and out by leaders |
| `sampled_rates` | samples of rates, as a plan's file keeps them |
| `log_dir_balancing` | moves between the directories of a broker |
| `batch_order` | which changes go together, nobody over capacity at any time |
| `plan_building` | from a search to a plan, with figures |
| `plan_checks` | what no plan may do |
| `trade_offs` | what fewer moves or bytes would bring |
| `plan_file` | plans as JSON that Kafka's own tool reads |
| `kafka_assignment` | how Kafka itself places replicas |
"""
