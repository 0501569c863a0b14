"""Topics are created, made larger and deleted; refused with Kafka's codes and words."""

from __future__ import annotations

from typing import Any

import pytest

from engine.admin.topic_growth import MorePartitions
from engine.admin.topic_results import TopicResult
from engine.admin.topic_rules import CreatableTopic
from engine.host.coroutine import drive
from engine.ids import uuid_bytes
from engine.znode.values import PartitionAssignment, decode_config, decode_topic, encode_topic
from tests.unit.controller.admin import AdminBench
from tests.unit.controller.cluster import now

OK = (0, None)


def create(bench: AdminBench, *topics: CreatableTopic, **options: Any) -> Any:
    return bench.outcomes(bench.admin.create_topics, *topics, **{"timeout_ms": 1000, **options})


def grow(bench: AdminBench, *topics: MorePartitions, **options: Any) -> Any:
    return bench.outcomes(bench.admin.create_partitions, *topics, **{"timeout_ms": 1000, **options})


def delete(bench: AdminBench, *topics: str, **options: Any) -> Any:
    return bench.outcomes(bench.admin.delete_topics, *topics, **{"timeout_ms": 1000, **options})


def told(outcomes: dict[str, TopicResult]) -> dict[str, tuple[int, str | None]]:
    return {name: (each.code, each.message) for name, each in outcomes.items()}


def stored(bench: AdminBench, topic: str) -> dict[int, tuple[int, ...]]:
    path = f"/brokers/topics/{topic}"
    partitions = decode_topic(now(bench.cluster.admin.get(path))[0], path).partitions
    return {index: each.replicas for index, each in partitions.items()}


# -- create ------------------------------------------------------------------------------------


def test_a_topic_is_answered_when_all_partitions_have_leaders() -> None:
    bench = AdminBench(3)
    bench.cluster.store.take()
    outcomes = create(bench, CreatableTopic("t", 2, 2, configs=[("retention.ms", "1")]))
    outcome = outcomes["t"]
    assert OK == outcome[:2]
    assert (2, 2) == (outcome.partition_count, outcome.replication_factor)
    assert bench.cluster.controller.context.topic_ids["t"] == outcome.topic_id
    assert 2 == len(bench.cache.topics["t"])
    assert ["create /config/topics/t", "create /brokers/topics/t"] == bench.cluster.store.take()[0]
    data = now(bench.cluster.admin.get("/config/topics/t"))[0]
    assert b'{"version":1,"config":{"retention.ms":"1"}}' == data
    topic = decode_topic(now(bench.cluster.admin.get("/brokers/topics/t"))[0], "")
    assert topic.topic_id is not None
    assert outcome.topic_id == uuid_bytes(topic.topic_id)
    (set_here,) = [each for each in outcome.configs if each.name == "retention.ms"]
    assert ("1", 1) == (set_here.value, set_here.source.value)
    assert {5, 1} == {each.source.value for each in outcome.configs}


def test_the_topics_of_a_request_are_written_together() -> None:
    bench = AdminBench(1)
    bench.cluster.store.take()
    outcomes = create(bench, *(CreatableTopic(f"t{index}", 3, 1) for index in range(50)))
    assert {0} == {each.code for each in outcomes.values()}
    first, second = bench.cluster.store.take()
    assert (100, 1 + 50 + 150 + 150) == (len(first), len(second))


def test_defaults_come_from_the_broker() -> None:
    bench = AdminBench(2, num_partitions="3", default_replication_factor="2")
    outcome = create(bench, CreatableTopic("t"))["t"]
    assert (3, 2) == (outcome.partition_count, outcome.replication_factor)


def test_replicas_spread_over_racks() -> None:
    bench = AdminBench(4, racks={1: "a", 2: "a", 3: "b", 4: "b"})
    create(bench, CreatableTopic("t", 8, 2))
    for replicas in stored(bench, "t").values():
        assert {True, False} == {broker_id <= 2 for broker_id in replicas}


