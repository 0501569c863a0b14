"""Steps from a cluster's state to a declared one."""

from __future__ import annotations

from engine.declared.comparison import compare
from engine.declared.resources import (
    ALL_BROKERS,
    ClusterSetting,
    CurrentState,
    DeclaredPassword,
    DeclaredState,
    DeclaredTopic,
    DeclaredUser,
)
from engine.declared.step_execution import step_groups
from engine.declared.steps import AddPartitions, MoveReplicas
from engine.security.scram import ScramMechanism
from tests.unit.declared.states import BROKERS, EVERY_KIND, rule, steps, told, topic

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512


def test_a_topic_that_is_not_there_is_created_with_its_settings() -> None:
    declared = DeclaredState(
        topics={"t": DeclaredTopic(3, 2, (), {"retention.ms": "5", "segment.ms": None})}
    )
    (step,) = steps(declared, CurrentState(BROKERS))
    assert [
        "create topics t partitions:None>3 replication_factor:None>2 retention.ms:None>5"
    ] == told([step])


def test_partitions_with_different_replicas_are_created_alike_and_then_moved() -> None:
    declared = DeclaredState(topics={"t": DeclaredTopic(placement=((1,), (3, 2)))})
    assert [
        "create topics t partitions:None>2 placement:None>1,3",
        "move topics t placement:1,3>1,3:2",
    ] == told(steps(declared, CurrentState(BROKERS)))
    even = DeclaredState(topics={"t": DeclaredTopic(placement=((1, 2), (3, 2)))})
    assert ["create topics t partitions:None>2 placement:None>1:2,3:2"] == told(
        steps(even, CurrentState(BROKERS))
    )


def test_what_is_as_declared_needs_no_step() -> None:
    declared = DeclaredState(
        kinds=EVERY_KIND,
        topics={"t": DeclaredTopic(2, 1, (), {"retention.ms": "5", "segment.ms": None})},
        users={"a": DeclaredUser({SHA_512: None})},
        acls=frozenset((rule("a"),)),
        quotas={(("user", "a"),): {"producer_byte_rate": 5.0}},
        brokers={ALL_BROKERS: {"log.cleaner.threads": "2"}},
    )
    cluster = CurrentState(
        BROKERS,
        {"t": topic((1,), (2,), retention_ms="5")},
        {"a": {SHA_512: 4096}},
        frozenset((rule("a"),)),
        {(("user", "a"),): {"producer_byte_rate": 5.0}},
        {ALL_BROKERS: {"log.cleaner.threads": ClusterSetting("2", "int", is_set=True)}},
    )
    assert [] == steps(declared, cluster, prunes=True)


def test_settings_are_set_and_null_unsets_and_others_stay() -> None:
    cluster = CurrentState(BROKERS, {"t": topic((1,), retention_ms="5", segment_ms="7", flush="1")})
    declared = DeclaredState(
        topics={"t": DeclaredTopic(settings={"retention.ms": "6", "segment.ms": None})}
    )
    assert ["change topics t retention.ms:5>6 segment.ms:7>None"] == told(steps(declared, cluster))


def test_pruning_unsets_settings_that_are_not_declared_but_those_of_moves() -> None:
    throttled = {"leader_replication_throttled_replicas": "0:1"}
    cluster = CurrentState(BROKERS, {"t": topic((1,), retention_ms="5", **throttled)})
    declared = DeclaredState(topics={"t": DeclaredTopic()})
    assert [] == steps(declared, cluster)
    pruned = steps(declared, cluster, prunes=True)
    assert ["change topics t retention.ms:5>None"] == told(pruned)
    assert not pruned[0].deletes


def test_partitions_grow_and_never_shrink() -> None:
    cluster = CurrentState(BROKERS, {"t": topic((1,), (2,))})
    grown = DeclaredState(topics={"t": DeclaredTopic(partitions=4)})
    assert ["change topics t partitions:2>4"] == told(steps(grown, cluster))
    shrunk = compare(DeclaredState(topics={"t": DeclaredTopic(partitions=1)}), cluster)
    assert [] == shrunk.steps
    assert ["topics: t: has 2 partitions, more than the declared 1"] == list(
        map(str, shrunk.faults)
    )


def test_another_replication_factor_or_placement_is_a_move() -> None:
    cluster = CurrentState(BROKERS, {"t": topic((1, 2), (2, 3)), "u": topic((1, 2), (2, 3))})
    declared = DeclaredState(
        topics={
            "t": DeclaredTopic(replication_factor=3),
            "u": DeclaredTopic(placement=((1, 2), (3, 2))),
        }
    )
    assert [
        "move topics t replication_factor:2>3",
        "move topics u placement:1:2,2:3>1:2,3:2",
    ] == told(steps(declared, cluster))


