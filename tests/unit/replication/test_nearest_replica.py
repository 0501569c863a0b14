"""Which replica a consumer is sent to. Source: REPL-9."""

from __future__ import annotations

import pytest

from engine.replication.nearest_replica import ReplicaView, nearest_replica

LEADER = ReplicaView(1, "a", 100)


@pytest.mark.parametrize(
    ("rack_id", "followers", "chosen"),
    [
        pytest.param("", [ReplicaView(2, "", 100)], 1, id="who says no rack reads from the leader"),
        pytest.param("a", [ReplicaView(2, "a", 100)], 1, id="a leader in the rack is as good"),
        pytest.param("b", [ReplicaView(2, "b", 90)], 2, id="a follower in the rack"),
        pytest.param("c", [ReplicaView(2, "b", 100)], 1, id="nobody in the rack"),
        pytest.param("b", [ReplicaView(2, None, 100)], 1, id="a follower without a rack"),
        pytest.param("b", [ReplicaView(2, "b", 90), ReplicaView(3, "b", 91)], 3, id="who has most"),
        pytest.param(
            "b", [ReplicaView(2, "b", 90, 5), ReplicaView(3, "b", 90, 6)], 2, id="caught up last"
        ),
        pytest.param(
            "b", [ReplicaView(3, "b", 90, 5), ReplicaView(2, "b", 90, 5)], 3, id="the higher id"
        ),
    ],
)
def test_a_consumer_reads_where_it_is_nearest(
    rack_id: str, followers: list[ReplicaView], chosen: int
) -> None:
    assert chosen == nearest_replica(rack_id, LEADER, followers).broker_id
