"""Something done to each of several, of which one fails."""

from __future__ import annotations

import pytest

from engine.host.each import do_each


def test_the_others_have_their_turn_before_a_fault_goes_on() -> None:
    done: list[int] = []

    def do(number: int) -> None:
        if number == 2:
            raise KeyError(number)
        done.append(number)

    with pytest.raises(KeyError):
        do_each([1, 2, 3], do)
    assert [1, 3] == done


def test_of_several_faults_the_first_goes_on_and_names_the_others() -> None:
    def do(number: int) -> None:
        if number:
            raise KeyError(number)

    with pytest.raises(KeyError, match="1") as raised:
        do_each([0, 1, 2], do)
    assert ["also: KeyError(2)"] == raised.value.__notes__


def test_a_broken_rule_goes_before_other_faults() -> None:
    def do(number: int) -> None:
        assert number != 2, "a rule"
        raise KeyError(number)

    with pytest.raises(AssertionError, match="a rule"):
        do_each([1, 2, 3], do)
