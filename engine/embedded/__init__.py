"""The public Python API of the embedded cluster.

```python
from engine.embedded import EmbeddedCluster, Login
with EmbeddedCluster("/tmp/cluster", brokers=3, login=Login("app", "secret")) as cluster:
    cluster.create_topic("orders", partitions=6)
    cluster.produce("orders", b"first", b"second")
    cluster.kill(2)
    print(cluster.bootstrap, cluster.consume("orders", count=2))
```

| module | content |
|---|---|
| `cluster` | start, stop and removal; faults of brokers and of their network |
| `access` | topics, records, lag and in-sync replicas, by a client of its own |
| `login` | user and password for SASL |
| `short_timeout_settings` | broker settings that keep waits in tests short |

Errors are subclasses of `engine.errors.EngineError`.
"""

from engine.embedded.access import KafkaAccess as KafkaAccess
from engine.embedded.access import NotEnoughRecords as NotEnoughRecords
from engine.embedded.access import NotInSync as NotInSync
from engine.embedded.access import ReceivedRecord as ReceivedRecord
from engine.embedded.cluster import AlreadyStarted as AlreadyStarted
from engine.embedded.cluster import EmbeddedCluster as EmbeddedCluster
from engine.embedded.cluster import NotStarted as NotStarted
from engine.embedded.login import BadLogin as BadLogin
from engine.embedded.login import Login as Login
