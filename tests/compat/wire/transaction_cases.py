"""Transactions: every version of every API, in the order of a transaction's life.

The brokers have `transaction.state.log.replication.factor=1` and `transaction.state.log.min.isr=1`.
After an end both are given a moment: Kafka's markers are on their way while it answers already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.compat.wire.batches import batch, produce_body, records
from tests.compat.wire.group_cases import found as found_group
from tests.compat.wire.pair import Pair, Side, versions

Body = dict[str, Any]
_UNKNOWN = {"producer_id": 987_654, "producer_epoch": 0}
_MARKERS_S = 0.25


def _found(pair: Pair) -> None:
    """Wait until both brokers coordinate transactions and groups."""
    found_group(pair, "g")
    before = list(pair.differences)
    for _ in range(100):
        body = {"key_type": 1, "coordinator_keys": ["tx"]}
        answers = pair.ask("stage", "FindCoordinator", 4, body)
        begun = pair.ask("stage", "InitProducerId", 4, _init(pair.name("stage")))
        if all(not one.coordinators[0].error_code for one in answers) and all(
            not one.error_code for one in begun
        ):
            break
        pair.settle()
    pair.differences[:] = before


def _init(transactional_id: str | None, **more: Any) -> Body:
    return {
        "transactional_id": transactional_id,
        "transaction_timeout_ms": 60_000,
        "producer_id": -1,
        "producer_epoch": -1,
    } | more


def _begin(
    pair: Pair, transactional_id: str, *, version: int = 4, name: str = "p", label: str = "begin"
) -> None:
    """Have a producer id on both sides, kept under a name."""
    answers = pair.ask(label, "InitProducerId", version, _init(transactional_id))
    for side, answer in zip(pair.sides, answers, strict=True):
        side.kept[name] = (answer.producer_id, answer.producer_epoch)
        if answer.producer_id >= 0:
            side.masks.producer_ids[answer.producer_id] = f"<producer of {transactional_id}>"


def _of(name: str, body: Body, *, epochs: int = 0) -> Callable[[Side], Body]:
    """Return a body with a producer's id and its epoch, raised by some."""

    def of(side: Side) -> Body:
        producer_id, epoch = side.kept[name]
        return body | {"producer_id": producer_id, "producer_epoch": epoch + epochs}

    return of


def _add(transactional_id: str, topics: dict[str, list[int]], **more: Any) -> Body:
    rows = [{"name": name, "partitions": indexes} for name, indexes in topics.items()]
    return {
        "v3_and_below_transactional_id": transactional_id,
        "v3_and_below_topics": rows,
    } | more


def _added(name: str, body: Body, *, epochs: int = 0) -> Callable[[Side], Body]:
    def of(side: Side) -> Body:
        producer_id, epoch = side.kept[name]
        return body | {
            "v3_and_below_producer_id": producer_id,
            "v3_and_below_producer_epoch": epoch + epochs,
        }

    return of


def _produced(
    pair: Pair, topic: str, transactional_id: str | None, sequence: int = 0, **more: Any
) -> Callable[[Side], Body]:
    index, name = more.pop("index", 0), more.pop("name", "p")
    epochs = more.pop("epochs", 0)

    def of(side: Side) -> Body:
        producer_id, epoch = side.kept[name]
        raw = batch(
            records(2, pair.now_ms),
            producer_id=producer_id,
            producer_epoch=epoch + epochs,
            base_sequence=sequence,
            is_transactional=True,
        )
        return produce_body(topic, raw, index=index, transactional_id=transactional_id) | more

    return of


def _committed(transactional_id: str, group: str, name: str, **more: Any) -> Body:
    row = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
    row |= more.pop("row", {})
    return {
        "transactional_id": transactional_id,
        "group_id": group,
        "generation_id": -1,
        "member_id": "",
        "group_instance_id": None,
        "topics": [{"name": more.pop("topic", name), "partitions": [row]}],
    } | more