def test_an_assignment_is_taken_as_it_comes_even_with_unknown_brokers() -> None:
    bench = AdminBench(1)
    assignments = [(1, (1, 9)), (0, (9, 1))]
    assert OK == create(bench, CreatableTopic("t", assignments=assignments))["t"][:2]
    assert {0: (9, 1), 1: (1, 9)} == stored(bench, "t")


def test_only_validating_writes_nothing_and_gives_no_id() -> None:
    bench = AdminBench(1)
    bench.cluster.store.take()
    outcome = create(bench, CreatableTopic("t", 2, 1), validate_only=True)["t"]
    assert (0, None, None, 2, 1) == outcome[:5]
    assert [] == bench.cluster.store.take()


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_without_time_to_wait_a_created_topic_timed_out(timeout_ms: int) -> None:
    bench = AdminBench(1)
    outcome = create(bench, CreatableTopic("t", 1, 1), timeout_ms=timeout_ms)["t"]
    assert (7, None) == outcome[:2]
    assert (-1, -1) == (outcome.partition_count, outcome.replication_factor)
    assert outcome.topic_id is not None
    assert (1, (1,), 0) == bench.cluster.leader_isr_epoch("t")


def test_topics_that_are_late_time_out_alone() -> None:
    bench = AdminBench(1)
    answers: list[dict[str, TopicResult]] = []
    creation = bench.admin.create_topics(
        [CreatableTopic("t", 1, 1), CreatableTopic("u", assignments=[(0, (9,))])],
        timeout_ms=1000,
    )
    drive(creation).then(answers.append)
    bench.settle()
    assert [] == answers
    bench.cluster.clock.advance(1000)
    bench.settle()
    assert {"t": OK, "u": (7, None)} == told(answers[0])
    bench.waiting.check(["u"])
    assert 1 == len(answers)


TOO_LONG = "x" * 250
CASES: list[tuple[CreatableTopic, int, str]] = [
    (CreatableTopic("t", 1, 1), 36, "Topic 't' already exists."),
    (
        CreatableTopic("n", 1, 1, configs=[("a", None), ("b", None)]),
        40,
        "Null value not supported for topic configs: a,b",
    ),
    (
        CreatableTopic("n", 1, assignments=[(0, (1,))]),
        42,
        "Both numPartitions or replicationFactor and replicasAssignments were set. "
        "Both cannot be used at the same time.",
    ),
    (CreatableTopic("n", 0, 1), 37, "Number of partitions must be larger than 0."),
    (CreatableTopic("n", -5, 1), 37, "Number of partitions must be larger than 0."),
    (CreatableTopic("n", 1 << 30, 1), 37, "Number of partitions must not be larger than 100000."),
    (CreatableTopic("n", 1, 0), 38, "Replication factor must be larger than 0."),
    (CreatableTopic("n", 1, 4), 38, "Replication factor: 4 larger than available brokers: 1."),
    (CreatableTopic("", 1, 1), 17, "Topic name is invalid: the empty string is not allowed"),
    (CreatableTopic(".", 1, 1), 17, "Topic name is invalid: '.' is not allowed"),
    (CreatableTopic("..", 1, 1), 17, "Topic name is invalid: '..' is not allowed"),
    (
        CreatableTopic("bad name!", 1, 1),
        17,
        "Topic name is invalid: 'bad name!' contains one or more characters other than "
        "ASCII alphanumerics, '.', '_' and '-'",
    ),
    (
        CreatableTopic(TOO_LONG, 1, 1),
        17,
        f"Topic name is invalid: the length of '{TOO_LONG}' is longer than the max allowed "
        "length 249",
    ),
    (
        CreatableTopic("app_events", 1, 1),
        17,
        "Topic 'app_events' collides with existing topics: app.events",
    ),
    (
        CreatableTopic("n", assignments=[(0, (1,)), (1, (1, 2))]),
        39,
        "All partitions should have the same number of replicas",
    ),
    (
        CreatableTopic("n", assignments=[(0, (1, 1))]),
        39,
        "Duplicate replica assignment found: HashMap(0 -> ArrayBuffer(1, 1))",
    ),
    (
        CreatableTopic("n", assignments=[(0, (1,)), (2, (1,))]),
        39,
        "partitions should be a consecutive 0-based integer sequence",
    ),
    (CreatableTopic("n", 1, 1, configs=[("no.key", "1")]), 40, "Unknown topic config name: no.key"),
    (
        CreatableTopic("n", 1, 1, configs=[("retention.ms", "abc")]),
        40,
        "Invalid value abc for configuration retention.ms: Not a number of type LONG",
    ),
    (
        CreatableTopic("n", 1, 1, configs=[("min.insync.replicas", "0")]),
        40,
        "Invalid value 0 for configuration min.insync.replicas: Value must be at least 1",
    ),
    (
        CreatableTopic("n", 1, 1, configs=[("min.cleanable.dirty.ratio", "7")]),
        40,
        "Invalid value 7.0 for configuration min.cleanable.dirty.ratio: "
        "Value must be no more than 1",
    ),
    (
        CreatableTopic("n", 1, 1, configs=[("cleanup.policy", "shred")]),
        40,
        "Invalid value shred for configuration cleanup.policy: "
        "String must be one of: compact, delete",
    ),
    (
        CreatableTopic("n", 1, 1, configs=[("preallocate", "maybe")]),
        40,
        "Invalid value maybe for configuration preallocate: "
        "Expected value to be either true or false",
    ),
]


