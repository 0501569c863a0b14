"""`kafka-metadata-quorum`: shows and changes the controller quorum of a KRaft cluster.

Source: MetadataQuorumCommand of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from typing import Final

from engine.client.blocking import KafkaClient
from engine.client.errors import NoCommonVersion
from engine.client.quorum_admin import QuorumReplica, QuorumView, describe_quorum, remove_voter
from engine.errors import EngineError
from engine.ids import uuid_text
from kctl import exits
from kctl.compat.java_commands import Arity, Command, CommandOption, GivenCommand, NumberType
from kctl.compat.java_failures import TerseFailure, as_java
from kctl.compat.java_options import GivenOptions
from kctl.compat.java_table import java_table
from kctl.compat.java_uuids import java_uuid
from kctl.compat.quorum_servers import SERVER_OPTIONS, required_server
from kctl.compat.releases import Release
from kctl.compat.tool_call import ToolCall

SUMMARY = "Shows and changes the quorum of controllers."
_DRY_RUN: Final = CommandOption("dry-run", "", "Change nothing.", takes=Arity.NOTHING)
_COMMANDS: Final = (
    Command(
        "describe",
        "Show the quorum.",
        (
            CommandOption("status", "", "A summary.", takes=Arity.NOTHING),
            CommandOption("replication", "", "A row for each replica.", takes=Arity.NOTHING),
            CommandOption("human-readable", "", "Ages instead of times.", takes=Arity.NOTHING),
        ),
    ),
    Command("add-controller", "Not served here.", (_DRY_RUN,)),
    Command(
        "remove-controller",
        "Take a controller out of the voters.",
        (
            CommandOption(
                "controller-id", "i", "Its id.", is_required=True, number=NumberType.Integer
            ),
            CommandOption("controller-directory-id", "d", "Its directory.", is_required=True),
            _DRY_RUN,
        ),
    ),
)
_HEADS: Final = (
    "NodeId",
    "DirectoryId",
    "LogEndOffset",
    "Lag",
    "LastFetchTimestamp",
    "LastCaughtUpTimestamp",
    "Status",
)
_NO_DIRECTORY: Final = bytes(16)


def commands(release: Release) -> tuple[Command, ...]:
    """Return the commands of kafka-metadata-quorum, the same in each release."""
    del release
    return _COMMANDS


def common(release: Release) -> tuple[CommandOption, ...]:
    """Return the options of kafka-metadata-quorum that precede the command."""
    del release
    return SERVER_OPTIONS


def help_code(release: Release) -> int:
    """Return the exit code with which kafka-metadata-quorum ends after its help."""
    del release
    return exits.OK


def run_command(call: ToolCall, wanted: GivenCommand) -> int:
    """Run a command of kafka-metadata-quorum, and print the results; returns the exit code."""
    name, given = wanted.command.name, wanted.given
    try:
        servers = required_server(given)
        call.admit([name, *given.names()], servers)
        with call.client(servers, call.properties(given.text("command-config"))) as client:
            if name == "describe":
                _print_quorum(call, client, given)
            elif name == "remove-controller":
                _remove_controller(call, client, given)
            else:
                raise TerseFailure("add-controller is not served here")
    except TerseFailure as failure:
        call.flush()
        call.err.write(f"{failure}\n")
        return exits.FAILED
    return exits.OK


def _request_quorum(client: KafkaClient) -> QuorumView:
    """Return the cluster's KRaft quorum; raises TerseFailure with Java's text."""
    try:
        return describe_quorum(client)
    except NoCommonVersion as error:
        raise _unsupported("DESCRIBE_QUORUM") from error
    except EngineError as error:
        raise TerseFailure(f"{as_java(error).java_class}: {as_java(error)}") from error


def _unsupported(api: str) -> TerseFailure:
    """Return the failure for an API that the cluster does not support."""
    return TerseFailure(
        "org.apache.kafka.common.errors.UnsupportedVersionException: "
        f"The node does not support {api}"
    )


def _print_quorum(call: ToolCall, client: KafkaClient, given: GivenOptions) -> None:
    """Print the quorum's status or its replicas; raises TerseFailure unless one is requested."""
    if given.has("status") and given.has("replication"):
        raise TerseFailure(
            "Only one of --status or --replication should be specified with describe sub-command"
        )
    if given.has("replication"):
        _print_replication(call, client, is_human=given.has("human-readable"))
    elif not given.has("status"):
        raise TerseFailure(
            "One of --status or --replication must be specified with describe sub-command"
        )
    elif given.has("human-readable"):
        raise TerseFailure("The option --human-readable is only supported along with --replication")
    else:
        _print_status(call, client)


