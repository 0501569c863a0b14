"""`kctl quorum`: rows and exit codes, and the error of a cluster with ZooKeeper."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from engine.client.errors import NoCommonVersion
from engine.wire import messages
from kctl import exits
from kctl.commands.quorum import replicas
from kctl.commands.quorum.replicas import (
    NoQuorum,
    NoQuorumLeader,
    QuorumRequest,
    describe_cluster_quorum,
    list_voters,
)
from kctl.connect import ClusterOptions
from kctl.schemas import schema_of
from tests.unit.client.fake_broker import FakeCluster


class Quorum(FakeCluster):
    """Three voters led by the first; the last one fetched `silent_ms` ago."""

    def __init__(self, silent_ms: int = 0) -> None:
        super().__init__()
        self.silent_ms = silent_ms
        self.handlers["DescribeQuorum"] = self._describe

    def _describe(self, request: Any, version: int, address: tuple[str, int]) -> Any:
        response = messages.DescribeQuorumResponse
        now_ms = self.clock.wall_ms()

        def row(id_: int, ago_ms: int) -> Any:
            return response.ReplicaState(
                replica_id=id_,
                replica_directory_id=bytes(16),
                log_end_offset=10 - (id_ == 3 and bool(ago_ms)),
                last_fetch_timestamp=now_ms - ago_ms,
                last_caught_up_timestamp=now_ms - ago_ms,
            )

        partition = response.PartitionData(
            partition_index=0,
            leader_id=1,
            leader_epoch=4,
            high_watermark=10,
            current_voters=[row(1, 0), row(2, 0), row(3, self.silent_ms)],
            observers=[row(4, 0)],
        )
        return response(
            topics=[response.TopicData(topic_name="__cluster_metadata", partitions=[partition])]
        )


def request(output: str = "json", **changes: Any) -> QuorumRequest:
    return QuorumRequest("5s", False, output)._replace(**changes)


def use(monkeypatch: pytest.MonkeyPatch, cluster: FakeCluster) -> None:
    monkeypatch.setattr(replicas, "connect", lambda options: cluster.client())


def test_a_quorum_is_one_object_with_its_replicas(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, Quorum())
    assert exits.OK == describe_cluster_quorum(ClusterOptions(), request())
    found = json.loads(capsys.readouterr().out)
    Draft202012Validator(schema_of("quorum describe")).validate(found)
    assert (1, 4, 3, 2, 1) == tuple(
        found[key] for key in ("leader_id", "leader_epoch", "caught_up", "majority", "losses_left")
    )
    assert ["voter", "voter", "voter", "observer"] == [row["role"] for row in found["replicas"]]
    assert [] == found["findings"]


def test_a_voter_that_is_silent_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, Quorum(silent_ms=60_000))
    assert exits.PROBLEMS_FOUND == describe_cluster_quorum(ClusterOptions(), request("table"))
    table = capsys.readouterr().out
    assert "majority-at-risk" in table
    assert "silent: caught up 60.0 s ago, 1 records behind" in table
    patient = request(behind="2m")
    assert exits.OK == describe_cluster_quorum(ClusterOptions(), patient)


@pytest.mark.parametrize(("observers", "count"), [(False, 3), (True, 4)])
def test_voters_are_rows_and_observers_if_asked(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    observers: bool,
    count: int,
) -> None:
    use(monkeypatch, Quorum())
    assert exits.OK == list_voters(ClusterOptions(), request(), observers=observers)
    rows = json.loads(capsys.readouterr().out)
    Draft202012Validator(schema_of("quorum voters")).validate(rows)
    assert count == len(rows)


def test_a_cluster_with_zookeeper_has_none_and_its_controller_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(monkeypatch, FakeCluster())
    with pytest.raises(NoQuorum) as caught:
        describe_cluster_quorum(ClusterOptions(), request())
    assert isinstance(caught.value.__cause__, NoCommonVersion)
    assert "in ZooKeeper" in str(caught.value)
    assert "its controller is broker 1 at 127.0.0.1:9001" in str(caught.value)
    assert "kctl brokers list" in str(caught.value.hint)


def test_controllers_without_a_leader_are_the_hint_of_a_request_without_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As of 4.3.0 with two of three controllers killed."""
    cluster = Quorum()
    cluster.handlers["DescribeQuorum"] = lambda *_: None
    use(monkeypatch, cluster)
    with pytest.raises(NoQuorumLeader, match=r"DescribeQuorum .* no answer within") as caught:
        describe_cluster_quorum(ClusterOptions(), request())
    assert exits.UNREACHABLE == caught.value.exit_code
    assert "majority of voters" in str(caught.value.hint)