@pytest.mark.parametrize(("topic", "code", "message"), CASES, ids=[c[2][:50] for c in CASES])
def test_what_is_refused_and_how(topic: CreatableTopic, code: int, message: str) -> None:
    bench = AdminBench(1)
    create(bench, CreatableTopic("t", 1, 1), CreatableTopic("app.events", 1, 1))
    bench.cluster.store.take()
    outcomes = create(bench, topic, CreatableTopic("good", 1, 1))
    assert {topic.name: (code, message), "good": OK} == told(outcomes)
    assert not bench.cluster.exists("/brokers/topics/n")


def test_topics_of_one_request_collide_as_well() -> None:
    bench = AdminBench(1)
    outcomes = create(bench, CreatableTopic("a.b", 1, 1), CreatableTopic("a_b", 1, 1))
    message = "Topic 'a_b' collides with existing topics: a.b"
    assert {"a.b": OK, "a_b": (17, message)} == told(outcomes)


def test_topics_that_are_only_checked_do_not_collide_with_each_other() -> None:
    bench = AdminBench(1)
    topics = CreatableTopic("a.b", 1, 1), CreatableTopic("a_b", 1, 1)
    assert {"a.b": OK, "a_b": OK} == told(create(bench, *topics, validate_only=True))


def test_a_topic_that_goes_cannot_be_created() -> None:
    bench = AdminBench(1)
    create(bench, CreatableTopic("t", 1, 1))
    bench.node.channel.silent = {1}
    delete(bench, "t", timeout_ms=0)
    assert {"t": (36, "Topic 't' is marked for deletion.")} == told(
        create(bench, CreatableTopic("t", 1, 1))
    )


def test_a_topic_that_only_the_store_has_exists() -> None:
    bench = AdminBench(1)
    bench.is_listening = False
    create(bench, CreatableTopic("t", 1, 1), timeout_ms=0)
    expected = {"t": (36, "Topic 't' already exists."), "u": (7, None)}
    topics = (CreatableTopic("t", 1, 1), CreatableTopic("u", 1, 1))
    assert expected == told(create(bench, *topics, timeout_ms=0))


def test_a_config_that_was_left_behind_is_replaced() -> None:
    bench = AdminBench(1)
    now(bench.cluster.admin.create("/config/topics/t", b"old"))
    assert OK == create(bench, CreatableTopic("t", 1, 1))["t"][:2]
    path = "/config/topics/t"
    assert {} == decode_config(now(bench.cluster.admin.get(path))[0], path)


