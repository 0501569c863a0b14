"""A cluster as it changes from sample to sample: rates, lags, what is in trouble.

| module | content |
|---|---|
| `timed_sample` | a sample of the exporter with its time, and the rates between two |
| `group_lags` | groups by lag, with a verdict by several samples: pure |
"""
