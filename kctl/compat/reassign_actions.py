"""The five actions of kafka-reassign-partitions, with requests and output in the tool's order.

Source: ReassignPartitionsCommand of 3.9.1 and 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TextIO

from engine.client.blocking import KafkaClient
from engine.client.cluster_admin import describe_log_dirs
from engine.client.metadata import ClusterView, topic_failure
from engine.client.reassignments import (
    OngoingReassignment,
    alter_log_dirs,
    alter_reassignments,
    list_reassignments,
)
from engine.errors import ApiError, EngineError, api_error
from engine.kafka_errors import (
    INVALID_TOPIC_EXCEPTION,
    REPLICA_NOT_AVAILABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from engine.model import TopicPartition
from kctl.compat.java_admin import UNNAMED_TOPIC
from kctl.compat.java_failures import (
    ADMIN_COMMAND_FAILED,
    TerseFailure,
    ToolFailure,
    as_tool_failure,
    java_text,
    message_of,
)
from kctl.compat.move_states import LogDirMove, log_dir_move_line, reassignment_state_line
from kctl.compat.plan_json import Proposal, Replica, assignment_json
from kctl.compat.releases import Release
from kctl.compat.tool_throttles import (
    clear_broker_throttles,
    clear_topic_throttles,
    proposed_moves,
    set_log_dir_throttle,
    set_move_throttles,
)

_ALREADY_RUNS = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to "
    "override this and create a new partition assignment in addition to the existing one. The "
    "--additional flag can also be used to change the throttle by resubmitting the current "
    "reassignment."
)
_VERIFY_LATER = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the "
    "throttle is removed."
)
#: Pause before moves are requested again for replicas that do not exist yet.
_PAUSE_MS = 100

Assignment = dict[TopicPartition, tuple[int, ...]]


class ExecuteSettings(NamedTuple):
    """The options of --execute; a rate (bytes/s) below 0 means no throttle."""

    is_additional: bool = False
    throttle: int = -1
    log_dirs_throttle: int = -1
    timeout_ms: int = 10_000
    may_change_replication_factor: bool = True


class ReassignActions:
    """The actions on a cluster; errors are ToolFailure, TerseFailure and those of requests."""

    def __init__(self, client: KafkaClient, out: TextIO, release: Release = Release.V3_9) -> None:
        self._client = client
        self._out = out
        self._release = release

    def _print(self, line: str) -> None:
        """Print a line on the tool's standard output."""
        self._out.write(f"{line}\n")

    # Actions

    def show_ongoing(self) -> None:
        """Print every reassignment in progress (--list)."""
        ongoing = list_reassignments(self._client)
        if not ongoing:
            self._print("No partition reassignments found.")
            return
        self._print("Current partition reassignments:")
        for key, move in sorted(ongoing.items()):
            adding = f" adding: {_joined(move.adding)}." if move.adding else ""
            removing = f" removing: {_joined(move.removing)}." if move.removing else ""
            self._print(f"{key}: replicas: {_joined(move.replicas)}.{adding}{removing}")

    def generate(
        self, topics: Sequence[str], broker_ids: Sequence[int], *, is_rack_aware: bool
    ) -> None:
        """Print the current replicas of topics, and proposed ones on the given brokers.

        Both are JSON for --reassignment-json-file. Errors: ToolFailure.
        """
        from kctl.compat.generated_plan import UsableBroker, generate_plan, usable_brokers

        current = self._request_replicas_of_topics(topics)
        brokers = usable_brokers(
            [
                UsableBroker(b.broker_id, b.rack)
                for b in self._client.view([]).brokers.values()
                if b.broker_id in set(broker_ids)
            ],
            is_rack_aware=is_rack_aware,
        )
        proposed = generate_plan(current, brokers, self._client.entropy, self._release)
        self._print("Current partition replica assignment")
        self._print(f"{self._current_json(current)}\n")
        self._print("Proposed partition reassignment configuration")
        self._print(assignment_json(proposed))

    def execute(self, proposal: Proposal, settings: ExecuteSettings) -> None:
        """Set throttles, then start the reassignments of a file (--execute).

        Errors: TerseFailure if others are in progress, unless --additional is given; ToolFailure.
        """
        targets = dict(proposal.targets)
        ongoing = list_reassignments(self._client)
        if ongoing and not settings.is_additional:
            raise TerseFailure(_ALREADY_RUNS)
        self._check_brokers(targets.values())
        current = self._request_replicas_of_partitions(targets)
        self._print(f"Current partition replica assignment\n\n{self._current_json(current)}\n")
        self._print("Save this to use as the --reassignment-json-file option during rollback")
        self._set_throttles(settings, ongoing, targets, current, proposal.log_dirs)
        self._start_reassignments(
            targets,
            "Error reassigning partition(s):",
            may_change_replication_factor=settings.may_change_replication_factor,
        )
        plural = "" if len(targets) == 1 else "s"
        named = _joined(sorted(targets))
        self._print(f"Successfully started partition reassignment{plural} for {named}")
        if proposal.log_dirs:
            self._move_log_dirs(proposal.log_dirs, settings.timeout_ms)

    def verify(self, proposal: Proposal, *, keeps_throttles: bool) -> None:
        """Print the state of a file's reassignments (--verify).

        Once all have ended, their throttles are removed, unless `keeps_throttles`.
        """
        ongoing = list_reassignments(self._client)
        targets = dict(proposal.targets)
        found = self._request_present_replicas([key for key in targets if key not in ongoing])
        self._print("Status of partition reassignment:")
        for key, target in sorted(targets.items()):
            self._print(
                reassignment_state_line(key, target, None if key in ongoing else found[key])
            )
        moves = self._request_log_dir_moves(proposal.log_dirs)
        self._print(
            "\n".join(log_dir_move_line(replica, moves[replica]) for replica in sorted(moves))
        )
        is_over = not ongoing and all(move.is_over for move in moves.values())
        if is_over and not keeps_throttles:
            self._clear_throttles(proposal)

    def cancel(self, proposal: Proposal, *, keeps_throttles: bool, timeout_ms: int) -> None:
        """Cancel the reassignments of a file, and its moves between log directories.

        The tool of 3.9.1 ignores a reassignment that only adds replicas, that of 4.3.0 does not.
        """
        keys = [key for key, _ in proposal.targets]
        ongoing = list_reassignments(self._client, keys) if keys else {}
        is_cancelled = _is_moving if self._release.is_four else _is_replaced
        cancelled = sorted(key for key, move in ongoing.items() if is_cancelled(move))
        if cancelled:
            plural = "" if len(cancelled) == 1 else "s"
            self._start_reassignments(
                dict.fromkeys(cancelled), f"Error cancelling partition reassignment{plural} for:"
            )
            named = _joined(cancelled)
            self._print(f"Successfully cancelled partition reassignment{plural} for: {named}")
        else:
            self._print("None of the specified partition reassignments are active.")
        moves = self._request_log_dir_moves(proposal.log_dirs)
        back = {r: str(move.current) for r, move in moves.items() if move.future is not None}
        if back:
            self._move_log_dirs(back, timeout_ms)
        else:
            self._out.write("None of the specified partition moves are active.")
        if not keeps_throttles:
            self._clear_throttles(proposal)

    # The current replicas

    def _current_json(self, current: Assignment) -> str:
        """Return the current assignment as JSON; in 4.3.0 it includes log directories."""
        if not self._release.is_four:
            return assignment_json(current)
        alive = self._client.view([]).brokers
        broker_ids = sorted({id_ for ids in current.values() for id_ in ids} & set(alive))
        topics = sorted({key.topic for key in current})
        places: dict[Replica, str] = {}
        for broker_id, dirs in describe_log_dirs(self._client, broker_ids, topics).items():
            if isinstance(dirs, EngineError):
                raise as_tool_failure(dirs)
            for log_dir in dirs:
                for row in log_dir.replicas:
                    if not row.is_future:
                        places[Replica(row.partition, broker_id)] = log_dir.path
        return assignment_json(current, places)

    def _check_brokers(self, targets: Iterable[Sequence[int]]) -> None:
        """Raise ToolFailure if a broker that is to get a replica is not alive."""
        alive = self._client.view([]).brokers
        unknown = sorted({id_ for replicas in targets for id_ in replicas} - set(alive))
        if unknown:
            raise ToolFailure(ADMIN_COMMAND_FAILED, f"Unknown broker id {unknown[0]}")

    def _request_replicas_of_topics(self, topics: Iterable[str]) -> Assignment:
        """Request the current replicas of topics; raises ToolFailure for an unknown topic."""
        _check_names(topics)
        view = self._client.view(topics)
        for name in sorted(set(topics)):
            failure = topic_failure(view, name)
            if failure is not None:
                raise as_tool_failure(_not_found(name, failure))
        return {
            TopicPartition(t.name, p.partition): p.replicas
            for t in view.topics.values()
            for p in t.partitions
        }

    def _request_replicas_of_partitions(self, keys: Iterable[TopicPartition]) -> Assignment:
        """Request the current replicas of partitions; raises ToolFailure for an unknown one."""
        wanted = set(keys)
        of_topics = self._request_replicas_of_topics({key.topic for key in wanted})
        missing = sorted(wanted - set(of_topics))
        if missing:
            named = ", ".join(map(str, missing))
            text = f"Unable to find partition: {named}"
            raise as_tool_failure(api_error(UNKNOWN_TOPIC_OR_PARTITION, text))
        return {key: of_topics[key] for key in sorted(wanted)}

    def _request_present_replicas(self, keys: Sequence[TopicPartition]) -> Assignment:
        """Request the current replicas of partitions; empty for one that does not exist."""
        if not keys:
            return {}
        _check_names(key.topic for key in keys)
        view = self._client.view({key.topic for key in keys})
        return {key: _replicas(view, key) for key in keys}

    def _request_log_dir_moves(self, wanted: Mapping[Replica, str]) -> dict[Replica, LogDirMove]:
        """Request where each replica is, and whether it is being copied to a directory.

        `wanted` has the target directory of each replica.
        """
        topics = sorted({replica.partition.topic for replica in wanted})
        alive = self._client.view([]).brokers if wanted else {}
        requested = {replica.broker_id for replica in wanted} & set(alive)
        views = describe_log_dirs(self._client, sorted(requested), topics) if requested else {}
        moves = {replica: LogDirMove(target) for replica, target in wanted.items()}
        for broker_id, dirs in views.items():
            if isinstance(dirs, EngineError):
                raise as_tool_failure(dirs)
            for log_dir in dirs:
                for row in log_dir.replicas:
                    replica = Replica(row.partition, broker_id)
                    if replica not in moves:
                        continue
                    path = log_dir.path
                    placed = {"future": path} if row.is_future else {"current": path}
                    moves[replica] = moves[replica]._replace(**placed)
        return moves

    # The requested changes

    def _set_throttles(
        self,
        settings: ExecuteSettings,
        ongoing: Mapping[TopicPartition, OngoingReassignment],
        targets: Assignment,
        current: Assignment,
        log_dirs: Mapping[Replica, str],
    ) -> None:
        """Set the throttles of --throttle and --replica-alter-log-dirs-throttle in bytes/s.

        A negative rate sets none.
        """
        if settings.throttle < 0 and settings.log_dirs_throttle < 0:
            return
        self._print(_VERIFY_LATER)
        if settings.throttle >= 0:
            moves = proposed_moves(ongoing, targets, current)
            _waited(lambda: set_move_throttles(self._client, moves, settings.throttle))
            self._print(f"The inter-broker throttle limit was set to {settings.throttle} B/s")
        if settings.log_dirs_throttle >= 0:
            rate = settings.log_dirs_throttle
            broker_ids = {replica.broker_id for replica in log_dirs}
            _waited(lambda: set_log_dir_throttle(self._client, broker_ids, rate))
            self._print(f"The replica-alter-dir throttle limit was set to {rate} B/s")

    def _start_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        heading: str,
        *,
        may_change_replication_factor: bool = True,
    ) -> None:
        """Send AlterPartitionReassignments; a target None cancels a reassignment.

        Raises TerseFailure with all failures, below `heading`.
        """
        try:
            results = alter_reassignments(
                self._client, targets, may_change_replication_factor=may_change_replication_factor
            )
        except ApiError as error:
            results = dict.fromkeys(targets, error)
        failures = [f"{key}: {message_of(e)}" for key, e in sorted(results.items()) if e]
        if failures:
            raise TerseFailure("\n".join([heading, *failures]))

    def _move_log_dirs(self, paths: Mapping[Replica, str], timeout_ms: int) -> None:
        """Move replicas to log directories, retrying until the time-out.

        A broker that does not have a replica yet gets it by the reassignment. Errors: TerseFailure
        for those that could not be started in time.
        """
        deadline_ms = self._client.clock.monotonic_ms() + timeout_ms
        left = dict(paths)
        while True:
            for replica in self._request_log_dir_changes(left):
                key = replica.partition
                self._print(
                    f"Successfully started moving log directory to {left.pop(replica)} for replica "
                    f"{key} with broker {replica.broker_id} "
                )
            if not left:
                return
            if self._client.clock.monotonic_ms() >= deadline_ms:
                plural = "" if len(left) == 1 else "s"
                named = _joined(sorted(left))
                raise TerseFailure(
                    f"Timed out before log directory move{plural} could be started for: {named}"
                )
            # A broker without the replica creates it later; the move is requested again.
            self._client.connections.pause(_PAUSE_MS)

    def _request_log_dir_changes(self, paths: Mapping[Replica, str]) -> list[Replica]:
        """Send AlterReplicaLogDirs; return the accepted replicas.

        Those that do not exist yet are missing. Errors: ToolFailure for any other failure.
        """
        by_broker: dict[int, dict[TopicPartition, str]] = {}
        for replica, path in paths.items():
            by_broker.setdefault(replica.broker_id, {})[replica.partition] = path
        results = alter_log_dirs(self._client, by_broker)
        started = []
        for replica in sorted(paths):
            failure = results[replica.partition, replica.broker_id]
            if failure is None:
                started.append(replica)
            elif not isinstance(failure, ApiError) or failure.code != REPLICA_NOT_AVAILABLE:
                text = java_text(failure)
                waited = f"java.util.concurrent.ExecutionException: {text}"
                message = f"Failed to alter dir for {replica}"
                raise ToolFailure(ADMIN_COMMAND_FAILED, message, waited, text)
        return started

    def _clear_throttles(self, proposal: Proposal) -> None:
        """Remove the throttles of live and target brokers, then those of the topics."""
        alive = self._client.view([]).brokers
        named = {id_ for _, replicas in proposal.targets for id_ in replicas}
        broker_ids = sorted({*alive, *named})
        plural = "" if len(broker_ids) == 1 else "s"
        brokers = _joined(broker_ids)
        self._print(f"Clearing broker-level throttles on broker{plural} {brokers}")
        _waited(lambda: clear_broker_throttles(self._client, broker_ids))
        topics = sorted({key.topic for key, _ in proposal.targets})
        plural = "" if len(topics) == 1 else "s"
        self._print(f"Clearing topic-level throttles on topic{plural} {_joined(topics)}")
        _waited(lambda: clear_topic_throttles(self._client, topics))


