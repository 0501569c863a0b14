"""All of a cluster at one time, as one report. Pure but for `gathering`.

| module | content |
|---|---|
| `gathering` | the requests of a report |
| `cluster_report` | the report, made of what was gathered |
| `imbalance` | shares of brokers in leaders, bytes and rate |
| `setting_differences` | settings of brokers that are not the same |
| `topic_risks` | partitions that lack replicas, or whose replicas are badly placed |
| `retention_outlook` | what retention deletes, and when |
| `findings_in_report` | all of it as findings, with their meaning and a command |
| `saved_report`, `report_changes` | an earlier report, and what has changed since |
"""
