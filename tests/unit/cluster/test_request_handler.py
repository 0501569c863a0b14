"""What commands want of the process that runs a cluster is done, or refused with a reason."""

from __future__ import annotations

from typing import Any

import pytest

from engine.broker.broker import Broker
from engine.cluster.data_directory import DataDirectory
from engine.cluster.plan import ClusterPlan
from engine.cluster.request_handler import ClusterSupervisor
from engine.cluster.requests import Action, ClusterRequest, next_number
from engine.errors import EngineError
from engine.host.coroutine import drive
from engine.host.memory import ManualClock, MemoryFiles
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.memory_journal import MemoryJournal
from engine.znode.paths import TOPICS, topic_path
from engine.znode.store import ZnodeStore
from engine.znode.values import PartitionAssignment, TopicAssignment, encode_topic

PLAN = ClusterPlan(broker_count=3, port=9092)


class Fake:
    """Brokers that start and stop at once, and note it."""

    def __init__(self) -> None:
        self.running = {1, 2, 3}
        self.done: list[tuple[str, int]] = []
        self.failure: EngineError | None = None
        self.brokers: list[Broker] = []
        self.topics: tuple[str, ...] | None = None

    def addresses(self) -> dict[int, str]:
        return {broker_id: f"here:{9091 + broker_id}" for broker_id in self.running}

    async def start_again(self, broker_id: int) -> None:
        self.done.append(("start", broker_id))
        if self.failure is not None:
            raise self.failure
        self.running.add(broker_id)

    async def stop(self, broker_id: int) -> None:
        self.done.append(("stop", broker_id))
        self.running.remove(broker_id)

    async def carry_out(self, request: ClusterRequest) -> dict[int, list[dict[str, Any]]]:
        self.done.append((request.action.value, 0))
        self.topics = request.topics
        return {broker_id: [{"broker": broker_id}] for broker_id in sorted(self.running)}

    def stop_with_all(self) -> None:
        raise AssertionError

    async def close(self) -> None:
        raise AssertionError


class Stage:
    """A keeper of three brokers, and its files."""

    def __init__(self) -> None:
        self.files = MemoryFiles()
        self.data = DataDirectory(self.files, "/c")
        self.data.write_plan(PLAN)
        self.store = ZnodeStore(MemoryJournal(), ManualClock())
        self.admin = self.client()
        drive(self.admin.connect()).result()
        for path in ("/brokers", TOPICS):
            drive(self.admin.create(path, None)).result()
        self.members = Fake()
        self.keeper = self.new_keeper()
        self.number = 0

    def new_keeper(self) -> ClusterSupervisor:
        return ClusterSupervisor(
            self.data, self.files, PLAN, self.members, self.client, pid=7, znode_address="here:2181"
        )

    def client(self) -> EmbeddedZnodeClient:
        return EmbeddedZnodeClient(self.store, 60_000)

    def ask(self, action: str, broker_id: int | None, *topics: str) -> dict[str, Any]:
        self.number += 1
        request = ClusterRequest(self.number, Action(action), broker_id, topics or None)
        self.data.write_message(self.data.request_path, request.as_message())
        self.keeper.poll()
        response = self.data.read_message(self.data.response_path)
        assert response is not None
        assert self.number == response["number"]
        return response

    def refused(self, action: str, broker_id: int | None) -> str:
        return str(self.ask(action, broker_id)["error"])

    def create_topic(self, name: str, *replicas: tuple[int, ...]) -> None:
        assignment = {n: PartitionAssignment(ids) for n, ids in enumerate(replicas)}
        content = encode_topic(TopicAssignment(None, assignment))
        drive(self.admin.create(topic_path(name), content)).result()


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_restart_is_a_stop_and_a_start(stage: Stage) -> None:
    assert None is stage.ask("restart", 2)["error"]
    assert [("stop", 2), ("start", 2)] == stage.members.done


@pytest.mark.parametrize("action", ["retention", "compact", "compaction"])
def test_settings_of_all_brokers_show_the_value_of_each(stage: Stage, action: str) -> None:
    told = stage.ask(action, None, "t", "u")
    assert (0, None) == (told["broker"], told["error"])
    assert [(action, 0)] == stage.members.done
    assert ("t", "u") == stage.members.topics
    assert {"1": [{"broker": 1}], "2": [{"broker": 2}], "3": [{"broker": 3}]} == told["logs"]
    # Nothing of it is left for the next one.
    assert {} == stage.ask("restart", 2)["logs"]


def test_one_that_does_not_run_is_started_alone(stage: Stage) -> None:
    stage.ask("stop", 2)
    assert "broker 2 does not run" in stage.refused("stop", 2)
    stage.ask("restart", 2)
    assert [("stop", 2), ("start", 2)] == stage.members.done


