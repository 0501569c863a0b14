"""What `kctl reassign plan` reports of a plan."""

from __future__ import annotations

import pytest

from engine.planner.plan import UnmetGoal
from kctl.commands.reassign.plan import report_unmet


def test_partitions_of_a_topic_with_one_reason_share_a_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report_unmet(
        [
            *(UnmetGoal("drain", f"wide-{n}", "no broker is left") for n in (7, 0, 3, 1, 9, 8)),
            UnmetGoal("drain", "few-1-2", "no broker is left"),
            UnmetGoal("drain", "wide-5", "another reason"),
            UnmetGoal("an equal number of replicas", "brokers", "too few moves"),
        ]
    )
    assert capsys.readouterr().err.splitlines() == [
        "warning: brokers: an equal number of replicas is not reached: too few moves",
        "warning: 6 partitions of wide (0, 1, 3, 7, 8, …): drain is not reached: no broker is left",
        "warning: few-1-2: drain is not reached: no broker is left",
        "warning: wide-5: drain is not reached: another reason",
    ]
