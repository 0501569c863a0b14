"""A fault in a later turn of a handler ends its request: nobody waits for ever."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from engine.admin import topic_admin
from engine.api.create_partitions import CreatePartitions
from engine.api.create_topics import CreateTopics
from engine.api.delete_records import DeleteRecords
from engine.api.delete_topics import DeleteTopics
from engine.api.elect_leaders import ElectLeaders
from engine.api.fast_fetch import FastFetch
from engine.api.fetch import Fetch
from engine.api.metadata import Metadata
from engine.api.produce import Produce
from engine.api.promised import HandlerFailed
from engine.host.memory_network import MemoryTimers
from engine.host.promise import Promise
from engine.host.turns import LoopTurns
from engine.replication.parked_fetch import ParkedFetch
from engine.replication.partition import Partition
from engine.wire.structs import message_class
from tests.unit.api.configuring import TOPIC, Stage
from tests.unit.api.data_stage import DataStage, fetch_request
from tests.unit.api.follower import Follower
from tests.unit.api.test_delete_records import delete
from tests.unit.controller.admin import AdminBench, exchange
from tests.unit.log.writing import sent

Handle = Callable[[Any, Any], Any]


class Later:
    """What a handler waits for, and then fails."""

    def __init__(self) -> None:
        self.promise: Promise[None] = Promise()
        self.fault = KeyError("later")

    async def fails(self, *given: Any, **_: Any) -> Any:
        for each in given:
            if isinstance(each, Coroutine):
                each.close()
        await self.promise
        raise self.fault


def told(later: Later, handled: Any) -> HandlerFailed:
    """Return what a request ends with, once the fault has come."""
    assert isinstance(handled, Promise)
    assert not handled.is_kept
    later.promise.keep(None)
    assert isinstance(handled.error, HandlerFailed)
    assert -1 == handled.error.code
    assert "a handler failed: KeyError('later')" in str(handled.error)
    return handled.error


def creating(bench: AdminBench) -> tuple[Handle, Any]:
    request = message_class("CreateTopicsRequest")
    topic = request.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    handler = CreateTopics(bench.node.controller, bench.admin, bench.turns)
    return handler.handle, request(topics=[topic], timeout_ms=1000)


def growing(bench: AdminBench) -> tuple[Handle, Any]:
    request = message_class("CreatePartitionsRequest")
    topic = request.CreatePartitionsTopic(name="t", count=2)
    handler = CreatePartitions(bench.node.controller, bench.admin)
    return handler.handle, request(topics=[topic], timeout_ms=1000)


def deleting(bench: AdminBench) -> tuple[Handle, Any]:
    bench.cluster.create_topic("t", (1,))
    bench.settle()
    request = message_class("DeleteTopicsRequest")
    topic = request.DeleteTopicState(name="t")
    handler = DeleteTopics(bench.node.controller, bench.admin, bench.cache, is_enabled=True)
    return handler.handle, request(topics=[topic], timeout_ms=1000)


def electing(bench: AdminBench) -> tuple[Handle, Any]:
    handler = ElectLeaders(bench.node.controller, bench.cache, bench.waiting, bench.cluster.clock)
    return handler.handle, message_class("ElectLeadersRequest")(topic_partitions=None)


def metadata_handler(bench: AdminBench) -> Metadata:
    turns = LoopTurns(MemoryTimers(bench.cluster.clock), bench.cluster.clock)
    return Metadata(bench.cache, turns, bench.auto.auto_create)


def metadata_of(name: str) -> Any:
    request = message_class("MetadataRequest")
    topic = request.MetadataRequestTopic(name=name)
    return request(topics=[topic], allow_auto_topic_creation=True)


@pytest.mark.parametrize("begin", [creating, growing, deleting])
def test_a_fault_about_topics_ends_the_request(
    begin: Callable[[AdminBench], tuple[Handle, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, later = AdminBench(), Later()
    handle, request = begin(bench)
    monkeypatch.setattr(topic_admin, "_await_writes", later.fails)
    assert later.fault is told(later, handle(request, exchange(6))).fault


def test_a_fault_of_an_election_ends_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, later = AdminBench(), Later()
    handle, request = electing(bench)
    monkeypatch.setattr(bench.node.controller, "elect_leaders", later.fails)
    assert later.fault is told(later, handle(request, exchange(2))).fault


def test_a_fault_of_a_topic_made_for_metadata_ends_the_request_and_lets_the_next_one_make_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench, later = AdminBench(), Later()
    handler = metadata_handler(bench)
    with monkeypatch.context() as patch:
        patch.setattr(bench.admin, "create_topics", later.fails)
        handled = handler.handle(metadata_of("t"), exchange(9))
        assert later.fault is told(later, handled).fault
    handled = handler.handle(metadata_of("t"), exchange(9))
    bench.settle()
    assert isinstance(handled, Promise)
    assert [5] == [topic.error_code for topic in handled.result().topics]
    assert "t" in bench.cache.topics


@pytest.mark.parametrize("name", ["AlterConfigs", "IncrementalAlterConfigs", "DescribeConfigs"])
def test_a_fault_about_settings_ends_the_request(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage, later = Stage(), Later()
    request = message_class(f"{name}Request")
    handler: Any = {
        "AlterConfigs": stage.alter,
        "IncrementalAlterConfigs": stage.incremental,
        "DescribeConfigs": stage.describe,
    }[name]
    monkeypatch.setattr(stage.admin, "change", later.fails)
    monkeypatch.setattr(stage.admin, "read", later.fails)
    requested = request(resources=[_resource(request, name)])
    assert later.fault is told(later, handler.handle(requested, exchange(1))).fault


def _resource(request: Any, name: str) -> Any:
    if name == "DescribeConfigs":
        return request.DescribeConfigsResource(resource_type=TOPIC, resource_name="clicks")
    return request.AlterConfigsResource(resource_type=TOPIC, resource_name="clicks", configs=[])


def _waiting_produce(stage: DataStage, count: int) -> None:
    assert stage.produce(*[sent()] * count) is None


def _waiting_fetch(stage: DataStage, count: int) -> None:
    request = fetch_request(17, dict.fromkeys(range(count), 0), max_wait_ms=1000)
    assert stage.ask("Fetch", 17, request) is None


def _waiting_deletion(stage: DataStage, _count: int) -> None:
    assert stage.produce(sent(), acks=1)
    stage.follow(1)
    assert delete(stage, {0: 1}) is None


@pytest.mark.parametrize(
    ("begin", "count", "owner", "name"),
    [
        (_waiting_produce, 1, Produce, "_add_rows"),
        (_waiting_produce, 2, Produce, "_add_rows"),
        (_waiting_fetch, 1, Partition, "read"),
        (_waiting_fetch, 2, Partition, "read"),
        (_waiting_fetch, 2, Fetch, "_session_response"),
        (_waiting_deletion, 1, DeleteRecords, "_response"),
    ],
)
@pytest.mark.parametrize("is_fast_path", [True, False])
def test_a_fault_at_the_end_of_a_wait_ends_the_request(
    is_fast_path: bool,
    begin: Callable[[DataStage, int], None],
    count: int,
    owner: type,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if is_fast_path and (count, owner) == (1, Partition):
        owner, name = FastFetch, "_respond_after_wait"
    stage = DataStage((1, 2), is_fast_path=is_fast_path)
    begin(stage, count)

    def fail(*_given: object, **_named: object) -> None:
        raise KeyError("later")

    monkeypatch.setattr(owner, name, fail)
    with pytest.raises(KeyError):
        stage.pass_time(2000)
    (fault,) = stage.faults
    assert "a step failed: KeyError('later')" in fault


@pytest.mark.parametrize(
    ("owner", "name"), [(ParkedFetch, "_changed_partitions"), (Fetch, "_session_response")]
)
def test_a_fault_at_the_end_of_a_parked_fetch_ends_the_request(
    owner: type, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = DataStage((1, 2))
    follower = Follower(stage)
    follower.ask("all")
    # The first response begins the session.
    stage.pass_time(600)
    follower.ask("fast")
    assert 1 == stage.followers.parked_count

    def fail(*_given: object, **_named: object) -> None:
        raise KeyError("later")

    monkeypatch.setattr(owner, name, fail)
    with pytest.raises(KeyError):
        stage.pass_time(2000)
    (fault,) = stage.faults
    assert "a step failed: KeyError('later')" in fault
