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
| `cluster` | start, stop, removal; faults of brokers and of their network |
| `access` | topics, records, lag, replicas in sync, by a client of its own |
| `login` | user and password by SASL |
| `short_timeout_settings` | settings with which tests wait for little |

Errors are `engine.errors.EngineError`, each with its own type.
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