def _seen(pair: Pair, transactional_id: str, topic: str, group: str, when: str) -> None:
    """Compare all that can be seen of a transaction."""
    ids = [transactional_id, "unknown", ""]
    pair.ask(when, "DescribeTransactions", 0, {"transactional_ids": ids})
    rows = [{"name": topic, "partition_indexes": [0, 1, 2, 9]}]
    pair.ask(when, "DescribeProducers", 0, {"topics": rows})
    for is_stable in (False, True):
        row = {"name": topic, "partition_indexes": [0, 1]}
        body = {"group_id": group, "topics": [row], "require_stable": is_stable}
        pair.ask(f"{when} stable {is_stable}", "OffsetFetch", 7, body)
        pair.ask(f"{when} all {is_stable}", "OffsetFetch", 7, body | {"topics": None})
    for isolation in (0, 1):
        for index in (0, 1):
            where = {
                "partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 20,
                "current_leader_epoch": -1, "log_start_offset": -1,
            }  # fmt: skip
            body = {
                "replica_id": -1, "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20,
                "isolation_level": isolation, "session_epoch": -1,
                "topics": [{"topic": topic, "partitions": [where]}],
            }  # fmt: skip
            pair.ask(f"{when} isolation {isolation} of {index}", "Fetch", 11, body)
            times = {"partition_index": index, "timestamp": -1, "current_leader_epoch": -1}
            body = {
                "replica_id": -1,
                "isolation_level": isolation,
                "topics": [{"name": topic, "partitions": [times]}],
            }
            pair.ask(f"{when} isolation {isolation} of {index}", "ListOffsets", 7, body)


def strangers(pair: Pair) -> None:
    """Transactional ids that nobody has begun, and requests that say nothing."""
    topic = pair.topic("t")
    _found(pair)
    for version in versions("InitProducerId"):
        for label, transactional_id, more in (
            ("empty", "", {}),
            ("no time", "x", {"transaction_timeout_ms": 0}),
            ("negative time", "x", {"transaction_timeout_ms": -1}),
            ("long time", "x", {"transaction_timeout_ms": 900_001}),
            ("id alone", pair.name("x"), {"producer_id": 5}),
            ("epoch alone", pair.name("x"), {"producer_epoch": 5}),
        ):
            pair.ask(label, "InitProducerId", version, _init(transactional_id, **more))
    _strange_partitions(pair, topic)
    for version in versions("AddOffsetsToTxn"):
        for id_, group in (("nobody", "g"), ("", "g"), ("nobody", "")):
            body = {"transactional_id": id_, "group_id": group} | _UNKNOWN
            pair.ask(f"{id_!r} {group!r}", "AddOffsetsToTxn", version, body)
    for version in versions("EndTxn"):
        for id_ in ("nobody", ""):
            for is_commit in (True, False):
                body = {"transactional_id": id_, "committed": is_commit} | _UNKNOWN
                pair.ask(f"{id_!r} {is_commit}", "EndTxn", version, body)
    for version in versions("TxnOffsetCommit"):
        for id_, group in (("nobody", "g"), ("", "g"), ("nobody", "")):
            for more in ({}, {"topic": "gone"}, {"row": {"partition_index": 9}}):
                body = _committed(id_, group, topic, **more) | _UNKNOWN
                pair.ask(f"{id_!r} {group!r} {more}", "TxnOffsetCommit", version, body)
    _strange_filters(pair)


def _strange_filters(pair: Pair) -> None:
    for version in versions("ListTransactions"):
        for states in (["x"], ["Ongoing", "ongoing", "y"]):
            body = {
                "state_filters": states,
                "producer_id_filters": [987_654],
                "duration_filter": -1,
            }
            pair.ask(f"{states}", "ListTransactions", version, body)
    pair.ask("none", "DescribeTransactions", 0, {"transactional_ids": []})