def test_what_runs_is_written_down_each_time(stage: Stage) -> None:
    stage.ask("stop", 2)
    running = stage.data.running()
    assert running is not None
    assert (7, "here:9092,here:9094") == (running.pid, running.bootstrap_servers)
    assert {"1": "here:9092", "3": "here:9094"} == running.brokers


def test_a_new_broker_has_an_id_that_nobody_had(stage: Stage) -> None:
    assert 4 == stage.ask("add", None)["broker"]
    stage.ask("remove", 4)
    stage.ask("remove", 2)
    assert 5 == stage.ask("add", None)["broker"]
    plan = stage.data.plan()
    assert plan is not None
    assert [1, 3, 5] == plan.broker_ids()
    assert (3, (2, 4)) == (plan.broker_count, plan.removed_ids)


def test_a_new_broker_that_does_not_start_is_not_kept(stage: Stage) -> None:
    stage.members.failure = EngineError("no disk")
    assert "no disk" == stage.refused("add", None)
    assert PLAN == stage.data.plan() == stage.keeper.plan


def test_settings_of_one_broker_keep_others_away(stage: Stage) -> None:
    stage.keeper.plan = ClusterPlan(1, settings={"log.dirs": "/disk"})
    assert "each of 2 brokers has one of its own" in stage.refused("add", None)
    assert [] == stage.members.done


def test_served_log_directories_have_one_broker(stage: Stage) -> None:
    stage.files.replace_file(stage.data.served_path, b"{}")
    assert "copied log directories are served by one" in stage.refused("add", None)


def test_a_broker_that_holds_replicas_stays(stage: Stage) -> None:
    stage.create_topic("orders", (1, 2), (2, 3), (3, 1))
    stage.create_topic("clicks", *[(2,)] * 30)
    refused = stage.refused("remove", 2)
    assert refused.startswith("broker 2 holds replicas of 32 partitions: clicks-0, clicks-1, ")
    assert refused.endswith("clicks-19 and 12 more")
    assert [] == stage.members.done


def test_one_that_holds_none_goes_with_its_files(stage: Stage) -> None:
    stage.create_topic("orders", (1, 3))
    directory = stage.data.broker_path(2)
    stage.files.make_dir(directory)
    stage.files.replace_file(f"{directory}/meta.properties", b"")
    stage.files.replace_file(stage.data.broker_log_path(2), b"")
    assert None is stage.ask("remove", 2)["error"]
    assert [("stop", 2)] == stage.members.done
    assert not stage.files.exists(directory)
    assert not stage.files.exists(stage.data.broker_log_path(2))


def test_the_last_broker_stays(stage: Stage) -> None:
    stage.ask("remove", 1)
    stage.ask("remove", 2)
    assert "broker 3 is the last one" in stage.refused("remove", 3)


def test_one_that_is_not_there_is_reported(stage: Stage) -> None:
    assert "has no broker 9: it has 1, 2, 3" in stage.refused("restart", 9)


def test_a_request_is_carried_out_once(stage: Stage) -> None:
    stage.ask("restart", 2)
    stage.keeper.poll()
    assert 2 == len(stage.members.done)


def test_a_request_counts_though_its_number_is_lower_than_the_last(stage: Stage) -> None:
    stage.number = 1_700_000_000_000
    stage.ask("restart", 2)
    stage.number = 5
    stage.ask("restart", 3)
    assert 4 == len(stage.members.done)


def test_a_request_that_an_earlier_process_carried_out_is_not_carried_out_again(
    stage: Stage,
) -> None:
    stage.ask("restart", 2)
    again = stage.new_keeper()
    again.poll()
    assert 2 == len(stage.members.done)


def test_numbers_go_on_after_the_last_one(stage: Stage) -> None:
    assert 1 == next_number(stage.data)
    stage.ask("restart", 2)
    assert 2 == next_number(stage.data)
    stage.data.write_message(stage.data.response_path, {"number": 1_700_000_000_000})
    assert 1_700_000_000_001 == next_number(stage.data)
    for path in (stage.data.request_path, stage.data.response_path):
        stage.files.replace_file(path, b"{")
    assert 1 == next_number(stage.data)
    for number in ("x", None, [], float("inf"), -4):
        stage.data.write_message(stage.data.request_path, {"number": number})
        assert 1 == next_number(stage.data)


def test_a_damaged_request_is_passed_over(stage: Stage) -> None:
    stage.files.replace_file(stage.data.request_path, b"{")
    stage.keeper.poll()
    stage.files.replace_file(stage.data.request_path, b'{"number": 1, "action": "dance"}')
    stage.keeper.poll()
    assert [] == stage.members.done
