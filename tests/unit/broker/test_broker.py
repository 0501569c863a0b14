"""A whole broker in memory: started, asked, stopped, started again."""

from __future__ import annotations

from typing import Any

import pytest

from engine.errors import ConfigError, InvariantBroken
from engine.host.coroutine import drive
from engine.host.ports import LogDirOffline
from engine.host.promise import Promise
from engine.model import TopicPartition
from engine.wire.headers import apis
from engine.wire.structs import message_class
from engine.znode.model import Delete, SetData
from engine.znode.paths import LOG_DIR_EVENT_NOTIFICATION
from engine.znode.values import decode_topic, encode_topic
from tests.unit.broker.memory_broker import MemoryBroker, MemoryClient
from tests.unit.log.writing import sent


@pytest.mark.parametrize(
    ("settings", "backlog"), [({}, 50), ({"socket_listen_backlog_size": "7"}, 7)]
)
def test_as_many_connections_may_wait_as_the_settings_say(
    settings: dict[str, str], backlog: int
) -> None:
    stage = MemoryBroker(**settings).start()
    assert [backlog] == [listener.options.backlog for listener in stage.network.listeners]


def create_topic(client: MemoryClient, name: str, partition_count: int = 1, **configs: str) -> Any:
    request = message_class("CreateTopicsRequest")
    topic = request.CreatableTopic(
        name=name,
        num_partitions=partition_count,
        replication_factor=1,
        configs=[
            request.CreatableTopicConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ],
    )
    answer = client.ask("CreateTopics", 7, topics=[topic], timeout_ms=5000)
    return answer.topics[0]


def produce(client: MemoryClient, topic: str, *, acks: int = -1) -> Any:
    request = message_class("ProduceRequest")
    partition = request.PartitionProduceData(index=0, records=sent())
    data = request.TopicProduceData(name=topic, partition_data=[partition])
    answer = client.ask("Produce", 9, acks=acks, timeout_ms=1000, topic_data=[data])
    return None if answer is None else answer.responses[0].partition_responses[0]


def end_offset(client: MemoryClient, topic: str) -> int:
    request = message_class("ListOffsetsRequest")
    partition = request.ListOffsetsPartition(partition_index=0, timestamp=-1)
    requested = request.ListOffsetsTopic(name=topic, partitions=[partition])
    answer = client.ask("ListOffsets", 7, topics=[requested])
    return int(answer.topics[0].partitions[0].offset)


def leader_of(client: MemoryClient) -> int:
    answer = client.ask("Metadata", 9, topics=None)
    return int(answer.topics[0].partitions[0].leader_id)


def assignment_of(stage: MemoryBroker, replicas: list[int]) -> bytes:
    path = "/brokers/topics/t"
    data, _ = stage.store.get(stage.broker.znodes.session_id, path)
    topic = decode_topic(data, path)
    return encode_topic(
        topic._replace(partitions={0: topic.partitions[0]._replace(replicas=tuple(replicas))})
    )


def test_a_topic_is_made_written_and_found_after_a_restart() -> None:
    stage = MemoryBroker().start()
    client = stage.connect()
    assert create_topic(client, "t").error_code == 0
    assert produce(client, "t").base_offset == 0
    written = end_offset(client, "t")
    stage.stop()
    again = MemoryBroker(stage.files, stage.store).start()
    assert end_offset(again.connect(), "t") == written > 0
    assert again.files.exists("/data/t-0")
    again.stop()


def test_a_clean_stop_leaves_the_mark_and_the_watermarks() -> None:
    stage = MemoryBroker().start()
    client = stage.connect()
    create_topic(client, "t")
    produce(client, "t")
    end = end_offset(client, "t")
    assert not stage.files.exists("/data/.kafka_cleanshutdown")
    stage.stop()
    assert stage.files.exists("/data/.kafka_cleanshutdown")
    checkpoint = stage.files.read_bytes("/data/replication-offset-checkpoint")
    assert checkpoint.decode() == f"0\n1\nt 0 {end}\n"


