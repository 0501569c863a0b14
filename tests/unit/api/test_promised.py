"""Responses that are made of several promises."""

from __future__ import annotations

import pytest

from engine.api.promised import when_all
from engine.errors import ApiError, api_error
from engine.host.promise import Promise
from engine.kafka_errors import UNKNOWN_SERVER_ERROR


def test_a_response_is_made_once_of_all_values_in_order() -> None:
    first, second = Promise[int](), Promise[int]()
    made = when_all([first, second, Promise.of(3)], tuple)
    second.keep(2)
    assert not made.is_kept
    first.keep(1)
    assert (1, 2, 3) == made.result()


def test_of_nothing_it_is_made_now() -> None:
    assert [] == when_all(list[Promise[int]](), list).result()


def test_it_fails_with_the_first_error_once_all_are_there() -> None:
    first, second = Promise[int](), Promise[int]()
    made = when_all([first, second], tuple)
    second.fail(api_error(UNKNOWN_SERVER_ERROR))
    assert not made.is_kept
    first.keep(1)
    with pytest.raises(ApiError):
        made.result()


def test_who_abandons_it_abandons_none_of_them() -> None:
    first = Promise[int]()
    when_all([first], tuple).abandon()
    assert not first.is_abandoned