def _strange_partitions(pair: Pair, topic: str) -> None:
    for version in versions("AddPartitionsToTxn")[:4]:
        for label, id_ in (("unknown", "nobody"), ("empty", "")):
            for partitions in ({topic: [0]}, {"gone": [0], topic: [0]}, {topic: [0, 9]}, {}):
                body = _add(id_, partitions) | {
                    "v3_and_below_producer_id": 5, "v3_and_below_producer_epoch": 0,
                }  # fmt: skip
                pair.ask(f"{label} {len(partitions)}", "AddPartitionsToTxn", version, body)
        body = _add("nobody", {"__consumer_offsets": [0]})
        pair.ask("internal", "AddPartitionsToTxn", version, body)
    for version in versions("AddPartitionsToTxn")[4:]:
        for is_asked in (False, True):
            rows = [
                {
                    "transactional_id": id_, "producer_id": 5, "producer_epoch": 0,
                    "verify_only": is_asked, "topics": [{"name": name, "partitions": [0]}],
                }
                for id_, name in (("nobody", topic), ("", topic), ("other", "gone"))
            ]  # fmt: skip
            label = f"several {is_asked}"
            pair.ask(label, "AddPartitionsToTxn", version, {"transactions": rows})
        pair.ask("none", "AddPartitionsToTxn", version, {"transactions": []})


def lives(pair: Pair) -> None:
    """A transaction is begun, written, seen, committed or aborted, and ended again."""
    topic = pair.topic("t", partitions=3)
    _found(pair)
    for version in versions("AddPartitionsToTxn")[:4]:
        for is_commit in (True, False):
            _life(pair, topic, version, is_commit=is_commit)


def _life(pair: Pair, topic: str, version: int, *, is_commit: bool) -> None:
    id_ = pair.name(f"life-{version}-{is_commit}")
    group, end = f"{id_}-g", {"transactional_id": id_, "committed": is_commit}
    other_end = end | {"committed": not is_commit}
    _begin(pair, id_, version=version)
    end_version = min(version, 3)
    pair.ask("empty", "EndTxn", end_version, _of("p", end))
    _seen(pair, id_, topic, group, "begun")
    for partitions in ({topic: [0]}, {topic: [0]}, {topic: [0, 1]}, {topic: [2], "gone": [1]}):
        body = _added("p", _add(id_, partitions))
        pair.ask(f"{len(partitions)}", "AddPartitionsToTxn", version, body)
    pair.ask("first", "Produce", 9, _produced(pair, topic, id_))
    pair.ask("next", "Produce", 9, _produced(pair, topic, id_, 2))
    pair.ask("again", "Produce", 9, _produced(pair, topic, id_, 2))
    pair.ask("gap", "Produce", 9, _produced(pair, topic, id_, 7))
    pair.ask("other partition", "Produce", 8, _produced(pair, topic, id_, index=1))
    pair.ask("not added", "Produce", 10, _produced(pair, topic, id_, index=2))
    pair.ask("not added", "Produce", 11, _produced(pair, topic, id_, index=2))
    pair.ask("no id", "Produce", 9, _produced(pair, topic, None, 4))
    pair.ask("other id", "Produce", 9, _produced(pair, topic, "another", 4))
    commit = _committed(id_, group, topic)
    pair.ask("not added", "TxnOffsetCommit", min(version, 4), _of("p", commit))
    body = {"transactional_id": id_, "group_id": group}
    pair.ask("good", "AddOffsetsToTxn", min(version, 3), _of("p", body))
    for label, more in (
        ("good", {}),
        ("long metadata", {"row": {"committed_metadata": "x" * 4097}}),
        ("null metadata", {"row": {"committed_metadata": None, "partition_index": 1}}),
        ("unknown partition", {"row": {"partition_index": 9}}),
        ("unknown topic", {"topic": "gone"}),
        ("generation", {"generation_id": 3, "member_id": "m"}),
        ("member", {"member_id": "m"}),
        ("no group", {"group_id": ""}),
    ):
        offsets = _committed(id_, group, topic, **more)
        for at in versions("TxnOffsetCommit"):
            pair.ask(label, "TxnOffsetCommit", at, _of("p", offsets))
    _seen(pair, id_, topic, group, "open")
    for states in (["Ongoing"], ["Empty"], []):
        _list(pair, states, -1)
    pair.ask("wrong epoch", "EndTxn", end_version, _of("p", end, epochs=1))
    pair.ask("end", "EndTxn", end_version, _of("p", end))
    pair.settle(_MARKERS_S)
    pair.ask("end again", "EndTxn", end_version, _of("p", end))
    pair.ask("end otherwise", "EndTxn", end_version, _of("p", other_end))
    _seen(pair, id_, topic, group, "ended")
    pair.ask("after the end", "Produce", 9, _produced(pair, topic, id_, 4))
    pair.ask("after the end", "Produce", 11, _produced(pair, topic, id_, 4))
    pair.ask("next", "AddPartitionsToTxn", version, _added("p", _add(id_, {topic: [0]})))
    pair.ask("next transaction", "Produce", 9, _produced(pair, topic, id_, 4))
    pair.ask("end", "EndTxn", end_version, _of("p", other_end))
    pair.settle(_MARKERS_S)
    _seen(pair, id_, topic, group, "ended twice")