def test_watermarks_are_checkpointed_every_five_seconds() -> None:
    stage = MemoryBroker().start()
    client = stage.connect()
    create_topic(client, "t")
    produce(client, "t")
    end = end_offset(client, "t")
    stage.pass_time(5000)
    checkpoint = stage.files.read_bytes("/data/replication-offset-checkpoint")
    assert checkpoint.decode() == f"0\n1\nt 0 {end}\n"
    stage.stop()


def test_a_topics_settings_reach_its_logs_at_creation_and_on_change() -> None:
    stage = MemoryBroker().start()
    client = stage.connect()
    create_topic(client, "t", segment_bytes="5000")
    log = stage.broker.storage.logs.get(TopicPartition("t", 0))
    assert log is not None
    assert log.config.segment_bytes == 5000
    request = message_class("IncrementalAlterConfigsRequest")
    change = request.AlterableConfig(name="segment.bytes", config_operation=0, value="7000")
    resource = request.AlterConfigsResource(resource_type=2, resource_name="t", configs=[change])
    answer = client.ask("IncrementalAlterConfigs", 1, resources=[resource])
    assert answer.responses[0].error_code == 0
    assert log.config.segment_bytes == 7000
    stage.stop()


def test_a_setting_of_the_broker_reaches_the_logs_of_every_topic() -> None:
    stage = MemoryBroker().start()
    client = stage.connect()
    create_topic(client, "t")
    request = message_class("IncrementalAlterConfigsRequest")
    change = request.AlterableConfig(name="log.retention.ms", config_operation=0, value="7000")
    resource = request.AlterConfigsResource(resource_type=4, resource_name="", configs=[change])
    answer = client.ask("IncrementalAlterConfigs", 1, resources=[resource])
    assert answer.responses[0].error_code == 0
    log = stage.broker.storage.logs.get(TopicPartition("t", 0))
    assert log is not None
    assert log.config.retention_ms == 7000
    stage.stop()


@pytest.mark.parametrize(("resource_type", "name"), [(2, "t"), (4, "")])
def test_a_partition_without_a_leader_gets_one_when_unclean_elections_are_allowed(
    resource_type: int, name: str
) -> None:
    stage = MemoryBroker().start()
    client = stage.connect()
    create_topic(client, "t")
    # The last replica in sync was another broker's, which is gone for good.
    session = stage.broker.znodes.session_id
    lost = b'{"controller_epoch":1,"leader":-1,"version":1,"leader_epoch":3,"isr":[9]}'
    stage.store.apply(session, SetData("/brokers/topics/t/partitions/0/state", lost))
    stage.store.apply(session, SetData("/brokers/topics/t", assignment_of(stage, [9, 1])))
    stage.store.apply(session, Delete("/controller"))
    stage.timers.run_until_idle()
    assert leader_of(client) == -1
    request = message_class("IncrementalAlterConfigsRequest")
    change = request.AlterableConfig(
        name="unclean.leader.election.enable", config_operation=0, value="true"
    )
    resource = request.AlterConfigsResource(
        resource_type=resource_type, resource_name=name, configs=[change]
    )
    answer = client.ask("IncrementalAlterConfigs", 1, resources=[resource])
    assert answer.responses[0].error_code == 0
    assert leader_of(client) == 1
    stage.stop()


def test_a_waiting_fetch_is_answered_at_its_deadline() -> None:
    stage = MemoryBroker().start()
    client = stage.connect()
    create_topic(client, "t")
    request = message_class("FetchRequest")
    partition = request.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    requested = request.FetchTopic(topic="t", partitions=[partition])
    fields = {"max_wait_ms": 300, "min_bytes": 1, "max_bytes": 1000, "topics": [requested]}
    assert client.ask("Fetch", 11, **fields) is None
    stage.pass_time(299)
    assert client.frames == []
    stage.pass_time(1)
    answer = client.answer("Fetch", 11)
    assert answer.responses[0].partitions[0].error_code == 0
    stage.stop()


