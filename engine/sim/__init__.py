"""The whole cluster on virtual time: real brokers, a network, disks and a store that fail by seed.

Imported by nothing but `kctl sim` and tests.
"""
