"""A cluster as metrics and events, gathered by few requests.

| module | content |
|---|---|
| `cluster_sample` | what one scrape found: values alone |
| `gathering` | the requests of a scrape, by a deadline even if brokers hang |
| `view_changes` | the changes between two snapshots of a cluster: pure |
| `snapshots` | the requests of one snapshot, where nothing else is wanted |
| `lag_times` | lag in seconds from the ends that earlier scrapes saw: pure |
| `cluster_metrics`, `group_metrics` | a sample as families of metrics: pure |
| `exporter` | the state between scrapes: the last result, counters, histories |
"""
