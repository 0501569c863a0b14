"""The ids that topics are given."""

from __future__ import annotations

import uuid

import pytest

from engine.controller.topic_ids import random_topic_id
from engine.ids import uuid_text


class Drawn:
    """Draws what it is told, one after the other."""

    def __init__(self, *values: bytes) -> None:
        self.values = list(values)

    def random_bytes(self, length: int) -> bytes:
        value = self.values.pop(0)
        assert len(value) == length
        return value

    def random_below(self, bound: int) -> int:
        raise AssertionError(bound)


@pytest.mark.parametrize(
    "rest", [bytes(15), b"\xff" * 15, bytes(range(0x51, 0x60)), bytes(range(0xA1, 0xB0))]
)
def test_an_id_is_random_but_for_version_and_variant(rest: bytes) -> None:
    drawn = b"\x01" + rest
    topic_id = random_topic_id(Drawn(drawn))
    assert uuid.UUID(bytes=drawn, version=4).bytes == topic_id


def test_a_text_that_begins_with_a_dash_is_drawn_again() -> None:
    # Six bits of 62 are the dash.
    dashed, other = bytes([0xF8]) * 16, bytes([0x08]) * 16
    assert uuid_text(dashed).startswith("-")
    entropy = Drawn(dashed, other)
    assert uuid.UUID(bytes=other, version=4).bytes == random_topic_id(entropy)
    assert [] == entropy.values
