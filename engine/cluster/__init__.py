"""The embedded cluster: brokers and their metadata store, in this process or as one of its own.

| module | what |
|---|---|
| `cluster` | brokers and store in this process |
| `ensemble` | a broker's metadata in a real ZooKeeper |
| `process` | a process that is brokers: loop, signals, end |
| `run` | what such a process runs: a cluster, one broker of it, a broker alone |
| `member_processes` | brokers in processes of their own, kept by the one with the store |
| `broker_processes` | the same, seen from outside: states, signals |
| `requests`, `keeper` | what commands want of the process, and who carries it out |
| `plan` | how a cluster is made |
| `data_directory` | where a cluster's files lie, and what it says of itself there |
| `__main__` | that process as a program |
| `daemon` | start, stop, state and removal of a cluster that runs as its own process |
"""
