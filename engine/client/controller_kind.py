"""Whether metadata names the controller: brokers of KRaft name any live broker instead.

Requests to the controller may go to that broker, which passes them on. Who the controller is, the
quorum alone says.

Source: KRaftMetadataCache.getControllerId, KIP-590.
"""

from __future__ import annotations

from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.config_admin import ConfigResourceType, Resource, describe_configs
from engine.client.metadata import NO_BROKER, ClusterView
from engine.errors import EngineError

PROCESS_ROLES: Final = "process.roles"


def is_of_kraft(client: KafkaClient, view: ClusterView) -> bool:
    """Return whether a broker has roles of KRaft; False where none says it."""
    resources = [Resource(ConfigResourceType.BROKER, str(id_)) for id_ in sorted(view.brokers)[:1]]
    described = describe_configs(client, resources, names=(PROCESS_ROLES,))
    return any(
        entry.value
        for entries in described.values()
        if not isinstance(entries, EngineError)
        for entry in entries
    )


def without_controller(view: ClusterView) -> ClusterView:
    """Return a view that names no controller."""
    return view._replace(controller_id=NO_BROKER)
