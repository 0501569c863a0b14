"""Sets of access rules with requests, drawn from a seed, and what our authorizer decides.

Few users, hosts and names, so that rules meet requests and each other: names are prefixes of one
another, the wildcard is asked for as a name, rules exist twice and contradict.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any, NamedTuple

from engine.api.admission import Admission, NoQuotas, Session
from engine.broker.access_rules import AccessRules
from engine.broker.unserved import AUTHORIZER_CLASS
from engine.config.settings import BrokerSettings
from engine.host.coroutine import drive
from engine.host.memory import ManualClock
from engine.host.memory_network import MemoryTimers
from engine.security.acl_cache import Requester
from engine.security.acl_decision import AuthorizerSettings, decide
from engine.security.acls import (
    CONCRETE_RESOURCES,
    AclBinding,
    AclOperation,
    AclPattern,
    AclResource,
    PatternType,
)
from engine.security.principals import super_users_of
from engine.znode.embedded import EmbeddedZnodeClient
from engine.znode.memory_journal import MemoryJournal
from engine.znode.store import ZnodeStore

#: What a set of rules is asked for, as JSON has it.
Case = dict[str, Any]

_PRINCIPALS = (
    "User:ann", "User:bob", "User:ANONYMOUS", "User:a:b", "User:*", "User:", "Group:ann", "Group:*",
    "user:ann", "User:CN=ann,O=é",
)  # fmt: skip
_RULE_HOSTS = ("*", "*", "*", "10.0.0.1", "10.0.0.2", "0:0:0:0:0:0:0:1", "::1", "localhost")
#: Where clients come from: peers of connections, and the addresses that Java parses.
_PEERS = (
    ("10.0.0.1:5000", "10.0.0.1"),
    ("10.0.0.2:5001", "10.0.0.2"),
    ("[::1]:5002", "::1"),
    ("[fe80::a:0]:5003", "fe80::a:0"),
    ("[::ffff:10.0.0.1]:5004", "::ffff:10.0.0.1"),
)
_NAMES = (
    "a", "ab", "abc", "abcd", "b", "B", "a.b", "a-", "*", "**", "*a", "kafka-cluster", "é", "éa",
    "NONE", "~",
)  # fmt: skip
_SUPER_USERS = (
    "", "", "", "", "User:ann", "User:bob;User:ann", " User:a:b ; Group:ann;", "User:*", "Group:*",
    "User:", "User:CN=ann,O=é",
)  # fmt: skip
_ALLOWS = ("", "", "false", "true", "TRUE", "True")
#: TWO_PHASE_COMMIT came with Kafka 4.
_OPERATIONS = tuple(
    operation
    for operation in AclOperation
    if AclOperation.ANY < operation < AclOperation.TWO_PHASE_COMMIT
)


def case_of(seed: int, *, requests: int = 40) -> Case:
    """Return the rules and requests of a seed."""
    draw = Random(f"authorizer {seed}")
    # Most sets are about few things, so that what decides is often not the lack of rules.
    kinds = draw.sample(CONCRETE_RESOURCES, draw.choice((1, 1, 2, 6)))
    names = draw.sample(_NAMES, draw.choice((2, 4, 8, len(_NAMES))))
    principals = draw.sample(_PRINCIPALS, draw.choice((2, 3, 5, len(_PRINCIPALS))))
    operations = draw.sample(_OPERATIONS, draw.choice((2, 4, len(_OPERATIONS))))
    deny_share = draw.choice((0.1, 0.3, 0.5))
    prefixed_share = draw.choice((0.0, 0.3, 0.6))

    def rule() -> list[str]:
        return [
            draw.choice(kinds).name,
            draw.choice(names),
            "PREFIXED" if draw.random() < prefixed_share else "LITERAL",
            draw.choice(principals),
            draw.choice(_RULE_HOSTS),
            draw.choice(operations).name,
            "DENY" if draw.random() < deny_share else "ALLOW",
        ]

    def request() -> list[str | None]:
        peer, address = draw.choice(_PEERS)
        is_of_some = draw.random() < 0.25
        operation = draw.choice(operations if draw.random() < 0.8 else _OPERATIONS)
        return [
            draw.choice(principals),
            peer,
            address,
            operation.name,
            draw.choice(kinds).name,
            None if is_of_some else draw.choice(names if draw.random() < 0.7 else _NAMES),
        ]

    return {
        "super_users": draw.choice(_SUPER_USERS),
        "allows": draw.choice(_ALLOWS),
        "rules": [rule() for _ in range(draw.choice((0, 1, 2, 4, 8, 16)))],
        "requests": [request() for _ in range(requests)],
    }


def line_of(case: Case) -> str:
    """Return a case as a line of JSON."""
    return json.dumps(case, ensure_ascii=False, separators=(",", ":"))


class Decisions(NamedTuple):
    """What two parts of ours decide for each request, a digit each: 1 for allowed.

    `with_reasons` are those of the part that names the rule too; a request without a resource's
    name is a dash there.
    """

    of_broker: str
    with_reasons: str


def decisions_of(case: Case, znodes: dict[str, str]) -> Decisions:
    """Return what is decided by the rules in znodes that Kafka wrote."""
    rules = _rules_in(case, znodes)
    admission = Admission(rules.authorizer, NoQuotas())
    cache = rules.admin.cache
    bindings = [
        AclBinding(pattern, entry)
        for pattern in cache.patterns()
        for entry in cache.entries(pattern)
    ]
    super_users, _ = super_users_of(case["super_users"])
    settings = AuthorizerSettings(super_users, case["allows"].strip().lower() == "true")
    of_broker, with_reasons = "", ""
    for principal, peer, _, operation_name, kind_name, name in case["requests"]:
        session = Session(peer, admission)
        session.authenticate(principal)
        operation, kind = AclOperation[operation_name], AclResource[kind_name]
        if name is None:
            of_broker += _digit(rules.authorizer.may_to_some(session, operation, kind))
            with_reasons += "-"
            continue
        of_broker += _digit(session.may(operation, kind, name))
        resource = AclPattern(kind, name, PatternType.LITERAL)
        decision = decide(
            bindings, Requester(principal, session.host), operation, resource, settings
        )
        with_reasons += _digit(decision.is_allowed)
    return Decisions(of_broker, with_reasons)


def as_requested(decisions: str, case: Case) -> str:
    """Return decisions with a dash for each request without a resource's name."""
    return "".join(
        "-" if request[-1] is None else digit
        for digit, request in zip(decisions, case["requests"], strict=True)
    )


def _rules_in(case: Case, znodes: dict[str, str]) -> AccessRules:
    """Return a broker's authorizer with the rules that lie in znodes."""
    client = EmbeddedZnodeClient(ZnodeStore(MemoryJournal(), ManualClock()), 18_000)
    texts = {
        "authorizer.class.name": AUTHORIZER_CLASS,
        "super.users": case["super_users"],
        "allow.everyone.if.no.acl.found": case["allows"],
    }
    clock = ManualClock()
    rules = AccessRules(BrokerSettings(texts), client, clock=clock, timers=MemoryTimers(clock))

    async def load() -> None:
        await client.connect()
        await rules.admin.create_paths()
        for path, text in znodes.items():
            await client.create(path, text.encode())
        for pattern_type in (PatternType.LITERAL, PatternType.PREFIXED):
            await rules.admin.load(pattern_type)

    drive(load()).result()
    return rules


def _digit(is_allowed: bool) -> str:
    return "1" if is_allowed else "0"
