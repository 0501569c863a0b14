"""The metadata of a broker in a real ZooKeeper: `zookeeper.connect`.

| setting | use |
|---|---|
| zookeeper.connect | `host:port,…/chroot`; the chroot is created if it does not exist |
| zookeeper.session.timeout.ms | requested; the ensemble applies its own bounds |
| zookeeper.connection.timeout.ms | how long a start waits; default: the session's timeout |
| zookeeper.set.acl, zookeeper.ssl.client.enable | refused when true |

The library is loaded with the first client.

Source: D9.
"""

from __future__ import annotations

from engine.config.broker_config import BrokerConfig
from engine.config.settings import BrokerSettings
from engine.errors import ConfigError
from engine.host.ports import Clock, Timers
from engine.znode.client import ZnodeClient
from engine.znode.retrying_client import RetryingZnodeClient

_REFUSED = ("zookeeper.set.acl", "zookeeper.ssl.client.enable")


class Ensemble:
    """Creates a broker's session with the ensemble that its settings name."""

    def __init__(self, settings: BrokerSettings, clock: Clock, timers: Timers) -> None:
        """Check the settings; raises ConfigError."""
        for key in _REFUSED:
            if settings.value(key):
                raise ConfigError(key, "true", "ACLs and TLS of ZooKeeper are not served")
        config = BrokerConfig.of(settings)
        self._connect = config.zookeeper_connect or ""
        self._connection_timeout_ms = config.zookeeper_connection_timeout_ms
        self._clock = clock
        self._timers = timers

    def client(self, session_timeout_ms: int) -> ZnodeClient:
        """Return a client that is not connected yet; raises ConfigError for an invalid address."""
        from engine.znode.kazoo_client import KazooZnodeClient, ZookeeperAddress

        client = KazooZnodeClient(
            ZookeeperAddress(self._connect),
            self._timers,
            self._clock,
            session_timeout_ms=session_timeout_ms,
            connection_timeout_ms=self._connection_timeout_ms or session_timeout_ms,
        )
        return RetryingZnodeClient(client)
