"""The metadata store: ZooKeeper's nodes, sessions and watches, and Kafka's values in them.

| module | content |
|---|---|
| `client` | the engine's interface to a store, embedded or a real ZooKeeper |
| `embedded` | that client over the store of this process |
| `kazoo_client`, `kazoo_errors` | that client over a real ZooKeeper |
| `kazoo_reader` | a reader of the nodes of any ZooKeeper, for tools |
| `store` | sessions, transactions and watches over the tree and its journal |
| `tree`, `watches` | the pure rules |
| `sqlite_journal` | durability |
| `zookeeper_records`, `zookeeper_wire` | ZooKeeper's protocol: values and frames |
| `zookeeper_responses`, `zookeeper_server` | the store as a server of that protocol |
| `paths`, `values`, `acl_values` | every path and the JSON text of its node |
"""
