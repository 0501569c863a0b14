"""What a broker owes to brokers of its process when it stops: nobody waits for ever."""

from __future__ import annotations

from typing import Any

import pytest

from engine.api.exchange import EncodedResponse
from engine.broker.local_requests import LocalRequests
from engine.client.errors import Unreachable
from engine.errors import ConfigError, InvariantBroken
from engine.host.coroutine import drive
from engine.host.promise import Promise
from engine.replication.following.local_fetch import LocalFetch
from engine.replication.partition import Partition
from engine.replication.partition_types import FetchParams, FetchSpec
from engine.replication.watermark import Isolation
from engine.wire import messages
from tests.unit.broker.memory_broker import LOG_DIR
from tests.unit.broker.memory_cluster import T0, MemoryCluster


@pytest.mark.parametrize("is_one_process", [True, False])
def test_what_a_stopping_controller_had_begun_is_asked_of_the_next_one(
    is_one_process: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = MemoryCluster(is_one_process=is_one_process)
    stopping = cluster.brokers[1]
    assert stopping.controller.is_active
    stopped: list[Promise[None]] = []

    async def stopped_between_two_turns(*_request: Any) -> Any:
        stopped.append(drive(stopping.stop(moves_leaders=False)))
        await stopping.controller._turns.await_turn()

    with monkeypatch.context() as patch:
        patch.setattr(stopping.controller._alter_partition, "handle", stopped_between_two_turns)
        asking = cluster.brokers[2]
        requested = asking.isr_channel.send(
            "AlterPartition",
            lambda _version: messages.AlterPartitionRequest(
                broker_id=2, broker_epoch=asking.epoch, topics=[]
            ),
        )
        cluster.timers.run_until_idle()
    assert [True] == [each.is_kept for each in stopped]
    del cluster.brokers[1]
    cluster.pass_time(5000)
    assert requested.is_kept
    assert 0 == requested.result().error_code


@pytest.mark.parametrize("end", ["abandoned", "stopped"])
def test_a_response_that_comes_too_late_keeps_no_file_open(end: str) -> None:
    local = LocalRequests(lambda: 4)
    response: Promise[EncodedResponse] = Promise()
    owed = local.add(response)
    if end == "abandoned":
        owed.abandon()
    else:
        local.end()
    sent: list[str] = []
    response.keep(EncodedResponse([b""], lambda: sent.append("let go")))
    assert ["let go"] == sent


class Owing:
    """What a handler promised, and what is owed of it."""

    def __init__(self) -> None:
        self.local = LocalRequests(lambda: 4)
        self.response: Promise[int] = Promise()
        self.owed = self.local.add(self.response)


def test_a_response_is_owed_until_it_is_there() -> None:
    owing = Owing()
    assert (1, False) == (len(owing.local), owing.owed.is_kept)
    owing.response.keep(7)
    assert (0, 7) == (len(owing.local), owing.owed.result())


def test_a_failure_is_passed_on() -> None:
    owing = Owing()
    error = ConfigError("a", 1, "is wrong")
    owing.response.fail(error)
    assert (0, error) == (len(owing.local), owing.owed.error)


def test_what_is_there_at_once_is_not_owed() -> None:
    local, response = LocalRequests(lambda: 4), Promise.of(7)
    assert response is local.add(response)
    assert 0 == len(local)


def test_the_end_fails_what_is_owed_and_what_comes_later_is_for_nobody() -> None:
    owing = Owing()
    owing.local.end()
    assert isinstance(owing.owed.error, Unreachable)
    assert 0 == len(owing.local)
    owing.response.keep(7)
    assert isinstance(owing.owed.error, Unreachable)


def test_what_is_given_up_is_not_owed() -> None:
    owing = Owing()
    owing.owed.abandon()
    assert (0, True) == (len(owing.local), owing.response.is_abandoned)
    owing.local.end()
    assert not owing.owed.is_kept
    owing.response.keep(7)
    assert not owing.owed.is_kept


@pytest.mark.parametrize(
    ("fault", "is_clean"), [(KeyError("a fault"), True), (InvariantBroken("an epoch"), False)]
)
def test_a_fault_in_what_is_answered_at_the_stop_leaves_no_log_open(
    fault: Exception, is_clean: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = MemoryCluster(is_one_process=True)
    cluster.create_topic(replicas=[(1, 2)])
    cluster.pass_time(2000)
    broker = cluster.brokers[1]
    params = FetchParams(-1, 60_000, 1, 10 << 20, Isolation.HIGH_WATERMARK)
    ids = {T0: broker.metadata_cache.topic_ids[T0.topic]}
    requested = broker.serve_local(
        "Fetch", 0, LocalFetch(params, {T0: FetchSpec(0, 1 << 20, 0)}, ids)
    )
    assert not requested.is_kept

    def fail(*_given: object, **_named: object) -> None:
        raise fault

    monkeypatch.setattr(Partition, "read", fail)
    with pytest.raises(type(fault)):
        drive(broker.stop(moves_leaders=False)).result()
    assert requested.is_kept
    assert is_clean == cluster.disks[1].exists(f"{LOG_DIR}/.kafka_cleanshutdown")
