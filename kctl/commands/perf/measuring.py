"""Implementation of `kctl perf`: topic, warm-up, steps of a run until its end or Ctrl-C."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

from engine.client.blocking import KafkaClient
from engine.client.offsets import LATEST
from engine.client.producing import ProducerOptions
from engine.client.topic_admin import BROKER_DEFAULT, NewTopic, create_topics, delete_topics
from engine.errors import EngineError
from engine.host.real import work_ns
from engine.measuring.consuming_run import ConsumingRun
from engine.measuring.latency_run import VALUE_BYTES_MIN, LatencyRun, LatencySides
from engine.measuring.load import LoadShape, RecordLoad
from engine.measuring.measurement import Measurement
from engine.measuring.producing_run import ProducingRun
from engine.model import TopicPartition
from kctl import exits
from kctl.arguments import UnreadableArgument
from kctl.client_overrides import ClientOverrides, parse_client_overrides
from kctl.commands.consume.settings import CONSUMER_KEYS, fetch_options
from kctl.commands.perf.live_charts import RunDisplay
from kctl.commands.perf.options import SendOptions, TopicOptions
from kctl.commands.perf.report import Measured, print_result
from kctl.commands.produce.request import PRODUCER_KEYS, ProduceRequest, producer_options
from kctl.commands.topics.metadata_wait import await_created
from kctl.connect import ClusterOptions, connect, settings_in_file
from kctl.console import notify, report_error
from kctl.durations import parse_duration_ms
from kctl.interrupts import HeldInterrupts, deferred_interrupts
from kctl.offset_points import OffsetLookup, Point, PointKind, parse_point
from kctl.render import TABLES, check_format
from kctl.render.progress import ProgressBar

_NS_PER_MS: Final = 1_000_000
_NAME_BYTES: Final = 4
_END: Final = Point(PointKind.TIMESTAMP, LATEST)
_NOT_MEASURED: Final = ("delivery.timeout.ms", "transaction.timeout.ms", "transactional.id")
_SEND_KEYS: Final = tuple(key for key in PRODUCER_KEYS if key not in _NOT_MEASURED)


class PerfRequest(NamedTuple):
    """Options common to all measurements."""

    topic: str | None
    records: int
    size_bytes: int
    rate_per_s: float | None
    key_count: int
    warm_up: int
    settings: list[str]
    output: str


class Finished(NamedTuple):
    """A finished run; `error` or `interrupt` is set if it ended early."""

    measurement: Measurement
    error: EngineError | None
    interrupt: KeyboardInterrupt | None

    @property
    def is_complete(self) -> bool:
        """Return True if the run ended neither by an error nor by an interrupt."""
        return self.error is None and self.interrupt is None

    @property
    def exit_code(self) -> int:
        """Return the exit code of a run: OK, that of its error, or that of its interrupt."""
        if self.error is not None:
            return getattr(self.error, "exit_code", exits.FAILED)
        return exits.OK if self.interrupt is None else exits.interrupted(self.interrupt)


def _overrides(
    options: ClusterOptions, request: PerfRequest, own_keys: tuple[str, ...]
) -> ClientOverrides:
    """Return the client settings: those of -X override those of the cluster's properties file."""
    overrides = parse_client_overrides(request.settings, own_keys)
    return overrides.above(settings_in_file(options, own_keys))


# -- measurements


def measure_producing(
    options: ClusterOptions, request: PerfRequest, made: TopicOptions, sent: SendOptions
) -> int:
    """Measure how fast a producer's records are stored; returns the exit code.

    `made` describes the new topic that is used if the request names none.
    """
    interval_ns = _check_options(request, made)
    overrides = _overrides(options, request, _SEND_KEYS)
    options = options._replace(overrides=overrides.shared)
    sending = _sending(request, sent, overrides.own)
    with (
        deferred_interrupts() as interrupts,
        connect(options) as client,
        _topic_of_run(options, client, request.topic, made) as topic,
    ):
        shape = _load_shape(request, topic)
        load = RecordLoad(shape, client.entropy)
        run = ProducingRun(
            client,
            load,
            sending,
            request.records,
            work_ns,
            interval_ns=interval_ns,
            on_retry=_print_retry,
        )
        finished, warm_up = _run_after_warm_up(run, interrupts, request)
        settings = _settings_to_print(request, sending)
        _print_measurement(request, topic, "produce", finished, warm_up, settings, run.failed_count)
        return finished.exit_code


