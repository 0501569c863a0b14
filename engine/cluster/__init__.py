"""The embedded cluster: brokers and their metadata store, in this process or in one of its own.

| module | content |
|---|---|
| `cluster` | brokers and store in this process |
| `ensemble` | a broker's metadata in a real ZooKeeper |
| `process` | a process that runs brokers: loop, signals, end |
| `run` | the programs of such a process: a cluster, one broker of it, a broker alone |
| `member_processes` | brokers in processes of their own, managed by the process with the store |
| `broker_processes` | the same processes seen from outside: states, signals |
| `requests`, `request_handler` | what commands want of the process, and who carries it out |
| `plan` | the configuration of a cluster |
| `data_directory` | the files of a cluster |
| `__main__` | that process as a program |
| `warm_process` | a process that forks clusters, for programs that start several |
| `daemon` | start, stop, state and removal of a cluster that runs as its own process |
"""
