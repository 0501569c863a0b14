"""ConsumerGroupHeartbeat: the state of a member, and the assignment in the response.

A heartbeat has all fields when the member joins, and after an error; otherwise only the fields
that have changed since the last successful one. Owned partitions are sent when the member joins or
acknowledges an assignment.

| version | |
|---|---|
| 0 | topic names only |
| 1 | a pattern as well, in RE2 syntax, which the broker applies; from Kafka 4.0 on |

The member generates its own id (KIP-1082); version 0 accepts that, too.

Source: ConsumerHeartbeatRequestManager.HeartbeatState of 3.9.1 and 4.3.0; KIP-848, KIP-1082.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple, TypedDict, cast

from engine.client.blocking import KafkaClient
from engine.client.errors import NoCommonVersion
from engine.errors import EngineError, api_error
from engine.kafka_errors import NONE, UNSUPPORTED_VERSION
from engine.model import TopicPartition
from engine.wire.structs import Message, message_class

JOIN_EPOCH: Final = 0
LEAVE_EPOCH: Final = -1
#: Of a static member: its partitions wait for it until its session times out.
LEAVE_STATIC_EPOCH: Final = -2
_API: Final = "ConsumerGroupHeartbeat"
#: The version with patterns is of a later release than the engine serves.
_RELEASE: Final = "4.3.0"
_FIRST_VERSION_OF_PATTERNS: Final = 1
_VERSION_MAX: Final = 1
_UUID_BYTES: Final = 16

#: Partitions by the ids of their topics.
ByTopicId = dict[bytes, tuple[int, ...]]


class SubscriptionPattern(NamedTuple):
    """A regular expression in RE2 syntax that the broker matches whole names of topics with."""

    pattern: str


class NoConsumerProtocol(EngineError):
    """The cluster lacks the consumer protocol, or the required version."""

    hint = "set group.protocol to classic until the cluster is upgraded to Kafka 4"

    def __init__(self, lacking: str = "the consumer protocol of groups") -> None:
        super().__init__(f"the cluster does not support {lacking}")
        self.lacking = lacking


class MemberClaims(NamedTuple):
    """The fields of a heartbeat besides the member's group, id and epoch."""

    topics: tuple[str, ...] | None
    pattern: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    rack: str | None
    instance_id: str | None
    owned: tuple[tuple[bytes, tuple[int, ...]], ...]


class _HeartbeatFields(TypedDict, total=False):
    """The fields of a request that a heartbeat leaves out while they are unchanged."""

    instance_id: str | None
    rack_id: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    subscribed_topic_names: Sequence[str] | None
    subscribed_topic_regex: str
    topic_partitions: list[Message]


class HeartbeatAnswer(NamedTuple):
    """A response without an error; `target` is None where it has not changed."""

    member_id: str
    member_epoch: int
    interval_ms: int
    target: ByTopicId | None


def new_member_id(random_bytes: bytes) -> str:
    """Return a member id from 16 random bytes, in the form in which Kafka prints a UUID.

    That form is URL-safe base64 without padding.
    """
    return urlsafe_b64encode(random_bytes[:_UUID_BYTES]).decode().rstrip("=")


