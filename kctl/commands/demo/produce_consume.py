"""Implementation of `kctl demo produce-consume`."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.group_admin import delete_groups
from engine.client.topic_admin import NewTopic, create_topics
from engine.cluster.plan import ClusterPlan
from engine.demo.produce_consume import ProduceConsume, SeenRecord, SendMode
from engine.errors import ApiError, EngineError
from engine.host.ports import Clock
from engine.kafka_errors import TOPIC_ALREADY_EXISTS, TOPIC_AUTHORIZATION_FAILED
from kctl import exits
from kctl.arguments import UnreadableArgument, counted
from kctl.commands.demo.clusters import demo_cluster
from kctl.connect import ClusterOptions
from kctl.console import notify
from kctl.interrupts import HeldInterrupts, deferred_interrupts
from kctl.record_rows import text_of
from kctl.render import Column, RowWriter, check_format

RECORD_COLUMNS = (
    Column("event", "EVENT"),
    Column("key", "KEY", is_name=True, kind="string?"),
    Column("value", "VALUE", kind="string?"),
    Column("partition", "PARTITION", right=True),
    Column("offset", "OFFSET", right=True, kind="integer?"),
    Column("took_ms", "TOOK-MS", right=True, kind="integer?"),
)
_PARTITIONS = 3
_EVERY_MS = 200
_MAY_EXIST = (TOPIC_ALREADY_EXISTS, TOPIC_AUTHORIZATION_FAILED)


class ProduceConsumeRequest(NamedTuple):
    """The options of `kctl demo produce-consume`."""

    mode: str
    records: int | None
    topic: str
    output: str


def run_produce_consume(options: ClusterOptions, request: ProduceConsumeRequest) -> int:
    """Produce and consume until --records is reached or Ctrl-C; returns the exit code."""
    check_format(request.output)
    modes = [mode.value for mode in SendMode]
    if request.mode not in modes:
        raise UnreadableArgument("a way to send", request.mode, " or ".join(modes))
    plan = ClusterPlan(port=0, settings={"group.initial.rebalance.delay.ms": "0"})
    with (
        demo_cluster(options, plan) as cluster,
        cluster.connect() as producing,
        cluster.connect() as consuming,
    ):
        _create_topic(producing, request.topic)
        with deferred_interrupts() as interrupts:
            return _produce_and_consume((producing, consuming), request, interrupts)


def _create_topic(client: KafkaClient, topic: str) -> None:
    """Create the topic unless it exists; raises ApiError.

    A user without the permission to create topics may still use an existing one: brokers refuse
    creation with the same error whether the topic exists or not.
    """
    made = create_topics(client, [NewTopic(topic, partition_count=_PARTITIONS)])[topic]
    if isinstance(made, ApiError) and made.code not in _MAY_EXIST:
        raise made
    client.view_of_existing([topic])


def _produce_and_consume(
    clients: tuple[KafkaClient, KafkaClient],
    request: ProduceConsumeRequest,
    interrupts: HeldInterrupts,
) -> int:
    """Produce and consume records, print each, then the rate; delete the consumer group.

    The two clients are the producer's and the consumer's. Returns the exit code.
    """

    def allow_interrupt() -> None:
        """Raise a Ctrl-C that was deferred; called between two records."""
        with interrupts.allowed():
            pass

    clock = clients[0].clock
    printer = _Printer(request.output, clock)
    group_id = f"{request.topic}-{clients[0].entropy.random_bytes(4).hex()}"
    demo = ProduceConsume(
        clients, request.topic, group_id, SendMode(request.mode), printer.print_record
    )
    try:
        demo.run(request.records, allow_interrupt)
    finally:
        began_ms = demo.began_ms or clock.monotonic_ms()
        took_s = max(clock.monotonic_ms() - began_ms, 1) / 1000
        printer.close()
        notify(
            f"{counted(demo.sent_count, 'record')} produced and {demo.received_count} consumed in "
            f"{took_s:.1f} s: {demo.sent_count / took_s:,.0f} records/s"
        )
        # Delete the group of this run; if the cluster is down, its offsets expire.
        with suppress(EngineError):
            demo.close()
            delete_groups(clients[0], [group_id])
    return exits.OK


class _Printer:
    """Prints produced and consumed records, flushing the output a few times per second."""

    def __init__(self, output: str, clock: Clock) -> None:
        self._writer = RowWriter(RECORD_COLUMNS, output, is_stream=True)
        self._clock = clock
        self._next_flush_ms = 0

    def print_record(self, record: SeenRecord) -> None:
        """Write one produced or consumed record; flush at most once per `_EVERY_MS`."""
        self._writer.write(
            {
                "event": "produced" if record.is_sent else "consumed",
                "key": text_of(record.key)[0],
                "value": text_of(record.value)[0],
                "partition": record.partition.partition,
                "offset": None if record.offset < 0 else record.offset,
                "took_ms": record.took_ms,
            }
        )
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._next_flush_ms:
            self._next_flush_ms = now_ms + _EVERY_MS
            self._writer.flush()

    def close(self) -> None:
        """Complete and flush the output."""
        self._writer.close()