def _list(pair: Pair, states: list[str], duration_ms: int) -> None:
    for version in versions("ListTransactions"):

        def body(side: Side) -> Body:
            return {
                "state_filters": states,
                "producer_id_filters": [side.kept["p"][0]],
                "duration_filter": duration_ms,
            }

        pair.ask(f"{states}", "ListTransactions", version, body)


def fencing(pair: Pair) -> None:
    """A second producer of an id: the first one is fenced in every API and version."""
    topic = pair.topic("t")
    _found(pair)
    id_ = pair.name("fenced")
    _begin(pair, id_)
    for version in versions("InitProducerId"):
        _begin(pair, id_, version=version, name="new", label="second")
    for version in versions("AddPartitionsToTxn")[:4]:
        body = _added("p", _add(id_, {topic: [0]}))
        pair.ask("fenced", "AddPartitionsToTxn", version, body)
    for version in versions("AddOffsetsToTxn"):
        body = _of("p", {"transactional_id": id_, "group_id": "g"})
        pair.ask("fenced", "AddOffsetsToTxn", version, body)
    for version in versions("EndTxn"):
        body = _of("p", {"transactional_id": id_, "committed": True})
        pair.ask("fenced", "EndTxn", version, body)
    for version in versions("TxnOffsetCommit"):
        body = _of("p", _committed(id_, "g", topic))
        pair.ask("fenced", "TxnOffsetCommit", version, body)
    for version in versions("Produce")[3:]:
        pair.ask("fenced", "Produce", version, _produced(pair, topic, id_))
    for version in versions("AddPartitionsToTxn")[4:]:
        for is_asked in (False, True):

            def body_of(side: Side, is_asked: bool = is_asked) -> Body:
                producer_id, epoch = side.kept["p"]
                row = {
                    "transactional_id": id_, "producer_id": producer_id, "producer_epoch": epoch,
                    "verify_only": is_asked, "topics": [{"name": topic, "partitions": [0]}],
                }  # fmt: skip
                return {"transactions": [row]}

            pair.ask(f"fenced {is_asked}", "AddPartitionsToTxn", version, body_of)
    # KIP-360: a producer names its own id and epoch.
    for label, epochs in (("own", 0), ("repeated", 0), ("old", -3), ("later", 5)):
        pair.ask(label, "InitProducerId", 4, _of("new", _init(id_), epochs=epochs))
    other = _init(id_, producer_id=987_654, producer_epoch=3)
    pair.ask("other id", "InitProducerId", 4, other)


