"""`kctl groups reset-offsets` on brokers in memory: each scenario, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from engine.client.blocking import KafkaClient
from engine.client.group_admin import delete_groups, set_offsets
from engine.client.groups import committed_offsets
from engine.host.memory import MemoryFiles
from engine.model import TopicPartition
from kctl.arguments import UnreadableArgument
from kctl.commands.groups.changes import GroupHasMembers
from kctl.commands.groups.resetting import (
    ContradictoryReset,
    GroupReset,
    NoCommittedOffset,
    ResetRequest,
    UnreadablePlan,
    check_request,
    parse_duration_ms,
    parse_offsets_file,
)
from tests.unit.broker.memory_cluster import MemoryCluster
from tests.unit.kctl.played_groups import join_group
from tests.unit.reassign.memory_streams import MemoryStreams, client_of

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
_NOTHING = ResetRequest(
    group_ids=["g"],
    topics=[],
    all_topics=False,
    to_earliest=False,
    to_latest=False,
    to_current=False,
    to_offset=None,
    shift_by=None,
    by_duration=None,
    to_datetime=None,
    from_group=None,
    from_file=None,
    execute=False,
    output="table",
)


@pytest.fixture(scope="module")
def client() -> Iterator[KafkaClient]:
    """Return a client of a cluster where t-0 has five records and t-1 three."""
    cluster = MemoryCluster(
        is_one_process=True,
        offsets_topic_num_partitions="1",
        group_initial_rebalance_delay_ms="0",
    )
    cluster.create_topic("t", ((1, 2), (2, 1)))
    cluster.pass_time(1000)
    for key, leader, count in ((T0, 1, 5), (T1, 2, 3)):
        for _ in range(count):
            cluster.produce(leader, 1, key=key)
    with client_of(cluster, MemoryStreams(cluster)) as client:
        yield client


@pytest.fixture(autouse=True)
def committed(client: KafkaClient) -> None:
    """Have group g commit 2 for t-0, and group h 4 for t-0 and 9 for t-1."""
    delete_groups(client, ["g", "h"])
    set_offsets(client, "g", {T0: 2})
    set_offsets(client, "h", {T0: 4, T1: 9})


def reset(client: KafkaClient, files: MemoryFiles | None = None, **options: Any) -> list[tuple]:
    """Return partition, old offset, new one, difference and note of each row."""
    request = _NOTHING._replace(**options)
    check_request(request)
    rows, failures = GroupReset(client, request, files or MemoryFiles(), "g").run()
    assert 0 == failures
    names = ("partition", "committed_offset", "new_offset", "change", "note")
    return [tuple(row[name] for name in names) for row in rows]


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"to_earliest": True}, [(0, 2, 0, -2, None), (1, None, 0, None, None)]),
        ({"to_latest": True}, [(0, 2, 5, 3, None), (1, None, 3, None, None)]),
        (
            {"to_current": True},
            [(0, 2, 2, 0, None), (1, None, 3, None, "not committed: the end")],
        ),
        (
            {"to_offset": 4},
            [(0, 2, 4, 2, None), (1, None, 3, None, "4 is beyond the end")],
        ),
        (
            {"to_offset": -1},
            [(0, 2, 0, -2, "-1 is before the start"), (1, None, 0, None, "-1 is before the start")],
        ),
        ({"by_duration": "1000w"}, [(0, 2, 0, -2, None), (1, None, 0, None, None)]),
        (
            {"to_datetime": "2099-01-01"},
            [
                (0, 2, 5, 3, "no record as late: the end"),
                (1, None, 3, None, "no record as late: the end"),
            ],
        ),
        ({"from_group": "h"}, [(0, 2, 4, 2, None), (1, None, 3, None, "9 is beyond the end")]),
    ],
    ids=lambda options: "-".join(options) if isinstance(options, dict) else "",
)
def test_each_scenario_has_its_offsets(
    client: KafkaClient, options: dict[str, Any], rows: list[tuple[Any, ...]]
) -> None:
    assert rows == reset(client, topics=["t"], **options)
    assert {T0: 2} == committed_offsets(client, "g")


def test_all_topics_are_those_that_the_group_has_committed_for(client: KafkaClient) -> None:
    assert [(0, 2, 5, 3, None)] == reset(client, all_topics=True, to_latest=True)
    assert [(0, 2, 1, -1, None)] == reset(client, all_topics=True, shift_by=-1)


def test_another_groups_offsets_are_of_all_its_partitions_unless_topics_are_named(
    client: KafkaClient,
) -> None:
    assert [0, 1] == [row[0] for row in reset(client, from_group="h")]
    assert [1] == [row[0] for row in reset(client, from_group="h", topics=["t:1"])]


def test_only_execute_commits(client: KafkaClient) -> None:
    assert [(1, None, 3, None, None)] == reset(client, topics=["t:1"], to_latest=True, execute=True)
    assert {T0: 2, T1: 3} == committed_offsets(client, "g")


def test_a_group_that_nobody_knows_begins_with_its_offsets(client: KafkaClient) -> None:
    request = _NOTHING._replace(topics=["t"], to_latest=True, execute=True)
    GroupReset(client, request, MemoryFiles(), "new").run()
    assert {T0: 5, T1: 3} == committed_offsets(client, "new")


def test_offsets_that_were_never_committed_are_not_shifted(client: KafkaClient) -> None:
    with pytest.raises(NoCommittedOffset, match="no committed offset for t-1"):
        reset(client, topics=["t"], shift_by=1)


def test_a_group_with_members_is_refused_and_they_are_named(client: KafkaClient) -> None:
    join_group(client, "live", "t")
    with pytest.raises(GroupHasMembers, match=r"live is in use .*: 1 member: kctl at ") as caught:
        request = _NOTHING._replace(topics=["t"], to_latest=True)
        GroupReset(client, request, MemoryFiles(), "live").run()
    assert 1 == len(caught.value.members)


def test_a_file_names_partitions_and_offsets(client: KafkaClient) -> None:
    files = MemoryFiles()
    files.replace_file("/plan.csv", b"g,t,0,1\nother,t,1,1\n")
    assert [(0, 2, 1, -1, None)] == reset(client, files, from_file="/plan.csv")


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("t,0,1\nt,1,2\n", {T0: 1, T1: 2}),
        ("g,t,0,1\n\nh,t,1,2\n", {T0: 1}),
        ("topic,partition,offset\nt,0,1\n", {T0: 1}),
        (
            "group,topic,partition,committed_offset,new_offset,change,note\n"
            'g,t,0,5,1,-4,\ng,t,1,,3,,"4 is beyond, the end"\n',
            {T0: 1, T1: 3},
        ),
        ("", {}),
    ],
)
def test_lines_of_a_file_are_with_or_without_a_group(
    text: str, offsets: dict[TopicPartition, int]
) -> None:
    assert offsets == parse_offsets_file(text, "plan.csv", "g")


@pytest.mark.parametrize("line", ["t", "t,0", "t,x,1", "t,0,-1", ",0,1", "g,t,0,x"])
def test_a_line_that_is_no_offset_is_refused_with_its_number(line: str) -> None:
    with pytest.raises(UnreadablePlan, match=r"plan\.csv, line 2: ") as caught:
        parse_offsets_file(f"t,1,1\n{line}\n", "plan.csv", "g")
    assert 2 == caught.value.line


@pytest.mark.parametrize(
    ("text", "age"), [("90s", 90_000), ("2h", 7_200_000), ("P1DT2H", 93_600_000)]
)
def test_a_duration_is_short_or_iso(text: str, age: int) -> None:
    assert age == parse_duration_ms(text)


def test_a_duration_that_is_none_is_refused() -> None:
    with pytest.raises(UnreadableArgument, match="not a duration: 'soon'"):
        parse_duration_ms("soon")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topics": ["t"]}, "set the new offsets with"),
        (
            {"topics": ["t"], "to_latest": True, "to_offset": 0},
            "and not --to-latest, --to-offset",
        ),
        ({"to_latest": True}, "name the partitions"),
        ({"to_latest": True, "topics": ["t"], "all_topics": True}, "name the partitions"),
        ({"from_file": "f", "topics": ["t"]}, "--from-file names the partitions"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ContradictoryReset, match=message):
        check_request(_NOTHING._replace(**options))
