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
_OWNED = (
    "000000030003612e6200000001000000000006"
    "6f726465727300000002000000010000000300"
    "02cf840000000100000002"
)
_TOPICS = "000000020003612e6200066f72646572730000000101"
#: As ConsumerProtocol of 3.9.1 wrote one subscription in versions 0 to 3.
_VERSIONS = (
    f"0000{_TOPICS}",
    f"0001{_TOPICS}{_OWNED}",
    f"0002{_TOPICS}{_OWNED}00000005",
    f"0003{_TOPICS}{_OWNED}0000000500027231",
)


def test_a_subscription_is_javas() -> None:
    subscription = Subscription(("clicks",))
    assert _SUBSCRIPTION == encode_subscription(subscription)
    assert subscription == decode_subscription(_SUBSCRIPTION, None)


def test_an_assignment_is_javas() -> None:
    partitions = tuple(TopicPartition("clicks", number) for number in range(3))
    assert _ASSIGNMENT == encode_assignment(reversed(partitions))
    assert partitions == decode_assignment(_ASSIGNMENT)


@pytest.mark.parametrize(("version", "data"), list(enumerate(_VERSIONS)))
def test_a_subscription_is_javas_in_each_version(version: int, data: str) -> None:
    owned = tuple(TopicPartition("orders", number) for number in (1, 3))
    owned = (TopicPartition("a.b", 0), *owned, TopicPartition("τ", 2))
    full = Subscription(("a.b", "orders"), "i", "r1", owned, 5, b"\1")
    assert bytes.fromhex(data) == encode_subscription(full, version)
    read = Subscription(
        full.topics,
        full.group_instance_id,
        full.rack_id if version >= 3 else None,
        full.owned_partitions if version >= 1 else (),
        full.generation_id if version >= 2 else -1,
        full.user_data,
    )
    assert read == decode_subscription(bytes.fromhex(data), "i")


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_is_alike_in_each_version(version: int) -> None:
    key = TopicPartition("clicks", 0)
    assert version.to_bytes(2) + _ASSIGNMENT[2:] == encode_assignment(
        (key, *(key._replace(partition=number) for number in (1, 2))), version
    )


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
