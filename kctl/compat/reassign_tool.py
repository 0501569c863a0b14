"""`kafka-reassign-partitions`: its options, their valid combinations, and its failures.

Source: ReassignPartitionsCommand.main, validateAndParseArgs of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from engine.client.blocking import KafkaClient
from engine.errors import EngineError
from engine.host.ports import Files
from kctl import exits
from kctl.compat.java_failures import TerseFailure, as_tool_failure
from kctl.compat.java_options import (
    HELP,
    VERSION,
    GivenOptions,
    OptionsRefused,
    ToolOption,
)
from kctl.compat.plan_json import (
    parse_proposal,
    parse_proposal_to_execute,
    parse_topics,
    read_broker_list,
    read_text,
)
from kctl.compat.reassign_actions import ExecuteSettings, ReassignActions
from kctl.compat.releases import Release

SUMMARY = "Moves replicas of partitions between brokers, and between their log directories."
_FILE = "reassignment-json-file"
_TOPICS_FILE = "topics-to-move-json-file"
_LOG_DIRS_THROTTLE = "replica-alter-log-dirs-throttle"
_LOG_DIRS_TIMEOUT_MS = 10_000

_OPTIONS = (
    ToolOption("bootstrap-server", "Brokers to ask first. Required.", "HOST:PORT,..."),
    ToolOption("command-config", "Client properties.", "FILE"),
    ToolOption("generate", "Propose places for all replicas of topics."),
    ToolOption(_TOPICS_FILE, 'For --generate: {"topics":[{"topic":"a"}],"version":1}.', "FILE"),
    ToolOption("broker-list", "For --generate: ids of the brokers to use.", "ID,..."),
    ToolOption("disable-rack-aware", "For --generate: without regard to racks."),
    ToolOption("execute", "Begin the moves of a file."),
    ToolOption("verify", "Return how far the moves of a file are; clear throttles at their end."),
    ToolOption("cancel", "Take back the moves of a file that are under way."),
    ToolOption("list", "Tell all moves under way."),
    ToolOption(
        _FILE,
        'The moves: {"partitions":[{"topic":"a","partition":0,"replicas":[1,2]}],"version":1}; '
        '"log_dirs" beside "replicas" names a directory, or "any", for each of them.',
        "FILE",
    ),
    ToolOption("additional", "For --execute: though others are under way."),
    ToolOption("throttle", "Bytes a second between brokers.", "NUMBER"),
    ToolOption(_LOG_DIRS_THROTTLE, "Bytes a second between directories.", "NUMBER"),
    ToolOption("timeout", "Milliseconds to wait for moves of directories.", "NUMBER"),
    ToolOption("preserve-throttles", "For --verify and --cancel: leave throttles as they are."),
    HELP,
    VERSION,
)
_FIXED_FACTOR = "disallow-replication-factor-change"
_OPTIONS_4 = (
    ToolOption("bootstrap-controller", "Not served.", "HOST:PORT,..."),
    ToolOption(_FIXED_FACTOR, "For --execute: refuse another number of replicas."),
)

#: Required and allowed options of each action.
_ACTIONS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "generate": ((_TOPICS_FILE, "broker-list"), ("disable-rack-aware",)),
    "execute": (
        (_FILE,),
        ("additional", "throttle", _LOG_DIRS_THROTTLE, "timeout", _FIXED_FACTOR),
    ),
    "verify": ((_FILE,), ("preserve-throttles",)),
    "cancel": ((_FILE,), ("preserve-throttles", "timeout")),
    "list": ((), ()),
}
_ALWAYS = ("bootstrap-server", "command-config")


def options(release: Release) -> tuple[ToolOption, ...]:
    """Return the options that kafka-reassign-partitions has in a release.

    In 4.3.0 the value of --bootstrap-server is optional.
    """
    if not release.is_four:
        return _OPTIONS
    servers = [
        option._replace(is_value_optional=option.name == "bootstrap-server") for option in _OPTIONS
    ]
    return (*servers, *_OPTIONS_4)


def check_options(given: GivenOptions) -> str:
    """Validate the options of kafka-reassign-partitions, and return the one action they request.

    Errors: OptionsRefused.
    """
    actions = [name for name in _ACTIONS if given.has(name)]
    if len(actions) != 1:
        named = ", ".join(f"--{name}" for name in _ACTIONS)
        raise _refused(f"Command must include exactly one action: {named}")
    action = actions[0]
    if not given.has("bootstrap-server"):
        raise _refused(
            "Please specify either --bootstrap-server or --bootstrap-controller"
            if given.is_four
            else "Please specify --bootstrap-server"
        )
    required, allowed = _ACTIONS[action]
    for name in required:
        if not given.has(name):
            raise _refused(f'Missing required argument "[{name}]"')
    for name in given.names():
        if name not in (action, *required, *allowed, *_ALWAYS):
            raise _refused(f'Option "[{name}]" can\'t be used with action "[{action}]"')
    return action


def _refused(message: str) -> OptionsRefused:
    """Return the error for refused options, which is printed with the usage."""
    return OptionsRefused(message, shows_usage=True)


def perform(
    given: GivenOptions,
    action: str,
    connect: Callable[[], KafkaClient],
    files: Files,
    out: TextIO,
) -> int:
    """Run kafka-reassign-partitions: perform `action`, and print its results.

    Returns the exit code; errors are printed to `out`, as in Kafka.
    """
    try:
        with connect() as client:
            _perform_action(given, action, ReassignActions(client, out, given.release), files)
    except TerseFailure as failure:
        out.write(f"{failure}\n")
        return exits.FAILED
    except EngineError as error:
        ended = as_tool_failure(error)
        out.write(f"Error: {ended}\n{ended.trace()}\n")
        return exits.FAILED
    return exits.OK


def _perform_action(
    given: GivenOptions, action: str, actions: ReassignActions, files: Files
) -> None:
    """Read the file that the action needs, and perform the action."""
    if action == "list":
        actions.show_ongoing()
        return
    keeps_throttles = given.has("preserve-throttles")
    timeout_ms = given.number("timeout", _LOG_DIRS_TIMEOUT_MS)
    text = read_text(files, given.needed(_TOPICS_FILE if action == "generate" else _FILE))
    if action == "generate":
        broker_ids = read_broker_list(given.needed("broker-list"))
        is_rack_aware = not given.has("disable-rack-aware")
        actions.generate(parse_topics(text), broker_ids, is_rack_aware=is_rack_aware)
    elif action == "verify":
        actions.verify(parse_proposal(text), keeps_throttles=keeps_throttles)
    elif action == "cancel":
        actions.cancel(parse_proposal(text), keeps_throttles=keeps_throttles, timeout_ms=timeout_ms)
    else:
        settings = ExecuteSettings(
            given.has("additional"),
            given.number("throttle", -1),
            given.number(_LOG_DIRS_THROTTLE, -1),
            timeout_ms,
            may_change_replication_factor=not given.has(_FIXED_FACTOR),
        )
        actions.execute(parse_proposal_to_execute(text), settings)
