"""Fixtures for tests of programs that use Kafka; pytest loads this module by its entry point.

| fixture | scope | |
|---|---|---|
| `kafka` | test | topics and groups of the test alone, on one broker of the whole run |
| `kafka_cluster` | test | makes clusters: `kafka_cluster(brokers=3)`; they end with the test |
| `kafka_settings` | session | settings of the broker behind `kafka`: define it to change them |
| `kafka_login` | session | user and password of the broker behind `kafka`; None unless defined |

No module of the engine is loaded before a test uses one of them.
"""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from engine.embedded import EmbeddedCluster, Login
    from kctl.testing import ClusterFactory, IsolatedKafka

_NUMBERS = itertools.count(1)
_NAME_CHARACTERS_MAX = 40


@pytest.fixture(scope="session")
def kafka_settings() -> Mapping[str, str]:
    """Return settings of the broker behind `kafka`, in Kafka's names."""
    return {}


@pytest.fixture(scope="session")
def kafka_login() -> Login | None:
    """Return the user that clients of the broker behind `kafka` have to log in as, if any."""
    return None


@pytest.fixture(scope="session")
def _kafka_process() -> Iterator[None]:
    """Start a process that clusters are forked from, which loads modules in parallel."""
    from engine.cluster.warm_process import cool_down, warm_up

    warm_up()
    yield
    cool_down()


@pytest.fixture(scope="session")
def _kafka_broker(
    _kafka_process: None,
    tmp_path_factory: pytest.TempPathFactory,
    kafka_settings: Mapping[str, str],
    kafka_login: Login | None,
) -> Iterator[EmbeddedCluster]:
    """Yield a running cluster; stop it and remove its folder afterwards."""
    from engine.embedded import EmbeddedCluster

    folder = tmp_path_factory.mktemp("kafka")
    with EmbeddedCluster(folder / "cluster", settings=kafka_settings, login=kafka_login) as cluster:
        yield cluster
    shutil.rmtree(folder)


@pytest.fixture
def kafka(
    _kafka_broker: EmbeddedCluster, request: pytest.FixtureRequest
) -> Iterator[IsolatedKafka]:
    """Return the run's broker; names of the test have its own prefix, its topics are deleted."""
    from kctl.testing import IsolatedKafka

    kafka = IsolatedKafka(_kafka_broker, _prefix(request))
    yield kafka
    kafka.delete_topics()


@pytest.fixture
def kafka_cluster(_kafka_process: None, tmp_path: Path) -> Iterator[ClusterFactory]:
    """Return a function that starts a cluster of several brokers, which ends with the test."""
    from kctl.testing import ClusterFactory

    with ExitStack() as clusters:
        yield ClusterFactory(tmp_path, clusters)


def _prefix(request: pytest.FixtureRequest) -> str:
    """Return a name that no other test has, and that topics can have."""
    name = re.sub(r"[^A-Za-z0-9-]+", "-", request.node.name)[:_NAME_CHARACTERS_MAX].strip("-")
    return f"{name}-{next(_NUMBERS)}"