def _print_replication(call: ToolCall, client: KafkaClient, *, is_human: bool) -> None:
    """Print a table of leader, followers and observers, with their lag in offsets."""
    quorum = _request_quorum(client)
    leader = _leader(quorum)
    now_ms = client.clock.wall_ms()
    others = [voter for voter in quorum.voters if voter.replica_id != leader.replica_id]
    kinds = ((("Leader", [leader])), ("Follower", others), ("Observer", quorum.observers))
    rows = [
        (
            str(replica.replica_id),
            uuid_text(replica.directory_id),
            str(replica.log_end_offset),
            str(leader.log_end_offset - replica.log_end_offset),
            _time_text(replica.last_fetch_ms, now_ms, is_human=is_human),
            _time_text(replica.last_caught_up_ms, now_ms, is_human=is_human),
            status,
        )
        for status, replicas in kinds
        for replica in replicas
    ]
    call.out.write(java_table(_HEADS, rows))


def _time_text(time_ms: int | None, now_ms: int, *, is_human: bool) -> str:
    """Return a time as ms since 1970, or as its age if `is_human`; -1 for None."""
    if time_ms is None:
        return "-1"
    return f"{now_ms - time_ms} ms ago" if is_human else str(time_ms)


def _leader(quorum: QuorumView) -> QuorumReplica:
    """Return the leader of the quorum; raises TerseFailure if it is none of the voters."""
    for voter in quorum.voters:
        if voter.replica_id == quorum.leader_id:
            return voter
    raise TerseFailure(f"the leader {quorum.leader_id} is none of the voters")


def _print_status(call: ToolCall, client: KafkaClient) -> None:
    """Print leader, high watermark, the largest follower lag, voters and observers."""
    quorum = _request_quorum(client)
    cluster_id = client.brokers_view().cluster_id
    lag, lag_ms = _follower_lag(quorum)
    rows = (
        ("ClusterId", cluster_id),
        ("LeaderId", quorum.leader_id),
        ("LeaderEpoch", quorum.leader_epoch),
        ("HighWatermark", quorum.high_watermark),
        ("MaxFollowerLag", lag),
        ("MaxFollowerLagTimeMs", lag_ms),
        ("CurrentVoters", _replicas_text(quorum, quorum.voters)),
        ("CurrentObservers", _replicas_text(quorum, quorum.observers)),
    )
    call.out.writelines(f"{f'{name}:':<24}{value}\n" for name, value in rows)


def _follower_lag(quorum: QuorumView) -> tuple[int, int]:
    """Return the lag of the slowest follower in offsets and in ms; -1 for unknown ms."""
    leader = _leader(quorum)
    followers = [voter for voter in quorum.voters if voter.replica_id != leader.replica_id]
    if not followers:
        return 0, 0
    slowest = min(followers, key=lambda voter: voter.log_end_offset)
    lag = leader.log_end_offset - slowest.log_end_offset
    if lag == 0:
        return 0, 0
    if leader.last_caught_up_ms is None or slowest.last_caught_up_ms is None:
        return lag, -1
    return lag, leader.last_caught_up_ms - slowest.last_caught_up_ms


def _replicas_text(quorum: QuorumView, replicas: tuple[QuorumReplica, ...]) -> str:
    """Return replicas as a JSON list in the tool's format."""
    return f"[{', '.join(_replica_text(quorum, replica) for replica in replicas)}]"


def _replica_text(quorum: QuorumView, replica: QuorumReplica) -> str:
    """Return a replica as JSON in the tool's format."""
    parts = [f'"id": {replica.replica_id}']
    if replica.directory_id != _NO_DIRECTORY:
        parts.append(f'"directoryId": "{uuid_text(replica.directory_id)}"')
    endpoints = quorum.endpoints.get(replica.replica_id)
    if endpoints:
        named = ", ".join(f'"{endpoint}"' for endpoint in endpoints)
        parts.append(f'"endpoints": [{named}]')
    return f"{{{', '.join(parts)}}}"


def _remove_controller(call: ToolCall, client: KafkaClient, given: GivenOptions) -> None:
    """Remove a controller from the voters of the quorum; with --dry-run only print it.

    Errors: TerseFailure.
    """
    controller_id = given.number("controller-id", -1)
    if controller_id < 0:
        raise TerseFailure(f"Invalid negative --controller-id: {controller_id}")
    text = given.needed("controller-directory-id")
    try:
        directory_id = java_uuid(text)
    except EngineError as error:
        raise TerseFailure(f"Failed to parse --controller-directory-id: {error}") from error
    dry_run = given.has("dry-run")
    if not dry_run:
        try:
            remove_voter(client, controller_id, directory_id)
        except NoCommonVersion as error:
            raise _unsupported("REMOVE_RAFT_VOTER") from error
        except EngineError as error:
            raise TerseFailure(f"{as_java(error).java_class}: {as_java(error)}") from error
    start = "DRY RUN of removing " if dry_run else "Removed "
    call.out.write(f"{start} KRaft controller {controller_id} with directory id {text}\n")
