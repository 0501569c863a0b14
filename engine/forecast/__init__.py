"""Forecasts of retention and compaction: freed bytes, times, and settings for a budget.

| module | purpose |
|---|---|
| `log_history` | a log as sizes and times of its segments, and its growth |
| `directory_history` | the histories of a log directory, by its indexes and file names |
| `cluster_history` | those of a live cluster, by sizes and offsets at times: estimates |
| `retention_forecast` | what is deleted now and later, and how large a log becomes |
| `retention_advice` | settings with which topics stay within a number of bytes |
| `topic_settings` | from the settings of a topic to those of its logs |
| `directory_copy` | a copy of a log directory |
| `dirtiness` | how dirty the compacted logs of a directory are |
| `opened_directory` | a log directory without a broker, opened as a broker opens it |
| `retention_run`, `compaction_run` | retention and compaction of such a directory |
"""