def test_a_failing_directory_takes_its_partitions_and_the_last_one_the_broker() -> None:
    stage = MemoryBroker(log_dirs="/a,/b").start()
    client = stage.connect()
    create_topic(client, "first")
    create_topic(client, "second")
    logs = stage.broker.storage.logs
    of_first = logs.get(TopicPartition("first", 0))
    assert of_first is not None
    failure = LogDirOffline(of_first.directory, "write", "no space left", 28)
    logs.take_offline(logs.directory_of(of_first), failure)
    assert produce(client, "first").error_code == 56
    assert produce(client, "second").error_code == 0
    assert stage.fatal == []
    of_second = logs.get(TopicPartition("second", 0))
    assert of_second is not None
    logs.take_offline(logs.directory_of(of_second), failure)
    assert len(stage.fatal) == 1
    assert "every log directory is offline" in stage.fatal[0]
    stage.stop()


def fail_directory_of(stage: MemoryBroker, topic: str) -> None:
    logs = stage.broker.storage.logs
    log = logs.get(TopicPartition(topic, 0))
    assert log is not None
    failure = LogDirOffline(log.directory, "write", "no space left", 28)
    logs.take_offline(logs.directory_of(log), failure)
    stage.timers.run_until_idle()


def test_the_controller_is_notified_of_a_failing_directory_and_moves_its_leaders() -> None:
    stage = MemoryBroker(log_dirs="/a,/b").start()
    client = stage.connect()
    create_topic(client, "first")
    create_topic(client, "second")
    fail_directory_of(stage, "first")
    answer = client.ask("Metadata", 9, topics=None)
    found = {
        topic.name: (part.error_code, part.leader_id, part.isr_nodes, part.offline_replicas)
        for topic in answer.topics
        for part in topic.partitions
    }
    assert {"first": (5, -1, [1], [1]), "second": (0, 1, [1], [])} == found
    assert [] == drive(stage.broker.znodes.children(LOG_DIR_EVENT_NOTIFICATION)).result()
    stage.stop()


def test_a_failing_directory_that_the_store_does_not_learn_of_harms_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = MemoryBroker(log_dirs="/a,/b").start()
    client = stage.connect()
    create_topic(client, "first")
    create_topic(client, "second")
    drive(stage.broker.znodes.close()).result()
    fail_directory_of(stage, "first")
    assert "the controller was not notified" in caplog.text
    assert 0 == produce(client, "second").error_code


def test_directories_are_named_from_the_root() -> None:
    stage = MemoryBroker(log_dirs="here/logs, /b/../there").start()
    answer = stage.connect().ask("DescribeLogDirs", 1, topics=None)
    assert [found.log_dir for found in answer.results] == ["/here/logs", "/there"]
    stage.stop()


@pytest.mark.parametrize(
    ("listeners", "advertised", "address"),
    [
        ("PLAINTEXT://here:9092", None, "here:9092"),
        ("CLIENT://here:0,PLAINTEXT://here:9093", None, "here:20001"),
        ("PLAINTEXT://:9092", None, "here:9092"),
        ("PLAINTEXT://0.0.0.0:9092", "PLAINTEXT://[::1]:7000", "[::1]:7000"),
    ],
)
def test_clients_get_the_first_plaintext_listener(
    listeners: str, advertised: str | None, address: str
) -> None:
    protocols = "PLAINTEXT:PLAINTEXT,CLIENT:PLAINTEXT"
    more = {} if advertised is None else {"advertised_listeners": advertised}
    stage = MemoryBroker(
        listeners=listeners, listener_security_protocol_map=protocols, **more
    ).start()
    assert stage.broker.address_for_clients() == address
    stage.stop()


def test_settings_that_contradict_each_other_stop_the_start() -> None:
    stage = MemoryBroker(log_dirs=" , ")
    with pytest.raises(ConfigError, match=r"log\.dirs"):
        stage.open()


