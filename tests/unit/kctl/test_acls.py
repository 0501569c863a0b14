"""Which access rules options and files mean, and how they are created and deleted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from engine.security.acls import AclBinding, AclFilter, AclOperation
from engine.wire import messages
from kctl.arguments import UnreadableArgument
from kctl.commands.acls import creating
from kctl.commands.acls.creating import ApplyRequest, apply_file, compare_rules
from kctl.commands.acls.listing import exactly, filters_of
from kctl.commands.acls.options import FilterOptions, ResourceOptions
from kctl.commands.acls.rule_texts import (
    create_commands,
    parse_host,
    parse_operations,
    parse_principal,
    rule_row,
    rule_text,
)
from kctl.commands.acls.rules_file import BadRulesFile, parse_rules_file
from kctl.commands.acls.wanted_rules import RulesNotClear, RulesRequest, wanted_rules
from kctl.connect import ClusterOptions
from tests.unit.client.fake_broker import FakeCluster

ORDERS = ResourceOptions(topic=["orders"])


def texts(rules: list[AclBinding]) -> list[str]:
    return [rule_text(rule) for rule in rules]


def test_every_user_host_operation_and_resource_is_combined() -> None:
    request = RulesRequest(
        allow=["ann"],
        deny=["Group:x"],
        operations=["read,Describe_Configs"],
        hosts=["1.1.1.1", "*"],
        resources=ResourceOptions(topic=["a"], cluster=True),
    )
    with pytest.raises(RulesNotClear, match="read is no operation of cluster"):
        wanted_rules(request)
    rules = wanted_rules(request._replace(operations=["describe-configs"]))
    assert 8 == len(set(rules))
    assert "deny Group:x from 1.1.1.1 to describe-configs cluster" in texts(rules)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (RulesRequest(operations=["read"], resources=ORDERS), "Nobody is named"),
        (RulesRequest(allow=["a"], resources=ORDERS), "which operations"),
        (RulesRequest(allow=["a"], operations=["read"]), "about what"),
        (RulesRequest(allow=["a"], job="consumer"), "needs --topic"),
        (RulesRequest(allow=["a"], job="streams", resources=ORDERS), "needs --group"),
        (RulesRequest(deny=["a"], job="producer", resources=ORDERS), "leave out --deny"),
        (
            RulesRequest(allow=["a"], job="producer", resources=ORDERS._replace(group=["g"])),
            "nothing to do with --group",
        ),
        (
            RulesRequest(allow=["a"], operations=["read"], inputs=["t"], resources=ORDERS),
            "--input goes with",
        ),
    ],
)
def test_rules_that_are_not_clear_are_refused(request_: RulesRequest, message: str) -> None:
    with pytest.raises(RulesNotClear, match=message):
        wanted_rules(request_)


@pytest.mark.parametrize("text", ["reed", "", "any", "unknown", "read,"])
def test_an_operation_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(UnreadableArgument):
        parse_operations([text])


def test_operations_have_any_spelling() -> None:
    assert [AclOperation.DESCRIBE_CONFIGS, AclOperation.ALL] == parse_operations(
        ["DescribeConfigs,describe_configs", "all"]
    )


def test_a_user_without_a_type_is_one() -> None:
    assert ["User:ann", "User:CN=a:b", "User:*"] == [
        parse_principal(text) for text in ("ann", "User:CN=a:b", "*")
    ]
    for text in ("", ":x", "User:"):
        with pytest.raises(UnreadableArgument):
            parse_principal(text)


def test_a_host_is_an_address_as_brokers_compare_it() -> None:
    """Java prints all numbers of an address: a rule for ::1 itself applies to nobody."""
    assert ["*", "10.0.0.9", "0:0:0:0:0:0:0:1"] == [
        parse_host(text) for text in ("*", "10.0.0.9", "::1")
    ]
    for text in ("kafka1", "10.0.0", "10.0.0.0/8", ""):
        with pytest.raises(UnreadableArgument, match="not a host"):
            parse_host(text)


def test_hosts_of_a_file_are_addresses_and_those_of_listed_rules_stay() -> None:
    written = b"[{allow: ann, operations: read, topic: t, hosts: '::1'}]"
    (rule,) = parse_rules_file(written, "f")
    assert "0:0:0:0:0:0:0:1" == rule.entry.host
    listed = rule_row(AclBinding(rule.pattern, rule.entry._replace(host="::1")))
    (same,) = parse_rules_file(yaml.safe_dump([listed]).encode(), "f")
    assert "::1" == same.entry.host


def test_filters_without_a_word_mean_everything() -> None:
    (everything,) = filters_of(FilterOptions(), ResourceOptions())
    rule = wanted_rules(RulesRequest(allow=["a"], operations=["read"], resources=ORDERS))[0]
    assert everything.matches(*rule)


def test_a_match_finds_what_is_about_a_name() -> None:
    found = filters_of(FilterOptions(pattern="match"), ORDERS)
    prefixed = RulesRequest(
        allow=["a"],
        operations=["read"],
        resources=ResourceOptions(topic=["ord"]),
        pattern="prefixed",
    )
    assert [True] == [one.matches(*wanted_rules(prefixed)[0]) for one in found]
    with pytest.raises(RulesNotClear):
        filters_of(FilterOptions(pattern="match"), ResourceOptions())


# -- files

FILE = b"""
acls:
- {allow: [ann, bob], for: consumer, topic: orders, group: billing}
- {deny: eve, operations: all, hosts: 10.0.0.9, topic: pay-, pattern: prefixed}
- {allow: adm, operations: [alter, describe], cluster: true}
"""


def test_a_file_of_rules_is_read() -> None:
    assert [
        "allow User:ann to read topic:orders",
        "allow User:bob to read topic:orders",
        "allow User:ann to read group:billing",
        "allow User:bob to read group:billing",
        "deny User:eve from 10.0.0.9 to all topic:pay-…",
        "allow User:adm to alter cluster",
        "allow User:adm to describe cluster",
    ] == texts(parse_rules_file(FILE, "f"))


def test_listed_rules_are_such_a_file() -> None:
    rules = parse_rules_file(FILE, "f")
    listed = yaml.safe_dump([rule_row(rule) for rule in rules]).encode()
    assert rules == parse_rules_file(listed, "f")
    assert [] == parse_rules_file(b"[]", "f") == parse_rules_file(b"acls:", "f")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected a list"),
        (b"acls: {a: b}", "expected a list"),
        (b"other: []", "expected `acls`"),
        (b"acls: [5]", "rule 1: expected a mapping"),
        (b"acls: [{allow: a, topics: t}]", "rule 1: no key topics"),
        (b"acls: [{allow: 5, topic: t, operations: read}]", "quote numbers"),
        (b"acls: [{allow: a, topic: t, operations: reed}]", "rule 1: not an operation"),
        (b"acls: [{allow: a, operations: alter, cluster: maybe}]", "cluster is true or false"),
        (b"[{principal: a, topic: t}]", "a listed rule has"),
        (b"acls: [", "not YAML"),
    ],
)
def test_a_file_that_is_no_list_of_rules_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(BadRulesFile, match=message):
        parse_rules_file(content, "f")


def test_the_command_that_creates_rules_creates_them() -> None:
    rules = parse_rules_file(FILE, "f")[:1]
    assert "kctl acls create --allow User:ann --operation read --topic orders" == create_commands(
        rules
    )


# -- applied to a cluster


class Rules(FakeCluster):
    """A cluster with rules; `refused` are texts of rules that it does not create."""

    def __init__(self, rules: list[AclBinding]) -> None:
        super().__init__()
        self.rules = rules
        self.refused: list[str] = []
        self.handlers |= {
            "DescribeAcls": self._describe,
            "CreateAcls": self._create,
            "DeleteAcls": self._delete,
        }

    def _describe(self, request: Any, version: int, address: tuple[str, int]) -> Any:
        response = messages.DescribeAclsResponse
        resource = response.DescribeAclsResource
        return response(
            resources=[
                resource(
                    resource_type=pattern.kind,
                    resource_name=pattern.name,
                    pattern_type=pattern.pattern_type,
                    acls=[
                        response.AclDescription(
                            principal=entry.principal,
                            host=entry.host,
                            operation=entry.operation,
                            permission_type=entry.permission,
                        )
                    ],
                )
                for pattern, entry in self.rules
            ]
        )

    def _create(self, request: Any, version: int, address: tuple[str, int]) -> Any:
        response = messages.CreateAclsResponse
        return response(
            results=[
                response.AclCreationResult(
                    error_code=42 if row.principal in self.refused else 0, error_message=None
                )
                for row in request.creations
            ]
        )

    def _delete(self, request: Any, version: int, address: tuple[str, int]) -> Any:
        response = messages.DeleteAclsResponse
        result = response.DeleteAclsFilterResult
        return response(filter_results=[result(matching_acls=[]) for _ in request.filters])


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Rules:
    rules = parse_rules_file(b"acls: [{allow: [ann, old], for: producer, topic: orders}]", "f")
    cluster = Rules(rules)
    monkeypatch.setattr(creating, "connect", lambda options: cluster.client())
    return cluster


def applied(tmp_path: Path, **options: Any) -> int:
    path = tmp_path / "acls.yaml"
    path.write_bytes(b"acls: [{allow: [ann, new], for: producer, topic: orders}]")
    given = {"prune": False, "dry_run": False, "yes": True, "output": "csv", **options}
    return apply_file(ClusterOptions(), ApplyRequest(str(path), **given))


def test_rules_are_created_before_others_are_deleted(
    cluster: Rules, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 0 == applied(tmp_path, prune=True)
    changes = [name for name in cluster.requested_apis() if name != "Metadata"]
    assert ["DescribeAcls", "CreateAcls", "DeleteAcls"] == changes
    ends = [line.rpartition(",")[2] for line in capsys.readouterr().out.splitlines()]
    assert ["result", "created", "was gone", "exists"] == ends


def test_nothing_is_deleted_where_a_rule_cannot_be_created(
    cluster: Rules, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.refused = ["User:new"]
    assert 1 == applied(tmp_path, prune=True)
    assert "DeleteAcls" not in cluster.requested_apis()
    assert "1 rule not deleted" in capsys.readouterr().err


def test_a_dry_run_says_that_changes_are_pending(
    cluster: Rules, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 5 == applied(tmp_path, dry_run=True)
    assert ["DescribeAcls"] == [n for n in cluster.requested_apis() if n != "Metadata"]
    assert "--prune deletes them" in capsys.readouterr().err


def test_a_difference_has_three_parts() -> None:
    wanted = parse_rules_file(b"acls: [{allow: [a, b], for: producer, topic: t}]", "f")
    existing = parse_rules_file(b"acls: [{allow: [b, c], for: producer, topic: t}]", "f")
    parts = compare_rules(wanted, existing)
    assert [["User:a"], ["User:b"], ["User:c"]] == [
        [rule.entry.principal for rule in part] for part in parts
    ]


def test_one_rule_is_deleted_by_a_filter_that_means_no_other() -> None:
    rules = parse_rules_file(FILE, "f")
    filters: list[AclFilter] = list(map(exactly, rules))
    assert [[rule] for rule in rules] == [
        [rule for rule in rules if one.matches(*rule)] for one in filters
    ]
