"""`kafka-transactions`: shows transactions and producers, finds and aborts hanging ones.

Source: TransactionsCommand of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.errors import NoCommonVersion
from engine.client.transactions import (
    ActiveProducer,
    TransactionListing,
    abort_in_partition,
    describe_transaction,
    fence_producer,
    find_hanging,
    list_transactions,
    open_in,
    request_active_producers,
    request_active_producers_of_replica,
)
from engine.errors import ApiError, EngineError
from engine.kafka_errors import TRANSACTIONAL_ID_NOT_FOUND
from engine.model import TopicPartition
from kctl import exits
from kctl.compat.java_commands import (
    VERSION_OPTION,
    Command,
    CommandOption,
    GivenCommand,
    NumberType,
)
from kctl.compat.java_failures import TerseFailure, as_java
from kctl.compat.java_options import GivenOptions
from kctl.compat.java_order import in_java_order
from kctl.compat.java_patterns import compile_java_pattern
from kctl.compat.java_table import java_table
from kctl.compat.releases import Release
from kctl.compat.tool_call import ToolCall

SUMMARY = "Shows transactions and producers; finds transactions that hang, and ends them."
_NONE: Final = "None"
_MAX_TIMEOUT_MINUTES: Final = 15
_MINUTE_MS: Final = 60_000
_TOPIC: Final = CommandOption("topic", "", "A topic.", is_required=True)
_PARTITION: Final = CommandOption(
    "partition", "", "A partition.", is_required=True, number=NumberType.Integer
)
_BROKER: Final = CommandOption("broker-id", "", "Ask this replica.", number=NumberType.Integer)
_DURATION: Final = CommandOption(
    "duration-filter", "", "Only longer ones, in ms.", number=NumberType.Long
)
_LIST: Final = {
    Release.V3_9: (_DURATION,),
    Release.V4_3: (
        _DURATION,
        CommandOption("transactional-id-pattern", "", "Only ids that fit a regular expression."),
    ),
}
_SHARED: Final = (
    Command(
        "describe",
        "Show a transactional id.",
        (CommandOption("transactional-id", "", "The id.", is_required=True),),
    ),
    Command("describe-producers", "Show who writes to a partition.", (_BROKER, _TOPIC, _PARTITION)),
    Command(
        "abort",
        "End a transaction in a partition.",
        (
            _TOPIC,
            _PARTITION,
            CommandOption("start-offset", "", "Its first offset there.", number=NumberType.Long),
            CommandOption("producer-id", "", "Of brokers before 3.0.", number=NumberType.Long),
            CommandOption("producer-epoch", "", "Of brokers before 3.0.", number=NumberType.Short),
            CommandOption(
                "coordinator-epoch", "", "Of brokers before 3.0.", number=NumberType.Integer
            ),
        ),
    ),
    Command(
        "find-hanging",
        "Find transactions that no producer will end.",
        (
            _BROKER,
            CommandOption(
                "max-transaction-timeout",
                "",
                "Minutes without a record; 15.",
                number=NumberType.Integer,
            ),
            CommandOption("topic", "", "Only in this topic."),
            CommandOption("partition", "", "Only in this partition.", number=NumberType.Integer),
        ),
    ),
)
_TERMINATE: Final = Command(
    "forceTerminateTransaction",
    "End the open transaction of a transactional id.",
    (CommandOption("transactionalId", "", "The id.", is_required=True),),
)
_HEADS: Final = ("TransactionalId", "Coordinator", "ProducerId", "TransactionState")
_DESCRIBED_HEADS: Final = (
    "CoordinatorId",
    "TransactionalId",
    "ProducerId",
    "ProducerEpoch",
    "TransactionState",
    "TransactionTimeoutMs",
    "CurrentTransactionStartTimeMs",
    "TransactionDurationMs",
    "TopicPartitions",
)
_PRODUCER_HEADS: Final = (
    "ProducerId",
    "ProducerEpoch",
    "LatestCoordinatorEpoch",
    "LastSequence",
    "LastTimestamp",
    "CurrentTransactionStartOffset",
)
_HANGING_HEADS: Final = (
    "Topic",
    "Partition",
    "ProducerId",
    "ProducerEpoch",
    "CoordinatorEpoch",
    "StartOffset",
    "LastTimestamp",
    "Duration(min)",
)


def commands(release: Release) -> tuple[Command, ...]:
    """Return the commands of kafka-transactions in a release, with their options."""
    listing = Command("list", "List transactional ids.", _LIST[release])
    return (listing, *_SHARED, _TERMINATE) if release.is_four else (listing, *_SHARED)


def common(release: Release) -> tuple[CommandOption, ...]:
    """Return the options of kafka-transactions that precede the command."""
    del release
    return (
        VERSION_OPTION,
        CommandOption("command-config", "", "A file of client properties."),
        CommandOption("bootstrap-server", "", "Brokers to ask first.", is_required=True),
    )


def help_code(release: Release) -> int:
    """Return the exit code with which kafka-transactions ends after its help."""
    del release
    return exits.FAILED


def run_command(call: ToolCall, wanted: GivenCommand) -> int:
    """Run a command of kafka-transactions, and print the results; returns the exit code."""
    given = wanted.given
    servers = given.needed("bootstrap-server")
    call.admit([wanted.command.name, *given.names()], servers)
    properties = call.properties(given.text("command-config"))
    try:
        with call.client(servers, properties) as client:
            _ACTIONS[wanted.command.name](call, client, given)
    except TerseFailure as failure:
        call.flush()
        call.err.write(f"{failure}\n")
        return exits.FAILED
    return exits.OK


def _failed(what: str, error: EngineError) -> TerseFailure:
    """Return the failure of a request as the tool words it, in one line."""
    return TerseFailure(f"{what}: {as_java(error)}. Enable debug logging for additional detail.")


# -- list and describe


def _print_transactions(call: ToolCall, client: KafkaClient, given: GivenOptions) -> None:
    """Print the transactional ids of `list` that match the pattern and the duration filter.

    Errors: TerseFailure.
    """
    longer_than_ms = given.number("duration-filter", -1)
    try:
        found = list_transactions(client, longer_than_ms=longer_than_ms)
        for error in found.failures.values():
            raise error
    except EngineError as error:
        raise _failed("Failed to list transactions", error) from error
    pattern = compile_java_pattern(given.text("transactional-id-pattern") or "")
    rows = [_listed_row(listing) for listing in found.transactions if _fits(pattern, listing)]
    call.out.write(java_table(_HEADS, rows))


def _fits(pattern: re.Pattern[str], listing: TransactionListing) -> bool:
    """Return True if a pattern matches the complete transactional id; "" matches every id."""
    return not pattern.pattern or bool(pattern.fullmatch(listing.transactional_id))


def _listed_row(listing: TransactionListing) -> tuple[str, ...]:
    """Return the cells of a transactional id: it, coordinator, producer id and state."""
    return (
        listing.transactional_id,
        str(listing.coordinator_id),
        str(listing.producer_id),
        listing.state,
    )


def _print_transaction(call: ToolCall, client: KafkaClient, given: GivenOptions) -> None:
    """Print the state of a transactional id (`describe`); raises TerseFailure if it is unknown."""
    transactional_id = given.needed("transactional-id")
    what = f"Failed to describe transaction state of transactional-id `{transactional_id}`"
    try:
        described = describe_transaction(client, transactional_id)
    except ApiError as error:
        if error.code != TRANSACTIONAL_ID_NOT_FOUND:
            raise _failed(what, error) from error
        raise TerseFailure(
            f"{what}: DescribeTransactions request for transactionalId `{transactional_id}` "
            "failed because the ID could not be found. Enable debug logging for additional "
            "detail."
        ) from error
    except EngineError as error:
        raise _failed(what, error) from error
    start, duration = _NONE, _NONE
    if described.start_ms >= 0:
        start = str(described.start_ms)
        duration = str(client.clock.wall_ms() - described.start_ms)
    row = (
        str(_coordinator_id(client, described.coordinator)),
        described.transactional_id,
        str(described.producer_id),
        str(described.producer_epoch),
        described.state,
        str(described.timeout_ms),
        start,
        duration,
        ",".join(map(str, in_java_order(described.partitions))),
    )
    call.out.write(java_table(_DESCRIBED_HEADS, [row]))


def _coordinator_id(client: KafkaClient, address: str) -> int:
    """Return the id of the broker at an address, -1 if there is none."""
    brokers = client.brokers_view().brokers.values()
    return next((b.broker_id for b in brokers if str(b.address) == address), -1)


def _print_producers(call: ToolCall, client: KafkaClient, given: GivenOptions) -> None:
    """Print the producers that a partition's leader, or the broker of --broker-id, knows.

    Errors: TerseFailure.
    """
    producers = _request_producers(client, _partition(given), _broker_id(given))
    rows = [
        (
            str(producer.producer_id),
            str(producer.producer_epoch),
            str(producer.coordinator_epoch),
            str(producer.last_sequence),
            str(producer.last_timestamp_ms),
            _offset_text(producer.transaction_start_offset),
        )
        for producer in producers
    ]
    call.out.write(java_table(_PRODUCER_HEADS, rows))


def _partition(given: GivenOptions) -> TopicPartition:
    """Return the partition of --topic and --partition."""
    return TopicPartition(given.needed("topic"), given.number("partition", 0))


def _broker_id(given: GivenOptions) -> int | None:
    """Return the value of --broker-id, None without it."""
    return given.number("broker-id", 0) if given.has("broker-id") else None


def _offset_text(offset: int) -> str:
    """Return an offset as text, "None" if it is negative."""
    return str(offset) if offset >= 0 else _NONE


def _request_producers(
    client: KafkaClient, partition: TopicPartition, broker_id: int | None, about: str = ""
) -> list[ActiveProducer]:
    """Request a partition's producers from its leader, or from `broker_id`.

    Errors: TerseFailure; `about` replaces partition and broker in its message.
    """
    where = "leader" if broker_id is None else f"broker {broker_id}"
    about = about or f"partition {partition} on {where}"
    try:
        if broker_id is None:
            found = request_active_producers(client, [partition])[partition]
        else:
            found = request_active_producers_of_replica(client, broker_id, [partition])[partition]
        if isinstance(found, EngineError):
            raise found
    except EngineError as error:
        raise _failed(f"Failed to describe producers for {about}", error) from error
    return found


# -- abort


def _abort_in_partition(call: ToolCall, client: KafkaClient, given: GivenOptions) -> None:
    """Abort a hanging transaction in one partition by WriteTxnMarkers; raises TerseFailure."""
    del call
    partition = _partition(given)
    producer = _producer_to_end(client, given, partition)
    try:
        abort_in_partition(client, producer)
    except EngineError as error:
        epoch = max(producer.coordinator_epoch, 0)
        spec = (
            f"AbortTransactionSpec(topicPartition={partition}, "
            f"producerId={producer.producer_id}, producerEpoch={producer.producer_epoch}, "
            f"coordinatorEpoch={epoch})"
        )
        raise _failed(f"Failed to abort transaction {spec}", error) from error


def _producer_to_end(
    client: KafkaClient, given: GivenOptions, partition: TopicPartition
) -> ActiveProducer:
    """Return the producer whose transaction is to be aborted.

    It is found by --start-offset, or described by --producer-id, --producer-epoch and
    --coordinator-epoch. Errors: TerseFailure.
    """
    if given.has("start-offset"):
        start_offset = given.number("start-offset", 0)
        for producer in _request_producers(client, partition, None):
            if producer.transaction_start_offset == start_offset:
                return producer
        raise TerseFailure(
            f"Could not find any open transactions starting at offset {start_offset} "
            f"on partition {partition}"
        )
    if not given.has("producer-id"):
        raise TerseFailure(
            "The transaction to abort must be identified either with --start-offset (for brokers "
            "on 3.0 or above) or with --producer-id, --producer-epoch, and --coordinator-epoch "
            "(for older brokers)"
        )
    for name in ("producer-epoch", "coordinator-epoch"):
        if not given.has(name):
            raise TerseFailure(f"Missing required argument --{name}")
    return ActiveProducer(
        partition,
        given.number("producer-id", 0),
        given.number("producer-epoch", 0),
        given.number("coordinator-epoch", 0),
        -1,
        -1,
        -1,
    )


def _terminate(call: ToolCall, client: KafkaClient, given: GivenOptions) -> None:
    """Abort the open transaction of a transactional id by fencing its producer (InitProducerId).

    Errors: TerseFailure.
    """
    del call
    transactional_id = given.needed("transactionalId")
    try:
        fence_producer(client, transactional_id)
    except EngineError as error:
        what = f"Failed to force terminate transactionalId `{transactional_id}`"
        raise _failed(what, error) from error


# -- hanging transactions


def _print_hanging(call: ToolCall, client: KafkaClient, given: GivenOptions) -> None:
    """Print transactions that are open and idle for long, but unknown to their coordinators.

    Errors: TerseFailure.
    """
    if not given.has("topic") and not given.has("broker-id"):
        raise TerseFailure(
            "The `find-hanging` command requires either --topic or --broker-id to limit the "
            "scope of the search"
        )
    if given.has("partition") and not given.has("topic"):
        raise TerseFailure("The --partition argument requires --topic to be provided")
    broker_id = _broker_id(given)
    idle_for_ms = given.number("max-transaction-timeout", _MAX_TIMEOUT_MINUTES) * _MINUTE_MS
    # A partition given by number is assumed to exist.
    named = given.has("topic") and given.has("partition")
    partitions = [_partition(given)] if named else _request_partitions(client, given, broker_id)
    broker = "Optional.empty" if broker_id is None else f"Optional[{broker_id}]"
    about = f"{len(partitions)} partitions on broker {broker}"
    producers = [
        producer
        for partition in partitions
        for producer in open_in(_request_producers(client, partition, broker_id, about))
    ]
    try:
        hanging = find_hanging(client, producers, idle_for_ms=idle_for_ms)
    except (EngineError, NoCommonVersion) as error:
        raise _failed("Failed to list transactions", error) from error
    now_ms = client.clock.wall_ms()
    rows = [_hanging_row(found.producer, now_ms) for found in hanging]
    call.out.write(java_table(_HANGING_HEADS, rows))


def _request_partitions(
    client: KafkaClient, given: GivenOptions, broker_id: int | None
) -> Sequence[TopicPartition]:
    """Return the partitions to search for hanging transactions: of a topic, a broker, or both.

    Errors: TerseFailure for a topic that does not exist.
    """
    topic = given.text("topic")
    try:
        view = client.view(None) if topic is None else client.view_of_existing([topic])
    except EngineError as error:
        raise _failed(f"Failed to describe {1 if topic else 0} topics", error) from error
    return [
        TopicPartition(name, row.partition)
        for name, found in sorted(view.topics.items())
        for row in found.partitions
        if (topic is None or name == topic) and (broker_id is None or broker_id in row.replicas)
    ]


def _hanging_row(producer: ActiveProducer, now_ms: int) -> tuple[str, ...]:
    """Return the cells of a hanging transaction; its idle time is in minutes."""
    return (
        producer.partition.topic,
        str(producer.partition.partition),
        str(producer.producer_id),
        str(producer.producer_epoch),
        str(producer.coordinator_epoch),
        str(producer.transaction_start_offset),
        str(producer.last_timestamp_ms),
        str((now_ms - producer.last_timestamp_ms) // _MINUTE_MS),
    )


_ACTIONS: Final[dict[str, Callable[[ToolCall, KafkaClient, GivenOptions], None]]] = {
    "list": _print_transactions,
    "describe": _print_transaction,
    "describe-producers": _print_producers,
    "abort": _abort_in_partition,
    "find-hanging": _print_hanging,
    "forceTerminateTransaction": _terminate,
}
