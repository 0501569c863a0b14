"""The producer that Java's properties configure.

| property | here |
|---|---|
| `acks`, `compression.type`, `batch.size`, `linger.ms`, `enable.idempotence` | as in Java |
| `max.in.flight.requests.per.connection`, `delivery.timeout.ms`, `max.block.ms` | as in Java |
| settings of every client | as in `engine/client/settings.py` |

Other properties have no effect, such as `buffer.memory`, `retries`, `send.buffer.bytes`.

Source: ProducerConfig, KafkaProducer.doSend of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from engine.client.batch_sender import IN_FLIGHT_MAX, BatchResult
from engine.client.blocking import KafkaClient
from engine.client.errors import TimedOut, Unreachable
from engine.client.metadata import topic_failure
from engine.client.produce_calls import ACKS_ALL, ACKS_LEADER, ACKS_NONE
from engine.client.producing import OpenTransaction, OutgoingRecord, Producer, ProducerOptions
from engine.errors import ApiError, EngineError
from engine.kafka_errors import kafka_error
from engine.records.codec import Codec
from kctl.compat.java_admin import TIMEOUT
from kctl.compat.java_failures import ToolFailure, as_java
from kctl.compat.java_numbers import is_java_number

CONFIG_EXCEPTION: Final = "org.apache.kafka.common.config.ConfigException"
_ACKS: Final = {"all": ACKS_ALL, "-1": ACKS_ALL, "0": ACKS_NONE, "1": ACKS_LEADER}
_CODECS: Final = {codec.label: codec for codec in Codec}
_DEFAULTS: Final = {
    "batch.size": 16384,
    "linger.ms": 0,
    "delivery.timeout.ms": 120_000,
    "max.block.ms": 60_000,
    "max.in.flight.requests.per.connection": IN_FLIGHT_MAX,
}


class ProducerTimes(NamedTuple):
    """Time-outs of a producer in ms: for a topic to exist, and for a batch to be stored."""

    max_block_ms: int
    delivery_ms: int


def config_refused(value: str, key: str, rule: str) -> ToolFailure:
    """Return the ConfigException for a client property with an invalid value."""
    return ToolFailure(CONFIG_EXCEPTION, f"Invalid value {value} for configuration {key}: {rule}")


def java_producer_options(properties: Mapping[str, str]) -> ProducerOptions:
    """Return the producer options that Java's properties define; raises ToolFailure."""
    acks = _choice(properties, "acks", "all", _ACKS)
    codec = _choice(properties, "compression.type", "none", _CODECS)
    wanted = properties.get("enable.idempotence")
    if wanted is not None and wanted.lower() not in ("true", "false"):
        raise config_refused(
            wanted, "enable.idempotence", "Expected value to be either true or false"
        )
    is_idempotent = None if wanted is None else wanted.lower() == "true"
    if is_idempotent and acks != ACKS_ALL:
        raise ToolFailure(
            CONFIG_EXCEPTION,
            "Must set acks to all in order to use the idempotent producer. "
            "Otherwise we cannot guarantee idempotence.",
        )
    in_flight = _whole(properties, "max.in.flight.requests.per.connection")
    return ProducerOptions(
        acks=acks,
        codec=Codec(codec),
        batch_bytes=_whole(properties, "batch.size"),
        linger_ms=_whole(properties, "linger.ms"),
        is_idempotent=is_idempotent,
        in_flight_max=min(max(in_flight, 1), IN_FLIGHT_MAX),
    )


def producer_times(properties: Mapping[str, str]) -> ProducerTimes:
    """Return max.block.ms and delivery.timeout.ms of Java's properties; raises ToolFailure."""
    return ProducerTimes(
        _whole(properties, "max.block.ms"), _whole(properties, "delivery.timeout.ms")
    )


def _choice(properties: Mapping[str, str], key: str, default: str, known: Mapping[str, int]) -> int:
    """Return the number that `known` has for a property's value; raises ToolFailure for others.

    `default` is the value of a property that is not set.
    """
    text = properties.get(key, default)
    if text not in known:
        named = ", ".join(known)
        raise config_refused(text, key, f"String must be one of: {named}")
    return known[text]


