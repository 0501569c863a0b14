"""What the topic admin of a broker reaches."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine.config.settings import BrokerSettings
from engine.host.ports import Clock, Entropy, Timers
from engine.replication.metadata_cache import MetadataCache
from engine.znode.client import ZnodeClient


class AdminPorts(NamedTuple):
    """The store, the metadata that requests wait for, and the host."""

    znodes: ZnodeClient
    cache: MetadataCache
    clock: Clock
    timers: Timers
    entropy: Entropy
    #: The broker's settings as they are now.
    settings: Callable[[], BrokerSettings]
