"""Fetch: offsets, limits, sessions, epochs, ids, and what older versions get."""

from __future__ import annotations

from typing import Any

from engine.records.codec import Codec
from tests.compat.wire.batches import data, records
from tests.compat.wire.pair import BodyOf, Pair, Side, versions

_MAX_BYTES = 50_000_000


def fetch(topic: str, offset: int = 0, **more: Any) -> BodyOf:
    """Return a Fetch of one partition; names in `more` go to the partition or the request."""
    partition_names = (
        "partition",
        "current_leader_epoch",
        "last_fetched_epoch",
        "log_start_offset",
        "partition_max_bytes",
    )
    own = {key: more.pop(key) for key in partition_names if key in more}
    partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": _MAX_BYTES} | own
    replica = more.pop("replica_id", -1)

    def of(side: Side) -> dict[str, Any]:
        topic_id = side.topic_ids.get(topic, bytes(15) + b"\x09")
        found = {
            "replica_id": replica,
            "max_wait_ms": 0,
            "min_bytes": 0,
            "max_bytes": _MAX_BYTES,
            "topics": [{"topic": topic, "topic_id": topic_id, "partitions": [partition]}],
        }
        if replica != -1:
            found["replica_state"] = {"replica_id": replica, "replica_epoch": -1}
        return found | more

    return of


def read_back(pair: Pair, topic: str, *, index: int = 0) -> None:
    """Compare every byte of a partition as each kind of client gets it."""
    for version in (0, 1, 3, 4, 10, 12, 13):
        pair.ask("read back", "Fetch", version, fetch(topic, partition=index))


