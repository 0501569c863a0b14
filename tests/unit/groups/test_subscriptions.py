"""Topics of a group, read from the subscriptions of its members."""

from __future__ import annotations

import struct

import pytest

from engine.groups.subscriptions import subscribed_topics

TOPICS = struct.pack(">ih", 1, 1) + b"t" + struct.pack(">i", 0)


@pytest.mark.parametrize("version", [0, 3, 4, 32_767])
def test_a_subscription_of_any_version_names_its_topics(version: int) -> None:
    # Versions from 1 on go on with partitions, 2 with a generation, 3 with a rack.
    subscription = struct.pack(">h", version) + TOPICS + struct.pack(">iih", 0, 1, -1)
    assert {"t"} == subscribed_topics([subscription])


@pytest.mark.parametrize("version", [-1, 0, 1, 2, 3])
def test_a_subscription_needs_no_more_than_version_0_has(version: int) -> None:
    # Some clients name a version above that of the fields they write.
    assert {"t"} == subscribed_topics([struct.pack(">h", version) + TOPICS])


@pytest.mark.parametrize("damaged", [b"", b"\0", b"\0\0" + TOPICS[:-4], b"\0\0\0\0\0\1"])
def test_topics_are_not_known_where_one_subscription_cannot_be_read(damaged: bytes) -> None:
    assert subscribed_topics([struct.pack(">h", 0) + TOPICS, damaged]) is None