class Heartbeats:
    """Sends the heartbeats of one member, with only the fields that changed since the last."""

    def __init__(self, client: KafkaClient, group_id: str) -> None:
        """Create without an earlier heartbeat: the first one has all fields."""
        self._client = client
        self._group_id = group_id
        #: The fields of the last heartbeat that succeeded; later ones send only changes. None: send
        #: all fields.
        self._last_claims: MemberClaims | None = None

    def send(
        self, member_id: str, member_epoch: int, claims: MemberClaims, *, has_owned: bool
    ) -> HeartbeatAnswer:
        """Send the heartbeat of a member that joins or stays; return the coordinator's response.

        Only fields that changed since the last successful heartbeat are sent; with `has_owned`, the
        owned partitions always. Raises ApiError of the response, NoConsumerProtocol, and the errors
        of the request.
        """
        heard = None if member_epoch == JOIN_EPOCH else self._last_claims
        # Unless this one is answered without an error, the next has all fields.
        self._last_claims = None
        fields = _changed_fields(heard, claims)
        if has_owned or heard is None:
            fields["topic_partitions"] = _owned_rows(dict(claims.owned))
        message = self._request(member_id, member_epoch, fields)
        if message.error_code != NONE:
            raise _error_of_response(message)
        self._last_claims = claims
        return HeartbeatAnswer(
            message.member_id or member_id,
            message.member_epoch,
            message.heartbeat_interval_ms,
            None if message.assignment is None else _target_partitions(message.assignment),
        )

    def leave(self, member_id: str, member_epoch: int, instance_id: str | None) -> None:
        """Send the heartbeat with which a member leaves.

        `member_epoch` is -1, or -2 for a static one. Raises only the errors of the request; an
        error code in the response is ignored.
        """
        self._last_claims = None
        self._request(member_id, member_epoch, {"instance_id": instance_id})

    def forget(self) -> None:
        """Forget the last heartbeat's fields, so that the next heartbeat has all fields.

        Called before the member joins again.
        """
        self._last_claims = None

    def _request(self, member_id: str, member_epoch: int, fields: _HeartbeatFields) -> Message:
        """Send one ConsumerGroupHeartbeat to the coordinator.

        Raises NoConsumerProtocol if the coordinator lacks the API, or lacks version 1, which
        patterns need.
        """
        needs_patterns = bool(fields.get("subscribed_topic_regex"))

        def request(version: int) -> Message:
            """Return the request of a version: version 0 has no subscribed regex."""
            if version < _FIRST_VERSION_OF_PATTERNS:
                fields.pop("subscribed_topic_regex", None)
            return message_class(f"{_API}Request", _RELEASE)(
                group_id=self._group_id, member_id=member_id, member_epoch=member_epoch, **fields
            )

        try:
            response = self._client.send_to_coordinator(
                self._group_id,
                _API,
                request,
                retriable_code=lambda message: int(message.error_code),
                lowest=_FIRST_VERSION_OF_PATTERNS if needs_patterns else 0,
                highest=_VERSION_MAX,
                release=_RELEASE,
            )
        except NoCommonVersion as error:
            if needs_patterns and error.theirs is not None:
                lacking = "patterns that brokers match; compile one by re to match it here"
                raise NoConsumerProtocol(lacking) from error
            raise NoConsumerProtocol from error
        message: Message = response.message
        return message


def _error_of_response(message: Message) -> EngineError:
    """Return the error of a response; NoConsumerProtocol for UNSUPPORTED_VERSION."""
    if message.error_code == UNSUPPORTED_VERSION:
        return NoConsumerProtocol()
    return api_error(message.error_code, message.error_message)


def _changed_fields(heard: MemberClaims | None, claims: MemberClaims) -> _HeartbeatFields:
    """Return the heartbeat fields to send, by name: the instance id always, others if changed.

    `heard` are the values of the last successful heartbeat, None if all must be sent.
    Differs: a member without a pattern sends an empty one as it joins, Java's sends null.
    """
    fields: _HeartbeatFields = {"instance_id": claims.instance_id}
    if heard is None:
        fields["rack_id"] = claims.rack
    if heard is None or heard.rebalance_timeout_ms != claims.rebalance_timeout_ms:
        fields["rebalance_timeout_ms"] = claims.rebalance_timeout_ms
    if heard is None or heard.server_assignor != claims.server_assignor:
        fields["server_assignor"] = claims.server_assignor
    if heard is None or (heard.topics, heard.pattern) != (claims.topics, claims.pattern):
        # Null keeps the coordinator's value; an empty value removes it.
        was_pattern = heard is not None and heard.pattern is not None
        had_topics = heard is not None and bool(heard.topics)
        fields["subscribed_topic_names"] = (
            [] if claims.topics is None and (heard is None or had_topics) else claims.topics
        )
        if heard is None or claims.pattern is not None or was_pattern:
            # Also on joining: a static member inherits the subscription of its earlier instance.
            fields["subscribed_topic_regex"] = claims.pattern or ""
    if fields.get("subscribed_topic_names") is not None:
        fields["subscribed_topic_names"] = list(
            cast("Sequence[str]", fields["subscribed_topic_names"])
        )
    return fields


def by_topic_id(
    partitions: Iterable[TopicPartition], ids: Mapping[str, bytes]
) -> tuple[tuple[bytes, tuple[int, ...]], ...]:
    """Return pairs of topic id and partition numbers, in the order of topic names.

    `ids` are the topic ids by name; topics without an id are left out.
    """
    found: dict[bytes, list[int]] = {}
    for key in sorted(partitions):
        if key.topic in ids:
            found.setdefault(ids[key.topic], []).append(key.partition)
    return tuple((topic_id, tuple(numbers)) for topic_id, numbers in found.items())


def _owned_rows(owned: Mapping[bytes, tuple[int, ...]]) -> list[Message]:
    """Return the owned partitions as rows of a ConsumerGroupHeartbeat request, one per topic id."""
    row = message_class(f"{_API}Request", _RELEASE).TopicPartitions
    return [row(topic_id=topic_id, partitions=list(n)) for topic_id, n in owned.items()]


def _target_partitions(assignment: Message) -> ByTopicId:
    """Return the partitions of a response's target assignment, by topic id."""
    return {row.topic_id: tuple(row.partitions) for row in assignment.topic_partitions}
