"""Which names a topic may have, with Kafka's bounds and words."""

from __future__ import annotations

import pytest

from engine.admin.topic_errors import TopicRefused
from engine.admin.topic_rules import check_name, is_name


def test_a_name_of_249_characters_is_the_longest() -> None:
    check_name("t" * 249)
    assert is_name("t" * 249)
    assert not is_name("t" * 250)
    with pytest.raises(TopicRefused, match="longer than the max allowed length 249"):
        check_name("t" * 250)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "é", "t" * 249 + "é"])
def test_names_that_no_directory_takes_are_refused(name: str) -> None:
    assert not is_name(name)
    with pytest.raises(TopicRefused) as refused:
        check_name(name)
    assert 17 == refused.value.code


def test_a_name_that_is_long_and_odd_is_called_long() -> None:
    with pytest.raises(TopicRefused, match="longer than"):
        check_name("é" * 250)


def test_the_last_length_that_is_allowed_is_judged_by_its_characters() -> None:
    with pytest.raises(TopicRefused) as refused:
        check_name("t" * 248 + "é")
    assert "longer than" not in refused.value.detail