def test_partitions_with_different_replicas_are_brought_to_one_number() -> None:
    cluster = CurrentState(BROKERS, {"t": topic((1,), (2, 3))})
    declared = DeclaredState(topics={"t": DeclaredTopic(replication_factor=2)})
    assert ["move topics t replication_factor:1 to 2>2"] == told(steps(declared, cluster))


def test_added_partitions_are_placed_as_declared() -> None:
    cluster = CurrentState(BROKERS, {"t": topic((1, 2))})
    declared = DeclaredState(topics={"t": DeclaredTopic(placement=((1, 2), (3, 1)))})
    (step,) = steps(declared, cluster)
    assert AddPartitions("t", 2, ((3, 1),)) == step.operation


def test_added_partitions_with_another_number_of_replicas_move_later() -> None:
    placement = ((1, 2), (3, 1))
    cluster = CurrentState(BROKERS, {"t": topic((1,))})
    declared = DeclaredState(topics={"t": DeclaredTopic(placement=placement)})
    assert [AddPartitions("t", 2, ()), MoveReplicas("t", None, placement)] == [
        step.operation for step in steps(declared, cluster)
    ]


def test_what_no_broker_can_hold_is_a_fault() -> None:
    declared = DeclaredState(
        topics={
            "t": DeclaredTopic(replication_factor=4),
            "u": DeclaredTopic(placement=((1, 9),)),
        },
        brokers={"7": {"log.cleaner.threads": "2"}},
    )
    assert [
        "brokers: 7: no such broker is alive",
        "topics: t: replication_factor 4: only 3 brokers are alive",
        "topics: u: placement: no such broker is alive: 9",
    ] == list(map(str, compare(declared, CurrentState(BROKERS)).faults))


def test_a_dead_broker_may_stay_where_it_is_declared() -> None:
    cluster = CurrentState(frozenset((1,)), {"t": topic((1, 2))})
    for declared in (DeclaredTopic(placement=((1, 2),)), DeclaredTopic(replication_factor=2)):
        assert [] == steps(DeclaredState(topics={"t": declared}), cluster)


def test_more_in_sync_replicas_are_demanded_once_they_are_there() -> None:
    declared = DeclaredState(
        topics={
            "t": DeclaredTopic(
                replication_factor=3, settings={"min.insync.replicas": "2", "segment.ms": "5"}
            )
        }
    )
    assert [
        "change topics t segment.ms:None>5",
        "move topics t replication_factor:1>3",
        "change topics t min.insync.replicas:None>2",
    ] == told(steps(declared, CurrentState(BROKERS, {"t": topic((1,))})))


def test_as_many_in_sync_replicas_as_there_are_need_no_wait() -> None:
    declared = DeclaredState(
        topics={"t": DeclaredTopic(replication_factor=3, settings={"min.insync.replicas": "2"})}
    )
    assert [
        "change topics t min.insync.replicas:None>2",
        "move topics t replication_factor:2>3",
    ] == told(steps(declared, CurrentState(BROKERS, {"t": topic((1, 2))})))


def test_fewer_in_sync_replicas_are_demanded_before_they_go() -> None:
    declared = DeclaredState(
        topics={"t": DeclaredTopic(replication_factor=1, settings={"min.insync.replicas": "1"})}
    )
    cluster = CurrentState(BROKERS, {"t": topic((1, 2, 3), min_insync_replicas="2")})
    assert [
        "change topics t min.insync.replicas:2>1",
        "move topics t replication_factor:3>1",
    ] == told(steps(declared, cluster))


def test_values_are_compared_as_what_they_mean() -> None:
    current = {
        "ratio": ClusterSetting("0.5", "double", is_set=True),
        "policy": ClusterSetting("compact,delete", "list", is_set=True),
        "flag": ClusterSetting("true", "boolean", is_set=True),
        "secret": ClusterSetting(None, "password", is_set=True, is_sensitive=True),
    }
    same = {"ratio": "0.50", "policy": "compact, delete", "flag": "TRUE", "secret": "unknown"}
    cluster = CurrentState(BROKERS, brokers={"1": current})
    assert [] == steps(DeclaredState(brokers={"1": same}), cluster)
    other = {"ratio": "0.51", "policy": "delete", "flag": "no"}
    assert ["change brokers 1 flag:true>no policy:compact,delete>delete ratio:0.5>0.51"] == told(
        steps(DeclaredState(brokers={"1": other}), cluster)
    )


