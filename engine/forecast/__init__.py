"""Forecasts of retention and compaction: freed bytes, times, and settings that keep a budget.

| module | what it does |
|---|---|
| `log_history` | a log as sizes and times of its segments, and how fast it grows |
| `directory_history` | that of log directories, by their indexes and names |
| `cluster_history` | that of a live cluster, by sizes and offsets at times: an estimate |
| `retention_forecast` | what goes now, what goes later, how large a log becomes |
| `retention_advice` | settings by which topics stay within so many bytes |
| `topic_settings` | settings of a topic as its logs take them |
| `directory_copy` | a log directory at another place |
| `dirtiness` | how dirty compacted logs of a directory are |
| `opened_directory` | a log directory that no broker uses, opened as one opens it |
| `retention_run`, `compaction_run` | retention and compaction of such a directory |
"""
