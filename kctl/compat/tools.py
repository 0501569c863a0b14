"""Kafka's tools that kctl imitates: run a call by its arguments, return its exit code.

| arguments | output of Kafka's tools and kctl's |
|---|---|
| none, or `--help` | help on stderr, exit code 1 |
| `--version` | the version on stdout, exit code 0 |
| invalid options | the error on stderr, often with the help, exit code 1 |

Source: CommandLineUtils.maybePrintHelpOrVersion, printUsageAndExit.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from engine.errors import EngineError
from kctl import exits
from kctl.compat.java_failures import ToolFailure, set_message_release
from kctl.compat.java_numbers import LONG_BITS, is_java_number
from kctl.compat.java_options import GivenOptions, OptionsRefused, parse_options, usage_text
from kctl.compat.releases import Release, UnknownRelease, split_release
from kctl.compat.tool_call import Connect, real_call
from kctl.connect import ClusterOptions

if TYPE_CHECKING:
    from engine.client.blocking import KafkaClient
    from engine.host.ports import Files

# Names of the tools. They imitate the output and exit codes of 3.9.1, some also of 4.3.0.

REASSIGN_PARTITIONS = "kafka-reassign-partitions"
LEADER_ELECTION = "kafka-leader-election"
CONSUMER_GROUPS = "kafka-consumer-groups"
TOPICS = "kafka-topics"
CONFIGS = "kafka-configs"
GET_OFFSETS = "kafka-get-offsets"
DELETE_RECORDS = "kafka-delete-records"
LOG_DIRS = "kafka-log-dirs"
API_VERSIONS = "kafka-broker-api-versions"
CLUSTER = "kafka-cluster"
CLIENT_METRICS = "kafka-client-metrics"
CONSOLE_PRODUCER = "kafka-console-producer"
CONSOLE_CONSUMER = "kafka-console-consumer"
DUMP_LOG = "kafka-dump-log"
ACLS = "kafka-acls"
TRANSACTIONS = "kafka-transactions"
FEATURES = "kafka-features"
METADATA_QUORUM = "kafka-metadata-quorum"
DELEGATION_TOKENS = "kafka-delegation-tokens"
PRODUCER_PERF = "kafka-producer-perf-test"
CONSUMER_PERF = "kafka-consumer-perf-test"
VERIFIABLE_PRODUCER = "kafka-verifiable-producer"
VERIFIABLE_CONSUMER = "kafka-verifiable-consumer"
E2E_LATENCY = "kafka-e2e-latency"
GROUPS = "kafka-groups"
SHARE_GROUPS = "kafka-share-groups"
STREAMS_GROUPS = "kafka-streams-groups"
REPLICA_VERIFICATION = "kafka-replica-verification"
STORAGE = "kafka-storage"
ZOOKEEPER_SHELL = "zookeeper-shell"

#: Placeholder for addresses with which no client can be created.
_SOME_ADDRESS = "127.0.0.1:9092"
_GROUPS_TIMEOUT_MS, _GROUPS_TIMEOUT_MS_4 = 5_000, 30_000


class Tool(NamedTuple):
    """A tool: its module, its option for client properties, its default time-out."""

    module: str
    config_option: str
    timeout_s: float
    help: str


class ReleasedTool(NamedTuple):
    """A tool that parses its options itself, with its module."""

    module: str
    help: str


_TABLE = {
    REASSIGN_PARTITIONS: Tool(
        "reassign_tool", "command-config", 60.0, "Move replicas between brokers and directories"
    ),
    LEADER_ELECTION: Tool("election_tool", "admin.config", 30.0, "Have leaders elected"),
    CONSUMER_GROUPS: Tool("groups_tool", "command-config", 5.0, "Show and change consumer groups"),
    CONFIGS: Tool("configs_tool", "command-config", 60.0, "Show and change settings and quotas"),
    GET_OFFSETS: Tool("offsets_tool", "command-config", 60.0, "Show offsets of partitions"),
    DELETE_RECORDS: Tool("records_tool", "command-config", 60.0, "Delete records of partitions"),
    LOG_DIRS: Tool("log_dirs_tool", "command-config", 60.0, "Show log directories of brokers"),
    API_VERSIONS: Tool("versions_tool", "command-config", 5.0, "Show versions of requests"),
    CLUSTER: Tool("cluster_tool", "config", 60.0, "Show the id of a cluster"),
    CLIENT_METRICS: Tool("metrics_tool", "command-config", 60.0, "Show and change subscriptions"),
    GROUPS: Tool("all_groups_tool", "command-config", 60.0, "List groups of all types"),
    SHARE_GROUPS: Tool("share_groups_tool", "command-config", 30.0, "Show and change share groups"),
    STREAMS_GROUPS: Tool(
        "streams_groups_tool", "command-config", 30.0, "Show and change groups of Kafka Streams"
    ),
    TOPICS: Tool("topics_tool", "command-config", 60.0, "Show and change topics"),
}
#: Tools that exist only in 4.3.0.
_OF_FOUR = (GROUPS, SHARE_GROUPS, STREAMS_GROUPS)
#: Tools with an option for the time-out.
_WITH_TIMEOUT = (CONSUMER_GROUPS, SHARE_GROUPS, STREAMS_GROUPS)
#: Tools that parse their options themselves.
_RELEASED = {
    CONSOLE_PRODUCER: ReleasedTool("console_producer", "Produce lines of standard input"),
    CONSOLE_CONSUMER: ReleasedTool("console_consumer", "Print records"),
    DUMP_LOG: ReleasedTool("dump_log_tool", "Show what is in the files of a log"),
    ACLS: ReleasedTool("acls_tool", "Show and change who may do what"),
    TRANSACTIONS: ReleasedTool("transactions_tool", "Show transactions, and end those that hang"),
    FEATURES: ReleasedTool("features_tool", "Show and change levels of features"),
    METADATA_QUORUM: ReleasedTool("quorum_tool", "Show the quorum of controllers"),
    DELEGATION_TOKENS: ReleasedTool("tokens_tool", "Show and change delegation tokens"),
    PRODUCER_PERF: ReleasedTool("producer_perf", "Measure how fast records are produced"),
    CONSUMER_PERF: ReleasedTool("consumer_perf", "Measure how fast records are consumed"),
    VERIFIABLE_PRODUCER: ReleasedTool("verifiable_producer", "Produce numbers, and report each"),
    VERIFIABLE_CONSUMER: ReleasedTool("verifiable_consumer", "Consume, and report each event"),
    E2E_LATENCY: ReleasedTool("latency_tool", "Measure the time from producer to consumer"),
    REPLICA_VERIFICATION: ReleasedTool("replicas_tool", "Compare the replicas of partitions"),
    STORAGE: ReleasedTool("storage_tool", "Format log directories of KRaft, and show them"),
    ZOOKEEPER_SHELL: ReleasedTool("zookeeper_shell", "Show and change nodes of a ZooKeeper"),
}
TOOLS = (*_TABLE, *_RELEASED)


def run_tool(
    tool: str,
    arguments: Sequence[str],
    *,
    connecting: Connect | None = None,
    files: Files | None = None,
    stdin: BinaryIO | None = None,
) -> int:
    """Imitate one of Kafka's tools, a key of TOOLS; returns its exit code.

    `connecting`, `files` and `stdin` replace the real client, files and standard input. The release
    is that of --kafka-version.
    """
    from kctl.compat.java_client import connect_resolved

    connecting = connecting or connect_resolved
    try:
        release, arguments = split_release(
            arguments, Release.V4_3 if tool in _OF_FOUR else Release.V3_9
        )
    except UnknownRelease as error:
        sys.stderr.write(f"{error}\n")
        return exits.FAILED
    if tool in _OF_FOUR and not release.is_four:
        sys.stderr.write(f"Kafka {release.value} has no {tool}: it is a tool of 4.3.0\n")
        return exits.USAGE
    set_message_release(release)
    if tool in _RELEASED:
        from kctl.compat.released_tools import run_released

        module = import_module(f"kctl.compat.{_RELEASED[tool].module}")
        call = real_call(tool, arguments, release, connecting, files or _real_files(), stdin)
        return run_released(module, call)
    module = _module(tool)
    if hasattr(module, "commands"):
        return _run_command(tool, module, arguments, release, connecting)
    options = module.options(release)
    usage = usage_text(tool, module.SUMMARY, options)
    try:
        given = parse_options(options, arguments, release)
        if not arguments or given.has("help"):
            sys.stderr.write(usage)
            return exits.FAILED
        if given.has("version"):
            sys.stdout.write(f"{release.value}\n")
            return exits.OK
        wanted = module.check_options(given)
        servers = _servers(given)
    except EngineError as error:
        return _refuse(tool, error, usage)
    _enter(tool, given, servers)
    opened = files or _real_files()
    client = partial(_connect, connecting, tool, given)
    if tool == REASSIGN_PARTITIONS:
        return int(module.perform(given, wanted, client, opened, sys.stdout))
    try:
        return int(module.perform(given, wanted, client, opened, sys.stdout, sys.stderr))
    except (OptionsRefused, ToolFailure) as error:
        return _refuse(tool, error, usage)


def _run_command(
    tool: str, module: ModuleType, arguments: Sequence[str], release: Release, connecting: Connect
) -> int:
    """Run a tool whose first argument is a command; returns its exit code."""
    from kctl.compat.java_commands import CommandRefused, HelpRequested, parse_command

    try:
        wanted = parse_command(tool, module.SUMMARY, module.commands(release), arguments)
        wanted.given.release = release
        servers = _servers(wanted.given)
    except HelpRequested as help_text:
        sys.stdout.write(str(help_text))
        return exits.FAILED
    except (CommandRefused, OptionsRefused) as error:
        sys.stderr.write(f"{error}\n")
        return exits.FAILED
    _enter(tool, wanted.given, servers, command=wanted.command.name)
    client = partial(_connect, connecting, tool, wanted.given)
    return int(module.perform_command(wanted, client, sys.stdout, sys.stderr))


def _refuse(tool: str, error: EngineError, usage: str) -> int:
    """Print why options are refused; returns the exit code."""
    is_usage = isinstance(error, OptionsRefused) and error.shows_usage
    prefix = "" if is_usage else getattr(_module(tool), "ERROR_PREFIX", "")
    sys.stderr.write(f"{prefix}{error}\n")
    if isinstance(error, ToolFailure):
        sys.stderr.write(f"{error.trace()}\n")
        return exits.FAILED
    sys.stderr.write(usage if is_usage else f"`{tool} --help` lists the options.\n")
    return exits.FAILED


def _enter(tool: str, given: GivenOptions, servers: str, *, command: str | None = None) -> None:
    """Check whether the current context allows this call of a tool, before any request.

    `command` is the first argument of tools that have commands. Errors: those of
    `guard.check_guards`.
    """
    from kctl.guard import check_guards

    names = [*given.names(), *([] if command is None else [command])]
    parameters: dict[str, object] = dict.fromkeys(names, True)
    check_guards(f"compat {tool}", {**parameters, "bootstrap_server": servers})


def help_of(tool: str) -> str:
    """Return the text of `kctl compat --help` on a tool."""
    if tool in _OF_FOUR:
        return f"{_TABLE[tool].help} as {tool}.sh of Kafka {Release.V4_3.value} does."
    row = _RELEASED.get(tool) or _TABLE[tool]
    releases = " or, with --kafka-version 4.3, ".join(release.value for release in Release)
    return f"{row.help} as {tool}.sh of Kafka {releases} does."


def _module(tool: str) -> ModuleType:
    """Return the module that implements a tool."""
    return import_module(f"kctl.compat.{_TABLE[tool].module}")


def _servers(given: GivenOptions) -> str:
    """Return the bootstrap servers of the options; raises OptionsRefused if there are none.

    A repeated option is reported later, when the client is created.
    """
    for name in ("bootstrap-server", "broker-list"):
        if given.has(name):
            return ",".join(given.texts(name))
    raise OptionsRefused("Only --bootstrap-server is served")


def _cluster_options(tool: str, given: GivenOptions) -> ClusterOptions:
    """Return how a tool connects: bootstrap servers, properties file, time-out."""
    timeout_s = _TABLE[tool].timeout_s
    if tool in _WITH_TIMEOUT:
        # The tool itself reports an invalid number when it starts.
        text = given.texts("timeout")[-1:]
        is_number = bool(text) and is_java_number(text[0], LONG_BITS)
        default_ms = _GROUPS_TIMEOUT_MS_4 if given.is_four else _GROUPS_TIMEOUT_MS
        timeout_s = max(int(text[0]) if is_number else default_ms, 0) / 1000
    name = "bootstrap-server" if given.has("bootstrap-server") else "broker-list"
    servers = given.text(name)
    if servers is None:
        raise ToolFailure("java.lang.NullPointerException", "null")
    return ClusterOptions(
        bootstrap_server=servers,
        command_config=_properties_file(tool, given),
        timeout_s=timeout_s,
    )


def _properties_file(tool: str, given: GivenOptions) -> str | None:
    """Return the path of client properties; 4.3.0 accepts the old option name, too.

    Source: KIP-1147.
    """
    option = _TABLE[tool].config_option
    if given.is_four and given.has("command-config"):
        return given.text("command-config")
    return given.text(option)


def _connect(connecting: Connect, tool: str, given: GivenOptions) -> KafkaClient:
    """Return a client; raises ToolFailure where Kafka's tools fail to create one."""
    from engine.client.errors import ClientSettingRefused
    from engine.host.ports import FileMissing, FileRefused
    from kctl.compat.java_client import (
        check_bootstrap,
        refused_setting_failure,
        unreadable_properties_failure,
    )

    cluster = _cluster_options(tool, given)
    unusable = None
    try:
        address = check_bootstrap(cluster.bootstrap_server or "")
    except ToolFailure as failure:
        # Java reports an invalid file or property before invalid addresses.
        address, unusable = _SOME_ADDRESS, failure
    try:
        client = connecting(cluster._replace(bootstrap_server=address))
    except ClientSettingRefused as error:
        raise refused_setting_failure(error) from error
    except (FileMissing, FileRefused) as error:
        raise unreadable_properties_failure(cluster.command_config or "", error) from error
    if unusable is not None:
        client.close()
        raise unusable
    return client


def _real_files() -> Files:
    """Return the files of this machine."""
    from engine.host.real import RealFiles

    return RealFiles()
