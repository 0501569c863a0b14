"""What a produce waits beside a cleaning: one record, its answer, the next, at a steady rate.

    python -m tests.perf.cleaner_latency [--libs DIR] [--records 300000] [--rounds 4] [--folder DIR]
                                         [--settings k=v …] [--realtime]

Each round is a time without a cleaning, then the cleaning of one dirty log, so that all other
work of the machine is in both. `--libs` is a folder with Kafka's jars: it does the same in turn.
`--realtime` (root) gives the client and the brokers, but not what cleans, a processor at once: the
waits are then those of a machine that has one to spare.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from engine.records.builder import BatchBuilder
from engine.wire.codec import message_codec
from engine.wire.structs import message_class
from tests.cluster.embedded import EmbeddedCluster
from tests.cluster.raw_client import RawClient
from tests.cluster.real_kafka import RealKafka, create_topic
from tests.perf.cleaner import SEGMENT_BYTES, write_log
from tests.perf.ratios import machine_line

_PERIOD_S = 0.002
_IDLE_S = 3.0
_WARM_S = 3.0
_DEADLINE_S = 120.0
_VALUE_BYTES = 1000
_SETTINGS = {"log_cleaner_backoff_ms": "100", "log_retention_check_interval_ms": "3600000"}
_SMALL = "small"
# Looking whether a log is clean reads a file, so not for every produce.
_LOOK_EVERY = 25
_SHARES = (0.5, 0.9, 0.99, 0.999)


class Waits(NamedTuple):
    """How long produces waited, in ms."""

    idle: list[float]
    cleaning: list[float]


def main() -> None:
    """Print a line for each broker and each state."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--libs")
    parser.add_argument("--records", type=int, default=300_000)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--folder")
    parser.add_argument("--settings", nargs="*", default=[])
    parser.add_argument("--realtime", action="store_true")
    requested = parser.parse_args()
    if requested.realtime:
        _PREFERRED.append(os.getpid())
    more = dict(word.replace(".", "_").split("=", 1) for word in requested.settings)
    print(f"{machine_line()}\n\n| | produces | p50 ms | p90 | p99 | p99.9 |")
    print("|---|---|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(dir=requested.folder) as folder:
        source = Path(folder) / "source"
        write_log(source, requested.records, requested.records)
        data = Path(folder) / "ours"
        _tell("ours", _measured_ours(source, data, requested.rounds, more))
        shutil.rmtree(data, ignore_errors=True)
        if requested.libs:
            data = Path(folder) / "kafka"
            _tell("Kafka", _measured_kafka(source, data, requested.rounds, requested.libs, more))


def _tell(name: str, waits: Waits) -> None:
    for state, found in waits._asdict().items():
        ranked = sorted(found)
        at = [ranked[min(int(len(ranked) * share), len(ranked) - 1)] for share in _SHARES]
        figures = " | ".join(f"{wait:.2f}" for wait in at)
        print(f"| {name}, {state} | {len(ranked)} | {figures} |", flush=True)


def _with_logs(source: Path, data: Path, rounds: int) -> EmbeddedCluster:
    """Make a stopped cluster with a dirty log for each round, whose topics are not compacted."""
    cluster = EmbeddedCluster(data)
    cluster.start(**_SETTINGS)
    create_topic(cluster.address, _SMALL)
    for number in range(rounds):
        create_topic(
            cluster.address,
            f"big{number}",
            retention_ms="-1",
            segment_bytes=str(SEGMENT_BYTES),
        )
    cluster.stop()
    for number in range(rounds):
        log = data / "broker-1" / f"big{number}-0"
        metadata = (log / "partition.metadata").read_bytes()
        shutil.rmtree(log)
        shutil.copytree(source, log)
        (log / "partition.metadata").write_bytes(metadata)
    return cluster


def _measured_ours(source: Path, data: Path, rounds: int, more: dict[str, str]) -> Waits:
    cluster = _with_logs(source, data, rounds)
    cluster.start(**_SETTINGS, **more)
    try:
        _prefer(cluster.pids)
        return _measured(cluster.address, data, rounds)
    finally:
        cluster.destroy()


def _measured_kafka(
    source: Path, data: Path, rounds: int, libs: str, more: dict[str, str]
) -> Waits:
    cluster = _with_logs(source, data, rounds)
    kafka = RealKafka(libs, data, **_SETTINGS, **more)
    kafka.start()
    try:
        _prefer([kafka.pid])
        return _measured(kafka.address, data, rounds)
    finally:
        kafka.stop()
        cluster.destroy()


# Set by --realtime: this process.
_PREFERRED: list[int] = []


def _prefer(pids: list[int]) -> None:
    """Let this process and brokers, without what they start and Kafka's cleaner, go first."""
    for pid in (*pids, *_PREFERRED) if _PREFERRED else ():
        for task in Path(f"/proc/{pid}/task").iterdir():
            if not (task / "comm").read_text().startswith("kafka-log-clean"):
                policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
                os.sched_setscheduler(int(task.name), policy, os.sched_param(1))


def _measured(address: str, data: Path, rounds: int) -> Waits:
    checkpoint = data / "broker-1" / "cleaner-offset-checkpoint"
    waits = Waits([], [])
    with RawClient(address, timeout_s=_DEADLINE_S) as client:
        _produce_while(client, _for_s(_WARM_S))
        for number in range(rounds):
            topic = f"big{number}"
            waits.idle.extend(_produce_while(client, _for_s(_IDLE_S)))
            _compact(address, topic)
            waits.cleaning.extend(_produce_while(client, partial(_is_dirty, checkpoint, topic)))
    return waits


def _for_s(seconds: float) -> Callable[[], bool]:
    until = time.perf_counter() + seconds
    return lambda: time.perf_counter() < until


def _is_dirty(checkpoint: Path, topic: str) -> bool:
    return not checkpoint.exists() or f"{topic} 0 " not in checkpoint.read_text()


def _produce_while(client: RawClient, is_going_on: Callable[[], bool]) -> list[float]:
    """Produce at a steady rate, as long as the answers come in time; returns the waits in ms."""
    body, waits, began = _body(), [], time.perf_counter()
    due = began
    while len(waits) % _LOOK_EVERY or is_going_on():
        assert due - began < _DEADLINE_S
        time.sleep(max(due - time.perf_counter(), 0))
        start = time.perf_counter()
        client.send("Produce", 9, body)
        client.frame()
        end = time.perf_counter()
        waits.append(1000 * (end - start))
        due = max(due + _PERIOD_S, end)
    return waits


def _body() -> bytes:
    builder = BatchBuilder()
    builder.append(int(time.time() * 1000), b"key", bytes(_VALUE_BYTES))
    produce = message_class("ProduceRequest")
    partition = produce.PartitionProduceData(index=0, records=bytes(builder.build()))
    topic = produce.TopicProduceData(name=_SMALL, partition_data=[partition])
    request = produce(transactional_id=None, acks=1, timeout_ms=30_000, topic_data=[topic])
    return message_codec("ProduceRequest", 9).encode(request)


def _compact(address: str, topic: str) -> None:
    """Have a topic compacted from now on."""
    made = message_class("IncrementalAlterConfigsRequest")
    change = made.AlterableConfig(name="cleanup.policy", config_operation=0, value="compact")
    resource = made.AlterConfigsResource(resource_type=2, resource_name=topic, configs=[change])
    with RawClient(address) as client:
        reply = client.ask("IncrementalAlterConfigs", 1, resources=[resource], validate_only=False)
    assert reply.responses[0].error_code == 0, reply


if __name__ == "__main__":
    main()
