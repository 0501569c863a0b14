"""Orders in which a real 3.9.1 broker gave settings and groups (`*_order_3_9_1.json`), and those
of the classes of Scala 2.13.15 (`scala_orders_2_13.json`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from engine.hash_order import (
    SMALL_MAP_MAX,
    in_any_ref_map_order,
    in_concurrent_hash_order,
    in_hash_order,
    in_immutable_hash_set_order,
    in_java_hash_order,
    numbers_in_long_map_order,
    partition_indexes_in_hash_order,
    partitions_in_hash_order,
)
from engine.java_text import java_string_hash
from engine.model import TopicPartition

REAL: dict[str, list[str]] = json.loads(
    (Path(__file__).parent / "hash_order_3_9_1.json").read_text()
)

SCALA: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "scala_orders_2_13.json").read_text()
)


@pytest.mark.parametrize("requested_value", REAL)
def test_names_come_in_the_order_of_a_real_broker(requested_value: str) -> None:
    assert REAL[requested_value] == in_hash_order(sorted(REAL[requested_value]))


def test_names_of_one_hash_keep_the_order_in_which_they_came() -> None:
    assert java_string_hash("Aa") == java_string_hash("BB")
    assert ["BB", "Aa"] == in_hash_order(["BB", "Aa"])


def test_a_chain_is_ordered_by_hashes_with_a_sign() -> None:
    # Both are in chain 0 of 16: String.hashCode gives -2147483648 and 0.
    assert [-0x80000000, 0] == [java_string_hash("polygenelubricants"), java_string_hash("")]
    assert ["polygenelubricants", ""] == in_hash_order(["", "polygenelubricants"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("retention.ms", -1_339_220_362),
        ("\u00e9", 233),
        ("\U0001f600", 1_772_899),
    ],
)
def test_the_hash_is_that_of_a_java_string(text: str, expected: int) -> None:
    assert expected == java_string_hash(text)


def test_a_java_map_grows_later_and_keeps_the_order_of_arrival_in_a_chain() -> None:
    assert ["Aa", "BB", "a", "Z"] == in_java_hash_order(["Z", "Aa", "BB", "a"])
    assert ["BB", "Aa"] == in_java_hash_order(["BB", "Aa"])
    # Twelve names in sixteen chains; with a thirteenth there are thirty-two, and "p" is in 16.
    twelve = [chr(code) for code in range(ord("p"), ord("p") + 12)]
    assert "p" == in_java_hash_order(twelve)[0]
    assert "\x80" == in_java_hash_order([*twelve, "\x80"])[0]


def test_groups_come_in_the_order_of_a_real_broker() -> None:
    real = json.loads((Path(__file__).parent / "group_order_3_9_1.json").read_text())
    assert real["listed"] == in_concurrent_hash_order(real["put"])
    assert real["listed"] != in_concurrent_hash_order(sorted(real["put"]))


def test_a_concurrent_map_stays_as_large_as_it_was() -> None:
    # "p" is in chain 0 of 16 and 16 of 32.
    assert ["p", "a"] == in_concurrent_hash_order(["a", "p"])
    assert ["p", "a"] == in_concurrent_hash_order(["a", "p"], held_count=11)
    assert ["a", "p"] == in_concurrent_hash_order(["a", "p"], held_count=12)


def test_a_chain_that_is_taken_apart_turns_around_what_is_before_its_last_run() -> None:
    # All are in chain 0 of 16; but for "@" they are in 16 of 32, and "p" is their last run.
    chain = ["0", "P", "@", "p"]
    assert chain == in_concurrent_hash_order(chain)
    assert ["@", "P", "0", "p"] == in_concurrent_hash_order(chain, held_count=12)


def test_partitions_come_in_the_order_of_their_own_hash() -> None:
    found = partitions_in_hash_order(
        (TopicPartition("t23", index) for index in range(3)), are_hosted=True
    )
    assert [key.partition for key in found] == [1, 0, 2]
    # Twelve are in a table of thirty-two chains.
    many = partitions_in_hash_order(
        (TopicPartition("t9", index) for index in range(12)), are_hosted=True
    )
    assert [key.partition for key in many] == [0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]


def test_brokers_come_in_the_order_of_a_scala_long_map() -> None:
    # Of a real broker's Metadata, and of one that was asked as soon as it knew of all three.
    assert numbers_in_long_map_order((1, 2, 3), 3) == [2, 3, 1]
    assert numbers_in_long_map_order((1, 2, 3), 16) == [1, 2, 3]
    assert numbers_in_long_map_order((0, 1, 2, 3), 4) == [0, 2, 3, 1]
    many = numbers_in_long_map_order(range(40), 0)
    assert sorted(many) == list(range(40))


@pytest.mark.parametrize("sets", SCALA, ids=lambda sets: str(len(sets["names"])))
def test_names_come_in_the_order_of_the_classes_of_scala(sets: dict[str, Any]) -> None:
    names = sets["names"]
    assert sets["any_ref_map"] == in_any_ref_map_order(names, sets["capacity"])
    if len(names) > SMALL_MAP_MAX:
        assert sets["hash_set"] == list(in_immutable_hash_set_order(names))


@pytest.mark.parametrize("count", [1, 11, 12, 60])
def test_partitions_of_a_topic_come_as_in_a_map_of_theirs_alone(count: int) -> None:
    partitions = [TopicPartition("a-topic", index) for index in range(count)]
    order = partition_indexes_in_hash_order("a-topic", range(count), count)
    assert partitions_in_hash_order(partitions) == [TopicPartition("a-topic", i) for i in order]
