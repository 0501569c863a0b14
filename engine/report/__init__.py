"""The state of a cluster at one time, as a report. Pure except for `gathering`.

| module | content |
|---|---|
| `gathering` | the requests of a report |
| `cluster_report` | the report, made from what was gathered |
| `imbalance` | shares of brokers in leaders, bytes and write rate |
| `setting_differences` | settings that differ between brokers |
| `topic_risks` | partitions that lack replicas, or whose replicas are badly placed |
| `retention_outlook` | what retention deletes, and when |
| `findings_in_report` | all of these as findings, with their meaning and a command |
| `saved_report`, `report_changes` | an earlier report, and what has changed since |
"""
