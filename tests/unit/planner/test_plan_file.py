from __future__ import annotations

import json

import pytest

from engine.model import TopicPartition
from engine.planner.plan_file import (
    BadPlanFile,
    TargetRow,
    changes_from_targets,
    plan_from_json,
    plan_to_json,
    targets_to_json,
)
from engine.planner.planner import balance, drain
from tests.unit.planner.clusters import cluster

MODEL = cluster(["a", "b", "c", "a"], [(1, 2), (2, 3), (1, 3), (4, 2)])


def test_a_plan_survives_its_file() -> None:
    plan = drain(MODEL, [1])
    read = plan_from_json(plan_to_json(plan))
    assert read.plan is not None
    assert plan.changes == read.plan.changes
    assert plan == read.plan._replace(warnings=list(plan.warnings))


def test_a_file_has_the_rows_of_kafka() -> None:
    plan = balance(cluster([None] * 2, [(1,), (1,)]))
    document = json.loads(plan_to_json(plan))
    assert 1 == document["version"]
    assert [{"topic": "t", "partition": 1, "replicas": [2], "log_dirs": ["any"]}] == document[
        "partitions"
    ]


def test_an_empty_plan_is_a_file_too() -> None:
    plan = balance(cluster([None] * 2, [(1,), (2,)]))
    assert plan_from_json(plan_to_json(plan)).plan == plan


def test_a_file_of_kafka_starts_from_where_the_cluster_is() -> None:
    text = (
        '{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[3,2]},'
        '{"topic":"t","partition":1,"replicas":[2,3],"log_dirs":["any","any"]}]}'
    )
    read = plan_from_json(text)
    assert read.plan is None
    assert [TargetRow("t", 0, (3, 2)), TargetRow("t", 1, (2, 3))] == read.rows
    changes = changes_from_targets(MODEL, read.rows)
    assert [((1, 2), (3, 2), (3,))] == [(c.old_replicas, c.new_replicas, c.added) for c in changes]


def test_a_move_between_directories_is_a_change() -> None:
    row = TargetRow("t", 0, (1, 2), ("/b", "any"))
    partition = MODEL.partitions[0]._replace(log_dirs=("/a", "/a"))
    [change] = changes_from_targets(MODEL._replace(partitions=[partition]), [row])
    assert ((1, "/a", "/b"),) == change.log_dir_moves


def test_assignments_are_one_line() -> None:
    targets = {TopicPartition("t", 1): (2, 1), TopicPartition("t", 0): (1,)}
    assert (
        '{"version":1,"partitions":['
        '{"topic":"t","partition":0,"replicas":[1],"log_dirs":["any"]},'
        '{"topic":"t","partition":1,"replicas":[2,1],"log_dirs":["any","any"]}]}'
    ) == targets_to_json(targets)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a JSON object"),
        ('{"version":2,"partitions":[]}', "version: is 2, not 1"),
        ('{"version":1}', "partitions: is not a list"),
        ('{"partitions":[1]}', r"partitions\[0\]: is not an object"),
        ('{"partitions":[{"partition":0,"replicas":[1]}]}', "has no topic"),
        ('{"partitions":[{"topic":"t","partition":-1,"replicas":[1]}]}', "has no partition"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":[]}]}', "no list of replicas"),
        ('{"partitions":[{"topic":"t","partition":0,"replicas":[1,1]}]}', "a broker twice"),
        (
            '{"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":["a","b"]}]}',
            "2 log_dirs for 1 replicas",
        ),
        ('{"partitions":[],"kctl":{"format":9}}', "another format"),
        ('{"partitions":[],"kctl":{"format":1}}', "is damaged"),
    ],
)
def test_what_is_no_plan_is_said(text: str, message: str) -> None:
    with pytest.raises(BadPlanFile, match=message):
        plan_from_json(text)


def test_a_partition_twice_is_no_plan() -> None:
    row = '{"topic":"t","partition":0,"replicas":[1]}'
    with pytest.raises(BadPlanFile, match="t-0 is there twice"):
        plan_from_json(f'{{"partitions":[{row},{row}]}}')


def test_a_partition_that_is_not_there_is_said() -> None:
    with pytest.raises(BadPlanFile, match="other-0: is not in the cluster"):
        changes_from_targets(MODEL, [TargetRow("other", 0, (1,))])
