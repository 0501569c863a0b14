"""The embedded cluster: brokers and their metadata store, in this process or as one of its own.

| module | what |
|---|---|
| `cluster` | brokers and store in this process |
| `ensemble` | a broker's metadata in a real ZooKeeper |
| `run` | a process that is nothing but a cluster: loop, signals, log |
| `plan` | how a cluster is made |
| `data_directory` | where a cluster's files lie, and what it says of itself there |
| `__main__` | that process as a program |
| `daemon` | start, stop, state and removal of a cluster that runs as its own process |
"""
