"""docs/compatibility.md says of each API what the embedded broker really serves."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from engine.broker.unserved import AUTHORIZER_CLASS
from engine.kafka_errors import (
    COORDINATOR_NOT_AVAILABLE,
    INVALID_RECORD,
    SECURITY_DISABLED,
    UNSUPPORTED_VERSION,
    kafka_error,
)
from engine.wire.headers import apis
from engine.wire.structs import message_class
from tests.unit.api.test_admission import codes_in, fields_of
from tests.unit.broker.memory_broker import MemoryBroker
from tests.unit.broker.test_broker import create_topic

_PAGE = Path(__file__).parent.parent / "docs" / "compatibility.md"
_API = re.compile(
    r"^\| (\d+) \| (\w+) \| ([\d–]+) \| (full|partial|refuses|no) \| (.*?) ?\|$", re.M
)
_AREA = re.compile(r"^\| ([^|]+) \| (yes|no)([^|]*) \| ([A-Z]\w+(?:, [A-Z]\w+)*) \|$", re.M)
#: Codes by which a broker says that what an API is about is not there.
_NOT_THERE = frozenset((COORDINATOR_NOT_AVAILABLE, SECURITY_DISABLED))


class ApiText(NamedTuple):
    """The row of an API on the page."""

    name: str
    versions: str
    state: str
    reason: str


def _apis() -> dict[int, ApiText]:
    return {int(row[0]): ApiText(*row[1:]) for row in _API.findall(_PAGE.read_text())}


def _states() -> dict[str, str]:
    return {row.name: row.state for row in _apis().values()}


@pytest.fixture
def stage() -> Iterator[MemoryBroker]:
    # Access rules are refused where nobody goes by them.
    rules = {"authorizer_class_name": AUTHORIZER_CLASS, "super_users": "User:ANONYMOUS"}
    stage = MemoryBroker(**rules).start()
    for topic in ("t", "__consumer_offsets"):
        create_topic(stage.connect(), topic)
    yield stage
    stage.stop()


def test_every_api_has_a_row_with_its_name() -> None:
    assert {key: row.name for key, row in _apis().items()} == {
        key: known.name for key, known in apis().items() if key <= 75
    }


def test_the_versions_are_those_that_are_served(stage: MemoryBroker) -> None:
    served = {}
    for row in stage.broker.table.rows():
        is_one = row.lowest == row.highest
        served[row.key] = str(row.lowest) if is_one else f"{row.lowest}–{row.highest}"
    assert {key: row.versions for key, row in _apis().items() if row.versions != "–"} == served


def test_what_is_not_full_has_a_reason() -> None:
    for key, row in _apis().items():
        assert row.state == "full" or row.reason, f"{key} {row.name}"
        assert (row.state == "no") == (row.versions == "–"), f"{key} {row.name}"


def test_what_apiversions_leaves_out_is_marked(stage: MemoryBroker) -> None:
    hidden = {row.name for row in stage.broker.table.rows() if not row.is_advertised}
    assert {r.name for r in _apis().values() if "not offered by ApiVersions" in r.reason} == hidden


def test_an_api_refuses_exactly_if_each_version_answers_that_nothing_is_there(
    stage: MemoryBroker,
) -> None:
    """The requests are those that do something where an API is served."""
    topic_id = stage.broker.metadata_cache.topic_ids["t"]
    refused: dict[str, set[int]] = {}
    for row in sorted(stage.broker.table.rows(), key=lambda row: row.name == "DeleteTopics"):
        if row.is_inter_broker:
            continue
        for version in range(row.lowest, row.highest + 1):
            fields = fields_of(row.name, version, topic_id)
            if row.name.endswith("Acls"):
                fields = _known_kinds(row.name, fields)
            codes = set(codes_in(stage.connect().ask(row.name, version, **fields)))
            if row.name == "TxnOffsetCommit":
                # Nobody has asked for the topic of groups yet, and its coordinator is there.
                codes -= {COORDINATOR_NOT_AVAILABLE}
            if codes & _NOT_THERE:
                refused.setdefault(row.name, set()).update(codes & _NOT_THERE)
    reasons = {row.name: row.reason for row in _apis().values()}
    assert {name for name, state in _states().items() if state == "refuses"} == set(refused)
    for name, codes in refused.items():
        assert all(kafka_error(code).name in reasons[name] for code in codes), name


def _known_kinds(name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Return a request about ACLs of a kind that there is: others end the connection."""
    kinds = {"operation": 3, "permission_type": 3}
    of = message_class(f"{name}Request")
    if name == "DescribeAcls":
        return {"resource_type_filter": 2, "pattern_type_filter": 3, **kinds}
    if name == "CreateAcls":
        creation = of.AclCreation(resource_type=2, resource_pattern_type=3, **kinds)
        return {"creations": [creation]}
    assert name == "DeleteAcls", fields
    wanted = of.DeleteAclsFilter(resource_type_filter=2, pattern_type_filter=3, **kinds)
    return {"filters": [wanted]}


