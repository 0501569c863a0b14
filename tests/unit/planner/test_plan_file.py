from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest

from engine.model import TopicPartition
from engine.planner.constraints import LevelGoal
from engine.planner.plan_fields import BadPlanFile
from engine.planner.plan_file import (
    TargetRow,
    changes_from_targets,
    plan_from_json,
    plan_to_json,
    targets_to_json,
)
from engine.planner.planner import balance, drain
from engine.planner.sampled_rates import SampledRates, with_rates
from tests.unit.planner.clusters import cluster

MODEL = cluster(["a", "b", "c", "a"], [(1, 2), (2, 3), (1, 3), (4, 2)])


def test_a_plan_survives_its_file() -> None:
    plan = drain(MODEL, [1])
    read = plan_from_json(plan_to_json(plan))
    assert read.plan is not None
    assert plan.changes == read.plan.changes
    assert plan == read.plan._replace(warnings=list(plan.warnings))


RATES = SampledRates(5000, {TopicPartition("t", 0): 7, TopicPartition("u", 3): 0})


def test_samples_of_rates_survive_a_file_of_a_plan() -> None:
    plan = balance(with_rates(MODEL, RATES), frozenset(LevelGoal))
    read = plan_from_json(plan_to_json(plan, "cluster", RATES))
    assert read.rates == RATES
    assert read.plan is not None
    assert plan.brokers == read.plan.brokers
    assert plan.after == read.plan.after
    assert plan_from_json(plan_to_json(plan)).rates is None


def test_a_plan_of_a_version_without_rates_is_read() -> None:
    plan = drain(MODEL, [1])
    text = re.sub(r', "(in|out)_(bytes_per_s|max_over_mean)": [0-9.]+', "", plan_to_json(plan))
    assert "bytes_per_s" not in text
    assert plan == plan_from_json(text).plan


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
        ("{", "line 1, column 2: is not JSON from here on"),
        ('{"partitions":[\n{"topic" "t"}]}', "line 2, column 10: is not JSON"),
        ("[" * 100_000, "nested too deep"),
        ('{"version":' + "9" * 5000 + "}", "a number of too many digits"),
        ('{"version":NaN}', "has NaN, which is no number"),
        ('{"version":1,"version":1}', 'has "version" twice in one object'),
        ("[]", "is not a JSON object"),
        ('{"version":2,"partitions":[]}', "version: is 2, not 1"),
        ('{"version":"1","partitions":[]}', 'version: is "1", not a whole number'),
        ('{"version":1}', "partitions: is missing"),
        ('{"partitions":{}}', "partitions: is {}, not a list"),
        ('{"partitions":[1]}', r"partitions\[0\]: is not an object"),
        ('{"partitions":[{"partition":0,"replicas":[1]}]}', r"\[0\].topic: is missing"),
        ('{"partitions":[{"topic":"","partition":0}]}', r"\[0\].topic: is empty"),
        (
            '{"partitions":[{"topic":"t","partition":"0","replicas":[1]}]}',
            r'partitions\[0\].partition: is "0", not a whole number',
        ),
        (
            '{"partitions":[{"topic":"t","partition":-1,"replicas":[1]}]}',
            r"partitions\[0\].partition: is -1, not a whole number",
        ),
        (
            '{"partitions":[{"topic":"t","partition":2147483648,"replicas":[1]}]}',
            "is 2147483648, not a whole number",
        ),
        (
            '{"partitions":[{"topic":"t","partition":0,"replicas":[]}]}',
            r"\[0\].replicas: is empty",
        ),
        (
            '{"partitions":[{"topic":"t","partition":0,"replicas":[1,true]}]}',
            r"replicas: is \[1, true\], not a list of brokers",
        ),
        (
            '{"partitions":[{"topic":"t","partition":0,"replicas":[1,1]}]}',
            r"replicas: has a broker twice: \[1, 1\]",
        ),
        (
            '{"partitions":[{"topic":"t","partition":0,"replicas":[1],"log_dirs":["a","b"]}]}',
            "log_dirs: has 2 paths for 1 replicas",
        ),
        ('{"partitions":[],"kctl":[]}', "kctl: is not an object"),
        ('{"partitions":[],"kctl":{"format":9}}', "kctl.format: is not known here"),
        ('{"partitions":[],"kctl":{"format":1}}', "kctl.partitions: is missing"),
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


def damaged(document: Any, at: random.Random) -> Any:
    """Return a document with one value of it removed, doubled, or made another kind."""
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        keys = value if isinstance(value, dict) else range(len(value))
        for key in keys:
            places.append((value, key))
            if isinstance(value[key], dict | list):
                walk(value[key])

    walk(document)
    holder, key = at.choice(places)
    match at.randrange(4):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            holder.insert(key, holder[key])
        case 2 if isinstance(holder[key], list) and holder[key]:
            holder[key].pop()
        case _:
            holder[key] = at.choice([None, -1, 1.5, "x", [], {}, True, 1 << 70, [[]], {"x": 1}])
    return document


#: What only Python says.
PYTHONS = re.compile(r"object has no|Error|expected|argument|NoneType|<class|unhashable|__|zip\(")


def test_each_damage_of_a_file_is_named_by_its_place_or_changes_nothing_that_is_read() -> None:
    model = cluster(["a", "b", "c", "a"], [(1, 2), (2, 3), (1, 3), (4, 2)])
    whole = json.loads(plan_to_json(drain(model, [1]), "cluster", RATES))
    refused = 0
    for seed in range(2000):
        text = json.dumps(damaged(json.loads(json.dumps(whole)), random.Random(seed)))
        try:
            read = plan_from_json(text)
        except BadPlanFile as error:
            refused += 1
            assert error.place, (seed, str(error))
            assert not PYTHONS.search(str(error)), (seed, str(error))
        else:
            # What is read can be worked with.
            if read.plan is not None:
                assert plan_to_json(read.plan)
                assert [change.log_dir_moves for change in read.plan.changes]
    assert refused > 1000
