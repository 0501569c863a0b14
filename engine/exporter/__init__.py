"""A cluster as metrics and events, gathered with few requests.

| module | content |
|---|---|
| `cluster_sample` | the result of a scrape as plain values |
| `gathering` | the requests of a scrape, with a deadline even if brokers hang |
| `view_changes` | the changes between two snapshots of a cluster: pure |
| `snapshots` | the requests for a snapshot alone |
| `lag_times` | lag in seconds, from the log ends of earlier scrapes: pure |
| `cluster_metrics`, `group_metrics` | a sample as families of metrics: pure |
| `exporter` | the state between scrapes: the last result, counters, histories |
"""
