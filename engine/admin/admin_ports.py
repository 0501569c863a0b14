"""The objects that a broker's topic administration uses."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from engine.admin.policies import CreateTopicRequest, Policy
from engine.admin.topic_waiting import TopicWaiting
from engine.config.settings import BrokerSettings
from engine.host.ports import Entropy
from engine.host.turns import LoopTurns
from engine.replication.metadata_cache import MetadataCache
from engine.znode.client import ZnodeClient


class AdminPorts(NamedTuple):
    """The parts of a broker that topic administration uses.

    Work on many topics is divided into shares of `turns`.
    """

    znodes: ZnodeClient
    metadata_cache: MetadataCache
    waiting: TopicWaiting
    entropy: Entropy
    #: Returns the broker's present settings.
    settings: Callable[[], BrokerSettings]
    turns: LoopTurns
    #: Validates a topic before its creation; None allows all.
    policy: Policy[CreateTopicRequest] | None = None
