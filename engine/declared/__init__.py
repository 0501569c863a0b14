"""The state that files declare for a cluster, compared with the current state.

| module | purpose |
|---|---|
| `resources` | both states as values: topics, users, ACLs, quotas, settings of brokers |
| `setting_values` | whether two texts of a setting mean the same |
| `steps` | the changes to a cluster, and their order |
| `comparison` | from both states to the steps and the impossible resources: pure |
| `topic_comparison` | the same for one topic |
| `pruning` | steps that delete what no file declares: pure |
| `state_reading` | requests the state of a cluster |
| `step_execution` | executes steps, each with its own error |

Moves of replicas are steps, too, but they are executed elsewhere, with a planner and a journal.
"""
