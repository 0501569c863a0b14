"""The objects that the fixtures of `kctl.pytest_plugin` pass to tests."""

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
    """Access to a broker that tests share, with names that only one test uses."""

    def __init__(self, cluster: EmbeddedCluster, prefix: str) -> None:
        """Create a test's access to the shared cluster.

        `prefix` is unique to the test, and all of its names begin with it.
        """
        super().__init__(cluster.bootstrap, cluster.login)
        #: The broker itself, to inject faults: other tests use it, too.
        self.cluster = cluster
        self._prefix = prefix
        self._numbers = itertools.count(1)
        #: Topics to delete after the test.
        self._topics: list[str] = []

    def topic(
        self,
        name: str = "topic",
        partitions: int = 1,
        *,
        settings: Mapping[str, str] | None = None,
    ) -> str:
        """Create a topic for the test and return its unique name, which contains `name`.

        It is deleted after the test. Errors: ApiError.
        """
        unique = self.unique_name(name)
        self.create_topic(unique, partitions, settings=settings)
        self._topics.append(unique)
        return unique

    def unique_name(self, name: str = "group") -> str:
        """Return a name, with `name` in it, that no other test uses.

        It is for a group, a transactional id or a topic.
        """
        return f"{self._prefix}-{name}-{next(self._numbers)}"

    def delete_topics(self) -> None:
        """Delete the topics that `topic` created, at the end of the test.

        Those that the test deleted itself are skipped.
        """
        for name in self._topics:
            try:
                self.delete_topic(name)
            except ApiError:
                continue
        self._topics.clear()


class ClusterFactory:
    """Starts clusters that stop with the test, each in a folder of its own."""

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
        """Start a cluster that stops at the end of the test.

        Parameters and errors are those of `EmbeddedCluster`.
        """
        cluster = EmbeddedCluster(
            self._folder / f"kafka-cluster-{next(self._numbers)}",
            brokers,
            settings=settings,
            login=login,
            in_processes=in_processes,
        )
        return self._clusters.enter_context(cluster)
