"""Which groups `kctl groups list` has."""

from __future__ import annotations

import pytest

from kctl.arguments import UnreadableArgument
from kctl.commands.groups.listing import list_all
from kctl.connect import ClusterOptions


def test_a_state_that_no_group_can_have_is_refused_before_a_cluster_is_asked() -> None:
    options = ClusterOptions("127.0.0.1:1", timeout_s=0.1)
    with pytest.raises(UnreadableArgument, match="not a state of groups: 'Epmty'"):
        list_all(options, ["stable", "Epmty"], "table")
