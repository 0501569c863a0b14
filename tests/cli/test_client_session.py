"""kctl against what real brokers answered: every recorded call does the same again."""

from __future__ import annotations

import csv
import io
import json
from functools import cache
from typing import Any

import pytest

from tests.client_session import STEPS, VERSIONS, Outcome, load_session, replay

pytestmark = pytest.mark.xdist_group("client_session")


@cache
def session(version: str) -> dict[str, dict[str, Any]]:
    return load_session(version)


@cache
def played(version: str, name: str) -> Outcome:
    return replay(session(version)[name])


@pytest.mark.parametrize("step", [step.name for step in STEPS])
@pytest.mark.parametrize("version", VERSIONS)
def test_a_recorded_call_does_the_same_again(version: str, step: str) -> None:
    recorded = session(version)[step]
    expected = Outcome(recorded["exit"], recorded["stdout"], recorded["stderr"])
    assert expected == played(version, step)


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def rows(version: str, name: str) -> Any:
    return json.loads(played(version, name).stdout.encode("latin-1"))


def lines(version: str, name: str) -> list[Any]:
    text = played(version, name).stdout.encode("latin-1").decode()
    return [json.loads(line) for line in text.splitlines()]


def test_a_dry_run_creates_nothing(version: str) -> None:
    assert "would be created" in played(version, "create-dry").stdout
    assert "created " in played(version, "create").stdout


def test_what_was_created_is_listed(version: str) -> None:
    assert "clicks\ncopy\n" == played(version, "list-match").stdout
    assert {"clicks": 3, "copy": 3, "one": 2} == {
        row["name"]: row["partitions"] for row in rows(version, "list-sizes")
    }


def test_one_failed_topic_fails_the_command_and_not_the_others(version: str) -> None:
    found = played(version, "list-unknown")
    assert 1 == found.exit
    assert "nope" in found.stderr
    assert ["clicks"] == [row["name"] for row in lines(version, "list-unknown")]


def test_errors_name_kafkas_code(version: str) -> None:
    expected = {
        "create-again": "TOPIC_ALREADY_EXISTS",
        "create-too-many-replicas": "INVALID_REPLICATION_FACTOR",
        "create-bad-config": "INVALID_CONFIG",
        "config-bad": "INVALID_CONFIG",
        "alter-shrink": "INVALID_PARTITIONS",
        "records-beyond": "OFFSET_OUT_OF_RANGE",
        "consume-out-of-range": "OFFSET_OUT_OF_RANGE",
        "consume-unknown": "UNKNOWN_TOPIC_OR_PARTITION",
        "config-dead-broker": "BROKER_NOT_AVAILABLE",
    }
    for name, code in expected.items():
        found = played(version, name)
        assert (1, True) == (found.exit, f"{code}: " in found.stderr), name


def test_a_topic_that_exists_is_no_failure_if_so_asked(version: str) -> None:
    assert 0 == played(version, "create-again-fine").exit
    assert 0 == played(version, "delete-gone").exit


def test_records_come_back_byte_for_byte(version: str) -> None:
    found = {(r["key"], r["key_encoding"]): r for r in lines(version, "consume-ndjson")}
    assert found["a", "utf-8"]["value"] == "1"
    assert found["c", "utf-8"]["value"] is None
    assert found[None, None]["value"] == "no key"
    binary = found["//4=", "base64"]
    assert ("gGJpbg==", "base64") == (binary["value"], binary["value_encoding"])
    assert [{"key": "t", "value": "1", "encoding": "utf-8"}] == binary["headers"]
    assert b"\x80bin\n" in played(version, "consume-values").stdout.encode("latin-1")


def test_ndjson_keeps_partition_time_and_null_headers(version: str) -> None:
    found = {r["partition"]: r for r in rows(version, "consume-copy")}
    assert ("k", "v", 5) == (found[1]["key"], found[1]["value"], found[1]["timestamp"])
    assert [{"key": "h", "value": None, "encoding": None}] == found[1]["headers"]


def test_keys_go_where_javas_producer_puts_them(version: str) -> None:
    # Three partitions; by org.apache.kafka.clients.producer.KafkaProducer.
    found = {r["key"]: r["partition"] for r in lines(version, "consume-ndjson")}
    assert {"a": 1, "b": 2, "c": 1, "k": 2} == {key: found[key] for key in ("a", "b", "c", "k")}


def test_what_was_read_before_a_bad_line_is_stored(version: str) -> None:
    found = played(version, "produce-not-json")
    assert (1, True) == (found.exit, "line 2: a row has no field 'val'" in found.stderr)
    assert found.stderr.endswith("1 record\n")
    assert any(r["key"] == "k" for r in lines(version, "consume-ndjson"))


def test_consuming_stops_after_so_many(version: str) -> None:
    assert 2 == len(played(version, "consume-two").stdout.splitlines()) - 1


def test_the_last_of_each_partition(version: str) -> None:
    text = played(version, "consume-tail").stdout
    assert ["1", "1", "1"] == [row["offset"] for row in csv.DictReader(io.StringIO(text))]


def test_a_template_has_kcats_letters(version: str) -> None:
    first = played(version, "consume-format").stdout.splitlines()[0]
    assert first == "clicks/0/0:1767225600000[]-1[no key]6{t=1}0"


def test_only_what_differs_is_shown_of_settings(version: str) -> None:
    (row,) = rows(version, "describe-json")[0]["configs"].items()
    assert ("retention.ms", "86400000") == row
    assert ["cleanup.policy", "retention.ms"] == [
        row["key"] for row in rows(version, "config-describe") if row["source"] == "dynamic-topic"
    ]


def test_changes_without_a_way_back_need_a_yes(version: str) -> None:
    for name in ("alter-unasked", "records-unasked", "delete-unasked"):
        found = played(version, name)
        assert (2, "") == (found.exit, found.stdout)
        assert "hint: add -y" in found.stderr


def test_healthy_partitions_are_not_under_replicated(version: str) -> None:
    assert Outcome(0, "", "") == played(version, "describe-healthy")


def test_every_broker_speaks_what_kctl_needs(version: str) -> None:
    text = played(version, "api-versions").stdout
    found = {row["api"]: row["usable"] for row in csv.DictReader(io.StringIO(text))}
    for name in ("Produce", "Fetch", "ListOffsets", "Metadata", "IncrementalAlterConfigs"):
        assert found[name]