def test_a_store_that_fails_fails_all_topics() -> None:
    bench = AdminBench(1)
    now(bench.node.client.close())
    assert {"t": (-1, None)} == told(create(bench, CreatableTopic("t", 1, 1)))
    assert {"t": (-1, None)} == told(delete(bench, "t"))
    assert {"t": (-1, None)} == told(grow(bench, MorePartitions("t", 2)))


def test_two_requests_for_one_topic_create_it_once() -> None:
    bench = AdminBench(1, answers_later=True)
    answers: list[dict[str, TopicResult]] = []
    for _ in range(2):
        creation = bench.admin.create_topics([CreatableTopic("t.t", 1, 1)], timeout_ms=1000)
        drive(creation).then(answers.append)
    codes: list[dict[str, int]] = []
    drive(bench.auto.auto_create(["u"])).then(codes.append)
    drive(bench.auto.auto_create(["u"])).then(codes.append)
    bench.settle()
    expected = [(0, None), (36, "Topic 't.t' already exists.")]
    assert expected == sorted(
        (each.code, each.message) for (each,) in (a.values() for a in answers)
    )
    # A client that asks for a topic that is just being created asks again.
    assert [{"u": 3}, {"u": 5}] == codes


def test_a_topic_too_large_for_a_node_is_the_brokers_fault() -> None:
    bench = AdminBench(1)
    outcomes = create(bench, CreatableTopic("big", 99_999, 1), CreatableTopic("good", 1, 1))
    assert {"big": (-1, None), "good": OK} == told(outcomes)


def test_a_creation_that_nobody_waits_for_is_written_and_ends_without_its_leaders() -> None:
    bench = AdminBench(1, answers_later=True)
    topics = [CreatableTopic("t", 1, 1), CreatableTopic("u", assignments=[(0, (9,))])]
    answer = drive(bench.admin.create_topics(topics, timeout_ms=0x7FFFFFFF))
    bench.settle()
    assert (1, False) == (bench.waiting.delayed_count, answer.is_kept)
    answer.abandon()
    assert (0, True) == (bench.waiting.delayed_count, answer.is_kept)
    # The one whose client goes while the store has not answered does not begin to wait.
    late = [CreatableTopic("v", assignments=[(0, (9,))])]
    other = drive(bench.admin.create_topics(late, timeout_ms=0x7FFFFFFF))
    other.abandon()
    assert not other.is_kept
    bench.settle()
    assert (0, True) == (bench.waiting.delayed_count, other.is_kept)
    assert {0: (9,)} == stored(bench, "v")


# -- delete ------------------------------------------------------------------------------------


def test_deletion_is_answered_when_the_metadata_has_no_such_topic() -> None:
    bench = AdminBench(2)
    create(bench, CreatableTopic("t", 2, 2), CreatableTopic("u", 1, 1))
    assert {"t": OK, "none": (3, None), "a/b": (3, None)} == told(delete(bench, "t", "none", "a/b"))
    assert ["u"] == list(bench.cache.topics)
    assert OK == create(bench, CreatableTopic("t", 1, 1))["t"][:2]


def test_a_deletion_that_is_under_way_is_waited_for() -> None:
    bench = AdminBench(1)
    create(bench, CreatableTopic("t", 1, 1))
    bench.is_listening = False
    bench.node.channel.silent = {1}
    assert {"t": (7, None)} == told(delete(bench, "t", timeout_ms=0))
    assert None is delete(bench, "t", timeout_ms=100)
    bench.cluster.clock.advance(100)
    answers: list[dict[str, TopicResult]] = []
    drive(bench.admin.delete_topics(["t"], timeout_ms=100)).then(answers.append)
    bench.is_listening = True
    bench.cluster.controller._machines.send_metadata(
        [1], bench.cluster.controller.context.partitions()
    )
    bench.settle()
    assert {"t": OK} == told(answers[0])


# -- more partitions ---------------------------------------------------------------------------


