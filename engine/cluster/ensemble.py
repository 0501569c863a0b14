"""The metadata of a broker in a real ZooKeeper: `zookeeper.connect`.

| setting | use |
|---|---|
| zookeeper.connect | `host:port,…/chroot`; the chroot is created if it does not exist |
| zookeeper.session.timeout.ms | requested; the ensemble applies its own bounds |
| zookeeper.connection.timeout.ms | how long a start waits; default: the session's timeout |
| zookeeper.set.acl | nodes that this broker creates have Kafka's ACLs (`engine/znode/protection.py`); needs a login |
| zookeeper.ssl.client.enable | rejected when true |

The login to ZooKeeper, if one is configured, is in `engine/znode/login.py`. The client library is loaded with the first client.

Source: D9; KafkaServer.initZkClient.
"""  # noqa: E501 - a table

from __future__ import annotations

from engine.cluster.store_security import store_login
from engine.config.broker_config import BrokerConfig
from engine.config.settings import BrokerSettings
from engine.errors import ConfigError
from engine.host.ports import Clock, Entropy, Timers
from engine.znode.client import ZnodeClient
from engine.znode.retrying_client import RetryingZnodeClient

_TLS = "zookeeper.ssl.client.enable"


class Ensemble:
    """Creates a broker's session with the ZooKeeper ensemble in its settings."""

    def __init__(
        self, settings: BrokerSettings, clock: Clock, timers: Timers, entropy: Entropy
    ) -> None:
        """Check the settings of the connection to ZooKeeper and read the JAAS file.

        Nothing connects before `client`. Raises ConfigError.
        """
        if settings.value(_TLS):
            raise ConfigError(_TLS, "true", "TLS of ZooKeeper is not served")
        self._login, self._protects = store_login(settings)
        self._entropy = entropy
        config = BrokerConfig.parse(settings)
        #: The ensemble's addresses and the chroot, as `zookeeper.connect` has them.
        self._connect = config.zookeeper_connect or ""
        #: None means the session time-out.
        self._connection_timeout_ms = config.zookeeper_connection_timeout_ms
        self._clock = clock
        self._timers = timers

    def client(self, session_timeout_ms: int) -> ZnodeClient:
        """Return a client that is not connected yet; raises ConfigError for an invalid address."""
        from engine.znode.kazoo_client import (
            KazooZnodeClient,
            ZookeeperAddress,
            ZookeeperSecurity,
        )

        client = KazooZnodeClient(
            ZookeeperAddress(self._connect),
            self._timers,
            self._clock,
            session_timeout_ms=session_timeout_ms,
            connection_timeout_ms=self._connection_timeout_ms or session_timeout_ms,
            security=ZookeeperSecurity(self._entropy, self._login, self._protects),
        )
        return RetryingZnodeClient(client)
