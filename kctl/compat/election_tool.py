"""`kafka-leader-election`: its options, their valid combinations, and its output.

Source: LeaderElectionCommand of 3.9.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TextIO

from engine.client.blocking import KafkaClient
from engine.client.errors import TimedOut
from engine.client.leader_admin import Election, elect_leaders
from engine.errors import ApiError, EngineError
from engine.host.ports import Files
from engine.kafka_errors import (
    CLUSTER_AUTHORIZATION_FAILED,
    ELECTION_NOT_NEEDED,
    REQUEST_TIMED_OUT,
)
from engine.model import TopicPartition
from kctl import exits
from kctl.compat.java_failures import (
    ADMIN_COMMAND_FAILED,
    ADMIN_OPERATION,
    ToolFailure,
    java_text,
)
from kctl.compat.java_options import (
    HELP,
    VERSION,
    GivenOptions,
    OptionsRefused,
    ToolOption,
)
from kctl.compat.java_order import in_java_order
from kctl.compat.json_values import array_of, field_of, first_document, object_of, text_of, whole_of
from kctl.compat.plan_json import read_text
from kctl.compat.releases import Release

SUMMARY = "Has leaders of partitions elected: the preferred ones, or any replica that is left."
_TYPE = "election-type"
_FILE = "path-to-json-file"
_ALL = "all-topic-partitions"

_OPTIONS = (
    ToolOption("bootstrap-server", "Brokers to ask first. Required.", "HOST:PORT,..."),
    ToolOption("admin.config", "Client properties.", "FILE"),
    ToolOption(_TYPE, "preferred, or unclean where there is no leader. Required.", "TYPE"),
    ToolOption("topic", "The topic, with --partition.", "NAME"),
    ToolOption("partition", "The partition of --topic.", "NUMBER"),
    ToolOption(_FILE, 'Several: {"partitions":[{"topic":"a","partition":1}]}.', "FILE"),
    ToolOption(_ALL, "All partitions."),
    HELP,
    VERSION,
)
_PROPERTIES_4 = ToolOption("command-config", "Client properties.", "FILE")
_SCOPES = ("topic", _ALL, _FILE)
_ELECTIONS = {"preferred": Election.PREFERRED, "unclean": Election.UNCLEAN}


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options that kafka-leader-election has in a release."""
    return (*_OPTIONS, *([_PROPERTIES_4] if release.is_four else []))


def check_options(given: GivenOptions) -> str:
    """Validate the options of kafka-leader-election, and return the kind of election.

    It is `preferred` or `unclean`. Errors: OptionsRefused, ToolFailure.
    """
    missing = [name for name in ("bootstrap-server", _TYPE) if not given.has(name)]
    if missing:
        _refuse(f"Missing required option(s): {', '.join(missing)}")
    if sum(given.has(name) for name in _SCOPES) != 1:
        _refuse(f"One and only one of the following options is required: {', '.join(_SCOPES)}")
    if given.has("topic") and not given.has("partition"):
        _refuse("Missing required option(s): partition")
    if given.has("partition") and not given.has("topic"):
        _refuse("Option partition is only allowed if topic is used")
    kind = given.needed(_TYPE).lower()
    if kind not in _ELECTIONS:
        raise OptionsRefused(f"Cannot parse argument '{given.text(_TYPE)}' of option {_TYPE}")
    return kind


def _refuse(message: str) -> None:
    """Raise the failure by which kafka-leader-election refuses options."""
    raise ToolFailure(ADMIN_COMMAND_FAILED, message)


def perform(
    given: GivenOptions,
    kind: str,
    connect: Callable[[], KafkaClient],
    files: Files,
    out: TextIO,
    err: TextIO,
) -> int:
    """Run kafka-leader-election: elect leaders, and print the results; returns the exit code."""
    if given.is_four and given.has("admin.config"):
        out.write(
            "Option --admin.config has been deprecated and will be removed in a future version. "
            "Use --command-config instead.\n"
        )
    try:
        partitions = _read_partitions(given, files)
        with connect() as client:
            _elect(client, _ELECTIONS[kind], partitions, out)
    except ToolFailure as failure:
        err.write(f"{failure}\n{failure.trace()}\n")
        return exits.FAILED
    except EngineError as error:
        err.write(f"{java_text(error)}\n")
        return exits.FAILED
    return exits.OK


