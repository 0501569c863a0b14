"""The znodes that a broker creates at its start (`znodes.md` §2).

```
1  the persistent paths, in Kafka's order        2  /cluster/id, by the first broker
3  the id, generated if it is not configured     4  /brokers/ids/<id>, ephemeral; its czxid is the
                                                    broker's epoch
```

Source: ZN:start; KafkaZkClient.createTopLevelPaths, createOrGetClusterId, registerBroker; KIP-380.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from engine.config.broker_config import BrokerConfig
from engine.errors import EngineError
from engine.host.ports import Entropy
from engine.ids import uuid_text
from engine.znode.client import ZnodeClient
from engine.znode.errors import NodeExists
from engine.znode.model import Create, SetData, Stat
from engine.znode.paths import (
    BROKER_SEQUENCE_ID,
    CLUSTER,
    CLUSTER_ID,
    PERSISTENT_PATHS,
    broker_path,
)
from engine.znode.values import (
    BrokerRegistration,
    decode_cluster_id,
    encode_broker,
    encode_cluster_id,
)

_PLAINTEXT = "PLAINTEXT"
_NO_PORT = -1
_CLUSTER_ID_BYTES = 16


class BrokerIdInUse(EngineError):
    """Another live broker has the same broker id."""

    hint = "give each broker its own broker.id"

    def __init__(self, broker_id: int) -> None:
        super().__init__(f"broker.id {broker_id} is in use by another broker")
        self.broker_id = broker_id


async def create_persistent_paths(znodes: ZnodeClient) -> None:
    """Create the missing znodes that every cluster has; called before a broker registers."""
    missing = [Create(path) for path in PERSISTENT_PATHS if await znodes.exists(path) is None]
    try:
        # One transaction for all of them, since each one costs an fsync.
        if missing:
            await znodes.multi(missing)
    except NodeExists:
        for operation in missing:
            await _create_if_missing(znodes, operation.path, None)


async def cluster_id(znodes: ZnodeClient, entropy: Entropy) -> str:
    """Return the cluster id from the metadata store; the first broker creates it there."""
    if await znodes.exists(CLUSTER_ID) is None:
        chosen = uuid_text(entropy.random_bytes(_CLUSTER_ID_BYTES))
        await _create_if_missing(znodes, CLUSTER, None)
        await _create_if_missing(znodes, CLUSTER_ID, encode_cluster_id(chosen))
    data, _ = await znodes.get(CLUSTER_ID)
    return decode_cluster_id(data, CLUSTER_ID)


async def generated_broker_id(znodes: ZnodeClient, reserved_broker_max_id: int) -> int:
    """Return a new broker id, above `reserved_broker_max_id` and unique in the cluster.

    The version of a znode that each such broker writes is the sequence.
    """
    stat = await znodes.set(BROKER_SEQUENCE_ID, b"")
    return stat.version + reserved_broker_max_id


async def register(znodes: ZnodeClient, broker_id: int, registration: BrokerRegistration) -> int:
    """Create the broker's ephemeral znode; return its czxid, which is the broker epoch.

    A node of this session is accepted: the response to an earlier attempt was lost. Raises
    BrokerIdInUse for that of another session.

    Source: ZN:broker-joins.
    """
    path = broker_path(broker_id)
    try:
        await znodes.multi(
            [Create(path, None, ephemeral=True), SetData(path, encode_broker(registration))]
        )
    except NodeExists as error:
        stat = await znodes.exists(path)
        if stat is None or stat.ephemeral_owner != znodes.session_id:
            raise BrokerIdInUse(broker_id) from error
        return stat.czxid
    stat = await znodes.exists(path)
    assert isinstance(stat, Stat)
    return stat.czxid


def registration_of(
    config: BrokerConfig, ports: Mapping[str, int], host_name: Callable[[], str], now_ms: int
) -> BrokerRegistration:
    """Return the content of a broker's registration znode.

    `ports` has the actual ports by listener name; `host_name` is called if no host is configured.
    """
    advertised = [
        listener._replace(
            host=listener.host or host_name(), port=listener.port or ports[listener.name]
        )
        for listener in config.effective_advertised_listeners
    ]
    plain = next(
        (listener for listener in advertised if listener.security_protocol == _PLAINTEXT), None
    )
    return BrokerRegistration(
        tuple(str(listener) for listener in advertised),
        {listener.name: listener.security_protocol for listener in advertised},
        None if plain is None else plain.host,
        _NO_PORT if plain is None else plain.port,
        now_ms,
        config.broker_rack,
    )


async def _create_if_missing(znodes: ZnodeClient, path: str, data: bytes | None) -> None:
    """Create a persistent znode unless it exists."""
    try:
        await znodes.create(path, data)
    except NodeExists:
        return