def test_added_partitions_go_on_where_the_topic_ends() -> None:
    bench = AdminBench(3)
    create(bench, CreatableTopic("t", assignments=[(0, (2, 3)), (1, (3, 1))]))
    version = now(bench.cluster.admin.get("/brokers/topics/t"))[1].version
    assert {"t": OK} == told(grow(bench, MorePartitions("t", 4)))
    assert {0: (2, 3), 1: (3, 1), 2: (1, 3), 3: (2, 3)} == stored(bench, "t")
    assert version + 1 == now(bench.cluster.admin.get("/brokers/topics/t"))[1].version
    assert 4 == len(bench.cache.topics["t"])


def test_replicas_of_new_partitions_may_be_given() -> None:
    bench = AdminBench(3)
    create(bench, CreatableTopic("t", 1, 1))
    more = MorePartitions("t", 3, [(3,), (2,)])
    assert {"t": OK} == told(grow(bench, more, validate_only=True))
    assert 1 == len(stored(bench, "t"))
    assert {"t": OK} == told(grow(bench, more))
    assert [(3,), (2,)] == [stored(bench, "t")[1], stored(bench, "t")[2]]


@pytest.mark.parametrize("name", ["", ".", "..", "a/", "a//b", "a/./b", "a\0"])
def test_a_name_that_no_path_can_have_fails_all_that_grow(name: str) -> None:
    bench = AdminBench()
    create(bench, CreatableTopic("t", 1, 1))
    outcomes = grow(bench, MorePartitions("t", 2), MorePartitions(name, 2))
    assert {"t": (-1, None), name: (-1, None)} == told(outcomes)
    assert {"t": OK} == told(grow(bench, MorePartitions("t", 2)))


def test_without_time_to_wait_added_partitions_timed_out() -> None:
    bench = AdminBench(1)
    create(bench, CreatableTopic("t", 1, 1))
    assert {"t": (7, None)} == told(grow(bench, MorePartitions("t", 2), timeout_ms=0))
    assert 2 == len(stored(bench, "t"))


def test_growth_begins_again_over_what_another_wrote() -> None:
    bench = AdminBench(1, answers_later=True)
    create(bench, CreatableTopic("t", 1, 1))
    answers: list[dict[str, TopicResult]] = []
    for count in (3, 2, 4):
        more = [MorePartitions("t", count)]
        drive(bench.admin.create_partitions(more, timeout_ms=1000)).then(answers.append)
    bench.settle()
    shrink = "Topic currently has 3 partitions, which is higher than the requested 2."
    assert [(37, shrink), OK, OK] == [told(answer)["t"] for answer in answers]
    assert 4 == len(stored(bench, "t"))


GROWTH: list[tuple[MorePartitions, int, str | None]] = [
    (MorePartitions("ghost", 2), 3, "The topic 'ghost' does not exist."),
    (MorePartitions("a/b", 2), 3, "The topic 'a/b' does not exist."),
    (MorePartitions("t", 4), 37, "Topic already has 4 partitions."),
    (
        MorePartitions("t", 2),
        37,
        "Topic currently has 4 partitions, which is higher than the requested 2.",
    ),
    (MorePartitions("t", 200_000), 37, "Number of partitions must not be larger than 100000."),
    (MorePartitions("t", 5, [(9,)]), 39, "Unknown broker(s) in replica assignment: 9."),
    (MorePartitions("t", 5, [(9, 1, 7)]), 39, "Unknown broker(s) in replica assignment: 9, 7."),
    (
        MorePartitions("t", 6, [(1,)]),
        39,
        "Increasing the number of partitions by 2 but 1 assignments provided.",
    ),
    (MorePartitions("t", 5, [()]), 39, "Cannot have replication factor of 0 for partition id 4."),
    (
        MorePartitions("t", 5, [(1, 1)]),
        39,
        "Duplicate brokers not allowed in replica assignment: 1, 1 for partition id 4.",
    ),
    (
        MorePartitions("t", 6, [(1, 2), (2,)]),
        39,
        "Inconsistent replication factor between partitions, partition 0 has 1 while partitions "
        "[4] have replication factors [2], respectively.",
    ),
    (
        MorePartitions("moving", 2),
        60,
        "A partition reassignment is in progress for the topic 'moving'.",
    ),
    (MorePartitions("headless", 5), -1, None),
    (MorePartitions("garbled", 5), -1, None),
]


