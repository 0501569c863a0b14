"""One embedded cluster for all tests of a process, and topics with names of their own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.cluster.embedded import EmbeddedCluster

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """Return a cluster that runs."""
    cluster = EmbeddedCluster(tmp_path_factory.mktemp("embedded") / "cluster")
    cluster.start()
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
