"""Fixtures for tests of programs that use Kafka; pytest loads this module by its entry point.

| fixture | scope | value |
|---|---|---|
| `kafka` | test | topics and groups of one test, on a broker that the whole run shares |
| `kafka_cluster` | test | starts clusters: `kafka_cluster(brokers=3)`; they stop with the test |
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
    """Return the settings of the broker behind `kafka`, by Kafka's names; none by default."""
    return {}


@pytest.fixture(scope="session")
def kafka_login() -> Login | None:
    """Return the user that clients of the broker behind `kafka` log in as, None for no login."""
    return None


@pytest.fixture(scope="session")
def _kafka_process() -> Iterator[None]:
    """Run, during the test session, a process that clusters are forked from.

    It imports modules while tests run, so that clusters start sooner.
    """
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
    """Yield a running cluster of one broker; stop it and remove its folder at the end."""
    from engine.embedded import EmbeddedCluster

    folder = tmp_path_factory.mktemp("kafka")
    with EmbeddedCluster(folder / "cluster", settings=kafka_settings, login=kafka_login) as cluster:
        yield cluster
    shutil.rmtree(folder)


@pytest.fixture
def kafka(
    _kafka_broker: EmbeddedCluster, request: pytest.FixtureRequest
) -> Iterator[IsolatedKafka]:
    """Yield access to the shared broker under names of this test; delete its topics at the end."""
    from kctl.testing import IsolatedKafka

    kafka = IsolatedKafka(_kafka_broker, _prefix(request))
    yield kafka
    kafka.delete_topics()


@pytest.fixture
def kafka_cluster(_kafka_process: None, tmp_path: Path) -> Iterator[ClusterFactory]:
    """Yield a function that starts a cluster of several brokers, which stops with the test."""
    from kctl.testing import ClusterFactory

    with ExitStack() as clusters:
        yield ClusterFactory(tmp_path, clusters)


def _prefix(request: pytest.FixtureRequest) -> str:
    """Return a prefix of topic names that is unique to a test: its name and a number."""
    name = re.sub(r"[^A-Za-z0-9-]+", "-", request.node.name)[:_NAME_CHARACTERS_MAX].strip("-")
    return f"{name}-{next(_NUMBERS)}"
