"""What an authorizer with thousands of rules costs one-record produces.

    python -m tests.perf.access_rules [--rules 10000] [--rounds 5]

Two embedded brokers take turns: one without an authorizer, one with it. The client is the user
ANONYMOUS, whom two of the rules allow it; the others are of other users and topics.
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Final

from engine.client.acl_admin import create_acls
from engine.client.blocking import KafkaClient
from engine.client.settings import parse_addresses
from engine.host.real import RealClock, RealEntropy
from engine.host.real_streams import RealStreams
from engine.security.acls import (
    AccessEntry,
    AclBinding,
    AclOperation,
    AclPattern,
    AclPermission,
    AclResource,
    PatternType,
)
from tests.perf.broker import Case, Kind, Peer, ours, run_case
from tests.perf.load import produce_pipelined
from tests.perf.ratios import machine_line

_AUTHORIZER: Final = (
    "authorizer.class.name=kafka.security.authorizer.AclAuthorizer",
    "super.users=User:admin",
)
_CASE: Final = Case("produce one record a request, pipelined", produce_pipelined, ">= 0.95x")
_AT_ONCE: Final = 500


def _parse_rule(
    principal: str, kind: AclResource, name: str, pattern: PatternType, operation: AclOperation
) -> AclBinding:
    entry = AccessEntry(principal, "*", operation, AclPermission.ALLOW)
    return AclBinding(AclPattern(kind, name, pattern), entry)


def rules(count: int) -> list[AclBinding]:
    """Return those of the client, and so many of others: a quarter prefixed, on 1,000 topics."""
    everybody = "User:ANONYMOUS"
    found = [
        _parse_rule(
            everybody, AclResource.CLUSTER, "kafka-cluster", PatternType.LITERAL, AclOperation.ALL
        ),
        _parse_rule(everybody, AclResource.TOPIC, "perf-", PatternType.PREFIXED, AclOperation.ALL),
    ]
    for number in range(count - len(found)):
        pattern = PatternType.LITERAL if number % 4 else PatternType.PREFIXED
        operation = AclOperation.READ if number % 2 else AclOperation.WRITE
        user, topic = f"User:user-{number // 10}", f"topic-{number % 1000}"
        found.append(_parse_rule(user, AclResource.TOPIC, topic, pattern, operation))
    return found


def _create(peer: Peer, count: int) -> None:
    client = KafkaClient(
        parse_addresses(peer.address),
        streams=RealStreams(),
        clock=RealClock(),
        entropy=RealEntropy(),
        timeout_ms=600_000,
    )
    wanted = rules(count)
    with client:
        for start in range(0, count, _AT_ONCE):
            create_acls(client, wanted[start : start + _AT_ONCE])


def main() -> None:
    """Measure, and print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rules", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    requested = parser.parse_args()
    open_settings = [*_AUTHORIZER, "allow.everyone.if.no.acl.found=true"]
    with (
        tempfile.TemporaryDirectory() as one,
        tempfile.TemporaryDirectory() as other,
        ours(one, []) as without,
        ours(other, open_settings) as guarded,
    ):
        _create(guarded, requested.rules)
        print(machine_line())
        plain, ruled = run_case(_CASE, [without, guarded], requested.rounds, 0, Kind())
        print(
            f"{_CASE.label}: {plain.figure:.0f} {plain.unit} without an authorizer, "
            f"{ruled.figure:.0f} with {requested.rules} rules, {ruled.figure / plain.figure:.3f}x; "
            f"CPU {plain.cpu:.1f} and {ruled.cpu:.1f} us a request"
        )


if __name__ == "__main__":
    main()
