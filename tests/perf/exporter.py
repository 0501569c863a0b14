"""How long a scrape of `kctl exporter` takes: partitions, groups with commits, an embedded cluster.

`python -m tests.perf.exporter [PARTITIONS [GROUPS]]` starts three brokers in one process of their
own, makes topics of 50 partitions and groups that have committed for one topic each, and prints the
time of scrapes with their parts. Nothing is asserted.
"""

from __future__ import annotations

import sys
import tempfile
import time

from engine.client.blocking import KafkaClient
from engine.client.group_session import GroupSession
from engine.client.member_session import MemberSettings
from engine.client.settings import parse_addresses
from engine.client.topic_admin import NewTopic, create_topics
from engine.embedded import EmbeddedCluster
from engine.exporter.exporter import Exporter, ExporterOptions
from engine.exporter.gathering import gather_sample
from engine.exporter.text_format import metrics_page
from engine.host.real import RealClock, RealEntropy
from engine.host.real_streams import RealStreams
from engine.model import TopicPartition

PARTITIONS_PER_TOPIC = 50
ROUNDS = 5


def client_of(cluster: EmbeddedCluster) -> KafkaClient:
    """Return a client with much time."""
    return KafkaClient(
        parse_addresses(cluster.bootstrap),
        streams=RealStreams(),
        clock=RealClock(),
        entropy=RealEntropy(),
        timeout_ms=120_000,
    )


def fill(client: KafkaClient, topic_count: int, group_count: int) -> None:
    """Make topics, and groups with commits for all partitions of one topic each."""
    topics = [NewTopic(f"t{n:03}", PARTITIONS_PER_TOPIC, 1) for n in range(topic_count)]
    for start in range(0, topic_count, 10):
        create_topics(client, topics[start : start + 10])
    for number in range(group_count):
        session = GroupSession(client, MemberSettings(f"g{number:03}"), [])
        topic = topics[number % topic_count].name
        keys = [TopicPartition(topic, p) for p in range(PARTITIONS_PER_TOPIC)]
        session.commit(dict.fromkeys(keys, 0))


def timed(name: str, seconds: float) -> None:
    """Print a part and its time."""
    print(f"{name:<24}{seconds:>8.2f} s")


def main() -> None:
    """Measure."""
    partitions = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    groups = int(sys.argv[2]) if len(sys.argv) > 2 else 500
    with (
        tempfile.TemporaryDirectory() as folder,
        EmbeddedCluster(f"{folder}/c", brokers=3, in_processes=False, timeout_s=300) as cluster,
        client_of(cluster) as client,
    ):
        fill(client, max(partitions // PARTITIONS_PER_TOPIC, 1), groups)
        exporter = Exporter(client, ExporterOptions("0", min_interval_ms=0, timeout_ms=60_000))
        for number in range(ROUNDS):
            began = time.perf_counter()
            sample = gather_sample(client, 60_000)
            gathered = time.perf_counter()
            timed(f"requests, round {number + 1}", gathered - began)
            families = exporter.families()
            scraped = time.perf_counter()
            timed("requests and metrics", scraped - gathered)
            page = metrics_page(families, "")
            timed("text", time.perf_counter() - scraped)
            timed("one scrape", time.perf_counter() - gathered)
            rows = sum(len(family.rows) for family in families)
            print(f"{rows} metrics, {len(page.body) / 1e6:.1f} MB, {len(sample.failures)} failures")


if __name__ == "__main__":
    main()
