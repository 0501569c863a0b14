"""Observation of a cluster by periodic samples: rates, lags, troubles.

| module | content |
|---|---|
| `timed_sample` | a sample of the exporter with its time, and the rates between two |
| `sampler` | periodic samples at a limited request rate: the only module that sends requests |
| `group_lags` | groups with their lag, and a verdict from several samples: pure |
| `partition_trouble`, `broker_shares` | partitions and brokers in one sample: pure |
| `watch`, `watch_rows` | the last samples as rows for `kctl top`: pure |
| `row_order` | sorting and filtering of rows: pure |
"""