def measure_consuming(
    options: ClusterOptions, request: PerfRequest, made: TopicOptions, start: str
) -> int:
    """Measure how fast a consumer reads records, and print the result; returns the exit code.

    Without a topic in the request, one is made and filled first. `start` is the point to read from.
    """
    interval_ns = _check_options(request, made)
    overrides = _overrides(options, request, CONSUMER_KEYS)
    options = options._replace(overrides=overrides.shared)
    fetch = fetch_options(overrides.own, read_committed=None)
    with (
        deferred_interrupts() as interrupts,
        connect(options) as client,
        _topic_of_run(options, client, request.topic, made) as topic,
    ):
        point = parse_point(start, client.clock.wall_ms())
        if request.topic is None:
            with interrupts.allowed():
                _produce_input(client, request, topic)
        with interrupts.allowed():
            starts, ends = _resolve_bounds(
                client, topic, point, read_committed=fetch.read_committed
            )
        run = ConsumingRun(
            client,
            starts,
            ends,
            fetch,
            work_ns,
            records_max=request.records,
            interval_ns=interval_ns,
        )
        finished, warm_up = _run_after_warm_up(run, interrupts, request)
        settings = {
            "fetch.max.bytes": str(fetch.max_bytes),
            "max.partition.fetch.bytes": str(fetch.partition_max_bytes),
            "isolation.level": "read_committed" if fetch.read_committed else "read_uncommitted",
        }
        _print_measurement(request, topic, "consume", finished, warm_up, settings)
        if finished.is_complete and finished.measurement.records < request.records:
            notify(
                f"{finished.measurement.records} of {request.records} records are measured: the "
                f"others are not there, or among the {warm_up} of the warm-up"
            )
        return finished.exit_code


def measure_latency(
    options: ClusterOptions, request: PerfRequest, made: TopicOptions, sent: SendOptions
) -> int:
    """Measure the time from sending a record to consuming it; returns the exit code."""
    interval_ns = _check_options(request, made)
    if request.size_bytes < VALUE_BYTES_MIN:
        expected = f"{VALUE_BYTES_MIN} or more: a value holds its own number"
        raise UnreadableArgument("a value of --size", str(request.size_bytes), expected)
    overrides = _overrides(options, request, (*_SEND_KEYS, *CONSUMER_KEYS))
    options = options._replace(overrides=overrides.shared)
    # A linger time would be part of the latency.
    linger_ms = 0 if sent.linger_ms is None and "linger.ms" not in overrides.own else sent.linger_ms
    sending = _sending(request, sent._replace(linger_ms=linger_ms), overrides.own)
    fetch = fetch_options(overrides.own, read_committed=None)
    with (
        deferred_interrupts() as interrupts,
        connect(options) as client,
        connect(options) as other,
        _topic_of_run(options, client, request.topic, made) as topic,
    ):
        _, ends = _resolve_bounds(client, topic, _END, read_committed=fetch.read_committed)
        run = LatencyRun(
            LatencySides(client, other, sending, fetch, ends),
            _load_shape(request, topic),
            request.records,
            work_ns,
            interval_ns=interval_ns,
            on_retry=_print_retry,
        )
        finished, warm_up = _run_after_warm_up(run, interrupts, request)
        settings = _settings_to_print(request, sending)
        _print_measurement(request, topic, "latency", finished, warm_up, settings)
        return finished.exit_code


# -- parts of measurements


class PerfTopic(NamedTuple):
    """Name and partition count of a run's topic."""

    name: str
    partition_count: int


def _check_options(request: PerfRequest, made: TopicOptions) -> int:
    """Validate the options, and return --interval in ns.

    Errors: UnreadableArgument, UnknownFormat.
    """
    check_format(request.output)
    if request.topic is not None and (made.partitions or made.replication_factor):
        expected = "no --topic: they are those of a topic that is made"
        raise UnreadableArgument("options of a topic that is there", "-p, -r", expected)
    interval_ms = parse_duration_ms(made.interval, "--interval")
    if interval_ms <= 0:
        raise UnreadableArgument("a value of --interval", made.interval, "1s or more")
    return interval_ms * _NS_PER_MS


def _sending(
    request: PerfRequest, sent: SendOptions, settings: Mapping[str, str]
) -> ProducerOptions:
    """Return the producer options, as for `kctl produce`; raises UnreadableArgument."""
    return producer_options(
        ProduceRequest(request.topic or "", **sent._asdict(), settings=settings)
    )


@contextmanager
def _topic_of_run(
    options: ClusterOptions, client: KafkaClient, name: str | None, made: TopicOptions
) -> Iterator[PerfTopic]:
    """Yield the named topic, or else a new one that is deleted at the end of the block.

    `name` is None for a new topic. Errors: ApiError.
    """
    if name is not None:
        view = client.view_of_existing([name])
        yield PerfTopic(name, len(view.topics[name].partitions))
        return
    name = f"kctl-perf-{client.entropy.random_bytes(_NAME_BYTES).hex()}"
    count = made.partitions or 1
    wanted = NewTopic(name, count, made.replication_factor or BROKER_DEFAULT)
    created = create_topics(client, [wanted])[name]
    if isinstance(created, EngineError):
        raise created
    try:
        await_created(client, [name])
        yield PerfTopic(name, count)
    finally:
        _delete_topic(options, name)