def test_a_broker_without_an_id_keeps_the_one_it_was_given() -> None:
    stage = MemoryBroker(broker_id="-1").start()
    given = stage.broker.broker_id
    assert given > 1000
    stage.stop()
    again = MemoryBroker(stage.files, stage.store, broker_id="-1").start()
    assert again.broker.broker_id == given
    again.stop()


def test_every_version_that_is_offered_can_be_asked() -> None:
    stage = MemoryBroker().start()
    client = stage.connect()
    offered = client.ask("ApiVersions", 0).api_keys
    known = apis()
    for entry in offered:
        row = known[entry.api_key]
        assert row.stable.lowest <= entry.min_version <= entry.max_version <= row.stable.highest
    assert len(offered) > 20
    stage.stop()


def create(stage: MemoryBroker, *names: str) -> None:
    request = message_class("CreateTopicsRequest")
    topics = [
        request.CreatableTopic(name=name, num_partitions=2, replication_factor=1) for name in names
    ]
    reply = stage.connect().ask("CreateTopics", 7, topics=topics, timeout_ms=1000)
    assert [0] * len(names) == [topic.error_code for topic in reply.topics]


def test_all_topics_are_known_from_the_controllers_first_word_on() -> None:
    first = MemoryBroker().start()
    create(first, "a", "b")
    first.stop()
    again = MemoryBroker(first.files, first.store)
    again.open()
    cache = again.broker.metadata_cache
    told: list[dict[str, int]] = []
    cache.on_update(lambda _: told.append({name: len(cache.topics[name]) for name in cache.topics}))
    again.timers.run_until_idle()
    assert told
    assert [{"a": 2, "b": 2}] * len(told) == told


def test_a_broker_lists_itself_before_any_controller_does() -> None:
    stage = MemoryBroker()
    stage.open()
    cache = stage.broker.metadata_cache
    assert {} == cache.brokers
    (own,) = cache.brokers_to_notify()
    (endpoint,) = own.endpoints
    assert stage.broker.broker_id == own.broker_id
    assert stage.broker.address_for_clients() == f"{endpoint.host}:{endpoint.port}"
    stage.timers.run_until_idle()
    assert [own] == list(cache.brokers.values())
    stage.stop()