def _whole(properties: Mapping[str, str], key: str) -> int:
    """Return a property as an integer of at least 0, its default if absent; raises ToolFailure."""
    text = properties.get(key)
    if text is None:
        return _DEFAULTS[key]
    if not is_java_number(text.strip()):
        kind = "int" if key in ("batch.size", "delivery.timeout.ms") else "long"
        raise config_refused(text, key, f"Not a number of type {kind.upper()}")
    number = int(text)
    if number < 0:
        raise config_refused(text, key, "Value must be at least 0")
    return number


#: Called with a record that is not stored, and the error.
OnFailure = Callable[[OutgoingRecord, EngineError], None]
#: Called with a stored record, its partition and offset (-1 if the response lacks it).
OnStored = Callable[[OutgoingRecord, int, int], None]


class JavaProducer:
    """Sends records, and calls back for each of them, like Java's producer."""

    def __init__(
        self,
        client: KafkaClient,
        options: ProducerOptions,
        max_block_ms: int,
        *,
        on_failure: OnFailure,
        on_stored: OnStored | None = None,
        transaction: OpenTransaction | None = None,
    ) -> None:
        """Create a producer that calls `on_stored` or `on_failure` once for each record.

        `send` waits for a missing topic up to `max_block_ms`. With a `transaction` records are sent
        in it.
        """
        self._client = client
        self._producer = Producer(client, options, transaction=transaction)
        self._max_block_ms = max_block_ms
        self._on_failure = on_failure
        self._on_stored = on_stored
        #: Topics known to exist; for others `send` waits up to `max_block_ms`.
        self._known_topics: set[str] = set()
        #: Records without a result, by place.
        self._records: dict[int, OutgoingRecord] = {}
        #: Place of the last record.
        self._place = 0

    @property
    def is_idle(self) -> bool:
        """Return True if every record has its result."""
        return self._producer.is_idle

    def due_in_ms(self) -> int | None:
        """Return the time in ms until the next batch is due, None if no record is to be sent."""
        return self._producer.due_in_ms()

    def send(self, record: OutgoingRecord) -> None:
        """Queue a record; if its topic does not exist in time, call `on_failure`."""
        error = self._await_topic(record.topic)
        if error is not None:
            self._on_failure(record, error)
            return
        self._place += 1
        self._records[self._place] = record
        self._producer.add(record, self._place)

    def poll(self, wait_ms: int = 0) -> None:
        """Send due batches, and call `on_stored` or `on_failure` for records with a result.

        `wait_ms` is the longest time to wait for one.
        """
        self._report(self._producer.poll(wait_ms))

    def flush(self) -> None:
        """Send all records, and call `on_stored` or `on_failure` for each of them."""
        self._report(self._producer.flush())

    def _await_topic(self, topic: str) -> ToolFailure | None:
        """Wait until a topic exists; return the error if it does not within `max_block_ms`."""
        if topic in self._known_topics:
            return None
        deadline_ms = self._client.clock.monotonic_ms() + self._max_block_ms
        attempt = 0
        while True:
            try:
                error: EngineError | None = topic_failure(
                    self._client.view([topic], deadline_ms=deadline_ms), topic
                )
            except (Unreachable, TimedOut) as lost:
                error = lost
            if error is None:
                self._known_topics.add(topic)
                return None
            if isinstance(error, ApiError) and not kafka_error(error.code).is_retriable:
                return as_java(error)
            if self._client.clock.monotonic_ms() + self._client.backoff_ms(attempt) >= deadline_ms:
                return ToolFailure(
                    TIMEOUT,
                    f"Topic {topic} not present in metadata after {self._max_block_ms} ms.",
                )
            self._client.back_off(attempt)
            attempt += 1

    def _report(self, results: list[BatchResult]) -> None:
        """Call `on_stored` or `on_failure` for each record of finished batches.

        The offset is -1 if the broker returned none.
        """
        for result in results:
            for index, place in enumerate(result.batch.places):
                record = self._records.pop(place)
                if result.error is not None:
                    self._on_failure(record, result.error)
                elif self._on_stored is not None:
                    offset = -1 if result.base_offset < 0 else result.base_offset + index
                    self._on_stored(record, result.batch.partition.partition, offset)
