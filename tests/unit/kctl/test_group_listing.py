"""Which groups `kctl groups list` has."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from engine.client.errors import Unreachable
from engine.client.groups import GroupListing
from kctl.arguments import UnreadableArgument
from kctl.commands.groups import listing
from kctl.commands.groups.listing import print_groups
from kctl.connect import ClusterOptions


def test_a_state_that_no_group_can_have_is_refused_before_a_cluster_is_asked() -> None:
    options = ClusterOptions("127.0.0.1:1", timeout_s=0.1)
    with pytest.raises(UnreadableArgument, match="not a state of groups: 'Epmty'"):
        print_groups(options, ["stable", "Epmty"], "table")


def test_a_state_of_streams_groups_is_one() -> None:
    """The coordinator of Kafka 4.1 and later has it while topics of a topology are missing."""
    with pytest.raises(Unreachable):
        print_groups(ClusterOptions("127.0.0.1:1", timeout_s=0.1), ["NotReady"], "table")


def test_a_group_of_an_old_and_a_new_coordinator_is_listed_twice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As it moves while brokers are replaced by newer ones, which name the type of a group."""
    found = [
        GroupListing("g", "consumer", "Stable", "Classic", 2),
        GroupListing("g", "consumer", "Stable", None, 1),
    ]
    monkeypatch.setattr(listing, "connect", nullcontext)
    monkeypatch.setattr(listing, "list_groups", lambda _client: (found, {}))
    assert 0 == print_groups(ClusterOptions("127.0.0.1:1"), [], "name")
    assert "g\ng\n" == capsys.readouterr().out