def _filled(pair: Pair, suffix: str, **configs: str) -> str:
    topic = pair.topic(suffix, configs=configs)
    for n in range(12):
        magic, codec = (n % 3, (Codec.NONE, Codec.GZIP)[n // 3 % 2])
        raw = data(magic, codec, records(4, pair.now_ms + n, size=20 * n))
        entry = {"index": 0, "records": raw}
        requested = [{"name": topic, "partition_data": [entry]}]
        sent = {"acks": -1, "timeout_ms": 1000, "topic_data": requested}
        pair.ask("stage", "Produce", 7 if magic == 2 else 2, sent)
    return topic


def offsets(pair: Pair) -> None:
    """Every kind of offset in every version."""
    topic = _filled(pair, "offsets", **{"segment.bytes": "700"})
    for version in versions("Fetch"):
        for offset in (*range(-2, 50), 1000, 2**62):
            pair.ask(f"offset {offset}", "Fetch", version, fetch(topic, offset))
        for index in (1, -1):
            pair.ask(f"partition {index}", "Fetch", version, fetch(topic, partition=index))
        for name in (pair.name("gone"), "", "a/b"):
            pair.ask(f"topic {name!r}", "Fetch", version, fetch(name))
        pair.ask("isolation 1", "Fetch", version, fetch(topic, isolation_level=1))
        pair.ask("isolation 2", "Fetch", version, fetch(topic, isolation_level=2))
        pair.ask("rack", "Fetch", version, fetch(topic, rack_id="r1"))
        pair.ask("cluster id", "Fetch", version, fetch(topic, cluster_id="other"))


def limits(pair: Pair) -> None:
    """Sizes of 0, 1, small and negative, for the partition and the request."""
    topic = _filled(pair, "limits", **{"segment.bytes": "700"})
    for version in versions("Fetch"):
        for size in (-1, 0, 1, 17, 40, 61, 100, 150, 300, 700, 1000, 2**31 - 1):
            pair.ask(
                f"partition {size}", "Fetch", version, fetch(topic, 0, partition_max_bytes=size)
            )
            pair.ask(
                f"partition {size} from 5",
                "Fetch",
                version,
                fetch(topic, 5, partition_max_bytes=size),
            )
            pair.ask(f"request {size}", "Fetch", version, fetch(topic, 0, max_bytes=size))
            sent = fetch(topic, 9, max_bytes=size, partition_max_bytes=100)
            pair.ask(f"request {size} of 100", "Fetch", version, sent)
        for least in (-1, 1, 10_000_000):
            for offset in (0, 48):
                sent = fetch(topic, offset, min_bytes=least, max_wait_ms=60)
                pair.ask(f"at least {least} from {offset}", "Fetch", version, sent)
        pair.ask("wait -1", "Fetch", version, fetch(topic, 48, min_bytes=1, max_wait_ms=-1))


def several(pair: Pair) -> None:
    """Several partitions, in a request's order, sharing its bytes."""
    names = [_filled(pair, f"several{n}") for n in range(2)]

    def requested(side: Side, *offsets_of: int) -> list[dict[str, Any]]:
        return [
            {
                "topic": name,
                "topic_id": side.topic_ids[name],
                "partitions": [
                    {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 600}
                ],
            }
            for name, offset in zip(names, offsets_of, strict=True)
        ]

    for version in versions("Fetch"):
        for whole in (1, 500, 900, 5000):
            for of in ((0, 0), (0, 99), (48, 0), (99, 99), (48, 48)):
                for least in (0, 1):
                    pair.ask(
                        f"{of} within {whole} at least {least}",
                        "Fetch",
                        version,
                        lambda side, of=of, whole=whole, least=least: {
                            "max_wait_ms": 40,
                            "min_bytes": least,
                            "max_bytes": whole,
                            "topics": requested(side, *of),
                        },
                    )
        twice = lambda side: {  # noqa: E731
            "max_wait_ms": 0,
            "max_bytes": 9999,
            "topics": requested(side, 0, 0) + requested(side, 4, 4),
        }
        pair.ask("topics twice", "Fetch", version, twice)
        pair.ask("nothing", "Fetch", version, {"max_wait_ms": 10, "max_bytes": 100})
        empty = lambda side: {  # noqa: E731
            "max_wait_ms": 0,
            "topics": [{"topic": names[0], "topic_id": side.topic_ids[names[0]], "partitions": []}],
        }
        pair.ask("no partitions", "Fetch", version, empty)


def epochs(pair: Pair) -> None:
    """Leader epochs older, newer and of divergence; followers that are none."""
    topic = _filled(pair, "epochs")
    for version in versions("Fetch"):
        for epoch in (-2, -1, 0, 1, 5):
            sent = fetch(topic, 3, current_leader_epoch=epoch)
            pair.ask(f"current epoch {epoch}", "Fetch", version, sent)
        for epoch in (-2, -1, 0, 1):
            for offset in (0, 20, 48, 60):
                sent = fetch(topic, offset, last_fetched_epoch=epoch, current_leader_epoch=0)
                pair.ask(f"fetched epoch {epoch} at {offset}", "Fetch", version, sent)
        for replica in (1, 5, -2, -3, 0):
            sent = fetch(topic, 0, replica_id=replica, log_start_offset=0)
            pair.ask(f"replica {replica}", "Fetch", version, sent)
            sent = fetch(topic, 60, replica_id=replica, log_start_offset=0)
            pair.ask(f"replica {replica} beyond", "Fetch", version, sent)


def ids(pair: Pair) -> None:
    """Topic ids unknown, zero, and of another topic."""
    topic = _filled(pair, "ids")
    known = lambda side: side.topic_ids[topic]  # noqa: E731
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": _MAX_BYTES}
    for version in range(12, 18):
        for what, of in {
            "zero": lambda _side: [bytes(16)],
            "unknown": lambda _side: [bytes(15) + b"\x05"],
            "known and unknown": lambda side: [known(side), bytes(15) + b"\x05"],
            "known and zero": lambda side: [known(side), bytes(16)],
            "known twice": lambda side: [known(side)] * 2,
        }.items():
            for session in ((0, -1), (0, 0)):
                pair.ask(
                    f"ids {what} session {session}",
                    "Fetch",
                    version,
                    lambda side, of=of, session=session: {
                        "max_bytes": _MAX_BYTES,
                        "session_id": session[0],
                        "session_epoch": session[1],
                        "topics": [
                            {"topic": topic, "topic_id": one, "partitions": [partition]}
                            for one in of(side)
                        ],
                    },
                )


def sessions(pair: Pair) -> None:
    """A session from its first fetch to its end, and those that are no sessions."""
    one, other = _filled(pair, "session1"), _filled(pair, "session2")
    for version in range(7, 18):
        known: dict[str, int] = {}

        def requested(
            what: str,
            epoch: int,
            topics: tuple[tuple[str, int], ...] = (),
            forgotten: tuple[str, ...] = (),
            *,
            session: int | None = None,
            wait: int = 0,
            version: int = version,
            known: dict[str, int] = known,
        ) -> list[Any]:
            def of(side: Side) -> dict[str, Any]:
                return {
                    "max_wait_ms": wait,
                    "min_bytes": 1 if wait else 0,
                    "max_bytes": _MAX_BYTES,
                    "session_id": known.get(side.name, 0) if session is None else session,
                    "session_epoch": epoch,
                    "topics": [
                        {
                            "topic": name,
                            "topic_id": side.topic_ids.get(name, bytes(15) + b"\x07"),
                            "partitions": [
                                {
                                    "partition": 0,
                                    "fetch_offset": offset,
                                    "partition_max_bytes": 100_000,
                                }
                            ],
                        }
                        for name, offset in topics
                    ],
                    "forgotten_topics_data": [
                        {
                            "topic": name,
                            "topic_id": side.topic_ids.get(name, bytes(15) + b"\x07"),
                            "partitions": [0, 4],
                        }
                        for name in forgotten
                    ],
                }

            return pair.ask(f"session {what}", "Fetch", version, of)

        opened = requested("full", 0, ((one, 40), (other, 48)))
        for requested_side, answer in zip(pair.sides, opened, strict=True):
            known[requested_side.name] = answer.session_id
        requested("next", 1)
        requested("next moves", 2, ((one, 48),))
        requested("next waits", 3, wait=50)
        requested("wrong epoch", 3)
        requested("epoch ahead", 9)
        requested("forgets", 4, (), (one,))
        requested("moves back", 5, ((other, 44),))
        requested("unknown topic", 6, ((pair.name("gone"), 0),))
        requested("unknown topic again", 7)
        requested("out of range", 8, ((other, 999),))
        requested("out of range again", 9)
        requested("forgets unknown", 10, (), (pair.name("gone"), pair.name("never")))
        requested("adds back", 11, ((one, 47),))
        requested("adds and forgets", 12, ((one, 46),), (one,))
        requested("unknown id", 1, session=123456)
        requested("unknown id full", 0, ((one, 47),), session=123456)
        requested("id without epoch", -1, ((one, 47),))
        requested("after its end", 13)
        requested("sessionless of unknown", -1, ((one, 47),), session=99)
        requested("empty full", 0, session=0)
        requested("epoch 5 of none", 5, session=0)
        requested("negative epoch", -2, session=0)
        requested("sessionless", -1, ((one, 47), (other, 48)), session=0)


CASES = {
    "fetch.offsets": offsets,
    "fetch.limits": limits,
    "fetch.several": several,
    "fetch.epochs": epochs,
    "fetch.ids": ids,
    "fetch.sessions": sessions,
}