def _delete_topic(options: ClusterOptions, name: str) -> None:
    """Delete the topic of a run; print an error if that fails.

    A new connection is used, since a request may be in flight on that of the run.
    """
    try:
        with connect(options) as client:
            error: EngineError | None = delete_topics(client, [name])[name]
    except EngineError as failure:
        error = failure
    if error is not None:
        report_error(error, f"the topic {name} stays")


def _load_shape(request: PerfRequest, topic: PerfTopic) -> LoadShape:
    """Return the load to produce: topic, record size in bytes, keys and rate in records/s."""
    return LoadShape(
        topic.name,
        topic.partition_count,
        request.size_bytes,
        request.key_count,
        request.rate_per_s,
    )


def _produce_input(client: KafkaClient, request: PerfRequest, topic: PerfTopic) -> None:
    """Produce the records that a measurement of consuming reads, those of the warm-up included.

    Raises the error of the first record that fails.
    """
    load = RecordLoad(_load_shape(request, topic), client.entropy)
    # The warm-up reads an equal share of each partition.
    share = math.ceil(request.warm_up / topic.partition_count)
    count = request.records + share * topic.partition_count
    run = ProducingRun(client, load, ProducerOptions(linger_ms=5), count, work_ns)
    with ProgressBar("producing") as bar:
        while not run.is_done:
            run.step()
            bar.update(run.measurement.records, count)
    if run.error is not None:
        raise run.error


def _resolve_bounds(
    client: KafkaClient, topic: PerfTopic, point: Point, *, read_committed: bool
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Return the start and end offsets of a run by partition; the start is that of `point`.

    Raises the first error of a partition.
    """
    keys = [TopicPartition(topic.name, number) for number in range(topic.partition_count)]
    lookup = OffsetLookup(client, keys, read_committed=read_committed)
    found: list[dict[TopicPartition, int]] = []
    for offsets in (lookup.resolve(point), lookup.resolve(_END)):
        places: dict[TopicPartition, int] = {}
        for key, offset in offsets.items():
            if isinstance(offset, EngineError):
                raise offset
            places[key] = offset
        found.append(places)
    return found[0], found[1]


def _run_after_warm_up(
    run: ProducingRun | ConsumingRun | LatencyRun, interrupts: HeldInterrupts, request: PerfRequest
) -> tuple[Finished, int]:
    """Warm up, then measure until the run is done, failed or interrupted.

    Returns how the run ended, and the number of records of the warm-up.
    """
    interrupt, warm_up = None, 0
    display = RunDisplay(request.records, work_ns, has_charts=request.output in TABLES)
    with display:
        try:
            with interrupts.allowed():
                warm_up = run.warm_up(request.warm_up)
            while not run.is_done:
                with interrupts.allowed():
                    run.step()
                # Draw without interrupts: a partly drawn display would stay on the screen.
                display.show(run.measurement)
        except KeyboardInterrupt as signal:
            interrupt = signal
        except EngineError as error:
            run.error = run.error or error
    return Finished(run.finish(), run.error, interrupt), warm_up


def _print_retry(error: EngineError) -> None:
    """Print an error after which the producer sends a batch again."""
    notify(f"warning: {error}; trying again")


def _settings_to_print(request: PerfRequest, sending: ProducerOptions) -> dict[str, str]:
    """Return the settings of the measurement by Kafka's names, or else by names of kctl."""
    partitions = f"by {request.key_count} keys" if request.key_count else "in turn"
    rate = "unlimited" if request.rate_per_s is None else f"{request.rate_per_s:g}/s"
    return {
        "acks": "all" if sending.acks < 0 else str(sending.acks),
        "compression.type": sending.codec.name.lower(),
        "batch.size": str(sending.batch_bytes),
        "linger.ms": str(sending.linger_ms),
        "record size": str(request.size_bytes),
        "partitions": partitions,
        "rate": rate,
    }


def _print_measurement(
    request: PerfRequest,
    topic: PerfTopic,
    measured: str,
    finished: Finished,
    warm_up: int,
    settings: Mapping[str, str],
    failed: int = 0,
) -> None:
    """Print the results of a measurement, complete or not, and the error that ended it.

    `measured` is produce, consume or latency.
    """
    if finished.error is not None:
        report_error(finished.error, topic.name)
    result = Measured(
        measured,
        topic.name,
        topic.partition_count,
        finished.measurement,
        warm_up,
        failed,
        finished.is_complete,
        settings,
    )
    print_result(result, request.output)
