"""What clients of both clusters see, request by request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.compat.cluster.stage import Stage

_TOPIC, _BROKER = 2, 4
_TIMES = (-1, -2, -3, 1_700_000_000_000, 1_700_000_000_050)


def compare_views(stage: Stage) -> None:
    """Ask every broker that is up, of both, for all that it shows."""
    for broker_id in sorted(stage.up):
        stage.ask(broker_id, "Metadata", 12, {"topics": None})
        stage.ask(broker_id, "DescribeCluster", 1, {})
        stage.ask(broker_id, "DescribeLogDirs", 4, {"topics": None})
        stage.ask(broker_id, "DescribeConfigs", 4, _configs(stage, broker_id))
        _ask_for_offsets(stage, broker_id)
    stage.ask(None, "ListPartitionReassignments", 0, {"timeout_ms": 5000, "topics": None})
    any_id = min(stage.up)
    stage.ask(any_id, "DescribeClientQuotas", 1, {"components": [], "strict": False})
    stage.ask(any_id, "DescribeUserScramCredentials", 0, {"users": None})
    every_rule = {
        "resource_type_filter": 1,
        "pattern_type_filter": 1,
        "operation": 1,
        "permission_type": 1,
    }
    stage.ask(any_id, "DescribeAcls", 3, every_rule)


def _configs(stage: Stage, broker_id: int) -> dict[str, Any]:
    named = [(_TOPIC, name) for name in sorted(stage.topics)]
    named += [(_BROKER, str(broker_id)), (_BROKER, "")]
    return {
        "include_synonyms": True,
        "resources": [
            {"resource_type": kind, "resource_name": name, "configuration_keys": None}
            for kind, name in named
        ],
    }


def _ask_for_offsets(stage: Stage, broker_id: int) -> None:
    """Ask for offsets by times and by epochs: leaders answer, and the others refuse."""
    for time_ms in _TIMES:
        topics = [
            {
                "name": name,
                "partitions": [
                    {"partition_index": index, "current_leader_epoch": -1, "timestamp": time_ms}
                    for index in partitions
                ],
            }
            for name, partitions in stage.topics.items()
        ]
        body = {"replica_id": -1, "isolation_level": 0, "topics": topics}
        stage.ask(broker_id, "ListOffsets", 8, body)
    epochs = [
        json.loads(node.data)["leader_epoch"]
        for path, node in stage.tree.items()
        if path.endswith("/state")
    ]
    for epoch in range(max(epochs, default=-1) + 2):
        asked = [
            {
                "topic": name,
                "partitions": [
                    {"partition": index, "current_leader_epoch": -1, "leader_epoch": epoch}
                    for index in partitions
                ],
            }
            for name, partitions in stage.topics.items()
        ]
        stage.ask(broker_id, "OffsetForLeaderEpoch", 4, {"replica_id": -1, "topics": asked})
