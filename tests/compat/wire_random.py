"""Ask a broker of Kafka and one of ours the same drawn requests; print where answers differ.

    python -m tests.compat.wire_random --real HOST:PORT --ours HOST:PORT [--seed N] [--stages N]

Both must be fresh, of one broker with the same settings and `auto.create.topics.enable=false`. A
stage has topics and groups of its own and goes on as long as a seed says, so that `--seed N
--stages 1` asks the same again. Only what both advertise is asked.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from typing import Any, Final

from engine.wire.headers import api
from tests.compat.wire.accepted import accepted
from tests.compat.wire.drawn import Body, Draw, resolved
from tests.compat.wire.pair import Difference, Pair, Side
from tests.compat.wire_compare import print_differences

#: APIs that brokers ask each other, that shut one down, or that begin a login.
_LEFT_OUT: Final = frozenset(
    (
        "LeaderAndIsr",
        "StopReplica",
        "UpdateMetadata",
        "ControlledShutdown",
        "SaslHandshake",
        "SaslAuthenticate",
        "AlterPartition",
        "AllocateProducerIds",
        "WriteTxnMarkers",
        "Envelope",
        "ConsumerGroupHeartbeat",
        "ConsumerGroupDescribe",
    )
)
#: APIs that are asked more often, for what they change or depend on.
_OFTEN: Final = {
    "Produce": 4,
    "Fetch": 3,
    "JoinGroup": 4,
    "SyncGroup": 2,
    "OffsetCommit": 3,
    "InitProducerId": 3,
    "AddPartitionsToTxn": 2,
    "CreateTopics": 3,
    "ListOffsets": 2,
}


def main() -> int:
    """Run; returns 1 where something differs."""
    given = _arguments()
    pair = Pair(given.real, given.ours, timeout_s=given.timeout)
    names = _common_versions(pair)
    asked = [name for name in names if not given.only or name in given.only.split(",")]
    _warm_up(pair)
    for seed in range(given.seed, given.seed + given.stages):
        _stage(pair, {name: names[name] for name in asked}, seed, given)
    left = [one for one in pair.differences if not accepted(one)]
    left = [one for one in left if given.messages or one.kind != "message"]
    print_differences(left, given.each)
    kinds = Counter(f"{one.kind} {one.label.split()[0]} {_field(one)}" for one in left)
    for kind, count in sorted(kinds.items()):
        print(f"{count:5} {kind}")
    print("asked:", ", ".join(f"{name} {count}" for name, count in sorted(pair.requested.items())))
    print(f"asked {sum(pair.requested.values())}, differences {len(left)}")
    return int(bool(left))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--real", required=True)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--stages", type=int, default=20)
    parser.add_argument("--requests", type=int, default=80, help="of a stage")
    parser.add_argument("--only", default="", help="APIs to ask, behind commas")
    parser.add_argument("--timeout", type=float, default=4.0)
    parser.add_argument("--each", type=int, default=2, help="how many of a kind to print")
    parser.add_argument("--messages", action="store_true")
    parser.add_argument("--prefix", default=f"r{int(time.time()) % 100_000}")
    return parser.parse_args()


def _common_versions(pair: Pair) -> dict[str, range]:
    """Return the versions that both serve of each API that is asked."""
    body = {"client_software_name": "x", "client_software_version": "1"}
    found = [
        {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
        for answer in pair.ask("both", "ApiVersions", 3, body)
    ]
    out = {}
    for key in sorted(found[0].keys() & found[1].keys()):
        lowest = max(one[key][0] for one in found)
        highest = min(one[key][1] for one in found)
        out[api(key).name] = range(lowest, highest + 1)
    # The first versions of these read znodes.
    for name in ("OffsetCommit", "OffsetFetch"):
        out[name] = range(max(1, out[name][0]), out[name][-1] + 1)
    return {name: versions for name, versions in out.items() if name not in _LEFT_OUT}


def _warm_up(pair: Pair) -> None:
    """Have both make their internal topics, and give out a first producer id."""
    for kind in (0, 1):
        body = {"key_type": kind, "key": "warm"}
        for _ in range(100):
            answers = pair.ask("warm", "FindCoordinator", 2, body)
            if all(one.error_code == 0 for one in answers):
                break
            time.sleep(0.2)
    body = {"transactional_id": None, "transaction_timeout_ms": 60_000}
    for _ in range(50):
        if all(one.error_code == 0 for one in pair.ask("warm", "InitProducerId", 1, body)):
            break
        time.sleep(0.2)
    pair.differences.clear()


def _stage(pair: Pair, names: dict[str, range], seed: int, given: argparse.Namespace) -> None:
    rng = random.Random(seed)
    pair.prefix = f"{given.prefix}-{seed}"
    draw = Draw(rng, pair.prefix, pair.now_ms)
    for side in pair.sides:
        side.kept.clear()
    for suffix, partitions in (("a", 1), ("b", 3)):
        name = pair.topic(suffix, partitions=partitions)
        for side in pair.sides:
            side.kept["topic", name] = side.topic_ids[name]
    pair.settle()
    weights = [_OFTEN.get(name, 1) for name in names]
    for at in range(given.requests):
        name = rng.choices(list(names), weights)[0]
        version = rng.choice(names[name])
        _ask(pair, f"{seed}.{at}", name, version, draw.body(name, version))


def _ask(pair: Pair, label: str, name: str, version: int, body: Body) -> None:
    if name == "Metadata" and not body.get("topics"):
        label += " all"
    before = len(pair.differences)
    answers = pair.ask(label, name, version, lambda side: resolved(body, side))
    if name in ("EndTxn", "InitProducerId"):
        # Markers are written a moment after the answer.
        pair.settle(0.05)
    for side, answer in zip(pair.sides, answers, strict=True):
        if not isinstance(answer, str):
            _keep(side, name, body, answer)
    found = pair.differences[before:]
    pair.differences[before:] = [_with_request(one, body) for one in found]


def _with_request(one: Difference, body: Body) -> Difference:
    """Return a difference whose label shows the request, but for the bytes of records."""
    text = re.sub(r"raw=b(['\"]).*?\1, |b(['\"])\\x00.{80,}?\2", "", str(body))
    return one._replace(label=f"{one.label} {text} at")


def _field(one: Difference) -> str:
    return re.sub(r"\[[0-9]+\]", "[]", one.path)


def _keep(side: Side, name: str, body: Body, answer: Any) -> None:
    """Remember what a broker gave out under the name that both sides have it by."""
    if name == "JoinGroup" and answer.member_id:
        side.kept["member", body["group_id"]] = answer.member_id
        if answer.error_code == 0:
            side.kept["generation", body["group_id"]] = answer.generation_id
    if name == "InitProducerId" and answer.error_code == 0:
        transactional_id = body["transactional_id"] or ""
        side.kept["producer", transactional_id] = answer.producer_id
        side.kept["epoch", transactional_id] = answer.producer_epoch
        word = f"<producer of {transactional_id}>"
        side.masks.producer_ids.setdefault(answer.producer_id, word)
    if name == "CreateTopics" and hasattr(answer, "topics"):
        for one in answer.topics:
            if one.error_code == 0 and any(getattr(one, "topic_id", b"")):
                side.masks.topic_ids[one.topic_id] = f"<id of {one.name}>"


if __name__ == "__main__":
    sys.exit(main())
