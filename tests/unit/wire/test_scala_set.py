"""The order of a Scala set; larger sets are among Kafka's kept answers."""

from __future__ import annotations

import pytest

from engine.java_text import java_string_hash
from engine.model import TopicPartition
from engine.wire.scala_set import scala_order


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0), ("a", 97), ("orders", -1008770331), ("😀", 1772899), ("x" * 40, 847293440)],
)
def test_string_hash_is_javas(text: str, value: int) -> None:
    assert value == java_string_hash(text)


def test_order_does_not_depend_on_arrival_in_a_small_set() -> None:
    one, two, three = (TopicPartition("t", n) for n in (0, 1, 2))
    assert scala_order([[one], [two], [three]]) == scala_order([[three, two], [one]])


def test_repetitions_are_dropped() -> None:
    one = TopicPartition("t", 0)
    assert [one] == scala_order([[one, one], [one]])


def test_order_of_a_real_transaction() -> None:
    added = [
        [TopicPartition("ledger", 1)],
        [TopicPartition("audit", 0), TopicPartition("ledger", 0)],
    ]
    names = [str(partition) for partition in scala_order(added)]
    assert ["ledger-1", "audit-0", "ledger-0"] == names
