"""`kafka-topics`: its options, their valid combinations, and its failures.

A failure of an action is printed on stdout with exit code 1.

Source: TopicCommand.main, TopicCommandOptions of 3.9.1.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Final, TextIO

from engine.client.blocking import KafkaClient
from engine.host.ports import Files
from kctl import exits
from kctl.compat.java_admin import ILLEGAL_ARGUMENT
from kctl.compat.java_failures import ToolFailure
from kctl.compat.java_log import log_failure
from kctl.compat.java_options import (
    HELP,
    VERSION,
    GivenOptions,
    ToolOption,
    exclude,
    refused,
    require,
)
from kctl.compat.releases import Release
from kctl.compat.topics_changes import add_partitions, create_named_topic, delete_selected_topics
from kctl.compat.topics_views import list_topics_of, print_topics_and_partitions

SUMMARY = "Creates, lists, describes, grows and deletes topics."
_OPTIONS = (
    ToolOption("bootstrap-server", "Brokers to ask first. Required.", "HOST:PORT,..."),
    ToolOption("command-config", "Client properties.", "FILE"),
    ToolOption("list", "List the names of topics."),
    ToolOption("create", "Create a topic."),
    ToolOption("delete", "Delete topics."),
    ToolOption("alter", "Add partitions to topics."),
    ToolOption("describe", "Show topics and their partitions."),
    ToolOption("topic", "The topic; but for --create a regular expression.", "NAME"),
    ToolOption("topic-id", "Describe: the topic of this id.", "ID"),
    ToolOption("config", "Create: a setting; may be repeated.", "KEY=VALUE"),
    ToolOption("delete-config", "Not possible with --bootstrap-server.", "KEY"),
    ToolOption("partitions", "How many partitions.", "NUMBER"),
    ToolOption("replication-factor", "Create: how many replicas of each.", "NUMBER"),
    ToolOption("replica-assignment", "The replicas of each partition: 1:2,2:3", "ID:ID,..."),
    ToolOption("under-replicated-partitions", "Describe: those with replicas out of sync."),
    ToolOption("unavailable-partitions", "Describe: those whose leader is not there."),
    ToolOption("under-min-isr-partitions", "Describe: those below min.insync.replicas."),
    ToolOption("at-min-isr-partitions", "Describe: those that just have min.insync.replicas."),
    ToolOption("topics-with-overrides", "Describe: topics with settings of their own."),
    ToolOption("if-exists", "Do nothing where the topic is not there."),
    ToolOption("if-not-exists", "Create: do nothing where the topic is there."),
    ToolOption("exclude-internal", "Leave out the topics of the brokers."),
    ToolOption("partition-size-limit-per-response", "Describe: partitions at once.", "NUMBER"),
    HELP,
    VERSION,
)

_LOGGER: Final = "org.apache.kafka.tools.TopicCommand"
_ACTIONS: Final = ("create", "list", "alter", "describe", "delete")
#: Options in the order of Java's HashSet.
_REPORTS: Final = (
    "at-min-isr-partitions",
    "unavailable-partitions",
    "under-min-isr-partitions",
    "under-replicated-partitions",
)
_OVERRIDES: Final = "topics-with-overrides"
#: Actions with which each option is allowed.
_ALLOWED: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("config", ("alter", "create")),
    ("delete-config", ("alter",)),
    ("partitions", ("alter", "create")),
    ("replication-factor", ("create",)),
    ("replica-assignment", ("alter", "create")),
)
_ALLOWED_LAST: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("if-exists", ("alter", "delete", "describe")),
    ("if-not-exists", ("create",)),
    ("exclude-internal", ("list", "describe")),
)


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options of kafka-topics, the same in each release."""
    del release
    return _OPTIONS


def check_options(given: GivenOptions) -> str:
    """Validate the options of kafka-topics, and return the one action they request.

    Errors: OptionsRefused, ToolFailure.
    """
    actions = [name for name in _ACTIONS if given.has(name)]
    if len(actions) != 1:
        raise refused(
            "Command must include exactly one action: --list, --describe, --create, --alter or "
            "--delete"
        )
    action = actions[0]
    if not given.has("bootstrap-server"):
        raise ToolFailure(ILLEGAL_ARGUMENT, "--bootstrap-server must be specified")
    _check_required(given, action)
    _check_allowed(given, action)
    return action


def _check_required(given: GivenOptions, action: str) -> None:
    """Raise OptionsRefused or ToolFailure if a required option of the action is missing."""
    if action == "describe" and given.has("if-exists"):
        if not given.has("topic") and not given.has("topic-id"):
            raise refused("--topic or --topic-id is required to describe a topic")
        if given.has("topic") and given.has("topic-id"):
            sys.stdout.write(
                "Only topic id will be used when both --topic and --topic-id are specified and "
                "topicId is not Uuid.ZERO_UUID\n"
            )
    if action not in ("list", "describe"):
        require(given, "topic")
    if action == "alter":
        if given.has("config"):
            raise refused(
                'Option combination "[[bootstrap-server], [config]]" can\'t be used with option '
                '"[alter]" (the kafka-configs CLI supports altering topic configs with a '
                "--bootstrap-server option)"
            )
        require(given, "partitions")


def _check_allowed(given: GivenOptions, action: str) -> None:
    """Raise OptionsRefused for an option that the action does not allow, in Kafka's order."""
    if given.is_four and given.has("delete-config"):
        sys.stderr.write(
            "delete-config option is no longer supported and deprecated since version 4.0. The "
            "config will be fully removed in future releases.\n"
        )
    for name, actions in _ALLOWED:
        if name == "delete-config" and given.is_four:
            continue
        if action not in actions:
            exclude(given, name, (action,))
        if name == "delete-config":
            exclude(given, name, ("bootstrap-server",))
    if action == "create":
        exclude(given, "replica-assignment", ("partitions", "replication-factor"))
    reports = ("under-replicated-partitions", "under-min-isr-partitions")
    for name in (*reports, "at-min-isr-partitions", "unavailable-partitions"):
        exclude(given, name, () if action == "describe" else (action,))
        exclude(given, name, (_OVERRIDES,))
    exclude(given, _OVERRIDES, () if action == "describe" else (action,))
    exclude(given, _OVERRIDES, _REPORTS)
    for name, actions in _ALLOWED_LAST:
        exclude(given, name, () if action in actions else (action,))


def perform(
    given: GivenOptions,
    action: str,
    connect: Callable[[], KafkaClient],
    files: Files,
    out: TextIO,
    err: TextIO,
) -> int:
    """Run kafka-topics: perform `action`, and print its results; returns the exit code."""
    del files
    with connect() as client:
        try:
            if action == "create":
                create_named_topic(client, given, out)
            elif action == "alter":
                add_partitions(client, given, out)
            elif action == "list":
                list_topics_of(client, given, out)
            elif action == "describe":
                print_topics_and_partitions(client, given, out)
            else:
                delete_selected_topics(client, given)
        except ToolFailure as failure:
            out.write(f"Error while executing topic command : {failure}\n")
            log_failure(err, failure, _LOGGER)
            return exits.FAILED
    return exits.OK
