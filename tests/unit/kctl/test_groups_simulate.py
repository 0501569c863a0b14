"""`kctl groups simulate`: who has each partition before and after, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pytest

from kctl.arguments import UnreadableArgument
from kctl.commands.groups.simulate import (
    SimulateRequest,
    UnknownAssignor,
    UnknownMember,
    parse_members,
    parse_topics,
    simulate,
)

_REQUEST = SimulateRequest(
    assignor="range",
    topics=["orders:4", "payments:3"],
    members=["c0", "c1"],
    leaving=[],
    joining=[],
    output="json",
)


def rows(request: SimulateRequest, capsys: pytest.CaptureFixture[str]) -> Sequence[Mapping]:
    assert 0 == simulate(request)
    found: Sequence[Mapping] = json.loads(capsys.readouterr().out)
    return found


def owners(found: Sequence[Mapping], column: str) -> str:
    return " ".join(str(row[column]) for row in found)


def test_each_partition_is_shown_with_its_member(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(_REQUEST, capsys)
    assert "c0 c0 c1 c1 c0 c0 c1" == owners(found, "member") == owners(found, "member_after")
    assert "no no no no no no no" == owners(found, "moves")
    dealt = rows(_REQUEST._replace(assignor="roundrobin"), capsys)
    assert "c0 c1 c0 c1 c0 c1 c0" == owners(dealt, "member")


def test_what_moves_is_shown_when_a_member_leaves(capsys: pytest.CaptureFixture[str]) -> None:
    simulate(_REQUEST._replace(leaving=["c1"]))
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert "c0 c0 c0 c0 c0 c0 c0" == owners(found, "member_after")
    assert "no no yes yes no no yes" == owners(found, "moves")
    assert "3 partitions of 7 would go to another member" in printed.err


def test_a_member_that_joins_takes_its_share(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(_REQUEST._replace(joining=["c2=payments"]), capsys)
    assert "c0 c0 c1 c1 c0 c1 c2" == owners(found, "member_after")


def test_a_sticky_assignor_moves_no_more_than_it_must(capsys: pytest.CaptureFixture[str]) -> None:
    request = _REQUEST._replace(assignor="sticky", joining=["c2"])
    found = rows(request, capsys)
    assert "c0 c1 c0 c1 c0 c1 c0" == owners(found, "member")
    assert "c0 c1 c0 c2 c0 c1 c2" == owners(found, "member_after")
    assert {"yes"} == {row["revoked"] for row in found}


def test_members_of_the_cooperative_assignor_go_on_with_what_does_not_move(
    capsys: pytest.CaptureFixture[str],
) -> None:
    simulate(_REQUEST._replace(assignor="cooperative-sticky", joining=["c2"]))
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert "c0 c1 c0 c2 c0 c1 c2" == owners(found, "member_after")
    assert "no no no yes no no yes" == owners(found, "moves") == owners(found, "revoked")
    assert "2 partitions of 7 would go to another member; 2 revoked, 2 rebalances" in printed.err


def test_what_a_member_had_that_left_nobody_has_to_give_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    simulate(_REQUEST._replace(assignor="cooperative-sticky", leaving=["c1"]))
    assert "; 0 revoked, 1 rebalance" in capsys.readouterr().err


def test_a_member_that_left_joins_without_a_past(capsys: pytest.CaptureFixture[str]) -> None:
    request = _REQUEST._replace(assignor="sticky", leaving=["c0"], joining=["c0"])
    found = rows(request, capsys)
    assert "no yes no yes no yes no" == owners(found, "revoked")


def test_members_are_given_what_has_replicas_in_their_rack(
    capsys: pytest.CaptureFixture[str],
) -> None:
    request = _REQUEST._replace(topics=["orders:4@r0+r1,r2"], racks=["c0=r2", "c1=r1"])
    assert "c1 c0 c1 c0" == owners(rows(request, capsys), "member")
    sticky = request._replace(assignor="sticky", leaving=["c1"], joining=["c2"])
    moved = rows(sticky._replace(racks=[*request.racks, "c2=r1"]), capsys)
    assert "c2 c0 c2 c0" == owners(moved, "member_after")


@pytest.mark.parametrize("word", ["c0", "=r1", "c0="])
def test_a_rack_needs_a_member_and_a_name(word: str) -> None:
    with pytest.raises(UnreadableArgument, match="not a member's rack"):
        simulate(_REQUEST._replace(racks=[word]))


def test_only_members_are_in_racks() -> None:
    with pytest.raises(UnknownMember, match="no member 'c9' to be in a rack"):
        simulate(_REQUEST._replace(racks=["c9=r1"]))


def test_nobody_is_left_to_have_partitions(capsys: pytest.CaptureFixture[str]) -> None:
    found = rows(_REQUEST._replace(leaving=["c0", "c1"]), capsys)
    assert {None} == {row["member_after"] for row in found}


@pytest.mark.parametrize(
    "word", ["orders", "orders:", ":4", "orders:x", "orders:-1", "t:100001", "t:4@", "t:4@a,"]
)
def test_a_topic_needs_its_number_of_partitions(word: str) -> None:
    with pytest.raises(UnreadableArgument, match="not a topic"):
        parse_topics([word])


@pytest.mark.parametrize("word", ["", "=t", "c0="])
def test_a_member_needs_a_name(word: str) -> None:
    with pytest.raises(UnreadableArgument, match="not a member"):
        parse_members([word], ["t"])


def test_only_members_leave() -> None:
    with pytest.raises(UnknownMember, match="no member 'c9' to leave"):
        simulate(_REQUEST._replace(leaving=["c9"]))


def test_an_unknown_assignor_is_refused_with_those_there_are() -> None:
    with pytest.raises(UnknownAssignor, match="no assignor 'best'; there are range, round"):
        simulate(_REQUEST._replace(assignor="best"))
