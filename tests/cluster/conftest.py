"""The embedded clusters that other people's clients are run against, and topics of their own.

Each test with `cluster` runs against one broker, and against three of one process whose topics have
three replicas. `KCTL_TEST_CLUSTERS` names others in their place, as `make outsiders` does.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator

import pytest

from tests.cluster.embedded import EmbeddedCluster

_NUMBERS = itertools.count(1)
_SHAPES = {
    "one": (1, ()),
    "three": (3, ("--one-process",)),
    "processes": (3, ("--processes",)),
}
_NAMES = os.environ.get("KCTL_TEST_CLUSTERS", "one,three").split(",")


@pytest.fixture(scope="session", params=_NAMES)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EmbeddedCluster]:
    """Return a cluster that runs."""
    broker_count, options = _SHAPES[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    cluster = EmbeddedCluster(folder / "cluster", brokers=broker_count)
    settings = {}
    if broker_count > 1:
        settings = {"default_replication_factor": "3", "min_insync_replicas": "2"}
    cluster.start(*options, **settings)
    yield cluster
    cluster.destroy()


@pytest.fixture
def topic() -> str:
    """Return a name that no other test uses; the first that asks for it makes the topic."""
    return f"topic-{next(_NUMBERS)}"


@pytest.fixture
def values() -> Callable[[int], list[bytes]]:
    """Return what makes values that compress."""
    return lambda count: [b"value %d " % n * 20 for n in range(count)]
