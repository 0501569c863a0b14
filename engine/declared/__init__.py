"""The state that files declare for a cluster, compared with the state that the cluster has.

| module | what it does |
|---|---|
| `resources` | both states as values: topics, users, access rules, quotas, settings of brokers |
| `setting_values` | when two texts of a setting mean the same |
| `steps` | what is done to a cluster, item by item, and in which order |
| `comparison` | from both states to the steps, and to what cannot be done: pure |
| `topic_comparison` | the same of one topic |
| `pruning` | what a cluster has and no file declares: pure |
| `state_reading` | asks a cluster for its state |
| `step_execution` | carries steps out, each with its own error |

Moves of replicas are steps as all others; their performer has the planner and the journal.
"""
