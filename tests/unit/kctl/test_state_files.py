"""Files of declared state: variables, places of errors, what is read and what is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from engine.declared.comparison import compare
from engine.declared.resources import (
    ALL_BROKERS,
    ClusterSetting,
    CurrentState,
    DeclaredState,
    DeclaredTopic,
    ResourceKind,
)
from engine.security.acls import AclOperation
from engine.security.scram import ITERATIONS_MAX, ScramMechanism
from kctl.commands.acls.rules_file import KEYS_OF_RULES
from kctl.declared import state_files
from kctl.declared.state_files import read_state_files
from kctl.declared.state_schema import ACL, keys_of, state_schema
from kctl.declared.state_writing import idle_rules, state_text, unreadable_settings
from kctl.declared.variables import BadReference, with_variables, without_references
from kctl.declared.yaml_nodes import BadStateFile
from tests.unit.declared.states import rule, topic

EXAMPLE = """
version: 1
x-common: &common {retention.ms: 604800000}
keep: {topics: [_schemas, '.*-changelog']}
topics:
  orders:
    partitions: "${PARTITIONS:-12}"
    replication_factor: 3
    settings:
      <<: *common
      cleanup.policy: [compact, delete]
      min.cleanable.dirty.ratio: 0.50
      unclean.leader.election.enable: false
      segment.ms: null
  placed:
    placement: [[1, 2], [2, 3]]
  audit:
users:
  billing: {mechanisms: {SCRAM-SHA-256: 8192}, password: "${BILLING}"}
  app: {password: "${APP}"}
acls:
  - {allow: billing, for: consumer, topic: orders, group: billing}
  - {deny: [bob], operations: all, topic: pay-, pattern: prefixed, hosts: 10.0.0.9}
quotas:
  - {user: billing, client_id: <default>, limits: {produce: 10MB, request: 50%}}
  - {ip: 10.0.0.9, limits: {connections: 20}}
brokers:
  default: {settings: {log.cleaner.threads: 2}}
  1: {settings: {log.cleaner.threads: 3}}
