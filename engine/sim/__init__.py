"""A whole cluster in virtual time.

Real brokers over a simulated network, disks and ZooKeeper store.

Faults are drawn from a seed. Only `kctl sim` and tests import this package.
"""