@pytest.mark.parametrize(("more", "code", "message"), GROWTH, ids=[str(g[2])[:50] for g in GROWTH])
def test_growth_that_is_refused(more: MorePartitions, code: int, message: str | None) -> None:
    bench = AdminBench(2)
    create(
        bench,
        CreatableTopic("t", 4, 1),
        CreatableTopic("good", 1, 1),
        CreatableTopic("moving", 1, 1),
    )
    create(bench, CreatableTopic("headless", 1, 1))
    for topic, partitions in (
        ("moving", {0: PartitionAssignment((1, 2), (2,))}),
        ("headless", {3: PartitionAssignment((1,))}),
    ):
        path = f"/brokers/topics/{topic}"
        current = decode_topic(now(bench.cluster.admin.get(path))[0], path)
        now(bench.cluster.admin.set(path, encode_topic(current._replace(partitions=partitions))))
    now(bench.cluster.admin.create("/brokers/topics/garbled", b"no json"))
    outcomes = grow(bench, more, MorePartitions("good", 2))
    assert {more.name: (code, message), "good": OK} == told(outcomes)


def test_a_topic_does_not_grow_while_too_few_brokers_live() -> None:
    bench = AdminBench(2)
    create(bench, CreatableTopic("t", 1, 2))
    bench.cluster.kill(2)
    bench.settle()
    refused = "Replication factor: 2 larger than available brokers: 1."
    assert {"t": (38, refused)} == told(grow(bench, MorePartitions("t", 2)))


# -- auto-creation -----------------------------------------------------------------------------


def test_topics_come_into_being_with_the_brokers_defaults() -> None:
    bench = AdminBench(1, num_partitions="2")
    codes: list[dict[str, int]] = []
    drive(bench.auto.auto_create(["t", "t", "bad name"])).then(codes.append)
    assert [{"bad name": 17, "t": 5}] == codes
    bench.settle()
    assert 2 == len(bench.cache.topics["t"])
    drive(bench.auto.auto_create(["t"])).then(codes.append)
    drive(bench.auto.auto_create(["?"])).then(codes.append)
    assert [{"t": 5}, {"?": 17}] == codes[1:]


def test_internal_topics_have_settings_of_their_own() -> None:
    bench = AdminBench(
        1,
        offsets_topic_replication_factor="1",
        transaction_state_log_replication_factor="1",
        transaction_state_log_min_isr="1",
    )
    drive(bench.auto.auto_create(["__consumer_offsets", "__transaction_state"]))
    bench.settle()
    assert [50, 50] == [len(bench.cache.topics[t]) for t in sorted(bench.cache.topics)]
    config = {
        topic: decode_config(now(bench.cluster.admin.get(f"/config/topics/{topic}"))[0], topic)
        for topic in bench.cache.topics
    }
    assert {
        "compression.type": "producer",
        "cleanup.policy": "compact",
        "segment.bytes": "104857600",
    } == config["__consumer_offsets"]
    assert {
        "compression.type": "uncompressed",
        "cleanup.policy": "compact",
        "min.insync.replicas": "1",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    } == config["__transaction_state"]


def test_too_few_brokers_are_an_error_of_the_request() -> None:
    bench = AdminBench(1)
    codes: list[dict[str, int]] = []
    drive(bench.auto.auto_create(["__consumer_offsets"])).then(codes.append)
    assert [{"__consumer_offsets": 38}] == codes


def test_a_fault_of_one_who_waits_leaves_no_other_waiting() -> None:
    bench = AdminBench(1)
    waits = [bench.waiting.await_leaders({"t": 1}, 1000) for _ in range(2)]

    def fail() -> None:
        raise KeyError("a fault of our own")

    waits[0].watch(fail)
    with pytest.raises(KeyError):
        bench.waiting.stop()
    assert [True, True] == [wait.is_kept for wait in waits]