"""


def read(folder: Path, text: str, **environment: str) -> DeclaredState:
    path = folder / "state.yaml"
    path.write_text(text)
    return read_state_files([str(path)], None, environment).state


def test_a_file_declares_everything(tmp_path: Path) -> None:
    state = read(tmp_path, EXAMPLE, PARTITIONS="24", BILLING="geheim")
    assert frozenset(ResourceKind) == state.kinds
    settings = {
        "retention.ms": "604800000",
        "cleanup.policy": "compact,delete",
        "min.cleanable.dirty.ratio": "0.50",
        "unclean.leader.election.enable": "false",
        "segment.ms": None,
    }
    assert {
        "orders": DeclaredTopic(24, 3, (), settings),
        "placed": DeclaredTopic(placement=((1, 2), (2, 3))),
        "audit": DeclaredTopic(),
    } == state.topics
    billing, app = state.users["billing"], state.users["app"]
    assert {ScramMechanism.SCRAM_SHA_256: 8192} == billing.mechanisms
    assert billing.password is not None
    assert "geheim" == billing.password.value
    assert {ScramMechanism.SCRAM_SHA_512: None} == app.mechanisms
    # A password is not needed before it is set.
    assert app.password is not None
    assert app.password.value is None
    assert 5 == len(state.acls) + 2
    assert {
        (("user", "billing"), ("client-id", None)): {
            "producer_byte_rate": 10_000_000,
            "request_percentage": 50,
        },
        (("ip", "10.0.0.9"),): {"connection_creation_rate": 20},
    } == state.quotas
    assert {
        ALL_BROKERS: {"log.cleaner.threads": "2"},
        "1": {"log.cleaner.threads": "3"},
    } == state.brokers
    assert ("_schemas", ".*-changelog") == state.kept_topics


def test_the_schema_takes_what_is_read() -> None:
    Draft202012Validator.check_schema(state_schema())
    validator = Draft202012Validator(state_schema())
    # Editors see keys as texts.
    validator.validate(json.loads(json.dumps(yaml.safe_load(EXAMPLE))))
    for wrong in ({}, {"version": 2}, {"version": 1, "topic": {}}):
        assert not validator.is_valid(wrong)


def test_the_schema_has_the_keys_of_files_of_access_rules() -> None:
    assert KEYS_OF_RULES == keys_of(ACL)


@pytest.mark.parametrize(
    ("text", "where", "reason"),
    [
        ("topics: {}", ":1", "there is no version"),
        ("version: 2", ":1", "version 2 is not known here"),
        ("version: 1\ntopic: {}", ":2", "no key topic"),
        ("version: 1\ntopics:\n  t:\n    partition: 3", ":4", "no key partition"),
        ("version: 1\ntopics:\n  t: {}\n  t: {}", ":4", "t is there twice: first at"),
        ("version: 1\ntopics:\n  t: {partitions: 0}", ":3", "a whole number from 1"),
        ("version: 1\ntopics:\n  t: {partitions: 2.5}", ":3", "a whole number from 1"),
        ("version: 1\ntopics:\n  t: {partitions: '${NONE}'}", ":3", "NONE is not set"),
        ("version: 1\ntopics: [t]", ":2", "topics is a mapping"),
        ("version: 1\ntopics:\n  'a b': {}", ":3", "a b"),
        ("version: 1\ntopics:\n  t: {placement: [[1, 1]]}", ":3", "none twice"),
        ("version: 1\ntopics:\n  t: {partitions: 2, placement: [[1]]}", ":3", "placement has 1"),
        ("version: 1\ntopics:\n  t: {settings: {a: {b: c}}}", ":3", "a text or a number"),
        ("version: 1\nusers:\n  a: {password: geheim}", ":3", "no ${NAME}"),
        ("version: 1\nusers:\n  a: {mechanisms: [PLAIN]}", ":3", "SCRAM-SHA-256"),
        ("version: 1\nusers:\n  a: {mechanisms: {SCRAM-SHA-512: 100}}", ":3", "iterations"),
        ("version: 1\nacls:\n- {allow: a}", ":3", ""),
        ("version: 1\nacls:\n- {allow: a, topics: t}", ":3", "no key topics"),
        ("version: 1\nquotas:\n- {limits: {produce: 1}}", ":3", "whose quotas"),
        ("version: 1\nquotas:\n- {ip: '::1', limits: {produce: 1}}", ":3", "users and client"),
        ("version: 1\nquotas:\n- {user: a}", ":3", "no limits"),
        ("version: 1\nbrokers: {1: {setting: {}}}", ":2", "no key setting"),
        ("version: 1\nbrokers: {all: {}}", ":2", "neither a number nor default"),
        ("version: 1\nkeep: {topics: ['(']}", ":2", "no regular expression"),
        ("version: 1\ntopics: {t: ", ":2", "not YAML"),
        ("- 1", ":1", "a document is a mapping"),
        (f"version: 1\ntopics:\n  t: {{partitions: {'9' * 5000}}}", ":3", "a whole number from 1"),
        ("version: 1\nquotas:\n- {user: a, limits: {produce: 1e400}}", ":3", "a finite number"),
        ("version: 1\nacls:\n- {allow: &a [*a]}", ":3", "an alias stands for what it is a part"),
        ("version: 1\nx-a: " + "[" * 3000, "", "nested too deeply"),
        ('version: 1\nusers:\n  "\\uD83D": {}', ":3", "no text of UTF-8"),
        ("version: 1\nusers:\n  a: {mechanisms: [SCRAM-SHA-256, scram-sha-256]}", ":3", "twice"),
    ],
)
def test_what_is_wrong_is_refused_with_file_and_line(
    tmp_path: Path, text: str, where: str, reason: str
) -> None:
    with pytest.raises(BadStateFile) as caught:
        read(tmp_path, text)
    assert f"state.yaml{where}: " in str(caught.value)
    assert reason in str(caught.value)
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    "section",
    [
        '"quotas":[{"user":"a","limits":{"produce":1}},{"user":"a","limits":{"consume":2}}]',
        '"brokers":{"1":{"settings":{"a":"1"}},"01":{"settings":{"b":"1"}}}',
    ],
)
def test_a_resource_is_declared_once_also_in_one_line(tmp_path: Path, section: str) -> None:
    with pytest.raises(BadStateFile, match="is declared twice"):
        read(tmp_path, f'{{"version":1,{section}}}')


def test_aliases_that_multiply_are_checked_once(tmp_path: Path) -> None:
    lines = ["x-0: &a0 [1]"]
    lines += [f"x-{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60)]
    assert not read(tmp_path, "version: 1\ntopics: {}\n" + "\n".join(lines)).topics


def test_the_most_iterations_may_be_declared(tmp_path: Path) -> None:
    text = "version: 1\nusers: {a: {mechanisms: {SCRAM-SHA-512: %d}}}"
    state = read(tmp_path, text % ITERATIONS_MAX)
    assert {ScramMechanism.SCRAM_SHA_512: ITERATIONS_MAX} == state.users["a"].mechanisms
    with pytest.raises(BadStateFile, match="at most"):
        read(tmp_path, text % (ITERATIONS_MAX + 1))


def test_json_may_have_tabs_and_pairs_of_surrogates(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text('{\n\t"version": 1,\n\t"users": {"\\ud83d\\ude00": {}}\n}')
    assert ["\U0001f600"] == list(read_state_files([str(path)], None, {}).state.users)


def test_a_variable_of_other_bytes_than_utf_8_is_refused(tmp_path: Path) -> None:
    other = b"\xff".decode(errors="surrogateescape")
    for text in ("topics: {t: {settings: {a: '${X}'}}}", "users: {a: {password: '${X}'}}"):
        (tmp_path / "state.yaml").write_text(f"version: 1\n{text}")
        with pytest.raises(BadStateFile, match="UTF-8"):
            read_state_files([str(tmp_path / "state.yaml")], None, {"X": other})


def test_a_resource_of_two_files_is_refused_with_both_places(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("version: 1\ntopics:\n  t: {}\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "b.yml").write_text("version: 1\ntopics:\n\n  t: {}\n")
    with pytest.raises(BadStateFile, match=r"b.yml:4: .* twice: first at .*a.yaml:3"):
        read_state_files([str(tmp_path)], None, {})


def test_a_folder_counts_with_its_files_and_not_with_hidden_ones(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("version: 1\ntopics: {a: {}}\n---\nversion: 1\nacls: []\n")
    (tmp_path / "b.json").write_text('{"version": 1, "topics": {"b": null}}')
    (tmp_path / ".hidden.yaml").write_text("not: state")
    (tmp_path / "notes.txt").write_text("not: state")
    state = read_state_files([str(tmp_path)], None, {}).state
    assert {"a", "b"} == set(state.topics)
    assert {ResourceKind.TOPICS, ResourceKind.ACLS} == state.kinds
    with pytest.raises(BadStateFile, match="the folder has no file"):
        empty = tmp_path / "empty"
        empty.mkdir()
        read_state_files([str(empty)], None, {})


def test_a_folder_of_a_whole_machine_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_files, "_ENTRIES_MAX", 3)
    for number in range(4):
        (tmp_path / f"{number}.txt").touch()
    with pytest.raises(BadStateFile, match="is it the right one"):
        read_state_files([str(tmp_path)], None, {})


def test_documents_for_other_contexts_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "state.yaml"
    path.write_text(
        "version: 1\ntopics: {all: {}}\n---\n"
        "version: 1\ncontexts: [prod]\ntopics: {prod: {}}\n---\n"
        "version: 1\ncontexts: [test, dev]\ntopics: {test: {}}\n"
    )
    read_prod = read_state_files([str(path)], "prod", {})
    assert {"all", "prod"} == set(read_prod.state.topics)
    assert [f"{path}:8 is for test, dev"] == read_prod.passed_over
    # Without a context nobody knows whether the document is meant.
    with pytest.raises(BadStateFile, match="none is used"):
        read_state_files([str(path)], None, {})


def test_references_have_defaults_and_an_escape() -> None:
    environment = {"A": "x", "EMPTY": ""}
    for text, expected in (
        ("${A}-${A}", "x-x"),
        ("${B:-y}", "y"),
        ("${EMPTY:-y}", "y"),
        ("${EMPTY}", ""),
        ("$${A} $5", "${A} $5"),
        ("${B:-}", ""),
    ):
        assert expected == with_variables(text, environment)
    for text in ("${B}", "${", "${1}", "${A-b}"):
        with pytest.raises(BadReference):
            with_variables(text, environment)
        with pytest.raises(BadReference) as missing:
            with_variables("${NONE}", environment)
        assert "export NONE, or give a default: ${NONE:-text}" == missing.value.hint
    for text in ("${A}", "$${A}", "$$${", "$"):
        assert text == with_variables(without_references(text), environment)


# -- written


def cluster() -> CurrentState:
    settings = {
        "retention.ms": ClusterSetting("5", "long", is_set=True),
        "index.interval.bytes": ClusterSetting("4096", "int", is_set=False),
        "follower.replication.throttled.replicas": ClusterSetting("0:1", "list", is_set=True),
        "cleanup.policy": ClusterSetting("", "list", is_set=True),
    }
    return CurrentState(
        frozenset((1, 2)),
        {
            "t": topic((1, 2), (2, 1))._replace(settings=settings),
            "uneven": topic((1,), (2, 1)),
            "__offsets": topic((1,), internal=True),
        },
        {"a.b": {ScramMechanism.SCRAM_SHA_512: 8192}, "a_b": {ScramMechanism.SCRAM_SHA_256: 4096}},
        frozenset(
            (rule("${a}"), rule("${a}", AclOperation.WRITE), rule("b", AclOperation.DESCRIBE))
        ),
        {(("user", None), ("client-id", "c")): {"producer_byte_rate": 1.5, "x": 1e21}},
        {
            ALL_BROKERS: {"ssl.keystore.password": ClusterSetting(None, "password", True, True)},
            "1": {"flag": ClusterSetting("true", "boolean", is_set=True)},
        },
    )


WRITTEN = """version: 1
brokers:
  1:
    settings:
      flag: true