def test_a_handler_that_fails_behind_the_channel_fails_its_request_and_not_the_channel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = MemoryBroker().start()
    client = stage.connect()
    assert 0 == create_topic(client, "before").error_code
    leadership = stage.broker.storage.leadership

    def fail(*_arguments: object, **_named: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(leadership, "apply_state", fail)
        create_topic(client, "lost")
    assert [("LeaderAndIsr", ZeroDivisionError)] == [
        (name, type(error)) for name, error in stage.faults
    ]
    other = stage.connect()
    assert 0 == create_topic(other, "t").error_code
    assert 0 == produce(other, "t").error_code


def test_a_broken_rule_behind_the_channel_is_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = MemoryBroker().start()

    def fail(*_arguments: object, **_named: object) -> None:
        raise InvariantBroken("an epoch went back")

    monkeypatch.setattr(stage.broker.storage.leadership, "apply_state", fail)
    with pytest.raises(InvariantBroken):
        create_topic(stage.connect(), "t")
    (reason,) = stage.fatal
    assert reason.startswith("LeaderAndIsr broke a rule of the broker")


def test_a_broken_rule_in_a_request_is_reported_with_the_state_of_the_partitions(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stage = MemoryBroker().start()
    client = stage.connect()
    create_topic(client, "t")
    partition = stage.broker.storage.replica_manager.partitions[TopicPartition("t", 0)]
    monkeypatch.setattr(partition, "append_fast", lambda *_: None)

    def fail(*_arguments: object, **_named: object) -> None:
        raise InvariantBroken("the watermark went back")

    monkeypatch.setattr(partition, "append", fail)
    with pytest.raises(InvariantBroken):
        produce(client, "t")
    (reason,) = stage.fatal
    assert "Produce" in reason
    told = [record.getMessage() for record in caplog.records if record.levelname != "INFO"]
    assert any("t-0 leader=1 epoch=0" in text for text in told)


def test_what_waits_for_topics_is_answered_by_the_one_timer_and_by_the_stop() -> None:
    stage = MemoryBroker().start()
    request = message_class("CreateTopicsRequest")
    assignment = request.CreatableReplicaAssignment(partition_index=0, broker_ids=[9])

    def ask(name: str, timeout_ms: int) -> MemoryClient:
        client = stage.connect()
        topic = request.CreatableTopic(
            name=name, num_partitions=-1, replication_factor=-1, assignments=[assignment]
        )
        assert client.ask("CreateTopics", 7, topics=[topic], timeout_ms=timeout_ms) is None
        return client

    client = ask("t", 1000)
    assert 1 == stage.broker.waiting.delayed_count
    stage.pass_time(1000)
    assert [7] == [topic.error_code for topic in client.answer("CreateTopics", 7).topics]
    ask("u", 60_000)
    stage.stop()
    assert 0 == stage.broker.waiting.delayed_count


def test_bounds_on_connections_follow_the_settings_while_the_broker_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", logger="kafka.network")
    stage = MemoryBroker(max_connections_per_ip="2").start()
    first, second, third = (stage.connect() for _ in range(3))
    stage.timers.run_until_idle()
    assert [False, False, True] == [client.is_closed for client in (first, second, third)]
    (listener,) = stage.network.listeners
    stage.broker.live.set_broker({"max.connections.per.ip": "3"}, {"max.connections": "3"})
    assert not stage.connect().is_closed
    bounds = stage.broker.listeners.quotas.bounds
    assert (3, 3) == (bounds.connections_max, bounds.per_address_max)
    stage.network.addresses["nowhere"] = None
    stage.broker.live.set_broker({"max.connections.per.ip.overrides": "nowhere:1"}, {})
    assert 3 == stage.broker.listeners.quotas.bounds.per_address_max
    assert "nowhere has no address" in caplog.text
    assert 104_857_600 == listener.limits.frame_bytes_max
    stage.stop()


def test_a_broker_does_not_start_with_an_override_for_a_host_without_address() -> None:
    stage = MemoryBroker(max_connections_per_ip_overrides="nowhere:1")
    stage.network.addresses["nowhere"] = None
    with pytest.raises(ConfigError, match="nowhere has no address"):
        stage.open()
    assert [] == stage.network.listeners
    assert [] == stage.store.session_ids()


def test_an_order_that_waits_for_the_store_is_not_carried_out_on_a_broker_that_has_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = MemoryBroker().start()
    read: Promise[dict[str, str]] = Promise()

    async def late(_path: str) -> dict[str, str]:
        return await read

    monkeypatch.setattr(stage.broker.dynamic, "_read", late)
    applied: list[object] = []
    leadership = stage.broker.storage.leadership

    def apply_one(*order: object, **_named: object) -> None:
        applied.append(order)

    monkeypatch.setattr(leadership, "apply_state", apply_one)
    request = message_class("LeaderAndIsrRequest")
    state = request.LeaderAndIsrTopicState(
        topic_name="t",
        partition_states=[
            request.LeaderAndIsrPartitionState(
                leader=1, isr=[1], replicas=[1], is_new=True, leader_epoch=0
            )
        ],
    )
    requested = request(
        controller_id=1,
        controller_epoch=leadership.controller_epoch,
        broker_epoch=stage.broker.epoch,
        topic_states=[state],
    )
    answer = stage.broker.serve_local("LeaderAndIsr", 7, requested)
    stage.timers.run_until_idle()
    assert not answer.is_kept
    stage.stop()
    read.keep({})
    stage.timers.run_until_idle()
    assert [] == applied
