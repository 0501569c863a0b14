"""Read the conditions on a live cluster under which a plan will be executed."""

from __future__ import annotations

from collections.abc import Iterable

from engine.client.blocking import KafkaClient
from engine.client.cluster_admin import describe_log_dirs
from engine.client.config_admin import ConfigResourceType, Resource, describe_configs
from engine.errors import EngineError
from engine.planner.plan import PartitionChange
from engine.reassign.preflight import PlanTarget

_MIN_ISR = "min.insync.replicas"


def read_ground(client: KafkaClient, changes: Iterable[PartitionChange]) -> PlanTarget:
    """Return the cluster's state on which a plan's preconditions are checked.

    That is the metadata, the log directories of the brokers in the plan, and min.insync.replicas.
    Raises the errors of the metadata request. Directories and settings without a response are
    unknown, which is no error.
    """
    changes = list(changes)
    topics = sorted({change.topic for change in changes})
    view = client.view(topics)
    taking_part = {id_ for c in changes for id_ in (*c.old_replicas, *c.new_replicas)}
    log_dirs = describe_log_dirs(client, sorted(taking_part & set(view.brokers)))
    resources = [Resource(ConfigResourceType.TOPIC, name) for name in topics]
    min_isr = {}
    for resource, entries in describe_configs(client, resources, names=(_MIN_ISR,)).items():
        if not isinstance(entries, EngineError) and entries:
            min_isr[resource.name] = int(entries[0].value or 1)
    return PlanTarget(view, log_dirs, min_isr)