topics:
  t:
    partitions: 2
    replication_factor: 2
    settings:
      cleanup.policy: ''
      retention.ms: 5
  uneven:
    placement:
      - [1]
      - [2, 1]
users:
  a.b:
    mechanisms:
      SCRAM-SHA-512: 8192
    password: ${PASSWORD_OF_A_B}
  a_b:
    mechanisms:
      SCRAM-SHA-256: 4096
    password: ${PASSWORD_OF_A_B_2}
acls:
  - allow: User:$${a}
    operations: [read, write]
    topic: t
  - allow: User:b
    operations: [describe]
    topic: t
"""


def test_a_state_is_written_without_defaults_secrets_and_topics_of_kafka() -> None:
    kinds = [kind for kind in ResourceKind if kind is not ResourceKind.QUOTAS]
    assert WRITTEN == state_text(cluster(), kinds)
    assert [("default", "ssl.keystore.password")] == unreadable_settings(cluster())


def test_placement_is_written_if_it_is_requested() -> None:
    text = state_text(cluster(), [ResourceKind.TOPICS], with_placement=True)
    assert [[1, 2], [2, 1]] == yaml.safe_load(text)["topics"]["t"]["placement"]


def test_rules_that_apply_to_nobody_are_not_written() -> None:
    found = rule("a")
    idle = found._replace(entry=found.entry._replace(host="::1"))
    state = CurrentState(acls=frozenset((idle,)))
    assert "version: 1\nacls: []\n" == state_text(state, [ResourceKind.ACLS])
    assert [idle] == idle_rules(state)


def test_what_is_written_declares_the_state_that_there_is(tmp_path: Path) -> None:
    state = cluster()._replace(quotas={(("user", None),): {"producer_byte_rate": 1.5e21}})
    declared = read(tmp_path, state_text(state, ResourceKind))
    comparison = compare(declared, state, prunes=True)
    assert [] == comparison.faults
    # A setting that cannot be read is not declared.
    assert ["ssl.keystore.password"] == [
        change.property for step in comparison.steps for change in step.changes
    ]
