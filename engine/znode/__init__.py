"""The metadata store: ZooKeeper's nodes, sessions and watches, and what Kafka keeps in them.

| module | what it does |
|---|---|
| `client` | what the engine asks of a store, embedded or a real ZooKeeper |
| `embedded` | that client over the store of this process |
| `store` | sessions, transactions and watches over the tree and its journal |
| `tree`, `watches` | the pure rules |
| `sqlite_journal` | durability |
| `paths`, `values`, `acl_values` | every path and the JSON text of its node |
"""
