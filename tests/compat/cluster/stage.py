"""Both clusters together: what is up, who is asked, and when both are quiet and equal."""

from __future__ import annotations

import base64
import contextlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException

from tests.compat.cluster.client_view import compare_views
from tests.compat.cluster.folder_view import folder_differences, read_folder
from tests.compat.cluster.processes import (
    BROKER_IDS,
    LOG_DIRS,
    Cluster,
    OwnStore,
    Zookeeper,
    wait_for_port,
)
from tests.compat.cluster.znode_view import Znode, read_tree, topic_ids, tree_differences
from tests.compat.wire.pair import BodyOf, Pair

#: How long a tree must not have changed for a difference to count.
_QUIET_S: Final = 4.0
#: How long trees that are equal must not have changed.
_EQUAL_S: Final = 0.7
_FILES_QUIET_S: Final = 6.0
_FILES_DEADLINE_S: Final = 15.0
_DEADLINE_S: Final = 60.0


class Stage:
    """Two clusters of three brokers each."""

    def __init__(
        self, zookeeper: Zookeeper, store: Zookeeper | OwnStore, real: Cluster, ours: Cluster
    ) -> None:
        """`store` has the znodes of our brokers."""
        self._clients: dict[str, KazooClient] = {
            real.root: zookeeper.client,
            ours.root: store.client,
        }
        self.clusters = (real, ours)
        self.up: set[int] = set()
        self.pairs = {id_: self._pair(id_) for id_ in BROKER_IDS}
        #: Topics by name, partitions by number, as the real cluster's znodes have them.
        self.topics: dict[str, dict[int, list[int]]] = {}
        self.tree: dict[str, Znode] = {}
        #: Brokers that have lost a log directory.
        self.hurt: set[int] = set()
        #: Differences that were printed; what is new after an operation is of that operation.
        self.seen: set[str] = set()
        self._number = 0
        self._last: Any = None
        self._producers: dict[tuple[str, int], tuple[int, int]] = {}
        self.counts = {"znodes": 0, "files": 0, "answers": 0}

    def _pair(self, broker_id: int) -> Pair:
        real, ours = (f"127.0.0.1:{cluster.ports[broker_id]}" for cluster in self.clusters)
        pair = Pair(real, ours, timeout_s=30)
        for side, cluster in zip(pair.sides, self.clusters, strict=True):
            side.masks.ports = {port: f"<port {id_}>" for id_, port in cluster.ports.items()}
            side.masks.shows_directories = True
        return pair

    # -- brokers

    def start(self, *broker_ids: int) -> None:
        """Start brokers of both and wait until they are registered and listen."""
        for broker_id in broker_ids:
            for cluster in self.clusters:
                cluster.start(broker_id)
        for broker_id in broker_ids:
            for cluster in self.clusters:
                wait_for_port(cluster.ports[broker_id])
                self.wait_for(f"{cluster.root}/brokers/ids/{broker_id}", is_there=True)
            self.up.add(broker_id)
            self.hurt.discard(broker_id)

    def end(self, broker_id: int, *, is_clean: bool) -> None:
        """Stop or kill a broker of both, and wait until its registration is gone."""
        self.up.discard(broker_id)
        for side in self.pairs[broker_id].sides:
            side.drop("main")
        for cluster in self.clusters:
            cluster.end(broker_id, is_clean=is_clean)
        for cluster in self.clusters:
            self.wait_for(f"{cluster.root}/brokers/ids/{broker_id}", is_there=False)

    def pause(self, broker_id: int) -> None:
        """Pause a broker of both until its session is over, and those left are quiet."""
        self.up.discard(broker_id)
        for cluster in self.clusters:
            cluster.pause(broker_id)
        for cluster in self.clusters:
            self.wait_for(f"{cluster.root}/brokers/ids/{broker_id}", is_there=False)
        self.align_controllers()

    def go_on(self, broker_id: int) -> None:
        """Let a paused broker of both go on, and wait until it is registered again."""
        for cluster in self.clusters:
            cluster.go_on(broker_id)
        for cluster in self.clusters:
            self.wait_for(f"{cluster.root}/brokers/ids/{broker_id}", is_there=True)
        self.up.add(broker_id)

    def controllers(self) -> list[int]:
        """Return the controllers of both, once both have one."""
        return [self._controller(cluster.root) for cluster in self.clusters]

    def _controller(self, root: str) -> int:
        self.wait_for(f"{root}/controller", is_there=True)
        return int(json.loads(self.client_of(root).get(f"{root}/controller")[0])["brokerid"])

    def align_controllers(self) -> None:
        """Have both elect until the same broker won: elections are races."""
        for _ in range(20):
            ids = self.controllers()
            if ids[0] == ids[1]:
                return
            # One that is taken away in the middle of its failover leaves other leader epochs.
            time.sleep(2)
            self.remove_controllers()
        raise AssertionError(f"controllers {ids}")

    def remove_controllers(self) -> None:
        """Delete the node that says who is the controller, and wait for the next one's election."""
        epochs = [self.epoch(cluster.root) for cluster in self.clusters]
        for cluster in self.clusters:
            self.client_of(cluster.root).delete(f"{cluster.root}/controller")
        for cluster, epoch in zip(self.clusters, epochs, strict=True):
            self.until(lambda at=cluster.root, low=epoch: self.epoch(at) > low, "a controller")
        time.sleep(1)

    def client_of(self, path: str) -> KazooClient:
        """Return the client of the cluster that a path is of."""
        return self._clients["/" + path.split("/")[1]]

    def epoch(self, root: str) -> int:
        """Return the epoch of the controller."""
        return int(self.client_of(root).get(f"{root}/controller_epoch")[0])

    def wait_for(self, path: str, *, is_there: bool) -> None:
        """Wait until a node is there, or gone."""
        self.until(lambda: (self.client_of(path).exists(path) is not None) == is_there, path)

    @staticmethod
    def until(claim: Callable[[], bool], label: str) -> None:
        """Wait until something holds."""
        deadline_s = time.monotonic() + _DEADLINE_S
        while not claim():
            assert time.monotonic() < deadline_s, f"waited for {label}"
            time.sleep(0.05)

    # -- asking

    def ask(self, to: int | None, name: str, version: int, body: BodyOf) -> list[Any]:
        """Ask a broker of both; None is the controller."""
        ids = self.controllers() if to is None else [to]
        pair = self.pairs[ids[0]]
        self.counts["answers"] += 1
        answers = pair.ask("", name, version, body)
        self._last = answers[0]
        return answers

    def write(
        self, path: str, value: str | None, *, is_set: bool = False, is_sequence: bool = False
    ) -> None:
        """Write a node of both, as an old tool does."""
        raw = None if value is None else value.encode()
        for cluster in self.clusters:
            at = f"{cluster.root}{path}"
            with contextlib.suppress(KazooException):
                if is_set:
                    self.client_of(at).set(at, raw)
                else:
                    self.client_of(at).create(at, raw or b"", sequence=is_sequence)

    def leader(self, partition: tuple[str, int]) -> int | None:
        """Return who leads a partition, if it is up."""
        name, index = partition
        node = self.tree.get(f"/brokers/topics/{name}/partitions/{index}/state")
        found = json.loads(node.data)["leader"] if node else -1
        return found if found in self.up else None

    def new_name(self, prefix: str) -> str:
        """Return a topic's name that was not used."""
        return f"{prefix}{self.next_number()}"

    def next_number(self) -> int:
        """Return a number that was not used."""
        self._number += 1
        return self._number

    def producer(self, partition: tuple[str, int], count: int, broker_id: int) -> tuple[int, int]:
        """Return the producer id of a partition's records, and the next of their numbers."""
        if partition not in self._producers:
            body = {"transactional_id": None, "transaction_timeout_ms": 60_000}
            answers = self.ask(broker_id, "InitProducerId", 1, body)
            self._producers[partition] = (answers[0].producer_id, 0)
        producer_id, sequence = self._producers[partition]
        self._producers[partition] = (producer_id, sequence + count)
        return producer_id, sequence

    def answer_has_error(self) -> bool:
        """Return whether the real broker refused the records that were sent last."""
        found = self._last
        return isinstance(found, str) or any(
            part.error_code
            for topic in getattr(found, "responses", [])
            for part in topic.partition_responses
        )

    # -- comparing

    def settle(self) -> dict[str, tuple[Any, Any]]:
        """Wait until both trees are quiet; return where they differ."""
        last: tuple[Any, Any] = (None, None)
        since_s = time.monotonic()
        deadline_s = since_s + _DEADLINE_S
        while True:
            trees = self._trees()
            now_s = time.monotonic()
            if trees != last:
                last, since_s = trees, now_s
            found = tree_differences(*trees)
            quiet_s = _QUIET_S if found.keys() - self.seen else _EQUAL_S
            if now_s - since_s >= quiet_s or now_s > deadline_s:
                break
            time.sleep(0.1)
        self.tree = last[0]
        self.topics = _topics(self.tree)
        self.counts["znodes"] += len(self.tree)
        return found

    def _trees(self) -> tuple[dict[str, Znode], dict[str, Znode]]:
        real, ours = (
            read_tree(self.client_of(cluster.root), cluster.root, cluster.ports)
            for cluster in self.clusters
        )
        return real, ours

    def files(self) -> dict[str, tuple[Any, Any]]:
        """Wait until the files are equal or quiet; return where they differ."""
        last: Any = None
        since_s = time.monotonic()
        deadline_s = since_s + _FILES_DEADLINE_S
        while True:
            found: dict[str, tuple[Any, Any]] = {}
            count = 0
            state = []
            for broker_id in BROKER_IDS:
                for name in LOG_DIRS:
                    real, ours = (
                        read_folder(cluster.log_dir(broker_id, name)) for cluster in self.clusters
                    )
                    count += len(real)
                    state.append((real, ours))
                    for key, values in folder_differences(real, ours).items():
                        found[f"b{broker_id}/{name}/{key}"] = values
            now_s = time.monotonic()
            if state != last:
                last, since_s = state, now_s
            if not found.keys() - self.seen or now_s - since_s > _FILES_QUIET_S:
                break
            if now_s > deadline_s:
                break
            time.sleep(0.3)
        self.counts["files"] += count
        return found

    def answers(self) -> dict[str, tuple[Any, Any]]:
        """Ask every broker that is up for all it shows; return where answers differ."""
        found: dict[str, tuple[Any, Any]] = {}
        for _ in range(8):
            self._learn_topic_ids()
            for pair in self.pairs.values():
                pair.differences.clear()
            compare_views(self)
            found = dict(self.differences())
            if not found.keys() - self.seen:
                break
            time.sleep(0.5)
        return found

    def differences(self) -> Iterator[tuple[str, tuple[Any, Any]]]:
        """Yield and forget where answers of brokers differed."""
        for broker_id, pair in self.pairs.items():
            for one in pair.differences:
                if one.kind == "order":
                    continue
                key = f"b{broker_id} {one.label} {one.kind} {one.path}"
                yield key, (one.real, one.ours)
            pair.differences.clear()

    def _learn_topic_ids(self) -> None:
        for at, cluster in enumerate(self.clusters):
            for name, text in topic_ids(self.client_of(cluster.root), cluster.root).items():
                raw = base64.urlsafe_b64decode(text + "==")
                for pair in self.pairs.values():
                    pair.sides[at].masks.topic_ids[raw] = f"<id of {name}>"
                    pair.sides[at].topic_ids[name] = raw


def _topics(tree: dict[str, Znode]) -> dict[str, dict[int, list[int]]]:
    out = {}
    for path, node in tree.items():
        parts = path.split("/")
        if path.startswith("/brokers/topics/") and len(parts) == 4:
            if f"/admin/delete_topics/{parts[3]}" in tree:
                continue
            partitions = json.loads(node.data)["partitions"]
            out[parts[3]] = {int(index): replicas for index, replicas in partitions.items()}
    return out
