"""Gauges of embedded brokers by the names of the JMX exporter."""

from __future__ import annotations

import pytest

from engine.exporter.broker_gauges import gauge_families, named_gauge


@pytest.mark.parametrize(
    ("object_name", "family", "labels"),
    [
        (
            "kafka.log:type=Log,name=Size,topic=a.b,partition=0",
            "kafka_log_log_size",
            (("topic", "a.b"), ("partition", "0")),
        ),
        (
            'kafka.log:type=LogCleanerManager,name=uncleanable-bytes,logDirectory="/a,b=c"',
            "kafka_log_logcleanermanager_uncleanable_bytes",
            (("logDirectory", "/a,b=c"),),
        ),
        (
            r'kafka.log:type=LogManager,name=LogDirectoryOffline,logDirectory="/a\"\*\\n,x=1\n"',
            "kafka_log_logmanager_logdirectoryoffline",
            (("logDirectory", '/a"*\\n,x=1\n'),),
        ),
        (
            "kafka.server:type=ReplicaManager,name=LeaderCount",
            "kafka_server_replicamanager_leadercount",
            (),
        ),
    ],
)
def test_an_object_name_becomes_a_name_with_labels(
    object_name: str, family: str, labels: tuple[tuple[str, str], ...]
) -> None:
    assert (family, labels) == named_gauge(object_name)


def test_brokers_share_a_family() -> None:
    name = "kafka.server:type=ReplicaManager,name=LeaderCount"
    (family,) = gauge_families({2: {name: 5}, 1: {name: 3}})
    assert ("broker_id",) == family.labels
    assert [(("1",), 3.0), (("2",), 5.0)] == list(family.rows)
