"""The embedded cluster: brokers and their metadata store, in this process or in a separate one.

| module | content |
|---|---|
| `cluster` | brokers and store in this process |
| `ensemble` | a broker's metadata in a real ZooKeeper |
| `process` | a process that runs brokers: loop, signals, end |
| `run` | the programs of such a process: a cluster, one broker of it, a broker alone |
| `member_processes` | brokers in separate processes, managed by the process with the store |
| `broker_processes` | the same processes seen from outside: states, signals |
| `requests`, `request_handler` | requests of commands to the process, and their execution |
| `plan` | the configuration of a cluster |
| `data_directory` | the files of a cluster |
| `__main__` | that process as a program |
| `warm_process` | a process that forks clusters, for programs that start several |
| `daemon` | start, stop, state and removal of a cluster in a separate process |
"""