def begun_anew(pair: Pair) -> None:
    """A producer begins while a transaction is open: it is aborted first."""
    topic = pair.topic("t", partitions=2)
    _found(pair)
    for version in versions("InitProducerId"):
        id_ = pair.name(f"anew-{version}")
        _begin(pair, id_, version=version)
        pair.ask("open", "AddPartitionsToTxn", 3, _added("p", _add(id_, {topic: [0]})))
        pair.ask("open", "Produce", 9, _produced(pair, topic, id_))
        pair.ask("while open", "InitProducerId", version, _init(id_))
        pair.settle(_MARKERS_S)
        _seen(pair, id_, topic, f"{id_}-g", "aborted")
        pair.ask("old", "Produce", 9, _produced(pair, topic, id_, 2))
        body = _of("p", {"transactional_id": id_, "committed": True})
        pair.ask("old", "EndTxn", 3, body)
        _begin(pair, id_, version=version, name="new", label="then")
        pair.ask("new", "AddPartitionsToTxn", 3, _added("new", _add(id_, {topic: [1]})))
        pair.ask("new", "Produce", 9, _produced(pair, topic, id_, index=1, name="new"))
        body = _of("new", {"transactional_id": id_, "committed": True})
        pair.ask("new", "EndTxn", 3, body)
        pair.settle(_MARKERS_S)
        _seen(pair, id_, topic, f"{id_}-g", "new")


def markers(pair: Pair) -> None:
    """WriteTxnMarkers as a coordinator sends it, right and wrong."""
    topic = pair.topic("t")
    _found(pair)
    id_ = pair.name("marked")
    _begin(pair, id_)
    pair.ask("open", "AddPartitionsToTxn", 3, _added("p", _add(id_, {topic: [0]})))
    pair.ask("open", "Produce", 9, _produced(pair, topic, id_))
    for version in versions("WriteTxnMarkers"):
        for label, name, more in (
            ("unknown topic", "gone", {}),
            ("old epoch", topic, {"epochs": -1}),
            ("abort", topic, {}),
            ("again", topic, {}),
            ("old coordinator", topic, {"coordinator_epoch": -1}),
            ("new coordinator", topic, {"coordinator_epoch": 7, "transaction_result": True}),
        ):

            def body(side: Side, name: str = name, more: Body = more) -> Body:
                producer_id, epoch = side.kept["p"]
                row = {
                    "producer_id": producer_id,
                    "producer_epoch": epoch + more.get("epochs", 0),
                    "transaction_result": more.get("transaction_result", False),
                    "coordinator_epoch": more.get("coordinator_epoch", 0),
                    "topics": [{"name": name, "partition_indexes": [0, 9]}],
                }
                return {"markers": [row]}

            pair.ask(label, "WriteTxnMarkers", version, body)
        pair.ask("none", "WriteTxnMarkers", version, {"markers": []})
        _seen(pair, id_, topic, "g", "marked")


def timed_out(pair: Pair) -> None:
    """A transaction that takes too long is aborted, and its producer fenced."""
    topic = pair.topic("t", partitions=2)
    _found(pair)
    id_ = pair.name("late")
    answers = pair.ask("short", "InitProducerId", 4, _init(id_, transaction_timeout_ms=500))
    for side, answer in zip(pair.sides, answers, strict=True):
        side.kept["p"] = (answer.producer_id, answer.producer_epoch)
        side.masks.producer_ids[answer.producer_id] = "<late>"
    pair.ask("open", "AddPartitionsToTxn", 3, _added("p", _add(id_, {topic: [0]})))
    pair.ask("open", "Produce", 9, _produced(pair, topic, id_))
    pair.settle(12)
    _seen(pair, id_, topic, "g", "late")
    pair.ask("late", "Produce", 9, _produced(pair, topic, id_, 2))
    for version in versions("EndTxn"):
        body = _of("p", {"transactional_id": id_, "committed": True})
        pair.ask("late", "EndTxn", version, body)
    pair.ask("own", "InitProducerId", 4, _of("p", _init(id_)))
    pair.ask("raised", "InitProducerId", 4, _of("p", _init(id_), epochs=1))


CASES = {
    "transactions.strangers": strangers,
    "transactions.lives": lives,
    "transactions.fencing": fencing,
    "transactions.anew": begun_anew,
    "transactions.markers": markers,
    "transactions.late": timed_out,
}