def test_a_setting_of_a_file_of_the_broker_is_not_one_that_was_set() -> None:
    cluster = CurrentState(
        BROKERS, brokers={"1": {"num.io.threads": ClusterSetting("8", "int", is_set=False)}}
    )
    declared = DeclaredState(brokers={"1": {"num.io.threads": "8"}})
    assert ["change brokers 1 num.io.threads:None>8"] == told(steps(declared, cluster))
    assert [] == steps(DeclaredState(brokers={"1": {"num.io.threads": None}}), cluster)


def test_secrets_are_not_shown() -> None:
    declared = DeclaredState(
        brokers={ALL_BROKERS: {"listener.name.x.ssl.keystore.password": "geheim"}}
    )
    found = steps(declared, CurrentState(BROKERS, brokers={ALL_BROKERS: {}}))
    assert ["change brokers default listener.name.x.ssl.keystore.password:None>(hidden)"] == told(
        found
    )
    assert "geheim" not in repr(DeclaredPassword("P", "geheim"))


def test_users_get_passwords_that_they_have_not() -> None:
    declared = DeclaredState(
        users={
            "new": DeclaredUser({SHA_256: 8192, SHA_512: None}),
            "old": DeclaredUser({SHA_512: 8192}),
        }
    )
    assert [
        "create users new SCRAM-SHA-256:None>8192 iterations",
        "create users new SCRAM-SHA-512:None>a password",
        "change users old SCRAM-SHA-512:4096 iterations>8192 iterations",
    ] == told(steps(declared, CurrentState(BROKERS, users={"old": {SHA_512: 4096}})))


def test_quotas_that_are_not_declared_stay() -> None:
    entity = (("user", "a"),)
    cluster = CurrentState(BROKERS, quotas={entity: {"request_percentage": 50.0}})
    declared = DeclaredState(
        quotas={entity: {"producer_byte_rate": 1.5}, (("ip", None),): {"x": 2.0}}
    )
    assert [
        "create quotas ip=<default> x:None>2",
        "change quotas user=a producer_byte_rate:None>1.5",
    ] == told(steps(declared, cluster))


def test_pruning_deletes_what_is_of_a_declared_kind_and_not_declared() -> None:
    cluster = CurrentState(
        BROKERS,
        {"t": topic((1,)), "__offsets": topic((1,)), "kafka": topic((1,), internal=True)},
        {"a": {SHA_512: 4096}},
        frozenset((rule("a"),)),
        {(("user", "a"),): {"producer_byte_rate": 5.0}},
        {"1": {"log.cleaner.threads": ClusterSetting("2", "int", is_set=True)}},
    )
    assert [] == steps(DeclaredState(), cluster, prunes=True)
    pruned = steps(DeclaredState(kinds=EVERY_KIND), cluster, prunes=True)
    assert [
        "change brokers 1 log.cleaner.threads:2>None",
        "delete acls -",
        "delete quotas user=a producer_byte_rate:5>None",
        "delete users a SCRAM-SHA-512:4096 iterations>None",
        "delete topics t partitions:1>None",
    ] == told(pruned)
    assert [False, True, True, True, True] == [step.deletes for step in pruned]


def test_what_kraft_sets_for_all_brokers_is_not_unset() -> None:
    shared = {"min.insync.replicas": ClusterSetting("1", "int", is_set=True)}
    for declared in ({}, {ALL_BROKERS: {}}):
        state = DeclaredState(kinds=EVERY_KIND, brokers=declared)
        cluster = CurrentState(BROKERS, brokers={ALL_BROKERS: shared})
        assert [] == steps(state, cluster, prunes=True)


def test_kept_topics_are_not_deleted() -> None:
    cluster = CurrentState(BROKERS, {"_schemas": topic((1,)), "my_schemas": topic((1,))})
    declared = DeclaredState(kinds=EVERY_KIND, kept_topics=("_.*",))
    assert ["delete topics my_schemas partitions:1>None"] == told(
        steps(declared, cluster, prunes=True)
    )


def test_rules_are_created_before_others_are_deleted_and_moves_come_between() -> None:
    declared = DeclaredState(
        kinds=EVERY_KIND,
        topics={"t": DeclaredTopic(replication_factor=2)},
        acls=frozenset((rule("new"),)),
    )
    cluster = CurrentState(BROKERS, {"t": topic((1,))}, acls=frozenset((rule("old"),)))
    found = steps(declared, cluster, prunes=True)
    assert ["create acls -", "move topics t replication_factor:1>2", "delete acls -"] == told(found)
    assert [1, 1, 1] == [len(group) for group in step_groups(found)]