def _null_records(stage: MemoryBroker) -> Any:
    of = message_class("ProduceRequest")
    topic = of.TopicProduceData(
        name="t", partition_data=[of.PartitionProduceData(index=0, records=None)]
    )
    return stage.connect().ask("Produce", 9, acks=-1, timeout_ms=1000, topic_data=[topic])


def _offset_in_znodes(stage: MemoryBroker) -> Any:
    of = message_class("OffsetCommitRequest")
    topic = of.OffsetCommitRequestTopic(
        name="t", partitions=[of.OffsetCommitRequestPartition(partition_index=0)]
    )
    return stage.connect().ask("OffsetCommit", 0, group_id="g", topics=[topic])


def _offset_from_znodes(stage: MemoryBroker) -> Any:
    topic = message_class("OffsetFetchRequest").OffsetFetchRequestTopic(
        name="t", partition_indexes=[0]
    )
    return stage.connect().ask("OffsetFetch", 0, group_id="g", topics=[topic])


#: For each API that is served in part: a request for the part that is missing, and its code.
MISSING: dict[str, tuple[Callable[[MemoryBroker], Any], int]] = {
    "Produce": (_null_records, INVALID_RECORD),
    "OffsetCommit": (_offset_in_znodes, UNSUPPORTED_VERSION),
    "OffsetFetch": (_offset_from_znodes, UNSUPPORTED_VERSION),
}


def test_every_partial_api_gets_a_request_for_what_it_lacks() -> None:
    assert {name for name, state in _states().items() if state == "partial"} == set(MISSING)


@pytest.mark.parametrize("name", MISSING)
def test_what_a_partial_api_lacks_is_refused(stage: MemoryBroker, name: str) -> None:
    ask, code = MISSING[name]
    assert code in set(codes_in(ask(stage)))
    reasons = {row.name: row.reason for row in _apis().values()}
    assert kafka_error(code).name in reasons[name]


def test_every_api_is_in_one_area_that_is_served_or_not() -> None:
    states = _states()
    areas = {
        name: (yes, names.split(", ")) for name, yes, _, names in _AREA.findall(_PAGE.read_text())
    }
    listed = [name for _, names in areas.values() for name in names]
    assert sorted(listed) == sorted(states)
    for area, (yes, names) in areas.items():
        wanted = {"full", "partial"} if yes == "yes" else {"no", "refuses"}
        assert {states[name] for name in names} <= wanted, area


def test_an_api_that_is_not_served_is_not_offered_and_ends_the_connection(
    stage: MemoryBroker,
) -> None:
    offered = {key.api_key for key in stage.connect().ask("ApiVersions", 3).api_keys}
    missing = {key for key, row in _apis().items() if row.state == "no"}
    assert not offered & missing
    for name in ("Vote", "PushTelemetry"):
        client = stage.connect()
        assert client.ask(name, 0) is None
        assert client.is_closed
