"""The objects that the fixtures of `kctl.pytest_plugin` give to tests."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from engine.embedded import EmbeddedCluster, KafkaAccess, Login
from engine.errors import ApiError

if TYPE_CHECKING:
    from pathlib import Path


class IsolatedKafka(KafkaAccess):
    """One broker that tests share, and names that only one test has."""

    def __init__(self, cluster: EmbeddedCluster, prefix: str) -> None:
        """`prefix` begins all names, and is unique to the test."""
        super().__init__(cluster.bootstrap, cluster.login)
        #: The broker itself, with its faults: others use it, too.
        self.cluster = cluster
        self._prefix = prefix
        self._numbers = itertools.count(1)
        #: Topics of this test, which are deleted at its end.
        self._topics: list[str] = []

    def topic(
        self,
        name: str = "topic",
        partitions: int = 1,
        *,
        settings: Mapping[str, str] | None = None,
    ) -> str:
        """Create a topic of the test and return its name, which contains `name`. Raises ApiError.

        It is deleted after the test.
        """
        unique = self.unique_name(name)
        self.create_topic(unique, partitions, settings=settings)
        self._topics.append(unique)
        return unique

    def unique_name(self, name: str = "group") -> str:
        """Return a name that no other test has, for a group, a transactional id or a topic."""
        return f"{self._prefix}-{name}-{next(self._numbers)}"

    def delete_topics(self) -> None:
        """Delete the topics created by `topic`, except those that the test has deleted."""
        for name in self._topics:
            try:
                self.delete_topic(name)
            except ApiError:
                continue
        self._topics.clear()


class ClusterFactory:
    """Starts clusters in folders below one, which end with a test."""

    def __init__(self, folder: Path, clusters: ExitStack) -> None:
        self._folder = folder
        self._clusters = clusters
        self._numbers = itertools.count(1)

    def __call__(
        self,
        brokers: int = 3,
        *,
        settings: Mapping[str, str] | None = None,
        login: Login | None = None,
        in_processes: bool | None = None,
    ) -> EmbeddedCluster:
        """Start a cluster; parameters and errors as those of `EmbeddedCluster`."""
        cluster = EmbeddedCluster(
            self._folder / f"kafka-cluster-{next(self._numbers)}",
            brokers,
            settings=settings,
            login=login,
            in_processes=in_processes,
        )
        return self._clusters.enter_context(cluster)
