"""What refusals of plans and executions name, and how many more there are."""

from __future__ import annotations

import pytest

from engine.client.config_admin import ConfigResourceType, Resource
from engine.errors import EngineError, api_error
from engine.host.process_identity import ProcessIdentity
from engine.kafka_errors import INVALID_CONFIG
from engine.model import TopicPartition
from engine.reassign.cluster_reader import ReassignmentInProgress
from engine.reassign.execution import StalePlan, TargetsMissing, WrongCluster, require_cluster
from engine.reassign.journal import JournalExists, JournalHeld
from engine.reassign.journal_state import UnreadableJournal
from engine.reassign.throttles import FOLLOWER_RATE, LEADER_LIST, LEADER_RATE, ThrottleSetting
from engine.reassign.throttling import ThrottleNotSet, ThrottleOfAnotherMove

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
BROKER_1 = Resource(ConfigResourceType.BROKER, "1")
LEADER_1, FOLLOWER_1 = (
    ThrottleSetting(BROKER_1, LEADER_RATE),
    ThrottleSetting(BROKER_1, FOLLOWER_RATE),
)
LIST_T = ThrottleSetting(Resource(ConfigResourceType.TOPIC, "t"), LEADER_LIST)
SETTING = "leader.replication.throttled.rate of broker 1"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (StalePlan([T0]), "the plan is of another time: t-0 is elsewhere by now"),
        (
            StalePlan([T0, T1, U0]),
            "the plan is of another time: t-0 and 2 more is elsewhere by now",
        ),
        (TargetsMissing([3]), "the plan gives replicas to broker 3, which is not alive"),
        (TargetsMissing([3, 4]), "the plan gives replicas to broker 3, 4, which is not alive"),
        (WrongCluster("a", None), "the plan is of cluster a, this is cluster None"),
        (ReassignmentInProgress([T1]), "t-1 moves already"),
        (ReassignmentInProgress([U0, T1, T0]), "t-0 and 2 more moves already"),
        (
            ThrottleOfAnotherMove([LEADER_1], [U0]),
            f"another move (u-0) is throttled by {SETTING}",
        ),
        (
            ThrottleOfAnotherMove([LEADER_1, FOLLOWER_1], [T0, T1, U0]),
            f"another move (t-0 and 2 more) is throttled by {SETTING} and 1 more",
        ),
        (
            ThrottleNotSet(LIST_T, api_error(INVALID_CONFIG, "no")),
            "leader.replication.throttled.replicas of topic t cannot be set: INVALID_CONFIG: no",
        ),
        (JournalExists("j"), "j is the journal of an execution that is not over"),
        (JournalHeld("j", None), "another process is executing j"),
        (UnreadableJournal("j", "empty"), "j is no journal of a reassignment: empty"),
    ],
)
def test_a_refusal_names_the_first_and_counts_the_others(error: EngineError, text: str) -> None:
    assert text == str(error)
    assert isinstance(error, ThrottleNotSet) or error.hint


def test_a_held_journal_names_its_writer() -> None:
    writer = ProcessIdentity(9, "there", "lee")
    assert f"{writer} is executing j" == str(JournalHeld("j", writer))


def test_a_plan_that_does_not_say_its_cluster_is_of_any() -> None:
    require_cluster(None, "c")
    require_cluster("c", "c")
    for cluster_id in ("d", None):
        with pytest.raises(WrongCluster):
            require_cluster("c", cluster_id)
