"""What members of a group of consumers send each other: Java's bytes, both ways."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.assignors.subscription import Subscription
from engine.client.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from engine.errors import WireError
from engine.model import TopicPartition

#: As a console consumer of 3.9.1 sent them: of one topic, without a rack.
_SUBSCRIPTION = base64.b64decode("AAMAAAABAAZjbGlja3P/////AAAAAP///////w==")
_ASSIGNMENT = base64.b64decode("AAMAAAABAAZjbGlja3MAAAADAAAAAAAAAAEAAAAC/////w==")


def test_a_subscription_is_javas() -> None:
    subscription = Subscription(("clicks",))
    assert _SUBSCRIPTION == encode_subscription(subscription)
    assert subscription == decode_subscription(_SUBSCRIPTION, None)


def test_an_assignment_is_javas() -> None:
    partitions = tuple(TopicPartition("clicks", number) for number in range(3))
    assert _ASSIGNMENT == encode_assignment(reversed(partitions))
    assert partitions == decode_assignment(_ASSIGNMENT)


@given(st.lists(st.text(max_size=5), max_size=4, unique=True), st.none() | st.text(min_size=1))
def test_a_subscription_survives(topics: list[str], rack: str | None) -> None:
    subscription = Subscription(tuple(sorted(topics)), "i", rack)
    assert subscription == decode_subscription(encode_subscription(subscription), "i")


@given(st.sets(st.tuples(st.text(max_size=4), st.integers(0, 99)), max_size=9))
def test_an_assignment_survives(keys: set[tuple[str, int]]) -> None:
    partitions = tuple(sorted(TopicPartition(*key) for key in keys))
    assert partitions == decode_assignment(encode_assignment(partitions))


def test_no_bytes_are_no_partitions_and_damaged_ones_are_none() -> None:
    assert () == decode_assignment(b"")
    assert decode_assignment(b"\0") is None
    assert decode_assignment(_ASSIGNMENT[:9]) is None


@pytest.mark.parametrize("data", [b"", b"\0", _SUBSCRIPTION[:9]])
def test_a_damaged_subscription_is_an_error(data: bytes) -> None:
    with pytest.raises(WireError):
        decode_subscription(data, None)


def test_a_later_version_may_go_on() -> None:
    later = b"\0\x09" + _SUBSCRIPTION[2:] + b"more"
    assert Subscription(("clicks",)) == decode_subscription(later, None)