def _is_moving(move: OngoingReassignment) -> bool:
    """Return True if a reassignment adds or removes replicas; 4.3.0 cancels these."""
    return bool(move.adding or move.removing)


def _is_replaced(move: OngoingReassignment) -> bool:
    """Return True if a reassignment both adds and removes replicas; 3.9.1 cancels only these."""
    return bool(move.adding and move.removing)


def _joined(values: Iterable[object]) -> str:
    """Return values as text, separated by commas."""
    return ",".join(map(str, values))


def _replicas(view: ClusterView, key: TopicPartition) -> tuple[int, ...]:
    """Return a partition's replicas, empty if it is unknown; raises ToolFailure like the tool."""
    partition = view.partition(key)
    count = len(view.topics[key.topic].partitions) if key.topic in view.topics else 0
    if count and key.partition == count:
        # The tool has an off-by-one error: it accepts this number, and then fails to find it.
        text = f"Index {count} out of bounds for length {count}"
        raise ToolFailure("java.lang.IndexOutOfBoundsException", text)
    return () if partition is None else partition.replicas


def _check_names(topics: Iterable[str]) -> None:
    """Raise ToolFailure for an empty topic name, which Java's client refuses without a request."""
    if "" in topics:
        raise as_tool_failure(api_error(INVALID_TOPIC_EXCEPTION, UNNAMED_TOPIC))


def _not_found(name: str, failure: ApiError) -> ApiError:
    """Return the error of an unknown topic with the message of Java's client."""
    if failure.code == UNKNOWN_TOPIC_OR_PARTITION:
        return api_error(failure.code, f"Topic {name} not found.")
    return failure


def _waited(call: Callable[[], None]) -> None:
    """Call a function, and raise its errors as `KafkaFuture.get` wraps them."""
    try:
        call()
    except EngineError as error:
        raise as_tool_failure(error) from error