def _read_partitions(given: GivenOptions, files: Files) -> list[TopicPartition] | None:
    """Return the partitions to elect leaders for, of options or a file; None for all.

    Errors: ToolFailure.
    """
    if given.has(_ALL):
        return None
    if given.has("topic"):
        return [TopicPartition(given.needed("topic"), given.number("partition", 0))]
    try:
        text = read_text(files, given.needed(_FILE))
    except ToolFailure as failure:
        # The tool wraps the exception of reading the file.
        wrapped = f"{failure.java_class}: {failure}"
        raise ToolFailure("java.lang.RuntimeException", wrapped, wrapped) from failure
    return parse_partitions(text)


def parse_partitions(text: str) -> list[TopicPartition]:
    """Return the partitions in the JSON of kafka-leader-election's --path-to-json-file.

    Errors: ToolFailure, also for a partition that is named twice.
    """
    try:
        document = first_document(text)
    except ValueError:
        raise ToolFailure(ADMIN_OPERATION, "Replica election data is empty") from None
    fields = object_of(document)
    if "partitions" not in fields:
        message = 'Replica election data is missing "partitions" field'
        raise ToolFailure(ADMIN_OPERATION, message)
    keys = [
        TopicPartition(text_of(field_of(row, "topic")), whole_of(field_of(row, "partition")))
        for row in array_of(fields["partitions"])
    ]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        named = ",".join(map(str, twice))
        message = f"Replica election data contains duplicate partitions: [{named}]"
        raise ToolFailure(ADMIN_OPERATION, message)
    return keys


def _elect(
    client: KafkaClient,
    election: Election,
    partitions: Sequence[TopicPartition] | None,
    out: TextIO,
) -> None:
    """Request elections, and print which succeeded, were not needed, or failed.

    `partitions` None means all. Errors: ToolFailure if one failed, or the request.
    """
    try:
        results = elect_leaders(client, election, partitions)
    except (ApiError, TimedOut) as error:
        raise _print_request_failure(error, out) from error
    order = in_java_order(results)
    done = [key for key in order if results[key] is None]
    failed = {key: failure for key in order if (failure := results[key]) is not None}
    needless = [key for key, failure in failed.items() if failure.code == ELECTION_NOT_NEEDED]
    if done:
        out.write(
            f"Successfully completed leader election ({election.name}) for partitions "
            f"{_joined(done)}\n"
        )
    if needless:
        out.write(f"Valid replica already elected for partitions {_joined(needless)}\n")
    broken = {key: failure for key, failure in failed.items() if key not in needless}
    for key, failure in broken.items():
        out.write(
            f"Error completing leader election ({election.name}) for partition: {key}: "
            f"{java_text(failure)}\n"
        )
    if broken:
        message = f"{len(broken)} replica(s) could not be elected"
        raise ToolFailure(ADMIN_COMMAND_FAILED, message, *map(java_text, broken.values()))


def _print_request_failure(error: ApiError | TimedOut, out: TextIO) -> ToolFailure:
    """Print and return the failure of a complete election request.

    Raises the error unless it is a time-out or CLUSTER_AUTHORIZATION_FAILED.
    """
    if isinstance(error, TimedOut) or error.code == REQUEST_TIMED_OUT:
        message = "Timeout waiting for election results"
    elif error.code == CLUSTER_AUTHORIZATION_FAILED:
        message = "Not authorized to perform leader election"
    else:
        raise error
    out.write(f"{message}\n")
    return ToolFailure(ADMIN_COMMAND_FAILED, message, java_text(error))


def _joined(keys: Sequence[TopicPartition]) -> str:
    return ", ".join(map(str, keys))
