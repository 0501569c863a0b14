"""A cluster from sample to sample: rates, lags, troubles.

| module | content |
|---|---|
| `timed_sample` | a sample of the exporter with its time, and the rates between two |
| `sampler` | samples one after another, by a pace: the only module that asks |
| `group_lags` | groups by lag, with a verdict by several samples: pure |
| `partition_trouble`, `broker_shares` | partitions and brokers by one sample: pure |
| `watch`, `watch_rows` | the last samples as rows for `kctl top`: pure |
| `row_order` | sorting and filtering of rows: pure |
"""
